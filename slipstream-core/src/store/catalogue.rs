//! The catalogue: which caches a store has, under which ids, and how they are written. It is the
//! rows under id 0 of the one key space that all caches share.
//!
//! ```text
//! 00 00 00 00 │ 00          ──▶  "slipstream", layout of the store as u32
//! 00 00 00 00 │ 01 name     ──▶  MessagePack { id, layout, keys, values }
//! 00 00 00 00 │ 02 …             reserved: positions
//! 00 00 00 00 │ 03 …             reserved: checkpoints
//! 00 00 00 00 │ 04 …             identity, epoch, owner
//! ```
//!
//! Invariants: an id is given out once and names one cache for ever; a row is written before the
//! first row of its cache, and is not changed later; whatever is not understood is an error and is
//! left as it is.
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;
use std::sync::{Arc, Weak};

use rocksdb::{DB, WriteBatch};
use serde::{Deserialize, Serialize};

use super::{ID_BYTES, StoreError, Table, ValueFormat, identity, options};
use crate::key::Key;

/// The layout of a store that this version writes, and the newest that it reads.
const STORE_LAYOUT: u32 = 1;
/// The layout of a cache's rows that this version writes, and the newest that it reads.
const CACHE_LAYOUT: u32 = 1;
const MAGIC: &[u8] = b"slipstream";
const STORE_ROW: [u8; ID_BYTES + 1] = [0, 0, 0, 0, 0];
const CACHE_ROWS: [u8; ID_BYTES + 1] = [0, 0, 0, 0, 1];
const PAST_CACHE_ROWS: [u8; ID_BYTES + 1] = [0, 0, 0, 0, 2];

/// The row of one cache. Named fields, so that a later version may add some.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Row {
    id: u32,
    layout: u32,
    keys: String,
    values: String,
}

/// A cache that the store has, and its table while a handle on it exists.
#[derive(Debug)]
struct Known {
    row: Row,
    table: Weak<Table>,
}

/// What is in the catalogue of an open store.
#[derive(Debug)]
pub(super) struct Catalogue {
    caches: HashMap<Arc<str>, Known>,
    next_id: u32,
}

impl Catalogue {
    /// Reads the catalogue of a database, or begins one in a database that has no rows at all.
    pub(super) fn open(db: &DB, path: &Arc<Path>, in_memory: bool) -> Result<Self, StoreError> {
        let error = |error: &rocksdb::Error| StoreError::from_rocksdb(path, error);
        match db.get_pinned(STORE_ROW).map_err(|e| error(&e))? {
            Some(row) => check_store_row(&row, path)?,
            None => {
                let mut rows = db.raw_iterator();
                rows.seek_to_first();
                if rows.valid() {
                    return Err(damaged(path, "the row that every store begins with is missing".to_owned()));
                }
                rows.status().map_err(|e| error(&e))?;
                let row = [MAGIC, &STORE_LAYOUT.to_be_bytes()].concat();
                let mut batch = WriteBatch::new();
                batch.put(STORE_ROW, row);
                identity::begin(&mut batch, path)?;
                db.write_opt(batch, &options::durable(in_memory)).map_err(|e| error(&e))?;
            }
        }
        let mut catalogue = Self { caches: HashMap::new(), next_id: 1 };
        let mut rows = db.raw_iterator_opt(options::cursor(&CACHE_ROWS, &PAST_CACHE_ROWS));
        rows.seek_to_first();
        while let Some((key, value)) = rows.item() {
            let name = key.get(CACHE_ROWS.len()..).and_then(|name| std::str::from_utf8(name).ok());
            let row = rmp_serde::from_slice::<Row>(value).ok();
            let (Some(name), Some(row)) = (name, row) else {
                return Err(damaged(path, format!("a row of the catalogue, {}", key.escape_ascii())));
            };
            if row.id == 0 || row.id == u32::MAX {
                return Err(damaged(path, format!("cache `{name}` has the id {} in the catalogue", row.id)));
            }
            catalogue.next_id = catalogue.next_id.max(row.id + 1);
            catalogue.caches.insert(Arc::from(name), Known { row, table: Weak::new() });
            rows.next();
        }
        rows.status().map_err(|e| error(&e))?;
        Ok(catalogue)
    }

    /// The table of a cache, which is entered if it is new. The caller holds the catalogue's lock, so
    /// that two threads that open one new cache find one.
    pub(super) fn table<K: Key>(
        &mut self,
        store: &super::Store,
        name: &str,
        values: ValueFormat,
    ) -> Result<Arc<Table>, StoreError> {
        let path = store.name();
        if name.is_empty() {
            return Err(StoreError::NoName { path });
        }
        let keys = K::format();
        let name: Arc<str> = Arc::from(name);
        let known = match self.caches.entry(Arc::clone(&name)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(vacant) => {
                let id = self.next_id;
                if id == u32::MAX {
                    return Err(damaged(&path, "no ids are left in the catalogue".to_owned()));
                }
                let row = Row {
                    id,
                    layout: CACHE_LAYOUT,
                    keys: keys.clone().into_owned(),
                    values: values.name().into(),
                };
                let key = [&CACHE_ROWS, name.as_bytes()].concat();
                let bytes = rmp_serde::to_vec_named(&row).map_err(|e| damaged(&path, e.to_string()))?;
                store.set(&key, Some(&bytes))?;
                self.next_id += 1;
                vacant.insert(Known { row, table: Weak::new() })
            }
        };
        let row = &known.row;
        if row.layout > CACHE_LAYOUT {
            return Err(StoreError::NewerVersion { path, found: row.layout, known: CACHE_LAYOUT });
        }
        if row.keys != keys {
            return Err(StoreError::KeyFormat { path, cache: name, stored: row.keys.clone(), asked: keys });
        }
        if row.values != values.name() {
            return Err(StoreError::ValueFormat {
                path,
                cache: name,
                stored: row.values.clone(),
                asked: values,
            });
        }
        if let Some(table) = known.table.upgrade() {
            return Ok(table);
        }
        let table = Arc::new(Table::new(store.clone(), row.id, name, keys, values));
        known.table = Arc::downgrade(&table);
        Ok(table)
    }

    /// The tables of the caches that are open.
    pub(super) fn tables(&self) -> Vec<Arc<Table>> {
        self.caches.values().filter_map(|known| known.table.upgrade()).collect()
    }
}

fn check_store_row(row: &[u8], path: &Arc<Path>) -> Result<(), StoreError> {
    let layout = row.strip_prefix(MAGIC).and_then(|layout| layout.try_into().ok()).map(u32::from_be_bytes);
    match layout {
        Some(STORE_LAYOUT) => Ok(()),
        Some(found) if found > STORE_LAYOUT => {
            Err(StoreError::NewerVersion { path: Arc::clone(path), found, known: STORE_LAYOUT })
        }
        _ => Err(damaged(path, format!("it begins with a row {}", row.escape_ascii()))),
    }
}

pub(super) fn damaged(path: &Arc<Path>, reason: String) -> StoreError {
    StoreError::Corrupt { path: Arc::clone(path), reason }
}
