//! Sinks take outputs by reference, on whatever thread their source is read.
use slipstream::{Iter, handle, print};

use std::cell::Cell;

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
}

#[handle(app.weather, sink = print)]
fn handler(app: &App, weather: Weather) -> Option<Cell<i64>> {
    Some(Cell::new(weather.time))
}

fn main() {}
