//! What a program hangs on a checkpoint, sync or async.
use crate::BoxError;
use futures::future::BoxFuture;
use std::{future::Future, sync::Arc};

/// What a callback may return: nothing, or a `Result` of nothing with any error.
pub trait Called {
    /// Whether it went well.
    ///
    /// # Errors
    /// The callback's own.
    fn called(self) -> Result<(), BoxError>;
}

impl Called for () {
    fn called(self) -> Result<(), BoxError> {
        Ok(())
    }
}

impl<E: Into<BoxError>> Called for Result<(), E> {
    fn called(self) -> Result<(), BoxError> {
        self.map_err(Into::into)
    }
}

/// A callback told of a `T`.
pub(super) type Callback<T> = Arc<dyn Fn(T) -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync>;

pub(super) fn sync<T: 'static, R: Called>(call: impl Fn(&T) -> R + Send + Sync + 'static) -> Callback<T> {
    Arc::new(move |told| {
        let called = call(&told).called();
        Box::pin(std::future::ready(called))
    })
}

pub(super) fn waiting<T: 'static, R: Called, Fut>(
    call: impl Fn(T) -> Fut + Send + Sync + 'static,
) -> Callback<T>
where
    Fut: Future<Output = R> + Send + 'static,
{
    Arc::new(move |told| {
        let called = call(told);
        Box::pin(async move { called.await.called() })
    })
}
