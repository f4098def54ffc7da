//! A struct is a key if its fields are.
use slipstream::Key;

struct Sky;

#[derive(Key)]
struct Seen {
    sky: Sky,
    time: i64,
}

fn main() {}
