//! Only an emitter is taken by `&mut`.
use slipstream::{Iter, Result, flow, handle};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
}

#[handle(app.weather)]
async fn handler(app: &App, weather: Weather, out: &mut Vec<i64>) {
    out.push(weather.time);
}

async fn run(app: App) -> Result<()> {
    flow![handler].run(app).await
}

fn main() {}
