//! `print` prints what is `Debug`.
use slipstream::{Iter, handle, print};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct Plain;

struct App {
    weather: Iter<Vec<Weather>>,
}

#[handle(app.weather, sink = print)]
async fn handler(app: &App, weather: Weather) -> Plain {
    drop(weather);
    Plain
}

fn main() {}
