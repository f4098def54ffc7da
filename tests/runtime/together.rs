//! All at once: handlers that fail and are retried or skipped, pipes, channels, a cache's changes, conflicts with
//! writes from outside, locks that are given up, partitions side by side, pauses, stops and dropped flows.
//! Whatever happens, each part of each message is in the state once.
use crate::Log;
use futures::{Stream, StreamExt, stream};
use slipstream::{
    AsyncIterable, Cache, Channel, Control, Emitter, Items, OnError, Position, Positions, Result, Seekable,
    Seeks, Store, flow, handle,
};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    task::{JoinHandle, yield_now},
    time::{sleep, timeout},
};

const PARTITIONS: i32 = 5;
const LENGTH: i64 = 60;

#[derive(Clone)]
struct Many {
    workers: usize,
    control: Control,
}

impl AsyncIterable for Many {
    type Item = (i32, i64);
    fn open(&self) -> impl Stream<Item = (i32, i64)> + Send + 'static {
        self.open_at(Positions::default()).map(|(_, item)| item)
    }
    fn identity(&self) -> Option<String> {
        Some("many".to_owned())
    }
    fn seeks(&self) -> Option<Seeks<(i32, i64)>> {
        Some(Seeks::new(self))
    }
}

impl Seekable for Many {
    fn open_at(&self, start: Positions) -> impl Stream<Item = (Position, (i32, i64))> + Send + 'static {
        let all = (0..LENGTH).flat_map(|at| (0..PARTITIONS).map(move |partition| (partition, at)));
        let left = all.filter(move |(partition, at)| *at >= start.next(*partition).unwrap_or(0));
        stream::iter(left).enumerate().then(|(nth, (partition, at))| async move {
            if nth % 37 == 0 {
                yield_now().await;
            }
            (Position::new(partition, at), (partition, at))
        })
    }
    fn control(&self) -> Option<&Control> {
        Some(&self.control)
    }
    fn concurrency(&self) -> usize {
        self.workers
    }
}

/// Partition, number, and which gift of it.
type Gift = (i32, i64, i64);

struct App {
    many: Many,
    gifts: Channel<Gift>,
    counts: Channel<&'static str>,
    /// What was counted by messages, and what from outside.
    totals: Cache<String, (u64, u64)>,
    seen: Cache<Gift, u64>,
    locks: Cache<i64, ()>,
    random: AtomicU64,
    log: Log,
}

impl App {
    fn chance(&self, one_in: u64) -> bool {
        let mut drawn = self.random.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        drawn = (drawn ^ (drawn >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (drawn ^ (drawn >> 29)).is_multiple_of(one_in)
    }
    fn count(&self, what: &str) -> Result<()> {
        self.totals.update(what, |totals| {
            let (inside, outside) = totals.unwrap_or_default();
            (inside + 1, outside)
        })?;
        Ok(())
    }
    async fn may_fail(&self, one_in: u64) -> Result<()> {
        if self.chance(2) {
            yield_now().await;
        }
        assert!(!self.chance(2 * one_in), "by chance");
        if self.chance(2 * one_in) { Err("by chance".into()) } else { Ok(()) }
    }
}

// It fails a hundred times by no chance.
const AGAIN: OnError = OnError::retry(100, Duration::ZERO).then_skip();

#[handle(app.many, sink = app.gifts, on_error = AGAIN)]
async fn gives(app: &App, (partition, n): (i32, i64), out: &mut Emitter<Gift>) -> Result<()> {
    app.may_fail(9).await?;
    if app.chance(4) {
        let _may_be_given_up = timeout(Duration::from_micros(50), app.locks.lock(&(n % 3))).await;
    }
    app.count("message")?;
    for nth in 0..n % 3 {
        out.emit((partition, n, nth));
        app.may_fail(19).await?;
    }
    app.may_fail(9).await
}
fn twice(items: Items<(i32, i64)>) -> impl Stream<Item = (i32, i64)> {
    items.flat_map(|(partition, n)| stream::iter([(partition, n), (partition, n + 1000)]))
}
#[handle(app.many, pipe = twice, on_error = OnError::skip())]
async fn skips_behind_a_pipe(app: &App, (partition, n): (i32, i64)) -> Result<()> {
    app.count("piped")?;
    app.counts.send("count of piped").await?;
    if app.chance(3) {
        yield_now().await;
    }
    // The second call of a message is refused.
    let _lock = app.locks.lock(&(100 + n % 5 + i64::from(partition))).await;
    if n % 11 == 3 { Err("skipped".into()) } else { Ok(()) }
}
#[handle(app.many, sink = { let log = app.log.clone(); move |n: &i64| log.add(n) })]
fn is_beside(app: &App, (_, n): (i32, i64)) -> Result<i64> {
    app.count("beside")?;
    Ok(n)
}
#[handle(app.gifts, sink = app.seen, on_error = AGAIN)]
async fn keeps_a_gift(app: &App, gift: Gift) -> Result<(Gift, u64)> {
    app.may_fail(9).await?;
    app.count("gift")?;
    app.counts.send("count of gifts").await?;
    app.may_fail(9).await?;
    Ok((gift, 1))
}
#[handle(app.gifts, on_error = OnError::skip())]
fn skips_a_gift(app: &App, (_, n, nth): Gift) -> Result<()> {
    app.count("gift not skipped")?;
    app.seen.insert(&(-1, n, nth), 7)?;
    assert!((n + nth) % 7 != 5, "skipped");
    Ok(())
}
#[handle(app.seen, on_error = AGAIN)]
async fn sees_a_change(app: &App, ((partition, ..), value): (Gift, Option<u64>)) -> Result<()> {
    app.may_fail(9).await?;
    let of = if value == Some(1) && partition >= 0 { "change" } else { "change of what is not skipped" };
    app.count(of)
}
#[handle(app.counts, pipe = |items| items.map(str::to_owned), on_error = AGAIN)]
async fn counts(app: &App, what: String) -> Result<()> {
    app.may_fail(29).await?;
    app.count(&what)
}

/// What each message, however often it was begun, has to leave behind.
fn expected() -> BTreeMap<String, u64> {
    let mut counted = BTreeMap::<String, u64>::new();
    let mut count = |what: &[&str]| {
        what.iter().for_each(|what| *counted.entry((*what).to_owned()).or_default() += 1);
    };
    for n in (0..LENGTH).flat_map(|n| (0..PARTITIONS).map(move |_| n)) {
        count(&["message", "beside"]);
        for _ in [n, n + 1000].iter().filter(|n| **n % 11 != 3) {
            count(&["piped", "count of piped"]);
        }
        for nth in 0..n % 3 {
            count(&["gift", "change", "count of gifts"]);
            if (n + nth) % 7 != 5 {
                count(&["gift not skipped", "change of what is not skipped"]);
            }
        }
    }
    counted
}

/// Writes to what the messages change, so that they run again.
fn disturb(totals: Cache<String, (u64, u64)>) -> JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            for what in ["message", "gift", "change"] {
                // Refused while a flow is dropped.
                let _ = totals.update(what, |totals| {
                    let (inside, outside) = totals.unwrap_or_default();
                    (inside, outside + 1)
                });
            }
            sleep(Duration::from_micros(300)).await;
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn whatever_fails_and_comes_between_each_part_of_a_message_is_there_once() -> Result<()> {
    for (round, workers) in (1..).zip([1, 2, 5]) {
        let store = Store::in_memory()?;
        let app = Arc::new(App {
            many: Many { workers, control: Control::default() },
            gifts: Channel::new(),
            counts: Channel::new(),
            totals: store.cache("totals")?,
            seen: store.cache("seen")?,
            locks: store.cache("locks")?,
            random: AtomicU64::new(round * 7919),
            log: Log::default(),
        });
        let disturbing = disturb(app.totals.clone());
        let began = std::time::Instant::now();
        // One flow after the other, each stopped or dropped at some time, until one comes to the end.
        'flows: loop {
            let flow = flow![
                gives,
                skips_behind_a_pipe,
                is_beside,
                keeps_a_gift,
                skips_a_gift,
                sees_a_change,
                counts
            ];
            let flow = flow.store(&store).commit_every(Duration::from_millis(2)).epoch_bytes(4000);
            let handle = flow.handle();
            let mut run = tokio::spawn(flow.run(Arc::clone(&app)));
            loop {
                if let Ok(ended) = timeout(Duration::from_millis(15), &mut run).await {
                    ended??;
                    break 'flows;
                }
                assert!(began.elapsed() < Duration::from_secs(60), "it hangs");
                match (app.chance(6), app.chance(6), app.chance(3)) {
                    (true, ..) => {
                        handle.stop();
                        run.await??;
                        continue 'flows;
                    }
                    (_, true, _) => {
                        run.abort();
                        let _cancelled = run.await;
                        continue 'flows;
                    }
                    (.., true) => {
                        app.many.control.pause();
                        let _may_have_ended = handle.commit_now().await;
                        app.many.control.resume();
                    }
                    _ => {}
                }
            }
        }
        disturbing.abort();
        let _cancelled = disturbing.await;
        let rows = app.totals.iter().map(|row| row.map(|(what, (inside, _))| (what, inside)));
        assert_eq!(rows.collect::<Result<BTreeMap<_, _>, _>>()?, expected(), "round {round}");
    }
    Ok(())
}
