//! The loop of a route: takes chunks from the source, and each message through its handlers, in one
//! transaction, to its publication.
//!
//! ```text
//! feed ─chunk─▶ for each message: handler 1 … n, sinks inside
//!                                 sinks outside 1 … n
//!                                 publish            fault ─▶ mend: again, retry, skip; or roll back and end
//! ```
//!
//! Invariants: message 2 begins when message 1 is published; a stop, a pause and a seek take effect
//! between two messages; the transaction is in its thread-local for the length of a poll, once for as
//! many messages as the poll handles.
use super::{
    mend::mend,
    turns::{Mend, Turns},
};
use crate::{
    BoxError,
    commit::{Commit, Demand, Published},
    error::{Cause, Fault, FaultOf, panic_message},
    on_error::Verdict,
    position::Position,
    source::{Chunk, Control, Feed, Hand},
    stop::Stop,
    transaction::{self, Transaction},
    watch::{Watch, Watched},
};
use std::{
    future::poll_fn,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll, ready},
    time::{Duration, Instant},
    vec::Drain,
};

/// What a route knows of its flow.
#[derive(Debug, Clone)]
pub(crate) struct Drive {
    pub(crate) shared: Arc<Shared>,
    /// The flow's number for the source.
    pub(crate) source: u32,
    pub(crate) has_positions: bool,
    /// By what the source is paused and sought.
    pub(crate) control: Control,
    /// Where somebody asks what the message in hand is.
    pub(crate) watch: Option<Arc<Watch>>,
    /// What ends here is the source, and not what was dealt out of it.
    pub(crate) is_whole: bool,
}

/// What the routes of one flow share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) stop: Arc<Stop>,
    pub(crate) commit: Commit,
    pub(crate) demand: Arc<Demand>,
}

impl Drive {
    /// Whether a handler may answer that a message is to come again.
    pub(crate) fn defers(&self) -> bool {
        self.watch.as_ref().is_some_and(|watch| watch.defers)
    }

    /// Waits until another message may begin, or the flow is to stop.
    #[inline]
    async fn settle(&self, gate: &mut Gate, as_of: u64) {
        if self.shared.commit.is_full() {
            // A revocation need not wait for what has not begun.
            gate.hand.is_empty_now();
            self.shared.commit.room(&self.shared.stop).await;
            gate.hand.begins_at(gate.state);
        }
        if self.control.state() != gate.state {
            self.steer(gate, as_of).await;
        }
    }

    #[cold]
    async fn steer(&self, gate: &mut Gate, as_of: u64) {
        loop {
            let state = self.control.state();
            // Between two messages: a revocation need not wait for this one.
            gate.hand.begins_at(state);
            if !self.control.is_paused() {
                if let Some(watch) = &self.watch {
                    let sought = self.control.sought_since(gate.state);
                    if !sought.is_empty() {
                        let published = self.control.positions();
                        for (partition, offset) in sought {
                            watch.sought(partition, offset, published.next(partition));
                        }
                    }
                }
                // What comes later is seen by the state.
                gate.state = state;
                gate.stale = self.control.stale_since(as_of);
                gate.withheld = self.control.withheld();
                return;
            }
            // Nor for one that does not begin before somebody resumes the source.
            gate.hand.is_empty_now();
            self.control.is_emptied();
            tokio::select! {
                () = self.control.resumed() => {}
                () = self.shared.stop.stopped() => return,
            }
        }
    }

    /// Makes visible what the message has written, and moves the source's position past it.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "as for `Alone::begin`")]
    fn publish(&self, position: Option<Position>) -> Result<Published, BoxError> {
        if position.is_none() && !transaction::is_touched() {
            return Ok(Published::Whole);
        }
        self.publish_some(position)
    }

    #[inline(never)]
    fn publish_some(&self, position: Option<Position>) -> Result<Published, BoxError> {
        let moved = position.map(|position| ((self.source, position.partition()), position));
        let published = transaction::with(|current| match current {
            Some(transaction) => self.shared.commit.publish(transaction, moved),
            None => Ok(Published::Whole),
        })?;
        if published == Published::Whole {
            transaction::untouched();
        }
        Ok(published)
    }
}

/// Waits for what comes `next`, and says now and then that there is nothing, where a partition may count as idle for that,
/// as long as it `is_empty`.
pub(super) async fn while_empty<T>(
    next: impl Future<Output = T>,
    watch: Option<&Watch>,
    is_empty: impl Fn() -> bool,
) -> T {
    let Some((watch, idle)) = watch.and_then(|watch| Some((watch, watch.idle()?))) else { return next.await };
    // Often enough that the wait is not felt to be much longer.
    let look = (idle / 4).max(Duration::from_millis(1));
    let mut next = pin!(next);
    loop {
        tokio::select! {
            biased;
            next = &mut next => return next,
            () = tokio::time::sleep(look) => {
                if is_empty() {
                    watch.is_empty();
                }
            }
        }
    }
}

/// How long a source that always has something may keep its worker from the other tasks. Shorter, and
/// yielding (half a microsecond) is felt; longer, and so is the wait of the others.
const LONGEST_TURN: Duration = Duration::from_millis(1);

impl Drop for Gate {
    /// Nothing is in hand any more: whoever waits for that looks again.
    fn drop(&mut self) {
        self.hand.is_empty_now();
        self.control.is_emptied();
    }
}

/// What a route has seen of its source's control.
#[derive(Debug)]
struct Gate {
    control: Control,
    /// The state at which messages may begin.
    state: u64,
    /// The partitions that were sought or revoked since the chunk in hand was fetched: it has nothing for them.
    stale: Vec<i32>,
    /// The partitions whose outputs another has sent, up to these offsets.
    withheld: Vec<(i32, i64)>,
    /// What revocations see of the message in hand.
    hand: Arc<Hand>,
}

impl Gate {
    #[cold]
    fn withholds(&self, position: Position) -> bool {
        let before =
            |(partition, end): &(i32, i64)| *partition == position.partition() && position.offset() < *end;
        self.withheld.iter().any(before)
    }
}

/// The items of a chunk that have not begun.
struct Left<'a, I> {
    items: Drain<'a, I>,
    positions: &'a [Position],
    total: usize,
}

impl<I> Left<'_, I> {
    /// The number of the item taken last.
    #[inline]
    fn at(&self) -> usize {
        (self.total - self.items.len()).saturating_sub(1)
    }
    /// Where it stands.
    #[inline]
    fn position(&self) -> Option<Position> {
        self.positions.get(self.at()).copied()
    }
}

/// Drives a source to its end, to a stop, or to the first fault that is not mended.
pub(crate) async fn drive<I: Send>(
    turns: impl Turns<I>,
    feed: &mut dyn Feed<I>,
    drive: &Drive,
) -> Result<(), Fault> {
    let mends = turns.mends();
    let mut message = InHand::new(turns, drive);
    let mut chunk = Chunk::new();
    let hand = drive.control.hand();
    let mut gate = Gate {
        state: u64::MAX,
        stale: Vec::new(),
        withheld: Vec::new(),
        hand,
        control: drive.control.clone(),
    };
    let (mut keeps, mut as_of) = (false, 0);
    let stop = &drive.shared.stop;
    let mut stopped = pin!(stop.stopped());
    let mut turn_began = Instant::now();
    loop {
        let keep = mends || may_conflict();
        if keep != keeps {
            keeps = keep;
            feed.keep(keep);
            message.turns.keep(keep);
        }
        gate.hand.is_empty_now();
        let next = poll_fn(|cx| {
            if stopped.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Next::Stop);
            }
            if let Poll::Ready(filled) = feed.poll_chunk(&mut chunk, cx) {
                return Poll::Ready(match filled {
                    Ok(()) if chunk.items.is_empty() => Next::End,
                    Ok(()) => Next::Chunk,
                    Err(fault) => Next::Fault(fault),
                });
            }
            match message
                .during(|turns, _| (turns.poll_unasked(cx), !drive.has_positions && turns.have_ended()))
            {
                Ok((true, _)) => Poll::Ready(Next::Unasked),
                Ok((false, true)) => Poll::Ready(Next::End),
                Ok((false, false)) => Poll::Pending,
                Err(fault) => Poll::Ready(Next::Fault(fault)),
            }
        });
        let next = match &drive.watch {
            None => next.await,
            Some(watch) => {
                drive.control.is_emptied();
                while_empty(next, Some(&**watch).filter(|_| drive.is_whole), || true).await
            }
        };
        gate.hand.begins_at(gate.state);
        match next {
            Next::Stop => return Ok(()),
            Next::Fault(fault) => return Err(fault),
            Next::Chunk => {
                if chunk.as_of != as_of {
                    message.restart_stale(drive, as_of)?;
                    as_of = chunk.as_of;
                }
                gate.stale.clear();
                if gate.state != as_of {
                    gate.stale = drive.control.stale_since(as_of);
                }
                let is_plain = chunk.positions.is_empty();
                let total = chunk.items.len();
                let mut left = Left { items: chunk.items.drain(..), positions: &chunk.positions, total };
                loop {
                    drive.settle(&mut gate, as_of).await;
                    if left.items.len() == 0 || stop.is_set() || is_plain && message.turns.have_ended() {
                        break;
                    }
                    // Apart, so that a message of a source without positions carries no room for one.
                    let handled = poll_fn(|cx| match is_plain {
                        true => message.poll_each::<false>(&mut left, &gate, drive, cx),
                        false => message.poll_each::<true>(&mut left, &gate, drive, cx),
                    });
                    if let Err(fault) = handled.await {
                        let (at, position) = (Some(left.at()), left.position());
                        mend(&mut message, feed, at, position, fault, drive).await?;
                    }
                }
                drop(left);
                chunk.positions.clear();
                if is_plain && message.turns.have_ended() {
                    at_the_end(&mut message, feed, drive).await?;
                    // Nobody wants more of it.
                    if let Some(watch) = &drive.watch {
                        watch.has_ended(gate.state);
                    }
                    return Ok(());
                }
                // A chunk asks the scheduler and the clock once: at each message it would cost more than
                // the message.
                if turn_began.elapsed() > LONGEST_TURN {
                    tokio::task::yield_now().await;
                    turn_began = Instant::now();
                } else {
                    tokio::task::consume_budget().await;
                }
            }
            Next::Unasked => {
                drive.settle(&mut gate, as_of).await;
                if gate.state != as_of {
                    message.restart_stale(drive, as_of)?;
                }
                if !stop.is_set() {
                    unasked(&mut message, feed, drive).await?;
                }
            }
            Next::End => {
                drive.settle(&mut gate, as_of).await;
                if stop.is_set() {
                    return Ok(());
                }
                // Whoever has held it, or has handled its last message, may have sought in it.
                if drive.control.is_sought_since(chunk.as_of) {
                    continue;
                }
                let Some(watch) = drive.watch.as_ref().filter(|_| drive.is_whole) else {
                    return at_the_end(&mut message, feed, drive).await;
                };
                if watch.is_dependent() {
                    if !waits_for_the_others(watch, &gate, drive).await {
                        continue;
                    }
                    return at_the_end(&mut message, feed, drive).await;
                }
                // What its pipes still have comes before the others hear that it has ended.
                at_the_end(&mut message, feed, drive).await?;
                if !stop.is_set() {
                    watch.has_ended(gate.state);
                }
                return Ok(());
            }
        }
    }
}

/// Whether a message may have to run again because of what others publish: where state is kept.
fn may_conflict() -> bool {
    #[cfg(feature = "rocksdb")]
    let may = crate::store::any_is_open();
    #[cfg(not(feature = "rocksdb"))]
    let may = false;
    may
}

/// The source has come to its end, and what it depends on may still have its messages handled again. Answers false where
/// it is held or sought meanwhile.
pub(super) async fn waits_for_the_others_of(
    watch: &Watch,
    control: &Control,
    state: u64,
    stop: &Stop,
) -> bool {
    watch.has_ended(state);
    let is_over = tokio::select! {
        () = watch.finished() => control.state() == state,
        () = control.changed(state) => false,
        () = stop.stopped() => true,
    };
    if !is_over {
        watch.goes_on();
    }
    is_over
}

async fn waits_for_the_others(watch: &Watch, gate: &Gate, drive: &Drive) -> bool {
    gate.hand.is_empty_now();
    drive.control.is_emptied();
    waits_for_the_others_of(watch, &drive.control, gate.state, &drive.shared.stop).await
}

/// Handles what the pipes have without a message, as a message of its own. Its position is that of
/// the last item that the pipe took, which has been published.
async fn unasked<I: Send, T: Turns<I>>(
    message: &mut InHand<I, T>,
    feed: &mut dyn Feed<I>,
    drive: &Drive,
) -> Result<(), Fault> {
    message.is_of_no_partition();
    match poll_fn(|cx| message.poll_on(None, drive, cx)).await {
        Err(fault) => mend(message, feed, None, None, fault, drive).await,
        Ok(()) => Ok(()),
    }
}

/// The source has ended, or all that its handlers wanted of it: what the pipes still have is handled.
async fn at_the_end<I: Send, T: Turns<I>>(
    message: &mut InHand<I, T>,
    feed: &mut dyn Feed<I>,
    drive: &Drive,
) -> Result<(), Fault> {
    match !drive.shared.stop.is_set() && message.during(|turns, _| turns.end())? {
        true => unasked(message, feed, drive).await,
        false => Ok(()),
    }
}

/// What a route waits for between two chunks.
enum Next {
    Chunk,
    /// A pipe has something that no message brought.
    Unasked,
    /// Also of all pipes of a source without positions.
    End,
    Stop,
    Fault(Fault),
}

/// The turns of a route with their transaction, which is set for each poll, also where a dropped
/// future's destructors may write.
pub(super) struct InHand<I, T: Turns<I>> {
    turns: T,
    transaction: Option<Box<Transaction>>,
    /// A message is pending, or has failed: set then, not for each message.
    begun: bool,
    /// The partition that the turns were told last.
    partition: Option<i32>,
    /// The state of the source's control at which the message began.
    began_at: u64,
    /// Its outputs to topics are kept back.
    withholds: bool,
    item: PhantomData<fn(I)>,
}

impl<I, T: Turns<I>> InHand<I, T> {
    fn new(turns: T, drive: &Drive) -> Self {
        let watched = drive.watch.as_ref().map(Watch::watched);
        let transaction = Transaction::new(turns.given(), watched);
        InHand {
            turns,
            transaction: Some(Box::new(transaction)),
            begun: false,
            partition: None,
            began_at: 0,
            withholds: false,
            item: PhantomData,
        }
    }

    /// The partitions that were sought or revoked since `as_of` go on elsewhere: their pipes begin anew.
    fn restart_stale(&mut self, drive: &Drive, as_of: u64) -> Result<(), Fault> {
        for partition in drive.control.stale_since(as_of) {
            self.during(|turns, _| turns.restart(partition))?;
        }
        Ok(())
    }

    /// What a pipe has may be of another partition than the last message, also of one whose outputs nobody has sent:
    /// rather sent twice than never.
    fn is_of_no_partition(&mut self) {
        self.partition = None;
        if let Some(watched) = self.transaction.as_mut().and_then(|transaction| transaction.watched.as_mut())
        {
            watched.begin_unasked();
        }
        if std::mem::take(&mut self.withholds)
            && let Some(transaction) = &mut self.transaction
        {
            transaction.outgoing.withhold(false);
        }
    }

    /// Handles message after message, each to its publication.
    #[inline]
    fn poll_each<const POSITIONS: bool>(
        &mut self,
        left: &mut Left<'_, I>,
        gate: &Gate,
        drive: &Drive,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Fault>> {
        let (mut partition, mut withholds) = (self.partition, self.withholds);
        self.began_at = gate.state;
        // By reference, so that no pointer is followed twice for each message.
        let (stop, commit, control) = (&*drive.shared.stop, &drive.shared.commit, &drive.control);
        let now = control.state_now();
        let is_watched = drive.watch.is_some();
        let may_begin = || !stop.is_set() && !commit.is_full() && now.load(Ordering::Relaxed) == gate.state;
        let polled = self.poll(|turns, begun| {
            if *begun {
                ready!(turns.go_on(cx))?;
                *begun = false;
                publish(turns, drive, if POSITIONS { left.position() } else { None }, gate.state)?;
            }
            while may_begin()
                && (POSITIONS || !turns.have_ended())
                && let Some(item) = left.items.next()
            {
                let position = if POSITIONS { left.position() } else { None };
                if let Some(position) = position {
                    if !gate.stale.is_empty() && gate.stale.contains(&position.partition()) {
                        continue;
                    }
                    if withholds || !gate.withheld.is_empty() {
                        withholds = gate.withholds(position);
                        withhold(withholds);
                    }
                    if partition != Some(position.partition()) {
                        partition = Some(position.partition());
                        turns.select(position.partition());
                    }
                    // What follows the end of all pipes reaches no handler: its position is not moved.
                    if turns.have_ended() {
                        continue;
                    }
                }
                if is_watched {
                    transaction::with_watched(|watched| watched.begin(position));
                }
                if turns.begin(item, cx)?.is_pending() {
                    *begun = true;
                    return Poll::Pending;
                }
                publish(turns, drive, position, gate.state)?;
            }
            Poll::Ready(Ok(()))
        });
        (self.partition, self.withholds) = (partition, withholds);
        polled
    }

    /// Goes on with the message in hand, or with what the pipes have without one, to its publication.
    pub(super) fn poll_on(
        &mut self,
        position: Option<Position>,
        drive: &Drive,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Fault>> {
        self.poll_to_the_end(position, drive, |turns| turns.go_on(cx))
    }

    /// Begins to mend the message in hand. Ready as soon as it is known that it goes on.
    pub(super) fn mend(
        &mut self,
        how: Mend,
        item: Option<I>,
        position: Option<Position>,
        drive: &Drive,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Fault>> {
        let is_watched = drive.watch.is_some();
        self.poll_to_the_end(position, drive, |turns| {
            if is_watched && how == Mend::Again {
                transaction::with_watched(Watched::begin_again);
            }
            turns.mend(how, item, cx)
        })
    }

    /// The message in hand is published when `step` is ready.
    fn poll_to_the_end(
        &mut self,
        position: Option<Position>,
        drive: &Drive,
        step: impl FnOnce(&mut T) -> Poll<Result<(), Fault>>,
    ) -> Poll<Result<(), Fault>> {
        let began_at = self.began_at;
        self.poll(|turns, begun| {
            *begun = true;
            ready!(step(turns))?;
            *begun = false;
            Poll::Ready(publish(turns, drive, position, began_at))
        })
    }

    /// What becomes of the message after a fault: `None` where the flow is to stop. What it has done is
    /// undone as far as that needs it.
    pub(super) fn verdict(&mut self, fault: &FaultOf) -> Option<(Mend, Duration)> {
        if matches!(fault.cause, Cause::Conflict) {
            self.roll_back();
            return Some((Mend::Again, Duration::ZERO));
        }
        // No handler has failed, so no handler's policy is asked.
        if matches!(fault.cause, Cause::Publish(_)) {
            return None;
        }
        match self.during(|turns, _| turns.failed(fault)) {
            Ok(Verdict::Skip) => Some((Mend::Skip, Duration::ZERO)),
            Ok(Verdict::Retry(after)) => Some((Mend::Retry, after)),
            Ok(Verdict::Stop) | Err(_) => None,
        }
    }

    /// Polls with the transaction set and panics caught. After a fault the message is still in hand.
    #[inline]
    fn poll(
        &mut self,
        poll: impl FnOnce(&mut T, &mut bool) -> Poll<Result<(), Fault>>,
    ) -> Poll<Result<(), Fault>> {
        let polled = self.during(poll).unwrap_or_else(|fault| Poll::Ready(Err(fault)));
        if matches!(polled, Poll::Ready(Err(_))) {
            self.begun = true;
        }
        polled
    }

    #[inline]
    fn during<R>(&mut self, run: impl FnOnce(&mut T, &mut bool) -> R) -> Result<R, Fault> {
        let InHand { turns, transaction, begun, .. } = self;
        let run = AssertUnwindSafe(|| transaction::during(transaction, || run(turns, begun)));
        catch_unwind(run)
            .map_err(|payload| FaultOf::new(self.turns.name(), Cause::Panic(panic_message(&*payload))))
    }

    /// Forgets all that the message in hand has done.
    #[cold]
    pub(super) fn roll_back(&mut self) {
        self.begun = false;
        // A destructor that panics now cannot be told from the fault that led here.
        let _ = self.during(|turns, _| turns.give_up());
        if let Some(transaction) = &mut self.transaction {
            transaction.roll_back();
        }
    }
}

impl<I, T: Turns<I>> Drop for InHand<I, T> {
    fn drop(&mut self) {
        if self.begun {
            self.roll_back();
        }
    }
}

/// Whether what the message sends out is kept back.
#[cold]
fn withhold(is_withheld: bool) {
    transaction::with(|current| {
        if let Some(transaction) = current {
            transaction.outgoing.withhold(is_withheld);
        }
    });
}

/// A fault if the store refuses what the message has written, or if it has lost its partition since it began.
#[inline(always)]
#[allow(clippy::inline_always, reason = "as for `Alone::begin`")]
fn publish<I>(
    turns: &impl Turns<I>,
    drive: &Drive,
    position: Option<Position>,
    began_at: u64,
) -> Result<(), Fault> {
    if let Some(position) = position
        && drive.control.state() != began_at
        && drive.control.is_lost_since(began_at, position.partition())
    {
        return Err(FaultOf::new(turns.name(), Cause::Revoked));
    }
    match drive.publish(position) {
        Ok(Published::Whole) => Ok(()),
        Ok(Published::Conflict) => Err(FaultOf::new(turns.name(), Cause::Conflict)),
        Err(error) => Err(FaultOf::new(turns.name(), Cause::Publish(error))),
    }
}
