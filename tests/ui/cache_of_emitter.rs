//! What is emitted has no key.
use slipstream::{Cache, Emitter, Iter, handle};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
    sky: Cache<i64, Weather>,
}

#[handle(app.weather, sink = app.sky)]
async fn handler(app: &App, weather: Weather, out: &mut Emitter<Weather>) {
    out.emit(weather);
}

fn main() {}
