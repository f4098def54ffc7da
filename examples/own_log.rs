//! A log of your own as a source with positions: over all runs each entry is handled once, unless the
//! program seeks back. It may be paused, too.
//!
//! `cargo run --example own_log`
#![allow(clippy::print_stdout)] // an example may
use futures::{Stream, StreamExt, stream};
use slipstream::{
    AsyncIterable, Cache, Control, Position, Positions, Result, Seekable, Seeks, Store, flow, handle, print,
};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// Entries in memory; a clone is the same log. It ends with its last entry; a live one would wait for
/// the next.
#[derive(Clone, Default)]
struct Log {
    entries: Arc<Mutex<Vec<&'static str>>>,
    control: Control,
}

impl Log {
    fn append(&self, entry: &'static str) {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }
    fn read(&self, offset: i64) -> Option<&'static str> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.get(usize::try_from(offset).ok()?).copied()
    }
}

impl AsyncIterable for Log {
    type Item = &'static str;
    fn open(&self) -> impl Stream<Item = &'static str> + Send + 'static {
        self.open_at(Positions::default()).map(|(_, entry)| entry)
    }
    // The name under which the store keeps the position.
    fn identity(&self) -> Option<String> {
        Some("log".into())
    }
    fn seeks(&self) -> Option<Seeks<&'static str>> {
        Some(Seeks::new(self))
    }
}

impl Seekable for Log {
    // Called at the start, and again after each seek. The log has one partition, number 0.
    fn open_at(&self, start: Positions) -> impl Stream<Item = (Position, &'static str)> + Send + 'static {
        let (log, first) = (self.clone(), start.next(0).unwrap_or(0));
        let entry = move |offset| Some((Position::new(0, offset), log.read(offset)?));
        stream::iter((first..).map_while(entry))
    }
    fn control(&self) -> Option<&Control> {
        Some(&self.control)
    }
}

struct App {
    log: Log,
    handled: Cache<String, u32>,
}

#[handle(app.log, sink = print)]
fn read(app: &App, entry: &'static str) -> Result<(&'static str, u32)> {
    let times = app.handled.update(entry, |times| times.unwrap_or(0) + 1)?;
    Ok((entry, times))
}

#[tokio::main]
async fn main() -> Result<()> {
    let store = Store::in_memory()?;
    let app = Arc::new(App { log: Log::default(), handled: store.cache("handled")? });
    let run = || flow![read].store(&store).run(Arc::clone(&app));
    for entry in ["a", "b", "c"] {
        app.log.append(entry);
    }
    run().await?;

    println!("what was handled does not come again");
    app.log.append("d");
    run().await?;

    println!("paused, and sought back to the entry number 2");
    app.log.control.pause();
    app.log.control.seek(0, 2);
    let running = tokio::spawn(run());
    tokio::time::sleep(Duration::from_millis(100)).await;
    println!("resumed");
    app.log.control.resume();
    running.await?
}
