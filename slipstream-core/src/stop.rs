//! A flow's stop: set once, seen by every route between two messages, and by those that wait for
//! their source.
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

/// Whether the flow is to stop.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    set: AtomicBool,
    notify: Notify,
}

impl Stop {
    pub(crate) fn set(&self) {
        self.set.store(true, Ordering::Release);
        self.notify.notify_waiters();
    }
    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        self.set.load(Ordering::Relaxed)
    }
    /// Waits until it is set.
    pub(crate) async fn stopped(&self) {
        // Registered before the look, so that no setting falls between the two.
        let notified = self.notify.notified();
        if !self.set.load(Ordering::Acquire) {
            notified.await;
        }
    }
}
