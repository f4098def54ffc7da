//! One cache as the store knows it: rows whose keys begin with the cache's id, and how its keys and
//! values are written.
//!
//! ```text
//! 00 00 00 07 │ key, in order-preserving bytes  ──▶  value, in the cache's format
//!    id       │
//! ```
//!
//! Invariant: two handles on one cache of a store share one `Table`, and with it the kept cursors.
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use rocksdb::{DBPinnableSlice, WriteBatch};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::changes::Changes;
use super::cursor::Pool;
use super::{ID_BYTES, Store, StoreError, ValueFormat};
use crate::key::{AsKey, Key, KeyError};

/// At most so many bytes of a key are shown in an error.
const SHOWN_BYTES: usize = 64;

/// A cache of a store, without its types.
pub(crate) struct Table {
    pub(super) store: Store,
    pub(super) pool: Pool,
    changes: Changes,
    id: u32,
    name: Arc<str>,
    key_format: Cow<'static, str>,
    value_format: ValueFormat,
}

impl Table {
    pub(super) fn new(
        store: Store,
        id: u32,
        name: Arc<str>,
        key_format: Cow<'static, str>,
        value_format: ValueFormat,
    ) -> Self {
        Self { store, pool: Pool::default(), changes: Changes::new(), id, name, key_format, value_format }
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// What handlers that are mounted on it see.
    pub(crate) fn changes(&self) -> &Changes {
        &self.changes
    }

    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What all keys of the cache begin with, and no others.
    pub(crate) fn first_key(&self) -> [u8; ID_BYTES] {
        self.id.to_be_bytes()
    }

    /// What lies past all keys of the cache.
    pub(crate) fn end_key(&self) -> [u8; ID_BYTES] {
        // The catalogue gives out no id that has no successor.
        self.id.saturating_add(1).to_be_bytes()
    }

    /// Appends the whole key; answers where its group ends.
    #[inline]
    pub(crate) fn write_key<K: Key, Q: AsKey<K> + ?Sized>(
        &self,
        key: &Q,
        bytes: &mut Vec<u8>,
    ) -> Result<usize, StoreError> {
        bytes.extend_from_slice(&self.first_key());
        let group = key.encode(bytes).map_err(|source| self.key_error(source))?;
        Ok(ID_BYTES + group)
    }

    /// Reads a key of this cache.
    #[inline]
    pub(crate) fn read_key<K: Key>(&self, key: &[u8]) -> Result<K, StoreError> {
        let mut bytes = key.get(ID_BYTES..).unwrap_or_default();
        match K::decode(&mut bytes) {
            Ok(key) if bytes.is_empty() => Ok(key),
            Ok(_) => Err(self.key_error(KeyError::Malformed {
                format: K::format(),
                reason: "bytes are left over after it",
            })),
            Err(source) => Err(self.key_error(source)),
        }
    }

    /// Appends a value.
    #[inline]
    pub(crate) fn write_value<V: Serialize>(&self, value: &V, bytes: &mut Vec<u8>) -> Result<(), StoreError> {
        self.value_format.encode(value, bytes).map_err(|source| StoreError::Encode {
            path: self.store.name(),
            cache: Arc::clone(&self.name),
            value_type: std::any::type_name::<V>(),
            format: self.value_format,
            source,
        })
    }

    /// Reads the value of `key`.
    #[inline]
    pub(crate) fn read_value<K, V: DeserializeOwned>(
        &self,
        key: &[u8],
        value: &[u8],
    ) -> Result<V, StoreError> {
        self.value_format.decode(value).map_err(|source| {
            let key = key.get(ID_BYTES..).unwrap_or_default();
            let shown = key.get(..SHOWN_BYTES).unwrap_or(key).escape_ascii();
            StoreError::Decode {
                path: self.store.name(),
                cache: Arc::clone(&self.name),
                key: format!("\"{shown}\""),
                key_type: std::any::type_name::<K>(),
                value_type: std::any::type_name::<V>(),
                format: self.value_format,
                source,
            }
        })
    }

    /// The value of `key` in the database, lent from its memory.
    #[inline]
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<DBPinnableSlice<'_>>, StoreError> {
        self.store.get(key)
    }

    /// Writes to the database at once; `None` deletes.
    pub(crate) fn set(&self, key: &[u8], value: Option<&[u8]>) -> Result<(), StoreError> {
        self.store.set(key, value)
    }

    /// Empties the cache in the database at once.
    pub(crate) fn clear(&self) -> Result<(), StoreError> {
        let mut batch = WriteBatch::new();
        batch.delete_range(self.first_key(), self.end_key());
        self.store.write(batch)
    }

    #[cold]
    pub(crate) fn key_error(&self, source: KeyError) -> StoreError {
        StoreError::Key { path: self.store.name(), cache: Arc::clone(&self.name), source }
    }

    #[cold]
    pub(crate) fn second_lock(&self) -> StoreError {
        StoreError::SecondLock { path: self.store.name(), cache: Arc::clone(&self.name) }
    }

    #[cold]
    pub(crate) fn error(&self, error: &rocksdb::Error) -> StoreError {
        self.store.error(error)
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("name", &self.name)
            .field("store", &self.store.name())
            .field("keys", &self.key_format)
            .field("values", &self.value_format)
            .finish_non_exhaustive()
    }
}
