//! With an emitter all outputs go through it.
use slipstream::{Emitter, Iter, handle, print};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
}

#[handle(app.weather, sink = print)]
async fn handler(app: &App, weather: Weather, out: &mut Emitter<i64>) -> i64 {
    out.emit(weather.time);
    1
}

fn main() {}
