//! State as a flow keeps it, committed each 100 ms, against programs written by hand: what a message
//! costs, and how long one waits because of a commit.
//!
//! ```text
//! nearby join       updates ──▶ rows by time ◀──as of── look-ups       two sources, in one thread or two
//! counter           messages ──▶ read, add one, write                  one source, 100,000 keys
//! waiting           a busy source that writes; the time from message to message
//! ```
//!
//! The twins use RocksDB with the same options, the same bytes, and as many threads that handle:
//!
//! - *puts*: a put for each message;
//! - *batches*: a write batch of 1,000, whose rows are not seen before it is written, so it is not right;
//! - *map*: rows not yet written in a `BTreeMap`, 1,000 of them a batch. What the map answers is taken to
//!   be the latest, which is so only since the updates come in order;
//! - *map and below*: the same, but a look-up by time asks both, as a cache has to, which knows no order.
//!
//! All sync the disk once in 100 ms, and at the end. The flow keeps its positions too; the twins have none.
//!
//! `cargo bench --bench state -- join`; see `twin` for the arguments.
#![allow(clippy::print_stdout, reason = "a benchmark's result is what it prints")]
mod bare;
mod twin;

use bare::{Bare, Way};
use futures::{Stream, StreamExt, stream};
use serde::{Deserialize, Serialize};
use slipstream::{
    AsyncIterable, Cache, Flow, FlowHandle, Position, Positions, Seekable, Seeks, Store, Timestamp, source,
};
use std::{
    error::Error,
    hint::black_box,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use twin::{
    Twins,
    clock::{Took, took},
};

type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

const COMMIT_EVERY: Duration = Duration::from_millis(100);

/// The numbers below a count, as a source with positions.
#[derive(Debug, Clone)]
struct Numbers(&'static str, u64);

impl AsyncIterable for Numbers {
    type Item = u64;
    fn open(&self) -> impl Stream<Item = u64> + Send + 'static {
        self.open_at(Positions::default()).map(|(_, n)| n)
    }
    fn identity(&self) -> Option<String> {
        Some(self.0.to_owned())
    }
    fn seeks(&self) -> Option<Seeks<u64>> {
        Some(Seeks::new(self))
    }
}

impl Seekable for Numbers {
    fn open_at(&self, _: Positions) -> impl Stream<Item = (Position, u64)> + Send + 'static {
        stream::iter((0..self.1).map(|n| (Position::new(0, n as i64), n)))
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Weather {
    celsius: f64,
    wind: f64,
    station: u32,
}

/// Minutes apart.
const STEP: i64 = 60_000_000;

fn update(n: u64) -> (Timestamp, Weather) {
    let weather = Weather { celsius: n as f64 / 10.0, wind: n as f64, station: n as u32 };
    (Timestamp::from_micros(n as i64 * STEP), weather)
}

/// How far the updates are: what happens asks for a time near to it, as it does when both come live.
#[derive(Debug, Default)]
struct Now(AtomicU64);

impl Now {
    fn update(&self, n: u64) -> (Timestamp, Weather) {
        self.0.store(n, Ordering::Relaxed);
        update(n)
    }
    /// Between two of the last updates.
    fn asked(&self, n: u64) -> Timestamp {
        let update = self.0.load(Ordering::Relaxed).saturating_sub(n % 16);
        Timestamp::from_micros(update as i64 * STEP + STEP / 2)
    }
}

const KEYS: u64 = 100_000;

/// Any of the keys (splitmix64).
fn key(n: u64) -> u64 {
    let n = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (n ^ (n >> 31)) % KEYS
}

/// The nearby join as a flow.
fn join(store: &Store, count: u64) -> Result<Flow<()>> {
    let weather = store.cache::<Timestamp, Weather>("weather")?;
    let looked_up = weather.clone();
    let now = Arc::new(Now::default());
    let moves = Arc::clone(&now);
    let updates = source(&Numbers("updates", count)).handle(move |n| Some(moves.update(n))).sink(&weather);
    let look_ups = source(&Numbers("look-ups", count)).handle(move |n| {
        let held = looked_up.as_of(&now.asked(n))?;
        black_box(held.map(|(_, weather)| weather.celsius));
        Ok::<_, slipstream::StoreError>(None::<()>)
    });
    Ok(Flow::new().with(updates).with(look_ups).store(store).commit_every(COMMIT_EVERY))
}

/// The counter per key as a flow.
fn count_by_key(store: &Store, count: u64) -> Result<Flow<()>> {
    let counts = store.cache::<u64, u64>("counts")?;
    let counted = counts.clone();
    let messages = source(&Numbers("messages", count)).handle(move |n| {
        let key = key(n);
        Ok::<_, slipstream::StoreError>((key, counted.get(&key)?.unwrap_or(0) + 1))
    });
    Ok(Flow::new().with(messages.sink(&counts)).store(store).commit_every(COMMIT_EVERY))
}

/// Runs a flow over a new store on disk; opening it is not measured.
fn ours(runtime: &Runtime, flow: impl FnOnce(&Store) -> Result<Flow<()>>) -> Result<Took> {
    let directory = TempDir::new()?;
    let store = Store::open(directory.path())?;
    let flow = flow(&store)?;
    took(|| runtime.block_on(flow.run(())))
}

/// In one thread, by turns, or in two at once.
fn both(at_once: bool, count: u64, mut one: impl FnMut(u64), mut other: impl FnMut(u64) + Send) {
    if at_once {
        thread::scope(|scope| {
            scope.spawn(|| (0..count).for_each(other));
            (0..count).for_each(one);
        });
        return;
    }
    for n in 0..count {
        one(n);
        other(n);
    }
}

fn join_by_hand(way: Way, at_once: bool, count: u64) -> Result<Took> {
    let directory = TempDir::new()?;
    let bare = Bare::open(directory.path(), way, COMMIT_EVERY)?;
    let (mut buffers, mut reader, now) = (Default::default(), bare.reader(), Now::default());
    took(|| {
        both(
            at_once,
            count,
            |n| {
                let (time, weather) = now.update(n);
                bare.insert(&time, &weather, &mut buffers).expect("writes");
            },
            |n| {
                let held: Option<(Timestamp, Weather)> = reader.as_of(&now.asked(n)).expect("reads");
                black_box(held.map(|(_, weather)| weather.celsius));
            },
        );
        bare.finish()
    })
}

fn count_by_hand(way: Way, count: u64) -> Result<Took> {
    let directory = TempDir::new()?;
    let bare = Bare::open(directory.path(), way, COMMIT_EVERY)?;
    let mut buffers = Default::default();
    took(|| {
        for n in 0..count {
            let key = key(n);
            let count: Option<u64> = bare.get(&key, &mut buffers)?;
            bare.insert(&key, &(count.unwrap_or(0) + 1), &mut buffers)?;
        }
        bare.finish()
    })
}

fn compare(twins: &mut Twins) -> Result<()> {
    let count = twins.size(1_000_000, 100_000, 2_000);
    for (workers, at_once, how) in [(1, false, "in one thread"), (2, true, "in two threads")] {
        let runtime = Builder::new_multi_thread().worker_threads(workers).enable_time().build()?;
        let by_hand = |way| move || join_by_hand(way, at_once, count);
        twins.several(
            &format!("nearby join, {how}"),
            2 * count,
            &mut || ours(&runtime, |store| join(store, count)),
            &mut [
                ("puts", &mut by_hand(Way::Puts)),
                ("batches", &mut by_hand(Way::Batches)),
                ("map", &mut by_hand(Way::Map)),
                ("map and below", &mut by_hand(Way::MapAndBelow)),
            ],
        )?;
    }
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_time().build()?;
    let by_hand = |way| move || count_by_hand(way, count);
    twins.several(
        "counter per key",
        count,
        &mut || ours(&runtime, |store| count_by_key(store, count)),
        &mut [
            ("puts", &mut by_hand(Way::Puts)),
            ("batches", &mut by_hand(Way::Batches)),
            ("map", &mut by_hand(Way::Map)),
        ],
    )
}

/// When each message of a source was handled, and when commits ran.
struct Recorded {
    messages: Vec<Instant>,
    commits: Vec<(Instant, Instant)>,
}

/// A busy source with a cheap handler that writes; where `commits`, they are made one each interval.
fn record(count: u64, sync: bool, commits: bool) -> Result<Recorded> {
    // A thread for the source, one for the committer; those that write have their own.
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build()?;
    let directory = TempDir::new()?;
    let store = Store::open(directory.path())?;
    let cache: Cache<u64, u64> = store.cache("counts")?;
    let messages = Arc::new(Mutex::new(Vec::with_capacity(count as usize)));
    let recording = Arc::clone(&messages);
    let busy = source(&Numbers("messages", count)).handle(move |n| {
        recording.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
        Some((key(n), n))
    });
    // By hand, so that it is known when they run.
    let flow = Flow::new().with(busy.sink(&cache)).commit_every(Duration::from_secs(3600));
    let flow = flow.epoch_bytes(usize::MAX).sync(sync);
    let handle = flow.handle();
    let commits = runtime.block_on(async {
        let running = tokio::spawn(flow.run(()));
        let mut made = Vec::new();
        while commits && let Some(commit) = commit_after_a_while(&handle).await {
            made.push(commit);
        }
        running.await??;
        Ok::<_, Box<dyn Error + Send + Sync>>(made)
    })?;
    let messages = std::mem::take(&mut *messages.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Recorded { messages, commits })
}

/// When it began and ended; `None` when the flow has ended.
async fn commit_after_a_while(handle: &FlowHandle) -> Option<(Instant, Instant)> {
    tokio::time::sleep(COMMIT_EVERY).await;
    let began = Instant::now();
    handle.commit_now().await.ok()?;
    Some((began, Instant::now()))
}

impl Recorded {
    /// From message to message, in nanoseconds, with where the later one began.
    fn gaps(&self) -> impl Iterator<Item = (Instant, u64)> {
        let pairs = self.messages.iter().zip(self.messages.iter().skip(1));
        pairs.map(|(one, next)| (*one, (*next - *one).as_nanos() as u64))
    }
    /// Those during a commit, or those during none; and the longest of each commit.
    fn split(&self) -> (Vec<u64>, Vec<u64>, Vec<u64>) {
        let (mut during, mut outside) = (Vec::new(), Vec::new());
        let mut longest = vec![0; self.commits.len()];
        let mut commits = self.commits.iter().zip(&mut longest).peekable();
        for (began, nanos) in self.gaps() {
            let ended = began + Duration::from_nanos(nanos);
            while commits.next_if(|((_, done), _)| *done < began).is_some() {}
            match commits.peek_mut() {
                Some(((start, _), longest)) if *start <= ended => {
                    during.push(nanos);
                    **longest = nanos.max(**longest);
                }
                _ => outside.push(nanos),
            }
        }
        for nanos in [&mut during, &mut outside, &mut longest] {
            nanos.sort_unstable();
        }
        (during, outside, longest)
    }
}

fn waiting(twins: &Twins) -> Result<()> {
    if !twins.wants("waiting") {
        return Ok(());
    }
    let count = twins.size(3_000_000, 500_000, 2_000);
    let mut lines = Vec::new();
    for sync in [true, false] {
        let name = if sync { "synced" } else { "not synced" };
        let (during, outside, longest) = record(count, sync, true)?.split();
        lines.push(line(&format!("during {} commits, {name}", longest.len()), &during));
        lines.push(line("between them", &outside));
        lines.push(line("the longest of each commit", &longest));
    }
    let (_, outside, _) = record(count, false, false)?.split();
    lines.push(line("in a flow that commits at its end alone", &outside));
    if twins.only_tests() {
        println!("waiting: runs");
        return Ok(());
    }
    println!("\nFrom message to message, in microseconds, of a busy source whose handler writes:\n");
    println!("| when | messages | p50 | p99 | p99.9 | p99.99 | longest |\n|---|---|---|---|---|---|---|");
    lines.iter().for_each(|line| println!("{line}"));
    Ok(())
}

fn line(name: &str, sorted: &[u64]) -> String {
    let last = sorted.len().saturating_sub(1);
    let at = |share: f64| {
        let nanos = sorted.get((last as f64 * share).round() as usize).copied().unwrap_or_default();
        format!("{:.2}", nanos as f64 / 1e3)
    };
    let [half, p99, p999, p9999, longest] = [0.5, 0.99, 0.999, 0.9999, 1.0].map(at);
    format!("| {name} | {} | {half} | {p99} | {p999} | {p9999} | {longest} |", sorted.len())
}

fn main() -> Result<()> {
    let mut twins = Twins::from_args();
    compare(&mut twins)?;
    waiting(&twins)
}
