//! The attribute is for functions.
use slipstream::handle;

#[handle(weather)]
#[derive(Debug)]
struct Weather {
    time: i64,
}

fn main() {}
