//! The handle on a flow: it commits at once, or stops.
use crate::typed;
use futures::{Stream, StreamExt, stream};
use slipstream::{
    AsyncIterable, Cache, CommitError, Error, Flow, FlowHandle, Position, Positions, Result, Seekable, Seeks,
    Sink, Store, flow, handle, source,
};
use std::{
    fs,
    ops::Range,
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tempfile::TempDir;
use tokio::{
    sync::Semaphore,
    task::{JoinHandle, yield_now},
};

/// No test waits for it.
const NEVER: Duration = Duration::from_secs(3600);

/// Numbers that know their positions. It does not end by itself: after the last one nothing comes.
#[derive(Debug, Clone)]
struct Numbers(Range<i64>);

const ENDLESS: Numbers = Numbers(0..i64::MAX);

impl AsyncIterable for Numbers {
    type Item = i64;
    fn open(&self) -> impl Stream<Item = i64> + Send + 'static {
        self.open_at(Positions::default()).map(|(_, n)| n)
    }
    fn identity(&self) -> Option<String> {
        Some("numbers".to_owned())
    }
    fn seeks(&self) -> Option<Seeks<i64>> {
        Some(Seeks::new(self))
    }
}

impl Seekable for Numbers {
    fn open_at(&self, start: Positions) -> impl Stream<Item = (Position, i64)> + Send + 'static {
        let numbers = start.next(0).unwrap_or(0)..self.0.end;
        stream::iter(numbers).map(|n| (Position::new(0, n), n)).chain(stream::pending())
    }
}

/// A flow that keeps each number, with `more` before it does, and commits when it is told to.
fn keeping<F>(
    store: &Store,
    numbers: &Numbers,
    more: impl Fn(FlowHandle, i64) -> F + Send + Sync + 'static,
) -> Flow<()>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let flow = Flow::new().store(store).commit_every(NEVER);
    let handle = flow.handle();
    let keep = source(numbers).handle_async(move |n| {
        let more = more(handle.clone(), n);
        async move { more.await.map(|()| Some((n, ()))) }
    });
    flow.with(keep.sink(&kept(store)))
}

fn kept(store: &Store) -> Cache<i64, ()> {
    store.cache("kept").unwrap()
}

/// How many numbers are kept, which are the first ones.
fn count(store: &Store) -> i64 {
    let last = kept(store).last_key_value().unwrap();
    let count = last.map_or(0, |(last, ())| last + 1);
    assert_eq!(kept(store).iter().count() as i64, count);
    count
}

/// What a program finds that begins now over the files of a store: the state, and where it goes on.
fn found_after_a_crash(folder: &Path) -> (Store, TempDir) {
    let copy = TempDir::new().unwrap();
    for entry in fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().path();
        fs::copy(&file, copy.path().join(file.file_name().unwrap())).unwrap();
    }
    (Store::open(copy.path()).unwrap(), copy)
}

/// A flow goes on with the number after those that are kept.
async fn assert_in_step(store: &Store) {
    let next = count(store);
    let all = keeping(store, &ENDLESS, move |handle, n| async move {
        handle.stop();
        if n == next { Ok(()) } else { Err(format!("{n} came in place of {next}").into()) }
    });
    all.run(()).await.unwrap();
    assert_eq!(count(store), next + 1);
}

async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        yield_now().await;
    }
}

/// A sink that counts how often it is flushed, and takes a permit for each.
#[derive(Debug, Clone)]
struct Gate {
    flushes: Arc<AtomicUsize>,
    open: Arc<Semaphore>,
}

impl Gate {
    fn new(open: usize) -> Self {
        Gate { flushes: Arc::default(), open: Arc::new(Semaphore::new(open)) }
    }
    fn flushes(&self) -> usize {
        self.flushes.load(Ordering::Relaxed)
    }
}

impl<T: Sync> Sink<T> for Gate {
    const WAITS: bool = false;
    async fn flush(&self) -> Result<()> {
        self.flushes.fetch_add(1, Ordering::Relaxed);
        self.open.acquire().await?.forget();
        Ok(())
    }
}

/// A running flow that has kept one number, with a gate before its commits.
async fn gated(store: &Store, gate: &Gate) -> (FlowHandle, JoinHandle<Result<()>>) {
    let keep = source(&Numbers(0..1)).handle(|n| Some((n, ()))).sink(&kept(store)).sink(gate);
    let flow = Flow::<()>::new().commit_every(NEVER).with(keep);
    let handle = flow.handle();
    let running = tokio::spawn(flow.run(()));
    until(|| count(store) == 1).await;
    (handle, running)
}

#[tokio::test]
async fn commit_now_in_a_handler_stores_all_that_is_published_and_not_its_own_message() -> Result<()> {
    let folder = TempDir::new()?;
    let store = Store::open(folder.path())?;
    let path = Arc::new(folder.path().to_owned());
    let flow = keeping(&store, &ENDLESS, move |handle, n| {
        let path = Arc::clone(&path);
        async move {
            if n == 5 || n == 8 {
                handle.commit_now().await?;
                let (found, _copy) = found_after_a_crash(&path);
                assert_eq!(count(&found), n);
                assert_in_step(&found).await;
            }
            if n == 8 {
                handle.stop();
            }
            Ok(())
        }
    });
    flow.run(()).await?;
    assert_eq!(count(&store), 9);
    Ok(())
}

#[tokio::test]
async fn commit_now_from_another_task_outlives_a_crash_and_a_dropped_flow() -> Result<()> {
    let folder = TempDir::new()?;
    let store = Store::open(folder.path())?;
    let flow = keeping(&store, &ENDLESS, |_, _| async { Ok(()) });
    let handle = flow.handle();
    let running = tokio::spawn(flow.run(()));
    let cache = kept(&store);
    until(|| cache.contains_key(&100).unwrap()).await;
    handle.commit_now().await?;
    let (found, _copy) = found_after_a_crash(folder.path());
    running.abort();
    running.await.unwrap_err();
    for store in [store, found] {
        assert!(count(&store) > 100);
        assert_in_step(&store).await;
    }
    Ok(())
}

#[tokio::test]
async fn those_who_ask_before_a_commit_begins_share_it() -> Result<()> {
    let (store, gate) = (Store::in_memory()?, Gate::new(100));
    let (handle, _running) = gated(&store, &gate).await;
    for committed in futures::future::join_all((0..50).map(|_| handle.commit_now())).await {
        committed?;
    }
    assert_eq!(gate.flushes(), 1);
    // Nothing is left.
    handle.commit_now().await?;
    assert_eq!(gate.flushes(), 1);
    Ok(())
}

#[tokio::test]
async fn who_asks_while_a_commit_is_running_waits_for_one_that_began_afterwards() -> Result<()> {
    let folder = TempDir::new()?;
    let (store, gate) = (Store::open(folder.path())?, Gate::new(0));
    let (handle, running) = gated(&store, &gate).await;
    let commit = |handle: FlowHandle| tokio::spawn(async move { handle.commit_now().await });
    let first = commit(handle.clone());
    until(|| gate.flushes() == 1).await;
    kept(&store).insert(&1, ())?;
    let second = commit(handle.clone());
    gate.open.add_permits(1);
    first.await??;
    until(|| gate.flushes() == 2).await;
    assert!(!second.is_finished());
    assert_eq!(count(&found_after_a_crash(folder.path()).0), 1);
    gate.open.add_permits(1);
    second.await??;
    assert_eq!(count(&found_after_a_crash(folder.path()).0), 2);
    gate.open.add_permits(1);
    handle.stop();
    running.await?
}

#[tokio::test]
async fn a_flow_that_is_dropped_says_so_to_those_who_wait_for_a_commit() -> Result<()> {
    let (store, gate) = (Store::in_memory()?, Gate::new(0));
    let (handle, running) = gated(&store, &gate).await;
    let waits = tokio::spawn({
        let handle = handle.clone();
        async move { handle.commit_now().await }
    });
    until(|| gate.flushes() == 1).await;
    running.abort();
    assert_eq!(waits.await?, Err(CommitError::Dropped));
    assert_eq!(handle.commit_now().await, Err(CommitError::Dropped));
    Ok(())
}

/// A sink that cannot be flushed.
#[derive(Debug, Clone)]
struct Full;

impl<T: Sync> Sink<T> for Full {
    const WAITS: bool = false;
    async fn flush(&self) -> Result<()> {
        Err("the disk is full".into())
    }
}

#[tokio::test]
async fn a_commit_that_fails_is_told_to_who_asked_and_ends_the_flow_with_its_error() -> Result<()> {
    for stops in [false, true] {
        let store = Store::in_memory()?;
        let flow = Flow::<()>::new().commit_every(NEVER);
        let (handle, told) = (flow.handle(), Arc::new(OnceLock::new()));
        let asks = {
            let (handle, told) = (handle.clone(), Arc::clone(&told));
            source(&ENDLESS).handle_async(move |n| {
                let (handle, told) = (handle.clone(), Arc::clone(&told));
                async move {
                    if n < 3 {
                        return Ok(Some((n, ())));
                    }
                    if stops {
                        handle.stop();
                    }
                    let committed = handle.commit_now().await;
                    told.set(committed.clone()).unwrap();
                    committed.map(|()| None)
                }
            })
        };
        let ended = flow.with(asks.sink(&kept(&store)).sink(&Full)).run(()).await;
        // Not the handler's, which followed from it.
        let error = typed(ended.unwrap_err());
        assert!(matches!(error, Error::Flush { .. }), "{error:?}");
        let Some(Err(told @ CommitError::Failed { reason })) = told.get() else { panic!("{told:?}") };
        assert!(reason.ends_with("the disk is full"), "{reason}");
        assert_eq!(handle.commit_now().await.as_ref(), Err(told));
        assert_eq!(count(&store), 0);
    }
    Ok(())
}

#[tokio::test]
async fn before_a_flow_runs_and_after_it_has_ended_there_is_nothing_to_commit() -> Result<()> {
    let store = Store::in_memory()?;
    let flow = keeping(&store, &ENDLESS, |handle, n| async move {
        if n == 3 {
            handle.stop();
        }
        Ok(())
    });
    let handle = flow.handle();
    assert_eq!(handle.commit_now().await, Err(CommitError::NotBegun));
    flow.run(()).await?;
    assert_eq!(handle.commit_now().await, Err(CommitError::Ended));
    handle.stop();
    assert_eq!(count(&store), 4);
    Ok(())
}

#[test]
fn a_flow_without_state_has_nothing_to_commit_and_needs_no_timer() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let flow = Flow::<()>::new();
    let handle = flow.handle();
    let asks = source(&slipstream::iter(0..3)).handle_async(move |_| {
        let handle = handle.clone();
        async move { handle.commit_now().await.map(|()| None::<()>) }
    });
    runtime.block_on(flow.with(asks).run(())).unwrap();
}

#[tokio::test]
async fn a_sink_that_asks_for_a_commit_in_its_flush_is_told_that_it_cannot() -> Result<()> {
    #[derive(Clone)]
    struct Asks(FlowHandle);
    impl<T: Sync> Sink<T> for Asks {
        const WAITS: bool = false;
        async fn flush(&self) -> Result<()> {
            Ok(self.0.commit_now().await?)
        }
    }
    let store = Store::in_memory()?;
    let flow = Flow::<()>::new();
    let asks = Asks(flow.handle());
    let keep = source(&ENDLESS).handle(|n| Some((n, ()))).sink(&kept(&store)).sink(&asks);
    let Error::Flush { cause, .. } = typed(flow.with(keep).run(()).await.unwrap_err()) else { panic!() };
    assert_eq!(cause.downcast_ref(), Some(&CommitError::InFlush));
    Ok(())
}

/// Asks for a commit whenever it is told of one.
#[derive(Clone)]
struct Asking(Arc<OnceLock<FlowHandle>>);

impl AsyncIterable for Asking {
    type Item = i64;
    fn open(&self) -> impl Stream<Item = i64> + Send + 'static {
        self.open_at(Positions::default()).map(|(_, n)| n)
    }
    fn identity(&self) -> Option<String> {
        Some("asking".to_owned())
    }
    fn seeks(&self) -> Option<Seeks<i64>> {
        Some(Seeks::new(self))
    }
}

impl Seekable for Asking {
    fn open_at(&self, _: Positions) -> impl Stream<Item = (Position, i64)> + Send + 'static {
        stream::iter([(Position::new(0, 0), 0)])
    }
    async fn committed(&self, _: &slipstream::Mark) -> Result<()> {
        Ok(self.0.get().unwrap().commit_now().await?)
    }
}

#[tokio::test]
async fn a_source_that_asks_for_a_commit_when_it_is_told_of_one_is_told_that_it_cannot() -> Result<()> {
    let asking = Asking(Arc::default());
    let flow = Flow::new().with(source(&asking).handle(drop)).store(&Store::in_memory()?);
    asking.0.set(flow.handle()).unwrap();
    let Error::Mark { cause, .. } = typed(crate::ends(flow.run(())).await.unwrap_err()) else { panic!() };
    assert_eq!(cause.downcast_ref(), Some(&CommitError::InFlush));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_in_the_middle_of_an_endless_source_commits_what_was_handled() -> Result<()> {
    let folder = TempDir::new()?;
    for lap in 0..5 {
        let store = Store::open(folder.path())?;
        let before = count(&store);
        let flow = keeping(&store, &ENDLESS, |_, _| async { Ok(()) });
        let handle = flow.handle();
        let running = tokio::spawn(flow.run(()));
        let cache = kept(&store);
        until(|| cache.contains_key(&(before + lap * 77)).unwrap()).await;
        handle.stop();
        running.await??;
        assert_in_step(&store).await;
    }
    Ok(())
}

#[tokio::test]
async fn a_handler_that_stops_its_flow_is_the_last_to_be_called() -> Result<()> {
    struct App {
        kept: Cache<i64, ()>,
        flow: OnceLock<FlowHandle>,
    }
    #[handle(ENDLESS, sink = app.kept)]
    async fn stops(app: &App, n: i64) -> (i64, ()) {
        if n == 1000 {
            app.flow.get().unwrap().stop();
            yield_now().await;
        }
        (n, ())
    }
    // Waits for its source, and for nothing else.
    #[handle(stream::pending::<u64>)]
    fn never(_: u64) {}
    let store = Store::in_memory()?;
    let app = Arc::new(App { kept: kept(&store), flow: OnceLock::new() });
    let flow = flow![stops, never];
    app.flow.set(flow.handle()).unwrap();
    flow.run(Arc::clone(&app)).await?;
    assert_eq!(count(&store), 1001);
    assert_in_step(&store).await;
    Ok(())
}

#[tokio::test]
async fn a_flow_that_is_stopped_before_it_runs_ends_at_once() -> Result<()> {
    let store = Store::in_memory()?;
    let flow = keeping(&store, &ENDLESS, |_, _| async { Ok(()) });
    flow.handle().stop();
    flow.run(()).await?;
    assert_eq!(count(&store), 0);
    Ok(())
}

#[tokio::test]
async fn a_handle_that_is_dropped_changes_nothing_and_one_that_is_kept_holds_no_store() -> Result<()> {
    let folder = TempDir::new()?;
    let store = Store::open(folder.path())?;
    let keep = source(&slipstream::iter(0..1000)).handle(|n| Some((n, ()))).sink(&kept(&store));
    let flow = Flow::<()>::new().with(keep);
    let handle = flow.handle();
    drop(handle.clone());
    flow.run(()).await?;
    drop(store);
    assert_eq!(count(&Store::open(folder.path())?), 1000);
    drop(handle);
    Ok(())
}
