//! A flow: handlers that run together over one context.
use crate::{
    BoxError, Mount,
    builder::Attach,
    error::{Error, panic_message},
    route::{Drive, Flush, Routes},
    stop::Stop,
};
use futures::future::BoxFuture;
use std::{
    collections::HashMap,
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::task::{Id, JoinError, JoinSet};

type Mounting<C> = Box<dyn for<'c> FnOnce(&'c C, &mut Routes<'c, C>) -> Result<(), BoxError> + Send>;

/// The handlers that run together over a shared context `C`: made by [`flow!`](crate::flow), or
/// step by step with [`with`](Flow::with).
#[must_use = "a flow does nothing until it is run"]
pub struct Flow<C> {
    mounts: Vec<(String, Mounting<C>)>,
    name: Option<String>,
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
        Flow { mounts: Vec::new(), name: None }
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

    /// Names the flow; the name stands in its log lines.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Runs until all sources have ended, over a context or an `Arc` of one (keep a clone to look
    /// into it afterwards). Each source is read by a task of its own; each message goes through the
    /// handlers of its source before the next one begins.
    ///
    /// # Errors
    /// The first [`Error`], boxed. The other sources then stop, the messages they have in hand are
    /// finished, and the sinks are flushed before it is returned.
    ///
    /// # Panics
    /// Only when polled outside of a tokio runtime. Panics of handlers are errors.
    ///
    /// # Cancel safety
    /// Dropping the future ends the tasks where they wait: a message in hand is dropped whole, none
    /// of its cache writes is made, outputs already sent stand, and the sinks are not flushed.
    pub fn run<A: IntoContext<C>>(self, context: A) -> Run<C> {
        Run(State::Begins(self, context.into_context()))
    }
}

/// What [`Flow::run`] gives: does nothing until it is awaited.
#[must_use = "a flow does nothing until it is awaited"]
pub struct Run<C>(State<C>);

// A future of its own, and no boxed one, so that `run` need not ask whether threads may share `C`: where
// they may not, `mount` has said so.
enum State<C> {
    Begins(Flow<C>, Arc<C>),
    Runs(BoxFuture<'static, Result<(), BoxError>>),
    Ended,
}

impl<C> fmt::Debug for Run<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").finish_non_exhaustive()
    }
}

impl<C> Future for Run<C> {
    type Output = Result<(), BoxError>;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let State::Begins(..) = &self.0
            && let State::Begins(flow, context) = std::mem::replace(&mut self.0, State::Ended)
        {
            let running = Running::start(flow.mounts, &context)?;
            self.0 = State::Runs(Box::pin(running.end(flow.name)));
        }
        match &mut self.0 {
            State::Runs(running) => running.as_mut().poll(cx),
            // It was polled again after it could not start.
            _ => Poll::Pending,
        }
    }
}

/// A flow whose sources are being read.
struct Running {
    drive: Arc<Drive>,
    tasks: JoinSet<Result<(), Error>>,
    origins: HashMap<Id, String>,
    flushes: Vec<Arc<dyn Flush>>,
}

impl Running {
    fn start<C>(mounts: Vec<(String, Mounting<C>)>, context: &Arc<C>) -> Result<Self, Error> {
        let mut routes = Routes::new();
        for (handler, mount) in mounts {
            mount(context, &mut routes).map_err(|cause| Error::Start { handler, cause })?;
        }
        let (routes, flushes) = routes.into_parts();
        let drive = Arc::new(Drive { stop: Stop::default() });
        let (mut tasks, mut origins) = (JoinSet::new(), HashMap::new());
        for route in routes {
            let origin = route.origin().to_owned();
            let task = tasks.spawn(route.run(Arc::clone(context), Arc::clone(&drive)));
            origins.insert(task.id(), origin);
        }
        Ok(Running { drive, tasks, origins, flushes })
    }

    async fn end(mut self, name: Option<String>) -> Result<(), BoxError> {
        let first = self.all_ended().await;
        let flushed = self.flush().await;
        if let (Some(_), Some(second)) = (&first, &flushed) {
            tracing::error!(flow = name, "after another error: {second:?}");
        }
        first.or(flushed).map_or(Ok(()), |error| Err(error.into()))
    }

    /// Waits for all sources; the first error stops the others.
    async fn all_ended(&mut self) -> Option<Error> {
        let mut first = None;
        while let Some(ended) = self.tasks.join_next().await {
            let Err(error) = ended.unwrap_or_else(|error| Err(self.panicked(error))) else { continue };
            self.drive.stop.set();
            if first.is_none() {
                first = Some(error);
            } else {
                tracing::error!("after another error: {error:?}");
            }
        }
        first
    }

    /// A handler's panics are caught where it is polled, so it was the source.
    fn panicked(&self, error: JoinError) -> Error {
        let origin = self.origins.get(&error.id()).cloned().unwrap_or_default();
        let message = match error.try_into_panic() {
            Ok(payload) => panic_message(&*payload),
            Err(_) => "its task was cancelled: the runtime is shutting down".to_owned(),
        };
        Error::Source { origin, message }
    }

    async fn flush(&self) -> Option<Error> {
        let mut first = None;
        for sinks in &self.flushes {
            if let Err(cause) = sinks.flush().await {
                first.get_or_insert(Error::Flush { handler: sinks.name(), cause });
            }
        }
        first
    }
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
