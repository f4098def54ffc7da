//! A handler whose policy may call it again, or go on without its part: what it does with an item can be
//! undone.
//!
//! ```text
//! begin ─▶ savepoint ─▶ the handler's turn ─▶ done: the savepoint is let go
//!              ▲                 │
//!              └── failed ◀──────┘             its rows, gifts, locks and outputs of this item are gone
//! ```
//!
//! Apart from the turn itself, so that a handler that stops the flow on its first failure, as most do, pays
//! for none of this.
//!
//! Invariant: a savepoint is there only while an item is in the handler's hands, so a fault before or after
//! that undoes nothing.
use super::turn::Turn;
use crate::{
    error::{Cause, Fault, FaultOf},
    on_error::{OnError, Verdict},
    transaction::{self, Savepoint, Transaction},
    watch::Deferred,
};
use std::task::{Context, Poll};

/// A turn that can be put back to before an item.
pub(crate) trait Undoable {
    type Output;
    /// The outputs so far, and how many of them the sinks inside have taken.
    fn outputs(&mut self) -> (&mut Vec<Self::Output>, &mut usize);
    /// Whether the handler is at work.
    fn is_calling(&self) -> bool;
    /// The handler is at work no more.
    fn drop_call(&mut self);
    fn policy(&self) -> OnError;
    /// Counts and logs an item that is given up.
    fn skipped(&self, fault: &FaultOf);
}

/// The turn `T` under a policy that mends.
pub(crate) struct Mending<T: Undoable> {
    turn: T,
    /// `None` where no item is in the handler's hands.
    savepoint: Option<Savepoint>,
    /// The outputs of the items before this one.
    before: Vec<T::Output>,
    failures: u32,
    /// Whether the handler may answer that its message is to come again.
    defers: bool,
    /// If so, how things were before the first item of the message.
    first: Option<Savepoint>,
    /// It has answered so: the message's other items are left for then.
    is_deferred: bool,
}

impl<T: Undoable> Mending<T> {
    pub(crate) fn new(turn: T, defers: bool) -> Self {
        Mending {
            turn,
            savepoint: None,
            before: Vec::new(),
            failures: 0,
            defers,
            first: None,
            is_deferred: false,
        }
    }

    /// Remembers how things are before the handler is called.
    fn remember(&mut self) {
        let savepoint = transaction::with(|current| current.map(|transaction| transaction.savepoint()));
        self.savepoint = Some(savepoint.unwrap_or_default());
        let (outputs, staged) = self.turn.outputs();
        self.before.append(outputs);
        *staged = 0;
    }

    /// The handler is done with the item, if this is ready.
    fn done(&mut self, polled: Poll<Result<(), Fault>>) -> Poll<Result<(), Fault>> {
        if matches!(polled, Poll::Ready(Ok(()))) {
            self.failures = 0;
            // Let go, since rows that are shared are copied when the next is written or all are published.
            let savepoint = self.savepoint.take();
            if self.defers && self.first.is_none() {
                self.first = savepoint;
            }
        }
        polled
    }

    /// As things were before the handler was called.
    fn undo(&mut self, savepoint: &Savepoint) {
        self.drop_part(|transaction| transaction.roll_back_to(savepoint));
    }

    fn drop_part(&mut self, roll_back: impl FnOnce(&mut Transaction)) {
        // The future goes first: it may hold on to what it has written.
        self.turn.drop_call();
        let (outputs, staged) = self.turn.outputs();
        outputs.clear();
        *staged = 0;
        transaction::with(|current| current.map(roll_back));
    }

    /// The message comes again: what the handler has done with it goes, with all of its items, but for its pulses.
    fn defer(&mut self, savepoint: &Savepoint) {
        self.is_deferred = true;
        self.before.clear();
        self.drop_part(|transaction| transaction.roll_back_but_told(savepoint));
        self.failures = 0;
    }

    /// All outputs of the message, in order.
    fn with_those_before(&mut self) {
        let (outputs, staged) = self.turn.outputs();
        self.before.append(outputs);
        std::mem::swap(&mut self.before, outputs);
        *staged = outputs.len();
    }
}

impl<M, T: Turn<M> + Undoable<Output: Send>> Turn<M> for Mending<T> {
    fn begin(&mut self, item: M, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        if self.is_deferred {
            return Poll::Ready(Ok(()));
        }
        self.remember();
        let polled = self.turn.begin(item, cx);
        self.done(polled)
    }
    fn go_on(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        if !self.turn.is_calling() {
            return Poll::Ready(Ok(()));
        }
        let polled = self.turn.go_on(cx);
        self.done(polled)
    }
    fn failed(&mut self, fault: &FaultOf) -> Verdict {
        if self.defers
            && let Some(deferred) = is_deferred(fault)
            && deferred.is_possible
            && let Some(told) = self.first.as_ref().or(self.savepoint.as_ref()).map(Savepoint::told)
            && transaction::with_watched(|watched| watched.defer(told)) == Some(true)
            && let Some(savepoint) = self.first.take().or(self.savepoint.take())
        {
            self.savepoint = None;
            self.defer(&savepoint);
            return Verdict::Skip;
        }
        // What could not be taken for an item has not been begun with: nothing of it is to be undone.
        if let Some(savepoint) = self.savepoint.take() {
            self.undo(&savepoint);
        }
        self.failures += 1;
        let verdict = self.turn.policy().verdict(self.failures);
        match verdict {
            Verdict::Skip => self.turn.skipped(fault),
            Verdict::Retry(after) => {
                tracing::warn!(handler = self.turn.name(), ?after, "failed, and is called again: {fault}");
            }
            Verdict::Stop => {}
        }
        if !matches!(verdict, Verdict::Retry(_)) {
            self.failures = 0;
        }
        verdict
    }
    fn mends(&self) -> bool {
        true
    }
    fn deliver(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        (self.first, self.is_deferred) = (None, false);
        if !self.before.is_empty() {
            self.with_those_before();
        }
        self.turn.deliver(cx)
    }
    fn give_up(&mut self) {
        self.turn.give_up();
        self.before.clear();
        self.savepoint = None;
        self.failures = 0;
        (self.first, self.is_deferred) = (None, false);
    }
    fn name(&self) -> &'static str {
        self.turn.name()
    }
}

/// Whether the handler has answered that its message is to come again.
fn is_deferred(fault: &FaultOf) -> Option<&Deferred> {
    match &fault.cause {
        Cause::Handler(error) => error.downcast_ref(),
        _ => None,
    }
}

/// One of which only this is known.
impl<M, T: Turn<M> + ?Sized> Turn<M> for Box<T> {
    fn begin(&mut self, item: M, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        (**self).begin(item, cx)
    }
    fn go_on(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        (**self).go_on(cx)
    }
    fn retry(&mut self, item: Option<M>, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        (**self).retry(item, cx)
    }
    fn again(&mut self, item: Option<M>, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        (**self).again(item, cx)
    }
    fn failed(&mut self, fault: &FaultOf) -> Verdict {
        (**self).failed(fault)
    }
    fn mends(&self) -> bool {
        (**self).mends()
    }
    fn deliver(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        (**self).deliver(cx)
    }
    fn keep(&mut self, keep: bool) {
        (**self).keep(keep);
    }
    fn select(&mut self, partition: i32) {
        (**self).select(partition);
    }
    fn restart(&mut self, partition: i32) {
        (**self).restart(partition);
    }
    fn poll_unasked(&mut self, cx: &mut Context<'_>) -> bool {
        (**self).poll_unasked(cx)
    }
    fn last(&mut self) -> bool {
        (**self).last()
    }
    fn end(&mut self) {
        (**self).end();
    }
    fn is_piped(&self) -> bool {
        (**self).is_piped()
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
