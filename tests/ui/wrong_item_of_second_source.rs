//! The second source gives something else than the first.
use slipstream::{Iter, handle, print};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

#[derive(Debug, Clone)]
struct Activity {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
    activity: Iter<Vec<Activity>>,
}

#[handle(app.weather, app.activity, sink = print)]
fn handler(app: &App, weather: Weather) -> i64 {
    weather.time
}

fn main() {}
