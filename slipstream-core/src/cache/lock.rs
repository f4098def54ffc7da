//! `lock`: keys that one message, or one task, has for itself among all that lock them.
//!
//! ```text
//! in a message:  lock ─▶ the message has it ─▶ publication, roll-back or drop lets it go
//! elsewhere:     lock ─▶ the guard has it   ─▶ its drop lets it go
//! ```
//!
//! Invariants: the keys of one call are locked in the order of their bytes, and a message makes one
//! call, so no two messages wait for each other; what a message has written is visible before its
//! locks are let go.
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Cache;
use crate::key::{AsKey, Key};
use crate::store::{Bytes, HeldLock, StoreError, Table};
use crate::transaction;

/// Locks on keys of a cache: what [`Cache::lock`] and [`Cache::lock_all`] answer.
///
/// In a message it is only a token: the message itself has the locks until it is done, whatever
/// becomes of this. Elsewhere they are let go when it is dropped.
#[must_use = "outside of a message the lock is let go when this is dropped; bind it, as in `let _lock = …`"]
pub struct KeyLock {
    /// None where a message has them.
    held: Vec<HeldLock>,
}

impl<K: Key, V: Serialize + DeserializeOwned + Send + Sync + 'static> Cache<K, V> {
    /// Locks a key, whether the cache has it or not, and waits while another has the lock; who came
    /// first has it first.
    ///
    /// The lock is an agreement between those who ask for it: others read and write the key as ever.
    /// Whoever has it sees, by [`get`](Self::get), all that was published under it before.
    ///
    /// - **Inside of a message** the lock is held until the message is published (its writes are visible
    ///   before the lock is let go), rolled back or dropped, whatever becomes of the answer. A handler
    ///   that is retried, and a message that runs again, first lets go what it has locked since. A
    ///   message locks once: for several keys use [`lock_all`](Self::lock_all).
    /// - **Elsewhere** it is held until the answer is dropped. Two tasks that each hold a lock and wait
    ///   for the other's wait for ever; `lock_all` avoids that.
    ///
    /// ```
    /// # use slipstream_core::{Cache, StoreError};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StoreError> {
    /// let stock = Cache::<String, u32>::in_memory()?;
    /// let _lock = stock.lock("apples").await?;
    /// let count = stock.get("apples")?.unwrap_or(0);
    /// tokio::task::yield_now().await; // Ask another service, say.
    /// stock.insert("apples", count + 1)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`StoreError::Key`] for a key that cannot be one, and [`StoreError::SecondLock`] in a message
    /// that has a lock or waits for one already.
    ///
    /// # Cancel safety
    /// A future that is dropped while it waits has left the queue and locked nothing; its message may
    /// lock again. One that has begun in a message and is polled to its end elsewhere (in a task that
    /// the handler spawned) leaves the lock to its answer.
    pub fn lock<Q: AsKey<K> + ?Sized>(
        &self,
        key: &Q,
    ) -> impl Future<Output = Result<KeyLock, StoreError>> + Send + use<K, V, Q> {
        let keys = self.key(key).map(|key| vec![Bytes::from(key.as_slice())]);
        lock(Arc::clone(&self.table), keys)
    }

    /// Locks several keys of the cache at once, as [`lock`](Self::lock) does one. They are locked in the
    /// order of the keys, however they are given, so that two calls never wait for each other; a key
    /// given twice is locked once.
    ///
    /// ```
    /// # use slipstream_core::{Cache, StoreError};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StoreError> {
    /// let accounts = Cache::<String, i64>::in_memory()?;
    /// let _locks = accounts.lock_all(["to", "from"]).await?;
    /// accounts.update("from", |sum| sum.unwrap_or(0) - 10)?;
    /// accounts.update("to", |sum| sum.unwrap_or(0) + 10)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`lock`](Self::lock).
    ///
    /// # Cancel safety
    /// As [`lock`](Self::lock): dropped while it waits, it lets go what it has locked so far.
    pub fn lock_all<Q: AsKey<K>, I: IntoIterator<Item = Q>>(
        &self,
        keys: I,
    ) -> impl Future<Output = Result<KeyLock, StoreError>> + Send + use<K, V, Q, I> {
        let keys = keys.into_iter().map(|key| Ok(Bytes::from(self.key(&key)?.as_slice())));
        let keys = keys.collect::<Result<Vec<Bytes>, StoreError>>().map(|mut keys| {
            keys.sort_unstable();
            keys.dedup();
            keys
        });
        lock(Arc::clone(&self.table), keys)
    }
}

/// Locks keys that are in order.
async fn lock(table: Arc<Table>, keys: Result<Vec<Bytes>, StoreError>) -> Result<KeyLock, StoreError> {
    let keys = keys?;
    let begun = transaction::with(|tx| tx.map(|tx| tx.locks.begin()));
    let waiting = match begun {
        Some(None) => return Err(table.second_lock()),
        Some(waiting) => waiting,
        None => None,
    };
    let mut held = Vec::with_capacity(keys.len());
    for key in keys {
        held.push(table.store().lock(key).await);
    }
    // No await from here on: this is the poll in which the last was got.
    if let Some(waiting) = waiting {
        transaction::with(|tx| {
            if let Some(tx) = tx {
                tx.locks.take_in(&waiting, &mut held);
            }
        });
    }
    Ok(KeyLock { held })
}

impl fmt::Debug for KeyLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyLock").field(&self.held).finish()
    }
}
