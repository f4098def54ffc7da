//! The order of an enum's variants is no order of keys.
#![allow(dead_code)]
use slipstream::Key;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Key)]
enum Origin {
    Jfk,
    Lga,
}

fn main() {}
