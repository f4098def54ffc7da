//! Where flows go on in topics: after stops, seeks and lost stores, alone and with others.
use crate::handling::{cluster, read_all};
use slipstream::{
    Cache, Error, Flow, FlowHandle, Kafka, LostState, Message, Offset, OnLostState, Positions, Result, Store,
    Topic, TopicError, kafka::Record, source,
};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::task::JoinHandle;

/// Waits until `is` so, at most a minute.
async fn until(what: &str, is: impl AsyncFn() -> bool) {
    let wait = async {
        while !is().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), wait).await.unwrap_or_else(|_| panic!("never: {what}"));
}

/// The numbers from `from` on, up to `to`, dealt out to the partitions.
async fn fill(kafka: &Kafka, topic: &str, partitions: i32, numbers: std::ops::Range<u32>) {
    let topic: Topic<(), u32> = kafka.topic(topic).json();
    for number in numbers {
        let partition = i32::try_from(number).unwrap() % partitions;
        topic.send_record(Record::new((), number).partition(partition)).await.unwrap();
    }
}

type Seen = Arc<Mutex<Vec<u32>>>;

/// A flow that counts each number in a store, and notes it beside.
struct Counting {
    topic: Topic<(), u32>,
    seen: Seen,
    counts: Cache<u32, u32>,
    handle: FlowHandle,
    running: JoinHandle<Result<()>>,
}

fn counting(topic: &Topic<(), u32>, store: &Store, set: impl FnOnce(Flow<()>) -> Flow<()>) -> Counting {
    let (seen, counts) = (Seen::default(), store.cache::<u32, u32>("counts").unwrap());
    let (note, count) = (Arc::clone(&seen), counts.clone());
    let handler = move |number: u32| {
        note.lock().unwrap().push(number);
        count.update(&number, |count| count.unwrap_or(0) + 1).map(drop)
    };
    let flow = Flow::new().named("count").store(store).commit_every(Duration::from_millis(5));
    let flow = set(flow.with(source(topic).takes().handle(handler)));
    let handle = flow.handle();
    Counting { topic: topic.clone(), seen, counts, handle, running: tokio::spawn(flow.run(())) }
}

impl Counting {
    fn seen(&self) -> Vec<u32> {
        let mut seen = self.seen.lock().unwrap().clone();
        seen.sort_unstable();
        seen
    }
    async fn has_seen(&self, count: usize) {
        until(&format!("{count} seen, but {:?}", self.seen()), async || self.seen().len() >= count).await;
    }
    async fn stop(self) -> Vec<u32> {
        self.handle.stop();
        self.running.await.unwrap().unwrap();
        let mut seen = self.seen.lock().unwrap().clone();
        seen.sort_unstable();
        seen
    }
}

fn same(flow: Flow<()>) -> Flow<()> {
    flow
}

/// What the group has of a topic, read by a client of its own.
pub(crate) fn of_group(
    kafka: &Kafka,
    group: &str,
    topic: &str,
    partitions: i32,
) -> Vec<Option<(i64, String)>> {
    use rdkafka::{
        ClientConfig, TopicPartitionList,
        consumer::{BaseConsumer, Consumer},
    };
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", kafka.bootstrap_servers())
        .set("group.id", group)
        .create()
        .unwrap();
    let mut list = TopicPartitionList::new();
    list.add_partition_range(topic, 0, partitions - 1);
    let committed = consumer.committed_offsets(list, Duration::from_secs(10)).unwrap();
    let elements = committed.elements();
    let of = |element: &rdkafka::topic_partition_list::TopicPartitionListElem<'_>| match element.offset() {
        rdkafka::Offset::Offset(offset) => Some((offset, element.metadata().to_owned())),
        _ => None,
    };
    elements.iter().map(of).collect()
}

#[tokio::test]
async fn a_flow_goes_on_where_its_store_stands_and_tells_the_group() -> Result<()> {
    let (kafka, folder) = (cluster(&["in"], 2).await, tempfile::tempdir()?);
    fill(&kafka, "in", 2, 0..10).await;
    let topic: Topic<(), u32> = kafka.topic("in").json();
    let store = Store::open(folder.path())?;
    let flow = counting(&topic.clone().until(Offset::End), &store, same);
    let Counting { topic: read, running, .. } = flow;
    running.await??;
    assert_eq!(read.position(), Positions::from_iter([(0, 5), (1, 5)]));
    let group = of_group(&kafka, "count", "in", 2);
    for partition in &group {
        let (offset, beside) = partition.as_ref().unwrap();
        assert_eq!(*offset, 5);
        for part in [store.path().map(|_| "\"instance\":\"default\"").unwrap(), "\"flow\":\"count\""] {
            assert!(beside.contains(part), "{part} is not in {beside}");
        }
        // The mock keeps what is beside an offset as the real one does.
        assert!(beside.contains("\"epoch\":"), "{beside}");
    }
    fill(&kafka, "in", 2, 10..14).await;
    let flow = counting(&topic.until(Offset::End), &store, same);
    let (counts, seen) = (flow.counts.clone(), Arc::clone(&flow.seen));
    flow.running.await??;
    let mut seen = seen.lock().unwrap().clone();
    seen.sort_unstable();
    assert_eq!(seen, [10, 11, 12, 13]);
    assert!(counts.values().all(|count| count.unwrap() == 1));
    Ok(())
}

#[tokio::test]
async fn without_a_store_the_group_knows_where_to_go_on() -> Result<()> {
    let kafka = cluster(&["in", "out"], 1).await;
    let (input, output): (Topic<(), u32>, Topic<(), u32>) =
        (kafka.topic("in").json(), kafka.topic("out").json());
    for numbers in [0..3, 3..5] {
        fill(&kafka, "in", 1, numbers).await;
        let until_now = input.clone().until(Offset::End);
        let copy = source(&until_now).takes().handle(|number: u32| Some(((), number))).sink(&output);
        Flow::new().named("copy").with(copy).run(()).await?;
    }
    let copied: Vec<_> = read_all(&output).await.into_iter().map(|message| message.value).collect();
    assert_eq!(copied, [0, 1, 2, 3, 4]);
    assert_eq!(of_group(&kafka, "copy", "in", 1)[0].as_ref().unwrap().0, 5);
    Ok(())
}

#[tokio::test]
async fn start_says_where_a_flow_begins_that_knows_nothing_and_nothing_more() -> Result<()> {
    let kafka = cluster(&["in"], 2).await;
    fill(&kafka, "in", 2, 0..10).await;
    let store = Store::in_memory()?;
    let topic: Topic<(), u32> = kafka.topic("in").json().start(Offset::End).start_partition(1, 3);
    let flow = counting(&topic, &store, same);
    flow.has_seen(2).await;
    fill(&kafka, "in", 2, 10..12).await;
    flow.has_seen(4).await;
    assert_eq!(flow.stop().await, [7, 9, 10, 11]);
    // Now it is the store that knows.
    let topic = topic.start(Offset::Beginning);
    let flow = counting(&topic, &store, same);
    fill(&kafka, "in", 2, 12..14).await;
    flow.has_seen(2).await;
    assert_eq!(flow.stop().await, [12, 13]);
    Ok(())
}

#[tokio::test]
async fn a_seek_goes_back_a_pause_holds_and_the_lag_is_told() -> Result<()> {
    let kafka = cluster(&["in"], 1).await;
    fill(&kafka, "in", 1, 0..5).await;
    let (topic, store): (Topic<(), u32>, _) = (kafka.topic("in").json(), Store::in_memory()?);
    let flow = counting(&topic, &store, same);
    flow.has_seen(5).await;
    until("all is published", async || topic.position().next(0) == Some(5)).await;
    assert_eq!(topic.lag().await?.into_iter().collect::<Vec<_>>(), [(0, 0)]);

    topic.pause();
    fill(&kafka, "in", 1, 5..7).await;
    topic.seek([(0, 3)]).await?;
    assert_eq!(topic.lag().await?.into_iter().collect::<Vec<_>>(), [(0, 2)], "by what is published");
    assert_eq!(flow.seen().len(), 5);
    topic.resume();
    flow.has_seen(9).await;
    assert_eq!(flow.seen(), [0, 1, 2, 3, 3, 4, 4, 5, 6]);

    let error = topic.seek([(0, Offset::Beginning), (7, Offset::At(0))]).await.unwrap_err();
    assert!(matches!(&error, TopicError::NotOurs { partitions, .. } if partitions == &[7]), "{error}");
    flow.has_seen(16).await;
    flow.stop().await;
    Ok(())
}

#[tokio::test]
async fn a_store_that_was_lost_is_an_error_that_names_it_and_a_choice() -> Result<()> {
    let kafka = cluster(&["in"], 1).await;
    fill(&kafka, "in", 1, 0..4).await;
    let topic: Topic<(), u32> = kafka.topic("in").json().until(Offset::End);
    let folders = [tempfile::tempdir()?, tempfile::tempdir()?, tempfile::tempdir()?];
    let stores: Vec<_> = folders.iter().map(|folder| Store::open(folder.path())).collect::<Result<_, _>>()?;
    counting(&topic, &stores[0], same).running.await??;

    let stopped = counting(&topic, &stores[1], same).running.await?.unwrap_err();
    let Some(Error::Read { cause, .. }) = stopped.downcast_ref() else { panic!("{stopped:?}") };
    let said = format!("{stopped:?}");
    assert!(said.contains("lost or swapped") && said.contains("OnLostState::Rebuild"), "{said}");
    let lost = cause.downcast_ref::<Error>().map(|error| match error {
        Error::LostState { cause } => cause.downcast_ref::<LostState>().is_some(),
        _ => false,
    });
    assert_eq!(lost, Some(true), "{said}");

    let rebuilt = counting(&topic, &stores[1], |flow| flow.on_lost_state(OnLostState::Rebuild));
    let seen = Arc::clone(&rebuilt.seen);
    rebuilt.running.await??;
    assert_eq!(*seen.lock().unwrap(), [0, 1, 2, 3]);

    fill(&kafka, "in", 1, 4..5).await;
    let accepted = counting(&topic, &stores[2], |flow| flow.on_lost_state(OnLostState::Accept));
    let seen = Arc::clone(&accepted.seen);
    accepted.running.await??;
    assert_eq!(*seen.lock().unwrap(), [4]);
    Ok(())
}

#[tokio::test]
async fn a_broadcast_topic_is_read_whole_by_each_flow_and_its_positions_are_in_the_store() -> Result<()> {
    let kafka = cluster(&["in"], 2).await;
    fill(&kafka, "in", 2, 0..6).await;
    let topic: Topic<(), u32> = kafka.topic("in").json().broadcast();
    let stores = [Store::in_memory()?, Store::in_memory()?];
    let flows: Vec<_> =
        stores.iter().map(|store| counting(&topic.clone().until(Offset::End), store, same)).collect();
    for flow in flows {
        let seen = Arc::clone(&flow.seen);
        flow.running.await??;
        let mut seen = seen.lock().unwrap().clone();
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2, 3, 4, 5]);
    }
    fill(&kafka, "in", 2, 6..7).await;
    let again = counting(&topic.until(Offset::End), &stores[0], same);
    let seen = Arc::clone(&again.seen);
    again.running.await??;
    assert_eq!(*seen.lock().unwrap(), [6]);
    Ok(())
}

/// Of a group that forgets a member soon.
fn shared(kafka: &Kafka, topic: &str) -> Topic<(), u32> {
    let settings = [("session.timeout.ms", "6000"), ("heartbeat.interval.ms", "200")];
    kafka.topic(topic).json().settings(settings).unwrap()
}

#[tokio::test]
async fn two_instances_share_the_partitions_and_nothing_is_counted_twice_or_lost() -> Result<()> {
    let kafka = cluster(&["in"], 4).await;
    fill(&kafka, "in", 4, 0..40).await;
    let stores = [Store::in_memory()?, Store::in_memory()?];
    let one = counting(&shared(&kafka, "in"), &stores[0], |flow| flow.instance("one"));
    one.has_seen(40).await;
    let other = counting(&shared(&kafka, "in"), &stores[1], |flow| flow.instance("other"));
    // New ones come in until the newcomer has some, too.
    let next = AtomicU32::new(40);
    until("both have some", async || {
        let from = next.fetch_add(4, Ordering::Relaxed);
        fill(&kafka, "in", 4, from..from + 4).await;
        other.seen().iter().any(|number| *number >= 40)
    })
    .await;
    let all: Vec<u32> = (0..next.load(Ordering::Relaxed)).collect();
    let seen = || {
        let mut both = [one.seen(), other.seen()].concat();
        both.sort_unstable();
        both.dedup();
        both
    };
    until("all are seen", async || seen() == all).await;
    // What came with the partitions was handled again here, for the state; each store counts a message once.
    for counts in [&one.counts, &other.counts] {
        assert!(counts.values().all(|count| count.unwrap() == 1));
    }
    one.stop().await;
    other.stop().await;
    let of_group: i64 = of_group(&kafka, "count", "in", 4).into_iter().map(|known| known.unwrap().0).sum();
    assert_eq!(of_group, i64::try_from(all.len())?);
    Ok(())
}

#[tokio::test]
async fn a_flow_whose_brokers_cannot_be_reached_can_be_stopped() -> Result<()> {
    // Nothing listens there: the port was ours a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let kafka = Kafka::new([("bootstrap.servers", format!("127.0.0.1:{port}"))])?;
    let topic: Topic<(), u32> = kafka.topic("in").json();
    let flow = Flow::<()>::new().named("waits").with(source(&topic).takes().handle(|_: u32| ()));
    let handle = flow.handle();
    let running = tokio::spawn(flow.run(()));
    tokio::task::yield_now().await;
    assert!(!running.is_finished());
    handle.stop();
    running.await??;
    Ok(())
}

#[tokio::test]
async fn a_topic_is_read_without_a_flow_too() -> Result<()> {
    let kafka = cluster(&["in"], 2).await;
    fill(&kafka, "in", 2, 0..6).await;
    let topic: Topic<(), u32> = kafka.topic("in").json().start_partition(1, 2);
    let mut values: Vec<_> =
        read_all(&topic).await.into_iter().map(|message: Message<(), u32>| message.value).collect();
    values.sort_unstable();
    assert_eq!(values, [0, 2, 4, 5]);
    Ok(())
}
