//! All handlers share the context.
use slipstream::{Iter, Result, flow, handle};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
    count: u32,
}

#[handle(app.weather)]
async fn handler(app: &mut App, weather: Weather) {
    app.count += 1;
    drop(weather);
}

async fn run(app: App) -> Result<()> {
    flow![handler].run(app).await
}

fn main() {}
