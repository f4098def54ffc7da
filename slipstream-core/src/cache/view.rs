//! What a read of a cache sees and where a write goes, by where the call is made.
//!
//! ```text
//! in a message:  write ─▶ its staged rows          read ◀─ its staged rows, over the database
//! elsewhere:     write ─▶ the database             read ◀─ the database
//! ```
//!
//! This is the one place that lists the layers above the database, newest first; the reads are
//! written for any number of them.
//!
//! Invariant: no code of the user's runs while the transaction is held.
use std::sync::Arc;

use crate::store::{Below, Direction, Found, Rows, Staged, StoreError, Table, Taken, step, visible};
use crate::transaction::{self, Transaction};

/// The rows of the message in hand for the store of this table.
#[inline]
fn own<'t>(transaction: Option<&'t mut Transaction>, table: &Table) -> Option<&'t Arc<Rows>> {
    transaction?.staged.as_ref()?.rows(table.store())
}

/// What the layers have for one key.
#[inline]
pub(super) fn find(table: &Table, key: &[u8]) -> Found {
    transaction::with(|tx| own(tx, table).map_or(Found::Nothing, |own| own.get(key)))
}

/// The layers as they are now, for an iterator to keep.
pub(super) fn layers(table: &Table) -> Vec<Arc<Rows>> {
    let concerned = |own: &&Arc<Rows>| own.concerns(&table.first_key(), &table.end_key());
    transaction::with(|tx| own(tx, table).filter(concerned).cloned().into_iter().collect())
}

/// Takes the first row of `from..to` in a direction. If it is the database's, the cursor stands on it.
#[inline]
pub(super) fn take(
    table: &Table,
    below: &mut Below<&Table>,
    from: &mut Vec<u8>,
    to: &mut Vec<u8>,
    direction: Direction,
) -> Result<Option<Taken>, StoreError> {
    let taken = transaction::with(|tx| {
        let own = own(tx, table).map(|own| &**own);
        let (layers, hidden) = visible(own.as_slice(), table.id());
        if hidden {
            below.hide();
        }
        step(layers, below, from, to, direction)
    });
    taken.map_err(|error| table.error(&error))
}

/// Sets a row; `None` deletes it.
pub(super) fn set(table: &Table, key: &[u8], value: Option<&[u8]>) -> Result<(), StoreError> {
    transaction::with(|tx| match tx {
        Some(tx) => staged(tx, table).change(table.store(), |rows| rows.set(key, value)),
        None => table.set(key, value),
    })
}

/// Empties the cache.
pub(super) fn clear(table: &Table) -> Result<(), StoreError> {
    transaction::with(|tx| match tx {
        Some(tx) => staged(tx, table).change(table.store(), |rows| rows.clear(table.id())),
        None => table.clear(),
    })
}

fn staged<'t>(transaction: &'t mut Transaction, table: &Table) -> &'t mut Staged {
    transaction.staged.get_or_insert_with(|| Staged::new(table.store()))
}
