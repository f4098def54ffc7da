//! Several messages in hand over one state: partitions side by side, `update` and `lock`.
use crate::Log;
use futures::{Stream, StreamExt, stream};
use slipstream::{
    AsyncIterable, Cache, Channel, Position, Positions, Result, Seekable, Seeks, Store, flow, handle,
};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::task::yield_now;

/// So many partitions, handled so many at a time.
#[derive(Debug, Clone)]
struct Many {
    partitions: i32,
    length: i64,
    concurrency: usize,
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
        let partitions = self.partitions;
        let all = (0..self.length).flat_map(move |at| (0..partitions).map(move |partition| (partition, at)));
        let left = all.filter(move |(partition, at)| *at >= start.next(*partition).unwrap_or(0));
        stream::iter(left.map(|(partition, at)| (Position::new(partition, at), (partition, at))))
    }
    fn concurrency(&self) -> usize {
        self.concurrency
    }
}

struct App {
    many: Many,
    count: Cache<(), u64>,
    seen: Cache<(i32, i64), u64>,
    gifts: Channel<u64>,
    given: Cache<(), u64>,
    in_hand: Mutex<BTreeMap<i32, i64>>,
    most: AtomicUsize,
    runs: AtomicUsize,
    log: Log,
}

fn app(store: &Store, partitions: i32, length: i64, concurrency: usize) -> Arc<App> {
    Arc::new(App {
        many: Many { partitions, length, concurrency },
        count: store.cache("count").unwrap(),
        seen: store.cache("seen").unwrap(),
        gifts: Channel::new(),
        given: store.cache("given").unwrap(),
        in_hand: Mutex::default(),
        most: AtomicUsize::new(0),
        runs: AtomicUsize::new(0),
        log: Log::default(),
    })
}

#[handle(app.many)]
async fn takes_its_time(app: &App, (partition, at): (i32, i64)) {
    let most = {
        let mut in_hand = app.in_hand.lock().unwrap();
        assert_eq!(in_hand.insert(partition, at), None, "two of one partition");
        in_hand.len()
    };
    app.most.fetch_max(most, Ordering::Relaxed);
    // The later partitions are the faster ones, and the first messages the slower.
    tokio::time::sleep(Duration::from_micros((8 - partition as u64) * (10 - at as u64) * 100)).await;
    assert_eq!(app.in_hand.lock().unwrap().remove(&partition), Some(at));
    app.log.add(format!("{partition}/{at}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_are_handled_side_by_side_and_each_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let app = app(&store, 4, 10, 4);
    flow![takes_its_time].store(&store).run(Arc::clone(&app)).await.unwrap();
    assert_eq!(app.most.load(Ordering::Relaxed), 4);
    let lines = app.log.take();
    assert_ne!(lines.get(..4).unwrap(), ["0/0", "1/0", "2/0", "3/0"], "in any order");
    for partition in 0..4 {
        let own: Vec<_> = lines.iter().filter(|line| line.starts_with(&format!("{partition}/"))).collect();
        let expected: Vec<_> = (0..10).map(|at| format!("{partition}/{at}")).collect();
        assert_eq!(own, expected.iter().collect::<Vec<_>>());
    }
    // Each position is its own partition's: nothing comes again.
    flow![takes_its_time].store(&store).run(Arc::clone(&app)).await.unwrap();
    assert!(app.log.take().is_empty());
}

#[handle(app.many)]
async fn increments(app: &App, (partition, at): (i32, i64)) -> Result<()> {
    app.runs.fetch_add(1, Ordering::Relaxed);
    let count = app.count.update(&(), |count| count.unwrap_or(0) + 1)?;
    // A handler reads back its own write, whatever others do.
    yield_now().await;
    assert_eq!(app.count.get(&())?, Some(count));
    Ok(app.seen.insert(&(partition, at), count)?)
}
#[handle(app.many, sink = app.gifts)]
fn gives(app: &App, _: (i32, i64)) -> u64 {
    app.log.add("sink of a run");
    1
}
#[handle(app.gifts)]
fn adds_up(app: &App, gift: u64) -> Result<()> {
    app.given.update(&(), |sum| sum.unwrap_or(0) + gift).map(drop)?;
    Ok(())
}

/// How many increments: a few thousand, or as many as the environment says.
fn increments_of_a_run() -> u64 {
    std::env::var("SLIPSTREAM_INCREMENTS").map_or(4_000, |count| count.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_increment_is_lost_whether_one_or_eight_messages_are_in_hand() {
    let increments = increments_of_a_run();
    for concurrency in [1, 8] {
        let store = Store::in_memory().unwrap();
        let app = app(&store, 8, (increments / 8) as i64, concurrency);
        flow![increments, gives, adds_up].store(&store).run(Arc::clone(&app)).await.unwrap();
        assert_eq!(app.count.get(&()).unwrap(), Some(increments));
        assert_eq!(app.given.get(&()).unwrap(), Some(increments));
        // Each message has its own number: the counts are those of one message after the other.
        let mut seen: Vec<_> = app.seen.values().map(|count| count.unwrap()).collect();
        seen.sort_unstable();
        assert_eq!(seen, (1..=increments).collect::<Vec<_>>());
        let runs = app.runs.load(Ordering::Relaxed) as u64;
        assert_eq!(runs == increments, concurrency == 1, "{runs} runs");
        // Its own sinks run again too.
        assert_eq!(app.log.take().len() as u64, runs);
    }
}

#[handle(app.many)]
async fn locks(app: &App, (partition, at): (i32, i64)) -> Result<()> {
    app.runs.fetch_add(1, Ordering::Relaxed);
    let _lock = app.count.lock(&()).await?;
    let count = app.count.get(&())?.unwrap_or(0);
    yield_now().await;
    app.count.insert(&(), count + 1)?;
    Ok(app.seen.insert(&(partition, at), count)?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_is_held_until_what_was_written_under_it_is_visible() {
    let store = Store::in_memory().unwrap();
    let app = app(&store, 8, 200, 8);
    flow![locks].store(&store).run(Arc::clone(&app)).await.unwrap();
    assert_eq!(app.count.get(&()).unwrap(), Some(1600));
    // Nobody has to run again.
    assert_eq!(app.runs.load(Ordering::Relaxed), 1600);
}

#[handle(app.many)]
async fn locks_crosswise(app: &App, (partition, at): (i32, i64)) -> Result<()> {
    let keys = if partition % 2 == 0 { [(0, 0), (1, 0)] } else { [(1, 0), (0, 0)] };
    let _locks = app.seen.lock_all(&keys).await?;
    let refused = app.seen.lock(&(2, 0)).await.err().map(|error| error.to_string());
    assert!(refused.is_some_and(|text| text.contains("lock_all")), "a second lock call is an error");
    for key in &keys {
        let count = app.seen.get(key)?.unwrap_or(0);
        yield_now().await;
        app.seen.insert(key, count + 1)?;
    }
    app.log.add(at);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_of_several_keys_never_wait_for_each_other_in_a_circle() {
    let store = Store::in_memory().unwrap();
    let app = app(&store, 8, 100, 8);
    let flow = flow![locks_crosswise].store(&store).run(Arc::clone(&app));
    tokio::time::timeout(Duration::from_secs(60), flow).await.unwrap().unwrap();
    assert_eq!((app.seen.get(&(0, 0)).unwrap(), app.seen.get(&(1, 0)).unwrap()), (Some(800), Some(800)));
}

fn doubled(items: slipstream::Items<(i32, i64)>) -> impl Stream<Item = (i32, i64)> {
    items.flat_map(|item| stream::iter([item, item]))
}
#[handle(app.many, pipe = doubled)]
async fn increments_piped(app: &App, _: (i32, i64)) -> Result<()> {
    app.runs.fetch_add(1, Ordering::Relaxed);
    app.count.update(&(), |count| count.unwrap_or(0) + 1)?;
    yield_now().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_pipe_gave_is_handled_again_and_the_pipe_is_not_asked_again() {
    let store = Store::in_memory().unwrap();
    let app = app(&store, 8, 200, 8);
    flow![increments_piped].store(&store).run(Arc::clone(&app)).await.unwrap();
    assert_eq!(app.count.get(&()).unwrap(), Some(3200));
    assert!(app.runs.load(Ordering::Relaxed) > 3200, "nothing ran again");
}

fn and_one_more(items: slipstream::Items<(i32, i64)>) -> impl Stream<Item = (i32, i64)> {
    items.chain(stream::iter([(-1, 0)]))
}
#[handle(app.many, pipe = and_one_more)]
async fn conflicts_at_the_end(app: &App, at: (i32, i64)) -> Result<()> {
    app.seen.update(&at, |count| count.unwrap_or(0) + 1)?;
    if at == (-1, 0) && app.runs.fetch_add(1, Ordering::Relaxed) == 0 {
        let seen = app.seen.clone();
        tokio::spawn(async move { seen.insert(&at, 100) }).await??;
    }
    Ok(())
}

#[tokio::test]
async fn what_comes_at_the_end_runs_again_without_the_message_before_it() {
    let store = Store::in_memory().unwrap();
    let app = app(&store, 1, 2, 1);
    flow![conflicts_at_the_end].store(&store).run(Arc::clone(&app)).await.unwrap();
    let rows: Vec<_> = app.seen.iter().map(Result::unwrap).collect();
    assert_eq!(rows, [((-1, 0), 101), ((0, 0), 1), ((0, 1), 1)]);
}
