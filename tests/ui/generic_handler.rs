//! A flow cannot know what `T` is.
use slipstream::{Iter, Result, flow, handle};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
}

#[handle(app.weather)]
async fn handler<T>(app: &App, weather: T) {
    drop(weather);
}

async fn run(app: App) -> Result<()> {
    flow![handler].run(app).await
}

fn main() {}
