//! State and positions are committed together: what a flow goes on with after it has stopped.
use crate::{Log, typed};
use futures::{Stream, stream};
use slipstream::{
    AsyncIterable, Cache, Error, Flow, Position, Positions, Result, Seekable, Seeks, Sink, Store, StoreError,
    flow, handle, source,
};
use std::{
    sync::{Arc, mpsc},
    time::Duration,
};

/// A log of two partitions, in memory.
#[derive(Debug, Clone)]
pub(crate) struct Numbers(pub(crate) &'static str, pub(crate) i64);

impl AsyncIterable for Numbers {
    type Item = (i32, i64);
    fn open(&self) -> impl Stream<Item = (i32, i64)> + Send + 'static {
        use futures::StreamExt;
        self.open_at(Positions::default()).map(|(_, item)| item)
    }
    fn identity(&self) -> Option<String> {
        Some(self.0.to_owned()).filter(|name| !name.is_empty())
    }
    fn seeks(&self) -> Option<Seeks<(i32, i64)>> {
        Some(Seeks::new(self))
    }
}

impl Seekable for Numbers {
    fn open_at(&self, start: Positions) -> impl Stream<Item = (Position, (i32, i64))> + Send + 'static {
        let (end, start) = (self.1, [0, 1].map(|partition| start.next(partition).unwrap_or(0)));
        let all = (0..end).flat_map(|offset| [0, 1].map(|partition| (partition, offset)));
        let left = all.filter(move |(partition, offset)| *offset >= start[*partition as usize]);
        stream::iter(left.map(|(partition, offset)| (Position::new(partition, offset), (partition, offset))))
    }
}

struct App {
    numbers: Numbers,
    fails_at: Option<i64>,
    count: Cache<(), u64>,
    log: Log,
}

fn app(store: &Store, length: i64, fails_at: Option<i64>) -> Arc<App> {
    let count = store.cache("count").unwrap();
    Arc::new(App { numbers: Numbers("numbers", length), fails_at, count, log: Log::default() })
}

#[handle(app.numbers, sink = app.count)]
fn counts(app: &App, (partition, offset): (i32, i64)) -> Result<((), u64)> {
    app.log.add(format!("{partition}/{offset}"));
    Ok(((), app.count.get(&())?.unwrap_or(0) + 1))
}
#[handle(app.numbers)]
fn may_fail(app: &App, (partition, offset): (i32, i64)) -> Result<()> {
    if partition == 1 && Some(offset) == app.fails_at { Err("as it was told".into()) } else { Ok(()) }
}

#[tokio::test]
async fn what_was_handled_does_not_come_again() -> Result<()> {
    let store = Store::in_memory()?;
    let first = app(&store, 2, None);
    flow![counts].run(Arc::clone(&first)).await?;
    assert_eq!(first.log.take(), ["0/0", "1/0", "0/1", "1/1"]);
    let second = app(&store, 2, None);
    flow![counts].run(Arc::clone(&second)).await?;
    assert_eq!(second.log.take(), [""; 0]);
    let third = app(&store, 3, None);
    flow![counts].run(Arc::clone(&third)).await?;
    assert_eq!(third.log.take(), ["0/2", "1/2"]);
    assert_eq!(third.count.get(&())?, Some(6));
    Ok(())
}

#[tokio::test]
async fn the_message_that_stops_a_flow_comes_again_to_all_its_handlers() -> Result<()> {
    let store = Store::in_memory()?;
    let fails = app(&store, 4, Some(2));
    let error = typed(flow![counts, may_fail].run(Arc::clone(&fails)).await.unwrap_err());
    assert!(matches!(error, Error::Handler { handler: "may_fail", .. }), "{error:?}");
    assert_eq!(fails.log.take().last().unwrap(), "1/2");
    assert_eq!(fails.count.get(&())?, Some(5), "that of the message itself is dropped");
    let mended = app(&store, 4, None);
    flow![counts, may_fail].run(Arc::clone(&mended)).await?;
    assert_eq!(mended.log.take(), ["1/2", "0/3", "1/3"]);
    assert_eq!(mended.count.get(&())?, Some(8));
    Ok(())
}

#[tokio::test]
async fn one_key_incremented_often_loses_nothing_whenever_it_is_committed() -> Result<()> {
    for every in [Duration::from_millis(1), Duration::from_secs(3600)] {
        let store = Store::in_memory()?;
        let app = app(&store, 20_000, None);
        flow![counts].commit_every(every).commit_after(777).epoch_bytes(4096).run(Arc::clone(&app)).await?;
        assert_eq!(app.count.get(&())?, Some(40_000));
    }
    Ok(())
}

#[tokio::test]
async fn two_stores_in_the_sinks_of_a_flow_are_an_error_at_the_start() -> Result<()> {
    let (one, other) = (Store::in_memory()?, Store::in_memory()?);
    struct Two(Cache<(), u64>, Cache<(), u64>);
    #[handle(slipstream::iter([1_u64]), sink = [two.0, two.1])]
    fn both(two: &Two, n: u64) -> ((), u64) {
        ((), n)
    }
    let error = typed(flow![both].run(Two(one.cache("a")?, other.cache("b")?)).await.unwrap_err());
    let Error::Store { cause } = error else { panic!("{error:?}") };
    assert!(matches!(cause.downcast_ref(), Some(StoreError::TwoStores { .. })), "{cause}");
    Ok(())
}

#[tokio::test]
async fn a_handler_that_writes_to_another_store_is_stopped_at_its_first_message() -> Result<()> {
    let (one, other) = (Store::in_memory()?, Store::in_memory()?);
    struct Two(Cache<(), u64>, Cache<(), u64>);
    #[handle(slipstream::iter([1_u64]), sink = two.0)]
    fn into_the_first(two: &Two, n: u64) -> ((), u64) {
        ((), n)
    }
    #[handle(slipstream::iter([1_u64]))]
    fn into_the_second(two: &Two, n: u64) -> Result<()> {
        Ok(two.1.insert(&(), n)?)
    }
    let flow = flow![into_the_first, into_the_second];
    let error = typed(flow.run(Two(one.cache("a")?, other.cache("b")?)).await.unwrap_err());
    let Error::Publish { cause, .. } = error else { panic!("{error:?}") };
    assert!(matches!(cause.downcast_ref(), Some(StoreError::TwoStores { .. })), "{cause}");
    Ok(())
}

#[tokio::test]
async fn a_second_flow_over_a_store_is_refused_while_the_first_runs() -> Result<()> {
    let store = Store::in_memory()?;
    #[handle(futures::stream::pending::<u64>, sink = *cache)]
    fn waits(cache: &Cache<(), u64>, n: u64) -> ((), u64) {
        ((), n)
    }
    let first = tokio::spawn(flow![waits].run(store.cache::<(), u64>("a")?));
    tokio::task::yield_now().await;
    let error = typed(flow![waits].run(store.cache::<(), u64>("a")?).await.unwrap_err());
    let Error::Store { cause } = error else { panic!("{error:?}") };
    assert!(matches!(cause.downcast_ref(), Some(StoreError::Running { .. })), "{cause}");
    first.abort();
    first.await.unwrap_err();
    // The aborted flow's tasks may not have ended yet; the store is free.
    #[handle(slipstream::iter([7]), sink = *cache)]
    fn writes(cache: &Cache<(), u64>, n: u64) -> ((), u64) {
        ((), n)
    }
    flow![writes].run(store.cache::<(), u64>("a")?).await?;
    assert_eq!(store.cache::<(), u64>("a")?.get(&())?, Some(7));
    Ok(())
}

#[tokio::test]
async fn a_source_with_positions_needs_a_store_and_a_name() -> Result<()> {
    #[handle(Numbers("n", 1))]
    fn without_a_store((_, offset): (i32, i64)) {
        assert!(offset < 0, "it never runs");
    }
    let error = typed(flow![without_a_store].run(()).await.unwrap_err());
    assert!(matches!(error, Error::Positions { .. }), "{error:?}");
    assert!(error.to_string().contains("`Numbers(\"n\", 1)` has positions, and needs a store"), "{error}");
    flow![without_a_store].store(&Store::in_memory()?).run(()).await.unwrap_err();

    #[handle(Numbers("", 1))]
    fn without_a_name(_: (i32, i64)) {}
    let error = typed(flow![without_a_name].store(&Store::in_memory()?).run(()).await.unwrap_err());
    assert!(error.to_string().contains("needs a name"), "{error}");
    Ok(())
}

#[tokio::test]
async fn what_is_written_outside_of_messages_while_a_flow_runs_is_committed_too() -> Result<()> {
    let folder = tempfile::tempdir()?;
    {
        let store = Store::open(folder.path())?;
        let cache = store.cache::<u64, u64>("a")?;
        #[handle(slipstream::iter(0..100_u64), sink = *cache)]
        async fn writes(cache: &Cache<u64, u64>, n: u64) -> Result<(u64, u64)> {
            let outside = cache.clone();
            tokio::spawn(async move { outside.insert(&(n + 1000), n) }).await??;
            Ok((n, n))
        }
        flow![writes].commit_every(Duration::from_millis(1)).run(cache.clone()).await?;
        assert_eq!(cache.iter().count(), 200);
    }
    assert_eq!(Store::open(folder.path())?.cache::<u64, u64>("a")?.iter().count(), 200);
    Ok(())
}

#[tokio::test]
async fn a_failed_flush_keeps_the_epoch_from_being_committed() -> Result<()> {
    #[derive(Clone)]
    struct Full;
    impl slipstream::Sink<((), u64)> for Full {
        const WAITS: bool = false;
        async fn flush(&self) -> Result<()> {
            Err("the disk is full".into())
        }
    }
    let store = Store::in_memory()?;
    let app = app(&store, 3, None);
    #[handle(app.numbers, sink = [app.count, Full])]
    fn counts_into_both(app: &App, _: (i32, i64)) -> Result<((), u64)> {
        Ok(((), app.count.get(&())?.unwrap_or(0) + 1))
    }
    let error = typed(flow![counts_into_both].run(Arc::clone(&app)).await.unwrap_err());
    assert!(matches!(error, Error::Flush { .. }), "{error:?}");
    assert_eq!(app.count.get(&())?, None);
    // Neither has the position moved.
    flow![counts].run(Arc::clone(&app)).await?;
    assert_eq!(app.count.get(&())?, Some(6));
    Ok(())
}

// The next flow read its positions before the batch of the dropped one was there, and its state after.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn state_and_positions_are_in_step_however_often_a_flow_is_dropped() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let store = Store::open(folder.path())?;
    let handled: Cache<i32, i64> = store.cache("handled")?;
    let bulk: Cache<i64, Vec<u8>> = store.cache("bulk")?;
    for lap in 0..150 {
        let (handled, bulk) = (handled.clone(), bulk.clone());
        let count = source(&Numbers("numbers", 1 << 20)).handle_async(move |(partition, offset)| {
            let (handled, bulk) = (handled.clone(), bulk.clone());
            async move {
                tokio::task::yield_now().await;
                let next = handled.get(&partition)?.unwrap_or(0);
                if next != offset {
                    return Err(format!("the state stands at {next}, the position at {offset}").into());
                }
                handled.insert(&partition, offset + 1)?;
                // A batch that takes its time.
                bulk.insert(&(offset % 1000), vec![0; 2000])?;
                Ok::<_, slipstream::BoxError>(None::<()>)
            }
        });
        let flow = Flow::<()>::new().with(count).store(&store).sync(false);
        let run = flow.commit_every(Duration::from_millis(1)).run(());
        let ended = tokio::time::timeout(Duration::from_micros(1000 + lap * 37 % 3000), run).await;
        if let Ok(ended) = ended {
            return ended;
        }
    }
    assert!(handled.get(&0)? > Some(0), "nothing was committed");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_a_dropped_flow_has_in_hand_publishes_nothing_to_the_next() -> Result<()> {
    let store = Store::in_memory()?;
    let cache = store.cache::<u64, u64>("a")?;
    let (began, begins) = mpsc::channel();
    let (go, goes) = mpsc::channel::<()>();
    let (goes, late) = (std::sync::Mutex::new(goes), cache.clone());
    // In a sync handler, which no drop can end.
    let holds = source(&slipstream::iter([1_u64])).handle(move |n| {
        late.insert(&n, n)?;
        let _ = (began.send(()), goes.lock().unwrap().recv());
        Ok::<_, StoreError>(None::<()>)
    });
    let context = Arc::new(());
    let dropped = tokio::spawn(Flow::<()>::new().with(holds).store(&store).run(Arc::clone(&context)));
    tokio::task::spawn_blocking(move || begins.recv()).await??;
    dropped.abort();
    dropped.await.unwrap_err();
    #[handle(slipstream::iter([7_u64]), sink = *cache)]
    async fn writes(cache: &Cache<u64, u64>, n: u64) -> (u64, u64) {
        (n, n)
    }
    flow![writes].run(cache.clone()).await?;
    go.send(())?;
    while Arc::strong_count(&context) > 1 {
        tokio::task::yield_now().await;
    }
    assert_eq!(cache.keys().collect::<Result<Vec<_>, _>>()?, [7]);
    Ok(())
}

#[tokio::test]
async fn each_partition_has_its_pipe_and_what_one_that_has_ended_did_not_take_comes_to_the_next_run()
-> Result<()> {
    use futures::StreamExt;
    let store = Store::in_memory()?;
    let log = Log::default();
    for _ in 0..3 {
        let log = log.clone();
        let some = source(&Numbers("numbers", 10)).pipe(|items| items.take(3));
        let some = some.handle(move |(partition, offset)| {
            log.add(format!("{partition}/{offset}"));
            None::<()>
        });
        Flow::<()>::new().with(some).store(&store).run(()).await?;
    }
    let expected = (0..9).flat_map(|offset| [0, 1].map(|partition| format!("{partition}/{offset}")));
    assert_eq!(log.take(), expected.collect::<Vec<_>>());
    Ok(())
}

#[tokio::test]
async fn a_sink_that_writes_when_it_is_flushed_does_not_keep_the_flow_from_ending() -> Result<()> {
    #[derive(Clone)]
    struct Flushes(Cache<(), u64>);
    impl Sink<((), u64)> for Flushes {
        const WAITS: bool = false;
        async fn flush(&self) -> Result<()> {
            Ok(self.0.insert(&(), self.0.get(&())?.unwrap_or(0) + 1)?)
        }
    }
    let folder = tempfile::tempdir()?;
    let store = Store::open(folder.path())?;
    let flushes = Flushes(store.cache("flushes")?);
    let app = app(&store, 3, None);
    let counted = source(&app.numbers).handle(|(_, offset)| Some(((), offset as u64)));
    let flow = Flow::<()>::new().with(counted.sink(&app.count).sink(&flushes));
    tokio::time::timeout(Duration::from_secs(60), flow.run(())).await??;
    assert!(flushes.0.get(&())? >= Some(2), "at a commit and at the end");
    assert_eq!(app.count.get(&())?, Some(2));
    Ok(())
}

#[tokio::test]
async fn what_is_written_outside_of_messages_is_committed_at_the_bound_of_memory() -> Result<()> {
    #[handle(futures::stream::pending::<u64>)]
    fn never(_: &Cache<u64, u64>, _: u64) {}
    let cache = Arc::new(Cache::<u64, u64>::in_memory()?);
    let flow = flow![never].store(cache.store()).commit_every(Duration::from_secs(3600)).epoch_bytes(10_000);
    let handle = flow.handle();
    let running = tokio::spawn(flow.run(Arc::clone(&cache)));
    while handle.commit_now().await.is_err() {
        tokio::task::yield_now().await;
    }
    let before = cache.store().epoch();
    for write in [
        |cache: &Cache<u64, u64>, n| cache.insert(&n, n),
        |cache: &Cache<u64, u64>, n| cache.update(&n, |before| before.unwrap_or(0) + 1).map(drop),
    ] {
        let epoch = cache.store().epoch();
        let began = std::time::Instant::now();
        for n in 0.. {
            write(&cache, n)?;
            tokio::task::yield_now().await;
            if cache.store().epoch() > epoch {
                break;
            }
            assert!(began.elapsed() < Duration::from_secs(30), "it is never committed");
        }
    }
    assert!(cache.store().epoch() > before);
    handle.stop();
    running.await?
}
