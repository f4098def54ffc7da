//! Of two closures the second is wrong.
use slipstream::{Iter, handle};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
}

#[handle(app.weather, sink = [|weather| drop(weather.clone()), |weather| weather.time])]
async fn handler(app: &App, weather: Weather) -> Weather {
    weather
}

fn main() {}
