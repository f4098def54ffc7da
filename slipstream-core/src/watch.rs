//! What a message in hand is known by, where somebody asks: its position, the handler that is at work on it,
//! whether it comes again; and what it tells checkpoints, until it is published.
//!
//! ```text
//! drive ──begin──▶ Watched: position, who handles it again ──enter──▶ handler 1 … n
//!                     ▲ heartbeat, check_pulse ─▶ Teller, one for each checkpoint
//!                     └──published, under the store's lock──▶ checkpoints, progress
//! ```
//!
//! Invariants: what is told belongs to the message, goes with its savepoints, and counts when it is published; a
//! source that nobody watches has none of this; whatever changes a checkpoint or a progress runs under the lock
//! under which the store's rows move, so a commit has all of them as of one moment.
use crate::{
    BoxError,
    position::{Position, Positions},
};
use futures::future::select_all;
use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    error::Error,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::watch;

mod progress;

pub(crate) use progress::{Handling, Progress};

/// Whether anything in the process asks what each message is, besides checkpoints: an output that is to say of which input it is.
static IS_ASKED: AtomicBool = AtomicBool::new(false);

/// From now on flows that begin know of each message what it is.
#[cfg_attr(not(feature = "kafka"), allow(dead_code))]
pub(crate) fn ask() {
    IS_ASKED.store(true, Ordering::Relaxed);
}

pub(crate) fn is_asked() -> bool {
    IS_ASKED.load(Ordering::Relaxed)
}

/// A source that is watched, shared by its workers and by the checkpoints that know it.
pub(crate) struct Watch {
    /// The flow's number for it.
    pub(crate) number: u32,
    /// Its name: for a topic that of the topic.
    pub(crate) name: Arc<str>,
    /// By what the store knows it.
    pub(crate) stored_as: Arc<str>,
    /// Its handlers, in the order mounted, under names of which no two are equal.
    pub(crate) handlers: Vec<Arc<str>>,
    pub(crate) has_positions: bool,
    /// A handler may answer that a message is to come again later.
    pub(crate) defers: bool,
    /// The checkpoints that know it.
    observers: Vec<Arc<dyn Observer>>,
    /// See [`finishes_with`](Watch::finishes_with).
    upstream: Vec<Arc<dyn Observer>>,
    progress: Mutex<Progress>,
    /// There is any progress to look at.
    is_uneven: AtomicBool,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Watch {
    /// The source of this number, by the name that people know it by and the one that the store knows it by.
    pub(crate) fn new(number: u32, name: Arc<str>, stored_as: Arc<str>, handlers: &[&'static str]) -> Self {
        let mut known: Vec<Arc<str>> = Vec::new();
        for (at, name) in handlers.iter().enumerate() {
            let so_named = handlers.iter().take(at).filter(|known| *known == name).count();
            known.push(if so_named == 0 {
                Arc::from(*name)
            } else {
                format!("{name}#{}", so_named + 1).into()
            });
        }
        Watch {
            number,
            name,
            stored_as,
            handlers: known,
            has_positions: false,
            defers: false,
            observers: Vec::new(),
            upstream: Vec::new(),
            progress: Mutex::default(),
            is_uneven: AtomicBool::new(false),
        }
    }

    /// A checkpoint knows it.
    pub(crate) fn observed(&mut self, observer: Arc<dyn Observer>) {
        self.observers.push(observer);
    }

    /// What one worker begins with.
    pub(crate) fn watched(self: &Arc<Self>) -> Watched {
        Watched::new(Arc::clone(self), self.observers.iter().map(|observer| observer.teller()).collect())
    }

    /// It has come to its end, and all of it is handled, as of a state of its control.
    pub(crate) fn has_ended(&self, state: u64) {
        self.observers.iter().for_each(|observer| observer.has_ended(state));
    }

    /// It goes on after its end.
    pub(crate) fn goes_on(&self) {
        self.observers.iter().for_each(|observer| observer.goes_on());
    }

    /// The checkpoints by which what it depends on, in one step or in several, may be handled again; its own among them.
    pub(crate) fn finishes_with(&mut self, upstream: Vec<Arc<dyn Observer>>) {
        self.upstream = upstream;
    }

    /// Waits until nothing can come any more that has its messages handled again.
    pub(crate) async fn finished(&self) {
        let mut news: Vec<_> = self.upstream.iter().map(|observer| observer.news()).collect();
        loop {
            for news in &mut news {
                news.mark_unchanged();
            }
            // All at once: what one of them has had handled again may be late for another.
            if self.upstream.iter().all(|observer| observer.is_finished()) {
                return;
            }
            let changed = news.iter_mut().map(|news| Box::pin(news.changed()));
            // One that is gone has no more news, and its flow has ended.
            let _ = select_all(changed).await;
        }
    }

    /// After how long without a message a partition of it may count as idle.
    pub(crate) fn idle(&self) -> Option<Duration> {
        self.observers.iter().filter_map(|observer| observer.idle()).min()
    }

    /// All that it has given is handled, and there is nothing more for now.
    pub(crate) fn is_empty(&self) {
        self.observers.iter().for_each(|observer| observer.is_empty());
    }

    /// These are its partitions here, from now on.
    pub(crate) fn assigned(&self, ours: &BTreeSet<i32>) {
        self.observers.iter().for_each(|observer| observer.assigned(ours));
    }

    /// It has these partitions, and may have more.
    pub(crate) fn has(&self, partitions: &BTreeSet<i32>) {
        self.observers.iter().for_each(|observer| observer.has(partitions));
    }

    // Nothing that runs under it panics.
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self, progress: &mut Progress) {
        progress.is_changed = true;
        self.is_uneven.store(!progress.is_even(), Ordering::Relaxed);
    }

    /// Goes on as the store has it.
    pub(crate) fn resume(&self, record: &[u8]) -> Result<(), rmp_serde::decode::Error> {
        let mut progress = self.progress();
        *progress = Progress::read(record, &self.handlers)?;
        self.is_uneven.store(!progress.is_even(), Ordering::Relaxed);
        Ok(())
    }

    /// What is to be stored, if it has changed since it was last asked.
    pub(crate) fn record(&self) -> Option<Vec<u8>> {
        let mut progress = self.progress();
        std::mem::take(&mut progress.is_changed).then(|| progress.write(&self.handlers))
    }

    pub(crate) fn is_changed(&self) -> bool {
        self.progress().is_changed
    }

    /// These handlers go back to `offset` in a partition of which messages before `next` are published; the
    /// others stay. Answers where the source has to go on: never after `next`.
    pub(crate) fn go_back(&self, partition: i32, next: i64, offset: i64, handlers: &[bool]) -> i64 {
        let mut progress = self.progress();
        let lowest = progress.go_back(partition, next, offset, handlers);
        self.changed(&mut progress);
        lowest
    }

    /// The program has sought, in a partition of which messages before `next` are published: no handler is ahead of that,
    /// and what each has published comes to it again.
    pub(crate) fn sought(&self, partition: i32, offset: i64, next: Option<i64>) {
        let mut progress = self.progress();
        if let Some(next) = next.filter(|next| offset < *next) {
            progress.go_back(partition, next, offset, &vec![true; self.handlers.len()]);
            return self.changed(&mut progress);
        }
        if progress.sought(partition, offset) {
            self.changed(&mut progress);
        }
    }

    /// Whether its handlers are apart: messages are handled again.
    pub(crate) fn is_apart(&self) -> bool {
        self.is_uneven.load(Ordering::Relaxed)
    }

    /// Whether a checkpoint waits for others to have its messages handled right.
    pub(crate) fn is_dependent(&self) -> bool {
        self.observers.iter().any(|observer| observer.is_dependent())
    }

    /// Whether a handler's pipe is to begin anew where the partition goes on.
    pub(crate) fn restarts(&self, partition: i32, handler: usize) -> bool {
        self.progress().restarts(partition, handler)
    }

    /// A message is published, under the store's lock.
    fn published(&self, position: Position, handling: &[Handling], deferred: &[usize]) {
        if deferred.is_empty() && !self.is_uneven.load(Ordering::Relaxed) {
            return;
        }
        let mut progress = self.progress();
        if progress.published(position.partition(), position.offset(), handling, deferred) {
            self.changed(&mut progress);
        }
    }
}

/// What one worker keeps for one checkpoint.
pub(crate) trait Teller: Send {
    /// Which checkpoint.
    fn checkpoint(&self) -> u64;
    fn as_any(&mut self) -> &mut dyn Any;
    /// A message begins.
    fn begin(&mut self);
    /// Takes back what was told last.
    fn take_back(&mut self);
    /// Whether of the last `told` there is a pulse that was answered `Down`.
    fn has_pulse(&self, told: usize) -> bool;
    /// Takes back the last `told` but for pulses. Answers how many of these there are.
    fn keep_pulses(&mut self, told: usize) -> usize;
    /// What was told counts from now on. Under the store's lock.
    fn publish(&mut self, at: At);
    /// No message is in hand.
    fn done(&mut self);
}

/// A checkpoint, as a source sees it.
pub(crate) trait Observer: Send + Sync + fmt::Debug {
    /// For one worker of the source.
    fn teller(&self) -> Box<dyn Teller>;
    /// See [`Watch::has_ended`].
    fn has_ended(&self, state: u64);
    /// See [`Watch::goes_on`].
    fn goes_on(&self);
    /// Whether the source is the one that waits.
    fn is_dependent(&self) -> bool;
    /// Whether nothing can come any more for which the checkpoint has messages handled again.
    fn is_finished(&self) -> bool;
    /// Changes whenever that may have changed.
    fn news(&self) -> watch::Receiver<()>;
    /// See [`Watch::idle`].
    fn idle(&self) -> Option<Duration>;
    /// See [`Watch::is_empty`].
    fn is_empty(&self);
    /// See [`Watch::assigned`].
    fn assigned(&self, ours: &BTreeSet<i32>);
    /// See [`Watch::has`].
    fn has(&self, partitions: &BTreeSet<i32>);
}

/// Moves the next offset of a partition: the number of its source, the partition, the offset.
pub(crate) type MoveTo<'m> = dyn FnMut(u32, i32, i64) + 'm;
/// What is done under the store's lock.
pub(crate) type Change<'c> = dyn FnMut(&mut MoveTo<'_>) + 'c;

/// Where what nobody's message does is published.
pub(crate) trait Moves: Send + Sync {
    /// Calls `change` under the store's lock, with what moves the next offset of a source's partition.
    ///
    /// # Errors
    /// When the flow has ended, or a commit of it has failed.
    fn change(&self, change: &mut Change<'_>) -> Result<(), BoxError>;
    /// Where the partitions of a source go on after what is published.
    fn positions(&self, source: u32) -> Result<Positions, BoxError>;
}

/// Where a published message stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At {
    pub(crate) partition: i32,
    pub(crate) offset: i64,
}

/// The message in the hands of one worker.
pub(crate) struct Watched {
    pub(crate) watch: Arc<Watch>,
    pub(crate) at: At,
    /// The handler at work.
    handler: usize,
    /// How many outputs to topics it has had.
    outputs: u64,
    handling: Vec<Handling>,
    deferred: Vec<usize>,
    tellers: Vec<Box<dyn Teller>>,
    /// The tellers, one for each call, in the order of the calls, with the handler of each.
    calls: Vec<(usize, usize)>,
    has_position: bool,
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").field("watch", &self.watch).field("at", &self.at).finish_non_exhaustive()
    }
}

impl Watched {
    pub(crate) fn new(watch: Arc<Watch>, tellers: Vec<Box<dyn Teller>>) -> Self {
        let handling = vec![Handling::First; watch.handlers.len()];
        Watched {
            watch,
            at: At { partition: 0, offset: -1 },
            handler: 0,
            outputs: 0,
            handling,
            deferred: Vec::new(),
            tellers,
            calls: Vec::new(),
            has_position: false,
        }
    }

    /// A message begins.
    pub(crate) fn begin(&mut self, position: Option<Position>) {
        self.has_position = position.is_some();
        match position {
            Some(position) => {
                self.at = At { partition: position.partition(), offset: position.offset() };
                if self.watch.is_uneven.load(Ordering::Relaxed) {
                    self.watch.progress().handling(self.at.partition, self.at.offset, &mut self.handling);
                } else {
                    self.handling.fill(Handling::First);
                }
            }
            None => self.at.offset += 1,
        }
        self.begin_again();
    }

    /// What no message brought begins: it counts for the message before.
    pub(crate) fn begin_unasked(&mut self) {
        self.handling.fill(Handling::First);
        self.has_position = false;
        self.begin_again();
    }

    /// The message runs from its start.
    pub(crate) fn begin_again(&mut self) {
        (self.handler, self.outputs) = (0, 0);
        self.tellers.iter_mut().for_each(|teller| teller.begin());
    }

    /// A handler is about to begin. Answers whether the message is for it.
    pub(crate) fn enter(&mut self, handler: usize) -> bool {
        (self.handler, self.outputs) = (handler, 0);
        self.handling.get(handler) != Some(&Handling::Done)
    }

    /// Whether the handler at work has had this message before.
    pub(crate) fn is_replayed(&self) -> bool {
        self.handling.get(self.handler) == Some(&Handling::Again)
    }

    /// The name of the handler at work.
    #[cfg_attr(not(feature = "kafka"), allow(dead_code))]
    pub(crate) fn handler(&self) -> &str {
        self.watch.handlers.get(self.handler).map_or("", |name| name)
    }

    /// The number of its next output.
    #[cfg_attr(not(feature = "kafka"), allow(dead_code))]
    pub(crate) fn output(&mut self) -> u64 {
        let number = self.outputs;
        self.outputs += 1;
        number
    }

    /// How many it has had.
    pub(crate) fn outputs(&self) -> u64 {
        self.outputs
    }

    /// Those after so many are taken back.
    pub(crate) fn take_back_outputs(&mut self, outputs: u64) {
        self.outputs = outputs;
    }

    /// The teller of a checkpoint, for a call that is about to be made, and the handler that makes it.
    pub(crate) fn teller(&mut self, checkpoint: u64) -> Option<(&mut dyn Teller, usize)> {
        let handler = self.handler;
        let teller = self.tellers.iter_mut().find(|teller| teller.checkpoint() == checkpoint)?;
        Some((&mut **teller, handler))
    }

    /// The call is made.
    pub(crate) fn called(&mut self, checkpoint: u64) {
        if let Some(at) = self.tellers.iter().position(|teller| teller.checkpoint() == checkpoint) {
            self.calls.push((at, self.handler));
        }
    }

    /// How much the message has told.
    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }

    /// Takes back what was told after there were `len` calls.
    pub(crate) fn truncate(&mut self, len: usize) {
        while self.calls.len() > len
            && let Some((teller, _)) = self.calls.pop()
        {
            if let Some(teller) = self.tellers.get_mut(teller) {
                teller.take_back();
            }
        }
    }

    /// The handler at work answers that the message is to come again: of what it has told since there were `len` calls
    /// its pulses stand, since they are what brings it again. Answers false, with nothing changed, where there is none.
    pub(crate) fn defer(&mut self, len: usize) -> bool {
        let Watched { tellers, calls, .. } = self;
        let since = calls.get(len..).unwrap_or_default();
        let told_by = |number: usize| since.iter().filter(|(teller, _)| *teller == number).count();
        let told: Vec<usize> = (0..tellers.len()).map(told_by).collect();
        if !tellers.iter().zip(&told).any(|(teller, told)| teller.has_pulse(*told)) {
            return false;
        }
        calls.truncate(len);
        for (number, (teller, told)) in tellers.iter_mut().zip(&told).enumerate() {
            let kept = teller.keep_pulses(*told);
            calls.extend(std::iter::repeat_n((number, self.handler), kept));
        }
        if !self.deferred.contains(&self.handler) {
            self.deferred.push(self.handler);
        }
        true
    }

    /// The message is rolled back.
    pub(crate) fn roll_back(&mut self) {
        self.truncate(0);
        self.deferred.clear();
        self.tellers.iter_mut().for_each(|teller| teller.done());
    }

    /// Whether its publication has something to tell.
    pub(crate) fn has_news(&self) -> bool {
        !self.calls.is_empty() || !self.deferred.is_empty()
    }

    /// The message is published, under the store's lock.
    pub(crate) fn publish(&mut self) {
        let Watched { watch, at, handling, deferred, tellers, calls, has_position, .. } = self;
        if !calls.is_empty() {
            tellers.iter_mut().for_each(|teller| teller.publish(*at));
            calls.clear();
        }
        if *has_position {
            watch.published(Position::new(at.partition, at.offset), handling, deferred);
        }
        deferred.clear();
    }

    /// No message is in hand.
    pub(crate) fn done(&mut self) {
        self.tellers.iter_mut().for_each(|teller| teller.done());
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.done();
    }
}

/// What a commit stores beside rows and positions.
pub(crate) trait Recorded: Send + Sync + fmt::Debug {
    /// Whether there is something new to store.
    fn is_changed(&self) -> bool;
    /// What is new: what kind it is of, its name, and its bytes. Under the store's lock.
    fn records(&self, write: &mut dyn FnMut(Kind, &str, &[u8]));
    /// The offsets past which nobody but the store is to be told of a commit, by source and partition. Under the
    /// store's lock.
    fn caps(&self, caps: &mut BTreeMap<(u32, i32), i64>);
}

/// The kinds of what is stored so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Checkpoint = 1,
    Progress = 2,
}

impl Recorded for Watch {
    fn is_changed(&self) -> bool {
        Watch::is_changed(self)
    }
    fn records(&self, write: &mut dyn FnMut(Kind, &str, &[u8])) {
        if let Some(record) = self.record() {
            write(Kind::Progress, &self.stored_as, &record);
        }
    }
    fn caps(&self, _: &mut BTreeMap<(u32, i32), i64>) {}
}

/// What a handler returns to have its message again when all that it depends on is back: made by
/// `Down::defer`.
#[derive(Debug, Clone)]
pub struct Deferred {
    pub(crate) checkpoint: Arc<str>,
    /// The source can be sought, so the message can come again.
    pub(crate) is_possible: bool,
}

impl fmt::Display for Deferred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Deferred { checkpoint, is_possible } = self;
        match is_possible {
            true => write!(
                f,
                "deferred until checkpoint `{checkpoint}` has recovered: only a handler of its dependent can answer so, \
                 after a pulse of this message that was `Down`; not one of a channel or of a cache's changes"
            ),
            false => write!(
                f,
                "checkpoint `{checkpoint}` only resumes its dependent (`resume_only`), so no message of it can be deferred: \
                 answer with what is known, or wait in the handler"
            ),
        }
    }
}

impl Error for Deferred {}
