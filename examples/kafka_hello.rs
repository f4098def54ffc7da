//! Greets four emojis by way of a topic: one handler sends them there, another reads them from it.
//!
//! `cargo run --example kafka_hello -- [--bootstrap-servers HOST:PORT]`
//!
//! Without a broker a cluster is started inside of the process. On a broker of your own a second run greets what
//! is new: the group remembers how far the first one came.
mod clusters;

use slipstream::{Iter, Kafka, Offset, Result, Topic, flow, handle, iter, print};
use std::sync::Arc;

struct App {
    messages: Iter<Vec<char>>,
    emojis: Topic<(), String>, // no key, and text as it is
}

#[handle(app.messages, sink = app.emojis)]
fn send(app: &App, emoji: char) -> ((), String) {
    ((), emoji.into())
}

#[handle(app.emojis, sink = print)]
fn greet(app: &App, emoji: String) -> String {
    format!("Hello {emoji}!")
}

#[tokio::main]
async fn main() -> Result<()> {
    let kafka = match clusters::given()? {
        Some([kafka]) => kafka,
        None => Kafka::in_process()?,
    };
    kafka.create_topic("emojis", 1).await?; // where it is missing
    let app = Arc::new(App {
        messages: iter("🏆📞🐟👌".chars().collect()),
        // Up to the last one there is when the flow starts; without this it would wait for more.
        emojis: kafka.topic("emojis").text().until(Offset::End),
    });
    flow![send].run(Arc::clone(&app)).await?;
    // The flow's name is the name of its consumer group.
    flow![greet].named("kafka_hello").run(app).await
}
