//! The order of an enum's variants is no order of keys.
use slipstream::Key;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Key)]
enum Origin {
    Jfk,
    Lga,
}

fn main() {}
