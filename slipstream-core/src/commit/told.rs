//! What the sources hear of a commit: into which store they were read, and how far.
use crate::{
    BoxError, Error,
    error::panic_message,
    position::Positions,
    source::{AnySeekable, Joining, Mark},
};
use futures::FutureExt;
#[cfg(feature = "rocksdb")]
use std::collections::BTreeMap;
use std::{fmt, future::Future, panic::AssertUnwindSafe, sync::Arc};

#[cfg(feature = "rocksdb")]
use crate::store::Store;

/// A source that is told of each commit.
pub(crate) struct Told {
    /// As the flow numbers it.
    pub(crate) number: u32,
    /// As the attribute names it.
    pub(crate) origin: String,
    /// As the store names it.
    #[cfg_attr(not(feature = "rocksdb"), expect(dead_code))]
    pub(crate) name: Arc<str>,
    pub(crate) seeks: Arc<dyn AnySeekable>,
    /// The flow, as it was told when it joined.
    pub(crate) joining: Arc<Joining>,
}

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Told").field("origin", &self.origin).finish_non_exhaustive()
    }
}

impl Told {
    /// Whether it remembers its positions by itself: the flow has no store.
    #[cfg(feature = "rocksdb")]
    pub(super) fn keeps_its_positions(&self) -> bool {
        !self.joining.has_store
    }

    /// Tells the source of the commit that the store has just made, of each partition no more than up to its cap.
    #[cfg(feature = "rocksdb")]
    pub(super) async fn tell_of(
        &self,
        flow: Option<&str>,
        store: &Store,
        caps: &BTreeMap<(u32, i32), i64>,
    ) -> Result<(), Error> {
        let mut positions = store.positions(&self.name).map_err(|cause| self.failed(cause.into()))?;
        for ((_, partition), cap) in caps.range((self.number, i32::MIN)..=(self.number, i32::MAX)) {
            if positions.next(*partition).is_some_and(|next| next > *cap) {
                positions.set(*partition, *cap, 0);
            }
        }
        let mark = Mark::new(flow.map(str::to_owned), store.id().to_string(), store.epoch(), positions);
        self.tell(&mark).await
    }

    /// Tells the source how far it is, where no store knows it.
    pub(super) async fn tell_alone(&self, flow: Option<&str>, positions: Positions) -> Result<(), Error> {
        self.tell(&Mark::new(flow.map(str::to_owned), "", 0, positions)).await
    }

    async fn tell(&self, mark: &Mark) -> Result<(), Error> {
        self.caught(async { self.seeks.committed(mark, &self.joining).await }).await
    }

    /// Nothing more is told after this.
    pub(crate) async fn leave(&self) -> Result<(), Error> {
        self.caught(async { self.seeks.leave(&self.joining).await }).await
    }

    async fn caught(&self, told: impl Future<Output = Result<(), BoxError>>) -> Result<(), Error> {
        let told = AssertUnwindSafe(told).catch_unwind().await;
        let told =
            told.unwrap_or_else(|payload| Err(format!("it panicked: {}", panic_message(&*payload)).into()));
        told.map_err(|cause| self.failed(cause))
    }

    fn failed(&self, cause: BoxError) -> Error {
        Error::Mark { origin: self.origin.clone(), cause }
    }
}
