//! The pipe gives something else than the handler takes.
use slipstream::{Items, Iter, handle, print};

use futures::{Stream, StreamExt};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
}

fn times(items: Items<Weather>) -> impl Stream<Item = i64> {
    items.map(|weather| weather.time)
}

#[handle(app.weather, pipe = times, sink = print)]
fn handler(app: &App, weather: Weather) -> i64 {
    weather.time
}

fn main() {}
