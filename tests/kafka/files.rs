//! From a file to a topic: a source with positions that is not Kafka's, and a topic as sink.
use crate::{
    broker::{self, Expendable},
    log::{Log, SOON},
    running::{Numbers, Running, becomes, chain, comes, ends, topic, topic_with},
};
use slipstream::{Flow, Line, Result, Store, replay, source};
use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::Semaphore;

/// So long it is looked whether something happens that must not.
const A_WHILE: Duration = Duration::from_millis(1500);

/// Sends the lines of a file to a topic.
fn sending(file: &Path, to: &Numbers, store: &Store) -> Flow<()> {
    let route = source(&replay(file)).handle(|line: Line| line.map(|line| Some(((), line))));
    Flow::new().with(route.sink(to)).store(store).named("file")
}

/// The same; each line waits for a permit. Answers when the first one does, so that all is open that is to be open.
async fn waiting(file: &Path, to: &Numbers, store: &Store, gate: &Arc<Semaphore>) -> Running {
    let (waits, begun) = (Arc::clone(gate), Arc::new(AtomicBool::new(false)));
    let begins = Arc::clone(&begun);
    let route = source(&replay(file)).handle_async(move |line: Line| {
        let gate = Arc::clone(&waits);
        begins.store(true, Ordering::Relaxed);
        async move {
            gate.acquire().await?.forget();
            Ok::<_, slipstream::BoxError>(Some(((), line?)))
        }
    });
    let running = Running::new(Flow::new().with(route.sink(to)).store(store).named("file"));
    becomes(|| begun.load(Ordering::Relaxed), true).await;
    running
}

fn lines(folder: &Path, numbers: std::ops::Range<i64>) -> std::path::PathBuf {
    let file = folder.join("lines");
    let all = (0..numbers.end).map(|number| format!("{number}\n")).collect::<String>();
    fs::write(&file, all).unwrap();
    file
}

/// The numbers that are there, in order, and how many there are of all.
fn numbers(log: &Log) -> (Vec<i64>, usize) {
    let mut numbers: Vec<i64> = log.read().iter().map(|row| row.text().parse().unwrap()).collect();
    let count = numbers.len();
    numbers.sort_unstable();
    numbers.dedup();
    (numbers, count)
}

/// S13.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_of_a_file_are_all_there_when_the_flow_ends_whatever_the_linger() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let (folder, store) = (tempfile::tempdir()?, Store::in_memory()?);
    let to = Log::new(servers, "file", 1).await;
    let sink = topic_with(&to, &[("linger.ms", "5000")]);
    for until in [5000, 5100] {
        let file = lines(folder.path(), 0..until);
        ends(sending(&file, &sink, &store)).await?;
        let rows: Vec<i64> = to.read().iter().map(|row| row.text().parse().unwrap()).collect();
        assert!(rows == (0..until).collect::<Vec<_>>(), "{} of {until}", rows.len());
    }
    Ok(())
}

/// S13.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_broker_is_frozen_no_commit_is_made_and_when_it_goes_on_all_is_there() -> Result<()> {
    let Some(cluster) = Expendable::new() else { return Ok(()) };
    let (folder, store) = (tempfile::tempdir()?, Store::in_memory()?);
    let to = Log::new(&cluster.servers, "frozen-file", 1).await;
    let sink = topic_with(&to, &[("reconnect.backoff.max.ms", "500"), ("socket.timeout.ms", "5000")]);
    let gate = Arc::new(Semaphore::new(0));
    let running = waiting(&lines(folder.path(), 0..1000), &sink, &store, &gate).await;
    cluster.freeze();
    let epoch = store.epoch();
    gate.add_permits(1000);
    assert!(comes(A_WHILE, || (store.epoch() != epoch).then_some(())).await.is_none());
    assert!(running.is_running());
    cluster.thaw();
    running.ends().await?;
    assert_eq!(numbers(&to).0, (0..1000).collect::<Vec<_>>());
    Ok(())
}

/// S13.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_cannot_be_delivered_ends_the_flow_and_is_sent_by_the_next_run() -> Result<()> {
    let Some(cluster) = Expendable::new() else { return Ok(()) };
    let (folder, store) = (tempfile::tempdir()?, Store::in_memory()?);
    let to = Log::new(&cluster.servers, "late-file", 1).await;
    let file = lines(folder.path(), 0..100);
    let sink = topic_with(&to, &[("message.timeout.ms", "2000")]);
    let gate = Arc::new(Semaphore::new(0));
    let running = waiting(&file, &sink, &store, &gate).await;
    cluster.freeze();
    gate.add_permits(100);
    let ended = running.ends().await;
    cluster.thaw();
    let error = ended.expect_err("it ended well");
    assert!(chain(&*error).contains(&to.name), "{}", chain(&*error));
    ends(sending(&file, &topic(&to), &store)).await?;
    assert_eq!(numbers(&to).0, (0..100).collect::<Vec<_>>());
    Ok(())
}

/// An unknown topic is named, as a sink too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sink_that_does_not_exist_is_named() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let (folder, store) = (tempfile::tempdir()?, Store::in_memory()?);
    let to = Log::there(servers, &crate::log::unique("no-sink"));
    let file = lines(folder.path(), 0..10);
    let sink = topic_with(&to, &[("message.timeout.ms", "3000")]);
    let ended = tokio::time::timeout(SOON, ends(sending(&file, &sink, &store))).await?;
    let error = chain(&*ended.expect_err("it ended well"));
    assert!(error.contains(&to.name), "{error}");
    let error = chain(&tokio::time::timeout(SOON, sink.send((), "x".to_owned())).await?.unwrap_err());
    assert!(error.contains(&to.name), "{error}");
    Ok(())
}

/// Crashed in the middle, nothing is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flow_that_is_dropped_in_the_middle_loses_no_line() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let (folder, store) = (tempfile::tempdir()?, Store::in_memory()?);
    let to = Log::new(servers, "dropped-file", 1).await;
    let file = lines(folder.path(), 0..50_000);
    let mut drops = 0;
    loop {
        let flow = sending(&file, &topic(&to), &store).commit_every(Duration::from_millis(2));
        let (running, end) = (Running::new(flow), to.ends(0).1);
        if comes(SOON, || (to.ends(0).1 >= end + 15_000 || !running.is_running()).then_some(()))
            .await
            .is_some()
            && running.is_running()
        {
            running.crashes().await;
            drops += 1;
            continue;
        }
        running.ends().await?;
        break;
    }
    let (numbers, count) = numbers(&to);
    assert_eq!(numbers, (0..50_000).collect::<Vec<_>>(), "dropped {drops} times");
    println!("dropped {drops} times: {} of 50000 came again", count - 50_000);
    Ok(())
}
