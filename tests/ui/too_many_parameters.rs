//! A handler takes three things at most.
use slipstream::{Iter, Result, flow, handle};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
}

#[handle(app.weather)]
async fn handler(app: &App, weather: Weather, limit: i32) {
    drop((weather, limit));
}

async fn run(app: App) -> Result<()> {
    flow![handler].run(app).await
}

fn main() {}
