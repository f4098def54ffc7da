//! The open database, together with the claim on its directory.
//!
//! Invariant: the claim ends after the database is closed, whoever is the last to hold it: the store
//! or a cursor.
use std::ops::Deref;
use std::panic::{RefUnwindSafe, UnwindSafe};

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
        Self { db, _claim: claim }
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
