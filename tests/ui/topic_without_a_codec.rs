//! It is not said how the topic's values are written.
use slipstream::{handle, kafka::Unformatted};

struct App {
    numbers: Unformatted<(), u32>,
}

#[handle(app.numbers)]
fn read(app: &App, number: u32) {
    let _ = number;
}

fn main() {}
