//! What a message, or a call outside of one, has read in order to change it, until it is published:
//! the optimistic half of `update`.
//!
//! ```text
//! update ─▶ Read ─▶ the user's closure ─▶ rows ──publish──▶ is each Read still true?  no: nothing moves
//! ```
//!
//! Invariants: a read is remembered with what it saw below the message's own rows; it is compared
//! under the lock under which the rows are moved, so nothing comes between; no lock is held in the
//! meantime. Values are compared, not who wrote them: one that was changed and changed back is unchanged.
use super::rows::Found;
use super::{Bytes, Layers, Store, StoreError};

/// One key as it was read.
#[derive(Debug, Clone)]
pub(crate) struct Read {
    key: Bytes,
    value: Option<Bytes>,
    /// Where no layer knew the key: RocksDB's number of the latest write before it was asked.
    database: Option<u64>,
}

impl Read {
    /// The whole key.
    pub(crate) fn key(&self) -> &Bytes {
        &self.key
    }

    /// The value; `None` where there was no row.
    pub(crate) fn value(&self) -> Option<&[u8]> {
        self.value.as_deref()
    }

    /// The layers know this value, or that there is none.
    fn is(&self, now: Option<&Bytes>) -> bool {
        match (&self.value, now) {
            (Some(read), Some(now)) => read == now,
            (None, None) => true,
            _ => false,
        }
    }
}

impl Store {
    /// What is published or stored under a key, to be checked when what is made of it is published.
    pub(crate) fn read(&self, key: &[u8]) -> Result<Read, StoreError> {
        let found = self.layers().map_or(Found::Nothing, |layers| layers.find(key));
        let (value, database) = match found {
            Found::Value(value) => (Some(value), None),
            Found::Deleted => (None, None),
            Found::Nothing => {
                // In this order: the value may be newer than the number says, never older.
                let latest = self.db().latest_sequence_number();
                (self.get(key)?.map(|row| Bytes::from(&*row)), Some(latest))
            }
        };
        Ok(Read { key: Bytes::from(key), value, database })
    }

    /// Whether all that was read is as it was. The caller holds the lock of the layers for writing, and
    /// without a running flow that keeps all others from RocksDB too.
    pub(super) fn are_unchanged(&self, layers: &Layers, reads: &[Read]) -> Result<bool, StoreError> {
        for read in reads {
            let is_unchanged = match layers.find(&read.key) {
                Found::Value(now) => read.is(Some(&now)),
                Found::Deleted => read.is(None),
                // It was not in a layer then either, and RocksDB is the same: the usual case.
                Found::Nothing if read.database == Some(self.db().latest_sequence_number()) => true,
                // An epoch was written meanwhile, or dropped.
                Found::Nothing => self.get(&read.key)?.as_deref() == read.value(),
            };
            if !is_unchanged {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
