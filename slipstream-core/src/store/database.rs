//! The open database, together with the claim on its directory.
//!
//! Invariant: the claim ends after the database is closed, whoever is the last to hold it: the store
//! or a cursor.
use std::ops::Deref;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};

use rocksdb::DB;

use super::claim::Claim;

/// RocksDB's database. In memory it needs no claim.
pub(super) struct Database {
    // Dropped in this order.
    db: DB,
    _claim: Option<Claim>,
}

impl Database {
    pub(super) fn new(db: DB, claim: Option<Claim>) -> Self {
        OPEN.fetch_add(1, Ordering::Relaxed);
        Self { db, _claim: claim }
    }
}

/// How many are open in this process.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// Whether a store is open in this process.
pub(crate) fn any_is_open() -> bool {
    OPEN.load(Ordering::Relaxed) > 0
}

impl Drop for Database {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Deref for Database {
    type Target = DB;

    fn deref(&self) -> &DB {
        &self.db
    }
}

// No code that could panic runs inside of RocksDB, so none can leave it half changed.
impl UnwindSafe for Database {}
impl RefUnwindSafe for Database {}
