//! A handler's sinks as one type: `()`, or the sinks before and one more.
use super::{Sink, now};
use crate::BoxError;
use std::future::Future;

/// Sinks as the attribute names them, `(((), &a), &b)`: where one does not take `T`, the compiler
/// points at it inside the tuple.
pub trait SinkList<T> {
    /// The sinks themselves.
    type Sinks: Sinks<T>;
    /// Clones each.
    fn to_sinks(&self) -> Self::Sinks;
}

#[diagnostic::do_not_recommend]
impl<T> SinkList<T> for () {
    type Sinks = ();
    fn to_sinks(&self) {}
}

impl<T: Sync, Before: SinkList<T>, Last: Sink<T>> SinkList<T> for (Before, &Last) {
    type Sinks = (Before::Sinks, Last);
    fn to_sinks(&self) -> Self::Sinks {
        (self.0.to_sinks(), self.1.clone())
    }
}

/// The sinks of a handler, each taking every output in turn; the first error ends it.
pub trait Sinks<T>: Send + Sync + 'static {
    /// Whether any of them may wait.
    const WAIT: bool;
    /// Whether there is none.
    const NONE: bool;
    /// Stages an output in each.
    ///
    /// # Errors
    /// The first sink's that has one.
    fn stage(&self, output: &T) -> Result<(), BoxError>;
    /// Sends an output to each of sinks that never wait.
    ///
    /// # Errors
    /// The first sink's that has one.
    fn send_now(&self, output: &T) -> Result<(), BoxError>;
    /// Sends an output to each.
    fn send(&self, output: &T) -> impl Future<Output = Result<(), BoxError>> + Send;
    /// Opens each; the first error ends it.
    fn open(&self) -> impl Future<Output = Result<(), BoxError>> + Send;
    /// Flushes each; all of them, whatever one of them says.
    fn flush(&self) -> impl Future<Output = Result<(), BoxError>> + Send;
    /// Adds the stores that they write into.
    #[cfg(feature = "rocksdb")]
    fn stores(&self, found: &mut Vec<crate::store::Store>);
}

impl<T> Sinks<T> for () {
    const WAIT: bool = false;
    const NONE: bool = true;
    #[inline]
    fn stage(&self, _: &T) -> Result<(), BoxError> {
        Ok(())
    }
    #[inline]
    fn send_now(&self, _: &T) -> Result<(), BoxError> {
        Ok(())
    }
    fn send(&self, _: &T) -> impl Future<Output = Result<(), BoxError>> + Send {
        std::future::ready(Ok(()))
    }
    fn open(&self) -> impl Future<Output = Result<(), BoxError>> + Send {
        std::future::ready(Ok(()))
    }
    fn flush(&self) -> impl Future<Output = Result<(), BoxError>> + Send {
        std::future::ready(Ok(()))
    }
    #[cfg(feature = "rocksdb")]
    fn stores(&self, _: &mut Vec<crate::store::Store>) {}
}

impl<T: Sync, Before: Sinks<T>, Last: Sink<T>> Sinks<T> for (Before, Last) {
    const WAIT: bool = Before::WAIT || Last::WAITS;
    const NONE: bool = false;
    #[inline]
    fn stage(&self, output: &T) -> Result<(), BoxError> {
        self.0.stage(output)?;
        self.1.stage(output)
    }
    #[inline]
    fn send_now(&self, output: &T) -> Result<(), BoxError> {
        self.0.send_now(output)?;
        now(self.1.send(output))
    }
    async fn send(&self, output: &T) -> Result<(), BoxError> {
        if Before::WAIT {
            self.0.send(output).await?;
        } else {
            self.0.send_now(output)?;
        }
        self.1.send(output).await
    }
    async fn open(&self) -> Result<(), BoxError> {
        self.0.open().await?;
        self.1.open().await
    }
    async fn flush(&self) -> Result<(), BoxError> {
        let before = self.0.flush().await;
        let last = self.1.flush().await;
        before.and(last)
    }
    #[cfg(feature = "rocksdb")]
    fn stores(&self, found: &mut Vec<crate::store::Store>) {
        self.0.stores(found);
        found.extend(self.1.store().cloned());
    }
}
