//! Commits: state and source positions become durable together, and nothing else moves a position.
//!
//! ```text
//! message done ──publish──▶ the store's active layer, and the outboxes
//!                              │  each interval, after so many messages, at the bound of memory, on demand, at the end
//!                              ▼
//!   1. freeze   the layer and the positions, a short lock; the next epoch begins
//!   2. flush    the sinks outside of the store, and the outboxes
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
//! Without a store the positions of members of groups are kept here (`loose.rs`), steps 3 and 4 fall away, and the group
//! is the only one who knows them: at least once.
//!
//! Invariants: one epoch closes at a time; after a step has failed nothing more is published or
//! committed, and the flow ends with the error; what a message sends out is handed over before the flush of
//! the epoch that has its position.
use crate::{
    BoxError, Error,
    error::panic_message,
    outgoing::{Outbox, Outgoing},
    position::{Position, Positions},
    sink::Flush,
    stop::Stop,
    transaction::Transaction,
};
use futures::FutureExt;
use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::sync::{Notify, oneshot};

mod demand;
mod loose;
mod told;

pub use demand::CommitError;
pub(crate) use demand::Demand;
use loose::Loose;
pub(crate) use told::Told;

#[cfg(feature = "rocksdb")]
use crate::{
    store::{Recordings, Rows, Staged, Store, StoreError, TurnNumber},
    watch::{Change, Kind, Watched},
};
#[cfg(feature = "rocksdb")]
use std::sync::OnceLock;

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
    flow: Option<String>,
    told: Vec<Told>,
    /// What is stored with each commit.
    #[cfg(feature = "rocksdb")]
    recordings: Recordings,
    /// The positions of a flow without a store.
    loose: Loose,
    /// Those that messages of the flow have sent to.
    outboxes: Mutex<Vec<Arc<dyn Outbox>>>,
    /// Shared from the publication of a message to the end of its handing over; had alone between the freeze of an
    /// epoch and its flush.
    window: RwLock<()>,
    /// Messages published since the last freeze.
    published: AtomicU64,
    /// The committer has something to do before its interval is over.
    due: Notify,
    /// Those who have asked for a commit, and wait for it.
    demand: Arc<Demand>,
    /// For which reasons no message begins: bits.
    full: AtomicU8,
    room: Notify,
}

/// The epoch is at its bound of memory.
#[cfg(feature = "rocksdb")]
const MEMORY: u8 = 1;
/// An outbox keeps back what was handed over.
const OUTBOX: u8 = 2;

impl Commit {
    /// The commits of a flow over `store`, if the flow knows of one when it starts.
    #[cfg(feature = "rocksdb")]
    pub(crate) fn new(
        settings: Settings,
        store: Option<Store>,
        sources: Vec<Arc<str>>,
    ) -> Result<Self, BoxError> {
        let mut commit = Commit::without_store(settings);
        commit.sources = sources;
        if let Some(store) = store {
            commit.begin(&store)?;
        }
        Ok(commit)
    }

    /// The commits of a flow that knows of no store.
    pub(crate) fn without_store(settings: Settings) -> Self {
        Commit {
            settings,
            #[cfg(feature = "rocksdb")]
            store: OnceLock::new(),
            #[cfg(feature = "rocksdb")]
            ended: Mutex::default(),
            #[cfg(feature = "rocksdb")]
            sources: Vec::new(),
            flow: None,
            told: Vec::new(),
            #[cfg(feature = "rocksdb")]
            recordings: Vec::new(),
            loose: Loose::default(),
            outboxes: Mutex::default(),
            window: RwLock::default(),
            published: AtomicU64::new(0),
            due: Notify::new(),
            demand: Arc::default(),
            full: AtomicU8::new(0),
            room: Notify::new(),
        }
    }

    /// Those who hold this may ask for commits.
    pub(crate) fn on_demand(mut self, demand: Arc<Demand>) -> Self {
        self.demand = demand;
        self
    }

    /// These are told of each commit of the flow of this name.
    pub(crate) fn telling(mut self, flow: Option<String>, told: Vec<Told>) -> Self {
        (self.flow, self.told) = (flow, told);
        self
    }

    /// These are stored with each commit.
    #[cfg(feature = "rocksdb")]
    pub(crate) fn recording(mut self, recordings: Recordings) -> Self {
        self.recordings = recordings;
        self
    }

    /// What is stored beside rows and positions, by the last commit.
    #[cfg(feature = "rocksdb")]
    pub(crate) fn record(&self, kind: Kind, name: &str) -> Result<Option<Vec<u8>>, BoxError> {
        let Some((store, _)) = self.store.get() else { return Ok(None) };
        Ok(store.record(kind, name)?)
    }

    /// Changes what is no message's doing, as a publication does.
    #[cfg(feature = "rocksdb")]
    pub(crate) fn publish_moves(&self, change: &mut Change<'_>) -> Result<(), BoxError> {
        let Some((store, turn)) = self.store.get() else { return Err("the flow has no store".into()) };
        Ok(store.publish_moves(*turn, change)?)
    }

    /// The names under which the store keeps the positions of the sources, by their numbers, once all are known.
    #[cfg(feature = "rocksdb")]
    pub(crate) fn naming(mut self, sources: Vec<Arc<str>>) -> Self {
        if let Some((store, turn)) = self.store.get() {
            store.name_sources(*turn, sources.clone());
        }
        self.sources = sources;
        self
    }

    /// Where the partitions of a source go on after what is published.
    pub(crate) fn positions_of(&self, source: u32) -> Result<Positions, BoxError> {
        #[cfg(feature = "rocksdb")]
        if let Some((store, _)) = self.store.get() {
            let name = self.sources.get(source as usize).map_or("", |name| &**name);
            return Ok(store.published(source, name)?);
        }
        Ok(self.loose.of(source))
    }

    /// Those who are told of commits, to be told of the end too.
    pub(crate) fn told(&self) -> &[Told] {
        &self.told
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

    /// The same for one source of which partitions were assigned, on a thread that may wait for the disk.
    #[cfg(feature = "rocksdb")]
    pub(crate) fn store_start(&self, source: u32, start: Positions) -> Result<(), BoxError> {
        let Some((store, turn)) = self.store.get() else { return Ok(()) };
        let Some(name) = self.sources.get(source as usize) else { return Ok(()) };
        Ok(store.write_starts(*turn, None, &[(Arc::clone(name), start)], self.settings.sync)?)
    }

    /// Makes what a message has written visible to all, in one step that comes whole or not at all,
    /// together with the position of the message, and sends out what it has to send.
    #[inline]
    pub(crate) fn publish(
        &self,
        transaction: &mut Transaction,
        moved: Option<((u32, i32), Position)>,
    ) -> Result<Published, BoxError> {
        if transaction.outgoing.is_empty() {
            return self.publish_inside(transaction, moved);
        }
        // The epoch that gets the position is not flushed before the outputs are handed over.
        let _window = self.window.read().unwrap_or_else(PoisonError::into_inner);
        let published = self.publish_inside(transaction, moved)?;
        if published == Published::Whole {
            self.send_out(&mut transaction.outgoing);
        }
        Ok(published)
    }

    #[inline]
    fn publish_inside(
        &self,
        transaction: &mut Transaction,
        moved: Option<((u32, i32), Position)>,
    ) -> Result<Published, BoxError> {
        #[cfg(feature = "rocksdb")]
        {
            let mut published = Published::Whole;
            let has_news = transaction.watched.as_ref().is_some_and(Watched::has_news);
            if moved.is_some() || transaction.staged.is_some() || has_news {
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
            let _ = transaction;
            if let Some((place, position)) = moved {
                self.publish_position(place, position);
            }
            Ok(Published::Whole)
        }
    }

    fn send_out(&self, outgoing: &mut Outgoing) {
        let tell = |outbox: &Arc<dyn Outbox>| {
            let mut outboxes = self.outboxes.lock().unwrap_or_else(PoisonError::into_inner);
            if !outboxes.iter().any(|known| known.id() == outbox.id()) {
                outboxes.push(Arc::clone(outbox));
                // The committer may have nothing yet for which it watches the clock.
                self.due.notify_one();
            }
        };
        if !outgoing.hand_over(tell) {
            self.full.fetch_or(OUTBOX, Ordering::Relaxed);
        }
    }

    /// A message of a flow that keeps no state is done.
    fn publish_position(&self, place: (u32, i32), position: Position) {
        self.loose.move_to(place, position);
        if Some(self.published.fetch_add(1, Ordering::Relaxed) + 1) == self.settings.after {
            self.due.notify_one();
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
        let Some((store, turn)) = self.store.get() else {
            if let Some((place, position)) = moved {
                self.publish_position(place, position);
            }
            return Ok(Published::Whole);
        };
        let watched = &mut transaction.watched;
        let then = || {
            if let Some(watched) = watched {
                watched.publish();
            }
        };
        if !store.publish_and(Some(*turn), reads, rows, moved, then)? {
            return Ok(Published::Conflict);
        }
        if let Some(staged) = &mut transaction.staged {
            staged.forget_reads();
        }
        let published = self.published.fetch_add(1, Ordering::Relaxed) + 1;
        if store.epoch_bytes() > self.settings.memory_bytes {
            self.full.fetch_or(MEMORY, Ordering::Relaxed);
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
        // What was handled until now would be counted again after a crash, or not at all.
        if let Some(origin) =
            self.told.iter().find(|told| told.keeps_its_positions()).map(|told| &told.origin)
        {
            let store = store.name();
            return Err(format!(
                "`{origin}` is read with its positions kept by its group alone, but a handler writes to the store at \
                 `{}`, which none of the sinks names: say `.store(&store)`, so that both are committed together",
                store.display()
            )
            .into());
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

    /// Whether no message may begin: the epoch is at its bound of memory, or outputs do not get away.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed) != 0
    }

    /// Waits until there is room again, or the flow is to stop.
    pub(crate) async fn room(&self, stop: &Stop) {
        let room = self.room.notified();
        if self.is_full() && !stop.is_set() {
            tokio::select! {
                () = room => {}
                () = self.outboxes_have_room() => {}
                () = stop.stopped() => {}
            }
        }
    }

    fn outboxes(&self) -> Vec<Arc<dyn Outbox>> {
        self.outboxes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn outboxes_have_room(&self) {
        if self.full.load(Ordering::Relaxed) & OUTBOX == 0 {
            return std::future::pending().await;
        }
        loop {
            let outboxes = self.outboxes();
            for outbox in &outboxes {
                outbox.room().await;
            }
            // Then looked at again: one that fills up in between says so after this, or is seen here.
            self.full.fetch_and(!OUTBOX, Ordering::SeqCst);
            if outboxes.iter().all(|outbox| outbox.has_room()) {
                return;
            }
            self.full.fetch_or(OUTBOX, Ordering::SeqCst);
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

    /// Nothing to commit, and no timer needed, until a store is known, or something is sent or told outside.
    async fn interval(&self) {
        match self.has_store() || !self.told.is_empty() || !self.outboxes().is_empty() {
            true => tokio::time::sleep(self.settings.every).await,
            false => std::future::pending().await,
        }
    }

    fn has_store(&self) -> bool {
        #[cfg(feature = "rocksdb")]
        let has = self.store.get().is_some();
        #[cfg(not(feature = "rocksdb"))]
        let has = false;
        has
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
            let frozen = store.freeze_with(&self.recordings);
            self.full.fetch_and(!MEMORY, Ordering::Relaxed);
            self.room.notify_waiters();
            let Some(frozen) = frozen else {
                // Of messages without a position.
                return self.demand.within(self.flush_outboxes()).await;
            };
            crash_point("frozen");
            let caps = frozen.caps.clone();
            // 2. What was sent to the outside is there before the positions pass it.
            self.demand.within(self.flush(sinks)).await?;
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
                    source.tell_of(self.flow.as_deref(), store, &caps).await?;
                }
                Ok(())
            };
            return self.demand.within(tell).await;
        }
        self.published.store(0, Ordering::Relaxed);
        let Some(moved) = self.loose.freeze() else {
            return self.demand.within(self.flush_outboxes()).await;
        };
        self.demand.within(self.flush(sinks)).await?;
        let tell = async {
            for source in &self.told {
                if let Some(positions) = moved.get(&source.number) {
                    source.tell_alone(self.flow.as_deref(), positions.clone()).await?;
                }
            }
            Ok(())
        };
        self.demand.within(tell).await
    }

    /// All that was sent before the freeze is where it was sent to.
    async fn flush(&self, sinks: &[Arc<dyn Flush>]) -> Result<(), Error> {
        let (outboxes, sinks) = tokio::join!(self.flush_outboxes(), flush(sinks));
        outboxes.and(sinks)
    }

    async fn flush_outboxes(&self) -> Result<(), Error> {
        // Messages that are published hand over what they send before the flush begins.
        drop(self.window.write().unwrap_or_else(PoisonError::into_inner));
        let outboxes = self.outboxes();
        let flushed = futures::future::join_all(outboxes.iter().map(|outbox| outbox.flush())).await;
        flushed.into_iter().collect::<Result<(), _>>().map_err(|cause| Error::Delivery { cause })
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
        let committed = if failed { Ok(()) } else { self.commit(sinks).await };
        self.demand.ended(&committed);
        // Also those of messages that wrote nothing to a store.
        committed.and(self.demand.within(self.flush(sinks)).await)
    }

    #[cfg(feature = "rocksdb")]
    async fn last_commit(&self, sinks: &[Arc<dyn Flush>], failed: bool) -> Result<(), Error> {
        if failed {
            return Ok(());
        }
        self.commit(sinks).await?;
        let Some((store, turn)) = self.store.get() else { return Ok(()) };
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
