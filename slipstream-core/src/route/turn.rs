//! A handler's turn at a message: the call, the sinks inside the transaction, the sinks outside.
//! Its futures stay in one place, message after message, so nothing is boxed for a message.
//!
//! ```text
//! begin ─▶ handler ─▶ outputs ─▶ sinks inside        fails ─▶ failed: back to before `begin`, then
//!                                    ⋮                           retry, or go_on without this part
//!                               deliver ─▶ sinks outside
//! ```
use super::{mending::Undoable, mounting::Complete};
use crate::{
    BoxError, Emitter, Handler,
    error::{Cause, Fault, FaultOf},
    on_error::{OnError, Verdict},
    output::Outputs,
    sink::Sinks,
};
use std::{
    future::Future,
    pin::{Pin, pin},
    task::{Context, Poll, ready},
};

/// A handler of `M`, one message at a time.
pub(crate) trait Turn<M>: Send {
    /// Begins with an item, and goes on as far as it gets: the handler, and the sinks inside. A
    /// message may begin several items, one after the other.
    fn begin(&mut self, item: M, cx: &mut Context<'_>) -> Poll<Result<(), Fault>>;
    /// Goes on with an item that was pending; where none was, with what its pipe has of itself.
    fn go_on(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>>;
    /// Handles once more the item that it has [`failed`](Turn::failed) on, which comes with it but
    /// for one of its pipe's.
    fn retry(&mut self, item: Option<M>, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        self.again(item, cx)
    }
    /// Handles once more all that this message brought it: after [`give_up`](Turn::give_up), since the
    /// whole message runs again.
    fn again(&mut self, item: Option<M>, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        match item {
            Some(item) => self.begin(item, cx),
            None => Poll::Ready(Ok(())),
        }
    }
    /// What becomes of the message after this fault of the handler, by its policy. Unless all is to stop,
    /// what it had done with the item is undone.
    fn failed(&mut self, fault: &FaultOf) -> Verdict {
        let _ = fault;
        Verdict::Stop
    }
    /// Whether its policy may ask for an item again.
    fn mends(&self) -> bool {
        false
    }
    /// When all handlers of the message are done: the sinks outside.
    fn deliver(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>>;
    /// Whether items are to be kept for a message that runs again, from the next message on.
    fn keep(&mut self, keep: bool) {
        let _ = keep;
    }
    /// The next items are of this partition.
    fn select(&mut self, partition: i32) {
        let _ = partition;
    }
    /// The partition goes on elsewhere: what its pipe remembers is of another place.
    fn restart(&mut self, partition: i32) {
        let _ = partition;
    }
    /// Whether its pipe has something to handle that no message brought.
    fn poll_unasked(&mut self, cx: &mut Context<'_>) -> bool {
        let _ = cx;
        false
    }
    /// What is handled next is the last. Whether a pipe may still have something for it.
    fn last(&mut self) -> bool {
        false
    }
    /// Nothing more comes: its pipe hears of it.
    fn end(&mut self) {}
    /// Whether it is behind a pipe.
    fn is_piped(&self) -> bool {
        false
    }
    /// Whether the partition's pipe has ended, so that none of its messages reaches it any more.
    fn has_ended(&self) -> bool {
        false
    }
    /// Drops whatever is not finished.
    fn give_up(&mut self);
    /// The handler's name.
    fn name(&self) -> &'static str;
}

/// The futures have no names, so they are type parameters, found from the closures that make them.
struct TurnOf<'a, C, H, P, T, K, Call, Calling, Deliver, Delivering> {
    handled: &'a Complete<C, H, P, T, K>,
    call: Call,
    calling: Place<Calling>,
    outputs: Vec<T>,
    /// How many of the outputs the sinks inside have taken.
    staged: usize,
    deliver: Deliver,
    delivering: Place<Delivering>,
}

/// Prepares the turns of one handler.
pub(crate) fn turn<'a, C, H, P, T, K>(
    handled: &'a Complete<C, H, P, T, K>,
    context: &'a C,
) -> impl Turn<H::Item> + Undoable<Output = T> + 'a
where
    C: Send + Sync + 'static,
    H: Handler<C>,
    P: Outputs<H::Output, H::Emit, Item = T>,
    T: Send + Sync + 'static,
    K: Sinks<T>,
{
    TurnOf {
        handled,
        call: move |item, out| handled.handler.call(context, item, out),
        calling: Place::empty(),
        outputs: Vec::new(),
        staged: 0,
        deliver: move |outputs| send_each(&handled.sinks, outputs),
        delivering: Place::empty(),
    }
}

impl<C, H, P, T, K, Call, Calling, Deliver, Delivering> Turn<H::Item>
    for TurnOf<'_, C, H, P, T, K, Call, Calling, Deliver, Delivering>
where
    C: Sync,
    H: Handler<C>,
    P: Outputs<H::Output, H::Emit, Item = T>,
    T: Send,
    K: Sinks<T>,
    Call: Fn(H::Item, Emitter<H::Emit>) -> Calling + Send,
    Calling: Future<Output = H::Output> + Send,
    Deliver: Fn(Vec<T>) -> Delivering + Send,
    Delivering: Future<Output = (Vec<T>, Result<(), BoxError>)> + Send,
{
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "as for the caller, `Alone::begin`")]
    fn begin(&mut self, item: H::Item, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        let out = self.handled.way.emitter(&mut self.outputs);
        let calling = (self.call)(item, out);
        let returned = if H::WAITS {
            self.calling.put(calling);
            ready!(self.calling.poll(cx))
        } else {
            // A sync handler's future is ready as it comes: no place need be kept for it.
            ready!(pin!(calling).poll(cx))
        };
        Poll::Ready(self.take(returned))
    }

    fn go_on(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        if self.calling.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let returned = ready!(self.calling.poll(cx));
        Poll::Ready(self.take(returned))
    }

    #[inline]
    fn deliver(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        let Complete { sinks, name, .. } = self.handled;
        let sent = if K::WAIT {
            if self.delivering.is_empty() {
                if self.outputs.is_empty() {
                    return Poll::Ready(Ok(()));
                }
                self.delivering.put((self.deliver)(std::mem::take(&mut self.outputs)));
            }
            let (emptied, sent) = ready!(self.delivering.poll(cx));
            self.outputs = emptied;
            sent
        } else {
            let sent = self.outputs.iter().try_for_each(|output| sinks.send_now(output));
            self.outputs.clear();
            sent
        };
        self.staged = 0;
        Poll::Ready(sent.map_err(|error| FaultOf::new(name, Cause::Sink(error))))
    }

    fn give_up(&mut self) {
        self.calling.clear();
        self.delivering.clear();
        self.outputs.clear();
        self.staged = 0;
    }

    fn name(&self) -> &'static str {
        self.handled.name
    }
}

impl<C, H, P, T, K, Call, Calling, Deliver, Delivering>
    TurnOf<'_, C, H, P, T, K, Call, Calling, Deliver, Delivering>
where
    H: Handler<C>,
    P: Outputs<H::Output, H::Emit, Item = T>,
    K: Sinks<T>,
    Calling: Future,
{
    /// Takes what the handler has returned: its outputs, into the sinks inside.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "as for the caller, `begin`")]
    fn take(&mut self, returned: H::Output) -> Result<(), Fault> {
        let Complete { way, sinks, name, .. } = self.handled;
        way.give(returned, &mut self.outputs).map_err(|error| FaultOf::new(name, Cause::Handler(error)))?;
        let fresh = self.outputs.get(self.staged..).unwrap_or_default();
        let staged = fresh.iter().try_for_each(|output| sinks.stage(output));
        staged.map_err(|error| FaultOf::new(name, Cause::Sink(error)))?;
        self.staged = self.outputs.len();
        Ok(())
    }
}

impl<C, H, P, T, K, Call, Calling, Deliver, Delivering> Undoable
    for TurnOf<'_, C, H, P, T, K, Call, Calling, Deliver, Delivering>
where
    Calling: Future,
{
    type Output = T;
    fn outputs(&mut self) -> (&mut Vec<T>, &mut usize) {
        (&mut self.outputs, &mut self.staged)
    }
    fn is_calling(&self) -> bool {
        !self.calling.is_empty()
    }
    fn drop_call(&mut self) {
        self.calling.clear();
    }
    fn policy(&self) -> OnError {
        self.handled.on_error
    }
    fn skipped(&self, fault: &FaultOf) {
        self.handled.skipped(fault);
    }
}

/// Sends each output to each sink, and gives the buffer back.
async fn send_each<T, K: Sinks<T>>(sinks: &K, mut outputs: Vec<T>) -> (Vec<T>, Result<(), BoxError>) {
    for output in &outputs {
        if let Err(error) = sinks.send(output).await {
            return (Vec::new(), Err(error));
        }
    }
    outputs.clear();
    (outputs, Ok(()))
}

/// A place for one future after another: boxed once, used again for each message.
struct Place<F>(Pin<Box<Option<F>>>);

impl<F: Future> Place<F> {
    fn empty() -> Self {
        Place(Box::pin(None))
    }
    #[inline]
    fn is_empty(&self) -> bool {
        self.0.is_none()
    }
    #[inline]
    fn put(&mut self, future: F) {
        self.0.as_mut().set(Some(future));
    }
    fn clear(&mut self) {
        self.0.as_mut().set(None);
    }
    /// Pending for ever where there is none: no caller polls an empty place.
    #[inline]
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Some(future) = self.0.as_mut().as_pin_mut() else {
            debug_assert!(false, "an empty place was polled");
            return Poll::Pending;
        };
        let output = ready!(future.poll(cx));
        self.0.as_mut().set(None);
        Poll::Ready(output)
    }
}
