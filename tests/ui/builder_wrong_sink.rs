//! A closure that gives no pair, before a cache.
use slipstream::{Cache, Flow, Iter, Result, source};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
    sky: Cache<i64, Weather>,
}

async fn run(app: &App) -> Result<()> {
    let weather = source(&app.weather).handle(|weather| Some(weather)).sink(&app.sky);
    Flow::<()>::new().with(weather).run(()).await
}

fn main() {}
