//! A lone parameter is the item if it is not taken by reference.
use slipstream::{Iter, handle};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
}

#[handle(app.weather)]
async fn handler(app: App) {
    drop(app);
}

fn main() {}
