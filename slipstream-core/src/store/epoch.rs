//! The epoch: what is published and not yet committed, in memory, in front of RocksDB; and its
//! commit, which is one batch.
//!
//! ```text
//! message ──publish──▶ active ──freeze──▶ closing ──write──▶ RocksDB ──thaw──▶ gone
//!                         ▲                   ▲                  ▲
//! reads:   own rows,    newest ───────────────┴──────────────────┘ oldest
//! ```
//!
//! Invariants: a publication moves all rows of a message and its position into the active layer under
//! one lock, so nobody sees a part of it; state and positions reach RocksDB in one batch, so no crash
//! can part them; a layer is dropped only when RocksDB has its rows, under the lock under which
//! readers look at the layers, so a row on its way down is never missing from both; only one layer is
//! ever closing.
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use rocksdb::WriteOptions;

use super::rows::{Found, Rows};
use super::{Store, StoreError, positions};
use crate::position::Position;

/// Where a source's partition stands: the number the flow gave the source, and the partition.
pub(crate) type Place = (u32, i32);

/// The layers of a store in front of RocksDB, newest first.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    active: Arc<Rows>,
    closing: Option<Arc<Rows>>,
    /// Of the messages published in the active layer, the last of each partition.
    moved: BTreeMap<Place, Position>,
    /// By the numbers that the flow gave them.
    sources: Vec<Arc<str>>,
    /// Why nothing more may be published: a commit has failed, and RocksDB holds the last good one.
    failed: bool,
}

impl Layers {
    /// The active and the closing one, where they have anything.
    #[inline]
    pub(crate) fn both(&self) -> (Option<&Rows>, Option<&Rows>) {
        let active = (!self.active.is_empty()).then_some(&*self.active);
        (active, self.closing.as_deref())
    }
    pub(crate) fn newest_first(&self) -> impl Iterator<Item = &Arc<Rows>> {
        std::iter::once(&self.active).chain(&self.closing)
    }
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> Found {
        match (self.active.get(key), &self.closing) {
            (Found::Nothing, Some(closing)) => closing.get(key),
            (found, _) => found,
        }
    }
}

/// A store's epochs. Without a running flow there are none: writes go to RocksDB at once.
#[derive(Debug, Default)]
pub(super) struct Epochs {
    running: AtomicBool,
    /// About how many bytes of rows the active layer has.
    active_bytes: AtomicUsize,
    layers: RwLock<Layers>,
    /// Held while a batch is written: a flow that was dropped may still be at it.
    writing: Mutex<()>,
    /// Counts down to the write that fails: the seam of tests.
    #[cfg(test)]
    writes_left: AtomicUsize,
    /// Counts the flows that have begun or given up, so that a batch of an earlier one is not written.
    turn: AtomicU64,
}

/// What a commit has taken out of the active layer, until it is written.
#[derive(Debug)]
pub(crate) struct Frozen {
    rows: Arc<Rows>,
    /// Apart from the rows, which an iterator may be looking at.
    positions: Rows,
    turn: u64,
}

/// What each row weighs besides its bytes: its place in the map, and two counted pointers.
const ROW_BYTES: usize = 96;

impl Store {
    /// A flow begins to publish here.
    ///
    /// # Errors
    /// [`StoreError::Running`] when another flow does already.
    pub(crate) fn begin_epochs(&self, sources: Vec<Arc<str>>) -> Result<(), StoreError> {
        // What a dropped flow is still writing is there before this one looks where it stands.
        let _written = self.inner.epochs.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut layers = self.layers_mut();
        if self.inner.epochs.running.swap(true, Ordering::AcqRel) {
            return Err(StoreError::Running { path: self.name() });
        }
        self.inner.epochs.turn.fetch_add(1, Ordering::Relaxed);
        *layers = Layers { sources, ..Layers::default() };
        self.inner.epochs.active_bytes.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// The flow has ended. Answers false while there is something left to commit: what was written
    /// outside of messages in the meantime.
    pub(crate) fn end_epochs(&self) -> bool {
        let mut layers = self.layers_mut();
        if !layers.failed
            && (!layers.active.is_empty() || !layers.moved.is_empty() || layers.closing.is_some())
        {
            return false;
        }
        *layers = Layers::default();
        self.inner.epochs.running.store(false, Ordering::Release);
        true
    }

    /// A commit has failed: what is not in RocksDB is dropped, and nothing more is published.
    pub(crate) fn fail_epochs(&self) {
        let mut layers = self.layers_mut();
        self.inner.epochs.turn.fetch_add(1, Ordering::Relaxed);
        *layers = Layers { failed: true, ..Layers::default() };
    }

    /// The layers as readers see them, while a flow runs.
    #[inline]
    pub(crate) fn layers(&self) -> Option<RwLockReadGuard<'_, Layers>> {
        if !self.inner.epochs.running.load(Ordering::Acquire) {
            return None;
        }
        Some(self.inner.epochs.layers.read().unwrap_or_else(PoisonError::into_inner))
    }

    // Nothing that could panic runs under the lock but what allocates, so it is never left half changed.
    fn layers_mut(&self) -> RwLockWriteGuard<'_, Layers> {
        self.inner.epochs.layers.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves a message's rows and position into the active layer, whole. Without a running flow (a
    /// message of a test) the rows go to RocksDB at once.
    pub(crate) fn publish(&self, rows: Rows, moved: Option<(Place, Position)>) -> Result<(), StoreError> {
        if !self.inner.epochs.running.load(Ordering::Acquire) {
            return match rows.only() {
                _ if rows.is_empty() => Ok(()),
                Some((key, value)) => self.set(key, value.map(|value| &**value)),
                None => self.write(super::staged::batch(&[&rows])),
            };
        }
        let mut layers = self.layers_mut();
        if layers.failed {
            return Err(StoreError::CommitFailed { path: self.name() });
        }
        if !rows.is_empty() {
            let bytes: usize = rows.iter().map(|(key, value)| weight(key, value.map(|value| &**value))).sum();
            Arc::make_mut(&mut layers.active).take_over(rows);
            self.inner.epochs.active_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        if let Some((place, position)) = moved {
            layers.moved.insert(place, position);
        }
        Ok(())
    }

    /// Publishes a write from outside of a message, if a flow runs; without one it is for RocksDB.
    pub(crate) fn publish_outside(&self, change: impl FnOnce(&mut Rows)) -> Option<Result<(), StoreError>> {
        if !self.inner.epochs.running.load(Ordering::Acquire) {
            return None;
        }
        let mut layers = self.layers_mut();
        if layers.failed {
            return Some(Err(StoreError::CommitFailed { path: self.name() }));
        }
        // The flow may have ended before the lock was had.
        if !self.inner.epochs.running.load(Ordering::Acquire) {
            return None;
        }
        change(Arc::make_mut(&mut layers.active));
        self.inner.epochs.active_bytes.fetch_add(ROW_BYTES, Ordering::Relaxed);
        Some(Ok(()))
    }

    /// Makes the commit with this number fail when it is written; the first is 1.
    #[cfg(test)]
    pub(crate) fn fail_at(&self, write: usize) {
        self.inner.epochs.writes_left.store(write, Ordering::Relaxed);
    }

    /// About how many bytes are published and not yet being committed.
    #[inline]
    pub(crate) fn epoch_bytes(&self) -> usize {
        self.inner.epochs.active_bytes.load(Ordering::Relaxed)
    }

    /// First step of a commit: takes the active layer and the positions, under a short lock. `None`
    /// when nothing was published.
    pub(crate) fn freeze(&self) -> Option<Frozen> {
        let mut layers = self.layers_mut();
        debug_assert!(layers.closing.is_none(), "one layer closes at a time");
        if layers.active.is_empty() && layers.moved.is_empty() {
            return None;
        }
        self.inner.epochs.active_bytes.store(0, Ordering::Relaxed);
        let rows = std::mem::take(&mut layers.active);
        let mut positions = Rows::default();
        for ((source, partition), position) in std::mem::take(&mut layers.moved) {
            if let Some(source) = layers.sources.get(source as usize) {
                positions::set(&mut positions, source, partition, position);
            }
        }
        layers.closing = Some(Arc::clone(&rows));
        Some(Frozen { rows, positions, turn: self.inner.epochs.turn.load(Ordering::Relaxed) })
    }

    /// Second step: one batch, which RocksDB has whole or not at all. It may block on the disk.
    pub(crate) fn write_frozen(&self, frozen: &Frozen, sync: bool) -> Result<(), StoreError> {
        let _writing = self.inner.epochs.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if frozen.turn != self.inner.epochs.turn.load(Ordering::Relaxed) {
            return Err(StoreError::CommitFailed { path: self.name() });
        }
        #[cfg(test)]
        if self.inner.epochs.writes_left.fetch_sub(1, Ordering::Relaxed) == 1 {
            return Err(StoreError::NoSpace { path: self.name() });
        }
        let mut options = WriteOptions::default();
        options.disable_wal(self.inner.in_memory);
        options.set_sync(sync && !self.inner.in_memory);
        self.write_with(super::staged::batch(&[&frozen.rows, &frozen.positions]), &options)
    }

    /// Last step: the closing layer is gone, since RocksDB has its rows.
    pub(crate) fn thaw(&self, frozen: Frozen) {
        let closed = self.layers_mut().closing.take();
        // The maps may be large: they are freed outside of the lock.
        drop((closed, frozen));
    }
}

fn weight(key: &[u8], value: Option<&[u8]>) -> usize {
    key.len() + value.map_or(0, <[u8]>::len) + ROW_BYTES
}
