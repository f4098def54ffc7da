//! Sinks: what takes each output of a handler. A handler's sinks are a typed list, so no call to
//! one is dynamic.
//!
//! ```text
//! handler ─▶ outputs ─┬─ stage: into the message's transaction, while the handlers run (caches)
//!                     └─ send:  to the outside, when all handlers of the message are done
//! sources have ended ── flush
//! ```
mod closure;
mod list;
mod printed;

pub use closure::{SinkAsync, Taken, sink_async};
pub use list::{SinkList, Sinks};

pub use printed::print;

use crate::BoxError;
#[cfg(feature = "rocksdb")]
use crate::store::Store;
use futures::future::BoxFuture;
use std::{
    future::{Future, ready},
    pin::pin,
    task::{Context, Poll, Waker},
};

/// Something that takes outputs `T`: a [`Cache`](crate::Cache), [`print`](crate::print), a function
/// or closure `Fn(&T)` (it may return a `Result<()>`), or a type of your own:
///
/// ```
/// use slipstream_core::{Result, Sink};
/// use std::sync::Arc;
/// use tokio::{io::AsyncWriteExt, sync::Mutex};
///
/// #[derive(Clone)]
/// struct Lines(Arc<Mutex<Vec<u8>>>);
///
/// impl Sink<String> for Lines {
///     async fn send(&self, line: &String) -> Result<()> {
///         let mut out = self.0.lock().await;
///         out.write_all(line.as_bytes()).await?;
///         Ok(out.write_all(b"\n").await?)
///     }
///     async fn flush(&self) -> Result<()> {
///         Ok(self.0.lock().await.flush().await?)
///     }
/// }
/// ```
///
/// A handler's sinks take an output in the order written. Where one fails, those before it have
/// taken the output and those after it have not; the flow stops with an error that names the
/// handler, and what the message wrote to caches is dropped. So a sink outside of the store takes
/// each output at least once over a restart, not exactly once.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a sink for `{T}`",
    label = "cannot take `{T}`",
    note = "a `Cache<K, V>` and a `Topic<K, V>` take pairs: return `(key, value)`, with the key `()` where there is none; `print` takes what is `Debug`",
    note = "a function `fn(&T)` is a sink if it returns `()` or `Result<()>`; of an `async fn(T)` make one with `sink_async(…)`, for outputs that are `Clone`"
)]
pub trait Sink<T>: Clone + Send + Sync + 'static {
    /// Whether [`send`](Sink::send) may ever be pending. A sink that never waits says `false`, and is
    /// then called without any place kept for its future; `send` may be an `async fn` all the same, as
    /// long as it awaits nothing that waits.
    const WAITS: bool = true;

    /// Called once when a flow starts, before the first message: the place to find out that it cannot send.
    ///
    /// # Errors
    /// Whatever keeps it from sending: the flow does not start.
    fn open(&self) -> impl Future<Output = Result<(), BoxError>> + Send {
        ready(Ok(()))
    }

    /// Takes an output into the transaction of its message, while the handlers run: what a cache
    /// does. It takes effect with the message, or not at all.
    ///
    /// # Errors
    /// Whatever kept it from taking the output: the message is dropped, the flow stops.
    fn stage(&self, output: &T) -> Result<(), BoxError> {
        let _ = output;
        Ok(())
    }

    /// Takes an output of a message whose handlers are done: everything outside of the store.
    ///
    /// # Cancel safety
    /// Dropped in the middle only where the flow itself is dropped; the output may then be half sent.
    fn send(&self, output: &T) -> impl Future<Output = Result<(), BoxError>> + Send {
        let _ = output;
        ready(Ok(()))
    }

    /// Hands on what was kept back. Called before each commit, which passes the messages whose outputs
    /// these are, and when the sources have ended, also after an error, since what was sent before it
    /// stands. Outputs may be sent while it runs. A sink shared by several handlers is flushed for each.
    fn flush(&self) -> impl Future<Output = Result<(), BoxError>> + Send {
        ready(Ok(()))
    }

    /// The store that it writes into, if it does: a flow finds its store by this when it starts.
    #[cfg(feature = "rocksdb")]
    fn store(&self) -> Option<&Store> {
        None
    }
}

/// The sinks of a handler at the start and at a commit.
pub(crate) trait Flush: Send + Sync {
    fn name(&self) -> &'static str;
    fn open(&self) -> BoxFuture<'_, Result<(), BoxError>>;
    fn flush(&self) -> BoxFuture<'_, Result<(), BoxError>>;
    /// Adds the stores that the sinks write into.
    #[cfg(feature = "rocksdb")]
    fn stores(&self, found: &mut Vec<Store>);
}

impl std::fmt::Debug for dyn Flush {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The result of a future that is said never to wait.
#[inline]
fn now<R>(future: impl Future<Output = Result<R, BoxError>>) -> Result<R, BoxError> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => Err("a sink with `WAITS = false` was pending: it has to say `WAITS = true`".into()),
    }
}
