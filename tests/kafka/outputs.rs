//! Topics as sinks: where records go, and that positions follow their acknowledgement.
use crate::{
    broker::{self, Expendable},
    group::Group,
    log::{Log, Row, SOON},
    running::{Numbers, Running, Seen, becomes, chain, comes, ends, topic, topic_with},
};
use slipstream::{
    Flow, Kafka, Offset, Result, Store, Timestamp, Topic,
    kafka::{Encoded, Record},
    source,
};
use std::{collections::BTreeMap, time::Duration};

/// So long it is looked whether something happens that must not.
const A_WHILE: Duration = Duration::from_millis(1500);

/// Keys, and the partitions of four that Java's client chooses for them (`Utils.murmur2` of kafka-clients 4.3.1).
fn java() -> Vec<(Vec<u8>, i32)> {
    let kilobyte: Vec<u8> = (0..=255).cycle().take(1024).collect();
    vec![
        (b"a".to_vec(), 0),
        (b"".to_vec(), 1),
        ("ключ".into(), 0),
        (kilobyte, 3),
        (vec![0xff; 1024], 1),
        (b"ab".to_vec(), 2),
        (b"abc".to_vec(), 3),
        (b"abcd".to_vec(), 0),
        (vec![0x80, 0xff, 0xfe], 1),
    ]
}

/// K16.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_go_to_the_partitions_that_javas_client_chooses_and_empty_is_not_none() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = Log::new(servers, "keys", 4).await;
    let kafka = Kafka::new([("bootstrap.servers", servers)])?;
    let topic: Topic<Option<Vec<u8>>, String> = kafka.topic(&log.name).text();
    for (key, _) in java() {
        topic.send(Some(key), "sent".to_owned()).await?;
    }
    topic.send(None, "no key".to_owned()).await?;
    let rows = log.read();
    let found = |key: &[u8]| rows.iter().find(|row| row.key.as_deref() == Some(key)).map(|row| row.partition);
    for (key, partition) in java() {
        assert_eq!(found(&key), Some(partition), "{}", String::from_utf8_lossy(&key));
    }
    let without: Vec<_> = rows.iter().filter(|row| row.key.is_none()).map(Row::text).collect();
    assert_eq!(without, ["no key"]);
    Ok(())
}

/// Copies each message of a topic of numbers to a sink.
fn copying(from: &Numbers, to: &Numbers) -> Flow<()> {
    let route = source(from).handle(|message: Encoded<(), String>| {
        let value = message.message().ok()?.value;
        Some(((), value))
    });
    Flow::new().with(route.sink(to))
}

/// S13.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopped_at_once_with_five_seconds_of_linger_all_outputs_are_there_before_the_position() -> Result<()>
{
    const COUNT: i64 = 5000;
    let Some(servers) = broker::one() else { return Ok(()) };
    for with_store in [true, false] {
        let from = Log::of_numbers(servers, "linger", COUNT).await;
        let to = Log::new(servers, "lingered", 3).await;
        let group = Group::new(servers, &from.name);
        let sink = topic_with(&to, &[("linger.ms", "5000")]);
        let mut flow = copying(&topic(&from).until(Offset::End), &sink).named(&from.name);
        if with_store {
            flow = flow.store(&Store::in_memory()?);
        }
        let running = Running::new(flow.commit_every(Duration::from_secs(3600)));
        running.ends().await?;
        assert_eq!(to.read().len(), usize::try_from(COUNT)?);
        assert_eq!(group.offsets(&from), BTreeMap::from([(0, COUNT)]));
    }
    Ok(())
}

/// S13: stopped in the middle, what is committed is what was acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopped_in_the_middle_the_position_is_behind_as_many_messages_as_there_are_outputs() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let from = Log::of_numbers(servers, "middle", 20_000).await;
    let to = Log::new(servers, "until-then", 1).await;
    let running =
        Running::new(copying(&topic(&from), &topic_with(&to, &[("linger.ms", "5000")])).named(&from.name));
    comes(SOON, || (to.ends(0).1 > 0).then_some(())).await;
    running.stops().await?;
    let position = Group::new(servers, &from.name).offsets(&from)[&0];
    assert_eq!(to.read().len(), usize::try_from(position)?);
    Ok(())
}

/// S13.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_sinks_broker_is_frozen_no_position_moves_and_after_it_is_killed_and_back_all_is_there()
-> Result<()> {
    let (Some(servers), Some(cluster)) = (broker::one(), Expendable::new()) else { return Ok(()) };
    for with_store in [true, false] {
        let from = Log::of_numbers(servers, "acks", 100).await;
        let to = Log::new(&cluster.servers, "acks", 1).await;
        let group = Group::new(servers, &from.name);
        let store = Store::in_memory()?;
        let sink = topic_with(&to, &[("reconnect.backoff.max.ms", "500"), ("socket.timeout.ms", "5000")]);
        let flow = copying(&topic(&from), &sink).named(&from.name).commit_every(Duration::from_millis(20));
        let running = Running::new(if with_store { flow.store(&store) } else { flow });
        becomes(|| group.offsets(&from).get(&0).copied(), Some(100)).await;
        cluster.freeze();
        let epoch = store.epoch();
        from.numbers(0, 100..200);
        let moved = comes(A_WHILE, || (group.offsets(&from)[&0] > 100).then_some(())).await;
        assert!(moved.is_none() && store.epoch() == epoch, "{:?}", group.offsets(&from));
        if with_store {
            cluster.thaw();
        } else {
            // A message that was on its way may be there twice.
            cluster.kill();
            cluster.restart();
        }
        comes(2 * SOON, || (group.offsets(&from)[&0] == 200).then_some(())).await;
        running.stops().await?;
        assert_eq!(group.offsets(&from), BTreeMap::from([(0, 200)]));
        let mut numbers: Vec<i64> = to.texts().iter().map(|text| text.parse().unwrap()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers, (0..200).collect::<Vec<_>>());
    }
    Ok(())
}

/// S13: an output that is not delivered within its time ends the flow.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_output_that_cannot_be_delivered_ends_the_flow_and_moves_no_position() -> Result<()> {
    let (Some(servers), Some(cluster)) = (broker::one(), Expendable::new()) else { return Ok(()) };
    let from = Log::of_numbers(servers, "late", 10).await;
    let to = Log::new(&cluster.servers, "late", 1).await;
    let sink = topic_with(&to, &[("message.timeout.ms", "2000")]);
    let group = Group::new(servers, &from.name);
    let store = Store::in_memory()?;
    let running = Running::new(copying(&topic(&from), &sink).named(&from.name).store(&store));
    becomes(|| group.offsets(&from).get(&0).copied(), Some(10)).await;
    cluster.freeze();
    from.numbers(0, 10..20);
    let ended = running.ends().await;
    cluster.thaw();
    let error = ended.expect_err("it ended well");
    assert!(chain(&*error).contains(&to.name), "{}", chain(&*error));
    assert_eq!(group.offsets(&from), BTreeMap::from([(0, 10)]));
    Ok(())
}

/// An output is its message's: where a handler fails, none of it is sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_message_that_fails_no_output_is_sent() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let (from, to) = (Log::of_numbers(servers, "fails", 10).await, Log::new(servers, "none", 1).await);
    let sink = topic(&to);
    let sends = sink.clone();
    let route = source(&topic(&from)).handle_async(move |message: Encoded<(), String>| {
        let sink = sends.clone();
        async move {
            sink.send((), format!("sent {}", message.offset())).await?;
            if message.offset() == 5 {
                return Err("not this one".into());
            }
            Ok::<_, slipstream::BoxError>(Some(((), format!("given {}", message.offset()))))
        }
    });
    let ended = ends(Flow::new().with(route.sink(&sink)).named(&from.name)).await;
    assert!(ended.is_err());
    let found: Vec<_> = to.read().iter().map(Row::text).collect();
    let expected = (0..5).flat_map(|n| [format!("sent {n}"), format!("given {n}")]);
    assert_eq!(found, expected.collect::<Vec<_>>());
    Ok(())
}

/// Headers, a timestamp and a partition of one's own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_has_the_headers_the_time_and_the_partition_that_it_was_given() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = Log::new(servers, "record", 3).await;
    let kafka = Kafka::new([("bootstrap.servers", servers)])?;
    let topic: Topic<String, String> = kafka.topic(&log.name).text();
    let time = "2023-11-14T22:13:20.5Z".parse::<Timestamp>()?;
    let record = Record::new("key".to_owned(), "value".to_owned()).header("one", b"1");
    topic.send_record(record.header("two", b"2").timestamp(time).partition(2)).await?;
    let expected = Row {
        partition: 2,
        offset: 0,
        key: Some(b"key".to_vec()),
        value: Some(b"value".to_vec()),
        headers: vec![("one".into(), b"1".to_vec()), ("two".into(), b"2".to_vec())],
        millis: Some(1_700_000_000_500),
    };
    assert_eq!(log.read(), [expected]);
    // And so it is read.
    let sees = Seen::default();
    let found = std::sync::Arc::new(std::sync::Mutex::new(None));
    let (seen, finds) = (sees.clone(), std::sync::Arc::clone(&found));
    let reads = topic.until(Offset::End).group(&log.name);
    let route = source(&reads).handle(move |message: Encoded<String, String>| {
        let message = message.message().unwrap();
        seen.add(&message);
        *finds.lock().unwrap() = Some(message);
    });
    ends(Flow::new().with(route)).await?;
    let message = found.lock().unwrap().take().ok_or("nothing came")?;
    assert_eq!((message.key.as_str(), message.value.as_str()), ("key", "value"));
    assert_eq!((message.timestamp, message.headers.len(), &*message.topic), (Some(time), 2, &*log.name));
    Ok(())
}

/// The outputs of one partition of the source are in the order of its messages.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outputs_keep_the_order_of_their_messages() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let (from, to) = (Log::of_numbers(servers, "order", 20_000).await, Log::new(servers, "ordered", 1).await);
    // So few at a time that the producer's queue is often full.
    let sink = topic_with(&to, &[("queue.buffering.max.messages", "100")]);
    ends(copying(&topic(&from).until(Offset::End), &sink).named(&from.name)).await?;
    let numbers: Vec<i64> = to.read().iter().map(|row| row.text().parse().unwrap()).collect();
    assert!(numbers == (0..20_000).collect::<Vec<_>>(), "{} records", numbers.len());
    Ok(())
}

/// A dry run handles and commits, and sends nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_sends_nothing_and_commits() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let (from, to) = (Log::of_numbers(servers, "dry", 10).await, Log::new(servers, "dry-to", 1).await);
    ends(copying(&topic(&from).until(Offset::End), &topic(&to).dry_run()).named(&from.name)).await?;
    assert_eq!(to.ends(0), (0, 0));
    assert_eq!(Group::new(servers, &from.name).offsets(&from), BTreeMap::from([(0, 10)]));
    Ok(())
}

/// A topic is made where it is missing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_is_created_once() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let kafka = Kafka::new([("bootstrap.servers", servers)])?;
    let name = crate::log::unique("created");
    kafka.create_topic(&name, 3).await?;
    kafka.create_topic(&name, 3).await?;
    kafka.topic::<(), String>(&name).text().send((), "here".to_owned()).await?;
    assert_eq!(Log::there(servers, &name).texts(), ["here"]);
    Ok(())
}
