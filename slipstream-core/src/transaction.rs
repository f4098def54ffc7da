//! The transaction of the message in hand: what its handlers have written so far, gathered until
//! the message is done.
//!
//! ```text
//! route ──enter──▶ CURRENT (thread-local, for the length of one poll) ◀──with── cache
//!       ──publish / roll_back, between polls
//! ```
//!
//! Invariants: it follows the task from thread to thread, since it is set around each poll; a task
//! that a handler spawns sees none; outside of a message [`with`] finds nothing.
use std::cell::Cell;

#[cfg(feature = "rocksdb")]
use crate::store::Staged;

/// What one message has written so far.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    /// Rows for a store; `None` until the first write.
    #[cfg(feature = "rocksdb")]
    pub(crate) staged: Option<Staged>,
}

thread_local! {
    static CURRENT: Cell<Option<Box<Transaction>>> = const { Cell::new(None) };
}

/// Calls `f` with the transaction of the message in hand, or with `None` outside of a message.
/// Inside `f` there is none (a destructor that writes there finds nothing to write into).
#[inline]
pub(crate) fn with<R>(f: impl FnOnce(Option<&mut Transaction>) -> R) -> R {
    struct PutBack(Option<Box<Transaction>>);
    impl Drop for PutBack {
        #[inline]
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }
    let mut current = PutBack(CURRENT.take());
    f(current.0.as_deref_mut())
}

/// Calls `f` with this transaction as that of the message in hand, and takes it back when `f` is
/// done, by a panic too. With `None` what `f` does is outside of any message.
#[inline]
pub(crate) fn during<R>(transaction: &mut Option<Box<Transaction>>, f: impl FnOnce() -> R) -> R {
    struct Restore<'t> {
        transaction: &'t mut Option<Box<Transaction>>,
        outer: Option<Box<Transaction>>,
    }
    impl Drop for Restore<'_> {
        #[inline]
        fn drop(&mut self) {
            *self.transaction = CURRENT.replace(self.outer.take());
        }
    }
    let outer = CURRENT.replace(transaction.take());
    let _restore = Restore { transaction, outer };
    f()
}
