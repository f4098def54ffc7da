//! The pair is found inside of the `Result` and the `Option`; its key is not the cache's.
use slipstream::{Cache, Iter, Result, handle};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
    sky: Cache<i64, Weather>,
}

#[handle(app.weather, sink = app.sky)]
fn handler(app: &App, weather: Weather) -> Result<Option<(String, Weather)>> {
    Ok(Some(("now".to_owned(), weather)))
}

fn main() {}
