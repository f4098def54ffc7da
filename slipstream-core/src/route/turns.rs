//! The handlers of one source, for a message at a time: one alone, with static calls, or several.
//!
//! ```text
//! message ──▶ handler 1 … n, each with the sinks inside ──▶ the sinks outside of 1 … n
//! ```
//!
//! Invariants: no output goes outside before all handlers of the message are done; each handler but
//! the last has a copy of the item; a message that is never pending is handled by
//! [`begin`](Turns::begin) alone, and leaves no trace here.
use super::turn::Turn;
use crate::error::Fault;
use std::task::{Context, Poll, ready};

/// All handlers of a source of `I`.
pub(crate) trait Turns<I>: Send {
    /// Begins a message, and goes on as far as it gets.
    fn begin(&mut self, item: I, cx: &mut Context<'_>) -> Poll<Result<(), Fault>>;
    /// Goes on with a message that was pending; without one, with what the pipes have of themselves.
    fn go_on(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>>;
    /// Whether a pipe has something to handle that no message brought. All are asked, so that each
    /// has a waker.
    fn poll_unasked(&mut self, cx: &mut Context<'_>) -> bool;
    /// The source has ended. Whether a pipe may still have something to handle.
    fn end(&mut self) -> bool;
    /// Whether all pipes have ended, so that no message reaches a handler any more.
    fn have_ended(&self) -> bool;
    /// Drops whatever is not finished.
    fn give_up(&mut self);
    /// The handler that is at work; the first one between two messages.
    fn name(&self) -> &'static str;
}

/// The only handler of a source: the item is its own.
pub(crate) struct Alone<T> {
    turn: T,
    /// Its sinks outside are what is waited for.
    delivers: bool,
}

impl<T> Alone<T> {
    pub(crate) fn new(turn: T) -> Self {
        Alone { turn, delivers: false }
    }
    #[inline]
    fn deliver<I>(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>>
    where
        T: Turn<I>,
    {
        self.delivers = self.turn.deliver(cx)?.is_pending();
        if self.delivers { Poll::Pending } else { Poll::Ready(Ok(())) }
    }
}

impl<I, T: Turn<I>> Turns<I> for Alone<T> {
    #[inline]
    fn begin(&mut self, item: I, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        ready!(self.turn.begin(item, cx))?;
        self.deliver(cx)
    }
    fn go_on(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        if !self.delivers {
            ready!(self.turn.go_on(cx))?;
        }
        self.deliver(cx)
    }
    fn poll_unasked(&mut self, cx: &mut Context<'_>) -> bool {
        self.turn.poll_unasked(cx)
    }
    fn end(&mut self) -> bool {
        self.turn.end()
    }
    fn have_ended(&self) -> bool {
        self.turn.has_ended()
    }
    fn give_up(&mut self) {
        self.delivers = false;
        self.turn.give_up();
    }
    fn name(&self) -> &'static str {
        self.turn.name()
    }
}

/// Several handlers: which ones is known when the flow starts, so their calls are dynamic.
pub(crate) struct Several<'a, I> {
    turns: Vec<Box<dyn Turn<I> + 'a>>,
    /// What those that have not begun will take, while one before them is pending.
    item: Option<I>,
    /// First each handler is called, then each delivers: counts both. Zero between two messages.
    at: usize,
}

impl<'a, I> Several<'a, I> {
    pub(crate) fn new(turns: Vec<Box<dyn Turn<I> + 'a>>) -> Self {
        Several { turns, item: None, at: 0 }
    }
    #[inline]
    fn deliver(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        let called = self.turns.len();
        for turn in self.turns.iter_mut().skip(self.at - called) {
            ready!(turn.deliver(cx))?;
            self.at += 1;
        }
        self.at = 0;
        Poll::Ready(Ok(()))
    }
}

impl<I: Clone + Send> Turns<I> for Several<'_, I> {
    #[inline]
    fn begin(&mut self, item: I, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
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
        if let Some(pending) = self.turns.get_mut(self.at) {
            ready!(pending.go_on(cx))?;
            self.at += 1;
        }
        let count = self.turns.len();
        while let Some(turn) = self.turns.get_mut(self.at) {
            let item = if self.at + 1 == count { self.item.take() } else { self.item.clone() };
            ready!(match item {
                Some(item) => turn.begin(item, cx),
                None => turn.go_on(cx),
            })?;
            self.at += 1;
        }
        self.deliver(cx)
    }
    fn poll_unasked(&mut self, cx: &mut Context<'_>) -> bool {
        self.turns.iter_mut().fold(false, |any, turn| any | turn.poll_unasked(cx))
    }
    fn end(&mut self) -> bool {
        self.turns.iter_mut().fold(false, |any, turn| any | turn.end())
    }
    fn have_ended(&self) -> bool {
        self.turns.iter().all(|turn| turn.has_ended())
    }
    fn give_up(&mut self) {
        self.item = None;
        self.at = 0;
        self.turns.iter_mut().for_each(|turn| turn.give_up());
    }
    fn name(&self) -> &'static str {
        let delivering = self.at.checked_sub(self.turns.len());
        self.turns.get(delivering.unwrap_or(self.at)).map_or("", |turn| turn.name())
    }
}
