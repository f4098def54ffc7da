//! A function without `#[handle]` in a flow.
use slipstream::{Iter, Result, flow};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
}

async fn handler(app: &App, weather: Weather) -> Weather {
    drop(app);
    weather
}

async fn run(app: App) -> Result<()> {
    flow![handler].run(app).await
}

fn main() {}
