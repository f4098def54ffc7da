//! Sources have no name.
use slipstream::{Iter, handle, print};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
}

#[handle(source = app.weather, sink = print)]
fn handler(app: &App, weather: Weather) -> Weather {
    weather
}

fn main() {}
