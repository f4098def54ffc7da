//! Several topics in one flow: two clusters joined, a topic that every process reads, nulls.
use crate::{
    broker,
    group::Group,
    log::Log,
    running::{Running, Seen, becomes, ends, fails, seeing, topic},
};
use slipstream::{
    Cache, Flow, Kafka, Message, Offset, Result, Store, Topic, flow, handle, kafka::Encoded, source,
};
use std::{collections::BTreeMap, sync::Arc};

struct Sky {
    weather: Topic<String, i64>,
    activity: Topic<String, String>,
    latest: Cache<(String, i64), i64>,
    joined: Topic<String, String>,
}

#[handle(app.weather, sink = app.latest)]
fn handle_weather(app: &Sky, weather: Message<String, i64>) -> ((String, i64), i64) {
    ((weather.key, weather.offset), weather.value)
}

#[handle(app.activity, sink = app.joined)]
fn handle_activity(app: &Sky, activity: Message<String, String>) -> Result<(String, String)> {
    let at = (activity.key.clone(), i64::MAX);
    let weather = app.latest.as_of(&at)?.map_or(-1, |(_, degrees)| degrees);
    Ok((activity.key, format!("{} at {weather}", activity.value)))
}

/// The sources are on two clusters, and so the sink is on one of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn topics_of_two_clusters_are_joined_in_one_flow() -> Result<()> {
    let Some((one, other)) = broker::two() else { return Ok(()) };
    let weather = Log::new(one, "weather", 2).await;
    // The same name, on another cluster: they are two topics all the same.
    let activity = Log::new(other, "activity", 2).await;
    let joined = Log::new(other, "joined", 1).await;
    let (first, second) =
        (Kafka::new([("bootstrap.servers", one)])?, Kafka::new([("bootstrap.servers", other)])?);
    let folder = tempfile::tempdir()?;
    let run = || -> Result<(Flow<Sky>, Arc<Sky>)> {
        let app = Sky {
            weather: first.topic(&weather.name).json(),
            activity: second.topic(&activity.name).text(),
            latest: Cache::open(folder.path())?,
            joined: second.topic(&joined.name).text(),
        };
        Ok((flow![handle_weather, handle_activity].named(&weather.name), Arc::new(app)))
    };
    let keys = ["east", "west", "north", "south"];
    let put = |log: &Log, values: &dyn Fn(&str) -> String| {
        let writer = log.writer();
        for key in keys {
            writer.put(None, Some(key.as_bytes()), Some(values(key).as_bytes()));
        }
        writer.done();
    };
    for round in 0..2 {
        let (flow, app) = run()?;
        let handle = flow.handle();
        let running = tokio::spawn(flow.run(Arc::clone(&app)));
        put(&weather, &|key| (round * 100 + key.len()).to_string());
        let count = (round + 1) * keys.len();
        becomes(|| app.latest.iter().count(), count).await;
        put(&activity, &|key| format!("walk {round} in the {key}"));
        becomes(|| joined.ends(0).1, i64::try_from(count)?).await;
        handle.stop();
        running.await??;
    }
    let mut expected: Vec<_> = (0..2)
        .flat_map(|round| keys.map(|key| format!("walk {round} in the {key} at {}", round * 100 + key.len())))
        .collect();
    expected.sort();
    assert_eq!(joined.texts(), expected);
    // Each cluster has the group's offsets of its own topic.
    for (servers, log) in [(one, &weather), (other, &activity)] {
        assert_eq!(Group::new(servers, &weather.name).offsets(log).values().sum::<i64>(), 8);
    }
    Ok(())
}

/// Topics of one name on two clusters.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn topics_of_one_name_on_two_clusters_are_two_sources_with_positions_of_their_own() -> Result<()> {
    let Some((one, other)) = broker::two() else { return Ok(()) };
    let here = Log::of_numbers(one, "same", 10).await;
    let there = Log::there(other, &here.name);
    Kafka::new([("bootstrap.servers", other)])?.create_topic(&there.name, 1).await?;
    there.numbers(0, 0..3);
    let store = Store::in_memory()?;
    for again in [false, true] {
        let (near, far) = (Seen::default(), Seen::default());
        let reads = |log: &Log, seen: &Seen| {
            let seen = seen.clone();
            source(&topic(log).until(Offset::End)).handle(move |message: Encoded<(), String>| {
                seen.add(&message.message().unwrap());
            })
        };
        let flow = Flow::new().with(reads(&here, &near)).with(reads(&there, &far));
        ends(flow.named(&here.name).store(&store)).await?;
        assert_eq!((near.len(), far.len()), if again { (0, 0) } else { (10, 3) });
    }
    Ok(())
}

/// Topics of one cluster share one member of the group.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn topics_of_one_cluster_and_group_share_one_member() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let (one, other) =
        (Log::of_numbers(servers, "share-one", 10).await, Log::of_numbers(servers, "share-two", 10).await);
    let kafka = Kafka::new([("bootstrap.servers", servers)])?;
    let seen = Seen::default();
    let sees = seen.clone();
    let read = |log: &Log| kafka.topic::<(), String>(&log.name).text();
    let route = source(&read(&one)).and(&read(&other)).handle(move |message: Encoded<(), String>| {
        sees.add(&message.message().unwrap());
    });
    let running = Running::new(Flow::new().with(route).named(&one.name));
    seen.has(20).await;
    let group = Group::new(servers, &one.name);
    assert_eq!(group.members().len(), 1);
    running.stops().await?;
    assert_eq!((group.offsets(&one)[&0], group.offsets(&other)[&0]), (10, 10));
    assert!(group.members().is_empty(), "it has left");
    Ok(())
}

/// All partitions in every process, without a group, the positions in the store.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broadcast_topic_is_read_as_a_whole_by_each_flow_and_once_by_each_store() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = Log::new(servers, "broadcast", 3).await;
    (0..3).for_each(|partition| log.numbers(partition, 0..10));
    let (one, other) = (Seen::default(), Seen::default());
    let (first, second) = (Store::in_memory()?, Store::in_memory()?);
    let start = |seen: &Seen, store: &Store| {
        Running::new(seeing(&topic(&log).broadcast(), seen).named(&log.name).store(store))
    };
    let (a, b) = (start(&one, &first), start(&other, &second));
    one.has(30).await;
    other.has(30).await;
    let group = Group::new(servers, &log.name);
    assert!(group.members().is_empty() && group.offsets(&log).is_empty());
    a.stops().await?;
    (0..3).for_each(|partition| log.numbers(partition, 10..15));
    other.has(45).await;
    b.stops().await?;
    let a = start(&one, &first);
    one.has(45).await;
    a.stops().await?;
    for seen in [one, other] {
        assert_eq!(seen.len(), 45);
        assert_eq!(seen.once().len(), 45);
    }
    Ok(())
}

/// F3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_null_is_a_null_on_the_wire_a_none_for_the_handler_and_a_deletion_in_a_cache() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    let log = Log::new(servers, "null", 1).await;
    let kafka = Kafka::new([("bootstrap.servers", servers)])?;
    let topic: Topic<String, Option<i64>> = kafka.topic(&log.name).json();
    for (key, value) in [("a", Some(1)), ("b", Some(2)), ("a", None)] {
        topic.send(key.to_owned(), value).await?;
    }
    let values: Vec<_> = log.read().into_iter().map(|row| row.value).collect();
    assert_eq!(values, [Some(b"1".to_vec()), Some(b"2".to_vec()), None]);

    let cache: Cache<String, i64> = Cache::in_memory()?;
    let route = source(&topic.clone().until(Offset::End)).handle(|message: Encoded<String, Option<i64>>| {
        message.message().map(|message| (message.key, message.value))
    });
    ends(Flow::new().with(route.sink(&cache)).named(&log.name)).await?;
    let rows: BTreeMap<_, _> = cache.iter().map(|row| row.unwrap()).collect();
    assert_eq!(rows, BTreeMap::from([("b".to_owned(), 2)]));
    Ok(())
}

/// F3, F2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_decoded_is_named_with_its_place_and_its_part_and_is_not_committed() -> Result<()> {
    let Some(servers) = broker::one() else { return Ok(()) };
    for (key, value, part) in [
        (Some(&b"k"[..]), None, "the value"),
        (Some(b"k"), Some(&b"null"[..]), "the value"),
        (Some(b"k"), Some(b"{"), "the value"),
        (Some(b"\xff"), Some(b"3"), "the key"),
        (None, Some(b"3"), "the key"),
    ] {
        let log = Log::new(servers, "decode", 1).await;
        let writer = log.writer();
        writer.put(Some(0), Some(b"k"), Some(b"1"));
        writer.put(Some(0), Some(b"k"), Some(b"2"));
        writer.put(Some(0), key, value);
        writer.put(Some(0), Some(b"k"), Some(b"4"));
        writer.done();
        let topic: Topic<String, i64> = Kafka::new([("bootstrap.servers", servers)])?.topic(&log.name).json();
        let sum: Cache<String, i64> = Cache::in_memory()?;
        let route = source(&topic).handle(|message: Encoded<String, i64>| {
            message.message().map(|message| (message.key, message.value))
        });
        let error = fails(Flow::new().with(route.sink(&sum)).named(&log.name)).await;
        for found in [part, &log.name, "message 2", "partition 0"] {
            assert!(error.contains(found), "{found}: {error}");
        }
        assert_eq!(sum.get("k")?, Some(2));
        assert_eq!(Group::new(servers, &log.name).offsets(&log), BTreeMap::from([(0, 2)]));
    }
    Ok(())
}
