//! A flow: handlers that run together over one context.
use crate::{
    BoxError, Mount,
    builder::Attach,
    commit::{Commit, Settings},
    error::{Error, panic_message},
    route::{Ready, Routes, Shared, Start},
    sink::Flush,
    stop::Stop,
};
use futures::future::BoxFuture;
use std::{
    collections::{HashMap, HashSet},
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    sync::oneshot,
    task::{Id, JoinError, JoinSet},
};

#[cfg(feature = "rocksdb")]
mod checkpoints;
mod handle;
mod keeping;
#[cfg(feature = "rocksdb")]
mod lost;
mod standing;
#[cfg(test)]
#[cfg(feature = "rocksdb")]
mod tests;

pub use handle::FlowHandle;
#[cfg(feature = "rocksdb")]
pub use lost::{LostState, OnLostState};

use keeping::{Keeping, Link, Resuming};

#[cfg(feature = "rocksdb")]
use crate::checkpoint::AnyCheckpoint;
#[cfg(feature = "rocksdb")]
use checkpoints::{Mounts, Watched};

type Mounting<C> = Box<dyn for<'c> FnOnce(&'c C, &mut Routes<'c, C>) -> Result<(), BoxError> + Send>;

/// The handlers that run together over a shared context `C`: made by [`flow!`](crate::flow), or
/// step by step with [`with`](Flow::with).
#[must_use = "a flow does nothing until it is run"]
pub struct Flow<C> {
    mounts: Vec<(String, Mounting<C>)>,
    name: Option<String>,
    settings: Settings,
    keeping: Keeping,
    handle: FlowHandle,
    #[cfg(feature = "rocksdb")]
    checkpoints: Vec<Arc<dyn AnyCheckpoint>>,
}

impl<C> fmt::Debug for Flow<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let handlers: Vec<_> = self.mounts.iter().map(|(handler, _)| handler).collect();
        f.debug_struct("Flow").field("name", &self.name).field("handlers", &handlers).finish()
    }
}

impl<C: 'static> Default for Flow<C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C: 'static> Flow<C> {
    /// A flow without handlers, which ends at once when it is run.
    pub fn new() -> Self {
        Flow {
            mounts: Vec::new(),
            name: None,
            settings: Settings::default(),
            keeping: Keeping::default(),
            handle: FlowHandle::default(),
            #[cfg(feature = "rocksdb")]
            checkpoints: Vec::new(),
        }
    }

    /// Adds the handler that `#[handle]` made of a function.
    pub fn mount<M: Mount<C> + 'static>(mut self) -> Self {
        let path = std::any::type_name::<M>();
        let name = path.rsplit("::").next().unwrap_or(path);
        self.mounts.push((name.to_owned(), Box::new(M::mount)));
        self
    }

    /// Adds a handler made of a closure: `source(&s).handle(|item| …).sink(&t)`.
    pub fn with(mut self, route: impl Attach<C> + 'static) -> Self {
        self.mounts.push(("closure".to_owned(), Box::new(|_, routes| route.attach(routes))));
        self
    }

    /// Names the flow; the name stands in its log lines. The first flow with a name that runs over a store
    /// owns it, and the sources are told the name with each commit: a flow of another name over the
    /// same store or source is an error at the start, or what [`on_lost_state`](Flow::on_lost_state) says.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The store in which the flow keeps its state and the positions of its sources. A flow finds it by
    /// the caches among its sinks; one whose handlers alone write to caches is told.
    #[cfg(feature = "rocksdb")]
    pub fn store(mut self, store: &crate::store::Store) -> Self {
        self.keeping.store = Some(store.clone());
        self
    }

    /// Runs with a checkpoint over sources of the flow, whose record its store keeps.
    #[cfg(feature = "rocksdb")]
    pub fn checkpoint<M: crate::Marker>(mut self, checkpoint: &crate::Checkpoint<M>) -> Self {
        self.checkpoints.push(Arc::clone(&checkpoint.0) as Arc<dyn AnyCheckpoint>);
        self
    }

    /// What it does when its store is not the one that its sources were read into; without this it
    /// stops with an error. Only sources that remember what they were told
    /// ([`Seekable::committed`](crate::Seekable::committed)) can tell. A store in memory always accepts, with a line in
    /// the log; so it is where, without [`sync`](Flow::sync), a power loss took the last commits.
    #[cfg(feature = "rocksdb")]
    pub fn on_lost_state(mut self, choice: OnLostState) -> Self {
        self.keeping.on_lost_state = choice;
        self
    }

    /// The instance's name, where several processes run this flow over the partitions of one consumer group: different
    /// in each, and the same after a restart. By it a partition that comes back from another instance is told
    /// from a store that was lost, and it is the `group.instance.id` of the flow's consumers (static
    /// membership): an instance that is back within the session's time-out gets its partitions back.
    pub fn instance(mut self, name: impl Into<String>) -> Self {
        self.keeping.instance = Some(name.into());
        self
    }

    /// Commits each `interval`; 100 ms without it. After a crash the messages since the last commit come
    /// again, so a longer one repeats more; a commit waits for the disk, so a shorter one keeps it busier.
    pub fn commit_every(mut self, interval: Duration) -> Self {
        self.settings.every = interval;
        self
    }

    /// Commits after so many messages too, without waiting for the interval.
    pub fn commit_after(mut self, messages: u64) -> Self {
        self.settings.after = Some(messages.max(1));
        self
    }

    /// Whether a commit waits until the disk has it, as it does unless told otherwise. Without, a crash
    /// of the process still loses nothing, while a power loss takes the store back to an earlier commit,
    /// state and positions together.
    pub fn sync(mut self, sync: bool) -> Self {
        self.settings.sync = sync;
        self
    }

    /// About how many bytes of rows may wait for a commit; 64 MiB without it. At the bound the epoch is
    /// committed at once, and no message begins while the one before is still being written. One message
    /// that is larger is let through.
    pub fn epoch_bytes(mut self, bytes: usize) -> Self {
        self.settings.memory_bytes = bytes;
        self
    }

    /// A handle to stop the flow with, or to make it commit, from wherever it is needed, its handlers
    /// included.
    #[must_use]
    pub fn handle(&self) -> FlowHandle {
        self.handle.clone()
    }

    /// Runs until all sources have ended, or a [handle](FlowHandle::stop) stops it, over a context or
    /// an `Arc` of one (keep a clone to look into it afterwards). Each source is read by a task of its
    /// own; each message goes through the handlers of its source before the next one begins.
    ///
    /// To read one source before another, run two flows one after the other over clones of one `Arc`.
    ///
    /// # Errors
    /// The first [`Error`], boxed. The other sources then stop, the messages they have in hand are
    /// finished, and what is published is committed before it is returned. Where a commit itself has
    /// failed, what it should have stored is dropped, and the caches show the commit before.
    ///
    /// # Panics
    /// Only when polled outside of a tokio runtime, or, where state is kept, in one without its timers
    /// (`enable_time`, or `#[tokio::main]`). Panics of handlers are errors.
    ///
    /// # Cancel safety
    /// Dropping the future is like a crash: the tasks end where they wait, a message in hand is dropped
    /// whole, state and positions are those of the last commit, outputs already sent stand, and the
    /// sinks are not flushed. The store is free for another flow at once; for that the drop waits until
    /// the disk has a batch that is just being written. A handler that another thread is just polling goes
    /// on until it waits: it may see that state already, and what it writes is dropped.
    pub fn run<A: IntoContext<C>>(self, context: A) -> Run<C> {
        Run { begins: Some((self, context.into_context())), runs: None }
    }
}

/// What [`Flow::run`] gives: does nothing until it is awaited.
// A future of its own, and no boxed one, so that `run` need not ask whether threads may share `C`: where
// they may not, `mount` has said so.
#[must_use = "a flow does nothing until it is awaited"]
pub struct Run<C> {
    begins: Option<(Flow<C>, Arc<C>)>,
    runs: Option<BoxFuture<'static, Result<(), BoxError>>>,
}

impl<C> fmt::Debug for Run<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").finish_non_exhaustive()
    }
}

impl<C> Future for Run<C> {
    type Output = Result<(), BoxError>;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some((flow, context)) = self.begins.take() {
            let name = flow.name.clone();
            let opening = Opening::mount(flow, &context);
            self.runs = Some(Box::pin(async move {
                let ended = async {
                    match opening?.open().await? {
                        Some(mut running) => running.run().await,
                        None => Ok(()),
                    }
                };
                ended.await.map_err(|error| {
                    tracing::error!(flow = name, "ended: {error:?}");
                    error.into()
                })
            }));
        }
        match &mut self.runs {
            Some(runs) => runs.as_mut().poll(cx),
            // Polled again after a panic at the start.
            None => Poll::Pending,
        }
    }
}

/// A flow whose store is known and whose sources with positions are still to be opened. Here its context's
/// type is forgotten.
struct Opening {
    commit: Commit,
    routes: Vec<Box<dyn Ready>>,
    sinks: Vec<Arc<dyn Flush>>,
    resuming: Resuming,
    handle: FlowHandle,
    #[cfg(feature = "rocksdb")]
    checkpoints: Mounts,
}

impl Opening {
    fn mount<C>(flow: Flow<C>, context: &Arc<C>) -> Result<Self, Error> {
        let mut routes = Routes::new();
        for (handler, mount) in flow.mounts {
            mount(context, &mut routes).map_err(|cause| Error::Start { handler, cause })?;
        }
        let (commit, resuming) = flow.keeping.begin(flow.settings, flow.name.as_deref(), &routes)?;
        #[cfg(feature = "rocksdb")]
        let checkpoints = Mounts::find(flow.checkpoints, &routes, resuming.has_store())?;
        routes.open()?;
        let (routes, sinks) = routes.over(context);
        Ok(Opening {
            commit,
            routes,
            sinks,
            resuming,
            handle: flow.handle,
            #[cfg(feature = "rocksdb")]
            checkpoints,
        })
    }

    /// Opens the sources with positions where they go on, and begins to read. `None` where the flow is
    /// stopped before it has reached all that it needs.
    async fn open(self) -> Result<Option<Running>, Error> {
        #[cfg(feature = "rocksdb")]
        let checkpoints = self.checkpoints;
        let Opening { commit, mut routes, sinks, mut resuming, handle, .. } = self;
        let FlowHandle { stop, demand } = handle;
        let reached = async {
            for sinks in &sinks {
                sinks.open().await.map_err(|cause| Error::Open { handler: sinks.name(), cause })?;
            }
            resuming.join().await
        };
        tokio::select! {
            // What needs not wait is done before a stop is looked for.
            biased;
            reached = reached => reached?,
            () = stop.stopped() => return Ok(None),
        }
        let commit = resuming.telling(commit);
        let starts = resuming.positions(&commit).await?;
        let commit = commit.on_demand(Arc::clone(&demand));
        #[cfg(feature = "rocksdb")]
        let (commit, watches) = checkpoints.watch(commit, &routes, resuming.names())?;
        let shared = Arc::new(Shared { stop, commit, demand: Arc::clone(&demand) });
        // Before the first handler, which may ask its source where it is.
        let links = resuming.link(&shared);
        // Before a source is opened, which may be one that waits since before a restart.
        #[cfg(feature = "rocksdb")]
        let checkpoints = watches.begin(&routes, &starts, &shared)?;
        for (source, start) in starts {
            if let Some(route) = routes.get_mut(source as usize) {
                route.open(start, resuming.joined(source, &shared))?;
            }
        }
        // Before the first handler, which may ask for a commit.
        demand.runs();
        let mut tasks = Tasks::default();
        for (source, route) in (0..).zip(routes) {
            let (origin, is_inner) = (route.origin().to_owned(), route.is_inner());
            let others_ended = Arc::clone(&tasks.others_ended);
            #[cfg(feature = "rocksdb")]
            let watch = checkpoints.of(source);
            #[cfg(not(feature = "rocksdb"))]
            let watch = crate::watch::is_asked().then(|| {
                let name: Arc<str> = Arc::from(origin.as_str());
                let called = route.called().unwrap_or_else(|| Arc::clone(&name));
                Arc::new(crate::watch::Watch::new(source, called, name, &route.handlers()))
            });
            for task in route.tasks(Start { shared: Arc::clone(&shared), source, others_ended, watch }) {
                let id = tasks.running.spawn(task).id();
                tasks.origins.insert(id, origin.clone());
                if !is_inner {
                    tasks.others.insert(id);
                }
            }
        }
        Ok(Some(Running {
            _links: links,
            shared,
            tasks,
            sinks,
            #[cfg(feature = "rocksdb")]
            checkpoints,
        }))
    }
}

/// A flow whose sources are being read.
struct Running {
    /// Dropped before the flow, which knows the positions without a store.
    _links: Vec<Link>,
    shared: Arc<Shared>,
    tasks: Tasks,
    sinks: Vec<Arc<dyn Flush>>,
    #[cfg(feature = "rocksdb")]
    checkpoints: Watched,
}

/// The tasks of a flow's sources.
struct Tasks {
    running: JoinSet<Result<(), Error>>,
    origins: HashMap<Id, String>,
    /// Those of sources that have an end of their own.
    others: HashSet<Id>,
    /// They have come to it, which is the end of channels and caches.
    others_ended: Arc<Stop>,
}

impl Drop for Running {
    /// The tasks end where they wait, which may be later; the store is free at once.
    fn drop(&mut self) {
        // A task that waits for nothing begins no other message either.
        self.shared.stop.set();
        #[cfg(feature = "rocksdb")]
        self.shared.commit.abandon();
        self.shared.demand.dropped();
    }
}

impl Running {
    /// Reads the sources to their end, and commits meanwhile; the first error stops the flow.
    async fn run(&mut self) -> Result<(), Error> {
        let Running { shared, tasks, sinks, .. } = self;
        let (done, ended) = oneshot::channel();
        let (no_more, sources_ended) = oneshot::channel();
        #[cfg(feature = "rocksdb")]
        let checkpoints = self.checkpoints.keep(shared, sources_ended);
        #[cfg(not(feature = "rocksdb"))]
        let checkpoints = async move {
            drop::<oneshot::Receiver<()>>(sources_ended);
            None
        };
        let source_failed = AtomicBool::new(false);
        let sources = async {
            let failed = tasks.all_ended(|| {
                source_failed.store(true, Ordering::Relaxed);
                shared.stop.set();
            });
            let failed = failed.await;
            // Nobody listens any more where a commit has failed.
            let _ = done.send(());
            let _ = no_more.send(());
            failed
        };
        let commits = async {
            let kept = shared.commit.keep(sinks, ended).await;
            let is_first = kept.is_err() && !source_failed.load(Ordering::Relaxed);
            if kept.is_err() {
                shared.stop.set();
            }
            (kept, is_first)
        };
        let (failed, (kept, commit_was_first), checkpoints) = tokio::join!(sources, commits, checkpoints);
        // What is published is committed, also when a handler has stopped the flow.
        let committed = shared.commit.end(sinks, kept.is_err()).await;
        let mut errors = if commit_was_first { vec![kept.err(), failed] } else { vec![failed, kept.err()] };
        // Where it was first, the others have stopped for it, and have no error.
        errors.push(checkpoints);
        errors.push(committed.err());
        for source in shared.commit.told() {
            errors.push(source.leave().await.err());
        }
        let mut errors = errors.into_iter().flatten();
        let first = errors.next();
        for error in errors {
            tracing::error!("after another error: {error:?}");
        }
        first.map_or(Ok(()), Err)
    }
}

impl Default for Tasks {
    fn default() -> Self {
        Tasks {
            running: JoinSet::new(),
            origins: HashMap::new(),
            others: HashSet::new(),
            others_ended: Arc::default(),
        }
    }
}

impl Tasks {
    /// Waits for all sources; an error is to `stop` the others.
    async fn all_ended(&mut self, stop: impl Fn()) -> Option<Error> {
        let mut first = None;
        while let Some(ended) = self.running.join_next_with_id().await {
            let (id, ended) = match ended {
                Ok((id, ended)) => (id, ended),
                Err(error) => (error.id(), Err(panicked(error, &self.origins))),
            };
            // Where there are no others, channels end when they are closed.
            if self.others.remove(&id) && self.others.is_empty() {
                self.others_ended.set();
            }
            let Err(error) = ended else { continue };
            stop();
            if first.is_none() {
                first = Some(error);
            } else {
                tracing::error!("after another error: {error:?}");
            }
        }
        first
    }
}

/// A handler's panics are caught where it is polled, so it was the source.
fn panicked(error: JoinError, origins: &HashMap<Id, String>) -> Error {
    let origin = origins.get(&error.id()).cloned().unwrap_or_default();
    let message = match error.try_into_panic() {
        Ok(payload) => panic_message(&*payload),
        Err(_) => "its task was cancelled: the runtime is shutting down".to_owned(),
    };
    Error::Source { origin, message }
}

/// What a flow over `C` runs over: a `C`, or an `Arc<C>`.
#[diagnostic::on_unimplemented(
    message = "this flow runs over `{C}`, not over `{Self}`",
    label = "expected `{C}` or `Arc<{C}>`",
    note = "the context is the type that the handlers take by reference; a flow whose handlers take none runs over `()`"
)]
pub trait IntoContext<C> {
    /// Shares it.
    fn into_context(self) -> Arc<C>;
}

impl<C> IntoContext<C> for C {
    fn into_context(self) -> Arc<C> {
        Arc::new(self)
    }
}

impl<C> IntoContext<C> for Arc<C> {
    fn into_context(self) -> Arc<C> {
        self
    }
}

/// The handlers that run together: `flow![handle_weather, handle_activity]`.
///
/// Each name is a function under `#[handle]`. One that is not annotated is rustc's own error,
/// "expected type, found function": annotate it, or mount a closure with
/// [`Flow::with`](crate::Flow::with).
#[macro_export]
macro_rules! flow {
    () => {
        ::core::compile_error!("`flow![…]` needs at least one handler")
    };
    ($($handler:ty),+ $(,)?) => {
        // In parentheses, since rustc would take a function for a constant, and say less of it.
        $crate::Flow::new()$(.mount::<($handler)>())+
    };
}
