//! The attribute is for functions.
#![allow(dead_code)]
use slipstream::handle;

#[handle(weather)]
#[derive(Debug)]
struct Weather {
    time: i64,
}

fn main() {}
