//! Functions and closures as sinks.
use super::Sink;
use crate::BoxError;
use std::{
    fmt,
    future::{Future, ready},
};

/// What a closure may return as a sink, asked for once (see `once.rs`): `()`, or a `Result<()>`.
#[diagnostic::on_unimplemented(
    message = "a sink returns `()` or `Result<()>`, not `{Self}`",
    label = "returns `{Self}`",
    note = "end the closure's body with `;`"
)]
pub trait Taken {
    /// `S` itself.
    type To<S>;
    /// Itself.
    fn to<S>(sink: S) -> Self::To<S>;
    /// Whether it was taken.
    ///
    /// # Errors
    /// The sink's own.
    fn taken(self) -> Result<(), BoxError>;
}

#[diagnostic::do_not_recommend]
impl Taken for () {
    type To<S> = S;
    fn to<S>(sink: S) -> S {
        sink
    }
    #[inline]
    fn taken(self) -> Result<(), BoxError> {
        Ok(())
    }
}

impl<E: Into<BoxError>> Taken for Result<(), E> {
    type To<S> = S;
    fn to<S>(sink: S) -> S {
        sink
    }
    #[inline]
    fn taken(self) -> Result<(), BoxError> {
        self.map_err(Into::into)
    }
}

#[diagnostic::do_not_recommend]
impl<T: Sync, R: Taken, F: Fn(&T) -> R + Clone + Send + Sync + 'static> Sink<T> for F {
    const WAITS: bool = false;
    #[inline]
    fn send(&self, output: &T) -> impl Future<Output = Result<(), BoxError>> + Send {
        ready(self(output).taken())
    }
}

/// An async closure as a sink. Its future owns what it works on, so `T: Clone`.
///
/// ```
/// let sink = slipstream_core::sink_async(|name: String| async move {
///     tokio::task::yield_now().await;
///     println!("Hello {name}!");
/// });
/// ```
pub fn sink_async<T, F, Fut>(take: F) -> SinkAsync<F>
where
    F: Fn(T) -> Fut,
    Fut: Future,
{
    SinkAsync(take)
}

/// What [`sink_async`] makes.
#[derive(Clone)]
pub struct SinkAsync<F>(F);

impl<F> fmt::Debug for SinkAsync<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SinkAsync").finish_non_exhaustive()
    }
}

impl<T, F, Fut> Sink<T> for SinkAsync<F>
where
    T: Clone + Send + Sync,
    F: Fn(T) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output: Taken> + Send,
{
    async fn send(&self, output: &T) -> Result<(), BoxError> {
        (self.0)(output.clone()).await.taken()
    }
}
