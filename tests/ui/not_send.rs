//! What is held across an await must be `Send`.
use slipstream::{Iter, Result, flow, handle, print};

use std::{future::ready, rc::Rc};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
}

#[handle(app.weather, sink = print)]
async fn handler(app: &App, weather: Weather) -> Weather {
    let local = Rc::new(1);
    ready(()).await;
    drop(local);
    weather
}

async fn run(app: App) -> Result<()> {
    flow![handler].run(app).await
}

fn main() {}
