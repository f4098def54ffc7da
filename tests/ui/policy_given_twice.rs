//! A handler has one policy.
use slipstream::{Iter, OnError, Result, handle};

struct App {
    numbers: Iter<Vec<u32>>,
}

#[handle(app.numbers, on_error = OnError::skip(), on_error = OnError::stop())]
fn handler(app: &App, number: u32) -> Result<()> {
    drop(number);
    Ok(())
}

fn main() {}
