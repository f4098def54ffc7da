//! What handlers get of a topic, and what becomes of what they give to one.
use serde::{Deserialize, Serialize};
use slipstream::{
    Cache, Flow, Kafka, Message, Offset, OnError, Result, Store, Timestamp, Topic, flow, handle,
    kafka::{Encoded, Record},
    source,
};
use std::sync::{Arc, Mutex};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Weather {
    time: i64,
    sky: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Activity {
    time: i64,
    name: String,
}

/// A cluster with these topics, of so many partitions each.
pub(crate) async fn cluster(topics: &[&str], partitions: i32) -> Kafka {
    let kafka = Kafka::in_process().unwrap();
    for topic in topics {
        kafka.create_topic(topic, partitions).await.unwrap();
    }
    kafka
}

/// All that a topic has by now.
pub(crate) async fn read_all<K, V>(topic: &Topic<K, V>) -> Vec<Message<K, V>>
where
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    use futures::TryStreamExt;
    topic.clone().until(Offset::End).stream().try_collect().await.unwrap()
}

struct Join {
    weather: Topic<(), Weather>,
    activity: Topic<String, Activity>,
    enriched: Topic<String, String>,
    sky: Cache<i64, Weather>,
}

#[handle(app.weather, sink = app.sky)]
fn handle_weather(app: &Join, weather: Weather) -> (i64, Weather) {
    (weather.time, weather)
}

#[handle(app.activity, sink = app.enriched)]
async fn handle_activity(app: &Join, message: Message<String, Activity>) -> Result<(String, String)> {
    let weather = app.sky.as_of(&message.value.time)?;
    Ok((message.key, weather.map_or("?".into(), |(_, weather)| weather.sky)))
}

#[tokio::test]
async fn topics_of_two_clusters_are_joined_into_a_third_topic() -> Result<()> {
    let (one, other) = (cluster(&["weather"], 1).await, cluster(&["activity", "enriched"], 2).await);
    let app = Arc::new(Join {
        weather: one.topic("weather").json().until(Offset::End),
        activity: other.topic("activity").json().until(Offset::End),
        enriched: other.topic("enriched").text(),
        sky: Cache::in_memory()?,
    });
    for (time, sky) in [(100, "clear"), (120, "clouds"), (130, "rain")] {
        app.weather.send((), Weather { time, sky: sky.into() }).await?;
    }
    for (time, name) in [(105, "swimming"), (115, "walking"), (125, "shopping"), (99, "sleeping")] {
        app.activity.send(name.into(), Activity { time, name: name.into() }).await?;
    }
    flow![handle_weather].named("reports").run(Arc::clone(&app)).await?;
    flow![handle_activity]
        .named("sky")
        .store(app.sky.store())
        .on_lost_state(slipstream::OnLostState::Accept)
        .run(Arc::clone(&app))
        .await?;
    let mut enriched: Vec<_> = read_all(&app.enriched).await.into_iter().map(|m| (m.key, m.value)).collect();
    enriched.sort();
    let expected = [("shopping", "clouds"), ("sleeping", "?"), ("swimming", "clear"), ("walking", "clear")];
    assert_eq!(enriched, expected.map(|(name, sky)| (name.to_owned(), sky.to_owned())));
    Ok(())
}
