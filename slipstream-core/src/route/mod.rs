//! Routes: from one source to the handlers that read it. Which handlers share a source is known
//! when the flow starts, not before, so here a type is forgotten: once per task where a source has
//! one handler, once per message and handler where it has several or a pipe.
//!
//! ```text
//! source ──open──▶ Feed ──chunks──▶ drive ──┬─ handler 1 ─▶ outputs ─▶ sinks
//!                                           └─ pipe ─▶ handler 2 ─▶ …
//!                                  inside of the message: channels, caches' changes
//! ```
//!
//! Invariants: a source is opened once; its handlers see each message in the order mounted.
mod drive;
mod inner;
mod mend;
mod mending;
mod mounting;
mod readable;
mod split;
mod task;
mod turn;
mod turns;
mod via;

pub(crate) use drive::Shared;
pub use mounting::{Handled, Mountable, Outputting, handled};
pub use readable::Readable;
#[cfg(feature = "rocksdb")]
pub(crate) use task::Steering;
pub(crate) use task::{AnyRoute, Ready, Start};

use crate::{
    BoxError, FromItem,
    error::{Error, panic_message},
    given::Receives,
    once::{Never, Refuted},
    opaque::opaque_debug,
    pipe::{Items, Pipes, chain, pipe},
    sink::Flush,
    source::{Feed, Identity, Seeks, SourceName},
};
use futures::Stream;
use inner::InnerRoute;
use mounting::Mounted;
use std::{
    any::Any,
    fmt,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};
use task::Route;
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
    /// The number of a source.
    #[cfg(feature = "rocksdb")]
    pub(crate) fn number(&self, identity: &Identity) -> Option<u32> {
        let at = self.routes.iter().position(|(known, _)| known.is_same_source(identity))?;
        u32::try_from(at).ok()
    }

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

    /// The routes, by the numbers of their sources, and the sinks to flush.
    #[allow(clippy::type_complexity, reason = "two lists")]
    pub(crate) fn over(mut self, context: &Arc<C>) -> (Vec<Box<dyn Ready>>, Vec<Arc<dyn Flush>>) {
        let inner: Inside<C> = self.routes.iter_mut().filter_map(|(_, route)| route.inner()).collect();
        let over =
            |(_, route): (_, Box<dyn AnyRoute<C>>)| route.over(Arc::clone(context), Arc::clone(&inner));
        (self.routes.into_iter().map(over).collect(), self.flushes)
    }
}

/// The channels and caches of a flow, whose items are handled inside of messages.
pub(crate) type Inside<C> = Arc<[Arc<dyn InnerRoute<C>>]>;

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
        name: Option<SourceName>,
        origin: &str,
        seeks: Option<Seeks<I>>,
        receives: Option<Receives<I>>,
        open: impl FnOnce() -> Box<dyn Feed<I>> + 'c,
    ) -> Reading<'_, C, I> {
        let known = self.routes.iter().position(|(known, _)| known.is_same_source(&identity));
        let at = known.unwrap_or_else(|| {
            self.openings.push(match &seeks {
                Some(_) => None,
                None => Some(Box::new(|| Box::new(open()))),
            });
            let route = Route::<C, I>::new(origin.to_owned(), name, seeks, receives);
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

/// What a pipe may give, asked for once (see `once.rs`).
#[diagnostic::on_unimplemented(
    message = "a pipe cannot give `{Self}`, since it is not `Clone`",
    label = "gives what is not `Clone`",
    note = "a message may run again, and what its pipe gave with it: derive `Clone`, or put it into an `Arc`"
)]
pub trait FromPipe<X> {
    /// `S` itself.
    type To<S>;
    /// Itself.
    fn to<S>(step: S) -> Self::To<S>;
}

impl<J: Clone> FromPipe<()> for J {
    type To<S> = S;
    fn to<S>(step: S) -> S {
        step
    }
}

impl<J: Refuted> FromPipe<Never> for J {
    type To<S> = S;
    fn to<S>(step: S) -> S {
        step
    }
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
    pub fn pipe<F, S, X>(self, function: F) -> <S::Item as FromPipe<X>>::To<Piping<'r, C, I, S::Item>>
    where
        F: Fn(Items<I>) -> S + Send + Sync + 'static,
        S: Stream<Item: FromPipe<X>> + Send + 'static,
    {
        S::Item::to(self.through(pipe(function)))
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
            route.mount(mounted(handler));
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
    J: Clone + Send + 'static,
{
    /// One more pipe, after those before.
    pub fn pipe<F, S, X>(self, function: F) -> <S::Item as FromPipe<X>>::To<Piping<'r, C, I, S::Item>>
    where
        F: Fn(Items<J>) -> S + Send + Sync + 'static,
        S: Stream<Item: FromPipe<X>> + Send + 'static,
    {
        S::Item::to(Piping { source: self.source, pipes: chain(self.pipes, pipe(function)) })
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
