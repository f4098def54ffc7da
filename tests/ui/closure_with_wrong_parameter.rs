//! A closure as a sink takes the output by reference.
use slipstream::{Iter, handle};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
}

#[handle(app.weather, sink = |n: &i64| assert!(*n > 0))]
async fn handler(app: &App, weather: Weather) -> Weather {
    weather
}

fn main() {}
