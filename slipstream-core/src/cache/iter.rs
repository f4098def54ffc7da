//! Iterators over a cache. One sees the cache as it was when the iterator was made, through one
//! cursor and the layers that lay above the database then.
//!
//! ```text
//! next ─▶ ┌───────────────────────────────┐ ◀─ next_back
//!         from ············ rows left ··· to      one cursor, sought anew when the end changes
//! ```
//!
//! Invariants: no lock and no thread-local is held between two steps, nor while a key or value of
//! the user's is decoded; after the end, or an error of the disk, there is nothing more.
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::stream::RangeStream;
use super::view;
use crate::key::Key;
use crate::store::{Below, Direction, Rows, Scratch, StoreError, Table, Taken, step};

/// The rows left of a scan, without their types.
struct Scan {
    table: Arc<Table>,
    layers: Vec<Arc<Rows>>,
    below: Below<Arc<Table>>,
    from: Scratch,
    to: Scratch,
    /// Why it could not begin: the first step says so.
    failed: Option<StoreError>,
}

impl Scan {
    fn new(table: &Arc<Table>, from: Scratch, to: Scratch) -> Result<Self, StoreError> {
        let (layers, below) = view::scan(table)?;
        Ok(Self { table: Arc::clone(table), layers, below, from, to, failed: None })
    }

    fn failed(table: &Arc<Table>, error: StoreError) -> Self {
        Self {
            table: Arc::clone(table),
            layers: Vec::new(),
            below: Below::new(None),
            from: Scratch::default(),
            to: Scratch::default(),
            failed: Some(error),
        }
    }

    #[inline]
    fn step<R>(
        &mut self,
        direction: Direction,
        read: impl FnOnce(&Table, &[u8], &[u8]) -> Result<R, StoreError>,
    ) -> Option<Result<R, StoreError>> {
        let taken = match step(&self.layers, &mut self.below, &mut self.from, &mut self.to, direction) {
            Ok(taken) => taken,
            Err(error) => {
                self.end();
                return Some(Err(self.table.error(&error)));
            }
        };
        match taken {
            Some(Taken::Above(key, value)) => Some(read(&self.table, &key, &value)),
            Some(Taken::Below) => {
                let (key, value) = self.below.row()?;
                Some(read(&self.table, key, value))
            }
            None => {
                self.end();
                self.failed.take().map(Err)
            }
        }
    }

    /// Lets go of the cursor and of the layers before the iterator itself is dropped.
    fn end(&mut self) {
        self.below = Below::new(None);
        self.layers.clear();
        self.to.clear();
    }
}

/// An iterator over the rows of a cache in key order, from both ends.
///
/// It sees the cache as it was when the iterator was made, whatever is written meanwhile; it may be
/// held across an `await`. As long as it lives the store stays open, and RocksDB keeps what it sees,
/// so do not store it away.
///
/// An item is an error when the disk fails (then the iterator ends), or when a row is not of these
/// types (then it goes on with the next).
///
/// ```
/// use slipstream_core::Cache;
///
/// let squares = Cache::<i64, i64>::in_memory()?;
/// for n in -2..=2 {
///     squares.insert(&n, n * n)?;
/// }
/// let mut rows = squares.iter();
/// assert_eq!(rows.next().transpose()?, Some((-2, 4)));
/// assert_eq!(rows.next_back().transpose()?, Some((2, 4)));
/// squares.clear()?;
/// assert_eq!(rows.count(), 3);
/// # Ok::<(), slipstream_core::StoreError>(())
/// ```
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct Range<K, V> {
    scan: Scan,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K: Key, V: DeserializeOwned> Range<K, V> {
    pub(super) fn new(table: &Arc<Table>, bounds: Result<(Scratch, Scratch), StoreError>) -> Self {
        let scan = bounds.and_then(|(from, to)| Scan::new(table, from, to));
        Self { scan: scan.unwrap_or_else(|error| Scan::failed(table, error)), types: PhantomData }
    }

    /// The keys of these rows; values are not decoded.
    ///
    /// ```
    /// # use slipstream_core::{Cache, StoreError};
    /// let stock = Cache::<String, u32>::in_memory()?;
    /// stock.insert("apples", 3)?;
    /// let keys: Result<Vec<String>, StoreError> = stock.range("a".."b").keys().collect();
    /// assert_eq!(keys?, ["apples"]);
    /// # Ok::<(), StoreError>(())
    /// ```
    pub fn keys(self) -> Keys<K> {
        Keys { scan: self.scan, types: PhantomData }
    }

    /// The values of these rows in key order; keys are not decoded.
    pub fn values(self) -> Values<K, V> {
        Values { scan: self.scan, types: PhantomData }
    }

    /// The same rows as a stream, for long scans in async code: it gives way to other tasks after
    /// each 64 rows. Reading blocks its thread while the disk is asked.
    ///
    /// # Cancel safety
    /// It may be dropped between two items, which loses nothing.
    ///
    /// ```
    /// # use slipstream_core::{Cache, StoreError};
    /// use futures::TryStreamExt;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StoreError> {
    /// let stock = Cache::<String, u32>::in_memory()?;
    /// stock.insert("apples", 3)?;
    /// stock.insert("pears", 5)?;
    /// let all = stock.iter().stream().try_fold(0, async |sum, (_, count)| Ok(sum + count)).await?;
    /// assert_eq!(all, 8);
    /// # Ok(())
    /// # }
    /// ```
    pub fn stream(self) -> RangeStream<K, V> {
        RangeStream::new(self)
    }
}

/// An iterator over keys of a cache in order, from both ends: [`Range`] without values.
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct Keys<K> {
    scan: Scan,
    types: PhantomData<fn() -> K>,
}

/// An iterator over values of a cache in key order, from both ends: [`Range`] without keys.
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct Values<K, V> {
    scan: Scan,
    types: PhantomData<fn() -> (K, V)>,
}

macro_rules! iterators {
    ($($iterator:ident<$($type:ident: $bound:ident),+> => $item:ty, $read:expr;)+) => {$(
        impl<$($type: $bound),+> Iterator for $iterator<$($type),+> {
            type Item = Result<$item, StoreError>;

            #[inline]
            fn next(&mut self) -> Option<Self::Item> {
                self.scan.step(Direction::Forward, $read)
            }
        }

        impl<$($type: $bound),+> DoubleEndedIterator for $iterator<$($type),+> {
            #[inline]
            fn next_back(&mut self) -> Option<Self::Item> {
                self.scan.step(Direction::Backward, $read)
            }
        }

        impl<$($type: $bound),+> FusedIterator for $iterator<$($type),+> {}

        impl<$($type),+> fmt::Debug for $iterator<$($type),+> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($iterator)).field("of", &self.scan.table).finish_non_exhaustive()
            }
        }
    )+};
}

iterators! {
    Range<K: Key, V: DeserializeOwned> => (K, V),
        |table, key, value| Ok((table.read_key(key)?, table.read_value::<K, V>(key, value)?));
    Keys<K: Key> => K, |table, key, _| table.read_key(key);
    Values<K: Key, V: DeserializeOwned> => V, Table::read_value::<K, V>;
}
