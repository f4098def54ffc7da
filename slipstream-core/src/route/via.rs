//! How a source's item becomes what a handler takes: by a conversion, or through pipes.
use super::{drive::Drive, mounting::Mounted, turn::Turn, turns::Alone};
use crate::{
    BoxError,
    error::{Cause, Fault, FaultOf},
    pipe::{Flowed, Piped, Pipes},
    source::{Chunk, Feed},
};
use futures::future::BoxFuture;
use std::{
    any::Any,
    sync::Arc,
    task::{Context, Poll, ready},
};

/// A handler that is mounted on a source of `I`.
pub(crate) trait MountedOn<C, I>: Send + Sync {
    /// Runs as the only handler of the source.
    fn run_alone<'a>(
        &'a self,
        context: &'a C,
        feed: &'a mut dyn Feed<I>,
        drive: &'a Drive,
    ) -> BoxFuture<'a, Result<(), Fault>>;
    /// Prepares to run as one of several.
    fn turn<'a>(&'a self, context: &'a C) -> Box<dyn Turn<I> + 'a>;
}

/// By a conversion.
pub(crate) struct Via<F, C, M> {
    pub(crate) take: F,
    pub(crate) handler: Arc<dyn Mounted<C, M>>,
}

impl<F, C: 'static, M: 'static> Via<F, C, M> {
    /// The handler itself where it takes an `I` as it is: it needs no detour per message. Only one
    /// conversion is from a type to itself, and that one does nothing.
    fn direct<I: 'static>(&self) -> Option<&Arc<dyn Mounted<C, I>>> {
        (&self.handler as &dyn Any).downcast_ref()
    }
}

impl<C, I, M, F> MountedOn<C, I> for Via<F, C, M>
where
    C: Send + Sync + 'static,
    I: Clone + Send + 'static,
    M: Send + 'static,
    F: Fn(I) -> Result<M, BoxError> + Send + Sync,
{
    fn run_alone<'a>(
        &'a self,
        context: &'a C,
        feed: &'a mut dyn Feed<I>,
        drive: &'a Drive,
    ) -> BoxFuture<'a, Result<(), Fault>> {
        if let Some(handler) = self.direct() {
            return handler.run_alone(context, feed, drive);
        }
        Box::pin(async move {
            let name = self.handler.name();
            let mut feed = Taken { feed, take: &self.take, name, chunk: Chunk::new(), refused: None };
            self.handler.run_alone(context, &mut feed, drive).await
        })
    }
    fn turn<'a>(&'a self, context: &'a C) -> Box<dyn Turn<I> + 'a> {
        match self.direct() {
            Some(handler) => handler.turn(context),
            None => Box::new(TurnVia { take: &self.take, turn: self.handler.turn(context) }),
        }
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
        chunk.as_of = self.chunk.as_of;
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
    fn keep(&mut self, keep: bool) {
        self.feed.keep(keep);
    }
    fn again(&mut self, at: usize) -> Option<Result<M, Fault>> {
        let item = self.feed.again(at)?;
        let taken = |item| (self.take)(item).map_err(|error| FaultOf::new(self.name, Cause::Item(error)));
        Some(item.and_then(taken))
    }
}

/// A handler of `M` as one of `I`.
struct TurnVia<'a, F, M> {
    take: &'a F,
    turn: Box<dyn Turn<M> + 'a>,
}

impl<I, M, F> Turn<I> for TurnVia<'_, F, M>
where
    F: Fn(I) -> Result<M, BoxError> + Sync,
{
    #[inline]
    fn begin(&mut self, item: I, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        match (self.take)(item) {
            Ok(item) => self.turn.begin(item, cx),
            Err(error) => Poll::Ready(Err(FaultOf::new(self.turn.name(), Cause::Item(error)))),
        }
    }
    fn go_on(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        self.turn.go_on(cx)
    }
    #[inline]
    fn deliver(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        self.turn.deliver(cx)
    }
    fn give_up(&mut self) {
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
    fn run_alone<'a>(
        &'a self,
        context: &'a C,
        feed: &'a mut dyn Feed<I>,
        drive: &'a Drive,
    ) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(super::drive::drive(Alone::new(self.piped(context)), feed, drive))
    }
    fn turn<'a>(&'a self, context: &'a C) -> Box<dyn Turn<I> + 'a> {
        Box::new(self.piped(context))
    }
}

impl<I: Send + 'static, J, F, C, M> PipedVia<I, J, F, C, M> {
    fn piped<'a>(&'a self, context: &'a C) -> PipedTurn<'a, I, J, F, M> {
        let turn = self.handler.turn(context);
        PipedTurn { pipe: Piped::new(&self.pipes), take: &self.take, turn, state: State::Pipe }
    }
}

/// A handler behind pipes: a message may bring it no item, one or several.
struct PipedTurn<'a, I, J, F, M> {
    pipe: Piped<I, J>,
    take: &'a F,
    turn: Box<dyn Turn<M> + 'a>,
    state: State<J>,
}

/// From where the handler's next item comes.
enum State<J> {
    /// From the pipe, if it gives one for the message.
    Pipe,
    /// The pipe gave this, and no message is in hand.
    Unasked(J),
    /// The handler is still at work on the one before.
    Handler,
}

impl<I, J, M, F> PipedTurn<'_, I, J, F, M>
where
    I: Send + 'static,
    F: Fn(J) -> Result<M, BoxError>,
{
    /// Handles all that the pipe gives, until it asks for the next message.
    #[inline]
    fn flow(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        while let Flowed::Gave(given) = ready!(self.pipe.poll(cx)) {
            ready!(self.hand_over(given, cx))?;
        }
        Poll::Ready(Ok(()))
    }
    #[inline]
    fn hand_over(&mut self, given: J, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        let item = (self.take)(given);
        let item = item.map_err(|error| FaultOf::new(self.turn.name(), Cause::Item(error)))?;
        let polled = self.turn.begin(item, cx)?;
        if polled.is_pending() {
            self.state = State::Handler;
        }
        polled.map(Ok)
    }
}

impl<I, J, M, F> Turn<I> for PipedTurn<'_, I, J, F, M>
where
    I: Send + 'static,
    J: Send,
    F: Fn(J) -> Result<M, BoxError> + Sync,
{
    fn begin(&mut self, item: I, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        self.pipe.put(item, cx);
        self.flow(cx)
    }
    fn go_on(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        if let State::Handler = self.state {
            ready!(self.turn.go_on(cx))?;
        }
        if let State::Unasked(given) = std::mem::replace(&mut self.state, State::Pipe) {
            ready!(self.hand_over(given, cx))?;
        }
        self.flow(cx)
    }
    fn deliver(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        self.turn.deliver(cx)
    }
    fn poll_unasked(&mut self, cx: &mut Context<'_>) -> bool {
        if let State::Pipe = self.state
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
        self.pipe.has_ended() && matches!(self.state, State::Pipe)
    }
    fn give_up(&mut self) {
        self.state = State::Pipe;
        self.turn.give_up();
    }
    fn name(&self) -> &'static str {
        self.turn.name()
    }
}
