//! A handler owns its item, or borrows the whole of it.
use slipstream::{Iter, Result, flow, handle};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
}

#[handle(app.weather)]
fn handler(app: &App, weather: Option<&Weather>) {
    drop(weather);
}

async fn run(app: App) -> Result<()> {
    flow![handler].run(app).await
}

fn main() {}
