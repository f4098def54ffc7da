//! Ordered rows in memory that lie above the database: newer than what it holds, and not yet part
//! of it.
//!
//! ```text
//! Rows (newest)   a=1        c=deleted        hides: cache 7
//!  …
//! RocksDB         a=0   b=2  c=3              seen from above: a=1 b=2
//! ```
//!
//! Invariants: the upper row wins; a deletion hides the row below it; a cleared cache hides all its
//! rows below, while rows written after the clearing stand above it.
use std::collections::BTreeMap;
use std::ops::Bound;

use super::{Bytes, table_of};

/// What one layer knows of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// The layer has this value.
    Value(Bytes),
    /// The layer has deleted the key, or cleared its cache.
    Deleted,
    /// Whatever lies below counts.
    Nothing,
}

/// One layer of rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rows {
    rows: BTreeMap<Bytes, Option<Bytes>>,
    /// The ids of caches of which all rows below are hidden. Few, if any: a list is enough.
    cleared: Vec<u32>,
}

impl Rows {
    /// A layer that has nothing.
    pub(crate) fn none() -> &'static Self {
        static NONE: Rows = Rows { rows: BTreeMap::new(), cleared: Vec::new() };
        &NONE
    }

    /// Sets a row; `None` deletes it.
    pub(crate) fn set(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.rows.insert(Bytes::from(key), value.map(Bytes::from));
    }

    /// The same with a key and a value that are shared already.
    pub(crate) fn put(&mut self, key: Bytes, value: Option<Bytes>) {
        self.rows.insert(key, value);
    }

    /// Drops the rows of a cache, and hides those below.
    pub(crate) fn clear(&mut self, cache: u32) {
        self.rows.retain(|key, _| table_of(key) != cache);
        if !self.cleared.contains(&cache) {
            self.cleared.push(cache);
        }
    }

    /// Lays a newer layer over this one.
    pub(crate) fn take_over(&mut self, newer: Rows) {
        if self.is_empty() {
            *self = newer;
            return;
        }
        for cache in newer.cleared {
            self.clear(cache);
        }
        // One by one: `BTreeMap::append` would build the whole map anew.
        for (key, value) in newer.rows {
            self.rows.insert(key, value);
        }
    }

    pub(crate) fn get(&self, key: &[u8]) -> Found {
        match self.rows.get(key) {
            Some(Some(value)) => Found::Value(value.clone()),
            Some(None) => Found::Deleted,
            None if self.hides(table_of(key)) => Found::Deleted,
            None => Found::Nothing,
        }
    }

    /// Whether the rows of this cache that lie below are hidden.
    pub(crate) fn hides(&self, cache: u32) -> bool {
        self.cleared.contains(&cache)
    }

    /// Whether there is anything here about the keys in `from..to`, those of one cache.
    pub(crate) fn concerns(&self, from: &[u8], to: &[u8]) -> bool {
        self.hides(table_of(from)) || self.first(from, to).is_some()
    }

    /// The row with the least key in `from..to`, deletions included.
    pub(crate) fn first(&self, from: &[u8], to: &[u8]) -> Option<(&Bytes, Option<&Bytes>)> {
        // One of the two bounds is sought, since each costs as much as the look-up.
        let rows = (Bound::Included(from), Bound::Unbounded);
        let (key, value) = self.rows.range::<[u8], _>(rows).next()?;
        (**key < *to).then_some((key, value.as_ref()))
    }

    /// The row with the greatest key in `from..to`, deletions included.
    pub(crate) fn last(&self, from: &[u8], to: &[u8]) -> Option<(&Bytes, Option<&Bytes>)> {
        let rows = (Bound::Unbounded, Bound::Excluded(to));
        let (key, value) = self.rows.range::<[u8], _>(rows).next_back()?;
        (**key >= *from).then_some((key, value.as_ref()))
    }

    /// The greatest key of each cache that has rows here, deletions included.
    pub(crate) fn greatest(&self) -> impl Iterator<Item = (u32, &Bytes)> {
        let mut last = self.rows.last_key_value();
        std::iter::from_fn(move || {
            let (key, _) = last?;
            let cache = table_of(key);
            let before = (Bound::Unbounded, Bound::Excluded(&cache.to_be_bytes()[..]));
            last = self.rows.range::<[u8], _>(before).next_back();
            Some((cache, key))
        })
    }

    /// All rows in key order, deletions included.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Bytes, Option<&Bytes>)> {
        self.rows.iter().map(|(key, value)| (key, value.as_ref()))
    }

    /// The ids of the caches that were cleared, before any of these rows was written.
    pub(crate) fn cleared(&self) -> &[u32] {
        &self.cleared
    }

    /// The one row, if there is one and nothing else: it needs no write batch.
    pub(crate) fn only(&self) -> Option<(&Bytes, Option<&Bytes>)> {
        let mut rows = self.iter();
        let first = rows.next()?;
        (rows.next().is_none() && self.cleared.is_empty()).then_some(first)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.cleared.is_empty()
    }

    /// How many rows there are, deletions included.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }
}
