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
    error::{Cause, Fault, FaultOf, panic_message},
    source::{CHUNK, Feed},
    stop::Stop,
    transaction::{self, Transaction},
};
use std::{
    future::poll_fn,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::{Context, Poll, ready},
};

/// What the routes of one flow share.
#[derive(Debug)]
pub(crate) struct Drive {
    pub(crate) stop: Stop,
}

/// Drives a source to its end, to a stop, or to the first fault.
pub(crate) async fn drive<I: Send>(
    turns: impl Turns<I>,
    feed: &mut dyn Feed<I>,
    drive: &Drive,
) -> Result<(), Fault> {
    let mut message = InHand::new(turns);
    let mut chunk = Vec::with_capacity(CHUNK);
    let mut stopped = pin!(drive.stop.stopped());
    loop {
        let next = poll_fn(|cx| {
            if stopped.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Next::Stop);
            }
            if let Poll::Ready(filled) = feed.poll_chunk(&mut chunk, cx) {
                return Poll::Ready(match filled {
                    Ok(()) if chunk.is_empty() => Next::End,
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
                let mut items = chunk.drain(..);
                poll_fn(|cx| message.poll_each(&mut items, &drive.stop, cx)).await?;
                drop(items);
                if message.turns.have_ended() {
                    return Ok(());
                }
                // A chunk asks the scheduler once: at each message it would cost more than the message.
                tokio::task::consume_budget().await;
            }
            Next::Unasked => poll_fn(|cx| message.poll_unasked(cx)).await?,
            Next::End => {
                return match message.during(|turns, _| turns.end())? {
                    true => poll_fn(|cx| message.poll_unasked(cx)).await,
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

/// The turns of a route with their transaction, which is set for each poll, also where a dropped
/// future's destructors may write.
struct InHand<I, T: Turns<I>> {
    turns: T,
    transaction: Option<Box<Transaction>>,
    /// A message is pending: set then, not for each message.
    begun: bool,
    item: PhantomData<fn(I)>,
}

impl<I, T: Turns<I>> InHand<I, T> {
    fn new(turns: T) -> Self {
        InHand { turns, transaction: Some(Box::default()), begun: false, item: PhantomData }
    }

    /// Handles message after message, each to its publication.
    #[inline]
    fn poll_each(
        &mut self,
        items: &mut impl Iterator<Item = I>,
        stop: &Stop,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Fault>> {
        self.poll(|turns, begun| {
            if *begun {
                ready!(turns.go_on(cx))?;
                *begun = false;
                publish(turns)?;
            }
            while !stop.is_set()
                && let Some(item) = items.next()
            {
                if turns.begin(item, cx)?.is_pending() {
                    *begun = true;
                    return Poll::Pending;
                }
                publish(turns)?;
            }
            Poll::Ready(Ok(()))
        })
    }

    /// Handles what the pipes have without a message, as a message of its own.
    fn poll_unasked(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        self.poll(|turns, begun| {
            *begun = true;
            ready!(turns.go_on(cx))?;
            *begun = false;
            Poll::Ready(publish(turns))
        })
    }

    /// Polls with the transaction set and panics caught. A fault rolls the message back.
    #[inline]
    fn poll(
        &mut self,
        poll: impl FnOnce(&mut T, &mut bool) -> Poll<Result<(), Fault>>,
    ) -> Poll<Result<(), Fault>> {
        let polled = self.during(poll).unwrap_or_else(|fault| Poll::Ready(Err(fault)));
        if matches!(polled, Poll::Ready(Err(_))) {
            self.roll_back();
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

    #[cold]
    fn roll_back(&mut self) {
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

/// Makes visible what the message has written; a fault if the store refuses it.
#[inline]
fn publish<I>(turns: &impl Turns<I>) -> Result<(), Fault> {
    transaction::publish().map_err(|error| FaultOf::new(turns.name(), Cause::Publish(error)))
}
