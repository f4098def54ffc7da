//! Caches: ordered, typed maps in a store, which speak as `BTreeMap` does.
//!
//! ```text
//! key, value ──encode──▶ view ──▶ the message's rows      (inside of a message)
//!                             └─▶ RocksDB                 (elsewhere)
//! ```
//!
//! Invariants: a read sees the message's own rows over the store's, in key order from both ends;
//! errors are returned, so that a row that cannot be read is never taken for one that is not there;
//! look-ups allocate nothing but what the decoded key and value hold.
mod iter;
mod lock;
mod near;
mod range;
mod sink;
mod source;
mod stream;
mod update;
mod view;

#[cfg(test)]
mod tests;

use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::key::{AsKey, Key, PrefixOf};
use crate::store::{Direction, Found, Scratch, Store, StoreError, Table, ValueFormat};

pub use iter::{Keys, Range, Values};
pub use lock::KeyLock;
pub use range::KeyRange;
use range::past_prefix;
pub use stream::RangeStream;
pub use update::NewValue;

/// The cache that [`Cache::open`] and [`Cache::in_memory`] answer.
const DEFAULT_NAME: &str = "default";

/// An ordered map from `K` to `V`, kept in a [`Store`].
///
/// It speaks as `BTreeMap` does, and finds rows by time: [`as_of`](Self::as_of),
/// [`after`](Self::after) and [`nearest`](Self::nearest). A clone is another handle on the same rows,
/// and all methods take `&self`, so that any number of tasks may use it.
///
/// Inside of a message a write belongs to that message: its handlers see it at once, others when
/// the message is done, or never if it fails. Elsewhere a write is in the store when the call
/// returns, or, while a flow runs over it, seen at once and stored by the next commit.
///
/// ```
/// use slipstream_core::Cache;
///
/// let weather = Cache::<(String, i64), String>::in_memory()?;
/// weather.insert(&("JFK", 1000), "rain".to_string())?;
/// weather.insert(&("JFK", 1060), "clear".to_string())?;
/// weather.insert(&("SFO", 1030), "fog".to_string())?;
///
/// let (key, sky) = weather.as_of(&("JFK", 1059))?.unwrap();
/// assert_eq!((key.1, sky.as_str()), (1000, "rain"));
/// assert_eq!(weather.as_of(&("SFO", 1000))?, None);
/// # Ok::<(), slipstream_core::StoreError>(())
/// ```
///
/// Nothing is evicted: what was inserted stays until it is removed.
pub struct Cache<K, V> {
    table: Arc<Table>,
    types: PhantomData<fn() -> (K, V)>,
}

impl Store {
    /// Opens the cache `name`, or makes one, with values as MessagePack.
    ///
    /// The store remembers the formats of keys and values with the name.
    ///
    /// # Errors
    /// [`StoreError::KeyFormat`] and [`StoreError::ValueFormat`] when the cache was made with others,
    /// [`StoreError::NoName`] for an empty name, [`StoreError::NewerVersion`] when a later version of
    /// this library made it, and those of a write.
    pub fn cache<K: Key, V: Serialize + DeserializeOwned + Send + Sync + 'static>(
        &self,
        name: &str,
    ) -> Result<Cache<K, V>, StoreError> {
        self.cache_as(name, ValueFormat::default())
    }

    /// Opens the cache `name`, or makes one, with values in this format.
    ///
    /// # Errors
    /// As [`Store::cache`].
    pub fn cache_as<K: Key, V: Serialize + DeserializeOwned + Send + Sync + 'static>(
        &self,
        name: &str,
        format: ValueFormat,
    ) -> Result<Cache<K, V>, StoreError> {
        Ok(Cache { table: self.table::<K>(name, format)?, types: PhantomData })
    }
}

// The bounds stand on the functions: on the `impl` a type that is no key would be told as a missing
// function, without the remedy.
impl<K, V> Cache<K, V> {
    /// Opens the cache named `default` of the store in this directory, for programs that need no more.
    ///
    /// # Errors
    /// As [`Store::open`] and [`Store::cache`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError>
    where
        K: Key,
        V: Serialize + DeserializeOwned + Send + Sync + 'static,
    {
        Store::open(path)?.cache(DEFAULT_NAME)
    }

    /// Makes a cache in a store of its own in memory.
    ///
    /// # Errors
    /// As [`Store::in_memory`].
    pub fn in_memory() -> Result<Self, StoreError>
    where
        K: Key,
        V: Serialize + DeserializeOwned + Send + Sync + 'static,
    {
        Store::in_memory()?.cache(DEFAULT_NAME)
    }
}

impl<K: Key, V: Serialize + DeserializeOwned + Send + Sync + 'static> Cache<K, V> {
    /// The store that the cache is in.
    #[must_use]
    pub fn store(&self) -> &Store {
        self.table.store()
    }

    /// The cache's name in its store.
    #[must_use]
    pub fn name(&self) -> &str {
        self.table.name()
    }

    /// The value of a key.
    ///
    /// # Errors
    /// [`StoreError::Key`] for a key that cannot be one (a NaN), [`StoreError::Decode`] when the value
    /// is not a `V`, [`StoreError::Corrupt`] and [`StoreError::Io`] from the disk. The other methods
    /// that read have the same.
    ///
    /// ```
    /// # use slipstream_core::Cache;
    /// let prizes = Cache::<String, String>::in_memory()?;
    /// prizes.insert("prize", "🏆".to_string())?;
    /// assert_eq!(prizes.get("prize")?.as_deref(), Some("🏆"));
    /// assert_eq!(prizes.get("price")?, None);
    /// # Ok::<(), slipstream_core::StoreError>(())
    /// ```
    pub fn get<Q: AsKey<K> + ?Sized>(&self, key: &Q) -> Result<Option<V>, StoreError> {
        let key = self.key(key)?;
        match view::find(&self.table, &key) {
            Found::Value(value) => self.table.read_value::<K, V>(&key, &value).map(Some),
            Found::Deleted => Ok(None),
            Found::Nothing => {
                let value = self.table.get(&key)?;
                value.map(|value| self.table.read_value::<K, V>(&key, &value)).transpose()
            }
        }
    }

    /// Whether the cache has this key; its value is not decoded.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn contains_key<Q: AsKey<K> + ?Sized>(&self, key: &Q) -> Result<bool, StoreError> {
        let key = self.key(key)?;
        match view::find(&self.table, &key) {
            Found::Value(_) => Ok(true),
            Found::Deleted => Ok(false),
            Found::Nothing => Ok(self.table.get(&key)?.is_some()),
        }
    }

    /// Sets the value of a key. The key may be given in a borrowed form, the value by reference or
    /// not; neither is cloned.
    ///
    /// Other than `BTreeMap`'s it does not answer the value before, which would cost a look-up; ask
    /// [`get`](Self::get) where you need it.
    ///
    /// # Errors
    /// [`StoreError::Key`] and [`StoreError::Encode`] for what cannot be written,
    /// [`StoreError::TwoStores`] when the message in hand has written to another store,
    /// [`StoreError::NoSpace`], [`StoreError::Io`] and [`StoreError::Corrupt`] from the disk.
    pub fn insert<Q: AsKey<K> + ?Sized>(&self, key: &Q, value: impl Borrow<V>) -> Result<(), StoreError> {
        let key = self.key(key)?;
        let mut bytes = Scratch::take();
        self.table.write_value(value.borrow(), &mut bytes)?;
        view::set(&self.table, &key, Some(&bytes))
    }

    /// Removes a key, if it is there. As with [`insert`](Self::insert), the value before is not
    /// answered.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn remove<Q: AsKey<K> + ?Sized>(&self, key: &Q) -> Result<(), StoreError> {
        view::set(&self.table, &self.key(key)?, None)
    }

    /// Removes all rows, by one range deletion, however many there are.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn clear(&self) -> Result<(), StoreError> {
        view::clear(&self.table)
    }

    /// Whether the cache has no rows. There is no `len`, since RocksDB does not count: `iter().count()`
    /// reads them all.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn is_empty(&self) -> Result<bool, StoreError> {
        let (mut from, mut to) = self.whole();
        view::first(&self.table, &mut from, &mut to, Direction::Forward, |_, _| Ok(()))
            .map(|first| first.is_none())
    }

    /// The row with the least key.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn first_key_value(&self) -> Result<Option<(K, V)>, StoreError> {
        let (mut from, mut to) = self.whole();
        self.first_row(&mut from, &mut to, Direction::Forward)
    }

    /// The row with the greatest key.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn last_key_value(&self) -> Result<Option<(K, V)>, StoreError> {
        let (mut from, mut to) = self.whole();
        self.first_row(&mut from, &mut to, Direction::Backward)
    }

    /// The rows whose keys lie in a range, in order and from both ends. A range that ends before it
    /// begins has none.
    ///
    /// Errors come as items: see [`Range`].
    ///
    /// ```
    /// # use slipstream_core::{Cache, StoreError};
    /// let prices = Cache::<i64, f64>::in_memory()?;
    /// prices.insert(&100, 1.5)?;
    /// prices.insert(&110, 1.75)?;
    /// let rows: Result<Vec<_>, StoreError> = prices.range(100..110).collect();
    /// assert_eq!(rows?, [(100, 1.5)]);
    /// let latest = prices.range(..).next_back().transpose()?;
    /// assert_eq!(latest, Some((110, 1.75)));
    /// # Ok::<(), StoreError>(())
    /// ```
    pub fn range(&self, range: impl KeyRange<K>) -> Range<K, V> {
        let (mut from, mut to) = (Scratch::take(), Scratch::take());
        from.extend_from_slice(&self.table.first_key());
        to.extend_from_slice(&self.table.first_key());
        let bounds = range.encode_range(&mut from, &mut to).map_err(|source| self.table.key_error(source));
        let bounds = bounds.map(|(start, end)| {
            match start {
                Bound::Included(()) | Bound::Unbounded => {}
                Bound::Excluded(()) => from.push(0),
            }
            match end {
                Bound::Included(()) => to.push(0),
                Bound::Excluded(()) => {}
                Bound::Unbounded => past_prefix(&mut to),
            }
            (from, to)
        });
        Range::new(&self.table, bounds)
    }

    /// The rows whose keys begin with a prefix: of a string its beginning, of a tuple its first
    /// elements.
    ///
    /// ```
    /// # use slipstream_core::Cache;
    /// let weather = Cache::<(String, i64), String>::in_memory()?;
    /// weather.insert(&("JFK", 1000), "rain".to_string())?;
    /// weather.insert(&("SFO", 1030), "fog".to_string())?;
    /// assert_eq!(weather.prefix("JFK").count(), 1);
    /// # Ok::<(), slipstream_core::StoreError>(())
    /// ```
    pub fn prefix<P: PrefixOf<K> + ?Sized>(&self, prefix: &P) -> Range<K, V> {
        let (mut from, mut to) = (Scratch::take(), Scratch::take());
        from.extend_from_slice(&self.table.first_key());
        let bounds = prefix.encode_prefix(&mut from).map_err(|source| self.table.key_error(source));
        let bounds = bounds.map(|()| {
            to.extend_from_slice(&from);
            past_prefix(&mut to);
            (from, to)
        });
        Range::new(&self.table, bounds)
    }

    /// All rows in key order, from both ends.
    pub fn iter(&self) -> Range<K, V> {
        Range::new(&self.table, Ok(self.whole()))
    }

    /// All keys in order, from both ends.
    pub fn keys(&self) -> Keys<K> {
        self.iter().keys()
    }

    /// All values in key order, from both ends.
    pub fn values(&self) -> Values<K, V> {
        self.iter().values()
    }

    #[inline]
    fn key<Q: AsKey<K> + ?Sized>(&self, key: &Q) -> Result<Scratch, StoreError> {
        let mut bytes = Scratch::take();
        self.table.write_key::<K, Q>(key, &mut bytes)?;
        Ok(bytes)
    }

    fn whole(&self) -> (Scratch, Scratch) {
        let (mut from, mut to) = (Scratch::take(), Scratch::take());
        from.extend_from_slice(&self.table.first_key());
        to.extend_from_slice(&self.table.end_key());
        (from, to)
    }

    #[inline]
    fn first_row(
        &self,
        from: &mut Vec<u8>,
        to: &mut Vec<u8>,
        direction: Direction,
    ) -> Result<Option<(K, V)>, StoreError> {
        view::first(&self.table, from, to, direction, |key, value| {
            Ok((self.table.read_key(key)?, self.table.read_value::<K, V>(key, value)?))
        })
    }
}

impl<K: Key, V: Serialize + DeserializeOwned + Send + Sync + 'static> IntoIterator for &Cache<K, V> {
    type Item = Result<(K, V), StoreError>;
    type IntoIter = Range<K, V>;

    fn into_iter(self) -> Range<K, V> {
        self.iter()
    }
}

impl<K, V> Clone for Cache<K, V> {
    fn clone(&self) -> Self {
        Self { table: Arc::clone(&self.table), types: PhantomData }
    }
}

impl<K, V> fmt::Debug for Cache<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table.fmt(f)
    }
}
