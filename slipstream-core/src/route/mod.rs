//! Routes: from one source to the handlers that read it. Which handlers share a source is known
//! when the flow starts, not before, so here a type is forgotten: once per task where a source has
//! one handler, once per message and handler where it has several or a pipe.
//!
//! ```text
//! source ──open──▶ Feed ──chunks──▶ drive ──┬─ handler 1 ─▶ outputs ─▶ sinks
//!                                           └─ pipe ─▶ handler 2 ─▶ …
//! ```
//!
//! Invariants: a source is opened once; its handlers see each message in the order mounted.
mod drive;
mod mounting;
mod readable;
mod turn;
mod turns;
mod via;

pub(crate) use drive::{Drive, Shared};
pub use mounting::{Handled, Mountable, Outputting, handled};
pub use readable::Readable;

use crate::{
    BoxError, FromItem,
    error::{Error, Fault, panic_message},
    opaque::opaque_debug,
    pipe::{Items, Pipes, chain, pipe},
    position::Positions,
    sink::Flush,
    source::{AnySeekable, Feed, Identity, Seeks, SourceName},
};
use futures::{Stream, future::BoxFuture};
use mounting::Mounted;
use std::{
    any::Any,
    fmt,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};
use turns::Several;
use via::{MountedOn, PipedVia, Via};

/// The routes of a flow that is starting.
pub struct Routes<'c, C> {
    routes: Vec<(Identity, Box<dyn AnyRoute<C>>)>,
    /// How each that has no positions is opened, once all are known and with them the store.
    openings: Vec<Option<Opening<'c>>>,
    flushes: Vec<Arc<dyn Flush>>,
}

/// Opens a source: the feed of its route.
type Opening<'c> = Box<dyn FnOnce() -> Box<dyn Any> + 'c>;

/// What `open` gives; a panic in it is the error of the source `origin`.
fn caught<T>(origin: &str, open: impl FnOnce() -> T) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(open))
        .map_err(|payload| Error::Source { origin: origin.to_owned(), message: panic_message(&*payload) })
}

impl<C> fmt::Debug for Routes<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.routes.iter().map(|(_, route)| route.origin())).finish()
    }
}

impl<C> Routes<'_, C> {
    pub(crate) fn new() -> Self {
        Routes { routes: Vec::new(), openings: Vec::new(), flushes: Vec::new() }
    }

    /// The routes, by the numbers of their sources.
    pub(crate) fn all(&self) -> impl Iterator<Item = &dyn AnyRoute<C>> {
        self.routes.iter().map(|(_, route)| &**route)
    }

    #[cfg(feature = "rocksdb")]
    pub(crate) fn flushes(&self) -> &[Arc<dyn Flush>] {
        &self.flushes
    }

    /// Opens each source without positions; the others are owned by their routes, and opened when it is
    /// known where.
    ///
    /// # Errors
    /// When a source panics.
    pub(crate) fn open(&mut self) -> Result<(), Error> {
        for ((_, route), open) in self.routes.iter_mut().zip(self.openings.drain(..)) {
            if let Some(open) = open {
                route.set_feed(caught(route.origin(), open)?);
            }
        }
        Ok(())
    }

    pub(crate) fn into_parts(self) -> (impl Iterator<Item = Box<dyn AnyRoute<C>>>, Vec<Arc<dyn Flush>>) {
        (self.routes.into_iter().map(|(_, route)| route), self.flushes)
    }
}

impl<'c, C: Send + Sync + 'static> Routes<'c, C> {
    /// A source that lives as long as the context: its place tells it from others. `origin` is the
    /// source as the user wrote it, for errors.
    pub fn source<S: Readable<X>, X>(&mut self, source: &'c S, origin: &str) -> S::Reading<'_, C> {
        source.read_place(self, origin)
    }

    /// A source that an expression has made.
    pub fn made<S: Readable<X>, X>(&mut self, source: S, origin: &str) -> S::Reading<'_, C> {
        source.read_value(self, origin)
    }

    fn read<I: Clone + Send + Sync + 'static>(
        &mut self,
        identity: Identity,
        #[cfg_attr(not(feature = "rocksdb"), expect(unused_variables))] name: Option<SourceName>,
        origin: &str,
        seeks: Option<Seeks<I>>,
        open: impl FnOnce() -> Box<dyn Feed<I>> + 'c,
    ) -> Reading<'_, C, I> {
        let known = self.routes.iter().position(|(known, _)| known.is_same_source(&identity));
        let at = known.unwrap_or_else(|| {
            self.openings.push(match &seeks {
                Some(_) => None,
                None => Some(Box::new(|| Box::new(open()))),
            });
            let origin = origin.to_owned();
            let route = Route::<C, I> {
                origin,
                #[cfg(feature = "rocksdb")]
                name,
                seeks,
                feed: None,
                handlers: Vec::new(),
            };
            self.routes.push((identity, Box::new(route)));
            self.routes.len() - 1
        });
        let route = self.routes.get_mut(at).map(|(_, route)| route.as_any());
        Reading { route, flushes: &mut self.flushes, origin: origin.to_owned(), types: PhantomData }
    }
}

/// Something [`flow!`](crate::flow) can mount: the companion that `#[handle]` writes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler for a flow over `{C}`",
    label = "not a handler for this flow",
    note = "annotate the function with `#[handle(source, sink = …)]`; all handlers of one `flow![…]` share one context type"
)]
pub trait Mount<C> {
    /// Evaluates the attribute's expressions, once, and joins the routes of its sources.
    ///
    /// # Errors
    /// An expression's own, by `?`.
    fn mount<'c>(context: &'c C, routes: &mut Routes<'c, C>) -> Result<(), BoxError>;
}

/// A source of `I` that a handler is about to read.
#[must_use = "a source without a handler is not read"]
pub struct Reading<'r, C, I> {
    route: Option<&'r mut dyn Any>,
    flushes: &'r mut Vec<Arc<dyn Flush>>,
    origin: String,
    types: PhantomData<fn() -> (C, I)>,
}

impl<'r, C: Send + Sync + 'static, I: Clone + Send + Sync + 'static> Reading<'r, C, I> {
    /// The handler reads what `function` makes of the source's stream.
    pub fn pipe<F, S>(self, function: F) -> Piping<'r, C, I, S::Item>
    where
        F: Fn(Items<I>) -> S + Send + Sync + 'static,
        S: Stream + Send + 'static,
    {
        self.through(pipe(function))
    }

    pub(crate) fn through<J>(self, pipes: Pipes<I, J>) -> Piping<'r, C, I, J> {
        Piping { source: self, pipes }
    }

    /// The handler takes an `M`.
    pub fn takes<M: FromItem<I> + Send + 'static>(self) -> Taking<'r, C, M> {
        self.by(M::from_item)
    }

    /// The handler has no item parameter.
    pub fn takes_nothing(self) -> Taking<'r, C, ()> {
        self.by(|_| Ok(()))
    }

    fn by<M, F>(self, take: F) -> Taking<'r, C, M>
    where
        M: Send + 'static,
        F: Fn(I) -> Result<M, BoxError> + Send + Sync + 'static,
    {
        self.mounts(move |handler| Box::new(Via { take, handler }))
    }

    fn mounts<M: Send + 'static>(
        self,
        mounted: impl FnOnce(Arc<dyn Mounted<C, M>>) -> Box<dyn MountedOn<C, I>> + 'static,
    ) -> Taking<'r, C, M> {
        Taking(Box::new(move |handler| {
            let Some(route) = self.route.and_then(|route| route.downcast_mut::<Route<C, I>>()) else {
                let origin = self.origin;
                return Err(format!("`{origin}` has the identity of another source, but other items").into());
            };
            let flush: Arc<dyn Flush> = Arc::clone(&handler) as Arc<dyn Flush>;
            if !self.flushes.iter().any(|known| Arc::ptr_eq(known, &flush)) {
                self.flushes.push(flush);
            }
            route.handlers.push(mounted(handler));
            Ok(())
        }))
    }
}

/// A source of `I` that a handler is about to read through pipes that make a `J` of it.
#[must_use = "a source without a handler is not read"]
pub struct Piping<'r, C, I, J> {
    source: Reading<'r, C, I>,
    pipes: Pipes<I, J>,
}

impl<'r, C, I, J> Piping<'r, C, I, J>
where
    C: Send + Sync + 'static,
    I: Clone + Send + Sync + 'static,
    J: Send + 'static,
{
    /// One more pipe, after those before.
    pub fn pipe<F, S>(self, function: F) -> Piping<'r, C, I, S::Item>
    where
        F: Fn(Items<J>) -> S + Send + Sync + 'static,
        S: Stream + Send + 'static,
    {
        Piping { source: self.source, pipes: chain(self.pipes, pipe(function)) }
    }

    /// The handler takes an `M`.
    pub fn takes<M: FromItem<J> + Send + 'static>(self) -> Taking<'r, C, M> {
        self.by(M::from_item)
    }

    /// The handler has no item parameter.
    pub fn takes_nothing(self) -> Taking<'r, C, ()> {
        self.by(|_| Ok(()))
    }

    fn by<M, F>(self, take: F) -> Taking<'r, C, M>
    where
        M: Send + 'static,
        F: Fn(J) -> Result<M, BoxError> + Send + Sync + 'static,
    {
        let pipes = self.pipes;
        self.source.mounts(move |handler| Box::new(PipedVia { pipes, take, handler }))
    }
}

type Join<'r, C, M> = Box<dyn FnOnce(Arc<dyn Mounted<C, M>>) -> Result<(), BoxError> + 'r>;

/// A source whose items become an `M`: what they were is forgotten.
#[must_use = "a source without a handler is not read"]
pub struct Taking<'r, C, M>(Join<'r, C, M>);

impl<C, M> Taking<'_, C, M> {
    /// Adds the handler.
    ///
    /// # Errors
    /// When the source has the identity of another one whose items have another type.
    pub fn mount(self, handler: &Mountable<C, M>) -> Result<(), BoxError> {
        (self.0)(Arc::clone(&handler.0))
    }
}

opaque_debug! { Reading<'r, C, I>; Piping<'r, C, I, J>; Taking<'r, C, M>; }

/// A route whose item type is forgotten.
pub(crate) trait AnyRoute<C>: Send {
    fn as_any(&mut self) -> &mut dyn Any;
    /// The source as the attribute names it.
    fn origin(&self) -> &str;
    /// Its own name, under which the store keeps its positions.
    #[cfg(feature = "rocksdb")]
    fn name(&self) -> Option<&str>;
    /// The source, if it has positions: its control, its concurrency, its marks.
    fn seeks(&self) -> Option<Arc<dyn AnySeekable>>;
    /// Takes the `Box<dyn Feed<I>>` of its item type.
    fn set_feed(&mut self, feed: Box<dyn Any>);
    /// With the context, whose type is forgotten too.
    fn over(self: Box<Self>, context: Arc<C>) -> Box<dyn Ready>;
    fn run(self: Box<Self>, context: Arc<C>, drive: Drive) -> BoxFuture<'static, Result<(), Error>>;
}

/// A route that has its context.
pub(crate) trait Ready: Send {
    fn origin(&self) -> &str;
    /// Opens a source with positions where it goes on.
    ///
    /// # Errors
    /// When the source panics.
    fn open(&mut self, start: Positions) -> Result<(), Error>;
    fn run(self: Box<Self>, drive: Drive) -> BoxFuture<'static, Result<(), Error>>;
}

struct Over<C, I> {
    route: Box<Route<C, I>>,
    context: Arc<C>,
}

impl<C: Send + Sync + 'static, I: Clone + Send + Sync + 'static> Ready for Over<C, I> {
    fn origin(&self) -> &str {
        &self.route.origin
    }
    fn open(&mut self, start: Positions) -> Result<(), Error> {
        if let Some(seeks) = &self.route.seeks {
            self.route.feed = Some(caught(&self.route.origin, || seeks.open(start))?);
        }
        Ok(())
    }
    fn run(self: Box<Self>, drive: Drive) -> BoxFuture<'static, Result<(), Error>> {
        self.route.run(self.context, drive)
    }
}

struct Route<C, I> {
    origin: String,
    #[cfg(feature = "rocksdb")]
    name: Option<SourceName>,
    /// If the source has positions.
    seeks: Option<Seeks<I>>,
    /// From the opening on.
    feed: Option<Box<dyn Feed<I>>>,
    handlers: Vec<Box<dyn MountedOn<C, I>>>,
}

impl<C: Send + Sync + 'static, I: Clone + Send + Sync + 'static> AnyRoute<C> for Route<C, I> {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
    fn origin(&self) -> &str {
        &self.origin
    }
    #[cfg(feature = "rocksdb")]
    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
    fn over(self: Box<Self>, context: Arc<C>) -> Box<dyn Ready> {
        Box::new(Over { route: self, context })
    }
    fn seeks(&self) -> Option<Arc<dyn AnySeekable>> {
        self.seeks.as_ref().map(Seeks::any)
    }
    fn set_feed(&mut self, feed: Box<dyn Any>) {
        self.feed = feed.downcast::<Box<dyn Feed<I>>>().ok().map(|feed| *feed);
    }
    fn run(self: Box<Self>, context: Arc<C>, drive: Drive) -> BoxFuture<'static, Result<(), Error>> {
        let Route { origin, feed, handlers, .. } = *self;
        Box::pin(async move {
            let Some(mut feed) = feed else { return Ok(()) };
            let ended = match handlers.as_slice() {
                [only] => only.run_alone(&context, &mut *feed, &drive).await,
                several => {
                    let turns: Vec<_> = several.iter().map(|handler| handler.turn(&context)).collect();
                    drive::drive(Several::new(turns), &mut *feed, &drive).await
                }
            };
            ended.map_err(|fault: Fault| fault.of(&origin))
        })
    }
}
