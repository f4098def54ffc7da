//! Greets four emojis: a function as source, a handler, a sink.
//!
//! `cargo run --example hello`
use futures::{Stream, stream};
use slipstream::{Result, flow, handle, print};

fn messages() -> impl Stream<Item = char> {
    stream::iter("🏆📞🐟👌".chars())
}

#[handle(messages, sink = print)]
fn handle_message(emoji: char) -> String {
    format!("Hello {emoji}!")
}

#[tokio::main]
async fn main() -> Result<()> {
    flow![handle_message].run(()).await
}
