//! The time from a run's first message to its last.
use super::Result;
use crate::twin::clock::{Clock, Took};
use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

/// Counts the messages of one run. One thread counts at a time, so that counting costs next to nothing.
pub(crate) struct Meter {
    count: u64,
    seen: AtomicU64,
    clock: Mutex<(Option<Clock>, Option<Took>)>,
}

impl Meter {
    pub(crate) fn new(count: u64) -> Self {
        Meter { count, seen: AtomicU64::new(0), clock: Mutex::default() }
    }

    /// One more; answers whether it is not the last.
    #[inline]
    pub(crate) fn message(&self) -> bool {
        let seen = self.seen.load(Ordering::Relaxed) + 1;
        self.seen.store(seen, Ordering::Relaxed);
        if seen == 1 || seen == self.count {
            self.turn(seen);
        }
        seen < self.count
    }

    #[inline]
    pub(crate) fn is_done(&self) -> bool {
        self.seen.load(Ordering::Relaxed) >= self.count
    }

    #[cold]
    fn turn(&self, seen: u64) {
        let (clock, took) = &mut *self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = *clock.get_or_insert_with(Clock::start);
        if seen == self.count {
            *took = Some(begun.took());
        }
    }

    /// What the messages took, all of them, and each once.
    pub(crate) fn took(&self) -> Result<Took> {
        let (_, took) = *self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = self.seen.load(Ordering::Relaxed);
        let (true, Some(took)) = (seen == self.count, took) else {
            return Err(format!("{seen} messages came, not {}", self.count).into());
        };
        Ok(took)
    }
}
