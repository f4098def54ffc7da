//! A handler that can fail and returns nothing else has no output.
#![allow(dead_code)]
use slipstream::{Iter, Result, handle, print};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
}

#[handle(app.weather, sink = print)]
fn handler(app: &App, weather: Weather) -> Result<()> {
    drop(weather);
    Ok(())
}

fn main() {}
