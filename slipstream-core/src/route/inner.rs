//! Handling inside of a message: what a handler gave to a channel, or changed in a cache that has
//! handlers, is handled before the next handler of the message begins, and what that gives out before
//! anything else.
//!
//! ```text
//! message ─▶ A ─▶ gives c1, c2 ─▶ stack: c2 c1◀top ─▶ B(c1) ─▶ gives d1 ─▶ stack: c2 c1 d1◀top ─▶ …
//! ```
//!
//! Each task that reads a source has turns of its own here, since it has one message in hand and
//! others have others.
//!
//! Invariants: depth first, and of one handler's gifts the first before the second; an item is dropped
//! when all its handlers have seen it; nothing is left when the message is done.
use super::{turn::Turn, via::MountedOn};
use crate::{
    error::{Cause, Fault, FaultOf},
    given::{Given, Queue, Receiver, ReceiverId},
    on_error::Verdict,
    transaction,
};
use std::{
    any::Any,
    sync::Arc,
    task::{Context, Poll, ready},
};

/// The handlers of a channel or a cache, shared by all tasks of a flow.
pub(crate) trait InnerRoute<C>: Send + Sync {
    /// Turns for one task.
    fn prepare<'a>(&'a self, context: &'a C) -> Box<dyn Within + 'a>;
}

/// Those of items `I`.
pub(crate) struct InnerRouteOf<C, I> {
    /// The channel or cache as the attribute names it.
    pub(crate) origin: Arc<str>,
    pub(crate) receives: Arc<dyn Receiver<I>>,
    pub(crate) handlers: Arc<[Box<dyn MountedOn<C, I>>]>,
}

impl<C: Send + Sync + 'static, I: Clone + Send + Sync + 'static> InnerRoute<C> for InnerRouteOf<C, I> {
    fn prepare<'a>(&'a self, context: &'a C) -> Box<dyn Within + 'a> {
        let mut turns: Vec<_> = self.handlers.iter().map(|handler| handler.turn(context, false)).collect();
        // A message runs again with what was given to it then, so pipes need to remember.
        turns.iter_mut().for_each(|turn| turn.keep(true));
        Box::new(Receiving {
            origin: &self.origin,
            receives: &*self.receives,
            raw: self.receives.queue(),
            items: Vec::new(),
            turns,
        })
    }
}

/// The turns of one channel or cache, its items' type forgotten.
pub(crate) trait Within: Send {
    fn origin(&self) -> &Arc<str>;
    fn handlers(&self) -> usize;
    /// The place in the transaction for what is given to it.
    fn place(&self) -> (ReceiverId, Box<dyn Queue>);
    /// Takes the last item of the place in the transaction.
    fn receive(&mut self, queue: &mut dyn Any);
    /// Makes an item of what was received last, for this handler and those after it.
    fn make(&mut self, handler: usize) -> Result<(), Fault>;
    /// Begins with the item on top.
    fn begin(&mut self, handler: usize, retries: bool, cx: &mut Context<'_>) -> Poll<Result<(), Fault>>;
    fn go_on(&mut self, handler: usize, cx: &mut Context<'_>) -> Poll<Result<(), Fault>>;
    /// Handles once more what its pipe had of itself.
    fn again(&mut self, handler: usize, cx: &mut Context<'_>) -> Poll<Result<(), Fault>>;
    /// All its handlers have seen the item on top.
    fn drop_item(&mut self);
    /// None of its handlers could have an item of what was received last.
    fn drop_received(&mut self);
    fn deliver(&mut self, handler: usize, cx: &mut Context<'_>) -> Poll<Result<(), Fault>>;
    fn failed(&mut self, handler: usize, fault: &FaultOf) -> Verdict;
    fn mends(&self) -> bool;
    fn poll_unasked(&mut self, cx: &mut Context<'_>) -> bool;
    fn last(&mut self) -> bool;
    fn end(&mut self, handler: usize);
    fn give_up(&mut self);
    fn name(&self, handler: usize) -> &'static str;
}

struct Receiving<'a, I> {
    origin: &'a Arc<str>,
    receives: &'a dyn Receiver<I>,
    /// Received, and no handler has begun.
    raw: Box<dyn Queue>,
    /// Being handled, the newest last.
    items: Vec<I>,
    turns: Vec<Box<dyn Turn<I> + 'a>>,
}

impl<I: Clone + Send> Within for Receiving<'_, I> {
    fn origin(&self) -> &Arc<str> {
        self.origin
    }
    fn handlers(&self) -> usize {
        self.turns.len()
    }
    fn place(&self) -> (ReceiverId, Box<dyn Queue>) {
        (self.receives.id(), self.receives.queue())
    }
    fn receive(&mut self, queue: &mut dyn Any) {
        self.receives.take_last(queue, self.raw.as_any());
    }
    fn make(&mut self, handler: usize) -> Result<(), Fault> {
        let made = self.receives.item(self.raw.as_any()).transpose();
        let made = made.map_err(|error| FaultOf::new(self.name(handler), Cause::Item(error)))?;
        self.items.extend(made);
        Ok(())
    }
    fn begin(&mut self, handler: usize, retries: bool, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        let (Some(turn), item) = (self.turns.get_mut(handler), self.items.last().cloned()) else {
            return Poll::Ready(Ok(()));
        };
        match item {
            _ if retries => turn.retry(item, cx),
            Some(item) => turn.begin(item, cx),
            None => Poll::Ready(Ok(())),
        }
    }
    fn go_on(&mut self, handler: usize, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        self.turns.get_mut(handler).map_or(Poll::Ready(Ok(())), |turn| turn.go_on(cx))
    }
    fn again(&mut self, handler: usize, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        self.turns.get_mut(handler).map_or(Poll::Ready(Ok(())), |turn| turn.again(None, cx))
    }
    fn drop_item(&mut self) {
        self.items.pop();
    }
    fn drop_received(&mut self) {
        self.raw.drop_last();
    }
    fn deliver(&mut self, handler: usize, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        self.turns.get_mut(handler).map_or(Poll::Ready(Ok(())), |turn| turn.deliver(cx))
    }
    fn failed(&mut self, handler: usize, fault: &FaultOf) -> Verdict {
        self.turns.get_mut(handler).map_or(Verdict::Stop, |turn| turn.failed(fault))
    }
    fn mends(&self) -> bool {
        self.turns.iter().any(Turn::mends)
    }
    fn poll_unasked(&mut self, cx: &mut Context<'_>) -> bool {
        self.turns.iter_mut().fold(false, |any, turn| any | turn.poll_unasked(cx))
    }
    fn last(&mut self) -> bool {
        self.turns.iter_mut().fold(false, |any, turn| any | turn.last())
    }
    fn end(&mut self, handler: usize) {
        if let Some(turn) = self.turns.get_mut(handler) {
            turn.end();
        }
    }
    fn give_up(&mut self) {
        self.raw = self.receives.queue();
        self.items.clear();
        self.turns.iter_mut().for_each(Turn::give_up);
    }
    fn name(&self, handler: usize) -> &'static str {
        self.turns.get(handler).map_or("", |turn| turn.name())
    }
}

/// Everything that one task handles inside of its messages.
pub(crate) struct Inner<'a> {
    receivers: Vec<Box<dyn Within + 'a>>,
    /// What is being handled, the newest last.
    stack: Vec<Frame>,
    /// Where the outputs to the outside are, receiver and handler; both zero between two messages.
    delivers: (usize, usize),
    /// Something has been handled, so that there may be outputs.
    used: bool,
    /// The receivers whose pipes have something that no message brought, until it is handled.
    unasked: Vec<usize>,
    /// Those of which the last message that no item brought handled it.
    in_hand: Vec<usize>,
    /// The source has ended.
    ending: bool,
    /// How much was handled since it was last pending.
    turns: usize,
}

/// After so many handlings the other tasks have their turn: a message may give without end.
const TURNS: usize = 128;

/// One item, and how far it has come.
#[derive(Debug)]
struct Frame {
    receiver: usize,
    handler: usize,
    brings: Brings,
    state: State,
}

/// What a frame has for the handlers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Brings {
    /// What was given, as it was given.
    Received,
    /// The item that was made of it.
    Item,
    /// What their pipes have of themselves.
    Unasked,
    /// The same, once more.
    UnaskedAgain,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The handler is to begin.
    Ready,
    /// It is to begin once more.
    Retries,
    /// It has begun.
    Begun,
}

impl Frame {
    fn new(receiver: usize, brings: Brings) -> Self {
        Frame { receiver, handler: 0, brings, state: State::Ready }
    }
}

impl<'a> Inner<'a> {
    /// For the channels and caches of a flow; `None` where there are none.
    pub(crate) fn prepare<C>(routes: &'a [Arc<dyn InnerRoute<C>>], context: &'a C) -> Option<Box<Self>> {
        let receivers: Vec<_> = routes.iter().map(|route| route.prepare(context)).collect();
        if receivers.is_empty() {
            return None;
        }
        let (stack, unasked, in_hand) = (Vec::new(), Vec::new(), Vec::new());
        Some(Box::new(Inner {
            receivers,
            stack,
            delivers: (0, 0),
            used: false,
            unasked,
            in_hand,
            ending: false,
            turns: 0,
        }))
    }

    /// The places for what is given, in the same order.
    pub(crate) fn given(&self) -> Given {
        Given::new(self.receivers.iter().map(|receiver| receiver.place()))
    }

    /// Takes what was given since the last handler began, so that the first comes out on top.
    fn receive(&mut self) {
        let Inner { receivers, stack, .. } = self;
        transaction::with(|current| {
            let Some(transaction) = current else { return };
            while transaction.given.len() > 0 {
                transaction.given.take_last(|place, queue| {
                    if let Some(receiver) = receivers.get_mut(place) {
                        receiver.receive(queue);
                        stack.push(Frame::new(place, Brings::Received));
                    }
                });
            }
        });
    }

    /// The first mounted comes out on top.
    fn unasked(&mut self) {
        self.stack.extend(self.unasked.iter().rev().map(|receiver| Frame::new(*receiver, Brings::Unasked)));
        self.in_hand.append(&mut self.unasked);
    }

    /// A message that no item brought runs again.
    pub(crate) fn again(&mut self) {
        let again = self.in_hand.iter().rev();
        self.stack.extend(again.map(|receiver| Frame::new(*receiver, Brings::UnaskedAgain)));
    }

    /// Whether a handler's policy may ask for an item again.
    pub(crate) fn mends(&self) -> bool {
        self.receivers.iter().any(|receiver| receiver.mends())
    }

    /// Whether something was given since all was handled: by a sink outside.
    pub(crate) fn is_given(&self) -> bool {
        transaction::is_touched()
            && transaction::with(|current| current.is_some_and(|transaction| transaction.given.len() > 0))
    }

    /// Handles all that was given, and all that comes of it; after the last handler of the message also
    /// what the pipes have of themselves.
    pub(crate) fn handle(&mut self, is_last: bool, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        let handled = self.handle_each(is_last, cx);
        let receiver = self.stack.last().map_or(usize::MAX, |frame| frame.receiver);
        handled.map_err(|fault| self.within(fault, receiver))
    }

    /// The fault says what the handler was reading.
    fn within(&self, mut fault: Fault, receiver: usize) -> Fault {
        fault.within = self.receivers.get(receiver).map(|receiver| Arc::clone(receiver.origin()));
        fault
    }

    fn handle_each(&mut self, is_last: bool, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        if is_last && !self.unasked.is_empty() {
            self.unasked();
        }
        loop {
            // Before what its last handler gave is received: else one that feeds itself piles up.
            while let Some(frame) = self.stack.last()
                && let Some(receiver) = self.receivers.get_mut(frame.receiver)
                && frame.handler == receiver.handlers()
            {
                match frame.brings {
                    Brings::Received => receiver.drop_received(),
                    Brings::Item => receiver.drop_item(),
                    Brings::Unasked | Brings::UnaskedAgain => {}
                }
                self.stack.pop();
            }
            // A handler that has not come to its end has given nothing that counts.
            if self.stack.last().is_none_or(|frame| frame.state == State::Ready) && transaction::is_touched()
            {
                self.receive();
            }
            let Some(frame) = self.stack.last_mut() else { return Poll::Ready(Ok(())) };
            let Some(receiver) = self.receivers.get_mut(frame.receiver) else {
                return Poll::Ready(Ok(()));
            };
            self.used = true;
            if self.turns == TURNS {
                self.turns = 0;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            self.turns += 1;
            let before = std::mem::replace(&mut frame.state, State::Begun);
            ready!(match (before, frame.brings) {
                (State::Begun, _) => receiver.go_on(frame.handler, cx),
                (_, Brings::Received) => {
                    receiver.make(frame.handler)?;
                    frame.brings = Brings::Item;
                    receiver.begin(frame.handler, false, cx)
                }
                (State::Retries, _) => receiver.begin(frame.handler, true, cx),
                (State::Ready, Brings::Item) => receiver.begin(frame.handler, false, cx),
                (State::Ready, Brings::Unasked) => {
                    if self.ending {
                        receiver.end(frame.handler);
                    }
                    receiver.go_on(frame.handler, cx)
                }
                (State::Ready, Brings::UnaskedAgain) => receiver.again(frame.handler, cx),
            })?;
            frame.state = State::Ready;
            frame.handler += 1;
        }
    }

    /// The sinks outside of all that was handled.
    pub(crate) fn deliver(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        let delivered = self.deliver_each(cx);
        delivered.map_err(|fault| self.within(fault, self.delivers.0))
    }

    fn deliver_each(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        if !self.used {
            return Poll::Ready(Ok(()));
        }
        while let Some(receiver) = self.receivers.get_mut(self.delivers.0) {
            while self.delivers.1 < receiver.handlers() {
                ready!(receiver.deliver(self.delivers.1, cx))?;
                self.delivers.1 += 1;
            }
            self.delivers = (self.delivers.0 + 1, 0);
        }
        self.delivers = (0, 0);
        self.used = false;
        Poll::Ready(Ok(()))
    }

    /// What becomes of the message after a fault here.
    pub(crate) fn failed(&mut self, fault: &FaultOf) -> Verdict {
        let Some(frame) = self.stack.last() else { return Verdict::Stop };
        self.receivers
            .get_mut(frame.receiver)
            .map_or(Verdict::Stop, |receiver| receiver.failed(frame.handler, fault))
    }

    /// The handler that failed begins once more.
    pub(crate) fn retry(&mut self) {
        if let Some(frame) = self.stack.last_mut() {
            frame.state = State::Retries;
        }
    }

    pub(crate) fn poll_unasked(&mut self, cx: &mut Context<'_>) -> bool {
        self.unasked.clear();
        self.in_hand.clear();
        for (place, receiver) in self.receivers.iter_mut().enumerate() {
            if receiver.poll_unasked(cx) {
                self.unasked.push(place);
            }
        }
        !self.unasked.is_empty()
    }

    /// The source has ended: what the pipes still have is handled. Each hears of it when those before it,
    /// which may give to it, have ended.
    pub(crate) fn end(&mut self) -> bool {
        self.unasked.clear();
        self.in_hand.clear();
        self.ending = true;
        for (place, receiver) in self.receivers.iter_mut().enumerate() {
            if receiver.last() {
                self.unasked.push(place);
            }
        }
        !self.unasked.is_empty()
    }

    pub(crate) fn give_up(&mut self) {
        self.stack.clear();
        self.delivers = (0, 0);
        self.used = false;
        self.receivers.iter_mut().for_each(|receiver| receiver.give_up());
    }

    /// The handler at work.
    pub(crate) fn name(&self) -> Option<&'static str> {
        let (receiver, handler) = match self.stack.last() {
            Some(frame) => (frame.receiver, frame.handler),
            None => self.delivers,
        };
        self.receivers.get(receiver).map(|receiver| receiver.name(handler))
    }
}
