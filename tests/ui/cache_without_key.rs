//! A cache needs a key beside the value.
use slipstream::{Cache, Iter, handle, print};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
    sky: Cache<i64, Weather>,
}

#[handle(app.weather, sink = [print, app.sky])]
async fn handler(app: &App, weather: Weather) -> Weather {
    weather
}

fn main() {}
