//! By what a program steers a source that is being read: pause, resume, seek; and by what a group takes
//! partitions away.
//!
//! ```text
//! seek, pause, hold, revoke ──▶ Control ──state──▶ drive: is it still as when the message was fetched?
//!                          │  ▲                       │
//!                          │  └──Hand: at which state its message began
//!                          └──sought──▶ feed: opens the source again
//! ```
//!
//! Invariants: each change makes a new state, under one lock, so whoever knows the state knows all
//! that came before it; a seek is taken by each feed once, and one that no feed has taken waits for the
//! next opening; a source is paused exactly as long as somebody holds it; what has begun before a revocation
//! either is seen in a hand, or is dropped by its worker.
use crate::position::Positions;
use futures::task::AtomicWaker;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering, fence},
    },
    thread,
    time::{Duration, Instant},
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
    /// Of one reader, where the source is a member of a group: see [`for_one_reader`](Control::for_one_reader).
    dealt: Arc<Mutex<Dealt>>,
}

#[derive(Default)]
struct Inner {
    /// Changed under the lock of `steering`, looked at without it for each message.
    state: AtomicU64,
    steering: Mutex<Steering>,
    resumed: Notify,
    /// Whoever waits for the messages in hand, and how many do.
    emptied: Notify,
    changed: Notify,
    awaited: AtomicU64,
}

#[derive(Default)]
struct Steering {
    /// By whom the source is held, the user among them.
    holders: BTreeSet<Arc<str>>,
    /// The last seek of each partition.
    sought: BTreeMap<i32, Seek>,
    /// Of the feeds that read the source, to be woken by a seek.
    feeds: Vec<Weak<AtomicWaker>>,
    published: Published,
}

/// What a group has dealt out to one reader and taken away again, and what that has in hand. Its lock is taken under
/// that of the steering.
#[derive(Default)]
struct Dealt {
    /// The state up to which the messages of a partition are of before a revocation.
    revoked: BTreeMap<i32, u64>,
    /// The state up to which messages of a partition that have begun are not published any more.
    lost: BTreeMap<i32, u64>,
    /// The offsets before which the outputs of a partition's messages were sent by another.
    withheld: BTreeMap<i32, i64>,
    /// Of the workers that handle its messages.
    hands: Vec<Weak<Hand>>,
    /// The partitions that it has, where a group deals them out.
    ours: Option<BTreeSet<i32>>,
    /// Who hears of that.
    hears: Option<Hears>,
}

/// Hears which partitions a reader has.
type Hears = Arc<dyn Fn(&BTreeSet<i32>) + Send + Sync>;

struct Seek {
    offset: i64,
    /// The state that it made.
    state: u64,
    /// By the program; else to handle messages again.
    by_user: bool,
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
        self.seek_as(partition, offset, true);
    }

    /// As [`seek`](Control::seek), to have messages handled again of which the position is stored already. Nothing where the
    /// partition is another's.
    #[cfg_attr(not(feature = "rocksdb"), allow(dead_code))]
    pub(crate) fn seek_back(&self, partition: i32, offset: i64) {
        if self.dealt().ours.as_ref().is_none_or(|ours| ours.contains(&partition)) {
            self.seek_as(partition, offset, false);
        }
    }

    /// The flow is gone. What it had sought to handle messages again, and not read from there yet, is in its store, or was
    /// never committed.
    #[cfg_attr(not(feature = "rocksdb"), allow(dead_code))]
    pub(crate) fn forget_back(&self) {
        self.steering().sought.retain(|_, seek| seek.by_user || seek.is_taken);
    }

    /// Forgets what [`seek_back`](Control::seek_back) has sought in these partitions, and answers it.
    #[cfg_attr(not(feature = "kafka"), allow(dead_code))]
    pub(crate) fn drop_seeks_back(&self, partitions: &[i32]) -> Vec<(i32, i64)> {
        let mut steering = self.steering();
        let is_back = |partition: &i32, seek: &mut Seek| partitions.contains(partition) && !seek.by_user;
        let dropped = steering.sought.extract_if(.., is_back);
        dropped.map(|(partition, seek)| (partition, seek.offset)).collect()
    }

    fn seek_as(&self, partition: i32, offset: i64, by_user: bool) {
        let feeds = {
            let mut steering = self.steering();
            let state = self.change(&steering);
            let offset = offset.max(0);
            steering.sought.insert(partition, Seek { offset, state, by_user, is_taken: false });
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
    pub(crate) fn hold(&self, holder: &str) {
        let mut steering = self.steering();
        if steering.holders.insert(Arc::from(holder)) {
            self.change(&steering);
        }
    }

    /// Ends the pause of `holder`.
    pub(crate) fn release(&self, holder: &str) {
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

    /// The partitions that were sought or revoked after the state was `as_of`: a message of one of them that was
    /// fetched at that state is of before it.
    pub(crate) fn stale_since(&self, as_of: u64) -> Vec<i32> {
        let steering = self.steering();
        let dealt = self.dealt();
        let sought = steering.sought.iter().map(|(partition, seek)| (partition, seek.state));
        let revoked = dealt.revoked.iter().map(|(partition, state)| (partition, *state));
        let later = sought.chain(revoked).filter(|(_, state)| *state > as_of);
        later.map(|(partition, _)| *partition).collect()
    }

    /// Whether any partition was sought after the state was `as_of`.
    pub(crate) fn is_sought_since(&self, as_of: u64) -> bool {
        self.steering().sought.values().any(|seek| seek.state > as_of)
    }

    /// Where the program has sought after the state was `as_of`.
    #[cfg_attr(not(feature = "rocksdb"), allow(dead_code))]
    pub(crate) fn sought_since(&self, as_of: u64) -> Vec<(i32, i64)> {
        let steering = self.steering();
        let sought = steering.sought.iter().filter(|(_, seek)| seek.by_user && seek.state > as_of);
        sought.map(|(partition, seek)| (*partition, seek.offset)).collect()
    }

    /// Where the program has sought and nobody has read since: the next to open the source begins there.
    #[cfg_attr(not(feature = "rocksdb"), allow(dead_code))]
    pub(crate) fn sought_before_opening(&self) -> Vec<(i32, i64)> {
        let steering = self.steering();
        let sought = steering.sought.iter().filter(|(_, seek)| seek.by_user && !seek.is_taken);
        sought.map(|(partition, seek)| (*partition, seek.offset)).collect()
    }

    /// The state before the first seek that waits for a feed; the present one where none does.
    #[cfg_attr(not(feature = "rocksdb"), allow(dead_code))]
    pub(crate) fn sought_before_the_opening(&self) -> u64 {
        let steering = self.steering();
        let waiting = steering.sought.values().filter(|seek| !seek.is_taken).map(|seek| seek.state);
        waiting.min().map_or_else(|| self.state(), |first| first - 1)
    }

    /// From now on `hears` is told which partitions this reader has, and at once if a group has dealt some out.
    #[cfg_attr(not(feature = "rocksdb"), allow(dead_code))]
    pub(crate) fn tell_assigned(&self, hears: Hears) {
        let ours = {
            let mut dealt = self.dealt();
            dealt.hears = Some(Arc::clone(&hears));
            dealt.ours.clone()
        };
        if let Some(ours) = ours {
            hears(&ours);
        }
    }

    /// A group has dealt these partitions out to this reader, or takes them away: after the last commit of them.
    #[cfg_attr(not(feature = "kafka"), allow(dead_code))]
    pub(crate) fn assigned(&self, partitions: &[i32], are_ours: bool) {
        let (hears, ours) = {
            let mut dealt = self.dealt();
            let ours = dealt.ours.get_or_insert_default();
            for partition in partitions {
                let _ = if are_ours { ours.insert(*partition) } else { ours.remove(partition) };
            }
            (dealt.hears.clone(), dealt.ours.clone())
        };
        // Under no lock, since whoever hears of it has locks of its own.
        if let (Some(hears), Some(ours)) = (hears, ours) {
            hears(&ours);
        }
    }

    /// Waits until no message is in hand that began before `state` was made, while the source is held.
    #[cfg_attr(not(feature = "rocksdb"), allow(dead_code))]
    pub(crate) async fn emptied(&self, state: u64) {
        struct Awaits<'a>(&'a AtomicU64);
        impl Drop for Awaits<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        self.inner.awaited.fetch_add(1, Ordering::Relaxed);
        let _awaits = Awaits(&self.inner.awaited);
        loop {
            let emptied = self.inner.emptied.notified();
            tokio::pin!(emptied);
            // From here on it hears.
            emptied.as_mut().enable();
            fence(Ordering::SeqCst);
            let settled = |hand: &Arc<Hand>| hand.began_at.load(Ordering::Acquire) >= state;
            if self.dealt().hands.iter().filter_map(Weak::upgrade).all(|hand| settled(&hand)) {
                return;
            }
            emptied.await;
        }
    }

    /// Whether no worker has anything in hand.
    pub(crate) fn is_idle(&self) -> bool {
        let is_empty = |hand: &Arc<Hand>| hand.began_at.load(Ordering::Acquire) == EMPTY;
        self.dealt().hands.iter().filter_map(Weak::upgrade).all(|hand| is_empty(&hand))
    }

    /// A worker has nothing in hand: whoever waits for that looks again.
    #[inline]
    pub(crate) fn is_emptied(&self) {
        fence(Ordering::SeqCst);
        if self.inner.awaited.load(Ordering::Relaxed) > 0 {
            self.inner.emptied.notify_waiters();
        }
    }

    /// Waits until the state is another than `state`: somebody has held it, or sought.
    pub(crate) async fn changed(&self, state: u64) {
        loop {
            let changed = self.inner.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.state() != state {
                return;
            }
            changed.await;
        }
    }

    /// Whether a message of `partition` that began at the state `as_of` has lost its partition.
    #[cold]
    pub(crate) fn is_lost_since(&self, as_of: u64, partition: i32) -> bool {
        self.dealt().lost.get(&partition).is_some_and(|state| *state > as_of)
    }

    /// What was fetched of these partitions and has not begun is another's to handle; what is in hand is finished.
    /// Answers the state that this made, for [`settled`](Control::settled).
    #[cfg_attr(not(feature = "kafka"), allow(dead_code))]
    pub(crate) fn revoke(&self, partitions: impl IntoIterator<Item = i32>) -> u64 {
        let (steering, mut dealt) = (self.steering(), self.dealt());
        let state = self.change(&steering);
        for partition in partitions {
            dealt.revoked.insert(partition, state);
            dealt.withheld.remove(&partition);
        }
        state
    }

    /// Messages of these partitions that are still in hand are dropped when they are to be published, since
    /// another handles them: after a revocation whose bound is over, and at once when they were lost.
    #[cfg_attr(not(feature = "kafka"), allow(dead_code))]
    pub(crate) fn lose(&self, partitions: impl IntoIterator<Item = i32>) {
        let (steering, mut dealt) = (self.steering(), self.dealt());
        let state = self.change(&steering);
        for partition in partitions {
            dealt.lost.insert(partition, state);
        }
    }

    /// Waits until no message is in hand that began before `state` was made, at most until `deadline`, and calls
    /// `between` every now and then, since a message may wait for the caller. Answers whether it is so.
    #[cfg_attr(not(feature = "kafka"), allow(dead_code))]
    pub(crate) fn settled(&self, state: u64, deadline: Instant, mut between: impl FnMut()) -> bool {
        // Often enough that a rebalance of many is not felt; the workers are not to wake anybody for it.
        const LOOK: Duration = Duration::from_millis(1);
        fence(Ordering::SeqCst);
        loop {
            let settled = |hand: &Arc<Hand>| hand.began_at.load(Ordering::Acquire) >= state;
            if self.dealt().hands.iter().filter_map(Weak::upgrade).all(|hand| settled(&hand)) {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            between();
            thread::sleep(LOOK);
        }
    }

    /// Keeps back the outputs of the messages of `partition` before `offset`, which another has sent.
    #[cfg_attr(not(feature = "kafka"), allow(dead_code))]
    pub(crate) fn withhold(&self, partition: i32, offset: i64) {
        let (steering, mut dealt) = (self.steering(), self.dealt());
        self.change(&steering);
        dealt.withheld.insert(partition, offset);
    }

    /// The partitions whose outputs are kept back, and up to where.
    pub(crate) fn withheld(&self) -> Vec<(i32, i64)> {
        self.dealt().withheld.iter().map(|(partition, offset)| (*partition, *offset)).collect()
    }

    /// That of a worker that is about to handle messages of the source.
    pub(crate) fn hand(&self) -> Arc<Hand> {
        let hand = Arc::new(Hand { began_at: AtomicU64::new(EMPTY) });
        let mut dealt = self.dealt();
        dealt.hands.retain(|hand| hand.strong_count() > 0);
        dealt.hands.push(Arc::downgrade(&hand));
        hand
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
    pub(crate) fn link(&self, published: &Arc<dyn Fn() -> Positions + Send + Sync>) {
        self.steering().published = Published::Running(Arc::downgrade(published));
    }

    /// The flow has ended, and has committed this.
    pub(crate) fn unlink(&self, committed: Positions) {
        self.steering().published = Published::Ended(committed);
    }

    /// The same control for one that reads the source as a member of a group: pauses and seeks are those of all who
    /// read it, but what its group gives and takes is its own matter.
    #[cfg_attr(not(feature = "kafka"), allow(dead_code))]
    pub(crate) fn for_one_reader(&self) -> Self {
        Control { inner: Arc::clone(&self.inner), dealt: Arc::default() }
    }

    /// The caller has the lock.
    fn change(&self, _: &MutexGuard<'_, Steering>) -> u64 {
        let state = self.inner.state.fetch_add(1, Ordering::Release) + 1;
        self.inner.changed.notify_waiters();
        state
    }

    // What runs under the locks does not panic, so nothing is ever left half changed.
    fn dealt(&self) -> MutexGuard<'_, Dealt> {
        self.dealt.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn steering(&self) -> MutexGuard<'_, Steering> {
        self.inner.steering.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// At which state of the control a worker has begun with the message in its hand, at the latest.
#[derive(Debug)]
pub(crate) struct Hand {
    began_at: AtomicU64,
}

/// Nothing is in hand.
const EMPTY: u64 = u64::MAX;

impl Hand {
    /// Messages begin at this state from now on. Whoever calls it looks at the state after it.
    #[inline]
    pub(crate) fn begins_at(&self, state: u64) {
        self.began_at.store(state, Ordering::Release);
        // Either the revocation sees this, or the look that follows sees the revocation.
        fence(Ordering::SeqCst);
    }
    /// Nothing is in hand.
    #[inline]
    pub(crate) fn is_empty_now(&self) {
        self.began_at.store(EMPTY, Ordering::Release);
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
    fn what_a_flow_that_is_gone_has_sought_back_is_nothing_to_the_next() {
        let control = Control::default();
        control.seek(1, 3);
        control.seek_back(0, 3);
        control.forget_back();
        assert_eq!(opened(&control).0, Positions::from_iter([(0, 7), (1, 3)]));
    }

    #[test]
    fn of_a_partition_that_is_let_go_the_seeks_of_the_runtime_are_dropped_and_those_of_the_program_wait() {
        let control = Control::default();
        control.assigned(&[0, 1, 2], true);
        control.seek(0, 3);
        control.seek_back(1, 4);
        control.seek_back(2, 5);
        control.seek_back(3, 6);
        assert_eq!(control.drop_seeks_back(&[0, 1, 3]), [(1, 4)]);
        assert_eq!(opened(&control).0, Positions::from_iter([(0, 3), (2, 5)]));
    }

    #[test]
    fn each_of_two_feeds_takes_a_seek_once() {
        let control = Control::default();
        let (mut one, mut other) = (opened(&control), opened(&control));
        control.seek(0, 3);
        for (positions, as_of) in [&mut one, &mut other] {
            assert!(control.state() != *as_of);
            assert_eq!(control.stale_since(*as_of), [0]);
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
        assert_eq!(control.stale_since(before), [1]);
        assert!(control.stale_since(after).is_empty(), "a pause makes nothing stale");
    }

    #[test]
    fn what_was_fetched_before_a_revocation_is_stale_and_a_seek_before_it_is_kept() {
        let control = Control::default();
        let (_, before) = opened(&control);
        control.seek(0, 9);
        control.withhold(0, 5);
        let after = control.revoke([0]);
        assert_eq!(control.stale_since(before), [0, 0]);
        assert!(control.stale_since(after).is_empty(), "what is fetched from now on is ours");
        assert!(!control.is_lost_since(before, 0), "what is in hand may be finished");
        control.lose([0]);
        assert!(control.is_lost_since(after, 0) && !control.is_lost_since(after, 1));
        assert!(!control.is_lost_since(control.state(), 0));
        assert!(control.withheld().is_empty());
        assert_eq!(opened(&control).0, Positions::from_iter([(0, 9)]));
    }

    #[test]
    fn what_a_group_takes_from_one_reader_is_nothing_to_another() {
        let source = Control::default();
        let (one, other) = (source.for_one_reader(), source.for_one_reader());
        let hand = other.hand();
        hand.begins_at(other.state());
        let before = other.state();
        one.withhold(0, 5);
        let state = one.revoke([0]);
        one.lose([0]);
        one.withhold(0, 5);
        assert!(one.settled(state, Instant::now(), || ()) && !other.settled(state, Instant::now(), || ()));
        assert_eq!((one.stale_since(before), other.stale_since(before)), (vec![0], vec![]));
        assert!(one.is_lost_since(before, 0) && !other.is_lost_since(before, 0));
        assert_eq!((one.withheld(), other.withheld()), (vec![(0, 5)], vec![]));
        source.seek(1, 3);
        source.pause();
        assert!(
            [&one, &other].iter().all(|reader| reader.is_paused() && reader.stale_since(state).contains(&1))
        );
    }

    #[test]
    fn a_revocation_waits_for_what_began_before_it_and_for_nothing_else() {
        let control = Control::default();
        let (idle, busy) = (control.hand(), control.hand());
        busy.begins_at(control.state());
        let state = control.revoke([0]);
        assert!(!control.settled(state, Instant::now(), || ()));
        busy.begins_at(state);
        assert!(control.settled(state, Instant::now(), || ()));
        busy.begins_at(0);
        drop(busy);
        assert!(control.settled(state, Instant::now(), || ()), "a worker that is gone has nothing in hand");
        idle.is_empty_now();
        assert!(control.settled(state, Instant::now(), || ()));
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
