//! Sources from what is in memory: lists, paced or not, and timers.
use crate::AsyncIterable;
use futures::{FutureExt, Stream, StreamExt, stream};
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// A source that gives what `items` holds, and ends.
///
/// ```
/// use slipstream_core::iter;
/// use std::time::Duration;
/// let at_once = iter(["🌞", "⛅", "🌧"]);
/// let paced = iter(1..=3).every(Duration::from_millis(10)).after(Duration::from_millis(5));
/// ```
pub fn iter<L>(items: L) -> Iter<L>
where
    L: IntoIterator<Item: Clone + Send + Sync + 'static, IntoIter: Send + 'static> + Clone + 'static,
{
    Iter { items, every: None, after: Duration::ZERO }
}

/// What [`iter`] makes.
#[derive(Debug, Clone)]
#[must_use = "a source does nothing until a flow opens it"]
pub struct Iter<L> {
    items: L,
    every: Option<Duration>,
    after: Duration,
}

impl<L> Iter<L> {
    /// One item each `period`, the first at once. A zero period does not pace. A handler that is
    /// slower sets the pace itself: items it was late for do not come in a burst.
    pub fn every(mut self, period: Duration) -> Self {
        self.every = Some(period).filter(|period| !period.is_zero());
        self
    }
    /// The first item only after `delay`.
    pub fn after(mut self, delay: Duration) -> Self {
        self.after = delay;
        self
    }
}

impl<L> AsyncIterable for Iter<L>
where
    L: IntoIterator<Item: Clone + Send + Sync + 'static, IntoIter: Send + 'static> + Clone + 'static,
{
    type Item = L::Item;
    fn open(&self) -> impl Stream<Item = L::Item> + Send + 'static {
        let items = stream::iter(self.items.clone());
        match self.every {
            None => wait(self.after).chain(items).left_stream(),
            Some(period) => ticks(period, self.after).zip(items).map(|(_, item)| item).right_stream(),
        }
    }
}

/// A timer: a source that gives 0, 1, 2, … one each `period`, the first after one `period`, and
/// never ends. A handler that is slower than the timer delays it; ticks do not pile up. It cannot be
/// read again: a tick that was in hand at a crash is lost.
///
/// # Panics
/// Never; a zero `period` is taken for the shortest the timer can do, one millisecond.
pub fn interval(period: Duration) -> Interval {
    Interval { period: period.max(Duration::from_millis(1)) }
}

/// What [`interval`] makes.
#[derive(Debug, Clone)]
#[must_use = "a source does nothing until a flow opens it"]
pub struct Interval {
    period: Duration,
}

impl AsyncIterable for Interval {
    type Item = u64;
    fn open(&self) -> impl Stream<Item = u64> + Send + 'static {
        ticks(self.period, self.period)
    }
}

/// Gives nothing, and ends after `delay`.
fn wait<T>(delay: Duration) -> impl Stream<Item = T> + Send + 'static {
    let sleep = (!delay.is_zero()).then(|| tokio::time::sleep(delay));
    stream::iter(sleep).filter_map(|sleep| sleep.map(|()| None))
}

/// A longer time is taken for this one, since the clock ends somewhere.
const NEVER: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// Counts from 0, the first after `delay`, then one each `period`.
fn ticks(period: Duration, delay: Duration) -> impl Stream<Item = u64> + Send + 'static {
    let (period, delay) = (period.min(NEVER), delay.min(NEVER));
    stream::unfold((None, 0), move |(timer, count)| async move {
        let mut timer = timer.unwrap_or_else(|| {
            let mut timer = interval_at(Instant::now() + delay, period);
            timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
            timer
        });
        timer.tick().await;
        Some((count, (Some(timer), count + 1)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_paced_list_gives_an_item_each_period_and_ends() {
        let start = Instant::now();
        let paced = iter([1, 2, 3]).every(Duration::from_secs(10)).after(Duration::from_secs(5));
        let seen: Vec<_> = paced.open().map(|item| (item, start.elapsed().as_secs())).collect().await;
        assert_eq!(seen, [(1, 5), (2, 15), (3, 25)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_delay_alone_holds_back_the_first_item_only() {
        let start = Instant::now();
        let late = iter([1, 2]).after(Duration::from_secs(5));
        let seen: Vec<_> = late.open().map(|item| (item, start.elapsed().as_secs())).collect().await;
        assert_eq!(seen, [(1, 5), (2, 5)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_counts_and_does_not_catch_up() {
        let start = Instant::now();
        let mut ticks = std::pin::pin!(interval(Duration::from_secs(1)).open());
        assert_eq!((ticks.next().await, start.elapsed().as_secs()), (Some(0), 1));
        tokio::time::sleep(Duration::from_millis(2500)).await;
        assert_eq!((ticks.next().await, start.elapsed().as_millis()), (Some(1), 3500));
        assert_eq!((ticks.next().await, start.elapsed().as_millis()), (Some(2), 4500));
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_of_the_longest_period_waits_for_ever() {
        let mut ticks = std::pin::pin!(interval(Duration::MAX).open());
        let decade = Duration::from_secs(10 * 365 * 24 * 3600);
        tokio::time::timeout(decade, ticks.next()).await.unwrap_err();
    }

    #[tokio::test]
    async fn it_can_be_opened_again() {
        let list = iter(vec![1, 2]);
        for _ in 0..2 {
            assert_eq!(list.open().collect::<Vec<_>>().await, [1, 2]);
        }
    }
}
