//! The type checker knows what the macro cannot see.
#![allow(dead_code)]
use slipstream::{Iter, Result, handle, print};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
}

type Done = Result<()>;

#[handle(app.weather, sink = print)]
fn handler(app: &App, weather: Weather) -> Done {
    drop(weather);
    Ok(())
}

fn main() {}
