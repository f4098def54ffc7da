//! How a source's item becomes what a handler takes: by a conversion, or through pipes.
use super::{drive::Drive, inner::Inner, mounting::Mounted, turn::Turn, turns::Alone};
use crate::{
    BoxError,
    error::{Cause, Fault, FaultOf},
    on_error::Verdict,
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
        inner: Option<Box<Inner<'a>>>,
        drive: &'a Drive,
    ) -> BoxFuture<'a, Result<(), Fault>>;
    /// Prepares to run as one of several.
    fn turn<'a>(&'a self, context: &'a C, defers: bool) -> Box<dyn Turn<I> + 'a>;
    /// The handler's name.
    fn name(&self) -> &'static str;
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
        inner: Option<Box<Inner<'a>>>,
        drive: &'a Drive,
    ) -> BoxFuture<'a, Result<(), Fault>> {
        if let Some(handler) = self.direct() {
            return handler.run_alone(context, feed, inner, drive);
        }
        if self.handler.on_error().mends() || drive.watch.is_some() {
            // What cannot be taken for an item is then the handler's to mend; and it is taken when the message has begun.
            let turn = self.turn(context, drive.defers());
            return Box::pin(super::drive::drive(Alone::new(turn, inner), feed, drive));
        }
        Box::pin(async move {
            let name = self.handler.name();
            let mut feed = Taken { feed, take: &self.take, name, chunk: Chunk::new(), refused: None };
            self.handler.run_alone(context, &mut feed, inner, drive).await
        })
    }
    fn turn<'a>(&'a self, context: &'a C, defers: bool) -> Box<dyn Turn<I> + 'a> {
        match self.direct() {
            Some(handler) => handler.turn(context, defers),
            None => Box::new(TurnVia { take: &self.take, turn: self.handler.turn(context, defers) }),
        }
    }
    fn name(&self) -> &'static str {
        self.handler.name()
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

impl<F, M> TurnVia<'_, F, M> {
    #[inline]
    fn take<I>(&self, item: I) -> Result<M, Fault>
    where
        F: Fn(I) -> Result<M, BoxError>,
    {
        (self.take)(item).map_err(|error| FaultOf::new(self.turn.name(), Cause::Item(error)))
    }
}

impl<I, M, F> Turn<I> for TurnVia<'_, F, M>
where
    F: Fn(I) -> Result<M, BoxError> + Sync,
{
    #[inline]
    fn begin(&mut self, item: I, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        let item = self.take(item)?;
        self.turn.begin(item, cx)
    }
    fn go_on(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        self.turn.go_on(cx)
    }
    fn retry(&mut self, item: Option<I>, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        let item = item.map(|item| self.take(item)).transpose()?;
        self.turn.retry(item, cx)
    }
    fn again(&mut self, item: Option<I>, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        let item = item.map(|item| self.take(item)).transpose()?;
        self.turn.again(item, cx)
    }
    fn failed(&mut self, fault: &FaultOf) -> Verdict {
        self.turn.failed(fault)
    }
    fn mends(&self) -> bool {
        self.turn.mends()
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
    J: Clone + Send + 'static,
    M: Send + 'static,
    F: Fn(J) -> Result<M, BoxError> + Send + Sync,
{
    fn run_alone<'a>(
        &'a self,
        context: &'a C,
        feed: &'a mut dyn Feed<I>,
        inner: Option<Box<Inner<'a>>>,
        drive: &'a Drive,
    ) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(super::drive::drive(Alone::new(self.piped(context, drive.defers()), inner), feed, drive))
    }
    fn turn<'a>(&'a self, context: &'a C, defers: bool) -> Box<dyn Turn<I> + 'a> {
        Box::new(self.piped(context, defers))
    }
    fn name(&self) -> &'static str {
        self.handler.name()
    }
}

impl<I: Send + 'static, J, F, C, M> PipedVia<I, J, F, C, M> {
    fn piped<'a>(&'a self, context: &'a C, defers: bool) -> PipedTurn<'a, I, J, F, M> {
        let turn = self.handler.turn(context, defers);
        PipedTurn {
            pipes: &self.pipes,
            pipe: Piped::new(&self.pipes),
            partition: None,
            others: Vec::new(),
            ending: false,
            take: &self.take,
            turn,
            state: State::Pipe,
            given: Vec::new(),
            handed: 0,
            keeps: false,
        }
    }
}

/// A handler behind pipes: a message may bring it no item, one or several. Each partition has pipes of
/// its own.
struct PipedTurn<'a, I, J, F, M> {
    pipes: &'a Pipes<I, J>,
    /// Those of the partition of the message in hand.
    pipe: Piped<I, J>,
    partition: Option<i32>,
    others: Vec<(Option<i32>, Piped<I, J>)>,
    /// The source has ended, and what the pipes still have is handled, all in one message.
    ending: bool,
    take: &'a F,
    turn: Box<dyn Turn<M> + 'a>,
    state: State<J>,
    /// What the pipe gave for this message, where it may run again.
    given: Vec<J>,
    /// How much of that the handler has begun with.
    handed: usize,
    keeps: bool,
}

/// From where the handler's next item comes.
enum State<J> {
    /// From the pipe, if it gives one for the message.
    Pipe,
    /// The pipe gave this, and no message is in hand.
    Unasked(J),
    /// The handler is at work on the one before, or has failed on it.
    Handler,
}

impl<I, J, M, F> PipedTurn<'_, I, J, F, M>
where
    I: Send + 'static,
    J: Clone,
    F: Fn(J) -> Result<M, BoxError>,
{
    /// Handles all that the pipe gives, until it asks for the next message; at the end of the source, all
    /// that all pipes give.
    #[inline]
    fn flow(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        while let Some(given) = self.given.get(self.handed) {
            let given = given.clone();
            self.handed += 1;
            ready!(self.hand_over(given, cx))?;
        }
        loop {
            match ready!(self.pipe.poll(cx)) {
                Flowed::Gave(given) => ready!(self.hand_over_new(given, cx))?,
                Flowed::Ended if self.ending && self.swap_for(|(_, pipe)| !pipe.has_ended()) => {}
                Flowed::Asks | Flowed::Ended => return Poll::Ready(Ok(())),
            }
        }
    }
    #[inline]
    fn hand_over_new(&mut self, given: J, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        if self.keeps {
            self.given.push(given.clone());
            self.handed += 1;
        }
        self.hand_over(given, cx)
    }
    #[inline]
    fn hand_over(&mut self, given: J, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        self.state = State::Handler;
        let item = self.take(given)?;
        ready!(self.turn.begin(item, cx))?;
        self.state = State::Pipe;
        Poll::Ready(Ok(()))
    }
    fn take(&self, given: J) -> Result<M, Fault> {
        (self.take)(given).map_err(|error| FaultOf::new(self.turn.name(), Cause::Item(error)))
    }
    /// What the pipe gave of itself is the next that the handler takes.
    #[inline]
    fn begin_unasked(&mut self) {
        if let State::Unasked(_) = self.state
            && let State::Unasked(given) = std::mem::replace(&mut self.state, State::Pipe)
        {
            self.given.push(given);
        }
    }
    /// A message begins.
    #[inline]
    fn forget(&mut self) {
        if self.handed > 0 {
            self.given.clear();
            self.handed = 0;
        }
    }
}

impl<I, J, F, M> PipedTurn<'_, I, J, F, M> {
    /// Puts another partition's pipe in place of the one at hand, if there is such a one.
    fn swap_for(&mut self, which: impl FnMut(&(Option<i32>, Piped<I, J>)) -> bool) -> bool {
        let Some(at) = self.others.iter().position(which) else { return false };
        if let Some((partition, pipe)) = self.others.get_mut(at) {
            std::mem::swap(partition, &mut self.partition);
            std::mem::swap(pipe, &mut self.pipe);
        }
        true
    }
}

impl<I, J, M, F> Turn<I> for PipedTurn<'_, I, J, F, M>
where
    I: Send + 'static,
    J: Clone + Send,
    F: Fn(J) -> Result<M, BoxError> + Sync,
{
    fn begin(&mut self, item: I, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        // The last message brings all that is left, and would bring an ended pipe nothing when it runs again.
        if !self.ending {
            self.forget();
        }
        self.begin_unasked();
        self.pipe.put(item, cx);
        self.flow(cx)
    }
    fn go_on(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        if let State::Handler = self.state {
            ready!(self.turn.go_on(cx))?;
            self.state = State::Pipe;
        }
        self.begin_unasked();
        self.flow(cx)
    }
    fn retry(&mut self, _: Option<I>, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        if let Some(given) = self.handed.checked_sub(1).and_then(|last| self.given.get(last)) {
            let given = given.clone();
            ready!(self.hand_over(given, cx))?;
        }
        self.flow(cx)
    }
    fn again(&mut self, _: Option<I>, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        self.handed = 0;
        self.flow(cx)
    }
    fn failed(&mut self, fault: &FaultOf) -> Verdict {
        // A pipe that has panicked is broken: what it gives from then on, if anything, is anybody's guess.
        if !matches!(self.state, State::Handler) && !matches!(fault.cause, Cause::Item(_)) {
            return Verdict::Stop;
        }
        self.state = State::Pipe;
        self.turn.failed(fault)
    }
    fn mends(&self) -> bool {
        self.turn.mends()
    }
    fn keep(&mut self, keep: bool) {
        self.keeps = keep;
    }
    fn select(&mut self, partition: i32) {
        let partition = Some(partition);
        if self.partition == partition || self.swap_for(|(known, _)| *known == partition) {
            return;
        }
        if self.partition.is_some() {
            let pipe = std::mem::replace(&mut self.pipe, Piped::new(self.pipes));
            self.others.push((self.partition, pipe));
        }
        self.partition = partition;
    }
    fn restart(&mut self, partition: i32) {
        self.others.retain(|(known, _)| *known != Some(partition));
        if self.partition == Some(partition) {
            self.pipe = Piped::new(self.pipes);
        }
    }
    fn deliver(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        self.turn.deliver(cx)
    }
    fn poll_unasked(&mut self, cx: &mut Context<'_>) -> bool {
        if let State::Pipe = self.state {
            self.forget();
            if let Poll::Ready(Flowed::Gave(given)) = self.pipe.poll(cx) {
                self.state = State::Unasked(given);
            } else {
                let gave =
                    self.others.iter_mut().enumerate().find_map(|(at, (_, pipe))| match pipe.poll(cx) {
                        Poll::Ready(Flowed::Gave(given)) => Some((at, given)),
                        _ => None,
                    });
                if let Some((at, given)) = gave {
                    let partition = self.others.get(at).and_then(|(partition, _)| *partition);
                    self.swap_for(|(known, _)| *known == partition);
                    self.state = State::Unasked(given);
                }
            }
        }
        matches!(self.state, State::Unasked(_))
    }
    fn last(&mut self) -> bool {
        self.forget();
        self.ending = true;
        !self.pipe.has_ended() || self.others.iter().any(|(_, pipe)| !pipe.has_ended())
    }
    fn end(&mut self) {
        self.pipe.end();
        self.others.iter_mut().for_each(|(_, pipe)| pipe.end());
    }
    fn is_piped(&self) -> bool {
        true
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
