//! A handler is a free function.
use slipstream::{Iter, handle};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
}

impl App {
    #[handle(self.weather)]
    async fn handler(&self, weather: Weather) {
        drop(weather);
    }
}

fn main() {}
