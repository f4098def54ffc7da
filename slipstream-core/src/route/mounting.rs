//! From a handler to something that can be mounted, one step per obligation.
//!
//! Each bound stands on the step's own parameter, so that an error points at what the user wrote for
//! that step; and the last step forgets all types but the context's and the item's, so that nothing
//! is asked twice and one mistake is one error. They are forgotten per task, not per message.
use super::turn::{Turn, turn};
use crate::{
    BoxError, Handler,
    error::{Fault, FaultOf},
    on_error::OnError,
    output::{Given, Outputs},
    route::{
        drive::{Drive, drive},
        inner::Inner,
        mending::Mending,
        turns::Alone,
    },
    sink::{Flush, SinkAsync, SinkList, Sinks, Taken, sink_async},
    source::Feed,
};
use futures::future::BoxFuture;
use std::{
    fmt,
    future::Future,
    marker::PhantomData,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// A handler `H`, and the way `P` to its outputs `T`.
pub struct Handled<C, H, P = (), T = ()> {
    name: &'static str,
    handler: H,
    way: P,
    on_error: OnError,
    types: PhantomData<fn() -> (C, T)>,
}

impl<C, H, P, T> fmt::Debug for Handled<C, H, P, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handled").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What the second step gives, if its outputs `T` are [`Given`].
pub type Outputting<C, H, P, T, X> = <T as Given<X>>::To<Handled<C, H, P, T>>;

/// First step: the handler.
pub fn handled<C, H: Handler<C>>(name: &'static str, handler: H) -> Handled<C, H> {
    Handled { name, handler, way: (), on_error: OnError::stop(), types: PhantomData }
}

impl<C, H: Handler<C>> Handled<C, H> {
    /// Second step: how what it returns becomes outputs.
    pub fn outputs<P, X>(self, way: P) -> Outputting<C, H, P, P::Item, X>
    where
        P: Outputs<H::Output, H::Emit, Item: Given<X>>,
    {
        let Handled { name, handler, on_error, .. } = self;
        P::Item::to(Handled { name, handler, way, on_error, types: PhantomData })
    }
}

impl<C, H, P, T> Handled<C, H, P, T> {
    /// What is done when the handler fails.
    #[must_use]
    pub fn on_error(mut self, policy: OnError) -> Self {
        self.on_error = policy;
        self
    }
    /// Gives the parameter of a closure that is a sink its type.
    pub fn closure<R: Taken, F: Fn(&T) -> R>(&self, sink: F) -> R::To<F> {
        R::to(sink)
    }
    /// Gives the parameter of an async closure that is a sink its type.
    pub fn closure_async<R, Fut, F>(&self, sink: F) -> R::To<SinkAsync<F>>
    where
        R: Taken,
        Fut: Future<Output = R>,
        F: Fn(T) -> Fut,
    {
        R::to(sink_async(sink))
    }
    /// Last step: the sinks.
    pub fn sinks<L: SinkList<T>>(self, sinks: L) -> Mountable<C, H::Item>
    where
        C: Send + Sync + 'static,
        H: Handler<C>,
        P: Outputs<H::Output, H::Emit, Item = T>,
        T: Send + Sync + 'static,
    {
        self.with(sinks.to_sinks())
    }
    pub(crate) fn with(self, sinks: impl Sinks<T>) -> Mountable<C, H::Item>
    where
        C: Send + Sync + 'static,
        H: Handler<C>,
        P: Outputs<H::Output, H::Emit, Item = T>,
        T: Send + Sync + 'static,
    {
        let Handled { name, handler, way, on_error, types } = self;
        let skipped = AtomicU64::new(0);
        Mountable(Arc::new(Complete { name, handler, way, sinks, on_error, skipped, types }))
    }
}

/// A handler with its sinks, for one or several sources of what becomes an `M`.
pub struct Mountable<C, M>(pub(crate) Arc<dyn Mounted<C, M>>);

impl<C, M> fmt::Debug for Mountable<C, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Mountable").field(&self.0.name()).finish()
    }
}

/// What a [`Mountable`] holds.
pub(crate) struct Complete<C, H, P, T, K> {
    pub(crate) name: &'static str,
    pub(crate) handler: H,
    pub(crate) way: P,
    pub(crate) sinks: K,
    pub(crate) on_error: OnError,
    /// How many of its items were given up, over all tasks.
    skipped: AtomicU64,
    types: PhantomData<fn() -> (C, T)>,
}

impl<C, H, P, T, K> Complete<C, H, P, T, K> {
    #[cold]
    pub(crate) fn skipped(&self, fault: &FaultOf) {
        let skipped = self.skipped.fetch_add(1, Ordering::Relaxed) + 1;
        tracing::warn!(handler = self.name, skipped, "skipped an item that it failed on: {fault}");
    }
}

/// A handler of `M`.
pub(crate) trait Mounted<C, M>: Flush {
    /// Runs as the only handler of its source: from here on every call is static.
    fn run_alone<'a>(
        &'a self,
        context: &'a C,
        feed: &'a mut dyn Feed<M>,
        inner: Option<Box<Inner<'a>>>,
        drive: &'a Drive,
    ) -> BoxFuture<'a, Result<(), Fault>>;
    /// Prepares to run as one of several, which may answer that a message is to come again.
    fn turn<'a>(&'a self, context: &'a C, defers: bool) -> Box<dyn Turn<M> + 'a>;
    /// What is done when it fails.
    fn on_error(&self) -> OnError;
}

impl<C, H, P, T, K> Flush for Complete<C, H, P, T, K>
where
    C: Send + Sync + 'static,
    H: Handler<C>,
    P: Send + Sync + 'static,
    T: Send + Sync + 'static,
    K: Sinks<T>,
{
    fn name(&self) -> &'static str {
        self.name
    }
    fn open(&self) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(self.sinks.open())
    }
    fn flush(&self) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(self.sinks.flush())
    }
    #[cfg(feature = "rocksdb")]
    fn stores(&self, found: &mut Vec<crate::store::Store>) {
        self.sinks.stores(found);
    }
}

impl<C, H, P, T, K> Mounted<C, H::Item> for Complete<C, H, P, T, K>
where
    C: Send + Sync + 'static,
    H: Handler<C>,
    P: Outputs<H::Output, H::Emit, Item = T>,
    T: Send + Sync + 'static,
    K: Sinks<T>,
{
    fn run_alone<'a>(
        &'a self,
        context: &'a C,
        feed: &'a mut dyn Feed<H::Item>,
        inner: Option<Box<Inner<'a>>>,
        shared: &'a Drive,
    ) -> BoxFuture<'a, Result<(), Fault>> {
        if self.on_error.mends() || shared.defers() {
            return Box::pin(drive(
                Alone::new(Mounted::turn(self, context, shared.defers()), inner),
                feed,
                shared,
            ));
        }
        Box::pin(drive(Alone::new(turn(self, context), inner), feed, shared))
    }
    fn turn<'a>(&'a self, context: &'a C, defers: bool) -> Box<dyn Turn<H::Item> + 'a> {
        match self.on_error.mends() || defers {
            true => Box::new(Mending::new(turn(self, context), defers)),
            false => Box::new(turn(self, context)),
        }
    }
    fn on_error(&self) -> OnError {
        self.on_error
    }
}
