//! Of a message, a handler takes all of it or its value, not its key.
use slipstream::{Iter, Message, handle};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Message<String, Weather>>>,
}

#[handle(app.weather)]
fn handler(app: &App, origin: String) {
    drop(origin);
}

fn main() {}
