//! Several sinks are one list.
use slipstream::{Cache, Iter, handle, print};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
    sky: Cache<i64, Weather>,
}

#[handle(app.weather, sink = print, sink = app.sky)]
fn handler(app: &App, weather: Weather) -> (i64, Weather) {
    (weather.time, weather)
}

fn main() {}
