//! The sinks before the wrong one are of other kinds.
use slipstream::{Cache, Iter, handle, print};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
    sky: Cache<i64, Weather>,
}

fn see(weather: &Weather) {
    drop(weather.clone());
}

#[handle(app.weather, sink = [|weather| assert!(weather.time > 0), see, app.sky, print])]
fn handler(app: &App, weather: Weather) -> Weather {
    weather
}

fn main() {}
