//! The mistake is one error: the flow mounts the empty companion.
use slipstream::{Iter, Result, flow, handle, print};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
}

#[handle(app.weather, sinks = [print])]
async fn handler(app: &App, weather: Weather) -> Weather {
    weather
}

async fn run(app: App) -> Result<()> {
    flow![handler].run(app).await
}

fn main() {}
