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

use crate::given::Given;
#[cfg(feature = "rocksdb")]
use crate::store::{Staged, StagedThen};

/// What one message has written so far.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    /// Rows for a store; `None` until the first write.
    #[cfg(feature = "rocksdb")]
    pub(crate) staged: Option<Staged>,
    /// What its handlers have given to others, and is not yet handled.
    pub(crate) given: Given,
}

thread_local! {
    static CURRENT: Cell<Option<Box<Transaction>>> = const { Cell::new(None) };
    /// False only where nothing is staged in the transaction that is set, so that the publication of
    /// a message that was in touch with no cache is one look.
    static TOUCHED: Cell<bool> = const { Cell::new(true) };
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
    TOUCHED.set(true);
    let mut current = PutBack(CURRENT.take());
    f(current.0.as_deref_mut())
}

/// Whether the message in hand may have written something, or been asked whether it has.
#[inline]
pub(crate) fn is_touched() -> bool {
    TOUCHED.get()
}

/// What it has written is published: it is as a new one.
#[inline]
pub(crate) fn untouched() {
    TOUCHED.set(false);
}

/// Runs `f` as part of the message that `transaction` belongs to. What was set before is set again
/// afterwards, also when `f` panics.
#[inline]
pub(crate) fn during<R>(transaction: &mut Option<Box<Transaction>>, f: impl FnOnce() -> R) -> R {
    struct Swapped<'t>(&'t mut Option<Box<Transaction>>);
    impl Drop for Swapped<'_> {
        #[inline]
        fn drop(&mut self) {
            *self.0 = CURRENT.replace(self.0.take());
            TOUCHED.set(true);
        }
    }
    *transaction = CURRENT.replace(transaction.take());
    TOUCHED.set(true);
    let _swapped = Swapped(transaction);
    f()
}

/// A message as it was before one of its handlings, to which it can be rolled back.
#[derive(Debug, Default)]
pub(crate) struct Savepoint {
    #[cfg(feature = "rocksdb")]
    staged: Option<StagedThen>,
    given: usize,
}

impl Transaction {
    /// Forgets what the message has done.
    pub(crate) fn roll_back(&mut self) {
        self.roll_back_to(&Savepoint::default());
    }
    /// The message as it is now. Costs little: rows are copied when the next is written.
    pub(crate) fn savepoint(&self) -> Savepoint {
        Savepoint {
            #[cfg(feature = "rocksdb")]
            staged: self.staged.as_ref().map(Staged::savepoint),
            given: self.given.len(),
        }
    }
    /// Forgets what the message has done since.
    pub(crate) fn roll_back_to(&mut self, savepoint: &Savepoint) {
        #[cfg(feature = "rocksdb")]
        {
            match (&mut self.staged, &savepoint.staged) {
                (Some(staged), Some(then)) => staged.roll_back_to(then),
                (staged, _) => *staged = None,
            }
        }
        self.given.truncate(savepoint.given);
    }
}

/// Whether a write here would belong to a message in hand: true in a handler and what it awaits,
/// false in tasks that it spawns, and in a handler that a test calls.
#[must_use]
pub fn in_message() -> bool {
    with(|current| current.is_some())
}
