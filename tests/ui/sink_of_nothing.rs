//! Nothing is returned, nothing is sent.
use slipstream::{Iter, Result, flow, handle, print};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
}

#[handle(app.weather, sink = [print])]
async fn handler(app: &App, weather: Weather) {
    drop(weather);
}

async fn run(app: App) -> Result<()> {
    flow![handler].run(app).await
}

fn main() {}
