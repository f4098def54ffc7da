//! What the sources hear of a commit: into which store they were read, and how far.
use crate::{
    Error,
    error::panic_message,
    source::{AnySeekable, Joining, Mark},
    store::Store,
};
use futures::FutureExt;
use std::{fmt, panic::AssertUnwindSafe, sync::Arc};

/// A source that is told of each commit.
pub(crate) struct Told {
    /// As the attribute names it.
    pub(crate) origin: String,
    /// As the store names it.
    pub(crate) name: Arc<str>,
    pub(crate) seeks: Arc<dyn AnySeekable>,
}

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Told").field("origin", &self.origin).finish_non_exhaustive()
    }
}

impl Told {
    /// Tells the source of the commit that the store has just made.
    pub(super) async fn tell(
        &self,
        flow: Option<&str>,
        store: &Store,
        joining: &Joining,
    ) -> Result<(), Error> {
        let failed = |cause| Error::Mark { origin: self.origin.clone(), cause };
        let positions = store.positions(&self.name).map_err(|cause| failed(cause.into()))?;
        let mark = Mark::new(flow.map(str::to_owned), store.id().to_string(), store.epoch(), positions);
        let told =
            AssertUnwindSafe(async { self.seeks.committed(&mark, joining).await }).catch_unwind().await;
        let told =
            told.unwrap_or_else(|payload| Err(format!("it panicked: {}", panic_message(&*payload)).into()));
        told.map_err(failed)
    }
}
