//! Channels: what a handler gives to others is handled inside of its message.
use crate::{Log, ends, typed};
use futures::{Stream, StreamExt, future::ready, stream};
use slipstream::{
    Cache, Channel, Error, Items, Iter, OnError, Result, Store, flow, handle, in_message, iter,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

struct App {
    numbers: Iter<std::ops::RangeInclusive<u32>>,
    letters: Channel<String>,
    echoes: Channel<String>,
    seen: Cache<String, u32>,
    log: Log,
}

fn app() -> Arc<App> {
    let seen = Store::in_memory().unwrap().cache("seen").unwrap();
    let (letters, echoes) = (Channel::new(), Channel::new());
    Arc::new(App { numbers: iter(1..=2), letters, echoes, seen, log: Log::default() })
}

#[handle(app.numbers, sink = app.letters)]
async fn gives_two(app: &App, n: u32) -> Vec<String> {
    app.log.add(format!("give {n}"));
    tokio::task::yield_now().await;
    vec![format!("a{n}"), format!("b{n}")]
}
#[handle(app.numbers)]
fn comes_after(app: &App, n: u32) {
    app.log.add(format!("after {n}"));
}
#[handle(app.letters)]
async fn first_reader(app: &App, letter: String) {
    app.log.add(format!("1 {letter}"));
    app.echoes.send(format!("echo of {letter}")).await.unwrap();
    assert!(in_message());
}
#[handle(app.letters.clone())]
async fn second_reader(app: &App, letter: String) {
    tokio::task::yield_now().await;
    app.log.add(format!("2 {letter}"));
}
#[handle(app.echoes)]
fn hears(app: &App, echo: String) {
    app.log.add(echo);
}

#[tokio::test]
async fn what_is_given_is_handled_depth_first_before_the_next_handler_of_the_message() {
    let app = app();
    flow![hears, second_reader, gives_two, comes_after, first_reader].run(Arc::clone(&app)).await.unwrap();
    let of = |n: u32| {
        let of_letter = |letter: &str| {
            let letter = format!("{letter}{n}");
            // In the order mounted.
            [format!("2 {letter}"), format!("1 {letter}"), format!("echo of {letter}")]
        };
        let (a, b) = (of_letter("a"), of_letter("b"));
        [vec![format!("give {n}")], a.to_vec(), b.to_vec(), vec![format!("after {n}")]].concat()
    };
    assert_eq!(app.log.take(), [of(1), of(2)].concat());
}

#[handle(app.letters, sink = app.letters)]
fn shortens(app: &App, letter: String) -> Option<String> {
    app.log.add(&letter);
    let shorter = letter.get(..letter.len() - 1)?.to_owned();
    (!shorter.is_empty()).then_some(shorter)
}

#[tokio::test]
async fn a_channel_may_feed_itself() {
    let app = app();
    flow![gives_two, shortens].run(Arc::clone(&app)).await.unwrap();
    let expected = ["give 1", "a1", "a", "b1", "b", "give 2", "a2", "a", "b2", "b"];
    assert_eq!(app.log.take(), expected);
}

#[handle(app.letters, sink = app.seen)]
fn counts(app: &App, letter: String) -> Result<(String, u32)> {
    let count = app.seen.get("all")?.unwrap_or(0);
    app.seen.insert("all", count + 1)?;
    Ok((letter, count))
}
#[handle(app.letters)]
fn fails_at_b2(app: &App, letter: String) -> Result<()> {
    app.seen.insert("last", u32::from(letter == "a2"))?;
    if letter == "b2" { Err("b2".into()) } else { Ok(()) }
}
#[handle(app.letters, on_error = OnError::skip())]
fn skips_b2(app: &App, letter: String) -> Result<()> {
    fails_at_b2(app, letter)
}

#[tokio::test]
async fn what_is_given_is_part_of_the_message_and_dropped_with_it() {
    let app = app();
    let error = flow![gives_two, counts, fails_at_b2].run(Arc::clone(&app)).await.unwrap_err();
    assert!(matches!(typed(error), Error::Handler { handler: "fails_at_b2", .. }));
    // Of the second message nothing is there, also what was handled without a fault.
    assert_eq!(app.seen.get("all").unwrap(), Some(2));
    assert_eq!(app.seen.get("a2").unwrap(), None);
    let app = self::app();
    flow![gives_two, counts, skips_b2].run(Arc::clone(&app)).await.unwrap();
    assert_eq!(app.seen.get("all").unwrap(), Some(4));
    assert_eq!(app.seen.get("last").unwrap(), Some(1));
}

#[handle(app.numbers, on_error = OnError::skip())]
async fn gives_and_fails(app: &App, n: u32) -> Result<()> {
    app.letters.send(format!("c{n}")).await?;
    app.seen.insert("given", n)?;
    if n == 1 { Err("one".into()) } else { Ok(()) }
}

#[tokio::test]
async fn what_a_handler_has_given_before_it_failed_is_not_handled() {
    let app = app();
    flow![gives_and_fails, second_reader].run(Arc::clone(&app)).await.unwrap();
    assert_eq!(app.log.take(), ["2 c2"]);
    assert_eq!(app.seen.get("given").unwrap(), Some(2));
}

#[tokio::test]
async fn what_nobody_reads_is_dropped() {
    let app = app();
    flow![gives_two, hears].run(Arc::clone(&app)).await.unwrap();
    assert_eq!(app.log.take(), ["give 1", "give 2"]);
}

fn pairs(letters: Items<String>) -> impl Stream<Item = String> {
    letters.chunks(2).map(|pair| pair.concat()).filter(|pair| ready(pair != "a2b2"))
}
#[handle(app.letters, pipe = pairs, sink = app.seen)]
fn reads_pairs(app: &App, pair: String) -> (String, u32) {
    app.log.add(&pair);
    (pair, 0)
}
fn all(letters: Items<String>) -> impl Stream<Item = String> {
    letters.fold(String::new(), |all, letter| ready(all + &letter)).into_stream()
}
trait IntoStream: Future + Sized {
    fn into_stream(self) -> impl Stream<Item = Self::Output> {
        futures::FutureExt::into_stream(self)
    }
}
impl<F: Future> IntoStream for F {}
#[handle(app.letters, pipe = all, sink = app.seen)]
fn reads_all_at_the_end(app: &App, all: String) -> (String, u32) {
    app.log.add(format!("all: {all}"));
    (all, 1)
}

#[tokio::test]
async fn a_channel_may_be_piped_also_to_the_end_of_the_source_that_feeds_it() {
    let app = app();
    flow![gives_two, reads_pairs, reads_all_at_the_end].run(Arc::clone(&app)).await.unwrap();
    // The channel has a task of its own, for what comes from outside, and that one has a pipe too.
    let mut seen = app.log.take();
    seen.retain(|line| line != "all: ");
    assert_eq!(seen, ["give 1", "a1b1", "give 2", "all: a1b1a2b2"]);
    assert_eq!(app.seen.get("a1b1a2b2").unwrap(), Some(1));
}

#[tokio::test]
async fn items_from_outside_are_messages_of_their_own_until_the_channel_is_closed() {
    let app = app();
    let sends = async {
        for n in 0..1000 {
            app.letters.send(format!("{n}")).await.unwrap();
        }
        app.letters.close();
        let refused = app.letters.send("late".into()).await.unwrap_err();
        assert_eq!(refused.0, "late");
    };
    let flow = flow![counts].run(Arc::clone(&app));
    let ((), ended) = tokio::join!(sends, flow);
    ended.unwrap();
    assert_eq!(app.seen.get("all").unwrap(), Some(1000));
    assert_eq!(app.seen.get("999").unwrap(), Some(999));
}

#[handle(app.numbers)]
async fn spawns(app: &App, n: u32) {
    let letters = app.letters.clone();
    // Elsewhere: not part of the message.
    tokio::spawn(async move { letters.send(format!("s{n}")).await }).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_channel_ends_when_the_other_sources_have_and_nothing_is_left_in_it() {
    let app = app();
    flow![spawns, second_reader].run(Arc::clone(&app)).await.unwrap();
    assert_eq!(app.log.sorted(), ["2 s1", "2 s2"]);
}

#[handle(app.numbers)]
async fn fills_it_at_last(app: &App, n: u32) {
    let letters = app.letters.clone();
    if n == 2 {
        let fills =
            async move { futures::future::join_all((0..250).map(|n| letters.send(n.to_string()))).await };
        tokio::spawn(fills).await.unwrap();
    }
}

#[tokio::test]
async fn what_is_left_in_a_channel_when_the_other_sources_end_is_handled_before_it_ends() {
    let app = app();
    ends(flow![takes_its_time, fills_it_at_last].run(Arc::clone(&app))).await.unwrap();
    assert_eq!(app.log.take().len(), 250);
}

#[tokio::test]
async fn sending_from_outside_waits_for_room() {
    let channel = Channel::new();
    let fill = async {
        for n in 0_u32.. {
            channel.send(n).await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_millis(50), fill).await.unwrap_err();
}

/// Gives "tick" once of itself, if anything came before.
fn and_a_tick(letters: Items<String>) -> impl Stream<Item = String> {
    let came = Arc::new(AtomicBool::new(false));
    let has_come = Arc::clone(&came);
    let tick = stream::once(async move {
        tokio::time::sleep(Duration::from_millis(20)).await;
        came.load(Ordering::Relaxed).then(|| "tick".to_owned())
    });
    let letters = letters.inspect(move |_| has_come.store(true, Ordering::Relaxed));
    stream::select(letters, tick.filter_map(ready))
}
fn slow_numbers() -> impl Stream<Item = u32> {
    stream::iter(1..=2).then(|n| async move {
        tokio::time::sleep(Duration::from_millis(100 * u64::from(n - 1))).await;
        n
    })
}
#[handle(slow_numbers, sink = app.letters)]
fn gives_slowly(app: &App, n: u32) -> String {
    app.log.add(n);
    n.to_string()
}
#[handle(app.letters, pipe = and_a_tick)]
async fn conflicts_at_the_tick(app: &App, letter: String) -> Result<()> {
    app.seen.update(&letter, |count| count.unwrap_or(0) + 1)?;
    if letter == "tick" && app.seen.get("other")?.is_none() {
        let seen = app.seen.clone();
        tokio::spawn(async move { seen.insert("other", 1).and_then(|()| seen.insert("tick", 100)) })
            .await??;
    }
    Ok(())
}

#[tokio::test]
async fn what_a_channels_pipe_gave_of_itself_is_handled_again_after_a_conflict() {
    let app = app();
    ends(flow![gives_slowly, conflicts_at_the_tick].store(app.seen.store()).run(Arc::clone(&app)))
        .await
        .unwrap();
    assert_eq!(app.seen.get("tick").unwrap(), Some(101));
    assert_eq!((app.seen.get("1").unwrap(), app.seen.get("2").unwrap()), (Some(1), Some(1)));
}

#[handle(app.letters, pipe = all, sink = app.echoes)]
fn gives_all_at_the_end(app: &App, all: String) -> Vec<String> {
    app.log.add(format!("all: {all}"));
    vec![all.clone(), all]
}
#[handle(app.echoes, pipe = all)]
async fn hears_all_at_the_end(app: &App, all: String) -> Result<()> {
    app.log.add(format!("echo: {all}"));
    if !all.is_empty() {
        app.seen.update(&all, |count| count.unwrap_or(0) + 1)?;
        if app.seen.get("other")?.is_none() {
            let seen = app.seen.clone();
            tokio::spawn(async move { seen.insert("other", 1).and_then(|()| seen.insert(&all, 100)) })
                .await??;
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_pipes_of_channels_end_in_the_order_mounted_and_so_that_nothing_is_lost() {
    let app = app();
    let flow = flow![gives_two, gives_all_at_the_end, hears_all_at_the_end];
    ends(flow.store(app.seen.store()).run(Arc::clone(&app))).await.unwrap();
    // It runs again, once, since another changed what it had read.
    assert_eq!(app.seen.get("a1b1a2b2a1b1a2b2").unwrap(), Some(101));
}

#[handle(app.letters, sink = app.letters)]
fn never_comes_to_an_end(app: &App, letter: String) -> String {
    letter
}

#[test]
fn a_channel_that_feeds_itself_for_ever_can_be_dropped_with_its_flow() {
    let app = app();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
    let run = runtime.spawn(flow![gives_two, never_comes_to_an_end].run(Arc::clone(&app)));
    std::thread::sleep(Duration::from_millis(50));
    run.abort();
    let began = std::time::Instant::now();
    while Arc::strong_count(&app) > 1 && began.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(1));
    }
    runtime.shutdown_background();
    assert_eq!(Arc::strong_count(&app), 1, "it still runs");
}

#[handle(app.letters)]
async fn takes_its_time(app: &App, letter: String) {
    app.log.add(letter);
    tokio::time::sleep(Duration::from_millis(2)).await;
}

#[tokio::test]
async fn what_waits_in_a_channel_when_its_flow_is_stopped_is_handled_by_the_next() {
    let app = app();
    for n in 0..100 {
        app.letters.send(n.to_string()).await.unwrap();
    }
    app.letters.close();
    let flow = flow![takes_its_time];
    let handle = flow.handle();
    let run = tokio::spawn(flow.run(Arc::clone(&app)));
    tokio::time::sleep(Duration::from_millis(10)).await;
    handle.stop();
    run.await.unwrap().unwrap();
    let first = app.log.take();
    assert!(first.len() < 100, "the stop came too late");
    flow![takes_its_time].run(Arc::clone(&app)).await.unwrap();
    let all = [first, app.log.take()].concat();
    assert_eq!(all, (0..100).map(|n| n.to_string()).collect::<Vec<_>>());
}

#[handle(app.numbers, pipe = |items| items.take(1), sink = app.letters)]
fn gives_the_first(app: &App, n: u32) -> String {
    app.log.add(n);
    format!("a{n}")
}

#[tokio::test]
async fn the_pipe_of_a_channel_ends_also_where_a_pipe_has_ended_the_source() {
    let app = app();
    flow![gives_the_first, reads_all_at_the_end].store(app.seen.store()).run(Arc::clone(&app)).await.unwrap();
    assert_eq!(app.seen.get("a1").unwrap(), Some(1));
}
