//! The second pipe takes something else than the first gives.
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

#[handle(app.weather, pipe = [times, times], sink = print)]
fn handler(app: &App, time: i64) -> i64 {
    time
}

fn main() {}
