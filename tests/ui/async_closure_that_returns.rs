//! Nor has an async sink an output of its own.
use slipstream::{Iter, handle};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
}

#[handle(app.weather, sink = |weather| async move { weather.time })]
async fn handler(app: &App, weather: Weather) -> Weather {
    weather
}

fn main() {}
