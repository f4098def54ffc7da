//! What the loops do, as flows.
//!
//! Invariants: one worker handles, as the loops have one thread; a source ends where its topic ended when the flow
//! started; flows with a store have a new one, on disk.
pub(crate) mod keep;
pub(crate) mod read;
pub(crate) mod write;

use crate::loops::{COMMIT_EVERY, Result, cluster::Filled};
use slipstream::{Flow, IntoContext, Kafka, kafka::Unformatted};
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::runtime::Runtime;

/// Runs on the worker.
fn run<C: Send + Sync + 'static>(
    runtime: &Runtime,
    flow: Flow<C>,
    context: impl IntoContext<C>,
) -> Result<()> {
    let running = flow.commit_every(COMMIT_EVERY).run(context);
    runtime.block_on(runtime.spawn(running))?
}

fn kafka(servers: &str) -> Result<Kafka> {
    Ok(Kafka::new([("bootstrap.servers", servers)])?)
}

/// The topic, by a group that has read nothing yet.
macro_rules! whole {
    ($filled:expr, $format:ident) => {
        $crate::flows::topic($filled)?.$format().until(slipstream::Offset::End).group($crate::flows::group())
    };
}
use whole;

fn topic<K: Send + Sync + 'static, V: Send + Sync + 'static>(filled: &Filled) -> Result<Unformatted<K, V>> {
    Ok(kafka(&filled.servers)?.topic(&filled.topic))
}

fn group() -> String {
    static GROUPS: AtomicU64 = AtomicU64::new(0);
    format!("bench-{}-{}", std::process::id(), GROUPS.fetch_add(1, Ordering::Relaxed))
}
