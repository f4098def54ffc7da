//! The loop of a route: takes chunks from the source, and each message through its handlers, in one
//! transaction, to its publication.
//!
//! ```text
//! feed ─chunk─▶ for each message: handler 1 … n, sinks inside
//!                                 sinks outside 1 … n
//!                                 publish                       any error or panic: roll back, end
//! ```
//!
//! Invariants: message 2 begins when message 1 is published; a stop takes effect between two
//! messages; the transaction is in its thread-local for the length of a poll, once for as many
//! messages as the poll handles.
use super::turns::Turns;
use crate::{
    BoxError,
    commit::{Commit, Published},
    error::{Cause, Fault, FaultOf, panic_message},
    position::Position,
    source::{Chunk, Feed},
    stop::Stop,
    transaction::{self, Transaction},
};
use std::{
    future::poll_fn,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

/// What a route knows of its flow.
#[derive(Debug)]
pub(crate) struct Drive {
    pub(crate) shared: Arc<Shared>,
    /// The flow's number for the source.
    pub(crate) source: u32,
}

/// What the routes of one flow share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) stop: Arc<Stop>,
    pub(crate) commit: Commit,
}

impl Drive {
    /// Whether another message may begin.
    #[inline]
    fn may_begin(&self) -> bool {
        !self.shared.stop.is_set() && !self.shared.commit.is_full()
    }

    /// Makes visible what the message has written, and moves the source's position past it.
    #[inline]
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

/// How long a source that always has something may keep its worker from the other tasks. Shorter, and
/// yielding (half a microsecond) is felt; longer, and so is the wait of the others.
const LONGEST_TURN: Duration = Duration::from_millis(1);

/// Drives a source to its end, to a stop, or to the first fault.
pub(crate) async fn drive<I: Send>(
    turns: impl Turns<I>,
    feed: &mut dyn Feed<I>,
    drive: &Drive,
) -> Result<(), Fault> {
    let mut message = InHand::new(turns);
    let mut chunk = Chunk::new();
    let Shared { stop, commit } = &*drive.shared;
    let mut stopped = pin!(stop.stopped());
    let mut turn_began = Instant::now();
    loop {
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
            match message.during(|turns, _| turns.poll_unasked(cx)) {
                Ok(true) => Poll::Ready(Next::Unasked),
                Ok(false) => Poll::Pending,
                Err(fault) => Poll::Ready(Next::Fault(fault)),
            }
        });
        match next.await {
            Next::Stop => return Ok(()),
            Next::Fault(fault) => return Err(fault),
            Next::Chunk => {
                let (mut items, mut positions) = (chunk.items.drain(..), chunk.positions.drain(..));
                while items.len() > 0 && !stop.is_set() && !message.turns.have_ended() {
                    // Apart, so that a message of a source without positions carries no room for one.
                    poll_fn(|cx| {
                        if positions.len() == 0 {
                            message.poll_each(items.by_ref().map(|item| (item, None)), drive, cx)
                        } else {
                            message.poll_each(items.by_ref().map(|item| (item, positions.next())), drive, cx)
                        }
                    })
                    .await?;
                    if commit.is_full() {
                        commit.room(stop).await;
                    }
                }
                drop((items, positions));
                if message.turns.have_ended() {
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
                poll_fn(|cx| message.poll_unasked(drive, cx)).await?;
                if commit.is_full() {
                    commit.room(stop).await;
                }
            }
            Next::End => {
                return match message.during(|turns, _| turns.end())? {
                    true => poll_fn(|cx| message.poll_unasked(drive, cx)).await,
                    false => Ok(()),
                };
            }
        }
    }
}

/// What a route waits for between two chunks.
enum Next {
    Chunk,
    /// A pipe has something that no message brought.
    Unasked,
    End,
    Stop,
    Fault(Fault),
}

/// A pending message: where it stands, if its source has positions.
struct Begun(Option<Position>);

/// The turns of a route with their transaction, which is set for each poll, also where a dropped
/// future's destructors may write.
struct InHand<I, T: Turns<I>> {
    turns: T,
    transaction: Option<Box<Transaction>>,
    /// A message is pending: set then, not for each message.
    begun: Option<Begun>,
    item: PhantomData<fn(I)>,
}

impl<I, T: Turns<I>> InHand<I, T> {
    fn new(turns: T) -> Self {
        InHand { turns, transaction: Some(Box::default()), begun: None, item: PhantomData }
    }

    /// Handles message after message, each to its publication.
    #[inline]
    fn poll_each(
        &mut self,
        mut items: impl Iterator<Item = (I, Option<Position>)>,
        drive: &Drive,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Fault>> {
        self.poll(|turns, begun| {
            if let Some(Begun(position)) = begun {
                ready!(turns.go_on(cx))?;
                let position = *position;
                *begun = None;
                publish(turns, drive, position)?;
            }
            // What follows the end of all pipes reaches no handler: its position is not moved.
            while drive.may_begin()
                && !turns.have_ended()
                && let Some((item, position)) = items.next()
            {
                if turns.begin(item, cx)?.is_pending() {
                    *begun = Some(Begun(position));
                    return Poll::Pending;
                }
                publish(turns, drive, position)?;
            }
            Poll::Ready(Ok(()))
        })
    }

    /// Handles what the pipes have without a message, as a message of its own. Its position is that of
    /// the last item that the pipe took, which has been published.
    fn poll_unasked(&mut self, drive: &Drive, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        self.poll(|turns, begun| {
            *begun = Some(Begun(None));
            ready!(turns.go_on(cx))?;
            *begun = None;
            Poll::Ready(publish(turns, drive, None))
        })
    }

    /// Polls with the transaction set and panics caught. A fault rolls the message back.
    #[inline]
    fn poll(
        &mut self,
        poll: impl FnOnce(&mut T, &mut Option<Begun>) -> Poll<Result<(), Fault>>,
    ) -> Poll<Result<(), Fault>> {
        let polled = self.during(poll).unwrap_or_else(|fault| Poll::Ready(Err(fault)));
        if matches!(polled, Poll::Ready(Err(_))) {
            self.roll_back();
        }
        polled
    }

    #[inline]
    fn during<R>(&mut self, run: impl FnOnce(&mut T, &mut Option<Begun>) -> R) -> Result<R, Fault> {
        let InHand { turns, transaction, begun, .. } = self;
        let run = AssertUnwindSafe(|| transaction::during(transaction, || run(turns, begun)));
        catch_unwind(run)
            .map_err(|payload| FaultOf::new(self.turns.name(), Cause::Panic(panic_message(&*payload))))
    }

    #[cold]
    fn roll_back(&mut self) {
        self.begun = None;
        // A destructor that panics now cannot be told from the fault that led here.
        let _ = self.during(|turns, _| turns.give_up());
        if let Some(transaction) = &mut self.transaction {
            transaction.roll_back();
        }
    }
}

impl<I, T: Turns<I>> Drop for InHand<I, T> {
    fn drop(&mut self) {
        if self.begun.is_some() {
            self.roll_back();
        }
    }
}

/// A fault if the store refuses what the message has written.
#[inline]
fn publish<I>(turns: &impl Turns<I>, drive: &Drive, position: Option<Position>) -> Result<(), Fault> {
    match drive.publish(position) {
        Ok(Published::Whole) => Ok(()),
        Ok(Published::Conflict) => Err(FaultOf::new(turns.name(), Cause::Conflict)),
        Err(error) => Err(FaultOf::new(turns.name(), Cause::Publish(error))),
    }
}
