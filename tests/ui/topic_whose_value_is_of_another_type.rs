//! The topic's values are numbers; this handler takes text.
use slipstream::{Topic, handle};

struct App {
    numbers: Topic<(), u32>,
}

#[handle(app.numbers)]
fn read(app: &App, text: String) {
    let _ = text;
}

fn main() {}
