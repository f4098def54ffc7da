//! What was the weather when this happened? Weather reports are cached by time; each activity takes
//! the latest report at or before it. State is kept in `state/nearby_join`, so a second run begins
//! with what the first one knew.
//!
//! `cargo run --example nearby_join`
use serde::{Deserialize, Serialize};
use slipstream::{Cache, Iter, Result, Timestamp, flow, handle, iter, print};
use std::time::Duration;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Weather {
    time: Timestamp,
    sky: String,
}

#[derive(Debug, Clone)]
struct Activity {
    time: Timestamp,
    name: &'static str,
}

struct App {
    weather: Iter<[Weather; 3]>,
    activity: Iter<[Activity; 4]>,
    sky: Cache<Timestamp, Weather>,
}

#[handle(app.weather, sink = app.sky)]
fn handle_weather(app: &App, weather: Weather) -> (Timestamp, Weather) {
    (weather.time, weather)
}

#[handle(app.activity, sink = print)]
fn handle_activity(app: &App, activity: Activity) -> Result<(&'static str, String)> {
    let weather = app.sky.as_of(&activity.time)?; // the latest at or before
    Ok((activity.name, weather.map_or("?".into(), |(_, weather)| weather.sky)))
}

/// A report each step; the activities half a step later, so that each finds the reports before it.
const STEP: Duration = Duration::from_millis(100);

impl App {
    fn open(state: &str) -> Result<Self> {
        let weather = [("10:00", "🌞"), ("12:00", "⛅"), ("13:00", "🌧")];
        let activity =
            [("10:30", "swimming"), ("11:30", "walking home"), ("12:30", "shopping"), ("13:10", "lunch")];
        Ok(App {
            weather: iter(weather.map(|(at, sky)| Weather { time: time(at), sky: sky.into() })).every(STEP),
            activity: iter(activity.map(|(at, name)| Activity { time: time(at), name }))
                .every(STEP)
                .after(STEP / 2),
            sky: Cache::open(state)?,
        })
    }
}

fn time(at: &str) -> Timestamp {
    format!("2023-01-01T{at}:00Z").parse().expect("hours and minutes")
}

#[tokio::main]
async fn main() -> Result<()> {
    flow![handle_weather, handle_activity].named("sky").run(App::open("state/nearby_join")?).await
}
