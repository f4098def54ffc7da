//! An output outlives the call.
use slipstream::{Iter, Result, flow, handle, print};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
    names: Vec<String>,
}

#[handle(app.weather, sink = print)]
async fn handler(app: &App, weather: Weather) -> Option<&String> {
    app.names.get(weather.time as usize)
}

async fn run(app: App) -> Result<()> {
    flow![handler].run(app).await
}

fn main() {}
