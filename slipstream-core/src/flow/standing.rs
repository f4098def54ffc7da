//! What a member of a group asks of the flow that reads it, when partitions come and go.
//!
//! Invariant: it keeps neither the flow nor its commits alive; a flow that has ended commits nothing more, and
//! says so.
use super::keeping::Keeps;
use crate::{
    BoxError,
    commit::CommitError,
    position::Positions,
    route::Shared,
    source::{Judged, Mark, Standing},
};
use std::{
    future::Future,
    pin::pin,
    sync::{Arc, Weak},
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::{Duration, Instant},
};

/// Of one source.
#[derive(Debug)]
pub(super) struct Stands {
    /// The flow's number for it. Not the source, which keeps the member, and that keeps this.
    number: u32,
    /// As the attribute names it.
    #[cfg_attr(not(feature = "rocksdb"), expect(dead_code))]
    origin: String,
    #[cfg_attr(not(feature = "rocksdb"), expect(dead_code))]
    keeps: Keeps,
    flow: Weak<Shared>,
}

impl Stands {
    pub(super) fn new(number: u32, origin: String, keeps: Keeps, flow: Weak<Shared>) -> Self {
        Stands { number, origin, keeps, flow }
    }

    fn flow(&self) -> Result<Arc<Shared>, BoxError> {
        self.flow.upgrade().ok_or_else(|| "the flow has ended".into())
    }
}

impl Standing for Stands {
    fn known(&self) -> Result<Positions, BoxError> {
        self.flow()?.commit.positions_of(self.number)
    }

    #[cfg(feature = "rocksdb")]
    fn begin(&self, starts: Positions) -> Result<(), BoxError> {
        self.flow()?.commit.store_start(self.number, starts)
    }

    #[cfg(not(feature = "rocksdb"))]
    fn begin(&self, _: Positions) -> Result<(), BoxError> {
        Ok(())
    }

    #[cfg(feature = "rocksdb")]
    fn judge(&self, mark: &Mark) -> Result<Judged, BoxError> {
        use super::lost::{OnLostState, Side};
        let Some(store) = &self.keeps.store else { return Ok(Judged::Same) };
        let side = Side::of(store, self.keeps.flow.as_deref(), self.keeps.sync);
        let Some(lost) = side.judge(&self.origin, mark) else { return Ok(Judged::Same) };
        Ok(match self.keeps.on_lost(lost, store)? {
            OnLostState::Accept => Judged::Accept,
            _ => Judged::Rebuild,
        })
    }

    #[cfg(not(feature = "rocksdb"))]
    fn judge(&self, _: &Mark) -> Result<Judged, BoxError> {
        Ok(Judged::Same)
    }

    #[cfg(feature = "rocksdb")]
    fn is_in_memory(&self) -> bool {
        self.keeps.store.as_ref().is_some_and(|store| store.path().is_none())
    }

    #[cfg(not(feature = "rocksdb"))]
    fn is_in_memory(&self) -> bool {
        false
    }

    fn commit(&self, within: Duration) -> Result<(), BoxError> {
        let flow = self.flow()?;
        match wait_for(flow.demand.commit(), within) {
            // All that there was to commit is committed.
            Some(Ok(()) | Err(CommitError::Ended)) => Ok(()),
            Some(Err(error)) => Err(error.into()),
            None => Err(format!("the commit took longer than {within:?}").into()),
        }
    }
}

/// Waits for a future on a thread that may wait, without the timers of a runtime, which may be shutting down.
fn wait_for<F: Future>(future: F, within: Duration) -> Option<F::Output> {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let (mut future, until) = (pin!(future), Instant::now() + within);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(output);
        }
        let left = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
        thread::park_timeout(left);
    }
}
