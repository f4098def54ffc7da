//! What a read of a cache sees and where a write goes, by where the call is made.
//!
//! ```text
//! in a message:  write ─▶ its staged rows          read ◀─ its staged rows, the epochs, the database
//! elsewhere:     write ─▶ the epoch, if a flow     read ◀─ the epochs, the database
//!                         runs, else the database
//! ```
//!
//! This is the one place that lists the layers above the database, newest first; the reads are
//! written for any number of them.
//!
//! Invariants: no code of the user's runs while the transaction or the lock of the epochs is held; a
//! cursor is lent under that lock, so a row that moves from the epochs to the database is seen in the
//! one or in the other.
use std::sync::Arc;

use crate::store::{
    Below, Bytes, Change, Direction, Found, Lent, Rows, Staged, StoreError, Table, Taken, last_past, step,
    visible,
};
use crate::transaction::{self, Transaction};

/// The rows of the message in hand for the store of this table.
#[inline]
fn own<'t>(transaction: Option<&'t mut Transaction>, table: &Table) -> Option<&'t Arc<Rows>> {
    transaction?.staged.as_ref()?.rows(table.store())
}

/// What the layers have for one key.
#[inline]
pub(super) fn find(table: &Table, key: &[u8]) -> Found {
    let found = transaction::with(|tx| own(tx, table).map_or(Found::Nothing, |own| own.get(key)));
    match found {
        Found::Nothing => table.store().layers().map_or(Found::Nothing, |epochs| epochs.find(key)),
        found => found,
    }
}

/// What an iterator sees: the layers, newest first, and what lies below them.
pub(super) type Seen = (Vec<Arc<Rows>>, Below<Arc<Table>>);

/// What can be seen now, for an iterator to keep.
pub(super) fn scan(table: &Arc<Table>) -> Result<Seen, StoreError> {
    let (first, end) = (table.first_key(), table.end_key());
    let epochs = table.store().layers();
    let mut layers: Vec<Arc<Rows>> = transaction::with(|tx| own(tx, table).cloned().into_iter().collect());
    layers.extend(epochs.iter().flat_map(|epochs| epochs.newest_first()).cloned());
    layers.retain(|layer| layer.concerns(&first, &end));
    let (seen, hidden) = visible(&layers, table.id());
    let seen = seen.len();
    layers.truncate(seen);
    let cursor = match hidden {
        true => None,
        false => Some(Lent::new(Arc::clone(table)).map_err(|error| table.error(&error))?),
    };
    Ok((layers, Below::new(cursor)))
}

/// Takes the first row of `from..to` in a direction, and reads it.
#[inline]
pub(super) fn first<R>(
    table: &Table,
    from: &mut Vec<u8>,
    to: &mut Vec<u8>,
    direction: Direction,
    read: impl FnOnce(&[u8], &[u8]) -> Result<R, StoreError>,
) -> Result<Option<R>, StoreError> {
    let epochs = table.store().layers();
    let mut below = Below::new(None);
    let taken = transaction::with(|tx| {
        let own = own(tx, table).map(|own| &**own);
        let mut few = [Rows::none(); FEW_LAYERS];
        let many: Vec<&Rows>;
        let layers = match epochs.as_ref().map_or(Some([None, None]), |epochs| epochs.both()) {
            Some([active, closing]) => {
                let mut count = 0;
                for (place, layer) in few.iter_mut().zip([own, active, closing].into_iter().flatten()) {
                    *place = layer;
                    count += 1;
                }
                few.get(..count).unwrap_or_default()
            }
            None => {
                let published = epochs.iter().flat_map(|epochs| epochs.newest_first());
                many = own.into_iter().chain(published.map(|layer| &**layer)).collect();
                &many
            }
        };
        let (layers, hidden) = visible(layers, table.id());
        let is_past =
            |key: &[u8]| epochs.as_ref().is_some_and(|epochs| epochs.is_past(table.store(), table.id(), key));
        if direction == Direction::Backward
            && let Some(last) = last_past(layers, from, to, is_past)
        {
            return Ok(Some(last));
        }
        if !hidden {
            below = Below::new(Some(Lent::new(table)?));
        }
        step(layers, &mut below, from, to, direction)
    });
    // From here on the row is ours, or the cursor's.
    drop(epochs);
    match taken.map_err(|error| table.error(&error))? {
        None => Ok(None),
        Some(Taken::Above(key, value)) => read(&key, &value).map(Some),
        Some(Taken::Below) => below.row().map(|(key, value)| read(key, value)).transpose(),
    }
}

/// The message's own, the active one, the closing one: all there are, unless iterators have made tiers.
const FEW_LAYERS: usize = 3;

/// Sets a row; `None` deletes it.
pub(super) fn set(table: &Table, key: &[u8], value: Option<&[u8]>) -> Result<(), StoreError> {
    transaction::with(|tx| match tx {
        Some(tx) if tx.given.is_read(table.changes().id()) => {
            let (key, value) = (Bytes::from(key), value.map(Bytes::from));
            staged(tx, table).change(table.store(), |rows| rows.put(key.clone(), value.clone()))?;
            give(tx, table, (key, value));
            Ok(())
        }
        Some(tx) => staged(tx, table).change(table.store(), |rows| rows.set(key, value)),
        None => set_outside(table, key, value),
    })
}

fn set_outside(table: &Table, key: &[u8], value: Option<&[u8]>) -> Result<(), StoreError> {
    let bytes = key.len() + value.map_or(0, <[u8]>::len);
    let (store, change) = (table.store(), || (Bytes::from(key), value.map(Bytes::from)));
    let write = || {
        let direct = || table.set(key, value);
        store.write_outside(bytes, |rows| rows.set(key, value), direct).map(|()| true)
    };
    table.changes().outside(|| store.name(), change, write).map(drop)
}

/// Lets the handlers that are mounted on the cache see the change, inside of this message.
fn give(transaction: &mut Transaction, table: &Table, change: Change) {
    transaction.given.give(table.changes().id(), change);
}

/// Sets a row to what `change` makes of it, unless another does so meanwhile: in a message that is found
/// out when it is published, elsewhere at once, and then `change` is called again.
pub(super) fn update<R>(
    table: &Table,
    key: &[u8],
    mut change: impl FnMut(Option<&[u8]>) -> Result<(R, Option<Bytes>), StoreError>,
) -> Result<R, StoreError> {
    loop {
        let own = transaction::with(|tx| own(tx, table).map_or(Found::Nothing, |own| own.get(key)));
        let own = match own {
            Found::Value(own) => Some(Some(own)),
            Found::Deleted => Some(None),
            Found::Nothing => None,
        };
        if let Some(own) = own {
            // Of the message's own making: nobody else can change that.
            let (result, value) = change(own.as_deref())?;
            return set(table, key, value.as_deref()).map(|()| result);
        }
        let read = table.store().read(key)?;
        let (result, value) = change(read.value())?;
        let is_done = transaction::with(|tx| match tx {
            Some(tx) => {
                let is_read = tx.given.is_read(table.changes().id());
                let change = is_read.then(|| (read.key().clone(), value.clone()));
                staged(tx, table).update(table.store(), read, value)?;
                if let Some(change) = change {
                    give(tx, table, change);
                }
                Ok(true)
            }
            None if value.is_none() && read.value().is_none() => Ok(true),
            None => {
                let (store, change) = (table.store(), (read.key().clone(), value.clone()));
                let mut rows = Rows::default();
                rows.put(read.key().clone(), value);
                let write = || store.publish(None, &[read], rows, None);
                table.changes().outside(|| store.name(), || change, write)
            }
        });
        if is_done? {
            return Ok(result);
        }
    }
}

/// Empties the cache. Those who see its changes see each key removed.
pub(super) fn clear(table: &Arc<Table>) -> Result<(), StoreError> {
    let is_read = transaction::with(|tx| tx.is_some_and(|tx| tx.given.is_read(table.changes().id())));
    let seen = if is_read { keys(table)? } else { Vec::new() };
    transaction::with(|tx| match tx {
        Some(tx) => {
            staged(tx, table).change(table.store(), |rows| rows.clear(table.id()))?;
            seen.into_iter().for_each(|key| give(tx, table, (key, None)));
            Ok(())
        }
        None => table.store().write_outside(0, |rows| rows.clear(table.id()), || table.clear()),
    })
}

/// All keys that can be seen now.
fn keys(table: &Arc<Table>) -> Result<Vec<Bytes>, StoreError> {
    let (layers, mut below) = scan(table)?;
    let (mut from, mut to) = (table.first_key().to_vec(), table.end_key().to_vec());
    let mut keys = Vec::new();
    loop {
        let taken = step(&layers, &mut below, &mut from, &mut to, Direction::Forward);
        match taken.map_err(|error| table.error(&error))? {
            Some(Taken::Above(key, _)) => keys.push(key),
            Some(Taken::Below) => keys.extend(below.row().map(|(key, _)| Bytes::from(key))),
            None => return Ok(keys),
        }
    }
}

fn staged<'t>(transaction: &'t mut Transaction, table: &Table) -> &'t mut Staged {
    transaction.staged.get_or_insert_with(|| Staged::new(table.store()))
}
