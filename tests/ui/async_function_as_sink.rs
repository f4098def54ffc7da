//! A sink that waits is named as one.
use slipstream::{Iter, handle};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
}

async fn send(weather: &Weather) {
    drop(weather.clone());
}

#[handle(app.weather, sink = send)]
fn handler(app: &App, weather: Weather) -> Weather {
    weather
}

fn main() {}
