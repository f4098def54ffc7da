//! The source is no field of the context.
use slipstream::{Iter, Result, flow, handle, print};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
}

#[handle(app.wether, sink = print)]
async fn handler(app: &App, weather: Weather) -> Weather {
    weather
}

async fn run(app: App) -> Result<()> {
    flow![handler].run(app).await
}

fn main() {}
