//! What a flow goes on with after a stop or a failure: no message twice, none left out, and state that it can
//! still read.
use crate::{Log, typed};
use futures::{Stream, StreamExt, stream};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use slipstream::{
    AsyncIterable, Cache, Control, Error, Flow, Mark, OnError, Position, Positions, Result, Seekable, Seeks,
    Store, StoreError, source,
};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::Barrier;

/// A log in memory that remembers the last commit it was told of.
#[derive(Debug, Clone)]
struct Numbers {
    partitions: i32,
    length: i64,
    control: Control,
    mark: Arc<Mutex<Option<Mark>>>,
}

impl Numbers {
    fn new(partitions: i32, length: i64) -> Self {
        Numbers { partitions, length, control: Control::default(), mark: Arc::default() }
    }
    /// How many messages are not yet committed.
    fn lag(&self) -> i64 {
        let committed = self.committed_positions();
        (0..self.partitions).map(|partition| self.length - committed.next(partition).unwrap_or(0)).sum()
    }
    fn committed_positions(&self) -> Positions {
        self.mark.lock().unwrap().as_ref().map_or_else(Positions::default, |mark| mark.positions.clone())
    }
}

impl AsyncIterable for Numbers {
    type Item = (i32, i64);
    fn open(&self) -> impl Stream<Item = (i32, i64)> + Send + 'static {
        self.open_at(Positions::default()).map(|(_, item)| item)
    }
    fn identity(&self) -> Option<String> {
        Some("numbers".to_owned())
    }
    fn seeks(&self) -> Option<Seeks<(i32, i64)>> {
        Some(Seeks::new(self))
    }
}

impl Seekable for Numbers {
    fn open_at(&self, start: Positions) -> impl Stream<Item = (Position, (i32, i64))> + Send + 'static {
        let Numbers { partitions, length, .. } = *self;
        let all = (0..length).flat_map(move |offset| (0..partitions).map(move |part| (part, offset)));
        let left = all.filter(move |(partition, offset)| *offset >= start.next(*partition).unwrap_or(0));
        stream::iter(left.map(|(partition, offset)| (Position::new(partition, offset), (partition, offset))))
    }
    fn control(&self) -> Option<&Control> {
        Some(&self.control)
    }
    fn concurrency(&self) -> usize {
        self.partitions.unsigned_abs() as usize
    }
    async fn committed(&self, mark: &Mark) -> Result<()> {
        *self.mark.lock().unwrap() = Some(mark.clone());
        Ok(())
    }
}

#[tokio::test]
async fn three_messages_handled_and_stopped_are_three_committed_and_none_comes_again() -> Result<()> {
    let (store, numbers, log) = (Store::in_memory()?, Numbers::new(1, 3), Log::default());
    let longer = Numbers { length: 100, ..numbers.clone() };
    // The third message stops a flow that has more to read.
    for (source_of, handled) in [(&longer, &["0", "1", "2"][..]), (&numbers, &[]), (&longer, &["3"])] {
        let flow = Flow::<()>::new().store(&store).commit_every(Duration::from_secs(3600));
        let (handle, seen) = (flow.handle(), log.clone());
        let counts = source(source_of).handle(move |(_, offset): (i32, i64)| {
            seen.add(offset);
            if offset >= 2 {
                handle.stop();
            }
            None::<()>
        });
        flow.with(counts).run(()).await?;
        assert_eq!(log.take(), handled);
        let next = numbers.control.positions().next(0);
        assert_eq!(next, numbers.committed_positions().next(0));
        if next == Some(3) {
            assert_eq!(numbers.lag(), 0);
        }
    }
    assert_eq!(numbers.committed_positions().next(0), Some(4));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_fails_is_not_passed_in_its_partition_while_others_are_in_hand() -> Result<()> {
    for concurrency in [1, 3] {
        let (store, log) = (Store::in_memory()?, Log::default());
        let numbers = Numbers::new(concurrency, 3);
        let handled: Cache<(i32, i64), ()> = store.cache("handled")?;
        let flow = |fails: bool| {
            let (log, met) = (log.clone(), Arc::new(Barrier::new(concurrency.unsigned_abs() as usize)));
            let counts = source(&numbers).handle_async(move |at: (i32, i64)| {
                let (log, met) = (log.clone(), Arc::clone(&met));
                async move {
                    log.add(format!("{}/{}", at.0, at.1));
                    if fails && at.1 == 1 {
                        // All partitions are at it.
                        met.wait().await;
                        if at.0 == 0 {
                            return Err("as it was told".into());
                        }
                    }
                    Ok::<_, slipstream::BoxError>(Some((at, ())))
                }
            });
            Flow::<()>::new().with(counts.sink(&handled))
        };
        let error = typed(flow(true).run(()).await.unwrap_err());
        assert!(matches!(error, Error::Handler { .. }), "{error:?}");
        let failed = log.take();
        assert!(!failed.contains(&"0/2".to_owned()), "{failed:?}");
        assert_eq!(numbers.committed_positions().next(0), Some(1));
        let before = handled.keys().collect::<Result<Vec<_>, _>>()?;
        flow(false).run(()).await?;
        let mut all = before.iter().map(|at| format!("{}/{}", at.0, at.1)).collect::<Vec<_>>();
        let again = log.take();
        assert!(again.contains(&"0/1".to_owned()), "{again:?}");
        all.extend(again);
        all.sort();
        let expected = (0..concurrency).flat_map(|part| (0..3).map(move |at| format!("{part}/{at}")));
        assert_eq!(all, expected.collect::<Vec<_>>(), "each was handled to its end once");
        assert_eq!(numbers.lag(), 0);
    }
    Ok(())
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct First {
    sum: i64,
}
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct WithMore {
    sum: i64,
    note: Option<String>,
}
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct WithText {
    sum: String,
}

/// A version of a program: adds the offsets up in values of its own type.
async fn version<V>(store: &Store, length: i64, add: fn(Option<V>, i64) -> V) -> Result<Numbers>
where
    V: Serialize + DeserializeOwned + Clone + Send + Sync + 'static,
{
    let (sums, numbers) = (store.cache::<i32, V>("sums")?, Numbers::new(1, length));
    let known = sums.clone();
    let adds = source(&numbers).handle(move |(partition, offset): (i32, i64)| {
        Ok::<_, StoreError>((partition, add(known.get(&partition)?, offset)))
    });
    Flow::<()>::new().with(adds.sink(&sums)).run(()).await?;
    Ok(numbers)
}

#[tokio::test]
async fn a_later_version_reads_the_state_with_a_field_more_and_stops_where_it_cannot() -> Result<()> {
    let store = Store::in_memory()?;
    version(&store, 3, |old: Option<First>, n| First { sum: old.map_or(0, |old| old.sum) + n }).await?;
    let more = |old: Option<WithMore>, n| WithMore { sum: old.map_or(0, |old| old.sum) + n, note: None };
    version(&store, 5, more).await?;
    let sums: Cache<i32, WithMore> = store.cache("sums")?;
    assert_eq!(sums.get(&0)?, Some(WithMore { sum: 10, note: None }));

    let text = |_: Option<WithText>, _| WithText { sum: String::new() };
    let error = typed(version(&store, 7, text).await.unwrap_err());
    let Error::Handler { cause, .. } = &error else { panic!("{error:?}") };
    assert!(matches!(cause.downcast_ref(), Some(StoreError::Decode { .. })), "{error:?}");
    for part in ["`sums`", "WithText", "i32", "memory:"] {
        assert!(cause.to_string().contains(part), "{cause} names no {part}");
    }
    // Neither the state nor the position is lost for it.
    version(&store, 7, more).await?;
    assert_eq!(sums.get(&0)?, Some(WithMore { sum: 21, note: None }));
    Ok(())
}

/// A flow that writes numbers, whose changes two handlers read as texts, each with a policy.
async fn misread(policies: [OnError; 2]) -> (Result<()>, Vec<String>, Option<u64>) {
    let (store, log) = (Store::in_memory().unwrap(), Log::default());
    let numbers = store.cache::<u8, u64>("rows").unwrap();
    let texts = store.cache::<u8, String>("rows").unwrap();
    let writes = source(&slipstream::iter([1_u8, 2])).handle(|n| Some((n, u64::from(n)))).sink(&numbers);
    let mut flow = Flow::<()>::new().with(writes);
    for policy in policies {
        let seen = log.clone();
        let reads = source(&texts).handle(move |(key, _): (u8, Option<String>)| {
            seen.add(key);
            None::<()>
        });
        flow = flow.with(reads.on_error(policy));
    }
    let ended = flow.run(()).await;
    let kept = numbers.get(&2).unwrap();
    (ended, log.take(), kept)
}

// Under `retry` the second try passed for a success, and a skip left the next handler without a word of it.
#[tokio::test]
async fn a_change_that_cannot_be_read_is_the_failure_of_each_of_its_handlers_by_its_policy() {
    let stops = [OnError::stop(), OnError::retry(2, Duration::ZERO)];
    let skips = [OnError::skip(), OnError::retry(2, Duration::ZERO).then_skip()];
    let both = |first: [OnError; 2], second: [OnError; 2]| {
        first.into_iter().flat_map(move |first| second.map(|second| [first, second]))
    };
    for policies in both(stops, skips).chain(both(skips, stops)).chain(both(stops, stops)) {
        let (ended, seen, kept) = misread(policies).await;
        let error = typed(ended.expect_err("it was not handled"));
        assert!(matches!(error, Error::Item { .. }), "{error:?}");
        assert_eq!((seen, kept), (vec![], None), "under {policies:?}");
    }
    for policies in both(skips, skips) {
        let (ended, seen, kept) = misread(policies).await;
        ended.unwrap();
        assert_eq!((seen, kept), (vec![], Some(2)), "under {policies:?}");
    }
}
