//! What is stored of checkpoints, beside rows and positions: in the batch of a commit.
//!
//! ```text
//! 00 00 00 00 │ 03 │ kind │ name  ──▶  bytes of whoever writes it
//! ```
use super::rows::Rows;
use super::{ID_BYTES, Store, StoreError};
use crate::watch::Kind;

const ROWS: [u8; ID_BYTES + 1] = [0, 0, 0, 0, 3];

fn key(kind: Kind, name: &str) -> Vec<u8> {
    let mut key = ROWS.to_vec();
    key.push(kind as u8);
    key.extend_from_slice(name.as_bytes());
    key
}

/// Sets a record.
pub(super) fn set(rows: &mut Rows, kind: Kind, name: &str, bytes: &[u8]) {
    rows.set(&key(kind, name), Some(bytes));
}

impl Store {
    /// A record, by the last commit.
    pub(crate) fn record(&self, kind: Kind, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.get(&key(kind, name))?.map(|bytes| bytes.to_vec()))
    }
}
