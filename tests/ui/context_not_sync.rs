//! Each source is read by a task of its own, and all of them share the context.
use slipstream::{Iter, Result, flow, handle, print};

use std::cell::Cell;

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
    count: Cell<u32>,
}

#[handle(app.weather, sink = print)]
async fn handler(app: &App, weather: Weather) -> Weather {
    app.count.set(app.count.get() + 1);
    weather
}

async fn run(app: App) -> Result<()> {
    flow![handler].run(app).await
}

fn main() {}
