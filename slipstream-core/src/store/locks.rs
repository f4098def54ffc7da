//! Locks on keys: an agreement between those who ask for them, which reads and writes know nothing of.
//!
//! ```text
//! KeyLocks:  key ─▶ place (a fair mutex)  ◀── HeldLock, one to each that has it or waits for it
//! ```
//!
//! Invariants: a key is in the table exactly as long as somebody has its lock or waits for it; who came
//! first has it first; whoever has a lock does not keep the store open by it.
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OwnedMutexGuard;

use super::{Bytes, Store};

/// Where one key's lock is had, or waited for.
type Place = Arc<tokio::sync::Mutex<()>>;

/// The keys that are locked.
#[derive(Debug, Default)]
pub(super) struct KeyLocks {
    places: Mutex<HashMap<Bytes, Place>>,
}

impl KeyLocks {
    fn places(&self) -> MutexGuard<'_, HashMap<Bytes, Place>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lock on one key, had or waited for, until this is dropped.
pub(crate) struct HeldLock {
    locks: Arc<KeyLocks>,
    key: Bytes,
    place: Option<Place>,
    guard: Option<OwnedMutexGuard<()>>,
}

impl Store {
    /// Locks a key. Dropped while it waits, it has left the queue and locked nothing.
    pub(crate) async fn lock(&self, key: Bytes) -> HeldLock {
        let place = Arc::clone(self.inner.locks.places().entry(key.clone()).or_default());
        // Before the wait, so that a future that is dropped leaves the table as it was.
        let mut held = HeldLock {
            locks: Arc::clone(&self.inner.locks),
            key,
            place: Some(Arc::clone(&place)),
            guard: None,
        };
        held.guard = Some(place.lock_owned().await);
        held
    }

    /// How many keys are locked or waited for.
    #[cfg(test)]
    pub(crate) fn locked_keys(&self) -> usize {
        self.inner.locks.places().len()
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        // First, so that the place is not counted for this one any more.
        self.guard = None;
        let mut places = self.locks.places();
        // Under the lock under which others come to the place: of two that leave it, the later sees it empty.
        self.place = None;
        if places.get(&self.key).is_some_and(|place| Arc::strong_count(place) == 1) {
            places.remove(&self.key);
        }
    }
}

impl fmt::Debug for HeldLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HeldLock").field(&self.key.escape_ascii().to_string()).finish()
    }
}
