//! Pipes: one message may bring their handler no item, one or several; each counts for the message.
use crate::{Log, typed};
use futures::{Stream, StreamExt, channel::mpsc, future::ready, stream};
use slipstream::{Error, Items, Iter, Message, Result, flow, handle, iter};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

struct App {
    numbers: Iter<std::ops::RangeInclusive<u32>>,
    log: Log,
    count: AtomicU32,
}

fn app() -> Arc<App> {
    Arc::new(App { numbers: iter(1..=4), log: Log::default(), count: AtomicU32::new(0) })
}

fn pairwise<S: Stream<Item = u32>>(items: S) -> impl Stream<Item = (u32, u32)> {
    items
        .scan(None, |before: &mut Option<u32>, n| ready(Some(before.replace(n).map(|before| (before, n)))))
        .filter_map(ready)
}
fn twice(items: Items<u32>) -> impl Stream<Item = u32> {
    items.flat_map(|n| stream::iter([n, n]))
}

#[handle(app.numbers)]
fn plain(app: &App, n: u32) {
    app.log.add(format!("plain {n}"));
}
#[handle(app.numbers, pipe = pairwise)]
fn pairs(app: &App, (before, n): (u32, u32)) {
    app.log.add(format!("pair {before} {n}"));
}
#[handle(app.numbers, pipe = [twice, |items| items.map(|n| n * 10)], sink = { let log = app.log.clone(); move |n| log.add(format!("sink {n}")) })]
async fn doubled(app: &App, n: u32) -> u32 {
    tokio::task::yield_now().await;
    app.log.add(format!("double {n}"));
    n
}
#[handle(app.numbers, pipe = |items| items.take(2))]
fn first_two(app: &App, n: u32) {
    app.log.add(format!("taken {n}"));
}
#[handle(app.numbers, pipe = |items| items.chunks(3))]
fn threes(app: &App, chunk: Vec<u32>) {
    app.log.add(format!("{chunk:?}"));
}
#[handle(app.numbers, pipe = |items| items.then(|n| async move {
    tokio::time::sleep(Duration::from_millis(1)).await;
    n
}))]
fn delayed(app: &App, n: u32) {
    app.log.add(format!("delayed {n}"));
}

#[tokio::test]
async fn each_handler_has_its_own_pipe_on_a_shared_source() -> Result<()> {
    let app = app();
    flow![pairs, plain].run(Arc::clone(&app)).await?;
    assert_eq!(
        app.log.take(),
        ["plain 1", "pair 1 2", "plain 2", "pair 2 3", "plain 3", "pair 3 4", "plain 4"]
    );
    Ok(())
}

#[tokio::test]
async fn pipes_are_applied_in_order_and_sinks_come_when_the_message_is_done() -> Result<()> {
    let app = app();
    flow![doubled].run(Arc::clone(&app)).await?;
    assert_eq!(
        app.log.take()[..6],
        ["double 10", "double 10", "sink 10", "sink 10", "double 20", "double 20"]
    );
    Ok(())
}

#[tokio::test]
async fn a_pipe_that_ends_ends_its_handler_and_not_the_others() -> Result<()> {
    let app = app();
    flow![first_two, plain].run(Arc::clone(&app)).await?;
    assert_eq!(app.log.take(), ["taken 1", "plain 1", "taken 2", "plain 2", "plain 3", "plain 4"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_endless_source_is_let_go_when_the_pipes_of_all_its_handlers_have_ended() -> Result<()> {
    #[handle(slipstream::interval(Duration::from_secs(1)), pipe = |ticks| ticks.take(3))]
    fn tick(n: u64) {
        assert!(n < 3);
    }
    flow![tick].run(()).await
}

#[tokio::test]
async fn what_a_pipe_holds_back_is_handled_when_the_source_ends() -> Result<()> {
    let app = app();
    flow![threes].run(Arc::clone(&app)).await?;
    assert_eq!(app.log.take(), ["[1, 2, 3]", "[4]"]);
    Ok(())
}

#[tokio::test]
async fn a_message_waits_for_a_pipe_that_works_on_it() -> Result<()> {
    let app = app();
    flow![delayed, plain].run(Arc::clone(&app)).await?;
    let expected: Vec<_> = (1..=4).flat_map(|n| [format!("delayed {n}"), format!("plain {n}")]).collect();
    assert_eq!(app.log.take(), expected);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_a_pipe_gives_by_itself_is_handled_without_a_message() -> Result<()> {
    /// Counts, and says how many there were when nothing has come for a while.
    fn lulls(items: Items<u32>) -> impl Stream<Item = u32> {
        stream::unfold((items, 0), |(mut items, mut count)| async move {
            loop {
                match tokio::time::timeout(Duration::from_secs(5), items.next()).await {
                    Ok(Some(_)) => count += 1,
                    Ok(None) => return None,
                    Err(_) => return Some((count, (items, count))),
                }
            }
        })
    }
    fn two_bursts() -> impl Stream<Item = u32> {
        let pause = stream::once(tokio::time::sleep(Duration::from_secs(7))).filter_map(|()| ready(None));
        stream::iter([1, 2, 3]).chain(pause).chain(stream::iter([4]))
    }
    #[handle(two_bursts, pipe = lulls)]
    fn lull(app: &App, count: u32) {
        app.log.add(count);
    }
    let app = app();
    flow![lull].run(Arc::clone(&app)).await?;
    assert_eq!(app.log.take(), ["3"]);
    Ok(())
}

#[tokio::test]
async fn a_pipe_is_told_of_a_panic_in_it_by_its_handlers_name() {
    #[handle(iter([1]), pipe = |items| items.map(|n: u32| { assert!(n > 1, "burst"); n }))]
    fn behind(_: u32) {}
    let error = typed(flow![behind].run(()).await.unwrap_err());
    assert!(matches!(error, Error::Panic { handler: "behind", .. }), "{error:?}");
}

#[tokio::test]
async fn the_handler_takes_the_value_of_a_message_that_a_pipe_passed_on() -> Result<()> {
    #[handle(iter([Message::new('a', 1_u32)]), pipe = |items| items.filter(|m| ready(m.key == 'a')))]
    fn value(n: u32) {
        assert_eq!(n, 1);
    }
    flow![value].run(()).await
}

#[tokio::test]
async fn an_error_in_place_of_an_item_stops_behind_a_pipe_too() {
    #[handle(iter([Ok(1), Err("cut off"), Ok(2)]), pipe = |items| items.map(|item| item))]
    fn behind(n: u32) {
        assert_eq!(n, 1);
    }
    let error = typed(flow![behind].run(()).await.unwrap_err());
    assert!(matches!(error, Error::Item { .. }), "{error:?}");
}

/// Each stream inside is polled only when it has woken the waker it was given.
fn with_wakers_of_its_own(items: Items<u32>) -> impl Stream<Item = u32> {
    stream::select_all([items.left_stream(), stream::pending().right_stream()])
}

#[tokio::test]
async fn a_pipe_may_poll_the_items_with_a_waker_of_its_own() -> Result<()> {
    #[handle(app.numbers, pipe = [with_wakers_of_its_own, |items| items.take(4)])]
    fn all(app: &App, n: u32) {
        app.log.add(n);
    }
    let app = app();
    flow![all].run(Arc::clone(&app)).await?;
    assert_eq!(app.log.take(), ["1", "2", "3", "4"]);
    Ok(())
}

fn through_a_task(items: Items<u32>) -> impl Stream<Item = u32> {
    let (give, take) = mpsc::unbounded();
    tokio::spawn(items.for_each(move |n| {
        let _gone = give.unbounded_send(n);
        ready(())
    }));
    take
}

/// The task may ask for the next item long after what it gave was handled; and what it gave still
/// counts for the message it came with.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pipe_may_hand_the_items_to_a_task_of_its_own() -> Result<()> {
    #[handle(app.numbers, pipe = through_a_task)]
    fn through(app: &App, n: u32) {
        app.count.store(n, Ordering::Relaxed);
    }
    #[handle(app.numbers)]
    fn beside(app: &App, n: u32) {
        assert_eq!(app.count.load(Ordering::Relaxed), n);
    }
    let app = Arc::new(App { numbers: iter(1..=10_000), ..Arc::into_inner(app()).unwrap() });
    let running = flow![through, beside].run(Arc::clone(&app));
    tokio::time::timeout(Duration::from_secs(60), running).await.expect("it does not wait for ever")
}

#[tokio::test(start_paused = true)]
async fn a_pipe_that_ends_while_its_source_has_nothing_ends_it() -> Result<()> {
    #[handle(stream::pending::<u32>, pipe = |items| items.take_until(tokio::time::sleep(Duration::from_secs(1))))]
    fn never(_: u32) {}
    tokio::time::timeout(Duration::from_secs(60), flow![never].run(())).await.expect("it waits for ever")
}
