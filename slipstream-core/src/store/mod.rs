//! Stores: one RocksDB database each, in which caches keep their rows.
//!
//! ```text
//! Store ── catalogue (id 0): name ─▶ id, formats; identity, epoch, positions
//!   │
//!   └── one key space:  id │ key ─▶ value          Table, one to a cache: cursors kept for look-ups
//!                                   ▲
//!                    Staged ────────┘  the rows of a message, published as one batch
//! ```
//!
//! There is one column family for all caches, so that one write batch, one log and one sequence of
//! writes serve them all, and a scan of one cache is a scan of a range.
//!
//! Invariants: a store is open once, in one process; all that is written in one batch is seen, and
//! found again after a crash, as a whole or not at all; no error of the disk is taken for a missing
//! row.
//!
//! Deliberately absent: a choice of another engine behind a trait, since [`Store`] is one concrete type.
mod bytes;
mod catalogue;
mod changes;
mod claim;
mod cursor;
mod database;
mod epoch;
mod error;
mod format;
mod identity;
mod known;
mod locks;
mod merge;
mod open;
mod options;
mod positions;
mod reads;
mod records;
mod rows;
mod scratch;
mod staged;
mod table;
mod tiers;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rocksdb::{DBPinnableSlice, ReadOptions, WriteBatch, WriteOptions};

use catalogue::Catalogue;
use database::Database;

pub(crate) use bytes::Bytes;
pub(crate) use changes::Change;
pub(crate) use cursor::Lent;
pub(crate) use database::any_is_open;
#[cfg(test)]
pub(crate) use epoch::Frozen;
use epoch::Layers;
pub(crate) use epoch::{Recordings, TurnNumber};
pub use error::StoreError;
pub use format::ValueFormat;
pub use identity::{StoreId, StoreIdError};
pub(crate) use locks::HeldLock;
pub(crate) use merge::{Below, Direction, Taken, last_past, step, visible};
pub(crate) use reads::Read;
pub(crate) use rows::{Found, Rows};
pub(crate) use scratch::Scratch;
pub(crate) use staged::{Staged, StagedThen};
pub(crate) use table::Table;

use crate::key::Key;

/// The length of a cache's id, big endian, at the front of each key.
pub(crate) const ID_BYTES: usize = 4;

/// The id of the cache that a whole key belongs to.
fn table_of(key: &[u8]) -> u32 {
    key.first_chunk().copied().map_or(0, u32::from_be_bytes)
}

/// One RocksDB database, on disk or in memory, that holds caches.
///
/// It is open in one process and there once; a clone is another handle on the same store. The
/// database is closed when the last handle is gone: the `Store`s, their caches, and the iterators of those.
///
/// ```
/// use slipstream_core::Store;
///
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join("state");
/// let store = Store::open(&path)?;
/// let prizes = store.cache::<String, u32>("prizes")?;
/// prizes.insert("🏆", 1)?;
/// drop((store, prizes));
///
/// let store = Store::open(&path)?;
/// assert_eq!(store.cache::<String, u32>("prizes")?.get("🏆")?, Some(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// What is written outside of a message is in RocksDB's log when the call returns. It is safe
/// from a crash of the process then; the operating system decides when it reaches the disk. While a
/// flow runs over the store it is seen at once, and becomes durable with the flow's next commit.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    db: Arc<Database>,
    /// The absolute path, or a name for a store in memory.
    name: Arc<Path>,
    in_memory: bool,
    id: StoreId,
    /// The number of the last commit. Changed while a batch is written, by one at a time.
    epoch: AtomicU64,
    read: ReadOptions,
    write: WriteOptions,
    /// How many idle cursors a cache keeps: one for each thread that may look up at the same time.
    kept_cursors: usize,
    /// Bytes written since the cursors that see an older state were dropped.
    unswept: AtomicUsize,
    epochs: epoch::Epochs,
    locks: Arc<locks::KeyLocks>,
    catalogue: Mutex<Catalogue>,
}

impl Store {
    /// Where the store is on disk, as an absolute path; `None` in memory.
    ///
    /// ```
    /// # use slipstream_core::Store;
    /// assert_eq!(Store::in_memory()?.path(), None);
    /// # Ok::<(), slipstream_core::StoreError>(())
    /// ```
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        (!self.inner.in_memory).then_some(&*self.inner.name)
    }

    /// What errors call the store.
    pub(crate) fn name(&self) -> Arc<Path> {
        Arc::clone(&self.inner.name)
    }

    /// Whether both are handles on one store.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// The table of a cache, made if the store has none of this name.
    pub(crate) fn table<K: Key>(&self, name: &str, values: ValueFormat) -> Result<Arc<Table>, StoreError> {
        self.inner.catalogue.lock().unwrap_or_else(PoisonError::into_inner).table::<K>(self, name, values)
    }

    fn db(&self) -> &Arc<Database> {
        &self.inner.db
    }

    fn kept_cursors(&self) -> usize {
        self.inner.kept_cursors
    }

    #[inline]
    fn get(&self, key: &[u8]) -> Result<Option<DBPinnableSlice<'_>>, StoreError> {
        self.inner.db.get_pinned_opt(key, &self.inner.read).map_err(|error| self.error(&error))
    }

    fn set(&self, key: &[u8], value: Option<&[u8]>) -> Result<(), StoreError> {
        let Inner { db, write, .. } = &*self.inner;
        match value {
            Some(value) => db.put_opt(key, value, write),
            None => db.delete_opt(key, write),
        }
        .map_err(|error| self.error(&error))?;
        self.wrote(key.len() + value.map_or(0, <[u8]>::len));
        Ok(())
    }

    fn write(&self, batch: WriteBatch) -> Result<(), StoreError> {
        self.write_with(batch, &self.inner.write)
    }

    fn write_with(&self, batch: WriteBatch, options: &WriteOptions) -> Result<(), StoreError> {
        let bytes = batch.size_in_bytes();
        self.inner.db.write_opt(batch, options).map_err(|error| self.error(&error))?;
        self.wrote(bytes);
        Ok(())
    }

    /// Once in a write buffer's worth of bytes, lets go of what idle cursors keep of older states.
    fn wrote(&self, bytes: usize) {
        let unswept = self.inner.unswept.fetch_add(bytes, Ordering::Relaxed);
        if unswept + bytes >= options::WRITE_BUFFER_BYTES
            // Another thread holds the catalogue to open a cache (it may be this one): the next write does it.
            && let Ok(catalogue) = self.inner.catalogue.try_lock()
        {
            self.inner.unswept.store(0, Ordering::Relaxed);
            let tables = catalogue.tables();
            drop(catalogue);
            let latest = self.inner.db.latest_sequence_number();
            for table in tables {
                table.pool.drop_stale(latest);
            }
        }
    }

    /// Writes the rows that RocksDB has in memory to a file.
    #[cfg(test)]
    pub(crate) fn flush(&self) {
        self.inner.db.flush().unwrap();
    }

    /// Merges all files into one.
    #[cfg(test)]
    pub(crate) fn compact(&self) {
        self.inner.db.compact_range(None::<&[u8]>, None::<&[u8]>);
    }

    #[cold]
    fn error(&self, error: &rocksdb::Error) -> StoreError {
        StoreError::from_rocksdb(&self.inner.name, error)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("path", &self.inner.name).finish_non_exhaustive()
    }
}
