//! Look-ups by nearness, in the last element of a key: what an as-of join asks.
//!
//! ```text
//! (JFK, 9:50)  (JFK, 10:10) │ (SFO, 9:55)  (SFO, 10:05)
//!   as_of ◀── (JFK, 10:00) ──▶ after        the other group is never reached
//! ```
//!
//! Invariant: a row that is found has the same group as the key that was asked for: all its elements
//! but the last.
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Cache;
use super::range::past_prefix;
use crate::key::{AsKey, Distance, Key};
use crate::store::{Direction, Scratch, StoreError};

impl<K: Key, V: Serialize + DeserializeOwned + Send + Sync + 'static> Cache<K, V> {
    /// The latest row at or before `at`. With a tuple as key only the last element may differ: all
    /// that stand before it are the group in which is looked.
    ///
    /// This is the look-up of an as-of join: which update held when this happened.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    ///
    /// ```
    /// # use slipstream_core::Cache;
    /// let prices = Cache::<i64, f64>::in_memory()?;
    /// prices.insert(&100, 1.5)?;
    /// assert_eq!(prices.as_of(&99)?, None);
    /// assert_eq!(prices.as_of(&100)?, Some((100, 1.5)));
    /// assert_eq!(prices.as_of(&101)?, Some((100, 1.5)));
    /// # Ok::<(), slipstream_core::StoreError>(())
    /// ```
    pub fn as_of<Q: AsKey<K> + ?Sized>(&self, at: &Q) -> Result<Option<(K, V)>, StoreError> {
        let (mut from, mut to) = (Scratch::take(), Scratch::take());
        let group = self.table.write_key::<K, Q>(at, &mut to)?;
        from.extend_from_slice(to.get(..group).unwrap_or_default());
        to.push(0);
        self.first_row(&mut from, &mut to, Direction::Backward)
    }

    /// The earliest row after `at`, and not at it, in the group of `at`: see [`as_of`](Self::as_of).
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn after<Q: AsKey<K> + ?Sized>(&self, at: &Q) -> Result<Option<(K, V)>, StoreError> {
        let (mut from, mut to) = (Scratch::take(), Scratch::take());
        let group = self.table.write_key::<K, Q>(at, &mut from)?;
        to.extend_from_slice(from.get(..group).unwrap_or_default());
        past_prefix(&mut to);
        from.push(0);
        self.first_row(&mut from, &mut to, Direction::Forward)
    }

    /// The row nearest to `to`, before or after it, in the group of `to`: see [`as_of`](Self::as_of).
    /// Of two that are equally near it is the earlier.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    ///
    /// ```
    /// # use slipstream_core::Cache;
    /// let prices = Cache::<i64, f64>::in_memory()?;
    /// prices.insert(&100, 1.5)?;
    /// prices.insert(&110, 1.75)?;
    /// assert_eq!(prices.nearest(&105)?, Some((100, 1.5)));
    /// assert_eq!(prices.nearest(&106)?, Some((110, 1.75)));
    /// # Ok::<(), slipstream_core::StoreError>(())
    /// ```
    pub fn nearest<Q: AsKey<K> + ?Sized>(&self, to: &Q) -> Result<Option<(K, V)>, StoreError>
    where
        K: Distance,
    {
        let (mut key, mut from, mut end) = (Scratch::take(), Scratch::take(), Scratch::take());
        let group = self.table.write_key::<K, Q>(to, &mut key)?;
        from.extend_from_slice(key.get(..group).unwrap_or_default());
        end.extend_from_slice(&key);
        end.push(0);
        let before = self.first_row(&mut from, &mut end, Direction::Backward)?;
        // The range was narrowed to what was taken: if that is the key itself, nothing is nearer.
        if before.is_some() && *end == *key {
            return Ok(before);
        }
        end.clear();
        end.extend_from_slice(&from);
        past_prefix(&mut end);
        from.clear();
        from.extend_from_slice(&key);
        let after = self.first_row(&mut from, &mut end, Direction::Forward)?;
        let (Some(earlier), Some(later)) = (&before, &after) else { return Ok(before.or(after)) };
        let to: K = self.table.read_key(&key)?;
        Ok(if to.distance(&earlier.0) <= to.distance(&later.0) { before } else { after })
    }
}
