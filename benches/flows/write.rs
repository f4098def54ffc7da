//! Records into a topic.
use super::{kafka, run};
use crate::{
    loops::Result,
    twin::clock::{Clock, Took},
};
use slipstream::{Flow, Topic, iter, source};
use std::sync::{Arc, OnceLock};
use tokio::runtime::Runtime;

/// Sends `count` records, by turns with each of the keys.
pub(crate) fn write(
    runtime: &Runtime,
    servers: &str,
    topic: &str,
    count: u64,
    keys: &Arc<[Arc<[u8]>]>,
    value: &[u8],
) -> Result<Took> {
    let clock = Arc::new(OnceLock::new());
    let first = Arc::clone(&clock);
    let topic: Topic<Arc<[u8]>, Arc<[u8]>> = kafka(servers)?.topic(topic).raw();
    let (keys, value) = (Arc::clone(keys), Arc::<[u8]>::from(value));
    // Connects its producer, as the loop does.
    if let Some(key) = keys.first() {
        runtime.block_on(topic.send(Arc::clone(key), Arc::clone(&value)))?;
    }
    let records = source(&iter(0..count)).handle(move |n| {
        first.get_or_init(Clock::start);
        let key = keys.get(n as usize % keys.len())?;
        Some((Arc::clone(key), Arc::clone(&value)))
    });
    run(runtime, Flow::new().with(records.sink(&topic)), ())?;
    let begun = clock.get().ok_or("no message was handled")?;
    Ok(begun.took())
}
