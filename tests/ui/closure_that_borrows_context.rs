//! A sink lives as long as the flow; the attribute sees the context only while the flow starts.
use slipstream::{Iter, handle};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
    limit: i64,
}

#[handle(app.weather, sink = |weather| assert!(weather.time < app.limit))]
async fn handler(app: &App, weather: Weather) -> Weather {
    weather
}

fn main() {}
