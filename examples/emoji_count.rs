//! Counts a stream of emoji, and says from time to time, and at the end, how many there were. The
//! counts are in memory, or in a directory: then a second run goes on with them.
//!
//! `cargo run --example emoji_count -- [--state DIR]`
#![allow(clippy::print_stdout)] // an example may
use futures::{Stream, stream};
use slipstream::{Cache, Result, Store, flow, handle};
use std::sync::Arc;

/// Each run gets new ones. A stream cannot be read again: what it gave since the last commit is lost in
/// a crash. `word_count` reads a source that can.
fn emoji() -> impl Stream<Item = char> {
    stream::iter("🏆📞🐟👌🐟🏆🐟".chars().cycle().take(500))
}

struct App {
    counts: Cache<char, u64>,
    total: Cache<(), u64>,
}

#[handle(emoji)]
fn count(app: &App, emoji: char) -> Result<()> {
    app.counts.update(&emoji, |count| count.unwrap_or(0) + 1)?;
    app.total.update(&(), |total| total.unwrap_or(0) + 1)?;
    Ok(())
}

/// The next handler of the same message sees what the first has written.
#[handle(emoji, sink = |summary| println!("{summary}"))]
fn summary_each_200(app: &App, _: char) -> Result<Option<String>> {
    let total = app.total.get(&())?.unwrap_or(0);
    Ok(if total.is_multiple_of(200) { Some(app.summary()?) } else { None })
}

impl App {
    fn summary(&self) -> Result<String> {
        let mut summary = format!("{} emoji:", self.total.get(&())?.unwrap_or(0));
        for row in &self.counts {
            let (emoji, count) = row?;
            summary += &format!(" {emoji} {count}");
        }
        Ok(summary)
    }
}

fn store() -> Result<Store> {
    match std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => Ok(Store::in_memory()?),
        [name, path] if name == "--state" => Ok(Store::open(path)?),
        _ => Err("usage: emoji_count [--state DIR]".into()),
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let store = store()?;
    let app = Arc::new(App { counts: store.cache("counts")?, total: store.cache("total")? });
    // No sink says where the state is kept, so the flow is told.
    flow![count, summary_each_200].named("emoji_count").store(&store).run(Arc::clone(&app)).await?;
    println!("at the end, {}", app.summary()?);
    Ok(())
}
