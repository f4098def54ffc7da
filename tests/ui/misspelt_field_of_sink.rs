//! The sink is no field of the context.
use slipstream::{Cache, Iter, Result, flow, handle};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
    sky: Cache<i64, Weather>,
}

#[handle(app.weather, sink = app.skye)]
async fn handler(app: &App, weather: Weather) -> (i64, Weather) {
    (weather.time, weather)
}

async fn run(app: App) -> Result<()> {
    flow![handler].run(app).await
}

fn main() {}
