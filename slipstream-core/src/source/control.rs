//! By what a program steers a source that is being read: pause, resume, seek.
//!
//! ```text
//! seek, pause, hold ──▶ Control ──state──▶ drive: is it still as when the message was fetched?
//!                          │
//!                          └──sought──▶ feed: opens the source again
//! ```
//!
//! Invariants: each change makes a new state, under one lock, so whoever knows the state knows all
//! that came before it; a seek is taken by each feed once, and one that no feed has taken waits for the
//! next opening; a source is paused exactly as long as somebody holds it.
use crate::position::Positions;
use futures::task::AtomicWaker;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::sync::Notify;

/// A handle by which a program pauses a source and seeks in it, while a flow reads it or before one
/// does. Keep one in the source, give it out in [`Seekable::control`](crate::Seekable::control), and clone it to
/// whoever steers: a handler may, too.
///
/// ```
/// use slipstream_core::Control;
///
/// let control = Control::default();
/// control.pause();
/// control.seek(0, 100); // of partition 0, message 100 is the next
/// assert!(control.is_paused());
/// control.resume();
/// assert!(!control.is_paused());
/// ```
#[derive(Clone, Default)]
pub struct Control {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Changed under the lock of `steering`, looked at without it for each message.
    state: AtomicU64,
    steering: Mutex<Steering>,
    resumed: Notify,
}

#[derive(Default)]
struct Steering {
    /// By whom the source is held, the user among them.
    holders: BTreeSet<&'static str>,
    /// The last seek of each partition.
    sought: BTreeMap<i32, Seek>,
    /// Of the feeds that read the source, to be woken by a seek.
    feeds: Vec<Weak<AtomicWaker>>,
    published: Published,
}

struct Seek {
    offset: i64,
    /// The state that it made.
    state: u64,
    /// A feed has it, so that the next opening has not.
    is_taken: bool,
}

/// Where the positions of what is published are to be had.
enum Published {
    /// Of the flow that is running, by the name of the source.
    Running(Weak<dyn Fn() -> Positions + Send + Sync>),
    /// What the last flow has committed.
    Ended(Positions),
}

impl Default for Published {
    fn default() -> Self {
        Published::Ended(Positions::default())
    }
}

/// The holder that [`Control::pause`] stands for.
const USER: &str = "user";

impl Control {
    /// The next message of `partition` is number `offset`; one below 0 is taken for 0. What was fetched
    /// before and has not begun is dropped. The stored position moves with the first message handled
    /// after it, so a crash before that goes on where it was.
    ///
    /// Asked for before a flow reads the source, it is applied when one does. Of two, the later counts.
    pub fn seek(&self, partition: i32, offset: i64) {
        let feeds = {
            let mut steering = self.steering();
            let state = self.change(&steering);
            let offset = offset.max(0);
            steering.sought.insert(partition, Seek { offset, state, is_taken: false });
            steering.feeds.iter().filter_map(Weak::upgrade).collect::<Vec<_>>()
        };
        feeds.iter().for_each(|feed| feed.wake());
    }

    /// From the next message on nothing is handed to handlers, whatever was fetched, until
    /// [`resume`](Control::resume). A message that has begun is finished. A source that comes to its end meanwhile
    /// has not ended before.
    pub fn pause(&self) {
        self.hold(USER);
    }

    /// Ends a [`pause`](Control::pause). It goes on when nobody else holds the source.
    pub fn resume(&self) {
        self.release(USER);
    }

    /// Whether anybody holds the source: the program by [`pause`](Control::pause), or the runtime.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        !self.steering().holders.is_empty()
    }

    /// Where the partitions go on after what is published: after the messages whose writes others see, also
    /// where a commit is still to come. Without a running flow what the last one has committed; empty
    /// before the first.
    #[must_use]
    pub fn positions(&self) -> Positions {
        // The flow's answer takes locks of its own, so this one is let go of before.
        let published = match &self.steering().published {
            Published::Running(published) => published.upgrade(),
            Published::Ended(positions) => return positions.clone(),
        };
        published.map_or_else(Positions::default, |published| published())
    }

    /// Pauses in the name of `holder`.
    pub(crate) fn hold(&self, holder: &'static str) {
        let mut steering = self.steering();
        if steering.holders.insert(holder) {
            self.change(&steering);
        }
    }

    /// Ends the pause of `holder`.
    pub(crate) fn release(&self, holder: &'static str) {
        let mut steering = self.steering();
        if steering.holders.remove(holder) {
            self.change(&steering);
            if steering.holders.is_empty() {
                self.inner.resumed.notify_waiters();
            }
        }
    }

    /// Waits until nobody holds the source.
    pub(crate) async fn resumed(&self) {
        loop {
            // Made before the look, so that no resuming falls between the two.
            let resumed = self.inner.resumed.notified();
            if !self.is_paused() {
                return;
            }
            resumed.await;
        }
    }

    /// Another number after each pause, resume and seek.
    #[inline]
    pub(crate) fn state(&self) -> u64 {
        self.inner.state.load(Ordering::Relaxed)
    }

    /// The same, to be looked at for each message.
    #[inline]
    pub(crate) fn state_now(&self) -> &AtomicU64 {
        &self.inner.state
    }

    /// The partitions that were sought after the state was `as_of`: a message of one of them that was fetched
    /// at that state is of before the seek.
    pub(crate) fn sought_since(&self, as_of: u64) -> Vec<i32> {
        let steering = self.steering();
        let later = steering.sought.iter().filter(|(_, seek)| seek.state > as_of);
        later.map(|(partition, _)| *partition).collect()
    }

    /// For a feed that begins: what no feed has taken yet, laid over `positions`, and the state by which
    /// it holds. `waker` is woken by each seek from now on.
    pub(crate) fn opening(&self, positions: &mut Positions, waker: &Arc<AtomicWaker>) -> u64 {
        let mut steering = self.steering();
        steering.feeds.retain(|feed| feed.strong_count() > 0);
        steering.feeds.push(Arc::downgrade(waker));
        self.take(&mut steering, positions, |seek| !seek.is_taken);
        self.state()
    }

    /// For a feed that knows the state `as_of`: what was sought since, laid over `positions`, whether
    /// there is any, and the state by which it holds.
    pub(crate) fn take_sought(&self, positions: &mut Positions, as_of: u64) -> (bool, u64) {
        let mut steering = self.steering();
        let any = self.take(&mut steering, positions, |seek| seek.state > as_of);
        (any, self.state())
    }

    fn take(
        &self,
        steering: &mut Steering,
        positions: &mut Positions,
        is_due: impl Fn(&Seek) -> bool,
    ) -> bool {
        let mut any = false;
        for (partition, seek) in steering.sought.iter_mut().filter(|(_, seek)| is_due(seek)) {
            seek.is_taken = true;
            positions.set(*partition, seek.offset, 0);
            any = true;
        }
        any
    }

    /// From now on [`positions`](Control::positions) asks a running flow, as long as it keeps
    /// `published`.
    #[cfg_attr(not(feature = "rocksdb"), expect(dead_code))]
    pub(crate) fn link(&self, published: &Arc<dyn Fn() -> Positions + Send + Sync>) {
        self.steering().published = Published::Running(Arc::downgrade(published));
    }

    /// The flow has ended, and has committed this.
    #[cfg_attr(not(feature = "rocksdb"), expect(dead_code))]
    pub(crate) fn unlink(&self, committed: Positions) {
        self.steering().published = Published::Ended(committed);
    }

    /// The caller has the lock.
    fn change(&self, _: &MutexGuard<'_, Steering>) -> u64 {
        self.inner.state.fetch_add(1, Ordering::Release) + 1
    }

    // What runs under the lock does not panic, so it is never left half changed.
    fn steering(&self) -> MutexGuard<'_, Steering> {
        self.inner.steering.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steering = self.steering();
        let sought: BTreeMap<_, _> =
            steering.sought.iter().map(|(partition, seek)| (partition, seek.offset)).collect();
        f.debug_struct("Control").field("held_by", &steering.holders).field("sought", &sought).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn opened(control: &Control) -> (Positions, u64) {
        let mut positions = Positions::from_iter([(0, 7)]);
        let as_of = control.opening(&mut positions, &Arc::default());
        (positions, as_of)
    }

    #[test]
    fn a_seek_before_the_opening_is_applied_by_it_and_by_no_other() {
        let control = Control::default();
        control.seek(0, 3);
        control.seek(0, 5);
        control.seek(1, -2);
        assert_eq!(opened(&control).0, Positions::from_iter([(0, 5), (1, 0)]));
        assert_eq!(opened(&control).0, Positions::from_iter([(0, 7)]));
    }

    #[test]
    fn each_of_two_feeds_takes_a_seek_once() {
        let control = Control::default();
        let (mut one, mut other) = (opened(&control), opened(&control));
        control.seek(0, 3);
        for (positions, as_of) in [&mut one, &mut other] {
            assert!(control.state() != *as_of);
            assert_eq!(control.sought_since(*as_of), [0]);
            let (any, now) = control.take_sought(positions, *as_of);
            assert!(any && positions.next(0) == Some(3) && now == control.state());
            assert!(!control.take_sought(positions, now).0);
        }
    }

    #[test]
    fn what_was_fetched_before_a_seek_of_its_partition_is_stale() {
        let control = Control::default();
        let (_, before) = opened(&control);
        control.seek(1, 3);
        let after = control.state();
        control.pause();
        assert_eq!(control.sought_since(before), [1]);
        assert!(control.sought_since(after).is_empty(), "a pause makes nothing stale");
    }

    #[test]
    fn it_is_paused_until_the_last_holder_lets_go() {
        let control = Control::default();
        let before = control.state();
        control.hold("checkpoint");
        control.pause();
        control.pause();
        let mut resumed = Box::pin(control.resumed());
        assert!(resumed.as_mut().now_or_never().is_none());
        control.resume();
        assert!(control.is_paused() && resumed.as_mut().now_or_never().is_none());
        control.release("checkpoint");
        assert!(!control.is_paused() && resumed.now_or_never().is_some());
        assert!(control.state() != before);
    }
}
