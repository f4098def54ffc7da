//! Cursors over the rows of one cache in RocksDB, kept from look-up to look-up: opening one costs
//! two to three times a look-up with one that is kept.
//!
//! ```text
//! Pool ──lend──▶ refreshed if anything was written since ──▶ seek, read ──▶ back to the pool
//! ```
//!
//! Invariants: a lent cursor sees all that was written before it was lent, and nothing that is
//! written later; a pooled one never keeps the database open for longer than its cache does; one
//! that has met an error is not used again.
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use rocksdb::DBRawIterator;
use self_cell::self_cell;

use super::database::Database;
use super::{Table, options};

self_cell! {
    struct Owned {
        owner: Arc<Database>,
        #[covariant]
        dependent: DBRawIterator,
    }
}

/// An iterator of RocksDB within the bounds of one cache.
pub(crate) struct Cursor {
    iterator: Owned,
    /// RocksDB's number of the latest write when this was made or refreshed. It grows with each
    /// write, at the moment at which the write becomes visible.
    seen: u64,
    failed: bool,
}

impl Cursor {
    pub(super) fn open(db: &Arc<Database>, from: &[u8], to: &[u8]) -> Self {
        // Read before the cursor is made: it may see more than this says, never less.
        let seen = db.latest_sequence_number();
        let iterator = Owned::new(Arc::clone(db), |db| db.raw_iterator_opt(options::cursor(from, to)));
        Self { iterator, seen, failed: false }
    }

    fn refresh(&mut self) -> Result<(), rocksdb::Error> {
        let latest = self.iterator.borrow_owner().latest_sequence_number();
        if self.seen != latest {
            self.iterator.with_dependent_mut(|_, iterator| iterator.refresh())?;
            self.seen = latest;
        }
        Ok(())
    }

    /// Goes to the first row at or after `key`.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<(), rocksdb::Error> {
        self.go(|iterator| iterator.seek(key))
    }

    /// Goes to the last row before `key`.
    pub(crate) fn seek_before(&mut self, key: &[u8]) -> Result<(), rocksdb::Error> {
        self.go(|iterator| {
            iterator.seek_for_prev(key);
            if iterator.key() == Some(key) {
                iterator.prev();
            }
        })
    }

    #[allow(clippy::redundant_closure_for_method_calls, reason = "the method alone has one lifetime")]
    pub(crate) fn next(&mut self) -> Result<(), rocksdb::Error> {
        self.go(|iterator| iterator.next())
    }

    #[allow(clippy::redundant_closure_for_method_calls, reason = "the method alone has one lifetime")]
    pub(crate) fn prev(&mut self) -> Result<(), rocksdb::Error> {
        self.go(|iterator| iterator.prev())
    }

    fn go(&mut self, to: impl FnOnce(&mut DBRawIterator<'_>)) -> Result<(), rocksdb::Error> {
        let status = self.iterator.with_dependent_mut(|_, iterator| {
            to(iterator);
            // On a row there is no error; past the last row there may be one instead of more rows.
            if iterator.valid() { Ok(()) } else { iterator.status() }
        });
        self.failed |= status.is_err();
        status
    }

    /// The key on which this stands, if on any.
    pub(crate) fn key(&self) -> Option<&[u8]> {
        self.iterator.borrow_dependent().key()
    }

    /// The row on which this stands, if on any.
    pub(crate) fn row(&self) -> Option<(&[u8], &[u8])> {
        self.iterator.borrow_dependent().item()
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").field("seen", &self.seen).finish_non_exhaustive()
    }
}

/// The idle cursors of a cache.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    idle: Mutex<Vec<Cursor>>,
}

impl Pool {
    // The lock is held to move one element, so waiting for it costs far less than opening a cursor.
    fn take(&self) -> Option<Cursor> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn give_back(&self, cursor: Cursor, limit: usize) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < limit {
            idle.push(cursor);
        } else {
            // Dropping one may free files: not under the lock.
            drop(idle);
            drop(cursor);
        }
    }

    /// Drops the idle cursors that do not see the latest write: they keep the memory and the files
    /// of an older state, for a cache that may never be read again.
    pub(super) fn drop_stale(&self, latest: u64) {
        let mut stale = Vec::new();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        for cursor in std::mem::take(&mut *idle) {
            if cursor.seen == latest { &mut *idle } else { &mut stale }.push(cursor);
        }
        drop(idle);
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.idle.lock().unwrap().len()
    }
}

/// A cursor on loan from its cache's pool.
#[derive(Debug)]
pub(crate) struct Lent<T: Deref<Target = Table>> {
    table: T,
    cursor: Option<Cursor>,
}

impl<T: Deref<Target = Table>> Lent<T> {
    /// Borrows a cursor that sees all that was written until now.
    pub(crate) fn new(table: T) -> Result<Self, rocksdb::Error> {
        let cursor = match table.pool.take() {
            Some(mut cursor) => {
                cursor.refresh()?;
                cursor
            }
            None => Cursor::open(table.store.db(), &table.first_key(), &table.end_key()),
        };
        Ok(Self { table, cursor: Some(cursor) })
    }

    pub(crate) fn get(&self) -> Option<&Cursor> {
        self.cursor.as_ref()
    }

    pub(crate) fn get_mut(&mut self) -> Option<&mut Cursor> {
        self.cursor.as_mut()
    }
}

impl<T: Deref<Target = Table>> Drop for Lent<T> {
    fn drop(&mut self) {
        if let Some(cursor) = self.cursor.take()
            && !cursor.failed
        {
            self.table.pool.give_back(cursor, self.table.store.kept_cursors());
        }
    }
}
