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
use super::turn::Turn;
use crate::{
    BoxError,
    commit::Commit,
    error::{Cause, Fault, FaultOf, panic_message},
    position::Position,
    source::{Chunk, Feed},
    stop::Stop,
    transaction::{self, Transaction},
};
use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
    task::{Context, Poll, ready},
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
    pub(crate) stop: Stop,
    pub(crate) commit: Commit,
}

impl Drive {
    /// Whether another message may begin.
    #[inline]
    fn may_begin(&self) -> bool {
        !self.shared.stop.is_set() && !self.shared.commit.is_full()
    }
    #[inline]
    fn publish(&self, position: Option<Position>) -> Result<(), BoxError> {
        let moved = position.map(|position| ((self.source, position.partition()), position));
        transaction::with(|current| match current {
            Some(transaction) => self.shared.commit.publish(transaction, moved),
            None => Ok(()),
        })
    }
}

/// One of the handlers on a source of `I`, one message at a time.
pub(crate) trait TurnOn<I>: Send {
    /// Begins with a copy of `item` (the item itself if `last`), or goes on: the handler, and the
    /// sinks inside.
    fn poll_call(
        &mut self,
        item: &mut Option<I>,
        last: bool,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Fault>>;
    /// When all handlers of the message are done: the sinks outside.
    fn poll_deliver(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>>;
    /// Whether its pipe has something to handle that no message brought.
    fn poll_unasked(&mut self, cx: &mut Context<'_>) -> bool {
        let _ = cx;
        false
    }
    /// The source has ended. Whether its pipe may still have something to handle.
    fn end(&mut self) -> bool {
        false
    }
    /// Whether its pipe has ended, so that no message reaches it any more.
    fn has_ended(&self) -> bool {
        false
    }
    /// Drops whatever is not finished.
    fn give_up(&mut self);
    /// The handler's name.
    fn name(&self) -> &'static str;
}

impl<I, T: TurnOn<I> + ?Sized> TurnOn<I> for Box<T> {
    #[inline]
    fn poll_call(
        &mut self,
        item: &mut Option<I>,
        last: bool,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Fault>> {
        (**self).poll_call(item, last, cx)
    }
    #[inline]
    fn poll_deliver(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        (**self).poll_deliver(cx)
    }
    fn poll_unasked(&mut self, cx: &mut Context<'_>) -> bool {
        (**self).poll_unasked(cx)
    }
    fn end(&mut self) -> bool {
        (**self).end()
    }
    fn has_ended(&self) -> bool {
        (**self).has_ended()
    }
    fn give_up(&mut self) {
        (**self).give_up();
    }
    fn name(&self) -> &'static str {
        (**self).name()
    }
}

/// The only handler of a source, without a pipe: the item is its own.
struct Only<T>(T);

impl<M, T: Turn<M>> TurnOn<M> for Only<T> {
    #[inline]
    fn poll_call(&mut self, item: &mut Option<M>, _: bool, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        self.0.poll_call(item.take(), cx)
    }
    #[inline]
    fn poll_deliver(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        self.0.poll_deliver(cx)
    }
    fn give_up(&mut self) {
        self.0.give_up();
    }
    fn name(&self) -> &'static str {
        self.0.name()
    }
}

/// Drives a source that one handler reads.
pub(crate) async fn drive_alone<M: Send>(
    turn: impl Turn<M>,
    feed: &mut dyn Feed<M>,
    drive: &Drive,
) -> Result<(), Fault> {
    self::drive([Only(turn)], feed, drive).await
}

/// Drives a source to its end, to a stop, or to the first fault.
pub(crate) async fn drive<I: Send, T: TurnOn<I>>(
    turns: impl AsMut<[T]> + Send,
    feed: &mut dyn Feed<I>,
    drive: &Drive,
) -> Result<(), Fault> {
    let mut message = InHand::new(turns);
    let mut chunk = Chunk::new();
    let Shared { stop, commit } = &*drive.shared;
    let mut stopped = pin!(stop.stopped());
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
            match message.during(|turns| turns.poll_unasked(cx)) {
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
                let mut ended = false;
                while items.len() > 0 && !stop.is_set() {
                    let handled = poll_fn(|cx| {
                        message.poll(|turns| {
                            while turns.has_begun()
                                || (drive.may_begin() && turns.begin(items.next(), positions.next()))
                            {
                                ready!(turns.poll(drive, cx))?;
                            }
                            ended = turns.have_ended();
                            Poll::Ready(Ok(()))
                        })
                    });
                    handled.await?;
                    if commit.is_full() {
                        commit.room(stop).await;
                    }
                }
                drop((items, positions));
                if ended {
                    return Ok(());
                }
                // A chunk asks the scheduler once: at each message it would cost more than the message.
                tokio::task::consume_budget().await;
            }
            Next::Unasked => message.handle_unasked(drive).await?,
            Next::End => {
                return if message.during(Turns::end)? {
                    message.handle_unasked(drive).await
                } else {
                    Ok(())
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

/// The handlers of one source, and the message they have in hand.
struct Turns<L, I> {
    turns: L,
    item: Option<I>,
    position: Option<Position>,
    begun: bool,
    /// First each handler is called, then each delivers: counts both.
    at: usize,
}

impl<L, I> Turns<L, I> {
    #[inline]
    fn has_begun(&self) -> bool {
        self.begun
    }
    /// Takes the next message; false if there is none.
    #[inline]
    fn begin(&mut self, item: Option<I>, position: Option<Position>) -> bool {
        self.item = item;
        self.position = position;
        self.begun = self.item.is_some();
        self.at = 0;
        self.begun
    }
    /// Goes on with the message, up to its publication. A fault rolls it back.
    #[inline]
    fn poll<T: TurnOn<I>>(&mut self, drive: &Drive, cx: &mut Context<'_>) -> Poll<Result<(), Fault>>
    where
        L: AsMut<[T]>,
    {
        let turns = self.turns.as_mut();
        let count = turns.len();
        while let Some(turn) = turns.get_mut(self.at) {
            // Each handler but the last has a copy; the item is gone when the last has begun.
            let last = self.at + 1 == count;
            ready!(turn.poll_call(&mut self.item, last, cx))?;
            self.at += 1;
        }
        while let Some(turn) = turns.get_mut(self.at - count) {
            ready!(turn.poll_deliver(cx))?;
            self.at += 1;
        }
        if let Err(error) = drive.publish(self.position) {
            let name = turns.first().map_or("", |turn| turn.name());
            return Poll::Ready(Err(FaultOf::new(name, Cause::Publish(error))));
        }
        self.begun = false;
        Poll::Ready(Ok(()))
    }
    fn poll_unasked<T: TurnOn<I>>(&mut self, cx: &mut Context<'_>) -> bool
    where
        L: AsMut<[T]>,
    {
        let mut any = false;
        for turn in self.turns.as_mut() {
            any |= turn.poll_unasked(cx); // all are asked, so that each has a waker
        }
        any
    }
    fn end<T: TurnOn<I>>(&mut self) -> bool
    where
        L: AsMut<[T]>,
    {
        let mut any = false;
        for turn in self.turns.as_mut() {
            any |= turn.end();
        }
        any
    }
    fn have_ended<T: TurnOn<I>>(&mut self) -> bool
    where
        L: AsMut<[T]>,
    {
        self.turns.as_mut().iter().all(TurnOn::has_ended)
    }
    fn give_up<T: TurnOn<I>>(&mut self)
    where
        L: AsMut<[T]>,
    {
        self.turns.as_mut().iter_mut().for_each(TurnOn::give_up);
    }
    /// The handler that was at work when a panic came through.
    fn name<T: TurnOn<I>>(&mut self) -> &'static str
    where
        L: AsMut<[T]>,
    {
        let turns = self.turns.as_mut();
        let at = if self.at < turns.len() { self.at } else { self.at - turns.len() };
        turns.get(at).or(turns.last()).map_or("", |turn| turn.name())
    }
}

/// The turns of a route with their transaction, which is set for each poll, also where a dropped
/// future's destructors may write.
struct InHand<L, I, T>
where
    L: AsMut<[T]>,
    T: TurnOn<I>,
{
    turns: Turns<L, I>,
    transaction: Option<Box<Transaction>>,
    turn: std::marker::PhantomData<fn() -> T>,
}

impl<L, I, T> InHand<L, I, T>
where
    L: AsMut<[T]>,
    T: TurnOn<I>,
{
    fn new(turns: L) -> Self {
        let turns = Turns { turns, item: None, position: None, begun: false, at: 0 };
        InHand { turns, transaction: Some(Box::default()), turn: std::marker::PhantomData }
    }

    /// Polls with the transaction set and panics caught. A fault rolls the message back.
    #[inline]
    fn poll(
        &mut self,
        poll: impl FnOnce(&mut Turns<L, I>) -> Poll<Result<(), Fault>>,
    ) -> Poll<Result<(), Fault>> {
        let polled = self.during(poll).unwrap_or_else(|fault| Poll::Ready(Err(fault)));
        if matches!(polled, Poll::Ready(Err(_))) {
            self.roll_back();
        }
        polled
    }

    #[inline]
    fn during<R>(&mut self, run: impl FnOnce(&mut Turns<L, I>) -> R) -> Result<R, Fault> {
        let turns = &mut self.turns;
        let run = AssertUnwindSafe(|| transaction::during(&mut self.transaction, || run(turns)));
        catch_unwind(run)
            .map_err(|payload| FaultOf::new(self.turns.name(), Cause::Panic(panic_message(&*payload))))
    }

    /// Handles what the pipes have without a message, as a message of its own.
    async fn handle_unasked(&mut self, drive: &Drive) -> Result<(), Fault>
    where
        I: Send,
    {
        // Its position is that of the last item that the pipe took, which has been published.
        self.turns.begin(None, None);
        self.turns.begun = true;
        poll_fn(|cx| self.poll(|turns| turns.poll(drive, cx))).await
    }

    #[cold]
    fn roll_back(&mut self) {
        // A destructor that panics now cannot be told from the fault that led here.
        let _ = self.during(Turns::give_up);
        if let Some(transaction) = &mut self.transaction {
            transaction.roll_back();
        }
    }
}

impl<L, I, T> Drop for InHand<L, I, T>
where
    L: AsMut<[T]>,
    T: TurnOn<I>,
{
    fn drop(&mut self) {
        if self.turns.begun {
            self.roll_back();
        }
    }
}
