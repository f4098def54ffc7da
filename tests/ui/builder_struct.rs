//! A closure says `one(…)` around a struct of its own.
use slipstream::{Flow, Iter, Result, print, source};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
}

async fn run(app: &App) -> Result<()> {
    let weather = source(&app.weather).handle(|weather| weather).sink(&print);
    Flow::<()>::new().with(weather).run(()).await
}

fn main() {}
