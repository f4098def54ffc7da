//! Handlers of topics: what they may take, what becomes of what they cannot take, and that none holds up another.
use crate::{
    broker,
    group::Group,
    log::Log,
    running::{Running, Seen, becomes, ends},
};
use slipstream::{
    Cache, Flow, Kafka, Message, Offset, OnError, Result, Store, Topic, flow, handle, kafka::Encoded, source,
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};
use tokio::sync::Semaphore;

struct App {
    numbers: Topic<String, i64>,
    sums: Cache<String, i64>,
    counts: Cache<String, i64>,
    raw: Mutex<Vec<Option<Vec<u8>>>>,
    failed: Mutex<Vec<String>>,
}

/// The value alone.
#[handle(app.numbers, sink = app.sums, on_error = OnError::skip())]
fn sum(app: &App, number: i64) -> Result<(String, i64)> {
    Ok(("sum".to_owned(), app.sums.get("sum")?.unwrap_or(0) + number))
}

/// The whole message.
#[handle(app.numbers, on_error = OnError::skip())]
async fn count(app: &App, message: Message<String, i64>) -> Result<()> {
    app.counts.update(&message.key, |count| count.unwrap_or(0) + 1)?;
    Ok(())
}

/// As it came.
#[handle(app.numbers)]
fn keep(app: &App, message: Encoded<String, i64>) {
    app.raw.lock().unwrap().push(message.value_bytes().map(<[u8]>::to_vec));
    if let Err(error) = message.message() {
        app.failed.lock().unwrap().push(error.to_string());
    }
}

/// F2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_take_values_messages_and_bytes_and_what_is_skipped_is_passed() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = Log::new(servers, "handlers", 1).await;
    let writer = log.writer();
    for (key, value) in [("a", "1"), ("b", "2"), ("a", "not a number"), ("a", "4")] {
        writer.put(Some(0), Some(key.as_bytes()), Some(value.as_bytes()));
    }
    writer.done();
    let store = Store::in_memory()?;
    let kafka = Kafka::new([("bootstrap.servers", servers)])?;
    let app = Arc::new(App {
        numbers: kafka.topic(&log.name).json().until(Offset::End),
        sums: store.cache("sums")?,
        counts: store.cache("counts")?,
        raw: Mutex::default(),
        failed: Mutex::default(),
    });
    flow![sum, count, keep].named(&log.name).run(Arc::clone(&app)).await?;
    assert_eq!(app.sums.get("sum")?, Some(7));
    let counts: BTreeMap<_, _> = app.counts.iter().map(|row| row.unwrap()).collect();
    assert_eq!(counts, BTreeMap::from([("a".to_owned(), 2), ("b".to_owned(), 1)]));
    let raw = app.raw.lock().unwrap().clone();
    assert_eq!(raw, ["1", "2", "not a number", "4"].map(|text| Some(text.as_bytes().to_vec())));
    assert_eq!(app.failed.lock().unwrap().len(), 1);
    assert_eq!(Group::new(servers, &log.name).offsets(&log), BTreeMap::from([(0, 4)]));
    Ok(())
}

/// Two topics share a consumer, and one has more than its buffers hold: it waits, and the other does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_that_is_held_up_does_not_hold_up_another() -> Result<()> {
    const MANY: i64 = 6000;
    let Some(servers) = broker::one() else { return Ok(()) };
    let (slow, fast) = (Log::new(servers, "held-up", 2).await, Log::new(servers, "free", 2).await);
    for log in [&slow, &fast] {
        let writer = log.writer();
        let kilobyte = [b'x'; 1024];
        for number in 0..MANY {
            writer.put(Some(i32::from(number % 2 == 0)), None, Some(&kilobyte));
        }
        writer.done();
    }
    for is_paused in [false, true] {
        let kafka = Kafka::new([("bootstrap.servers", servers), ("queued.max.messages.kbytes", "1024")])?;
        let read = |log: &Log| kafka.topic::<(), Vec<u8>>(&log.name).raw();
        // One group for both, so that they share a consumer.
        let group = crate::log::unique("hold");
        let (held, free) = (read(&slow).group(&group), read(&fast).group(&group));
        let (gate, one, other) = (Arc::new(Semaphore::new(0)), Seen::default(), Seen::default());
        if is_paused {
            held.pause();
        }
        let (waits, sees) = (Arc::clone(&gate), one.clone());
        let holding = source(&held).handle_async(move |message: Encoded<(), Vec<u8>>| {
            let (gate, seen) = (Arc::clone(&waits), sees.clone());
            async move {
                gate.acquire().await?.forget();
                seen.add(&message.message()?);
                Ok::<_, slipstream::BoxError>(None::<()>)
            }
        });
        let sees = other.clone();
        let running = Running::new(Flow::new().with(holding).with(source(&free).handle(
            move |message: Encoded<(), Vec<u8>>| {
                sees.add(&message.message().unwrap());
            },
        )));
        let all = usize::try_from(MANY)?;
        other.has(all).await;
        assert_eq!((one.len(), other.len()), (0, all), "paused: {is_paused}");
        gate.add_permits(all);
        held.resume();
        one.has(all).await;
        running.stops().await?;
        assert_eq!((one.once().len(), one.len()), (all, all), "paused: {is_paused}");
        let group = Group::new(servers, &group);
        let half = MANY / 2;
        assert_eq!(group.offsets(&slow), BTreeMap::from([(0, half), (1, half)]));
    }
    Ok(())
}

/// Partitions side by side, each in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_are_handled_side_by_side_and_each_in_order() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = Log::new(servers, "side", 4).await;
    (0..4).for_each(|partition| log.numbers(partition, 0..500));
    let kafka = Kafka::new([("bootstrap.servers", servers)])?;
    let topic = kafka.topic::<(), String>(&log.name).text().concurrency(4).until(Offset::End);
    let (seen, in_hand) = (Seen::default(), Arc::new(Mutex::new((BTreeMap::<i32, u32>::new(), 0))));
    let (sees, hands) = (seen.clone(), Arc::clone(&in_hand));
    let route = source(&topic).handle_async(move |message: Encoded<(), String>| {
        let (seen, in_hand) = (sees.clone(), Arc::clone(&hands));
        async move {
            let message = message.message()?;
            {
                let (of, most) = &mut *in_hand.lock().unwrap();
                *of.entry(message.partition).or_default() += 1;
                assert_eq!(of[&message.partition], 1, "two of one partition");
                *most = (*most).max(of.values().sum::<u32>());
            }
            tokio::task::yield_now().await;
            seen.add(&message);
            *in_hand.lock().unwrap().0.get_mut(&message.partition).unwrap() -= 1;
            Ok::<_, slipstream::BoxError>(None::<()>)
        }
    });
    ends(Flow::new().with(route).named(&log.name)).await?;
    for partition in 0..4 {
        assert_eq!(seen.of(partition), (0..500).collect::<Vec<_>>());
    }
    assert!(in_hand.lock().unwrap().1 > 1, "never two at the same time");
    Ok(())
}

/// Crashed without a store, it begins again where the group is: no message is left out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_store_a_crash_leaves_no_message_out() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = Log::of_numbers(servers, "storeless", 1000).await;
    let group = Group::new(servers, &log.name);
    let (seen, gate) = (Seen::default(), Arc::new(Semaphore::new(500)));
    let start = || {
        let topic = crate::running::topic_with(&log, &crate::running::QUICK);
        let (seen, gate) = (seen.clone(), Arc::clone(&gate));
        let flow = crate::running::handling(&topic, move |message| {
            let (seen, gate) = (seen.clone(), Arc::clone(&gate));
            async move {
                gate.acquire().await?.forget();
                seen.add(&message);
                Ok(())
            }
        });
        Running::new(flow.named(&log.name))
    };
    let running = start();
    seen.has(500).await;
    becomes(|| group.offsets(&log).get(&0).copied(), Some(500)).await;
    gate.add_permits(5);
    seen.has(505).await;
    running.crashes().await;
    gate.add_permits(2000);
    let running = start();
    becomes(|| group.offsets(&log).get(&0).copied(), Some(1000)).await;
    running.stops().await?;
    assert_eq!(seen.once(), (0..1000).map(|at| (0, at)).collect::<Vec<_>>());
    assert!(seen.len() <= 1005, "{} came", seen.len());
    Ok(())
}

/// What other programs have compressed is read, and so are headers without a value.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compressed_messages_are_read() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    for codec in ["gzip", "lz4", "snappy"] {
        let log = Log::new(servers, codec, 1).await;
        let writer = log.writer_with(&[("compression.type", codec)]);
        for number in 0..1000 {
            writer.put(Some(0), None, Some(format!("the same text {number}").as_bytes()));
        }
        writer.done();
        let topic = crate::running::topic(&log).until(Offset::End);
        let texts = Arc::new(Mutex::new(Vec::new()));
        let keeps = Arc::clone(&texts);
        let route = source(&topic).handle(move |message: Encoded<(), String>| {
            keeps.lock().unwrap().push(message.message().unwrap().value);
        });
        ends(Flow::new().with(route).named(&log.name)).await?;
        let expected: Vec<_> = (0..1000).map(|number| format!("the same text {number}")).collect();
        assert!(*texts.lock().unwrap() == expected, "{codec}");
    }
    Ok(())
}
