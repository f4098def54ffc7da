//! A topic takes pairs, or records; this handler gives a value alone.
use slipstream::{Iter, Topic, handle};

struct App {
    numbers: Iter<[u32; 2]>,
    squares: Topic<(), u32>,
}

#[handle(app.numbers, sink = app.squares)]
fn square(app: &App, number: u32) -> u32 {
    number * number
}

fn main() {}
