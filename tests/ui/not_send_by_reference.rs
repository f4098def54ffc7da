//! The same where the companion waits for the function.
use slipstream::{Emitter, Iter, Result, flow, handle, print};

use std::{future::ready, rc::Rc};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
}

#[handle(app.weather, sink = print)]
async fn handler(app: &App, weather: &Weather, out: &mut Emitter<i64>) {
    let local = Rc::new(1);
    ready(()).await;
    out.emit(weather.time + *local);
}

async fn run(app: App) -> Result<()> {
    flow![handler].run(app).await
}

fn main() {}
