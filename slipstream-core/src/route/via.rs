//! How a source's item becomes what a handler takes: by a conversion, or through pipes.
use super::{
    drive::{Drive, TurnOn},
    mounting::Mounted,
    turn::Turn,
};
use crate::{
    BoxError,
    error::{Cause, Fault, FaultOf},
    pipe::{Flowed, Piped, Pipes},
    source::{Chunk, Feed},
};
use futures::future::BoxFuture;
use std::{
    sync::Arc,
    task::{Context, Poll, ready},
};

/// A handler that is mounted on a source of `I`.
pub(crate) trait MountedOn<C, I>: Send + Sync {
    /// Whether a pipe lies between, so that it cannot run alone.
    fn is_piped(&self) -> bool;
    /// Runs as the only handler of the source.
    fn run_alone<'a>(
        &'a self,
        context: &'a C,
        feed: &'a mut dyn Feed<I>,
        drive: &'a Drive,
    ) -> BoxFuture<'a, Result<(), Fault>>;
    /// Prepares to run as one of several.
    fn turn<'a>(&'a self, context: &'a C) -> Box<dyn TurnOn<I> + 'a>;
}

/// By a conversion.
pub(crate) struct Via<F, C, M> {
    pub(crate) take: F,
    pub(crate) handler: Arc<dyn Mounted<C, M>>,
}

impl<C, I, M, F> MountedOn<C, I> for Via<F, C, M>
where
    C: Send + Sync + 'static,
    I: Clone + Send + 'static,
    M: Send + 'static,
    F: Fn(I) -> Result<M, BoxError> + Send + Sync,
{
    fn is_piped(&self) -> bool {
        false
    }
    fn run_alone<'a>(
        &'a self,
        context: &'a C,
        feed: &'a mut dyn Feed<I>,
        drive: &'a Drive,
    ) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(async move {
            let name = self.handler.name();
            let mut feed = Taken { feed, take: &self.take, name, chunk: Chunk::new(), refused: None };
            self.handler.run_alone(context, &mut feed, drive).await
        })
    }
    fn turn<'a>(&'a self, context: &'a C) -> Box<dyn TurnOn<I> + 'a> {
        Box::new(TurnVia { take: &self.take, turn: self.handler.turn(context), begun: false })
    }
}

/// A source of `I` as one of `M`, converted a chunk at a time.
struct Taken<'a, I, F> {
    feed: &'a mut dyn Feed<I>,
    take: &'a F,
    name: &'static str,
    chunk: Chunk<I>,
    /// Stands after the items of the chunk before.
    refused: Option<Fault>,
}

impl<I: Send, M, F: Fn(I) -> Result<M, BoxError> + Sync> Feed<M> for Taken<'_, I, F> {
    fn poll_chunk(&mut self, chunk: &mut Chunk<M>, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        if let Some(fault) = self.refused.take() {
            return Poll::Ready(Err(fault));
        }
        ready!(self.feed.poll_chunk(&mut self.chunk, cx))?;
        chunk.positions.append(&mut self.chunk.positions);
        for item in self.chunk.items.drain(..) {
            match (self.take)(item) {
                Ok(item) => chunk.items.push(item),
                Err(error) => {
                    self.refused = Some(FaultOf::new(self.name, Cause::Item(error)));
                    break;
                }
            }
        }
        match self.refused.take_if(|_| chunk.items.is_empty()) {
            Some(fault) => Poll::Ready(Err(fault)),
            None => Poll::Ready(Ok(())),
        }
    }
}

/// One of several handlers.
struct TurnVia<'a, F, M> {
    take: &'a F,
    turn: Box<dyn Turn<M> + 'a>,
    begun: bool,
}

impl<I: Clone, M, F> TurnOn<I> for TurnVia<'_, F, M>
where
    F: Fn(I) -> Result<M, BoxError> + Sync,
{
    #[inline]
    fn poll_call(
        &mut self,
        item: &mut Option<I>,
        last: bool,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Fault>> {
        let item = if self.begun {
            None
        } else {
            // Nothing to take: a pipe of another handler has something that no message brought.
            let Some(item) = (if last { item.take() } else { item.clone() }) else {
                return Poll::Ready(Ok(()));
            };
            match (self.take)(item) {
                Ok(item) => Some(item),
                Err(error) => return Poll::Ready(Err(FaultOf::new(self.turn.name(), Cause::Item(error)))),
            }
        };
        let polled = self.turn.poll_call(item, cx);
        self.begun = polled.is_pending();
        polled
    }
    #[inline]
    fn poll_deliver(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        self.turn.poll_deliver(cx)
    }
    fn give_up(&mut self) {
        self.begun = false;
        self.turn.give_up();
    }
    fn name(&self) -> &'static str {
        self.turn.name()
    }
}

/// Through pipes that make a `J` of it.
pub(crate) struct PipedVia<I, J, F, C, M> {
    pub(crate) pipes: Pipes<I, J>,
    pub(crate) take: F,
    pub(crate) handler: Arc<dyn Mounted<C, M>>,
}

impl<C, I, J, M, F> MountedOn<C, I> for PipedVia<I, J, F, C, M>
where
    C: Send + Sync + 'static,
    I: Clone + Send + 'static,
    J: Send + 'static,
    M: Send + 'static,
    F: Fn(J) -> Result<M, BoxError> + Send + Sync,
{
    fn is_piped(&self) -> bool {
        true
    }
    fn run_alone<'a>(
        &'a self,
        context: &'a C,
        feed: &'a mut dyn Feed<I>,
        drive: &'a Drive,
    ) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(super::drive::drive([self.turn(context)], feed, drive))
    }
    fn turn<'a>(&'a self, context: &'a C) -> Box<dyn TurnOn<I> + 'a> {
        let turn = self.handler.turn(context);
        Box::new(PipedTurn { pipe: Piped::new(&self.pipes), take: &self.take, turn, state: State::Idle })
    }
}

/// A handler behind pipes: a message may bring it no item, one or several.
struct PipedTurn<'a, I, J, F, M> {
    pipe: Piped<I, J>,
    take: &'a F,
    turn: Box<dyn Turn<M> + 'a>,
    state: State<J>,
}

enum State<J> {
    /// No message is in hand.
    Idle,
    /// None is, but the pipe gave this.
    Unasked(J),
    /// The pipe is at work on the message.
    Flowing,
    /// The handler is.
    Handling,
}

impl<I, J, M, F> TurnOn<I> for PipedTurn<'_, I, J, F, M>
where
    I: Clone + Send + 'static,
    J: Send,
    F: Fn(J) -> Result<M, BoxError> + Sync,
{
    fn poll_call(
        &mut self,
        item: &mut Option<I>,
        last: bool,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Fault>> {
        loop {
            let given = match std::mem::replace(&mut self.state, State::Flowing) {
                State::Handling => {
                    self.state = State::Handling;
                    ready!(self.turn.poll_call(None, cx))?;
                    self.state = State::Flowing;
                    continue;
                }
                State::Unasked(given) => given,
                State::Idle => {
                    if let Some(item) = if last { item.take() } else { item.clone() } {
                        self.pipe.put(item, cx);
                    }
                    continue;
                }
                State::Flowing => match ready!(self.pipe.poll(cx)) {
                    Flowed::Gave(given) => given,
                    Flowed::Asks | Flowed::Ended => {
                        self.state = State::Idle;
                        return Poll::Ready(Ok(()));
                    }
                },
            };
            let taken =
                (self.take)(given).map_err(|error| FaultOf::new(self.turn.name(), Cause::Item(error)))?;
            self.state = State::Handling;
            ready!(self.turn.poll_call(Some(taken), cx))?;
            self.state = State::Flowing;
        }
    }
    fn poll_deliver(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        self.turn.poll_deliver(cx)
    }
    fn poll_unasked(&mut self, cx: &mut Context<'_>) -> bool {
        if let State::Idle = self.state
            && let Poll::Ready(Flowed::Gave(given)) = self.pipe.poll(cx)
        {
            self.state = State::Unasked(given);
        }
        matches!(self.state, State::Unasked(_))
    }
    fn end(&mut self) -> bool {
        self.pipe.end();
        !self.pipe.has_ended()
    }
    fn has_ended(&self) -> bool {
        self.pipe.has_ended() && matches!(self.state, State::Idle)
    }
    fn give_up(&mut self) {
        self.state = State::Idle;
        self.turn.give_up();
    }
    fn name(&self) -> &'static str {
        self.turn.name()
    }
}
