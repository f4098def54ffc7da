//! A number cannot be read.
use slipstream::{handle, print};

struct App {
    limit: u32,
}

#[handle(app.limit, sink = print)]
fn handler(app: &App, n: u32) -> u32 {
    n
}

fn main() {}
