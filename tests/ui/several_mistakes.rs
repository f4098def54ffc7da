//! All that the attribute can tell is told at once, an error for each mistake.
use slipstream::{Iter, Result, flow, handle, print};

use std::fmt::Debug;

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
}

#[handle(app.weather, snik = print)]
unsafe fn handler(app: &mut App, weather: Weather, limit: i64) -> impl Debug {
    app.weather = slipstream::iter(vec![weather]);
    limit
}

async fn run(app: App) -> Result<()> {
    flow![handler].run(app).await
}

fn main() {}
