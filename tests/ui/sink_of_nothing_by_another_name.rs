//! The type checker knows what an alias hides from the macro.
use slipstream::{Iter, Result, handle, print};

#[derive(Debug, Clone)]
struct Weather {
    time: i64,
}

struct App {
    weather: Iter<Vec<Weather>>,
}

type Done = Result<()>;

#[handle(app.weather, sink = [print, |done| drop(*done)])]
fn handler(app: &App, weather: Weather) -> Done {
    drop(weather);
    Ok(())
}

fn main() {}
