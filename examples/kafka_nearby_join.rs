//! What was the weather when this happened? `nearby_join` over two topics, on two clusters.
//!
//! `cargo run --example kafka_nearby_join -- [--bootstrap-servers HOST:PORT [--bootstrap-servers HOST:PORT]]`
//!
//! Without brokers both clusters are started inside of the process. With brokers of your own, state and positions
//! are kept in `state/kafka_nearby_join`, and each run joins the activities that have come since the last one.
mod clusters;

use serde::{Deserialize, Serialize};
use slipstream::{Cache, Kafka, Offset, OnLostState, Result, Store, Timestamp, Topic, flow, handle, print};
use std::sync::Arc;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Weather {
    time: Timestamp,
    sky: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Activity {
    time: Timestamp,
    name: String,
}

struct App {
    weather: Topic<(), Weather>,
    activity: Topic<(), Activity>,
    sky: Cache<Timestamp, Weather>,
}

#[handle(app.weather, sink = app.sky)]
fn handle_weather(app: &App, weather: Weather) -> (Timestamp, Weather) {
    (weather.time, weather)
}

#[handle(app.activity, sink = print)]
fn handle_activity(app: &App, activity: Activity) -> Result<(String, String)> {
    let weather = app.sky.as_of(&activity.time)?; // the latest at or before
    Ok((activity.name, weather.map_or("?".into(), |(_, weather)| weather.sky)))
}

impl App {
    async fn open() -> Result<Self> {
        let (first, second, store) = match clusters::given()? {
            Some([first, second]) => (first, second, Store::open("state/kafka_nearby_join")?),
            None => (Kafka::in_process()?, Kafka::in_process()?, Store::in_memory()?),
        };
        // Where they are missing.
        first.create_topic("weather", 1).await?;
        second.create_topic("activity", 1).await?;
        Ok(App {
            // A flow ends when it has come to the ends that the topics have at its start.
            weather: first.topic("weather").json().until(Offset::End),
            activity: second.topic("activity").json().until(Offset::End),
            sky: store.cache("sky")?,
        })
    }

    /// What happens elsewhere, and is sent to the topics.
    async fn send(&self) -> Result<()> {
        for (at, sky) in [("10:00", "🌞"), ("12:00", "⛅"), ("13:00", "🌧")] {
            self.weather.send((), Weather { time: time(at), sky: sky.into() }).await?;
        }
        for (at, name) in
            [("10:30", "swimming"), ("11:30", "walking home"), ("12:30", "shopping"), ("13:10", "lunch")]
        {
            self.activity.send((), Activity { time: time(at), name: name.into() }).await?;
        }
        Ok(())
    }
}

/// Where the state was removed, or is another one, a run goes on where the group is: it sends all reports anew.
const LOST: OnLostState = OnLostState::Accept;

fn time(at: &str) -> Timestamp {
    format!("2023-01-01T{at}:00Z").parse().expect("hours and minutes")
}

#[tokio::main]
async fn main() -> Result<()> {
    let app = Arc::new(App::open().await?);
    app.send().await?;
    // The reports that are there come first, since which of two clusters is read faster is chance.
    flow![handle_weather].named("sky").on_lost_state(LOST).run(Arc::clone(&app)).await?;
    // Then both, side by side.
    flow![handle_weather, handle_activity].named("sky").on_lost_state(LOST).run(app).await
}
