//! Each handler of a source has an item of its own.
use slipstream::{handle, print};

use futures::{Stream, stream};

#[derive(Debug)]
struct Weather {
    time: i64,
}

fn weather() -> impl Stream<Item = Weather> {
    stream::iter([Weather { time: 1 }])
}

#[handle(weather, sink = print)]
fn handler(weather: Weather) -> i64 {
    weather.time
}

fn main() {}
