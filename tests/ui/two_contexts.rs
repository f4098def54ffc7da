//! All handlers of a flow share one context.
use slipstream::{Iter, Result, flow, handle, print};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
}

struct Other {
    weather: Iter<Vec<Weather>>,
}

#[handle(app.weather, sink = print)]
async fn one(app: &App, weather: Weather) -> Weather {
    weather
}

#[handle(other.weather, sink = print)]
async fn two(other: &Other, weather: Weather) -> Weather {
    weather
}

async fn run(app: App) -> Result<()> {
    flow![one, two].run(app).await
}

fn main() {}
