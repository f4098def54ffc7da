//! What a handler returns as an error converts to a boxed error.
use slipstream::{Iter, Result, handle, print};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct Bad;

struct App {
    weather: Iter<Vec<Weather>>,
}

#[handle(app.weather, sink = print)]
async fn handler(app: &App, weather: Weather) -> Result<Weather, Bad> {
    Ok(weather)
}

fn main() {}
