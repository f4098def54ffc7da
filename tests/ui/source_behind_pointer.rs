//! The source is what the `Arc` points to: `*app.numbers`.
use slipstream::{Iter, handle, print};

use std::sync::Arc;

struct App {
    numbers: Arc<Iter<Vec<u32>>>,
}

#[handle(app.numbers, sink = print)]
fn handler(app: &App, n: u32) -> u32 {
    n
}

fn main() {}
