//! `update`: a value changed by a function of the value before, so that no change of another is lost.
//!
//! ```text
//! in a message:  read ─▶ closure ─▶ staged row … publication: still as read?   no: the message runs again
//! elsewhere:     read ─▶ closure ─▶ still as read? write                       no: from the start
//! ```
//!
//! Invariants: no lock is held while the closure runs; the comparison and the write are one step for
//! all others, whether a flow runs, begins or ends.
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Cache, view};
use crate::key::{AsKey, Key};
use crate::store::{Bytes, Scratch, StoreError};

/// What the closure of [`Cache::update`] may return: the new value, or an `Option` of it, of which
/// `None` removes the key.
#[diagnostic::on_unimplemented(
    message = "`update` cannot make a `{V}` of what its closure returns, a `{Self}`",
    label = "not a `{V}` nor an `Option` of one",
    note = "the closure of `update` returns the new value, or an `Option` of it: `None` removes the key"
)]
pub trait NewValue<V> {
    /// The value to set; `None` to remove the key.
    fn as_value(&self) -> Option<&V>;
}

impl<V> NewValue<V> for V {
    fn as_value(&self) -> Option<&V> {
        Some(self)
    }
}

impl<V> NewValue<V> for Option<V> {
    fn as_value(&self) -> Option<&V> {
        self.as_ref()
    }
}

impl<K: Key, V: Serialize + DeserializeOwned + Send + Sync + 'static> Cache<K, V> {
    /// Changes the value of a key by a function of the value before, and answers what the function
    /// returned: the new value, or an `Option` of it, of which `None` removes the key.
    ///
    /// ```
    /// # use slipstream_core::Cache;
    /// let stock = Cache::<String, u32>::in_memory()?;
    /// assert_eq!(stock.update("apples", |count| count.unwrap_or(0) + 3)?, 3);
    /// assert_eq!(stock.update("apples", |count| count.unwrap_or(0) + 1)?, 4);
    /// // `None` removes the key.
    /// assert_eq!(stock.update("apples", |count| count.filter(|count| *count > 9))?, None);
    /// assert!(stock.is_empty()?);
    /// # Ok::<(), slipstream_core::StoreError>(())
    /// ```
    ///
    /// No change of another is lost, although nothing is locked: if the value is not the same any more
    /// when the new one takes effect, it is done again.
    ///
    /// - **Inside of a message** the new value takes effect with the message. If another message, or a
    ///   write from outside, has changed the key by then, nothing of this message takes effect, and it
    ///   runs again from its start, with all its handlers and sinks: see it as the price of rare
    ///   conflicts, and [`lock`](Self::lock) keys that many messages change at once. A key that this
    ///   message has written itself needs no such check.
    /// - **Elsewhere** the call is its own transaction, and the function is called again, with the newer
    ///   value, until nobody has come between; also while no flow runs over the store.
    ///
    /// Values are compared by their bytes: one that was changed and changed back meanwhile counts as the
    /// same. [`clear`](Self::clear) changes all keys that were there.
    ///
    /// The function may be called more than once, so it should do nothing but compute; it may use
    /// caches, and holds no lock. What it reads there by [`get`](Self::get) is not checked.
    ///
    /// # Errors
    /// Those of [`get`](Self::get) and [`insert`](Self::insert); nothing is changed then.
    pub fn update<Q: AsKey<K> + ?Sized, N: NewValue<V>>(
        &self,
        key: &Q,
        mut change: impl FnMut(Option<V>) -> N,
    ) -> Result<N, StoreError> {
        let key = self.key(key)?;
        view::update(&self.table, &key, |old| {
            let old = old.map(|old| self.table.read_value::<K, V>(&key, old)).transpose()?;
            let new = change(old);
            let bytes = new.as_value().map(|value| self.value_bytes(value)).transpose()?;
            Ok((new, bytes))
        })
    }

    fn value_bytes(&self, value: &V) -> Result<Bytes, StoreError> {
        let mut bytes = Scratch::take();
        self.table.write_value(value, &mut bytes)?;
        Ok(Bytes::from(bytes.as_slice()))
    }
}
