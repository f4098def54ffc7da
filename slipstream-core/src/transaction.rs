//! The transaction of the message in hand: what its handlers have written so far, what they have read
//! to change it, and what they have locked, gathered until the message is done.
//!
//! ```text
//! route ──enter──▶ CURRENT (thread-local, for the length of one poll) ◀──with── cache
//!       ──publish / roll_back, between polls
//! ```
//!
//! Invariants: it follows the task from thread to thread, since it is set around each poll; a task
//! that a handler spawns sees none; outside of a message [`with`] finds nothing; locks are let go when
//! the message's rows are visible or forgotten, not before.
use std::cell::Cell;

use crate::given::Given;
use crate::outgoing::Outgoing;
#[cfg(feature = "rocksdb")]
use crate::store::{HeldLock, Staged, StagedThen};
use crate::watch::Watched;
#[cfg(feature = "rocksdb")]
use std::sync::{Arc, Weak};

/// What one message has done so far.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    /// Rows for a store; `None` until the first write.
    #[cfg(feature = "rocksdb")]
    pub(crate) staged: Option<Staged>,
    /// What its handlers have given to others, and is not yet handled.
    pub(crate) given: Given,
    /// What it sends out when it is published.
    pub(crate) outgoing: Outgoing,
    /// By what it is known, where somebody asks.
    pub(crate) watched: Option<Watched>,
    /// The locks of the message.
    #[cfg(feature = "rocksdb")]
    pub(crate) locks: MessageLocks,
}

/// The one call of a message that locks keys.
#[cfg(feature = "rocksdb")]
#[derive(Debug, Default)]
pub(crate) enum MessageLocks {
    #[default]
    None,
    /// The call waits, as long as its future lives.
    Waiting(Weak<()>),
    Held {
        _locks: Vec<HeldLock>,
    },
}

#[cfg(feature = "rocksdb")]
impl MessageLocks {
    /// The call begins to wait; `None` where there was one before.
    pub(crate) fn begin(&mut self) -> Option<Arc<()>> {
        match self {
            MessageLocks::Held { .. } => return None,
            MessageLocks::Waiting(future) if future.strong_count() > 0 => return None,
            MessageLocks::Waiting(_) | MessageLocks::None => {}
        }
        let waiting = Arc::new(());
        *self = MessageLocks::Waiting(Arc::downgrade(&waiting));
        Some(waiting)
    }
    /// The call that waited has its locks, which are the message's now; they stay where they are if it was
    /// another message's.
    pub(crate) fn take_in(&mut self, waited: &Arc<()>, held: &mut Vec<HeldLock>) {
        if matches!(self, MessageLocks::Waiting(call) if std::ptr::eq(call.as_ptr(), Arc::as_ptr(waited))) {
            *self = MessageLocks::Held { _locks: std::mem::take(held) };
        }
    }
    /// Lets go.
    #[inline]
    pub(crate) fn release(&mut self) {
        if !matches!(self, MessageLocks::None) {
            *self = MessageLocks::None;
        }
    }
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
    TOUCHED.set(true);
    let mut current = Taken(CURRENT.take());
    f(current.0.as_deref_mut())
}

/// Calls `f` with what the message in hand is known by; `None` outside of a message, and where nobody asks.
#[inline]
pub(crate) fn with_watched<R>(f: impl FnOnce(&mut Watched) -> R) -> Option<R> {
    with(|current| current.and_then(|transaction| transaction.watched.as_mut()).map(f))
}

/// Looks at the transaction of the message in hand, without a touch.
#[inline]
pub(crate) fn peek<R>(f: impl FnOnce(&Transaction) -> R) -> Option<R> {
    let current = Taken(CURRENT.take());
    current.0.as_deref().map(f)
}

/// The transaction while somebody has it, which is put back then.
struct Taken(Option<Box<Transaction>>);

impl Drop for Taken {
    #[inline]
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
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
    outgoing: usize,
    told: usize,
    numbered: u64,
    #[cfg(feature = "rocksdb")]
    has_lock: bool,
}

impl Savepoint {
    /// How much the message had told checkpoints.
    pub(crate) fn told(&self) -> usize {
        self.told
    }
}

impl Transaction {
    /// One that has done nothing, with places for what is given in it.
    pub(crate) fn new(given: Given, watched: Option<Watched>) -> Self {
        Transaction {
            #[cfg(feature = "rocksdb")]
            staged: None,
            given,
            outgoing: Outgoing::default(),
            watched,
            #[cfg(feature = "rocksdb")]
            locks: MessageLocks::None,
        }
    }
    /// Forgets what the message has written, and lets go its locks.
    pub(crate) fn roll_back(&mut self) {
        self.roll_back_to(&Savepoint::default());
        if let Some(watched) = &mut self.watched {
            watched.roll_back();
        }
    }
    /// The message as it is now. Costs little: rows are copied when the next is written.
    pub(crate) fn savepoint(&self) -> Savepoint {
        Savepoint {
            #[cfg(feature = "rocksdb")]
            staged: self.staged.as_ref().map(Staged::savepoint),
            given: self.given.len(),
            outgoing: self.outgoing.len(),
            told: self.watched.as_ref().map_or(0, Watched::len),
            numbered: self.watched.as_ref().map_or(0, Watched::outputs),
            #[cfg(feature = "rocksdb")]
            has_lock: matches!(self.locks, MessageLocks::Held { .. }),
        }
    }
    /// Forgets what the message has done since, and lets go what it has locked since.
    pub(crate) fn roll_back_to(&mut self, savepoint: &Savepoint) {
        self.roll_back_but_told(savepoint);
        if let Some(watched) = &mut self.watched {
            watched.truncate(savepoint.told);
        }
    }
    /// The same, but what it has told checkpoints stands.
    pub(crate) fn roll_back_but_told(&mut self, savepoint: &Savepoint) {
        #[cfg(feature = "rocksdb")]
        {
            match (&mut self.staged, &savepoint.staged) {
                (Some(staged), Some(then)) => staged.roll_back_to(then),
                (staged, _) => *staged = None,
            }
            if !savepoint.has_lock {
                self.locks.release();
            }
        }
        self.given.truncate(savepoint.given);
        self.outgoing.truncate(savepoint.outgoing);
        if let Some(watched) = &mut self.watched {
            watched.take_back_outputs(savepoint.numbered);
        }
    }
}

/// Whether a write here would belong to a message in hand: true in a handler and what it awaits,
/// false in tasks that it spawns, and in a handler that a test calls.
#[must_use]
pub fn in_message() -> bool {
    with(|current| current.is_some())
}

/// Whether the message in hand comes again to a handler that has published an earlier handling of it: because a
/// [`Checkpoint`](crate::Checkpoint) has it handled again. A [`Message`](crate::Message) of a topic says the same. An aggregation
/// that leaves such messages out counts each once.
#[must_use]
pub fn is_replayed() -> bool {
    peek(|transaction| transaction.watched.as_ref().is_some_and(Watched::is_replayed)).unwrap_or(false)
}
