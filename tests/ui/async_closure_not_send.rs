//! What an async sink holds across an await must be `Send`.
use slipstream::{Iter, handle};

use std::{future::ready, rc::Rc};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
}

#[handle(app.weather, sink = |weather| async move {
    let local = Rc::new(weather);
    ready(()).await;
    drop(local);
})]
async fn handler(app: &App, weather: Weather) -> Weather {
    weather
}

fn main() {}
