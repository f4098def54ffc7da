//! A handle on a flow: commits on demand, and stops it.
//!
//! ```text
//! Flow ──handle()──▶ FlowHandle ──stop────────▶ sources, between two messages
//!                               ──commit_now──▶ committer, and back when it is done
//! ```
//!
//! Invariants: a handle keeps neither the flow nor its store alive, and dropping one changes nothing;
//! what it is told before the flow runs, or after, is answered and never waited for.
use crate::{
    commit::{CommitError, Demand},
    stop::Stop,
};
use std::{fmt, sync::Arc};

/// Stops a flow, or makes it commit: what [`Flow::handle`](crate::Flow::handle) gives.
///
/// ```
/// # #[cfg(not(feature = "rocksdb"))] fn main() {}
/// # #[cfg(feature = "rocksdb")]
/// use slipstream_core::{Flow, Store, interval, source};
/// use std::time::Duration;
///
/// # #[cfg(feature = "rocksdb")]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> slipstream_core::Result<()> {
/// let ticks = Store::in_memory()?.cache::<(), u64>("ticks")?;
/// let timer = interval(Duration::from_millis(1));
/// let flow = Flow::new().with(source(&timer).handle(|n| Some(((), n))).sink(&ticks));
/// let handle = flow.handle();
/// let running = tokio::spawn(flow.run(()));
/// while ticks.get(&())?.is_none() {
///     tokio::task::yield_now().await;
/// }
/// handle.commit_now().await?; // that tick is stored
/// handle.stop();
/// running.await?
/// # }
/// ```
#[derive(Clone, Default)]
pub struct FlowHandle {
    /// For the sources to see.
    pub(super) stop: Arc<Stop>,
    /// For the committer to see.
    pub(super) demand: Arc<Demand>,
}

impl fmt::Debug for FlowHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowHandle").field("stopped", &self.stop.is_set()).finish_non_exhaustive()
    }
}

impl FlowHandle {
    /// Commits what is published when this is called, at once, and returns when it is stored (on disk,
    /// unless the flow was told [`sync(false)`](crate::Flow::sync)), or at once when nothing is left to
    /// commit. Sinks are flushed as before each commit. All who call before a commit begins share it. A consumer
    /// group is told of it, and takes it a moment later; in a flow without a store that is all there is.
    ///
    /// In a handler this may be awaited as anywhere else; the message in hand is not published yet, and
    /// so is not part of the commit.
    ///
    /// # Errors
    /// [`CommitError::Failed`] when a commit fails, which ends the flow too; [`CommitError::NotBegun`] and
    /// [`CommitError::Ended`] when the flow does not run; [`CommitError::Dropped`] when its future was
    /// dropped, also meanwhile; [`CommitError::InFlush`] in the `flush` of one of the flow's own sinks, and where one of
    /// its sources is told of a commit.
    ///
    /// # Cancel safety
    /// Dropping the future only stops the waiting: the commit is made.
    pub async fn commit_now(&self) -> Result<(), CommitError> {
        self.demand.commit().await
    }

    /// Stops the flow: no other message begins, those in hand are finished, what is published is
    /// committed, and [`run`](crate::Flow::run) returns `Ok`, unless one of these fails. It does not wait
    /// for that. A flow that does not run yet ends as soon as it does, with no message handled; one that
    /// has ended is left alone.
    pub fn stop(&self) {
        self.stop.set();
    }
}
