//! A pipe is a function from stream to stream, not from item to item.
use slipstream::{Iter, handle, print};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
}

fn time(weather: Weather) -> i64 {
    weather.time
}

#[handle(app.weather, pipe = time, sink = print)]
fn handler(app: &App, time: i64) -> i64 {
    time
}

fn main() {}
