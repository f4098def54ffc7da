//! A flow runs over the context that its handlers take.
use slipstream::{Iter, Result, flow, handle, print};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
}

#[handle(app.weather, sink = print)]
async fn handler(app: &App, weather: Weather) -> Weather {
    weather
}

struct Other;

async fn run() -> Result<()> {
    flow![handler].run(Other).await
}

fn main() {}
