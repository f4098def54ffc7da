//! What a handler's iterator sees while others publish and epochs are committed; and of which store.
use crate::typed;
use futures::{Stream, StreamExt, stream};
use slipstream::{
    AsyncIterable, Cache, Error, Flow, FlowHandle, Position, Positions, Result, Seekable, Seeks, Sink, Store,
    StoreError, source,
};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use tokio::task::yield_now;

/// Two partitions, at the same time.
#[derive(Debug, Clone)]
struct Two;

const LENGTH: i64 = 100;

impl AsyncIterable for Two {
    type Item = (i32, i64);
    fn open(&self) -> impl Stream<Item = (i32, i64)> + Send + 'static {
        self.open_at(Positions::default()).map(|(_, item)| item)
    }
    fn identity(&self) -> Option<String> {
        Some("two".to_owned())
    }
    fn seeks(&self) -> Option<Seeks<(i32, i64)>> {
        Some(Seeks::new(self))
    }
}

impl Seekable for Two {
    fn open_at(&self, start: Positions) -> impl Stream<Item = (Position, (i32, i64))> + Send + 'static {
        let all = (0..LENGTH).flat_map(|offset| [0, 1].map(|partition| (partition, offset)));
        let left = all.filter(move |(partition, offset)| *offset >= start.next(*partition).unwrap_or(0));
        stream::iter(left.map(|(partition, offset)| (Position::new(partition, offset), (partition, offset))))
    }
    fn concurrency(&self) -> usize {
        2
    }
}

/// A sink that counts the commits.
#[derive(Debug, Clone, Default)]
struct Flushed(Arc<AtomicUsize>);

impl<T: Sync> Sink<T> for Flushed {
    const WAITS: bool = false;
    async fn flush(&self) -> Result<()> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Reads all rows with a commit or a message of the other partition between two steps, and inserts meanwhile.
/// Answers how many rows came too late for it.
async fn reads(rows: &Cache<i64, i64>, handle: &FlowHandle, offset: i64) -> Result<usize> {
    rows.insert(&offset, -1)?;
    // There is one thread, so nobody comes between the two.
    let (seen_then, open) = (rows.keys().collect::<Result<Vec<_>, _>>()?, rows.iter());
    assert!(seen_then.contains(&offset), "its own earlier write");
    let mut seen = Vec::new();
    for row in open {
        let (key, value) = row?;
        assert!(value < 0, "written meanwhile");
        seen.push(key);
        // Of its own: the same row again, and a later one.
        rows.insert(&key, 0)?;
        rows.insert(&(i64::MAX - offset * 1000 - key.abs()), 0)?;
        match seen.len() % 4 {
            0 => handle.commit_now().await?,
            _ => yield_now().await,
        }
    }
    assert_eq!(seen, seen_then, "at {offset}");
    let others = rows.range(..0).keys().collect::<Result<Vec<_>, _>>()?;
    seen.iter().try_for_each(|key| rows.insert(key, -1))?;
    rows.range(i64::MAX / 2..).keys().try_for_each(|key| rows.remove(&key?))?;
    Ok(others.iter().filter(|key| !seen.contains(key)).count())
}

#[tokio::test]
async fn an_iterator_sees_what_it_saw_when_it_was_made_whatever_is_written_published_and_committed()
-> Result<()> {
    let folder = tempfile::tempdir()?;
    let store = Store::open(folder.path())?;
    let rows: Cache<i64, i64> = store.cache("rows")?;
    let (flushed, too_late) = (Flushed::default(), Arc::new(AtomicUsize::new(0)));
    let flow = Flow::<()>::new().store(&store).commit_after(1);
    let (handle, cache, late) = (flow.handle(), rows.clone(), Arc::clone(&too_late));
    let both = source(&Two).handle_async(move |(partition, offset): (i32, i64)| {
        let (rows, handle, late) = (cache.clone(), handle.clone(), Arc::clone(&late));
        async move {
            if partition == 1 {
                rows.insert(&(-1 - offset), -1)?;
                yield_now().await;
            } else if offset < 8 {
                late.fetch_add(reads(&rows, &handle, offset).await?, Ordering::Relaxed);
            }
            Ok::<_, slipstream::BoxError>(Some(()))
        }
    });
    let run = flow.with(both.sink(&flushed)).run(());
    tokio::time::timeout(std::time::Duration::from_secs(60), run).await??;
    assert!(flushed.0.load(Ordering::Relaxed) > 2, "no epoch was written meanwhile");
    assert!(too_late.load(Ordering::Relaxed) > 0, "nothing was published meanwhile");
    assert_eq!(rows.range(..0).count() as i64, LENGTH);
    Ok(())
}

#[tokio::test]
async fn two_stores_in_one_flow_are_named_by_their_paths_before_anything_is_handled() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (sky, sea) = (folder.path().join("sky"), folder.path().join("sea"));
    let (one, other) = (Cache::<u8, u8>::open(&sky)?, Cache::<u8, u8>::open(&sea)?);
    let numbers = slipstream::iter([1_u8]);
    let handled = || -> Flow<()> { Flow::new() };
    let into = |cache: &Cache<u8, u8>| source(&numbers).handle(|n: u8| Some((n, n))).sink(cache);
    let flows = [
        handled().with(into(&one)).with(into(&other)),
        handled().with(into(&one).sink(&other)),
        handled().store(one.store()).with(into(&other)),
    ];
    for flow in flows {
        let error = typed(flow.run(()).await.unwrap_err());
        let Error::Store { cause } = &error else { panic!("{error:?}") };
        assert!(matches!(cause.downcast_ref(), Some(StoreError::TwoStores { .. })), "{error:?}");
        for path in [&sky, &sea] {
            assert!(cause.to_string().contains(&path.display().to_string()), "{cause}");
        }
        assert!(one.is_empty()? && other.is_empty()?);
    }
    Ok(())
}
