//! Commits that fail, by the seam through which the store writes them.
mod members;

use super::*;
use crate::{
    AsyncIterable, Cache, Channel, Position, Positions, Seekable, Seeks, Store, StoreError, source,
    stop::Stop, transaction::Transaction,
};
use futures::{Stream, stream};

/// Three partitions, by turns.
#[derive(Debug, Clone)]
struct Log {
    name: &'static str,
    concurrency: usize,
}

const LOG: Log = Log { name: "log", concurrency: 1 };
/// Its partitions are handled at the same time.
const WIDE: Log = Log { name: "wide", concurrency: 3 };

const LENGTH: i64 = 60;

impl AsyncIterable for Log {
    type Item = i32;
    fn open(&self) -> impl Stream<Item = i32> + Send + 'static {
        stream::empty()
    }
    fn identity(&self) -> Option<String> {
        Some(self.name.into())
    }
    fn seeks(&self) -> Option<Seeks<i32>> {
        Some(Seeks::new(self))
    }
}

impl Seekable for Log {
    fn open_at(&self, start: Positions) -> impl Stream<Item = (Position, i32)> + Send + 'static {
        let all = (0..LENGTH).flat_map(|offset| [0, 1, 2].map(|partition| (partition, offset)));
        let left = all.filter(move |(partition, offset)| *offset >= start.next(*partition).unwrap_or(0));
        stream::iter(left.map(|(partition, offset)| (Position::new(partition, offset), partition)))
    }
    fn concurrency(&self) -> usize {
        self.concurrency
    }
}

async fn run(store: &Store) -> Result<(), BoxError> {
    let counts: Cache<i32, i64> = store.cache("counts")?;
    let counted = counts.clone();
    let count = move |partition| Ok::<_, StoreError>((partition, counted.get(&partition)?.unwrap_or(0) + 1));
    let flow = Flow::<()>::new().with(source(&LOG).handle(count).sink(&counts));
    // The committer takes its turn when the epoch is at its bound: a few messages at a time.
    flow.commit_every(Duration::from_secs(3600)).epoch_bytes(500).sync(false).run(()).await
}

/// How many messages of each partition the state has counted; that is where the partitions stand.
fn counted(store: &Store) -> Vec<i64> {
    let counts: Cache<i32, i64> = store.cache("counts").unwrap();
    let positions = store.positions("log").unwrap();
    let counts: Vec<_> = (0..3).map(|partition| counts.get(&partition).unwrap().unwrap_or(0)).collect();
    let next: Vec<_> = (0..3).map(|partition| positions.next(partition).unwrap_or(0)).collect();
    assert_eq!(counts, next, "state and positions are out of step");
    counts
}

#[tokio::test]
async fn whichever_write_fails_neither_state_nor_positions_move() {
    let mut before = 0;
    for write in 1.. {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        store.fail_at(write);
        let ended = run(&store).await;
        let shown = counted(&store);
        drop(store);
        // What the caches showed after the failure is what a restart finds.
        let store = Store::open(folder.path()).unwrap();
        assert_eq!(counted(&store), shown);
        let Err(error) = ended else {
            assert_eq!(shown, [LENGTH; 3]);
            assert!(write > 5, "only {write} writes: the test no longer commits in between");
            return;
        };
        let cause = match error.downcast_ref() {
            Some(Error::Commit { cause }) => cause,
            other => panic!("{other:?}"),
        };
        assert!(matches!(cause.downcast_ref(), Some(StoreError::NoSpace { .. })), "{cause}");
        let handled = shown.iter().sum::<i64>();
        assert!(handled >= before && handled < 3 * LENGTH, "at write {write}: {handled}");
        before = handled;
        // There is space again: the restart goes on, and nothing is lost or counted twice.
        run(&store).await.unwrap();
        assert_eq!(counted(&store), [LENGTH; 3]);
    }
}

/// Counts the messages of two sources in all ways that a flow has: by key and position, by `update` of one
/// key for all, in the handlers of a channel, and in those of a cache's changes.
async fn run_in_all_ways(store: &Store) -> Result<(), BoxError> {
    let totals: Cache<String, i64> = store.cache("totals")?;
    let gifts = Channel::new();
    let one_more = |count: Option<i64>| count.unwrap_or(0) + 1;
    let count = |log: &Log| {
        let (counts, totals, gifts, name) = (counts(store), totals.clone(), gifts.clone(), log.name);
        let counted = counts.clone();
        let count = source(log).handle_async(move |partition: i32| {
            let (counts, totals, gifts) = (counted.clone(), totals.clone(), gifts.clone());
            async move {
                totals.update("handled", one_more)?;
                gifts.send(partition).await?;
                // Another has changed it by then.
                tokio::task::yield_now().await;
                let key = (name.to_owned(), partition);
                let count = one_more(counts.get(&key)?);
                Ok::<_, BoxError>(Some((key, count)))
            }
        });
        count.sink(&counts)
    };
    let hear = {
        let totals = totals.clone();
        source(&gifts).handle(move |_: i32| totals.update("given", one_more).map(|_| None::<()>))
    };
    let see = {
        let counts: Cache<String, i64> = store.cache("changes")?;
        source(&totals).handle(move |(key, _)| counts.update(&key, one_more).map(|_| None::<()>))
    };
    let flow = Flow::<()>::new().with(count(&LOG)).with(count(&WIDE)).with(hear).with(see);
    flow.commit_every(Duration::from_secs(3600)).epoch_bytes(20_000).sync(false).run(()).await
}

fn counts(store: &Store) -> Cache<(String, i32), i64> {
    store.cache("counts").unwrap()
}

/// How many messages are counted, each way, and that is where the partitions stand.
fn counted_in_all_ways(store: &Store) -> i64 {
    let mut all = 0;
    for (log, partition) in [LOG.name, WIDE.name].iter().flat_map(|log| [0, 1, 2].map(|part| (*log, part))) {
        let next = store.positions(log).unwrap().next(partition);
        assert_eq!(counts(store).get(&(log, partition)).unwrap(), next, "{log}, partition {partition}");
        all += next.unwrap_or(0);
    }
    for cache in ["totals", "changes"] {
        let totals: Cache<String, i64> = store.cache(cache).unwrap();
        let totals: Vec<_> = totals.iter().collect::<Result<_, _>>().unwrap();
        let expected = ["given", "handled"].map(|key| (key.to_owned(), all));
        assert_eq!(totals, if all == 0 { vec![] } else { expected.to_vec() }, "{cache}");
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whichever_write_fails_nothing_moves_that_channels_changes_and_several_partitions_have_made() {
    for write in 1.. {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        store.fail_at(write);
        let ended = run_in_all_ways(&store).await;
        let shown = counted_in_all_ways(&store);
        drop(store);
        let store = Store::open(folder.path()).unwrap();
        assert_eq!(counted_in_all_ways(&store), shown);
        let Err(error) = ended else {
            assert_eq!(shown, 6 * LENGTH);
            assert!(write > 5, "only {write} writes: the test no longer commits in between");
            return;
        };
        // Not that of a message which could not be published any more.
        assert!(matches!(error.downcast_ref(), Some(Error::Commit { .. })), "at write {write}: {error:?}");
        assert_eq!(shown > 0, write > 1, "at write {write}");
        assert!(shown < 6 * LENGTH, "at write {write}");
        run_in_all_ways(&store).await.unwrap();
        assert_eq!(counted_in_all_ways(&store), 6 * LENGTH);
    }
}

// Both were one notification: the committer took it for the store alone, and slept an interval while no
// message could begin.
#[tokio::test(start_paused = true)]
async fn an_epoch_that_is_full_at_its_first_message_is_committed_at_once() {
    let store = Store::in_memory().unwrap();
    let every = Duration::from_secs(3600);
    let settings = Settings { every, memory_bytes: 0, ..Settings::default() };
    let commit = Commit::new(settings, None, Vec::new()).unwrap();
    let mut transaction = Transaction::default();
    let staged = transaction.staged.insert(crate::store::Staged::new(&store));
    staged.change(&store, |rows| rows.set(&[0, 0, 0, 1], Some(&[]))).unwrap();
    commit.publish(&mut transaction, None).unwrap();
    assert!(commit.is_full());
    let (_done, ended) = oneshot::channel();
    let stop = Stop::default();
    let began = tokio::time::Instant::now();
    tokio::select! {
        () = commit.room(&stop) => {}
        kept = commit.keep(&[], ended) => panic!("{kept:?}"),
    }
    assert!(began.elapsed() < every);
}

#[tokio::test]
async fn who_asks_for_a_commit_that_cannot_be_written_is_told_and_nothing_of_it_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let counts: Cache<i32, i64> = store.cache("counts").unwrap();
    store.fail_at(2);
    let flow = Flow::<()>::new().commit_every(Duration::from_secs(3600));
    let handle = flow.handle();
    let cache = counts.clone();
    let count = source(&LOG).handle_async(move |partition| {
        let (handle, counts) = (handle.clone(), cache.clone());
        async move {
            let count = counts.get(&partition)?.unwrap_or(0);
            if partition == 0 {
                // First those of the messages before, then nothing any more.
                let committed = handle.commit_now().await;
                assert_eq!(committed.is_ok(), count < 2, "{count}: {committed:?}");
            }
            Ok::<_, StoreError>((partition, count + 1))
        }
    });
    let error = flow.with(count.sink(&counts)).run(()).await.unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(Error::Commit { .. })), "{error:?}");
    assert_eq!(counted(&store), [1; 3]);
    drop((store, counts));
    assert_eq!(counted(&Store::open(folder.path()).unwrap()), [1; 3]);
}
