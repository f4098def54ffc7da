//! A policy is an `OnError`.
use slipstream::{Iter, Result, handle};

struct App {
    numbers: Iter<Vec<u32>>,
}

#[handle(app.numbers, on_error = "skip")]
fn handler(app: &App, number: u32) -> Result<()> {
    drop(number);
    Ok(())
}

fn main() {}
