//! Commits: state and source positions become durable together, and nothing else moves a position.
//!
//! ```text
//! message done ──publish──▶ the store's active layer
//!                              │  each interval, after so many messages, at the bound of memory, on demand, at the end
//!                              ▼
//!   1. freeze   the layer and the positions, a short lock; the next epoch begins
//!   2. flush    the sinks outside of the store
//!   3. write    layer and positions, one synced batch
//!   4. thaw     the layer is dropped, since RocksDB has it
//!   5. tell     the sources, which remember it beside themselves
//! ```
//!
//! The order is the guarantee: a crash before 3 leaves the state and the positions of the commit
//! before, one after it those of this one; outputs to the outside are flushed before the positions
//! pass them, so none is lost, and those since the last commit come again. A source hears of a commit that the
//! store has: if it ever knows of one that the store does not, the store was lost.
//!
//! Invariants: one epoch closes at a time; after a step has failed nothing more is published or
//! committed, and the flow ends with the error.
use crate::{
    BoxError, Error, error::panic_message, position::Position, sink::Flush, stop::Stop,
    transaction::Transaction,
};
use futures::FutureExt;
use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::{Notify, oneshot};

mod demand;

pub use demand::CommitError;
pub(crate) use demand::Demand;

#[cfg(feature = "rocksdb")]
mod told;

#[cfg(feature = "rocksdb")]
pub(crate) use told::Told;

#[cfg(feature = "rocksdb")]
use crate::{
    position::Positions,
    store::{Rows, Staged, Store, StoreError, TurnNumber},
};
#[cfg(feature = "rocksdb")]
use std::sync::{Mutex, OnceLock, PoisonError, atomic::AtomicU64};

/// When a flow commits, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) every: Duration,
    pub(crate) after: Option<u64>,
    pub(crate) sync: bool,
    pub(crate) memory_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            // Shorter, and a disk that takes 10 ms to sync is busy with nothing else; longer, and more
            // messages come again after a crash.
            every: Duration::from_millis(100),
            after: None,
            sync: true,
            // Smaller, and bursts wait for the disk; larger, and freeing an epoch is felt.
            memory_bytes: 64 << 20,
        }
    }
}

/// How a publication went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Published {
    /// All of the message is visible.
    Whole,
    /// Nothing is: another has changed a key since this message read it to change it. The message is to be
    /// rolled back, and to run again.
    #[cfg_attr(
        not(feature = "rocksdb"),
        allow(dead_code, reason = "only caches are read in order to change them")
    )]
    Conflict,
}

/// The commits of one running flow.
#[derive(Debug)]
pub(crate) struct Commit {
    settings: Settings,
    #[cfg(feature = "rocksdb")]
    store: OnceLock<(Store, TurnNumber)>,
    /// Held while the flow begins or ends: its store may be another flow's once this says that it has ended.
    #[cfg(feature = "rocksdb")]
    ended: Mutex<bool>,
    /// The names of the sources with positions, by the numbers that the flow gave them.
    #[cfg(feature = "rocksdb")]
    sources: Vec<Arc<str>>,
    /// The flow's name, which those sources are told with each commit.
    #[cfg(feature = "rocksdb")]
    flow: Option<String>,
    #[cfg(feature = "rocksdb")]
    told: Vec<Told>,
    /// Messages published since the last freeze.
    #[cfg(feature = "rocksdb")]
    published: AtomicU64,
    /// The committer has something to do before its interval is over.
    due: Notify,
    /// Those who have asked for a commit, and wait for it.
    demand: Arc<Demand>,
    /// The epoch is at its bound of memory: no message begins.
    full: AtomicBool,
    room: Notify,
}

impl Commit {
    /// The commits of a flow over `store`, if the flow knows of one when it starts.
    #[cfg(feature = "rocksdb")]
    pub(crate) fn new(
        settings: Settings,
        store: Option<Store>,
        sources: Vec<Arc<str>>,
    ) -> Result<Self, BoxError> {
        let commit = Commit {
            settings,
            store: OnceLock::new(),
            ended: Mutex::default(),
            sources,
            flow: None,
            told: Vec::new(),
            published: AtomicU64::new(0),
            due: Notify::new(),
            demand: Arc::default(),
            full: AtomicBool::new(false),
            room: Notify::new(),
        };
        if let Some(store) = store {
            commit.begin(&store)?;
        }
        Ok(commit)
    }

    #[cfg(not(feature = "rocksdb"))]
    pub(crate) fn new(settings: Settings) -> Self {
        Commit {
            settings,
            due: Notify::new(),
            demand: Arc::default(),
            full: AtomicBool::new(false),
            room: Notify::new(),
        }
    }

    /// Those who hold this may ask for commits.
    pub(crate) fn on_demand(mut self, demand: Arc<Demand>) -> Self {
        self.demand = demand;
        self
    }

    /// These are told of each commit of the flow of this name.
    #[cfg(feature = "rocksdb")]
    pub(crate) fn telling(mut self, flow: Option<String>, told: Vec<Told>) -> Self {
        (self.flow, self.told) = (flow, told);
        self
    }

    /// Stores where sources begin, before their first messages, and whose the store is from now on.
    #[cfg(feature = "rocksdb")]
    pub(crate) async fn store_starts(
        &self,
        starts: Vec<(Arc<str>, Positions)>,
        owner: Option<String>,
    ) -> Result<(), BoxError> {
        let Some((store, turn)) = self.store.get().filter(|_| !starts.is_empty() || owner.is_some()) else {
            return Ok(());
        };
        let (store, turn, sync) = (store.clone(), *turn, self.settings.sync);
        let written =
            tokio::task::spawn_blocking(move || store.write_starts(turn, owner.as_deref(), &starts, sync));
        Ok(written.await??)
    }

    /// Makes what a message has written visible to all, in one step that comes whole or not at all,
    /// together with the position of the message.
    #[inline]
    pub(crate) fn publish(
        &self,
        transaction: &mut Transaction,
        moved: Option<((u32, i32), Position)>,
    ) -> Result<Published, BoxError> {
        #[cfg(feature = "rocksdb")]
        {
            let mut published = Published::Whole;
            if moved.is_some() || transaction.staged.is_some() {
                published = self.publish_rows(transaction, moved)?;
            }
            // Others with a lock on these keys see them now. A message that runs again lets go by itself.
            if published == Published::Whole {
                transaction.locks.release();
            }
            Ok(published)
        }
        #[cfg(not(feature = "rocksdb"))]
        {
            let _ = (transaction, moved);
            Ok(Published::Whole)
        }
    }

    #[cfg(feature = "rocksdb")]
    fn publish_rows(
        &self,
        transaction: &mut Transaction,
        moved: Option<((u32, i32), Position)>,
    ) -> Result<Published, BoxError> {
        let rows = match &mut transaction.staged {
            Some(staged) if !staged.is_empty() => {
                let (store, _) = match self.store.get() {
                    Some(known) => known,
                    None => self.begin(staged.store())?,
                };
                if !store.is(staged.store()) {
                    let (first, second) = (store.name(), staged.store().name());
                    return Err(StoreError::TwoStores { first, second }.into());
                }
                staged.take()
            }
            _ => Rows::default(),
        };
        let reads = transaction.staged.as_ref().map_or(&[][..], Staged::reads);
        // A source with positions has no business here without a store: the flow has seen to it.
        let Some((store, turn)) = self.store.get() else { return Ok(Published::Whole) };
        if !store.publish(Some(*turn), reads, rows, moved)? {
            return Ok(Published::Conflict);
        }
        if let Some(staged) = &mut transaction.staged {
            staged.forget_reads();
        }
        let published = self.published.fetch_add(1, Ordering::Relaxed) + 1;
        if store.epoch_bytes() > self.settings.memory_bytes {
            self.full.store(true, Ordering::Relaxed);
            self.due.notify_one();
        } else if Some(published) == self.settings.after {
            self.due.notify_one();
        }
        Ok(Published::Whole)
    }

    /// The first publication, or the start, says which store is the flow's.
    #[cfg(feature = "rocksdb")]
    fn begin(&self, store: &Store) -> Result<&(Store, TurnNumber), BoxError> {
        // Two sources may publish first at once, or when the flow has just been dropped.
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = self.store.get() {
            return Ok(known);
        }
        if *ended {
            return Err(StoreError::CommitFailed { path: store.name() }.into());
        }
        let turn = store.begin_epochs(self.sources.clone())?;
        store.set_most_bytes(self.settings.memory_bytes);
        self.due.notify_one();
        Ok(self.store.get_or_init(|| (store.clone(), turn)))
    }

    /// Ends without a commit, if the flow has not ended yet: the store is as the last commit left it, and
    /// free for another flow. Messages that are still in hand publish nothing any more.
    #[cfg(feature = "rocksdb")]
    pub(crate) fn abandon(&self) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut *ended, true)
            && let Some((store, turn)) = self.store.get()
        {
            store.drop_epochs(*turn);
        }
    }

    /// Whether the epoch is at its bound of memory, so that no message may begin.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// Waits until the epoch has room again, or the flow is to stop.
    pub(crate) async fn room(&self, stop: &Stop) {
        let room = self.room.notified();
        if self.is_full() && !stop.is_set() {
            tokio::select! {
                () = room => {}
                () = stop.stopped() => {}
            }
        }
    }

    /// Commits each interval, and when one is due before, until the sources have ended. A commit that
    /// has begun is never left in the middle.
    pub(crate) async fn keep(
        &self,
        sinks: &[Arc<dyn Flush>],
        mut ended: oneshot::Receiver<()>,
    ) -> Result<(), Error> {
        loop {
            // Also at once: that a commit is due may have been said together with the store.
            self.commit(sinks).await?;
            tokio::select! {
                () = self.interval() => {}
                () = self.due.notified() => {}
                () = self.past_bytes() => {}
                () = self.demand.asked() => {}
                _ = &mut ended => return Ok(()),
            }
        }
    }

    /// Nothing to commit, and no timer needed, until a store is known.
    async fn interval(&self) {
        #[cfg(feature = "rocksdb")]
        let is_known = self.store.get().is_some();
        #[cfg(not(feature = "rocksdb"))]
        let is_known = false;
        match is_known {
            true => tokio::time::sleep(self.settings.every).await,
            false => std::future::pending().await,
        }
    }

    /// Waits until what is written from outside of messages is past the bound of memory.
    async fn past_bytes(&self) {
        #[cfg(feature = "rocksdb")]
        if let Some((store, _)) = self.store.get() {
            return store.past_bytes().await;
        }
        std::future::pending::<()>().await;
    }

    /// One commit, if anything was published, for all who have asked before.
    async fn commit(&self, sinks: &[Arc<dyn Flush>]) -> Result<(), Error> {
        self.demand.begins();
        let committed = self.commit_epoch(sinks).await;
        self.demand.done(&committed);
        committed
    }

    async fn commit_epoch(&self, sinks: &[Arc<dyn Flush>]) -> Result<(), Error> {
        #[cfg(feature = "rocksdb")]
        if let Some((store, _)) = self.store.get() {
            // Before the freeze: a message in between is counted for two epochs rather than for none.
            self.published.store(0, Ordering::Relaxed);
            // 1. The next epoch begins; sources that waited for room go on.
            let frozen = store.freeze();
            self.full.store(false, Ordering::Relaxed);
            self.room.notify_waiters();
            let Some(frozen) = frozen else { return Ok(()) };
            crash_point("frozen");
            // 2. What was sent to the outside is there before the positions pass it.
            self.demand.within(flush(sinks)).await?;
            crash_point("flushed");
            // 3. On a thread of its own: it waits for the disk.
            let (writing, sync) = (store.clone(), self.settings.sync);
            on_the_disk(move || {
                writing.write_frozen(&frozen, sync)?;
                crash_point("written");
                // 4. Readers find the rows in RocksDB. Here too, since freeing many rows takes its time.
                writing.thaw(frozen);
                Ok(())
            })
            .await?;
            crash_point("thawed");
            // 5. What they know now is never more than the store has.
            let tell = async {
                for source in &self.told {
                    source
                        .tell(self.flow.as_deref(), store, &crate::source::Joining::new(None, None, true))
                        .await?;
                }
                Ok(())
            };
            return self.demand.within(tell).await;
        }
        let _ = sinks;
        Ok(())
    }

    /// The last commit of a flow whose sources have ended. After a failed one (`failed`) there is
    /// none: what RocksDB does not have is dropped, so that the caches show what a restart will find.
    pub(crate) async fn end(&self, sinks: &[Arc<dyn Flush>], failed: bool) -> Result<(), Error> {
        #[cfg(feature = "rocksdb")]
        let committed = {
            let committed = self.last_commit(sinks, failed).await;
            // After a failed one only.
            self.abandon();
            committed
        };
        #[cfg(not(feature = "rocksdb"))]
        let committed = {
            let _ = failed;
            Ok(())
        };
        self.demand.ended(&committed);
        // Also those of messages that wrote nothing to a store.
        committed.and(self.demand.within(flush(sinks)).await)
    }

    #[cfg(feature = "rocksdb")]
    async fn last_commit(&self, sinks: &[Arc<dyn Flush>], failed: bool) -> Result<(), Error> {
        let Some((store, turn)) = self.store.get() else { return Ok(()) };
        if failed {
            return Ok(());
        }
        self.commit(sinks).await?;
        if !store.end_epochs() {
            let (ending, turn, sync) = (store.clone(), *turn, self.settings.sync);
            return on_the_disk(move || ending.finish_epochs(turn, sync)).await;
        }
        Ok(())
    }
}

#[cfg(feature = "rocksdb")]
impl Drop for Commit {
    /// A flow that has not got so far as to run.
    fn drop(&mut self) {
        self.abandon();
    }
}

/// Writes a commit on a thread that may wait for the disk.
#[cfg(feature = "rocksdb")]
async fn on_the_disk(write: impl FnOnce() -> Result<(), StoreError> + Send + 'static) -> Result<(), Error> {
    let written = tokio::task::spawn_blocking(write).await;
    let written = written.map_err(Into::into).and_then(|written| written.map_err(Into::into));
    written.map_err(|cause| Error::Commit { cause })
}

/// Flushes all sinks, whatever one of them says; the first error counts.
async fn flush(sinks: &[Arc<dyn Flush>]) -> Result<(), Error> {
    let mut first = Ok(());
    for sinks in sinks {
        // A sink may panic where it makes its future, too.
        let flushed = AssertUnwindSafe(async { sinks.flush().await }).catch_unwind().await;
        let flushed = flushed
            .unwrap_or_else(|payload| Err(format!("it panicked: {}", panic_message(&*payload)).into()));
        if let Err(cause) = flushed {
            first = first.and(Err(Error::Flush { handler: sinks.name(), cause }));
        }
    }
    first
}

/// A place between two steps of a commit, where a crash test ends the process: the one that the
/// environment variable `SLIPSTREAM_CRASH` names, at its turn (`written:3` is the third time). Only with
/// debug assertions.
#[cfg(all(feature = "rocksdb", debug_assertions))]
fn crash_point(name: &str) {
    use std::sync::LazyLock;
    static CRASH: LazyLock<Option<(String, AtomicU64)>> = LazyLock::new(|| {
        let wanted = std::env::var("SLIPSTREAM_CRASH").ok()?;
        let (name, turn) = wanted.split_once(':').unwrap_or((&wanted, "1"));
        Some((name.to_owned(), AtomicU64::new(turn.parse().ok()?)))
    });
    if let Some((wanted, left)) = &*CRASH
        && wanted == name
        && left.fetch_sub(1, Ordering::Relaxed) == 1
    {
        // As `kill -9` would: no destructor runs, no buffer is flushed.
        std::process::abort();
    }
}

#[cfg(all(feature = "rocksdb", not(debug_assertions)))]
fn crash_point(_: &str) {}
