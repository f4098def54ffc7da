//! What handlers get of a topic, and what becomes of what they give to one.
use futures::{Stream, StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};
use slipstream::{
    Cache, Error, Flow, Items, Kafka, Message, Offset, OnError, Result, Store, Timestamp, Topic, TopicError,
    flow, handle, iter,
    kafka::{Encoded, Record},
    source,
};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Weather {
    time: i64,
    sky: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Activity {
    time: i64,
    name: String,
}

/// A cluster with these topics, of so many partitions each.
pub(crate) async fn cluster(topics: &[&str], partitions: i32) -> Kafka {
    let kafka = Kafka::in_process().unwrap();
    for topic in topics {
        kafka.create_topic(topic, partitions).await.unwrap();
    }
    kafka
}

/// All that a topic has by now.
pub(crate) async fn read_all<K, V>(topic: &Topic<K, V>) -> Vec<Message<K, V>>
where
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    topic.clone().until(Offset::End).stream().try_collect().await.unwrap()
}

struct Join {
    weather: Topic<(), Weather>,
    activity: Topic<String, Activity>,
    enriched: Topic<String, String>,
    sky: Cache<i64, Weather>,
}

#[handle(app.weather, sink = app.sky)]
fn handle_weather(app: &Join, weather: Weather) -> (i64, Weather) {
    (weather.time, weather)
}

#[handle(app.activity, sink = app.enriched)]
async fn handle_activity(app: &Join, message: Message<String, Activity>) -> Result<(String, String)> {
    let weather = app.sky.as_of(&message.value.time)?;
    Ok((message.key, weather.map_or("?".into(), |(_, weather)| weather.sky)))
}

#[tokio::test]
async fn topics_of_two_clusters_are_joined_into_a_third_topic() -> Result<()> {
    let (one, other) = (cluster(&["weather"], 1).await, cluster(&["activity", "enriched"], 2).await);
    let app = Arc::new(Join {
        weather: one.topic("weather").json().until(Offset::End),
        activity: other.topic("activity").json().until(Offset::End),
        enriched: other.topic("enriched").text(),
        sky: Cache::in_memory()?,
    });
    for (time, sky) in [(100, "clear"), (120, "clouds"), (130, "rain")] {
        app.weather.send((), Weather { time, sky: sky.into() }).await?;
    }
    for (time, name) in [(105, "swimming"), (115, "walking"), (125, "shopping"), (99, "sleeping")] {
        app.activity.send(name.into(), Activity { time, name: name.into() }).await?;
    }
    flow![handle_weather].named("sky").run(Arc::clone(&app)).await?;
    flow![handle_activity].named("sky").store(app.sky.store()).run(Arc::clone(&app)).await?;
    let mut enriched: Vec<_> = read_all(&app.enriched).await.into_iter().map(|m| (m.key, m.value)).collect();
    enriched.sort();
    let expected = [("shopping", "clouds"), ("sleeping", "?"), ("swimming", "clear"), ("walking", "clear")];
    assert_eq!(enriched, expected.map(|(name, sky)| (name.to_owned(), sky.to_owned())));
    Ok(())
}

fn numbers(kafka: &Kafka) -> Topic<String, u32> {
    kafka.topic("numbers").json().group("test").until(Offset::End)
}

/// Five numbers in one partition, the third of which is none.
async fn four_numbers_and_a_word(kafka: &Kafka) -> Result<()> {
    let raw: Topic<String, String> = kafka.topic("numbers").text();
    for value in ["1", "2", "three", "4", "5"] {
        raw.send("key".into(), value.into()).await?;
    }
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_decoded_stops_the_flow_with_an_error_that_says_where_it_is() -> Result<()> {
    let kafka = cluster(&["numbers"], 1).await;
    four_numbers_and_a_word(&kafka).await?;
    let topic = numbers(&kafka);
    let sums: Cache<String, u32> = Cache::in_memory()?;
    let pair = |message: Message<String, u32>| Some((message.key, message.value));
    let flow = Flow::new().with(source(&topic).takes::<Message<_, _>>().handle(pair).sink(&sums));
    let error = flow.run(()).await.unwrap_err();
    let said = format!("{error:?}");
    for part in ["closure", "`numbers`", "partition 0", "message 2", "the value", "line 1 column 2"] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    assert_eq!(topic.position().next(0), Some(2), "what came before it is committed, and it is not");
    assert_eq!(sums.get("key")?, Some(2));
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_decoded_is_skipped_where_the_handler_says_so() -> Result<()> {
    let kafka = cluster(&["numbers"], 1).await;
    four_numbers_and_a_word(&kafka).await?;
    let topic = numbers(&kafka);
    let (sums, lengths) = (Cache::<(), u32>::in_memory()?, Arc::new(AtomicUsize::new(0)));
    let (sum, length) = (sums.clone(), Arc::clone(&lengths));
    let add = move |number: u32| sum.update(&(), |sum| sum.unwrap_or(0) + number).map(drop);
    // Another handler of the same messages that can read all of them.
    let measure = move |message: Encoded<String, u32>| {
        length.fetch_add(message.value_bytes().map_or(0, <[u8]>::len), Ordering::Relaxed);
    };
    let flow = Flow::new()
        .store(sums.store())
        .with(source(&topic).takes::<u32>().handle(add).on_error(OnError::skip()))
        .with(source(&topic).handle(measure));
    flow.run(()).await?;
    assert_eq!((sums.get(&())?, lengths.load(Ordering::Relaxed)), (Some(12), 9));
    assert_eq!(topic.position().next(0), Some(5));
    Ok(())
}

#[tokio::test]
async fn a_null_is_a_value_of_an_option_and_deletes_in_a_cache() -> Result<()> {
    let kafka = cluster(&["prices", "copies"], 1).await;
    let prices: Topic<String, Option<f64>> = kafka.topic("prices").json().group("test").until(Offset::End);
    for (key, price) in [("a", Some(1.5)), ("b", Some(2.5)), ("a", None)] {
        prices.send(key.into(), price).await?;
    }
    let current: Cache<String, f64> = Cache::in_memory()?;
    let copies: Topic<String, Option<f64>> = kafka.topic("copies").json();
    let pair = |message: Message<String, Option<f64>>| Some((message.key, message.value));
    let flow =
        Flow::new().with(source(&prices).takes::<Message<_, _>>().handle(pair).sink(&current).sink(&copies));
    flow.run(()).await?;
    assert_eq!((current.get("a")?, current.get("b")?), (None, Some(2.5)));
    let raw: Topic<String, Option<Vec<u8>>> = kafka.topic("copies").raw();
    let last = read_all(&raw).await.pop().unwrap();
    assert_eq!((last.key, last.value), ("a".to_owned(), None), "null on the wire, and not the text `null`");

    // For another type a null is an error, and its decoder is not called.
    let strict: Topic<String, f64> = kafka.topic("copies").json();
    let error = strict.until(Offset::End).stream().try_collect::<Vec<_>>().await.unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("a null is not of type `f64`"), "{error}: {cause}");
    Ok(())
}

#[tokio::test]
async fn headers_time_and_partition_go_with_a_record_and_come_with_its_message() -> Result<()> {
    let kafka = cluster(&["in", "out"], 3).await;
    let time = Timestamp::from_millis(1_700_000_000_123).unwrap();
    let input: Topic<(), String> = kafka.topic("in").text().group("test").until(Offset::End);
    input
        .send_record(Record::new((), "hello".into()).partition(2).timestamp(time).header("lang", "en"))
        .await?;
    let output: Topic<(), String> = kafka.topic("out").text();
    let pass_on = |message: Message<(), String>| {
        let mut record = Record::new((), message.value).partition(message.partition - 1);
        for (name, value) in message.headers {
            record = record.header(name, value);
        }
        Some(record.header("from", message.offset.to_string()).timestamp(message.timestamp.unwrap()))
    };
    Flow::new().with(source(&input).takes::<Message<_, _>>().handle(pass_on).sink(&output)).run(()).await?;
    let message = read_all(&output).await.pop().unwrap();
    let header = |name: &str, value: &str| (name.to_owned(), value.as_bytes().to_vec());
    assert_eq!((message.partition, message.timestamp, &*message.topic), (1, Some(time), "out"));
    assert_eq!(message.headers, [header("lang", "en"), header("from", "0")]);
    Ok(())
}

struct Copy {
    input: Topic<(), u32>,
    output: Topic<(), u32>,
    audit: Topic<(), String>,
}

#[handle(app.input, sink = app.output, on_error = OnError::skip())]
async fn halve(app: &Copy, number: u32) -> Result<((), u32)> {
    app.audit.send((), format!("saw {number}")).await?;
    match number % 2 {
        0 => Ok(((), number / 2)),
        _ => Err("odd".into()),
    }
}

#[tokio::test]
async fn what_a_handler_sends_leaves_with_its_message_or_not_at_all() -> Result<()> {
    let kafka = cluster(&["in", "out", "audit"], 1).await;
    let app = Arc::new(Copy {
        input: kafka.topic("in").json().group("test").until(Offset::End),
        output: kafka.topic("out").json(),
        audit: kafka.topic("audit").text(),
    });
    for number in [2, 3, 4] {
        app.input.send((), number).await?;
    }
    flow![halve].run(Arc::clone(&app)).await?;
    let values = |messages: Vec<Message<(), u32>>| messages.into_iter().map(|m| m.value).collect::<Vec<_>>();
    assert_eq!(values(read_all(&app.output).await), [1, 2]);
    let saw: Vec<_> = read_all(&app.audit).await.into_iter().map(|message| message.value).collect();
    assert_eq!(saw, ["saw 2", "saw 4"], "3 was skipped, and with it what was sent for it");
    Ok(())
}

#[tokio::test]
async fn a_handler_gives_a_topic_several_records() -> Result<()> {
    let kafka = cluster(&["words"], 1).await;
    let words: Topic<String, u32> = kafka.topic("words").json();
    let handler = move |line: &'static str| {
        let mut all = Vec::new();
        line.split(' ').for_each(|word| all.push((word.to_owned(), 1)));
        all
    };
    let lines = iter(["a b", "c"]);
    Flow::new().with(source(&lines).handle(handler).sink(&words)).run(()).await?;
    let keys: Vec<_> = read_all(&words).await.into_iter().map(|message| message.key).collect();
    assert_eq!(keys, ["a", "b", "c"]);
    Ok(())
}

fn sums(items: Items<Encoded<(), u32>>) -> impl Stream<Item = Result<u32, Arc<TopicError>>> + Send {
    let mut sum = 0;
    items.map(move |item| item.value().inspect(|number| sum += number).map(|_| sum).map_err(Arc::new))
}

struct Sums {
    input: Topic<(), u32>,
    seen: Mutex<Vec<u32>>,
}

#[handle(app.input, pipe = sums)]
fn note(app: &Sums, sum: u32) {
    app.seen.lock().unwrap().push(sum);
}

#[tokio::test]
async fn a_pipe_before_a_handler_reads_messages_as_they_came_and_decodes_what_it_wants() -> Result<()> {
    let kafka = cluster(&["in"], 1).await;
    let input: Topic<(), u32> = kafka.topic("in").json().group("test").until(Offset::End);
    for number in [1, 2, 3] {
        input.send((), number).await?;
    }
    let app = Arc::new(Sums { input, seen: Mutex::default() });
    flow![note].run(Arc::clone(&app)).await?;
    assert_eq!(*app.seen.lock().unwrap(), [1, 3, 6]);
    Ok(())
}

#[tokio::test]
async fn partitions_are_handled_side_by_side_and_each_in_its_order() -> Result<()> {
    let kafka = cluster(&["in"], 4).await;
    let input: Topic<(), u32> = kafka.topic("in").json().group("test").until(Offset::End).concurrency(4);
    for number in 0..40 {
        let partition = i32::try_from(number % 4)?;
        input.send_record(Record::new((), number).partition(partition)).await?;
    }
    let (at_once, most, orders) =
        (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(vec![vec![]; 4])));
    let (now, high, seen) = (Arc::clone(&at_once), Arc::clone(&most), Arc::clone(&orders));
    let handler = move |message: Message<(), u32>| {
        let (now, high, seen) = (Arc::clone(&now), Arc::clone(&high), Arc::clone(&seen));
        async move {
            high.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            now.fetch_sub(1, Ordering::SeqCst);
            seen.lock().unwrap()[usize::try_from(message.partition).unwrap()].push(message.value);
        }
    };
    Flow::new().with(source(&input).takes::<Message<_, _>>().handle_async(handler)).run(()).await?;
    let expected: Vec<Vec<u32>> =
        (0..4).map(|partition| (0..10).map(|n| n * 4 + partition).collect()).collect();
    assert_eq!(*orders.lock().unwrap(), expected);
    assert!(most.load(Ordering::SeqCst) > 1, "no two were in hand at once");
    Ok(())
}

#[tokio::test]
async fn a_dry_run_writes_nothing() -> Result<()> {
    let kafka = cluster(&["out"], 1).await;
    let out: Topic<(), u32> = kafka.topic("out").json();
    let numbers = iter([1_u32, 2]);
    let flow = Flow::new().with(source(&numbers).handle(|n| Some(((), n))).sink(&out.clone().dry_run()));
    flow.run(()).await?;
    assert!(read_all(&out).await.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_topic_that_is_not_there_is_an_error_at_the_start_as_source_and_as_sink() -> Result<()> {
    let kafka = cluster(&["there"], 1).await;
    let (there, missing): (Topic<(), u32>, Topic<(), u32>) =
        (kafka.topic("there").json().group("test"), kafka.topic("mising").json().group("test"));
    let reads = Flow::<()>::new().with(source(&missing).takes().handle(|_: u32| ()));
    let writes = Flow::<()>::new().with(source(&there).takes().handle(|n: u32| Some(((), n))).sink(&missing));
    for flow in [reads, writes] {
        let error = flow.run(()).await.unwrap_err();
        let said = format!("{error:?}");
        assert!(said.contains("could not start") && said.contains("`mising`"), "{said}");
        assert!(matches!(error.downcast_ref(), Some(Error::Begin { .. } | Error::Open { .. })), "{said}");
    }
    Ok(())
}

#[tokio::test]
async fn a_topic_of_an_unnamed_flow_without_a_group_is_an_error_that_says_what_to_do() -> Result<()> {
    let kafka = cluster(&["in"], 1).await;
    let input: Topic<(), u32> = kafka.topic("in").json();
    let flow = || Flow::<()>::new().with(source(&input).takes().handle(|_: u32| ()));
    let said = format!("{:?}", flow().run(()).await.unwrap_err());
    assert!(said.contains("`in`") && said.contains(".named(") && said.contains(".group("), "{said}");
    let named = flow().named("reader");
    let handle = named.handle();
    let running = tokio::spawn(named.run(()));
    handle.stop();
    running.await??;
    Ok(())
}

#[tokio::test]
async fn two_caches_of_two_stores_are_still_an_error_beside_topics() -> Result<()> {
    let kafka = cluster(&["in"], 1).await;
    let input: Topic<(), u32> = kafka.topic("in").json().group("test");
    let (one, other) = (Store::in_memory()?, Store::in_memory()?);
    let (one, other) = (one.cache::<(), u32>("a")?, other.cache::<(), u32>("b")?);
    let flow =
        Flow::<()>::new().with(source(&input).takes().handle(|n: u32| Some(((), n))).sink(&one).sink(&other));
    assert!(matches!(flow.run(()).await.unwrap_err().downcast_ref(), Some(Error::Store { .. })));
    Ok(())
}
