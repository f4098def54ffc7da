//! An error of an expression converts to a boxed error, too.
use slipstream::{Iter, handle};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct Bad;

struct App {
    weather: Iter<Vec<Weather>>,
}

impl App {
    fn weather(&self) -> Result<Iter<Vec<Weather>>, Bad> {
        Ok(self.weather.clone())
    }
}

#[handle(app.weather()?)]
fn handler(app: &App, weather: Weather) {
    drop(weather);
}

fn main() {}
