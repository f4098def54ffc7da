//! What a pipe gives may be needed again.
use futures::{Stream, StreamExt};
use slipstream::{Items, Iter, handle};

struct App {
    numbers: Iter<Vec<u32>>,
}

struct Number(u32);

fn numbers(items: Items<u32>) -> impl Stream<Item = Number> {
    items.map(Number)
}

#[handle(app.numbers, pipe = numbers)]
fn handler(app: &App, number: Number) {
    drop(number.0);
}

fn main() {}
