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
    Inside, caught,
    drive::{Drive, Shared, drive},
    inner::{Inner, InnerRoute, InnerRouteOf},
    split::{UntilOthersEnd, split},
    turns::Several,
    via::MountedOn,
};
use crate::{
    error::{Error, Fault},
    given::Receives,
    position::Positions,
    source::{AnySeekable, Control, Feed, Joined, Seeks, SourceName},
    stop::Stop,
    watch::Watch,
};
use futures::{FutureExt, future::BoxFuture};
use std::{any::Any, sync::Arc};

/// A route whose item type is forgotten.
pub(crate) trait AnyRoute<C>: Send {
    fn as_any(&mut self) -> &mut dyn Any;
    /// The source as the attribute names it.
    fn origin(&self) -> &str;
    /// Its own name, under which the store keeps its positions.
    fn name(&self) -> Option<&str>;
    /// The source, if it has positions: its control, its concurrency, its marks.
    fn seeks(&self) -> Option<Arc<dyn AnySeekable>>;
    /// What handles its items inside of the messages that gave them, if they come so. All handlers
    /// are mounted.
    fn inner(&mut self) -> Option<Arc<dyn InnerRoute<C>>>;
    /// Takes the `Box<dyn Feed<I>>` of its item type.
    fn set_feed(&mut self, feed: Box<dyn Any>);
    /// With the context, whose type is forgotten too.
    fn over(self: Box<Self>, context: Arc<C>, inner: Inside<C>) -> Box<dyn Ready>;
}

/// A route that has its context.
pub(crate) trait Ready: Send {
    fn origin(&self) -> &str;
    /// Whether its items are handled inside of the messages that gave them, but for those from outside.
    fn is_inner(&self) -> bool;
    /// What people call the source, where that is another name than the store's.
    fn called(&self) -> Option<Arc<str>>;
    /// The names of its handlers, in the order mounted.
    fn handlers(&self) -> Vec<&'static str>;
    /// By what it is held and sought, and whether it can be sought; none of both for one that is handled inside.
    #[cfg_attr(not(feature = "rocksdb"), allow(dead_code))]
    fn control(&self) -> (Control, Steering);
    /// Opens a source with positions where it goes on.
    ///
    /// # Errors
    /// When the source panics.
    fn open(&mut self, start: Positions, joined: Option<Joined>) -> Result<(), Error>;
    /// What is to be run, each in a task of its own.
    fn tasks(self: Box<Self>, start: Start) -> Vec<Task>;
}

/// What can be done with a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "rocksdb"), allow(dead_code))]
pub(crate) enum Steering {
    /// It has no positions: it can be held.
    Held,
    /// It has positions, and no control: it can be neither held nor sought.
    Neither,
    /// It can be held and sought.
    Sought,
}

/// A part of the work on one source.
pub(crate) type Task = BoxFuture<'static, Result<(), Error>>;

/// What a route is started with.
pub(crate) struct Start {
    pub(crate) shared: Arc<Shared>,
    /// The flow's number for the source.
    pub(crate) source: u32,
    /// Set when the sources that are no such have ended.
    pub(crate) others_ended: Arc<Stop>,
    /// Where somebody asks what its messages are.
    pub(crate) watch: Option<Arc<Watch>>,
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
    /// Of a source that has none of its own.
    control: Control,
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
        Route {
            origin,
            name,
            seeks,
            receives,
            feed: None,
            mounted: Vec::new(),
            control: Control::default(),
            handlers: None,
        }
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
    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
    fn seeks(&self) -> Option<Arc<dyn AnySeekable>> {
        self.seeks.as_ref().map(Seeks::any)
    }
    fn inner(&mut self) -> Option<Arc<dyn InnerRoute<C>>> {
        let receives = Arc::clone(&self.receives.as_ref()?.0);
        let origin = Arc::from(self.origin.as_str());
        Some(Arc::new(InnerRouteOf { origin, receives, handlers: self.handlers() }))
    }
    fn set_feed(&mut self, feed: Box<dyn Any>) {
        self.feed = feed.downcast::<Box<dyn Feed<I>>>().ok().map(|feed| *feed);
    }
    fn over(self: Box<Self>, context: Arc<C>, inner: Inside<C>) -> Box<dyn Ready> {
        Box::new(Over { route: self, context, inner })
    }
}

/// A route, its context, and what is handled inside of its messages.
struct Over<C, I> {
    route: Box<Route<C, I>>,
    context: Arc<C>,
    inner: Inside<C>,
}

impl<C: Send + Sync + 'static, I: Clone + Send + Sync + 'static> Ready for Over<C, I> {
    fn origin(&self) -> &str {
        &self.route.origin
    }
    fn is_inner(&self) -> bool {
        self.route.receives.is_some()
    }
    fn called(&self) -> Option<Arc<str>> {
        let seeks = self.route.seeks();
        let called = seeks.as_ref().and_then(|source| source.called());
        called.or(self.route.name.as_deref()).map(Arc::from)
    }
    fn handlers(&self) -> Vec<&'static str> {
        match &self.route.handlers {
            Some(handlers) => handlers.iter().map(|handler| handler.name()).collect(),
            None => self.route.mounted.iter().map(|handler| handler.name()).collect(),
        }
    }
    fn control(&self) -> (Control, Steering) {
        match self.route.seeks() {
            None => (self.route.control.clone(), Steering::Held),
            Some(source) => match source.control() {
                None => (self.route.control.clone(), Steering::Neither),
                Some(control) => (control.clone(), Steering::Sought),
            },
        }
    }
    fn open(&mut self, start: Positions, joined: Option<Joined>) -> Result<(), Error> {
        if let Some(seeks) = &self.route.seeks {
            self.route.feed = Some(caught(&self.route.origin, || seeks.open(start, joined))?);
        }
        Ok(())
    }
    fn tasks(self: Box<Self>, start: Start) -> Vec<Task> {
        let Over { mut route, context, inner } = *self;
        let Some(mut feed) = route.feed.take() else { return Vec::new() };
        let seekable = route.seeks();
        let own = seekable.as_ref().and_then(|source| source.control().cloned());
        let control = own.unwrap_or_else(|| route.control.clone());
        let Start { shared, source, others_ended, watch } = start;
        if route.receives.is_some() {
            feed = Box::new(UntilOthersEnd::new(feed, others_ended));
        }
        let origin: Arc<str> = Arc::from(route.origin.as_str());
        let has_positions = seekable.is_some();
        let concurrency = seekable.map_or(1, |source| source.concurrency());
        let drive = Drive {
            shared: Arc::clone(&shared),
            source,
            has_positions,
            control: control.clone(),
            watch: watch.clone(),
            is_whole: concurrency <= 1,
        };
        let worker =
            Worker { origin: Arc::clone(&origin), context, inner, handlers: route.handlers(), drive };
        match concurrency {
            0 | 1 => vec![worker.run(feed).boxed()],
            workers => {
                let (deals, feeds) = split(feed, workers, control, shared, watch);
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
    context: Arc<C>,
    inner: Inside<C>,
    handlers: Handlers<C, I>,
    drive: Drive,
}

impl<C, I> Clone for Worker<C, I> {
    fn clone(&self) -> Self {
        Worker {
            origin: Arc::clone(&self.origin),
            context: Arc::clone(&self.context),
            inner: Arc::clone(&self.inner),
            handlers: Arc::clone(&self.handlers),
            drive: self.drive.clone(),
        }
    }
}

impl<C: Send + Sync + 'static, I: Clone + Send + Sync + 'static> Worker<C, I> {
    async fn run(self, mut feed: Box<dyn Feed<I>>) -> Result<(), Error> {
        let Worker { origin, context, inner, handlers, drive: of_route } = self;
        let inner = Inner::prepare(&inner, &*context);
        let ended = match &*handlers {
            // What is left of a replay of more handlers is looked at by several.
            [only] if !of_route.watch.as_ref().is_some_and(|watch| watch.is_apart()) => {
                only.run_alone(&context, &mut *feed, inner, &of_route).await
            }
            several => {
                let turns =
                    several.iter().map(|handler| handler.turn(&*context, of_route.defers())).collect();
                let several = Several::new(turns, inner, of_route.watch.is_some());
                drive(several, &mut *feed, &of_route).await
            }
        };
        ended.map_err(|fault: Fault| fault.of(&origin))
    }
}
