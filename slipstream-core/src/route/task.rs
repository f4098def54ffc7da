//! The tasks of one source: one that drives it, or where several of its partitions may be handled at the
//! same time, one for each and one that deals out.
//!
//! ```text
//! feed ──▶ drive                                   concurrency 1
//! feed ──▶ split ─┬─▶ drive (partitions 0, 2)      concurrency 2
//!                 └─▶ drive (partitions 1, 3)
//! ```
//!
//! Invariant: the handlers are shared, their turns are not: each task has one message in hand.
use super::{
    drive::{Drive, Shared, drive},
    inner::{Inner, InnerRoute, InnerRouteOf},
    split::{UntilOthersEnd, split},
    turns::Several,
    via::MountedOn,
};
use crate::{
    error::{Error, Fault},
    given::Receives,
    source::{AnySeekable, Control, Feed, Seeks, SourceName},
    stop::Stop,
};
use futures::{FutureExt, future::BoxFuture};
use std::{any::Any, sync::Arc};

/// A route whose item type is forgotten.
pub(crate) trait AnyRoute<C>: Send {
    fn as_any(&mut self) -> &mut dyn Any;
    fn origin(&self) -> &str;
    /// The name under which the source's positions are kept; see [`Routes::kept`](super::Routes::kept).
    fn kept(&self) -> Option<Option<&str>>;
    /// The source, if it has positions: its control, its concurrency, its marks.
    fn seeks(&self) -> Option<Arc<dyn AnySeekable>>;
    /// What handles its items inside of the messages that gave them, if they come so. All handlers
    /// are mounted.
    fn inner(&mut self) -> Option<Arc<dyn InnerRoute<C>>>;
    /// Takes the `Box<dyn Feed<I>>` of its item type.
    fn set_feed(&mut self, feed: Box<dyn Any>);
    /// What is to be run, each in a task of its own.
    fn tasks(self: Box<Self>, start: Start<C>) -> Vec<Task>;
}

/// A part of the work on one source.
pub(crate) type Task = BoxFuture<'static, Result<(), Error>>;

/// What a route is started with.
pub(crate) struct Start<C> {
    pub(crate) context: Arc<C>,
    pub(crate) shared: Arc<Shared>,
    /// The flow's number for the source.
    pub(crate) source: u32,
    /// The channels and caches whose items are handled inside of messages.
    pub(crate) inner: Arc<[Arc<dyn InnerRoute<C>>]>,
    /// Set when the sources that are no such have ended.
    pub(crate) others_ended: Arc<Stop>,
}

pub(super) struct Route<C, I> {
    origin: String,
    name: Option<SourceName>,
    /// If the source has positions.
    seeks: Option<Seeks<I>>,
    /// If its items are handled inside of messages.
    receives: Option<Receives<I>>,
    /// From the opening on.
    feed: Option<Box<dyn Feed<I>>>,
    mounted: Vec<Box<dyn MountedOn<C, I>>>,
    /// All that were mounted, once the first of them is asked for.
    handlers: Option<Handlers<C, I>>,
}

type Handlers<C, I> = Arc<[Box<dyn MountedOn<C, I>>]>;

impl<C, I> Route<C, I> {
    pub(super) fn new(
        origin: String,
        name: Option<SourceName>,
        seeks: Option<Seeks<I>>,
        receives: Option<Receives<I>>,
    ) -> Self {
        Route { origin, name, seeks, receives, feed: None, mounted: Vec::new(), handlers: None }
    }
    pub(super) fn mount(&mut self, handler: Box<dyn MountedOn<C, I>>) {
        self.mounted.push(handler);
    }
    fn handlers(&mut self) -> Handlers<C, I> {
        let mounted = &mut self.mounted;
        Arc::clone(self.handlers.get_or_insert_with(|| std::mem::take(mounted).into()))
    }
}

impl<C: Send + Sync + 'static, I: Clone + Send + Sync + 'static> AnyRoute<C> for Route<C, I> {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
    fn origin(&self) -> &str {
        &self.origin
    }
    fn kept(&self) -> Option<Option<&str>> {
        self.seeks.as_ref().map(|_| self.name.as_deref())
    }
    fn seeks(&self) -> Option<Arc<dyn AnySeekable>> {
        self.seeks.as_ref().map(Seeks::any)
    }
    fn inner(&mut self) -> Option<Arc<dyn InnerRoute<C>>> {
        let receives = Arc::clone(&self.receives.as_ref()?.0);
        Some(Arc::new(InnerRouteOf { receives, handlers: self.handlers() }))
    }
    fn set_feed(&mut self, feed: Box<dyn Any>) {
        self.feed = feed.downcast::<Box<dyn Feed<I>>>().ok().map(|feed| *feed);
    }
    fn tasks(mut self: Box<Self>, start: Start<C>) -> Vec<Task> {
        let Some(mut feed) = self.feed.take() else { return Vec::new() };
        let seekable = self.seeks();
        let control = seekable.as_ref().and_then(|source| source.control().cloned()).unwrap_or_default();
        let worker = Worker {
            origin: Arc::from(self.origin.as_str()),
            handlers: self.handlers(),
            control,
            start: Arc::new(start),
        };
        if self.receives.is_some() {
            feed = Box::new(UntilOthersEnd::new(feed, Arc::clone(&worker.start.others_ended)));
        }
        match seekable.map_or(1, |source| source.concurrency()) {
            0 | 1 => vec![worker.run(feed).boxed()],
            workers => {
                let (deals, feeds) = split(feed, workers, Arc::clone(&worker.start.shared));
                let origin = Arc::clone(&worker.origin);
                let deals = async move { deals.await.map_err(|fault: Fault| fault.of(&origin)) };
                let tasks = feeds.into_iter().map(|feed| worker.clone().run(feed).boxed());
                tasks.chain([deals.boxed()]).collect()
            }
        }
    }
}

/// What drives some partitions of a source.
struct Worker<C, I> {
    origin: Arc<str>,
    handlers: Handlers<C, I>,
    control: Control,
    start: Arc<Start<C>>,
}

impl<C, I> Clone for Worker<C, I> {
    fn clone(&self) -> Self {
        Worker {
            origin: Arc::clone(&self.origin),
            handlers: Arc::clone(&self.handlers),
            control: self.control.clone(),
            start: Arc::clone(&self.start),
        }
    }
}

impl<C: Send + Sync + 'static, I: Clone + Send + Sync + 'static> Worker<C, I> {
    async fn run(self, mut feed: Box<dyn Feed<I>>) -> Result<(), Error> {
        let Worker { origin, handlers, control, start } = self;
        let Start { context, shared, source, inner, .. } = &*start;
        let of_route = Drive { shared: Arc::clone(shared), source: *source, control };
        let inner = Inner::prepare(inner, &**context);
        let ended = match &*handlers {
            [only] => only.run_alone(context, &mut *feed, inner, &of_route).await,
            several => {
                let turns = several.iter().map(|handler| handler.turn(context)).collect();
                drive(Several::new(turns, inner), &mut *feed, &of_route).await
            }
        };
        ended.map_err(|fault: Fault| fault.of(&origin))
    }
}
