//! A source that is a member of a group, of which partitions come and go while a flow reads it: what it
//! hears of the flow, and what it may ask of it.
//!
//! ```text
//! flow ──join──▶ source: its name in the store          before anything is opened
//!      ──open──▶ source: Joining (who reads), Standing (where partitions go on, commits)
//!      ──committed─▶                                     after each commit
//!      ──leave─▶                                         after the last one
//! ```
//!
//! Invariants: all sources of a flow have joined before the first is opened, and all are opened before the
//! first is read; a source that has left hears nothing more.
use crate::{BoxError, position::Positions, source::Mark};
use std::{
    any::Any,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// The flow that is about to read a source.
pub(crate) struct Joining {
    /// Its name.
    pub(crate) flow: Option<Arc<str>>,
    /// Its instance, where several processes run the same flow.
    pub(crate) instance: Option<Arc<str>>,
    /// Whether it keeps state: then positions are the store's, else the group's.
    #[cfg_attr(not(any(feature = "kafka", feature = "rocksdb")), expect(dead_code))]
    pub(crate) has_store: bool,
    shared: Mutex<Vec<Arc<dyn Any + Send + Sync>>>,
}

impl Joining {
    pub(crate) fn new(flow: Option<&str>, instance: Option<&str>, has_store: bool) -> Self {
        let (flow, instance) = (flow.map(Arc::from), instance.map(Arc::from));
        Joining { flow, instance, has_store, shared: Mutex::default() }
    }

    /// What sources of this flow share: the first `T` that `is` so, else the one that `make` makes.
    #[cfg_attr(not(feature = "kafka"), allow(dead_code))]
    pub(crate) fn share<T: Any + Send + Sync, E>(
        &self,
        is: impl Fn(&T) -> bool,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        // What is there was put there whole.
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let known = shared.iter().filter_map(|any| Arc::clone(any).downcast::<T>().ok());
        if let Some(known) = known.into_iter().find(|known| is(known)) {
            return Ok(known);
        }
        let made = Arc::new(make()?);
        shared.push(Arc::clone(&made) as Arc<dyn Any + Send + Sync>);
        Ok(made)
    }
}

impl fmt::Debug for Joining {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Joining").field("flow", &self.flow).field("instance", &self.instance).finish()
    }
}

/// What is to be done about a source that was read into another store, or further into this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "kafka"), allow(dead_code))]
pub(crate) enum Judged {
    /// It is this store, with all that the source knows of.
    Same,
    /// Go on from this store's positions.
    #[cfg_attr(not(feature = "rocksdb"), allow(dead_code))]
    Rebuild,
    /// Go on where the source was.
    #[cfg_attr(not(feature = "rocksdb"), allow(dead_code))]
    Accept,
}

/// Where a source stands in the flow that reads it. Its methods wait, and are not for tasks.
#[cfg_attr(not(feature = "kafka"), allow(dead_code))]
pub(crate) trait Standing: Send + Sync {
    /// Where its partitions go on after what is published; without a store, after what this flow has
    /// published.
    fn known(&self) -> Result<Positions, BoxError>;
    /// Stores where partitions begin that were not known, before their first messages. Nothing without a
    /// store.
    fn begin(&self, starts: Positions) -> Result<(), BoxError>;
    /// Whether the store is the one that `mark` speaks of.
    ///
    /// # Errors
    /// Where it is not, and the flow is not told to go on.
    fn judge(&self, mark: &Mark) -> Result<Judged, BoxError>;
    /// Whether the store ends with the process.
    fn is_in_memory(&self) -> bool;
    /// Commits what is published by now. The source hears of it by `committed` before this returns.
    fn commit(&self, within: Duration) -> Result<(), BoxError>;
}

/// A source that is opened as a member of a group.
#[cfg_attr(not(feature = "kafka"), allow(dead_code))]
pub(crate) struct Joined {
    pub(crate) standing: Arc<dyn Standing>,
}
