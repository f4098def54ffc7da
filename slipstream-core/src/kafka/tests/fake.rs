//! A flow that reads topics, as little of one as they need: what it publishes is told to it by the test.
use crate::{
    AsyncIterable, BoxError, Message,
    kafka::{Encoded, Kafka, Topic, TopicError, source},
    position::Positions,
    source::{AnySeekable, Chunk, Feed, Joined, Joining, Judged, Mark, Seeks, Standing},
};
use futures::FutureExt;
use rdkafka::{
    ClientConfig, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    producer::{BaseProducer, BaseRecord, Producer},
    types::{RDKafkaApiKey, RDKafkaRespErr},
};
use std::{
    collections::BTreeMap,
    future::poll_fn,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

/// In which a rebalance of two takes a second or two.
pub(super) const GROUP: [(&str, &str); 3] = [
    ("session.timeout.ms", "6000"),
    ("heartbeat.interval.ms", "200"),
    ("topic.metadata.refresh.interval.ms", "500"),
];

/// The longest that anything here may take; a test that waits so long has failed.
pub(super) const LONG: Duration = Duration::from_secs(60);

/// What a flow is to its members.
pub(super) struct FakeFlow {
    pub(super) joining: Arc<Joining>,
    sources: Mutex<Vec<Source>>,
    store: &'static str,
    pub(super) judges: Mutex<Judged>,
    in_memory: bool,
    /// In the order in which they happened.
    pub(super) log: Mutex<Vec<String>>,
}

type Source = (Arc<dyn AnySeekable>, Arc<Stands>);

struct Stands {
    flow: Weak<FakeFlow>,
    published: Mutex<Positions>,
}

/// One topic of it, opened.
pub(super) struct Reader {
    pub(super) flow: Arc<FakeFlow>,
    pub(super) topic: Topic<String, String>,
    pub(super) name: String,
    pub(super) source: Arc<dyn AnySeekable>,
    stands: Arc<Stands>,
    feed: Box<dyn Feed<Encoded<String, String>>>,
    chunk: Chunk<Encoded<String, String>>,
    _link: Arc<dyn Fn() -> Positions + Send + Sync>,
}

impl FakeFlow {
    pub(super) fn new(name: &str) -> Arc<Self> {
        Self::of(Joining::new(Some(name), None, false), "", false)
    }
    pub(super) fn with_store(name: &str, instance: &str, store: &'static str) -> Arc<Self> {
        Self::of(Joining::new(Some(name), Some(instance), true), store, false)
    }
    pub(super) fn of(joining: Joining, store: &'static str, in_memory: bool) -> Arc<Self> {
        let joining = Arc::new(joining);
        let (sources, log, judges) = (Mutex::default(), Mutex::default(), Mutex::new(Judged::Same));
        Arc::new(FakeFlow { joining, sources, store, judges, in_memory, log })
    }

    pub(super) async fn try_read(
        self: &Arc<Self>,
        topic: &Topic<String, String>,
        stored: &[(i32, i64)],
    ) -> Result<Reader, BoxError> {
        Ok(self.try_read_all(&[topic], stored).await?.remove(0))
    }

    pub(super) async fn read(self: &Arc<Self>, topic: &Topic<String, String>) -> Reader {
        self.try_read(topic, &[]).await.unwrap()
    }

    pub(super) async fn try_read_all(
        self: &Arc<Self>,
        topics: &[&Topic<String, String>],
        stored: &[(i32, i64)],
    ) -> Result<Vec<Reader>, BoxError> {
        let mut joined = Vec::new();
        for topic in topics {
            let seeks: Seeks<Encoded<String, String>> = topic.seeks().unwrap();
            let source = seeks.any();
            let name = source.join(&self.joining).await?.unwrap();
            let stands = Arc::new(Stands {
                flow: Arc::downgrade(self),
                published: Mutex::new(stored.iter().copied().collect()),
            });
            self.sources.lock().unwrap().push((Arc::clone(&source), Arc::clone(&stands)));
            let control = source.control().unwrap().clone();
            joined.push((Topic { control, ..(*topic).clone() }, seeks, source, name, stands));
        }
        let readers = joined.into_iter().map(|(topic, seeks, source, name, stands)| {
            let of = Arc::clone(&stands);
            let link: Arc<dyn Fn() -> Positions + Send + Sync> =
                Arc::new(move || of.published.lock().unwrap().clone());
            topic.control.link(&link);
            let standing = Arc::clone(&stands) as Arc<dyn Standing>;
            let joined = Joined { standing };
            let feed = seeks.open(Positions::default(), Some(joined));
            let flow = Arc::clone(self);
            Reader { flow, topic, name, source, stands, feed, chunk: Chunk::new(), _link: link }
        });
        Ok(readers.collect())
    }

    fn note(&self, line: impl Into<String>) {
        self.log.lock().unwrap().push(line.into());
    }

    /// What has happened, with what is wanted in it.
    pub(super) fn has(&self, wanted: &str) -> bool {
        self.log.lock().unwrap().iter().any(|line| line.contains(wanted))
    }

    /// Commits, and tells the sources.
    pub(super) fn commit(&self) {
        for (source, stands) in self.sources.lock().unwrap().iter() {
            let positions = stands.published.lock().unwrap().clone();
            let mark = Mark::new(self.joining.flow.as_deref().map(str::to_owned), self.store, 1, positions);
            source.committed(&mark, &self.joining).now_or_never().expect("nobody is waited for").unwrap();
        }
    }
}

impl Stands {
    fn flow(&self) -> Arc<FakeFlow> {
        self.flow.upgrade().unwrap()
    }
}

impl Standing for Stands {
    fn known(&self) -> Result<Positions, BoxError> {
        Ok(self.published.lock().unwrap().clone())
    }
    fn begin(&self, starts: Positions) -> Result<(), BoxError> {
        if self.flow().joining.has_store {
            self.flow().note(format!("begin {:?}", starts.iter().collect::<Vec<_>>()));
            for (partition, next) in starts.iter() {
                self.published.lock().unwrap().set(partition, next, 0);
            }
        }
        Ok(())
    }
    fn judge(&self, mark: &Mark) -> Result<Judged, BoxError> {
        self.flow().note(format!("judge {}", mark.store));
        Ok(*self.flow().judges.lock().unwrap())
    }
    fn is_in_memory(&self) -> bool {
        self.flow().in_memory
    }
    fn commit(&self, _: Duration) -> Result<(), BoxError> {
        self.flow().note("commit");
        // On another thread, as in a flow, which the poll thread then waits for.
        let flow = self.flow();
        std::thread::spawn(move || flow.commit()).join().unwrap();
        Ok(())
    }
}

impl Reader {
    /// The next chunk: empty at the end.
    pub(super) async fn try_chunk(&mut self) -> Result<Vec<Encoded<String, String>>, BoxError> {
        let Reader { feed, chunk, .. } = self;
        chunk.items.clear();
        chunk.positions.clear();
        let filled = tokio::time::timeout(LONG, poll_fn(|cx| feed.poll_chunk(chunk, cx)));
        match filled.await.expect("something comes") {
            Ok(()) => Ok(chunk.items.clone()),
            Err(fault) => match fault.cause {
                crate::error::Cause::Source(cause) => Err(cause),
                cause => panic!("{cause:?}"),
            },
        }
    }

    /// The next messages that are not of before a seek or a revocation, as a route sees them: partition, offset.
    pub(super) async fn next(&mut self) -> Vec<(i32, i64)> {
        loop {
            let items = self.try_chunk().await.unwrap();
            let stale = self.topic.control.stale_since(self.chunk.as_of);
            let places: Vec<_> = items.iter().map(|item| (item.partition(), item.offset())).collect();
            let ended = places.is_empty();
            let fresh: Vec<_> =
                places.into_iter().filter(|(partition, _)| !stale.contains(partition)).collect();
            if ended || !fresh.is_empty() {
                return fresh;
            }
        }
    }

    /// So many messages: for each partition its offsets, and all of them published.
    pub(super) async fn take(&mut self, count: usize) -> BTreeMap<i32, Vec<i64>> {
        let (mut taken, mut left) = (BTreeMap::<i32, Vec<i64>>::new(), count);
        while left > 0 {
            let places = self.next().await;
            assert!(!places.is_empty(), "it has ended, {left} before its end");
            for (partition, offset) in places {
                taken.entry(partition).or_default().push(offset);
                self.publish(partition, offset);
                left = left.saturating_sub(1);
            }
        }
        taken
    }

    pub(super) fn publish(&self, partition: i32, offset: i64) {
        self.stands.published.lock().unwrap().set(partition, offset + 1, 0);
    }

    /// Polls once, without waiting.
    pub(super) fn look(&mut self) -> Vec<(i32, i64)> {
        let Reader { feed, chunk, .. } = self;
        chunk.items.clear();
        chunk.positions.clear();
        match poll_fn(|cx| feed.poll_chunk(chunk, cx)).now_or_never() {
            Some(filled) => {
                assert!(filled.is_ok());
                chunk.items.iter().map(|item| (item.partition(), item.offset())).collect()
            }
            None => Vec::new(),
        }
    }

    /// An item of the last chunk once more.
    pub(super) fn again(&mut self, at: usize) -> Option<Encoded<String, String>> {
        self.feed.again(at).map(|again| again.unwrap_or_else(|fault| panic!("{:?}", fault.cause)))
    }

    /// What tells its member from others.
    pub(super) fn members(&self) -> usize {
        let (member, _) = self.topic.reading.now().unwrap();
        Arc::as_ptr(&member).addr()
    }

    /// The partitions that are its process's.
    pub(super) fn assigned(&self) -> Vec<i32> {
        let (_, slot) = self.topic.reading.now().unwrap();
        slot.gate().assigned().map(|known| known.partition).collect()
    }

    pub(super) async fn leave(&self) {
        self.source.leave(&self.flow.joining).await.unwrap();
    }
}

/// A cluster in this process, with these topics of so many partitions.
pub(super) async fn cluster(topics: &[(&str, i32)]) -> Kafka {
    let kafka = Kafka::in_process().unwrap();
    for (topic, partitions) in topics {
        kafka.create_topic(topic, *partitions).await.unwrap();
    }
    kafka
}

pub(super) fn words(kafka: &Kafka, topic: &str) -> Topic<String, String> {
    kafka.topic(topic).text().settings(GROUP).unwrap()
}

/// Adds so many messages to each of these partitions.
pub(super) fn fill(kafka: &Kafka, topic: &str, partitions: &[i32], count: usize) {
    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", kafka.bootstrap_servers())
        .set("linger.ms", "1")
        .create()
        .unwrap();
    for partition in partitions {
        for at in 0..count {
            let (key, value) = (format!("k{at}"), format!("v{at}"));
            let record = BaseRecord::to(topic).partition(*partition).key(&key).payload(&value);
            producer.send(record).map_err(|(error, _)| error).unwrap();
        }
    }
    producer.flush(LONG).unwrap();
}

/// A client that sees a group from outside.
fn of_group(kafka: &Kafka, group: &str) -> BaseConsumer {
    ClientConfig::new()
        .set("bootstrap.servers", kafka.bootstrap_servers())
        .set("group.id", group)
        .create()
        .unwrap()
}

/// What a group has: offset and text.
pub(super) fn group_offsets(
    kafka: &Kafka,
    group: &str,
    topic: &str,
    partitions: i32,
) -> Vec<(i32, i64, String)> {
    let consumer = of_group(kafka, group);
    let mut list = TopicPartitionList::new();
    for partition in 0..partitions {
        list.add_partition(topic, partition);
    }
    let list = consumer.committed_offsets(list, LONG).unwrap();
    let elements = list.elements();
    let known = elements.iter().filter_map(|element| match element.offset() {
        Offset::Offset(offset) => Some((element.partition(), offset, element.metadata().to_owned())),
        _ => None,
    });
    known.collect()
}

/// Commits for a group from outside.
pub(super) fn commit_offset(
    kafka: &Kafka,
    group: &str,
    topic: &str,
    partition: i32,
    offset: i64,
    text: &str,
) {
    let consumer = of_group(kafka, group);
    let mut list = TopicPartitionList::new();
    let mut element = list.add_partition(topic, partition);
    element.set_offset(Offset::Offset(offset)).unwrap();
    element.set_metadata(text);
    consumer.commit(&list, rdkafka::consumer::CommitMode::Sync).unwrap();
}

/// All of a stream, with the messages' own places.
pub(super) async fn collect(
    topic: &Topic<String, String>,
) -> Result<Vec<Message<String, String>>, TopicError> {
    use futures::TryStreamExt;
    tokio::time::timeout(LONG, topic.stream().try_collect()).await.expect("it ends")
}

/// Joins with a shorter patience.
pub(super) async fn join_within(topic: &Topic<String, String>, within: Duration) -> TopicError {
    let joining = Joining::new(Some("flow"), None, false);
    source::join(topic, &joining, within).await.map(drop).unwrap_err()
}

/// The next heartbeat is answered as to a member that the group has lost.
pub(super) fn lose_member(kafka: &Kafka) {
    let lost = RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID;
    kafka.mock().unwrap().request_errors(RDKafkaApiKey::Heartbeat, &[lost]);
}

/// Nothing answers from now on.
pub(super) fn stop_broker(kafka: &Kafka) {
    kafka.mock().unwrap().broker_down(1).unwrap();
}
