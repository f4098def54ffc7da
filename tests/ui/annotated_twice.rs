//! Several sources are one list.
use slipstream::{Iter, Result, flow, handle};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
    late: Iter<Vec<Weather>>,
}

#[handle(app.weather)]
#[handle(app.late)]
async fn handler(app: &App, weather: Weather) {
    drop(weather);
}

async fn run(app: App) -> Result<()> {
    flow![handler].run(app).await
}

fn main() {}
