//! What a handler's failure does under its policy: to its own part of the message, to the others', to what follows.
use crate::{Log, commits::Numbers, ends, typed};
use futures::{Stream, StreamExt, stream};
use slipstream::{
    Cache, Channel, Emitter, Error, Items, Iter, OnError, Result, Store, flow, handle, iter, one, source,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

struct App {
    numbers: Iter<std::ops::RangeInclusive<u32>>,
    log: Log,
    rows: Cache<(String, u32), u32>,
    tries: AtomicU32,
    store: Store,
}

fn app() -> Arc<App> {
    let store = Store::in_memory().unwrap();
    let rows = store.cache("rows").unwrap();
    Arc::new(App { numbers: iter(1..=4), log: Log::default(), rows, tries: AtomicU32::new(0), store })
}

impl App {
    fn log(&self) -> impl Fn(&u32) + Clone + Send + Sync + 'static {
        let log = self.log.clone();
        move |n: &u32| log.add(n)
    }
    fn rows_of(&self, name: &'static str) -> Vec<u32> {
        self.rows.prefix(name).keys().map(|key| key.unwrap().1).collect()
    }
}

const SKIP: OnError = OnError::skip();

#[handle(app.numbers, on_error = SKIP, sink = app.log())]
async fn skips_three(app: &App, n: u32) -> Result<u32> {
    app.rows.insert(&("skips", n), n)?;
    tokio::task::yield_now().await;
    if n == 3 { Err("three".into()) } else { Ok(n) }
}
#[handle(app.numbers, on_error = SKIP)]
fn panics_at_two(app: &App, n: u32) -> Result<()> {
    app.rows.insert(&("panics", n), n)?;
    assert!(n != 2, "two");
    Ok(())
}
#[handle(app.numbers)]
fn sees_all(app: &App, n: u32) -> Result<()> {
    Ok(app.rows.insert(&("all", n), n)?)
}

#[tokio::test]
async fn a_handler_that_skips_loses_its_own_part_and_no_other() {
    let app = app();
    flow![skips_three, sees_all, panics_at_two].run(Arc::clone(&app)).await.unwrap();
    assert_eq!(app.log.take(), ["1", "2", "4"]);
    assert_eq!(app.rows_of("skips"), [1, 2, 4]);
    assert_eq!(app.rows_of("panics"), [1, 3, 4]);
    assert_eq!(app.rows_of("all"), [1, 2, 3, 4]);
}

#[tokio::test]
async fn a_lone_handler_that_skips_goes_on_with_the_next_message() {
    let app = app();
    flow![skips_three].run(Arc::clone(&app)).await.unwrap();
    assert_eq!(app.log.take(), ["1", "2", "4"]);
    flow![panics_at_two].run(Arc::clone(&app)).await.unwrap();
    assert_eq!(app.rows_of("panics"), [1, 3, 4]);
}

fn broken() -> impl Stream<Item = std::result::Result<u32, String>> {
    stream::iter([Ok(1), Err("line 2 is cut off".to_owned()), Ok(3)])
}
#[handle(broken, on_error = SKIP, sink = app.log())]
fn reads_what_it_can(app: &App, n: u32) -> u32 {
    n
}
#[handle(broken)]
fn reads_all(app: &App, line: std::result::Result<u32, String>) {
    app.log.add(format!("{line:?}"));
}

#[tokio::test]
async fn what_cannot_be_taken_for_an_item_is_skipped_too() {
    let app = app();
    flow![reads_what_it_can].run(Arc::clone(&app)).await.unwrap();
    assert_eq!(app.log.take(), ["1", "3"]);
    flow![reads_what_it_can, reads_all].run(Arc::clone(&app)).await.unwrap();
    let all = ["Err(\"line 2 is cut off\")", "Ok(1)", "Ok(3)"];
    assert_eq!(app.log.sorted(), ["1", "3"].into_iter().chain(all).collect::<Vec<_>>());
}

const PATIENCE: OnError = OnError::retry(3, Duration::from_secs(1));

/// Fails at 2, so often.
fn fails(app: &App, n: u32, times: u32) -> Result<()> {
    if n == 2 && app.tries.fetch_add(1, Ordering::Relaxed) < times {
        app.log.add("failed");
        return Err("not yet".into());
    }
    Ok(())
}
#[handle(app.numbers, on_error = PATIENCE, sink = app.log())]
async fn fails_three_times(app: &App, n: u32) -> Result<u32> {
    let before = app.rows.get(&("tries", n))?.unwrap_or(0);
    app.rows.insert(&("tries", n), before + 1)?;
    tokio::task::yield_now().await;
    fails(app, n, 3)?;
    Ok(n)
}
#[handle(app.numbers, on_error = PATIENCE, sink = app.log())]
fn fails_four_times(app: &App, n: u32) -> Result<u32> {
    fails(app, n, 4)?;
    Ok(n)
}
#[handle(app.numbers, on_error = PATIENCE.then_skip(), sink = app.log())]
fn fails_and_skips(app: &App, n: u32) -> Result<u32> {
    fails(app, n, 4)?;
    Ok(n)
}

#[tokio::test(start_paused = true)]
async fn a_retry_begins_at_the_savepoint_and_waits_longer_each_time() {
    let app = app();
    let began = Instant::now();
    flow![sees_all, fails_three_times].run(Arc::clone(&app)).await.unwrap();
    assert_eq!(app.log.take(), ["1", "failed", "failed", "failed", "2", "3", "4"]);
    // What a failed try had written is gone; what the handler before it had written is not.
    assert_eq!(app.rows.get(&("tries", 2)).unwrap(), Some(1));
    assert_eq!(app.rows_of("all"), [1, 2, 3, 4]);
    assert!((7..8).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn when_all_tries_have_failed_the_flow_stops_or_skips() {
    let app = app();
    let error = flow![fails_four_times].run(Arc::clone(&app)).await.unwrap_err();
    assert!(matches!(typed(error), Error::Handler { handler: "fails_four_times", .. }));
    assert_eq!(app.log.take(), ["1", "failed", "failed", "failed", "failed"]);
    app.tries.store(0, Ordering::Relaxed);
    flow![fails_and_skips].run(Arc::clone(&app)).await.unwrap();
    assert_eq!(app.log.take(), ["1", "failed", "failed", "failed", "failed", "3", "4"]);
}

fn never_and_one() -> impl Stream<Item = u32> {
    stream::iter([1])
}
#[handle(never_and_one)]
async fn fails_a_little_later(n: u32) -> Result<()> {
    tokio::time::sleep(Duration::from_millis(100)).await;
    Err(format!("{n} is enough").into())
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_the_wait_for_a_retry_and_the_message_is_not_handled() {
    let app = app();
    let began = Instant::now();
    let error = flow![fails_four_times, fails_a_little_later].run(Arc::clone(&app)).await.unwrap_err();
    assert!(matches!(typed(error), Error::Handler { handler: "fails_a_little_later", .. }));
    assert_eq!(app.log.take(), ["1", "failed"]);
    assert!(began.elapsed() < Duration::from_secs(1));
}

fn twice(items: Items<u32>) -> impl Stream<Item = u32> {
    items.flat_map(|n| stream::iter([n * 10, n * 10 + 1]))
}
#[handle(app.numbers, pipe = twice, on_error = OnError::retry(1, Duration::ZERO).then_skip(), sink = app.log())]
async fn takes_two_of_each(app: &App, n: u32, out: &mut Emitter<u32>) -> Result<()> {
    app.rows.insert(&("piped", n), n)?;
    out.emit(n);
    tokio::task::yield_now().await;
    if n == 21 && app.tries.fetch_add(1, Ordering::Relaxed) == 0 || n == 30 {
        return Err("no".into());
    }
    Ok(())
}

#[tokio::test]
async fn of_several_items_of_a_message_the_one_that_failed_is_retried_or_skipped() {
    let app = app();
    flow![takes_two_of_each, sees_all].run(Arc::clone(&app)).await.unwrap();
    assert_eq!(app.log.take(), ["10", "11", "20", "21", "31", "40", "41"]);
    assert_eq!(app.rows_of("piped"), [10, 11, 20, 21, 31, 40, 41]);
    assert_eq!(app.rows_of("all"), [1, 2, 3, 4]);
}

#[tokio::test]
async fn a_closure_has_a_policy_as_well() {
    let app = app();
    let odd = |n| if n % 2 == 1 { Ok(one(n)) } else { Err("even") };
    let odd = source(&app.numbers).handle(odd).on_error(SKIP).sink_with(app.log());
    slipstream::Flow::new().with(odd).run(()).await.unwrap();
    assert_eq!(app.log.take(), ["1", "3"]);
}

#[handle(app.numbers, on_error = SKIP, sink = |n| if *n == 2 { Err("the sink is full") } else { Ok(()) })]
fn has_a_failing_sink(app: &App, n: u32) -> Result<u32> {
    app.rows.insert(&("sunk", n), n)?;
    Ok(n)
}

#[tokio::test]
async fn a_sink_outside_of_the_store_stops_the_flow_whatever_the_policy() {
    let app = app();
    let error = flow![has_a_failing_sink].run(Arc::clone(&app)).await.unwrap_err();
    assert!(matches!(typed(error), Error::Sink { handler: "has_a_failing_sink", .. }));
    assert_eq!(app.rows_of("sunk"), [1]);
    let error = flow![sees_all, has_a_failing_sink].run(Arc::clone(&app)).await.unwrap_err();
    assert!(matches!(typed(error), Error::Sink { handler: "has_a_failing_sink", .. }));
}

struct Two {
    numbers: Numbers,
    count: Cache<String, u64>,
}

#[handle(app.numbers, sink = app.count)]
fn counts(app: &Two, _: (i32, i64)) -> Result<(String, u64)> {
    Ok(("counted".to_owned(), app.count.get("counted")?.unwrap_or(0) + 1))
}
#[handle(app.numbers, sink = app.count)]
fn fails_on_the_third(app: &Two, at: (i32, i64)) -> Result<(String, u64)> {
    let count = app.count.get("second")?.unwrap_or(0) + 1;
    if at == (0, 1) { Err("the third".into()) } else { Ok(("second".to_owned(), count)) }
}
#[handle(app.numbers, sink = app.count, on_error = SKIP)]
fn skips_the_third(app: &Two, at: (i32, i64)) -> Result<(String, u64)> {
    fails_on_the_third(app, at)
}

#[tokio::test]
async fn the_message_that_one_handler_fails_on_is_counted_by_the_other_only_where_it_is_skipped() {
    let store = Store::in_memory().unwrap();
    let app = Arc::new(Two { numbers: Numbers("numbers", 5), count: store.cache("count").unwrap() });
    let count = |name| app.count.get(name).unwrap().unwrap_or(0);
    // Offset 0 of both partitions, then the third message fails: again and again, to both handlers.
    for _ in 0..2 {
        flow![counts, fails_on_the_third].run(Arc::clone(&app)).await.unwrap_err();
        assert_eq!((count("counted"), count("second")), (2, 2));
    }
    flow![counts, skips_the_third].run(Arc::clone(&app)).await.unwrap();
    assert_eq!((count("counted"), count("second")), (10, 9));
    // Its position has moved on.
    flow![counts, fails_on_the_third].run(Arc::clone(&app)).await.unwrap();
    assert_eq!((count("counted"), count("second")), (10, 9));
}

#[tokio::test]
async fn the_store_of_the_app_is_the_flows() {
    // Told, since no sink is a cache of it.
    let app = app();
    flow![sees_all].store(&app.store).run(Arc::clone(&app)).await.unwrap();
    assert_eq!(app.rows_of("all"), [1, 2, 3, 4]);
}

#[handle(app.numbers, on_error = SKIP)]
fn writes_elsewhere(app: &App, n: u32) -> Result<()> {
    Ok(app.rows.insert(&("elsewhere", n), n)?)
}
#[handle(app.numbers)]
fn comes_after(app: &App, n: u32) {
    app.log.add(n);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_cannot_be_stored_stops_the_flow_whatever_the_policy() {
    let app = app();
    let another = Store::in_memory().unwrap();
    let flow = flow![writes_elsewhere, comes_after].store(&another);
    let error = ends(flow.run(Arc::clone(&app))).await.unwrap_err();
    assert!(matches!(typed(error), Error::Publish { .. }));
    assert_eq!(app.log.take(), ["1"]);
}

fn breaks_at_three(items: Items<u32>) -> impl Stream<Item = u32> {
    items.then(|n| async move {
        assert!(n != 3, "three");
        n
    })
}
fn breaks_after_three(items: Items<u32>) -> impl Stream<Item = u32> {
    let with_another = |n| stream::iter([n, n * 10]).inspect(|n| assert!(*n != 30, "thirty"));
    items.flat_map(with_another)
}
#[handle(app.numbers, pipe = breaks_at_three, on_error = SKIP)]
fn skips_behind_a_pipe(app: &App, n: u32) -> Result<()> {
    Ok(app.rows.insert(&("piped", n), n)?)
}
#[handle(app.numbers, pipe = breaks_after_three, on_error = OnError::retry(1, Duration::ZERO).then_skip())]
fn retries_behind_a_pipe(app: &App, n: u32) -> Result<()> {
    Ok(app.rows.insert(&("piped", n), n)?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pipe_that_panics_stops_the_flow_whatever_the_policy_and_the_message_is_dropped_whole() {
    for flow in [flow![sees_all, skips_behind_a_pipe], flow![sees_all, retries_behind_a_pipe]] {
        let app = app();
        let error = ends(flow.store(&app.store).run(Arc::clone(&app))).await.unwrap_err();
        assert!(matches!(typed(error), Error::Panic { .. }));
        assert_eq!(app.rows_of("all"), [1, 2]);
        assert!(app.rows_of("piped").iter().all(|n| *n != 3));
    }
}

struct Stateless {
    numbers: Iter<std::ops::RangeInclusive<u32>>,
    gifts: Channel<u32>,
    log: Log,
}
#[handle(app.numbers, sink = app.gifts)]
fn gives(app: &Stateless, n: u32) -> u32 {
    app.log.add(format!("give {n}"));
    n
}
#[handle(app.gifts, on_error = SKIP)]
fn skips_a_gift(app: &Stateless, n: u32) -> Result<()> {
    app.log.add(n);
    if n == 2 { Err("two".into()) } else { Ok(()) }
}
#[handle(app.gifts, on_error = OnError::retry(1, Duration::ZERO).then_skip())]
fn retries_a_gift(app: &Stateless, n: u32) -> Result<()> {
    skips_a_gift(app, n)
}

// Only alone in its process, since a message is kept anyway while a store is open.
#[tokio::test]
async fn a_handler_inside_of_a_message_has_its_policy_also_where_no_state_is_kept() {
    let app = || Arc::new(Stateless { numbers: iter(1..=2), gifts: Channel::new(), log: Log::default() });
    let skips = app();
    flow![gives, skips_a_gift].run(Arc::clone(&skips)).await.unwrap();
    assert_eq!(skips.log.take(), ["give 1", "1", "give 2", "2"]);
    let retries = app();
    flow![gives, retries_a_gift].run(Arc::clone(&retries)).await.unwrap();
    assert_eq!(retries.log.take(), ["give 1", "1", "give 2", "2", "2"]);
}
