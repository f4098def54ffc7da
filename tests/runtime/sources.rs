//! Sources with positions: where they begin, how they are steered, what they hear of commits.
use crate::{Log, ends, typed};
use futures::{Stream, StreamExt, stream};
use slipstream::{
    AsyncIterable, Control, Error, Flow, LostState, Mark, OnLostState, Position, Positions, Result, Seekable,
    Seeks, Store, replay, source,
};
use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tokio::sync::watch;

/// A log in memory whose message number n is n, which remembers what it hears of commits.
#[derive(Debug, Clone)]
struct Numbers {
    /// The length of each partition.
    lengths: Vec<i64>,
    /// So many at once are ready.
    burst: usize,
    control: Control,
    memory: Memory,
}

/// What of a log outlasts the process that reads it.
#[derive(Debug, Clone)]
struct Memory {
    start: Arc<Mutex<Positions>>,
    mark: watch::Sender<Option<Mark>>,
    is_broken: bool,
}

impl Numbers {
    fn new(lengths: impl Into<Vec<i64>>, memory: &Memory) -> Self {
        let (lengths, memory) = (lengths.into(), memory.clone());
        Numbers { lengths, burst: usize::MAX, control: Control::default(), memory }
    }
}

impl Memory {
    fn new() -> Self {
        Memory { start: Arc::default(), mark: watch::Sender::new(None), is_broken: false }
    }
    fn start(&self) -> MutexGuard<'_, Positions> {
        self.start.lock().unwrap()
    }
    /// Waits until a commit has said that partition 0 goes on at `next`.
    async fn stands_at(&self, next: i64) {
        let stands =
            |mark: &Option<Mark>| mark.as_ref().and_then(|mark| mark.positions.next(0)) == Some(next);
        let mut marks = self.mark.subscribe();
        let waited = tokio::time::timeout(Duration::from_secs(30), marks.wait_for(stands)).await;
        waited.unwrap_or_else(|_| panic!("never at {next}: {:?}", self.mark.borrow())).unwrap();
    }
}

impl AsyncIterable for Numbers {
    type Item = (i32, i64);
    fn open(&self) -> impl Stream<Item = (i32, i64)> + Send + 'static {
        self.open_at(Positions::default()).map(|(_, item)| item)
    }
    fn identity(&self) -> Option<String> {
        Some("numbers".into())
    }
    fn seeks(&self) -> Option<Seeks<(i32, i64)>> {
        Some(Seeks::new(self))
    }
}

impl Seekable for Numbers {
    fn open_at(&self, start: Positions) -> impl Stream<Item = (Position, (i32, i64))> + Send + 'static {
        let lengths = (0..).zip(self.lengths.clone());
        let all = lengths.flat_map(move |(partition, length)| {
            (start.next(partition).unwrap_or(0)..length).map(move |offset| (partition, offset))
        });
        let burst = self.burst;
        stream::iter(all).enumerate().then(move |(at, (partition, offset))| async move {
            if at > 0 && at % burst == 0 {
                tokio::task::yield_now().await;
            }
            (Position::new(partition, offset), (partition, offset))
        })
    }
    async fn start(&self) -> Result<Positions> {
        Ok(self.memory.start().clone())
    }
    fn control(&self) -> Option<&Control> {
        Some(&self.control)
    }
    async fn committed(&self, mark: &Mark) -> Result<()> {
        if self.memory.is_broken {
            return Err("the group is gone".into());
        }
        self.memory.mark.send_replace(Some(mark.clone()));
        Ok(())
    }
    async fn last_committed(&self) -> Result<Option<Mark>> {
        Ok(self.memory.mark.borrow().clone())
    }
}

/// Logs each message and calls `then` with its offset; where that answers false, the message never ends.
fn reading(
    store: &Store,
    numbers: &Numbers,
    log: &Log,
    then: impl Fn(i64) -> bool + Clone + Send + Sync + 'static,
) -> Flow<()> {
    let log = log.clone();
    let reads = source(numbers).handle_async(move |(partition, offset)| {
        let (log, then) = (log.clone(), then.clone());
        async move {
            log.add(format!("{partition}/{offset}"));
            if !then(offset) {
                std::future::pending::<()>().await;
            }
            Ok::<_, slipstream::BoxError>(None::<()>)
        }
    });
    Flow::new().with(reads).store(store).commit_every(Duration::from_millis(1))
}

async fn to_the_end(run: impl Future<Output = Result<()>>) -> Result<()> {
    tokio::time::timeout(Duration::from_secs(30), run).await.expect("it hangs")
}

async fn to_the_end_of(run: tokio::task::JoinHandle<Result<()>>) -> Result<()> {
    tokio::time::timeout(Duration::from_secs(30), run).await.expect("it hangs")?
}

impl Log {
    fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
    /// Waits until so many messages have begun.
    async fn has(&self, count: usize) {
        let began = std::time::Instant::now();
        while self.len() < count {
            assert!(began.elapsed() < Duration::from_secs(30), "it hangs at {:?}", self.take());
            tokio::task::yield_now().await;
        }
    }
}

fn lines(partition: i32, offsets: std::ops::Range<i64>) -> Vec<String> {
    offsets.map(|offset| format!("{partition}/{offset}")).collect()
}

// S6, S7.

#[tokio::test]
async fn after_a_seek_back_and_a_crash_it_goes_on_after_the_last_message_handled() -> Result<()> {
    let (store, memory, log) = (Store::in_memory()?, Memory::new(), Log::default());
    let numbers = Numbers::new([100], &memory);
    let control = numbers.control.clone();
    let seen = log.clone();
    let run = reading(&store, &numbers, &log, move |offset| {
        let is_second = seen.len() > 100;
        if offset == 99 && !is_second {
            control.seek(0, 50);
        }
        !(is_second && offset == 60)
    });
    let run = tokio::spawn(run.run(()));
    memory.stands_at(60).await;
    run.abort();
    assert!(run.await.is_err());
    assert_eq!(log.take(), [lines(0, 0..100), lines(0, 50..61)].concat());
    to_the_end(reading(&store, &Numbers::new([100], &memory), &log, |_| true).run(())).await?;
    assert_eq!(log.take(), lines(0, 60..100));
    Ok(())
}

#[tokio::test]
async fn a_seek_forward_moves_no_position_until_the_message_is_handled() -> Result<()> {
    for burst in [1, 2, usize::MAX] {
        let (store, memory, log) = (Store::in_memory()?, Memory::new(), Log::default());
        let mut numbers = Numbers::new([200], &memory);
        numbers.burst = burst;
        let control = numbers.control.clone();
        let run = reading(&store, &numbers, &log, move |offset| {
            if offset == 10 {
                control.seek(0, 100);
            }
            offset != 100
        });
        let run = tokio::spawn(run.run(()));
        memory.stands_at(11).await;
        run.abort();
        assert!(run.await.is_err());
        log.take();
        to_the_end(reading(&store, &Numbers::new([13], &memory), &log, |_| true).run(())).await?;
        assert_eq!(log.take(), lines(0, 11..13), "in bursts of {burst}");
    }
    Ok(())
}

#[tokio::test]
async fn a_file_is_sought_by_line_and_goes_on_after_the_last_line_handled() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("lines");
    fs::write(&path, (0..100).map(|n| format!("{n}\n")).collect::<String>())?;
    let (store, log) = (Store::in_memory()?, Log::default());
    let reading = |lines: &slipstream::Replay| {
        let (lines, log) = (lines.clone(), log.clone());
        let handler = source(&lines.clone()).handle(move |line: slipstream::Line| {
            let line = line?;
            let is_second = log.len() >= 100;
            log.add(&line);
            match &*line {
                "99" if !is_second => lines.seek(50),
                // As a crash: neither this line nor those before it since the last commit have been.
                "60" if is_second => return Err("killed".into()),
                _ => {}
            }
            Ok::<_, slipstream::BoxError>(None::<()>)
        });
        Flow::<()>::new().with(handler).store(&store)
    };
    let lines = replay(&path);
    to_the_end(reading(&lines).run(())).await.unwrap_err();
    assert_eq!(lines.position(), 60);
    assert_eq!(log.take().last().map(String::as_str), Some("60"));
    let lines = replay(&path);
    assert_eq!(lines.position(), 0, "no flow has read it");
    lines.seek(98);
    lines.seek(97);
    to_the_end(reading(&lines).run(())).await?;
    assert_eq!(log.take()[..3], ["97", "98", "99"], "the later of two seeks before the start");
    Ok(())
}

// K3, K5.

/// What a handler does at message 10.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    Pause,
    Seek,
    Resume,
}

#[tokio::test]
async fn after_a_pause_a_seek_and_a_resume_in_any_order_the_next_message_is_the_one_sought() -> Result<()> {
    use Step::{Pause, Resume, Seek};
    let orders = [
        [Pause, Seek, Resume],
        [Pause, Resume, Seek],
        [Seek, Pause, Resume],
        [Seek, Resume, Pause],
        [Resume, Pause, Seek],
        [Resume, Seek, Pause],
    ];
    for (order, burst, to) in orders.into_iter().flat_map(|order| {
        [1, 2, 1000].into_iter().flat_map(move |burst| [(order, burst, 3), (order, burst, 1500)])
    }) {
        let (store, memory, log) = (Store::in_memory()?, Memory::new(), Log::default());
        let mut numbers = Numbers::new([2000], &memory);
        numbers.burst = burst;
        let (control, seen) = (numbers.control.clone(), log.clone());
        let flow = reading(&store, &numbers, &log, move |offset| {
            if offset == 10 && seen.len() == 11 {
                for step in order {
                    match step {
                        Pause => control.pause(),
                        Resume => control.resume(),
                        Seek => control.seek(0, to),
                    }
                }
            }
            seen.len() < 20
        });
        let control = numbers.control.clone();
        let run = tokio::spawn(flow.run(()));
        let paused =
            order.iter().rposition(|step| *step == Pause) > order.iter().rposition(|step| *step == Resume);
        if paused {
            memory.stands_at(11).await;
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            assert_eq!(log.len(), 11, "{order:?}, in bursts of {burst}: paused");
            control.resume();
        }
        log.has(20).await;
        run.abort();
        assert!(run.await.is_err());
        let expected = [lines(0, 0..11), lines(0, to..to + 9)].concat();
        assert_eq!(log.take(), expected, "{order:?}, in bursts of {burst}");
    }
    Ok(())
}

#[tokio::test]
async fn paused_at_the_tenth_of_a_thousand_it_goes_on_with_the_eleventh() -> Result<()> {
    let (store, memory, log) = (Store::in_memory()?, Memory::new(), Log::default());
    let numbers = Numbers::new([1000], &memory);
    let control = numbers.control.clone();
    let flow = reading(&store, &numbers, &log, move |offset| {
        if offset == 9 {
            control.pause();
        }
        true
    });
    let run = tokio::spawn(flow.run(()));
    memory.stands_at(10).await;
    assert_eq!(log.len(), 10);
    assert!(numbers.control.is_paused());
    assert_eq!(numbers.control.positions().next(0), Some(10));
    numbers.control.resume();
    to_the_end_of(run).await?;
    assert_eq!(log.take(), lines(0, 0..1000));
    Ok(())
}

#[tokio::test]
async fn a_source_that_has_nothing_is_woken_by_a_seek() -> Result<()> {
    let (store, memory, log) = (Store::in_memory()?, Memory::new(), Log::default());
    let waiting = Waiting(Numbers::new([5], &memory));
    let flow = Flow::<()>::new().with({
        let log = log.clone();
        source(&waiting).handle(move |(_, offset)| {
            log.add(offset);
            None::<()>
        })
    });
    let run = tokio::spawn(flow.store(&store).commit_every(Duration::from_millis(1)).run(()));
    memory.stands_at(5).await;
    waiting.0.control.seek(0, 1);
    waiting.0.control.seek(0, 2);
    log.has(8).await;
    run.abort();
    assert_eq!(log.take(), ["0", "1", "2", "3", "4", "2", "3", "4"]);
    Ok(())
}

/// The same log, which waits for more at its end.
#[derive(Debug, Clone)]
struct Waiting(Numbers);

impl AsyncIterable for Waiting {
    type Item = (i32, i64);
    fn open(&self) -> impl Stream<Item = (i32, i64)> + Send + 'static {
        self.0.open()
    }
    fn identity(&self) -> Option<String> {
        self.0.identity()
    }
    fn seeks(&self) -> Option<Seeks<(i32, i64)>> {
        Some(Seeks::new(self))
    }
}

impl Seekable for Waiting {
    fn open_at(&self, start: Positions) -> impl Stream<Item = (Position, (i32, i64))> + Send + 'static {
        self.0.open_at(start).chain(stream::pending())
    }
    fn control(&self) -> Option<&Control> {
        self.0.control()
    }
    async fn committed(&self, mark: &Mark) -> Result<()> {
        self.0.committed(mark).await
    }
}

// Where a source begins.

#[tokio::test]
async fn the_start_is_stored_before_the_first_message_and_asked_once() -> Result<()> {
    let (store, memory, log) = (Store::in_memory()?, Memory::new(), Log::default());
    *memory.start() = Positions::from_iter([(0, 5), (1, 7)]);
    let dropped = reading(&store, &Numbers::new([10, 10], &memory), &log, |_| false).run(());
    // The flow is dropped while its first message is in hand.
    let dropped = tokio::spawn(dropped);
    log.has(1).await;
    dropped.abort();
    assert!(dropped.await.is_err());
    assert_eq!(log.take(), ["0/5"]);
    // Until then the end has moved, and a partition has come.
    *memory.start() = Positions::from_iter([(0, 10), (1, 10), (2, 10)]);
    to_the_end(reading(&store, &Numbers::new([10, 10, 2], &memory), &log, |_| true).run(())).await?;
    assert_eq!(log.take(), [lines(0, 5..10), lines(1, 7..10), lines(2, 0..2)].concat());
    Ok(())
}

// What a source hears.

#[tokio::test]
async fn a_source_hears_of_each_commit_with_the_flow_the_store_and_where_it_stands() -> Result<()> {
    let (store, memory, log) = (Store::in_memory()?, Memory::new(), Log::default());
    let flow = reading(&store, &Numbers::new([3, 4], &memory), &log, |_| true);
    to_the_end(flow.named("sky").run(())).await?;
    let mark = memory.mark.borrow().clone().unwrap();
    assert_eq!(mark.flow.as_deref(), Some("sky"));
    assert_eq!((mark.store, mark.epoch), (store.id().to_string(), store.epoch()));
    assert_eq!(mark.positions, Positions::from_iter([(0, 3), (1, 4)]));
    Ok(())
}

#[tokio::test]
async fn a_source_that_cannot_take_note_of_a_commit_ends_the_flow() -> Result<()> {
    let store = Store::in_memory()?;
    let memory = Memory { is_broken: true, ..Memory::new() };
    let run = reading(&store, &Numbers::new([3], &memory), &Log::default(), |_| true).run(());
    let error = typed(to_the_end(run).await.unwrap_err());
    assert!(matches!(error, Error::Mark { .. }), "{error:?}");
    assert!(
        format!("{error:?}").ends_with("could not take note of a commit: the group is gone"),
        "{error:?}"
    );
    // The commit is made all the same.
    let log = Log::default();
    to_the_end(reading(&store, &Numbers::new([3], &Memory::new()), &log, |_| true).run(())).await?;
    assert_eq!(log.take(), [""; 0]);
    Ok(())
}

// S11.

/// Reads partition 0 up to `length` into the store at `path`: what was handled, or why it did not start.
async fn read_into(
    path: &Path,
    memory: &Memory,
    length: i64,
    set_up: impl FnOnce(Flow<()>) -> Flow<()>,
) -> Result<Vec<String>> {
    let (store, log) = (Store::open(path)?, Log::default());
    let flow = reading(&store, &Numbers::new([length], memory), &log, |_| true);
    to_the_end(set_up(flow).run(())).await?;
    Ok(log.take())
}

/// The cause of the refusal to start.
fn lost(ended: Result<Vec<String>>) -> (LostState, String) {
    let error = typed(ended.unwrap_err());
    let text = format!("{error:?}");
    let Error::LostState { cause } = error else { panic!("{text}") };
    for choice in ["OnLostState::Rebuild", "OnLostState::Accept"] {
        assert!(text.contains(choice), "{text}");
    }
    (*cause.downcast().unwrap(), text)
}

fn sky(flow: Flow<()>) -> Flow<()> {
    flow.named("sky")
}

#[tokio::test]
async fn a_store_that_is_gone_is_named_at_the_start_and_rebuilt_or_accepted_on_request() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
    let memory = Memory::new();
    read_into(&first, &memory, 5, sky).await?;
    let heard = memory.mark.borrow().clone();
    // Twice: refusing changes nothing.
    for _ in 0..2 {
        let (lost, text) = lost(read_into(&second, &memory, 7, sky).await);
        assert!(matches!(lost, LostState::AnotherStore { .. }), "{lost:?}");
        let there = Store::open(&second)?.id().to_string();
        for part in [&there, &heard.as_ref().unwrap().store, second.to_str().unwrap()] {
            assert!(text.contains(part), "`{part}` is not in {text}");
        }
        assert_eq!(*memory.mark.borrow(), heard);
    }
    for (choice, handled) in [(OnLostState::Accept, 5..7), (OnLostState::Rebuild, 0..7)] {
        let store = folder.path().join(format!("{choice:?}"));
        memory.mark.send_replace(heard.clone());
        let read = read_into(&store, &memory, 7, |flow| sky(flow).on_lost_state(choice)).await?;
        assert_eq!(read, lines(0, handled), "{choice:?}");
        // From now on it is the store.
        assert_eq!(read_into(&store, &memory, 8, sky).await?, lines(0, 7..8));
    }
    Ok(())
}

#[tokio::test]
async fn an_older_copy_of_a_store_is_named_at_the_start() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let [store, copy] = ["store", "copy"].map(|name| folder.path().join(name));
    let memory = Memory::new();
    read_into(&store, &memory, 5, sky).await?;
    copy_directory(&store, &copy);
    read_into(&store, &memory, 8, sky).await?;
    let heard = memory.mark.borrow().clone();
    let (lost, text) = lost(read_into(&copy, &memory, 10, sky).await);
    let LostState::OlderStore { heard_epoch, epoch, .. } = lost else { panic!("{lost:?}") };
    assert!(heard_epoch > epoch && text.contains(copy.to_str().unwrap()), "{text}");
    for (choice, handled) in [
        (Some(OnLostState::Accept), 8..10),
        (Some(OnLostState::Rebuild), 5..10),
        // Without sync a power loss does that.
        (None, 5..10),
    ] {
        let again = folder.path().join(format!("{choice:?}"));
        copy_directory(&copy, &again);
        memory.mark.send_replace(heard.clone());
        let set_up = |flow| match choice {
            Some(choice) => sky(flow).on_lost_state(choice),
            None => sky(flow).sync(false),
        };
        assert_eq!(read_into(&again, &memory, 10, set_up).await?, lines(0, handled), "{choice:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_source_or_a_store_of_another_flow_is_named_at_the_start() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let [sky_store, sea_store] = ["sky", "sea"].map(|name| folder.path().join(name));
    let sea = |flow: Flow<()>| flow.named("sea");
    let memory = Memory::new();
    read_into(&sky_store, &memory, 5, sky).await?;
    let heard = memory.mark.borrow().clone();
    let (found, text) = lost(read_into(&sea_store, &memory, 7, sea).await);
    assert!(matches!(found, LostState::AnotherFlow { .. }), "{found:?}");
    assert!(text.contains("flow `sky`") && text.contains("flow `sea`"), "{text}");
    let (found, text) = lost(read_into(&sky_store, &Memory::new(), 7, sea).await);
    assert!(matches!(found, LostState::AnotherOwner { .. }), "{found:?}");
    assert!(text.contains("flow `sky`") && text.contains("flow `sea`"), "{text}");
    // A flow without a name neither owns a store nor asks who does.
    assert_eq!(read_into(&sky_store, &memory, 6, |flow| flow).await?, lines(0, 5..6));
    memory.mark.send_replace(heard);
    let accepts = |flow| sea(flow).on_lost_state(OnLostState::Accept);
    assert_eq!(read_into(&sea_store, &memory, 7, accepts).await?, lines(0, 5..7));
    let rebuilds = |flow| sea(flow).on_lost_state(OnLostState::Rebuild);
    assert_eq!(read_into(&sky_store, &Memory::new(), 7, rebuilds).await?, lines(0, 6..7));
    // It is the other flow's store now.
    lost(read_into(&sky_store, &Memory::new(), 7, sky).await);
    Ok(())
}

#[tokio::test]
async fn a_store_in_memory_goes_on_where_the_source_was() -> Result<()> {
    let memory = Memory::new();
    for (length, handled) in [(5, 0..5), (7, 5..7)] {
        let (store, log) = (Store::in_memory()?, Log::default());
        let flow = reading(&store, &Numbers::new([length], &memory), &log, |_| true);
        to_the_end(flow.named("sky").run(())).await?;
        assert_eq!(log.take(), lines(0, handled));
    }
    Ok(())
}

fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

// The end of a source.

/// Partitions side by side, which take a while to say that they have ended, or do so at once.
#[derive(Clone)]
struct Ending {
    numbers: Numbers,
    workers: usize,
    after: Duration,
}

impl AsyncIterable for Ending {
    type Item = (i32, i64);
    fn open(&self) -> impl Stream<Item = (i32, i64)> + Send + 'static {
        self.numbers.open()
    }
    fn identity(&self) -> Option<String> {
        self.numbers.identity()
    }
    fn seeks(&self) -> Option<Seeks<(i32, i64)>> {
        Some(Seeks::new(self))
    }
}

impl Seekable for Ending {
    fn open_at(&self, start: Positions) -> impl Stream<Item = (Position, (i32, i64))> + Send + 'static {
        let wait = (!self.after.is_zero()).then_some(self.after);
        let end = stream::iter(wait).then(tokio::time::sleep);
        self.numbers.open_at(start).chain(end.filter_map(|()| async { None }))
    }
    fn control(&self) -> Option<&Control> {
        self.numbers.control()
    }
    fn concurrency(&self) -> usize {
        self.workers
    }
}

fn ending(workers: usize, length: i64) -> (Ending, Control) {
    let numbers = Numbers::new([length], &Memory::new());
    let control = numbers.control.clone();
    (Ending { numbers, workers, after: Duration::from_millis(20) }, control)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_message_may_seek_back() -> Result<()> {
    for workers in [1, 2] {
        let (store, log) = (Store::in_memory()?, Log::default());
        let (mut numbers, control) = ending(workers, 3);
        numbers.after = Duration::ZERO;
        let seen = log.clone();
        let reads = source(&numbers).handle(move |(_, offset)| {
            seen.add(offset);
            if seen.len() == 3 {
                control.seek(0, 1);
            }
        });
        ends(Flow::new().with(reads).store(&store).run(())).await?;
        assert_eq!(log.take(), ["0", "1", "2", "1", "2"], "with {workers}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_ends_while_it_is_paused_has_not_ended() -> Result<()> {
    for workers in [1, 2] {
        let (store, log) = (Store::in_memory()?, Log::default());
        let (numbers, control) = ending(workers, 3);
        let reading = || {
            let log = log.clone();
            let pairs = source(&numbers).pipe(|items| items.chunks(2));
            Flow::<()>::new().with(pairs.handle(move |pair| log.add(format!("{pair:?}")))).store(&store)
        };
        let run = tokio::spawn(reading().run(()));
        log.has(1).await;
        control.pause();
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(log.take(), ["[(0, 0), (0, 1)]"], "with {workers}: what a pipe has left is handed out");
        assert!(!run.is_finished());
        control.seek(0, 1);
        control.resume();
        to_the_end_of(run).await?;
        assert_eq!(log.take(), ["[(0, 1), (0, 2)]"], "with {workers}");
        // A stop ends it all the same.
        let flow = reading();
        let handle = flow.handle();
        control.pause();
        let run = tokio::spawn(flow.run(()));
        tokio::time::sleep(Duration::from_millis(50)).await;
        handle.stop();
        to_the_end_of(run).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn however_it_is_sought_and_paused_each_partition_is_read_in_order_and_to_its_end() -> Result<()> {
    for (workers, burst) in [(1, 1), (1, 1000), (3, 1), (3, 5), (4, 200)] {
        let store = Store::in_memory()?;
        let (mut numbers, control) = ending(workers, 0);
        (numbers.numbers.lengths, numbers.numbers.burst) = (vec![300; 4], burst);
        // What was handled, or sought, in each partition.
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (sees, seeks) = (Arc::clone(&seen), control.clone());
        let reads = source(&numbers).handle_async(move |(partition, offset)| {
            let (sees, seeks) = (Arc::clone(&sees), seeks.clone());
            async move {
                if offset % 7 == 0 {
                    tokio::task::yield_now().await;
                }
                let mut sees = sees.lock().unwrap();
                sees.push((partition, offset, false));
                if offset % 97 == 13 && sees.len() < 3000 {
                    seeks.seek(partition, offset - 10);
                    sees.push((partition, offset - 10, true));
                }
            }
        });
        let pausing = tokio::spawn(async move {
            loop {
                control.pause();
                tokio::time::sleep(Duration::from_millis(1)).await;
                control.resume();
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        });
        ends(Flow::new().with(reads).store(&store).run(())).await?;
        pausing.abort();
        for partition in 0..4 {
            let mut next = 0;
            for (_, offset, is_sought) in seen.lock().unwrap().iter().filter(|(of, ..)| *of == partition) {
                if *is_sought {
                    next = *offset;
                } else {
                    assert_eq!(*offset, next, "partition {partition}, {workers} workers, bursts of {burst}");
                    next += 1;
                }
            }
            assert_eq!(next, 300, "partition {partition}, {workers} workers, bursts of {burst}");
        }
    }
    Ok(())
}
