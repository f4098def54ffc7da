//! What one message has written to its store and not yet published: a layer of rows that only this
//! message sees.
//!
//! ```text
//! cache.insert ──▶ Staged ──publish──▶ one write batch ──▶ RocksDB
//!                        ──clear──▶ nothing
//! ```
//!
//! Invariants: all rows are of one store; publication writes all of them or none; what was read to make
//! a row is remembered as long as the row; a clone of the rows ([`Staged::rows`]) never changes, so an iterator, or a
//! savepoint, is such a clone.
use std::sync::Arc;

use rocksdb::WriteBatch;

use super::rows::Rows;
use super::{Bytes, ID_BYTES, Read, Store, StoreError};

/// What a row adds to a write batch besides its key and value: a tag and two lengths.
const ROW_BYTES: usize = 8;
/// What a write batch has at its head.
const BATCH_BYTES: usize = 12;

/// The rows of one message for one store.
#[derive(Debug, Clone)]
pub(crate) struct Staged {
    store: Store,
    rows: Arc<Rows>,
    /// What was read to make some of the rows. None without rows.
    reads: Vec<Read>,
}

impl Staged {
    pub(crate) fn new(store: &Store) -> Self {
        Self { store: store.clone(), rows: Arc::default(), reads: Vec::new() }
    }

    /// The rows, if they are for this store and there are any.
    pub(crate) fn rows(&self, store: &Store) -> Option<&Arc<Rows>> {
        (self.store.is(store) && !self.rows.is_empty()).then_some(&self.rows)
    }

    /// Changes the rows.
    pub(crate) fn change(&mut self, store: &Store, change: impl FnOnce(&mut Rows)) -> Result<(), StoreError> {
        if !self.store.is(store) {
            if !self.rows.is_empty() {
                return Err(StoreError::TwoStores { first: self.store.name(), second: store.name() });
            }
            self.store = store.clone();
            self.reads.clear();
        }
        // Copies the rows if an iterator still looks at them.
        change(Arc::make_mut(&mut self.rows));
        Ok(())
    }

    /// Sets the row that was made of what was read, which is checked when it is published.
    pub(crate) fn update(
        &mut self,
        store: &Store,
        read: Read,
        value: Option<Bytes>,
    ) -> Result<(), StoreError> {
        self.change(store, |rows| rows.put(read.key().clone(), value))?;
        self.reads.push(read);
        Ok(())
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// What was read below these rows to make some of them.
    pub(crate) fn reads(&self) -> &[Read] {
        &self.reads
    }

    /// The message is published.
    pub(crate) fn forget_reads(&mut self) {
        self.reads.clear();
    }

    /// These rows as they are now. Costs little: they are copied when the next is written.
    pub(crate) fn savepoint(&self) -> StagedThen {
        StagedThen { store: self.store.clone(), rows: Arc::clone(&self.rows), reads: self.reads.len() }
    }

    /// Forgets the rows since, and what was read for them.
    pub(crate) fn roll_back_to(&mut self, then: &StagedThen) {
        self.store = then.store.clone();
        self.rows = Arc::clone(&then.rows);
        self.reads.truncate(then.reads);
    }

    /// Takes all rows, to publish them. Their place is used again by the next message.
    pub(crate) fn take(&mut self) -> Rows {
        match Arc::get_mut(&mut self.rows) {
            Some(rows) => std::mem::take(rows),
            // An iterator still looks at them.
            None => Arc::unwrap_or_clone(std::mem::take(&mut self.rows)),
        }
    }
}

/// The rows of a message at an earlier moment.
#[derive(Debug, Clone)]
pub(crate) struct StagedThen {
    store: Store,
    rows: Arc<Rows>,
    reads: usize,
}

/// All rows of these layers, the oldest first, as one batch.
pub(super) fn batch(layers: &[&Rows]) -> WriteBatch {
    let rows = || layers.iter().flat_map(|layer| layer.iter());
    let bytes: usize =
        rows().map(|(key, value)| key.len() + value.map_or(0, |value| value.len()) + ROW_BYTES).sum();
    let mut batch = WriteBatch::with_capacity_bytes(BATCH_BYTES + bytes);
    for layer in layers {
        // First, since a range deletion hides what the batch has written before it.
        for cache in layer.cleared() {
            let from: [u8; ID_BYTES] = cache.to_be_bytes();
            batch.delete_range(from, cache.saturating_add(1).to_be_bytes());
        }
        for (key, value) in layer.iter() {
            match value {
                Some(value) => batch.put(key, value),
                None => batch.delete(key),
            }
        }
    }
    batch
}
