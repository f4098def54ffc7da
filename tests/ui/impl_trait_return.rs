//! An output has a type with a name.
#![allow(dead_code)]
use slipstream::{Iter, Result, flow, handle, print};

use std::fmt::Debug;

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
}

#[handle(app.weather, sink = print)]
async fn handler(app: &App, weather: Weather) -> impl Debug {
    weather
}

async fn run(app: App) -> Result<()> {
    flow![handler].run(app).await
}

fn main() {}
