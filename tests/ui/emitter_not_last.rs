//! The emitter is the last parameter.
use slipstream::{Emitter, Iter, Result, flow, handle, print};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
}

#[handle(app.weather, sink = print)]
async fn handler(app: &App, out: &mut Emitter<i64>, weather: Weather) {
    out.emit(weather.time);
}

async fn run(app: App) -> Result<()> {
    flow![handler].run(app).await
}

fn main() {}
