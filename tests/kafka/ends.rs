//! Ends of partitions: empty ones, markers of transactions, and the small gaps in which a reader waits.
use crate::{
    broker,
    group::Group,
    log::{Log, SOON},
    running::{Running, Seen, becomes, comes, ends, seeing, topic},
};
use futures::StreamExt;
use slipstream::{Offset, Result, Timestamp};
use std::collections::BTreeMap;

/// K9: the end of a partition is no message, and no end of reading.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_hundred_times_at_the_end_of_its_partition_it_goes_on() -> Result<()> {
    const TIMES: i64 = 300;
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = Log::new(servers, "gaps", 1).await;
    let group = Group::new(servers, &log.name);
    let seen = Seen::default();
    let topic = topic(&log).group(&log.name);
    let running = Running::new(seeing(&topic, &seen).commit_after(10));
    let writer = log.writer();
    for time in 0..TIMES {
        for number in time * 10..(time + 1) * 10 {
            writer.put(Some(0), None, Some(number.to_string().as_bytes()));
        }
        writer.sent();
        seen.has(usize::try_from(time + 1)? * 10).await;
        if time % 50 == 0 {
            running.handle.commit_now().await?;
            becomes(|| group.offsets(&log).get(&0).copied(), Some((time + 1) * 10)).await;
        }
    }
    running.stops().await?;
    assert_eq!(seen.of(0), (0..TIMES * 10).collect::<Vec<_>>());
    assert_eq!(group.offsets(&log), BTreeMap::from([(0, TIMES * 10)]));
    Ok(())
}

/// A topic of three partitions: with messages, with none, and with a transaction's marker at the end of which nothing
/// but an aborted message is before.
async fn with_markers(servers: &str) -> Log {
    let log = Log::new(servers, "markers", 4).await;
    log.numbers(0, 0..5);
    log.numbers(2, 0..3);
    let aborted = log.transaction();
    aborted.put(Some(2), None, Some(b"aborted"));
    aborted.put(Some(3), None, Some(b"aborted"));
    aborted.abort();
    // The marker comes a moment after the abort.
    becomes(|| log.ends(2), (0, 5)).await;
    let committed = log.transaction();
    committed.put(Some(2), None, Some(b"committed"));
    committed.commit();
    becomes(|| (log.ends(1), log.ends(2), log.ends(3)), ((0, 0), (0, 7), (0, 2))).await;
    log
}

/// What of it is to be seen.
const SEEN: [(i32, i64); 9] = [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (2, 0), (2, 1), (2, 2), (2, 5)];

/// K17.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn up_to_the_end_is_judged_by_position_and_so_empty_partitions_and_markers_end() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = with_markers(servers).await;
    let seen = Seen::default();
    ends(seeing(&topic(&log).until(Offset::End), &seen).named(&log.name)).await?;
    let mut all = seen.all();
    all.sort_unstable();
    assert_eq!(all, SEEN);
    // And again, with nothing left.
    ends(seeing(&topic(&log).until(Offset::End), &seen).named(&log.name)).await?;
    assert_eq!(seen.len(), SEEN.len());
    Ok(())
}

/// K17.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_the_last_message_there_is_no_lag_although_a_marker_follows() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = with_markers(servers).await;
    let seen = Seen::default();
    let topic = topic(&log).group(&log.name);
    let running = Running::new(seeing(&topic, &seen));
    seen.has(SEEN.len()).await;
    let none = BTreeMap::from([(0, 0), (1, 0), (2, 0), (3, 0)]);
    let deadline = std::time::Instant::now() + SOON;
    while topic.lag().await? != none {
        assert!(std::time::Instant::now() < deadline, "{:?}", topic.lag().await?);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    running.stops().await
}

/// An end is resolved once, when it starts: what is written later is not waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn until_a_number_it_ends_before_that_message() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = Log::of_numbers(servers, "until", 100).await;
    let seen = Seen::default();
    ends(seeing(&topic(&log).start(20).until(60), &seen).named(&log.name)).await?;
    assert_eq!(seen.of(0), (20..60).collect::<Vec<_>>());
    // The next run goes on there.
    ends(seeing(&topic(&log).start(20).until(Offset::End), &seen).named(&log.name)).await?;
    assert_eq!(seen.of(0), (20..100).collect::<Vec<_>>());
    Ok(())
}

/// Each kind of start, for all partitions and for one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_starts_where_it_is_told_where_nothing_is_stored() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = Log::new(servers, "starts", 5).await;
    let writer = log.writer();
    let noon = 1_700_000_000_000;
    for partition in 0..5 {
        for number in 0..10 {
            let text = number.to_string();
            writer.put_with(Some(partition), None, Some(text.as_bytes()), &[], Some(noon + number * 1000));
        }
    }
    writer.done();
    let seen = Seen::default();
    let topic = topic(&log).start(Offset::Beginning).start_partition(1, 4).start_partition(2, Offset::End);
    let at = "2023-11-14T22:13:27Z".parse::<Timestamp>()?;
    let late = "2030-01-01T00:00:00Z".parse::<Timestamp>()?;
    let topic = topic.start_partition(3, Offset::Time(at)).start_partition(4, Offset::Time(late));
    ends(seeing(&topic.until(Offset::End), &seen).named(&log.name)).await?;
    let from = [0, 4, 10, 7, 10];
    for (partition, from) in (0..).zip(from) {
        assert_eq!(seen.of(partition), (from..10).collect::<Vec<_>>(), "partition {partition}");
    }
    Ok(())
}

/// Without a flow: all partitions, no group.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_is_a_stream_without_a_flow() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = with_markers(servers).await;
    let stream = topic(&log).until(Offset::End).stream();
    let messages: Vec<_> = tokio::time::timeout(SOON, stream.collect()).await?;
    let mut found = Vec::new();
    for message in messages {
        let message = message?;
        found.push((message.partition, message.offset));
    }
    found.sort_unstable();
    assert_eq!(found, SEEN);

    // And one that does not end sees what is written later.
    let mut stream = Box::pin(topic(&log).start(Offset::End).stream());
    let next = tokio::spawn(async move { stream.next().await });
    let mut number = 0;
    let came = comes(SOON, || {
        // Where it begins is known to it alone.
        log.numbers(0, number..number + 1);
        number += 1;
        next.is_finished().then_some(())
    });
    came.await.expect("nothing came");
    let message = next.await?.ok_or("it ended")??;
    assert!(message.offset >= 5, "{message:?}");
    Ok(())
}
