//! Where each source stands, in the store beside the state that its messages made.
//!
//! ```text
//! 00 00 00 00 │ 02 │ (source, partition)  ──▶  offset of the next message, i64, then its check, u64
//! ```
//!
//! Invariant: a row is written only in the batch of a commit, with the rows of the messages before it, or when
//! a flow begins, before the first message.
use rocksdb::DBRawIterator;

use super::rows::Rows;
use super::{ID_BYTES, Store, StoreError, options};
use crate::key::{AsKey, Key};
use crate::position::{Position, Positions};

const ROWS: [u8; ID_BYTES + 1] = [0, 0, 0, 0, 2];
const PAST_ROWS: [u8; ID_BYTES + 1] = [0, 0, 0, 0, 3];

/// The row that says where a partition goes on after the message at `position`.
pub(super) fn set(rows: &mut Rows, source: &str, partition: i32, position: Position) {
    set_next(rows, source, partition, position.next(), position.check());
}

/// The row that says where a partition goes on.
pub(super) fn set_next(rows: &mut Rows, source: &str, partition: i32, next: i64, check: u64) {
    let mut key = ROWS.to_vec();
    // Neither text nor an integer is ever refused.
    let _ = AsKey::<(String, i32)>::encode(&(source, partition), &mut key);
    let mut value = next.to_be_bytes().to_vec();
    value.extend_from_slice(&check.to_be_bytes());
    rows.set(&key, Some(&value));
}

impl Store {
    /// Where the partitions of a source go on, by the last commit.
    pub(crate) fn positions(&self, source: &str) -> Result<Positions, StoreError> {
        self.read_positions(self.position_rows(), source)
    }

    /// All rows of positions, as they are now.
    pub(super) fn position_rows(&self) -> DBRawIterator<'_> {
        self.db().raw_iterator_opt(options::cursor(&ROWS, &PAST_ROWS))
    }

    /// Of all rows those of one source.
    pub(super) fn read_positions(
        &self,
        mut rows: DBRawIterator<'_>,
        source: &str,
    ) -> Result<Positions, StoreError> {
        let mut positions = Positions::default();
        rows.seek_to_first();
        while let Some((key, value)) = rows.item() {
            let damaged = || StoreError::Corrupt {
                path: self.name(),
                reason: format!("a row of positions cannot be read: \"{}\"", key.escape_ascii()),
            };
            let mut rest = key.get(ROWS.len()..).unwrap_or_default();
            let (name, partition) = <(String, i32)>::decode(&mut rest).map_err(|_| damaged())?;
            let (offset, check) = value.split_first_chunk().ok_or_else(damaged)?;
            let check = check.first_chunk().ok_or_else(damaged)?;
            if name == source {
                positions.set(partition, i64::from_be_bytes(*offset), u64::from_be_bytes(*check));
            }
            rows.next();
        }
        rows.status().map_err(|error| self.error(&error))?;
        Ok(positions)
    }
}
