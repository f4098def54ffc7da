//! Nothing to read.
use slipstream::{Result, flow, handle};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App;

#[handle]
async fn handler(app: &App, weather: Weather) -> Weather {
    drop(app);
    weather
}

async fn run(app: App) -> Result<()> {
    flow![handler].run(app).await
}

fn main() {}
