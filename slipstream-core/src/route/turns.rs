//! The handlers of one source, for a message at a time: one alone, with static calls, or several.
//!
//! ```text
//! message ──▶ handler 1, its sinks inside, what it gave to others inside of the message
//!             handler 2 … n, the same
//!             ──▶ the sinks outside of 1 … n, then those of the others
//! ```
//!
//! Invariants: no output goes outside before all handlers of the message are done; each handler but
//! the last has a copy of the item; a message that is never pending is handled by
//! [`begin`](Turns::begin) alone, and leaves no trace here.
use super::{inner::Inner, turn::Turn};
use crate::{
    error::{Fault, FaultOf},
    given::Given,
    on_error::Verdict,
    transaction,
};
use std::task::{Context, Poll, ready};

/// How a message in hand goes on that a fault has interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mend {
    /// From its start; all that it had done is undone.
    Again,
    /// With the handler that failed, once more.
    Retry,
    /// Without what that handler has done.
    Skip,
}

/// All handlers of a source of `I`.
pub(crate) trait Turns<I>: Send {
    /// Begins a message, and goes on as far as it gets.
    fn begin(&mut self, item: I, cx: &mut Context<'_>) -> Poll<Result<(), Fault>>;
    /// Goes on with a message that was pending; without one, with what the pipes have of themselves.
    fn go_on(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>>;
    /// Goes on with a message after a fault. Its item is there once more, unless no item brought it.
    fn mend(&mut self, how: Mend, item: Option<I>, cx: &mut Context<'_>) -> Poll<Result<(), Fault>>;
    /// What becomes of the message after this fault; see [`Turn::failed`].
    fn failed(&mut self, fault: &FaultOf) -> Verdict;
    /// Whether a handler's policy may ask for an item again.
    fn mends(&self) -> bool;
    /// The places for what is given inside of a message.
    fn given(&self) -> Given;
    /// Whether items are to be kept, from the next message on.
    fn keep(&mut self, keep: bool);
    /// The next messages are of this partition.
    fn select(&mut self, partition: i32);
    /// The partition goes on elsewhere.
    fn restart(&mut self, partition: i32);
    /// Whether a pipe has something to handle that no message brought. All are asked, so that each
    /// has a waker.
    fn poll_unasked(&mut self, cx: &mut Context<'_>) -> bool;
    /// The source has ended. Whether a pipe may still have something to handle.
    fn end(&mut self) -> bool;
    /// Whether all pipes of the partition have ended, so that none of its messages reaches a handler.
    fn have_ended(&self) -> bool;
    /// Drops whatever is not finished.
    fn give_up(&mut self);
    /// The handler that is at work; the first one between two messages.
    fn name(&self) -> &'static str;
}

/// The only handler of a source: the item is its own.
pub(crate) struct Alone<'a, T> {
    turn: T,
    inner: Option<Box<Inner<'a>>>,
    at: Step,
}

/// What a message of a lone handler waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The handler; also between two messages.
    Handler,
    /// What it gave to others.
    Inner,
    /// Its sinks outside.
    Outside,
    /// Those of the others.
    OutsideOfInner,
}

#[allow(clippy::inline_always, reason = "see `begin`")]
impl<'a, T> Alone<'a, T> {
    pub(crate) fn new(turn: T, inner: Option<Box<Inner<'a>>>) -> Self {
        Alone { turn, inner, at: Step::Handler }
    }

    /// The handler is done.
    #[inline(always)]
    fn called<I>(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>>
    where
        T: Turn<I>,
    {
        if self.inner.is_some() {
            return self.finish(Step::Inner, cx);
        }
        // A policy is about the handler, not about this.
        if self.turn.mends() {
            self.at = Step::Outside;
        }
        let delivered = self.turn.deliver(cx)?;
        if delivered.is_pending() {
            self.at = Step::Outside;
        } else if self.turn.mends() {
            self.at = Step::Handler;
        }
        delivered.map(Ok)
    }

    fn finish<I>(&mut self, mut step: Step, cx: &mut Context<'_>) -> Poll<Result<(), Fault>>
    where
        T: Turn<I>,
    {
        loop {
            self.at = step;
            let inner = self.inner.as_mut();
            step = match step {
                Step::Handler => return Poll::Ready(Ok(())),
                Step::Inner => {
                    ready!(inner.map_or(Poll::Ready(Ok(())), |inner| inner.handle(true, cx)))?;
                    Step::Outside
                }
                Step::Outside => {
                    ready!(self.turn.deliver(cx))?;
                    Step::OutsideOfInner
                }
                Step::OutsideOfInner => match inner {
                    None => Step::Handler,
                    Some(inner) => {
                        ready!(inner.deliver(cx))?;
                        if inner.is_given() { Step::Inner } else { Step::Handler }
                    }
                },
            };
        }
    }
}

// Always, since there are two callers, with positions and without, and a call costs as much as the message.
#[allow(clippy::inline_always, reason = "measured: half of the time of a message")]
impl<I, T: Turn<I>> Turns<I> for Alone<'_, T> {
    #[inline(always)]
    fn begin(&mut self, item: I, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        ready!(self.turn.begin(item, cx))?;
        self.called(cx)
    }
    fn go_on(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        if self.at == Step::Handler {
            ready!(self.turn.go_on(cx))?;
            return self.called(cx);
        }
        self.finish(self.at, cx)
    }
    fn mend(&mut self, how: Mend, item: Option<I>, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        match (how, &mut self.inner) {
            (Mend::Again, inner) => {
                self.at = Step::Handler;
                if item.is_none() {
                    inner.iter_mut().for_each(|inner| inner.again());
                }
                ready!(self.turn.again(item, cx))?;
            }
            (Mend::Retry, Some(inner)) if self.at == Step::Inner => {
                inner.retry();
                return self.finish(Step::Inner, cx);
            }
            (Mend::Retry, _) => ready!(self.turn.retry(item, cx))?,
            (Mend::Skip, _) => return self.go_on(cx),
        }
        self.called(cx)
    }
    fn failed(&mut self, fault: &FaultOf) -> Verdict {
        match (self.at, &mut self.inner) {
            (Step::Handler, _) => self.turn.failed(fault),
            (Step::Inner, Some(inner)) => inner.failed(fault),
            _ => Verdict::Stop,
        }
    }
    fn mends(&self) -> bool {
        self.turn.mends() || self.inner.as_ref().is_some_and(|inner| inner.mends())
    }
    fn given(&self) -> Given {
        self.inner.as_ref().map_or_else(Given::default, |inner| inner.given())
    }
    fn keep(&mut self, keep: bool) {
        self.turn.keep(keep);
    }
    fn select(&mut self, partition: i32) {
        self.turn.select(partition);
    }
    fn restart(&mut self, partition: i32) {
        self.turn.restart(partition);
    }
    fn poll_unasked(&mut self, cx: &mut Context<'_>) -> bool {
        let inner = self.inner.as_mut().is_some_and(|inner| inner.poll_unasked(cx));
        self.turn.poll_unasked(cx) | inner
    }
    fn end(&mut self) -> bool {
        let inner = self.inner.as_mut().is_some_and(|inner| inner.end());
        let any = self.turn.last() | inner;
        self.turn.end();
        any
    }
    fn have_ended(&self) -> bool {
        self.turn.has_ended()
    }
    fn give_up(&mut self) {
        self.at = Step::Handler;
        self.turn.give_up();
        if let Some(inner) = &mut self.inner {
            inner.give_up();
        }
    }
    fn name(&self) -> &'static str {
        let inner = self.inner.as_ref().filter(|_| matches!(self.at, Step::Inner | Step::OutsideOfInner));
        inner.and_then(|inner| inner.name()).unwrap_or_else(|| self.turn.name())
    }
}

/// Several handlers: which ones is known when the flow starts, so their calls are dynamic.
pub(crate) struct Several<'a, I> {
    turns: Vec<Box<dyn Turn<I> + 'a>>,
    /// All are behind pipes, which may end.
    can_end: bool,
    inner: Option<Box<Inner<'a>>>,
    /// What those that have not begun will take, while one before them is pending.
    item: Option<I>,
    /// The message runs again, from its start.
    again: bool,
    /// First each handler is called, then each delivers, then what is inside: counts all. Zero between
    /// two messages.
    at: usize,
    /// The handler before `at` is done, and what it gave to others is not.
    inside: bool,
    /// Whether somebody asks which handler is at work, and may leave some out.
    is_watched: bool,
}

impl<'a, I> Several<'a, I> {
    pub(crate) fn new(
        turns: Vec<Box<dyn Turn<I> + 'a>>,
        inner: Option<Box<Inner<'a>>>,
        is_watched: bool,
    ) -> Self {
        let can_end = turns.iter().all(Turn::is_piped);
        Several { turns, can_end, inner, item: None, again: false, at: 0, inside: false, is_watched }
    }

    /// The handler at `at` is about to begin. Answers whether the message is for it.
    fn enters(&self) -> bool {
        !self.is_watched || transaction::with_watched(|watched| watched.enter(self.at)) != Some(false)
    }

    /// The handler at `at` is done: the next one is to begin.
    #[inline]
    fn called(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        self.at += 1;
        match &mut self.inner {
            None => Poll::Ready(Ok(())),
            Some(inner) => {
                self.inside = true;
                ready!(inner.handle(self.at >= self.turns.len(), cx))?;
                self.inside = false;
                Poll::Ready(Ok(()))
            }
        }
    }

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "as for `Alone::begin`")]
    fn deliver(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        let called = self.turns.len();
        for turn in self.turns.iter_mut().skip(self.at - called) {
            ready!(turn.deliver(cx))?;
            self.at += 1;
        }
        if let Some(inner) = &mut self.inner {
            ready!(inner.deliver(cx))?;
            while inner.is_given() {
                self.inside = true;
                ready!(inner.handle(true, cx))?;
                self.inside = false;
                ready!(inner.deliver(cx))?;
            }
        }
        self.at = 0;
        Poll::Ready(Ok(()))
    }
}

impl<I: Clone + Send> Several<'_, I> {
    /// Those that have not begun, with what was put aside for them.
    fn rest(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        let count = self.turns.len();
        while self.at < count {
            let enters = self.enters();
            let Some(turn) = self.turns.get_mut(self.at) else { break };
            let item = if self.at + 1 == count { self.item.take() } else { self.item.clone() };
            ready!(match item {
                Some(_) if !enters => Poll::Ready(Ok(())),
                Some(item) if !self.again => turn.begin(item, cx),
                item if self.again && enters => turn.again(item, cx),
                _ => turn.go_on(cx),
            })?;
            ready!(self.called(cx))?;
        }
        self.again = false;
        self.item = None;
        self.deliver(cx)
    }
}

#[allow(clippy::inline_always, reason = "as for `Alone::begin`")]
impl<I: Clone + Send> Turns<I> for Several<'_, I> {
    #[inline(always)]
    fn begin(&mut self, item: I, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        if self.inner.is_some() || self.is_watched {
            self.item = Some(item);
            return self.rest(cx);
        }
        let Some((last, others)) = self.turns.split_last_mut() else { return Poll::Ready(Ok(())) };
        for turn in others {
            if turn.begin(item.clone(), cx)?.is_pending() {
                self.item = Some(item);
                return Poll::Pending;
            }
            self.at += 1;
        }
        ready!(last.begin(item, cx))?;
        self.at += 1;
        self.deliver(cx)
    }
    fn go_on(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        if self.inside {
            let is_last = self.at >= self.turns.len();
            ready!(self.inner.as_mut().map_or(Poll::Ready(Ok(())), |inner| inner.handle(is_last, cx)))?;
            self.inside = false;
        } else if let Some(pending) = self.turns.get_mut(self.at) {
            ready!(pending.go_on(cx))?;
            ready!(self.called(cx))?;
        }
        self.rest(cx)
    }
    fn mend(&mut self, how: Mend, item: Option<I>, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        match how {
            Mend::Again => {
                (self.at, self.inside, self.again) = (0, false, true);
                if item.is_none() {
                    self.inner.iter_mut().for_each(|inner| inner.again());
                }
                self.item = item;
                self.rest(cx)
            }
            Mend::Retry if self.inside => {
                self.item = item;
                if let Some(inner) = &mut self.inner {
                    inner.retry();
                }
                self.go_on(cx)
            }
            Mend::Retry => {
                self.item.clone_from(&item);
                if let Some(turn) = self.turns.get_mut(self.at) {
                    ready!(turn.retry(item, cx))?;
                    ready!(self.called(cx))?;
                }
                self.rest(cx)
            }
            Mend::Skip => {
                self.item = item;
                self.go_on(cx)
            }
        }
    }
    fn failed(&mut self, fault: &FaultOf) -> Verdict {
        match (self.turns.get_mut(self.at), &mut self.inner) {
            (_, Some(inner)) if self.inside => inner.failed(fault),
            (Some(turn), _) => turn.failed(fault),
            (None, _) => Verdict::Stop,
        }
    }
    fn mends(&self) -> bool {
        let inner = self.inner.as_ref().is_some_and(|inner| inner.mends());
        inner || self.turns.iter().any(Turn::mends)
    }
    fn given(&self) -> Given {
        self.inner.as_ref().map_or_else(Given::default, |inner| inner.given())
    }
    fn keep(&mut self, keep: bool) {
        self.turns.iter_mut().for_each(|turn| turn.keep(keep));
    }
    fn select(&mut self, partition: i32) {
        self.turns.iter_mut().for_each(|turn| turn.select(partition));
    }
    fn restart(&mut self, partition: i32) {
        for (number, turn) in self.turns.iter_mut().enumerate() {
            let restarts = transaction::peek(|transaction| {
                let watched = transaction.watched.as_ref();
                watched.is_none_or(|watched| watched.watch.restarts(partition, number))
            });
            if restarts != Some(false) {
                turn.restart(partition);
            }
        }
    }
    fn poll_unasked(&mut self, cx: &mut Context<'_>) -> bool {
        let inner = self.inner.as_mut().is_some_and(|inner| inner.poll_unasked(cx));
        self.turns.iter_mut().fold(inner, |any, turn| any | turn.poll_unasked(cx))
    }
    fn end(&mut self) -> bool {
        let inner = self.inner.as_mut().is_some_and(|inner| inner.end());
        let any = self.turns.iter_mut().fold(inner, |any, turn| any | turn.last());
        self.turns.iter_mut().for_each(Turn::end);
        any
    }
    fn have_ended(&self) -> bool {
        self.can_end && self.turns.iter().all(Turn::has_ended)
    }
    fn give_up(&mut self) {
        self.item = None;
        (self.at, self.inside, self.again) = (0, false, false);
        self.turns.iter_mut().for_each(Turn::give_up);
        if let Some(inner) = &mut self.inner {
            inner.give_up();
        }
    }
    fn name(&self) -> &'static str {
        let inner = self.inner.as_ref().filter(|_| self.inside || self.at >= 2 * self.turns.len());
        let delivering = self.at.checked_sub(self.turns.len());
        let own = || self.turns.get(delivering.unwrap_or(self.at)).map_or("", |turn| turn.name());
        inner.and_then(|inner| inner.name()).unwrap_or_else(own)
    }
}
