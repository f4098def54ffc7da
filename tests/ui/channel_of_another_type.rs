//! A channel takes what it gives.
use slipstream::{Channel, Iter, handle};

struct App {
    numbers: Iter<Vec<u32>>,
    words: Channel<String>,
}

#[handle(app.numbers, sink = app.words)]
fn handler(app: &App, number: u32) -> u32 {
    number
}

fn main() {}
