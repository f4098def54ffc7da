//! What the grammar does not know.
use slipstream::{Iter, Result, flow, handle};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
}

#[handle(app.weather sink = slipstream::print)]
async fn handler(app: &App, weather: Weather) -> Weather {
    weather
}

async fn run(app: App) -> Result<()> {
    flow![handler].run(app).await
}

fn main() {}
