//! A topic seen from outside of the library, by clients of its own: made, filled, read back, cut and grown.
use rdkafka::{
    ClientConfig, Message as _, Offset, TopicPartitionList,
    admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication},
    client::DefaultClientContext,
    consumer::{BaseConsumer, Consumer},
    error::KafkaError,
    message::{Header, Headers, OwnedHeaders},
    metadata::{MetadataPartition, MetadataTopic},
    producer::{BaseProducer, BaseRecord, Producer},
    types::RDKafkaErrorCode,
};
use std::{
    ops::Range,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// Nothing that a broker on this machine is asked for takes longer.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// A name that no other test has, in no other run.
pub(crate) fn unique(what: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() % 100_000_000;
    format!("{what}-{clock}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A topic of its own name.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    pub(crate) servers: String,
    pub(crate) name: String,
}

/// A record as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) millis: Option<i64>,
}

impl Row {
    /// The value as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.value.clone().unwrap()).unwrap()
    }
}

impl Log {
    pub(crate) async fn new(servers: &str, what: &str, partitions: i32) -> Log {
        let log = Log::there(servers, &unique(what));
        let topic = NewTopic::new(&log.name, partitions, TopicReplication::Fixed(1));
        let options = AdminOptions::new().request_timeout(Some(Duration::from_secs(10)));
        // A broker that was frozen or killed a moment ago may not answer to the first try, and have heard it.
        for left in (0..6).rev() {
            match log.admin().create_topics([&topic], &options).await.as_deref() {
                Ok([Ok(_) | Err((_, RDKafkaErrorCode::TopicAlreadyExists))]) => break,
                made => assert!(left > 0, "the topic cannot be made: {made:?}"),
            }
        }
        log.is_there_with(partitions).await;
        log
    }
    /// One of partition 0 alone, with so many numbers.
    pub(crate) async fn of_numbers(servers: &str, what: &str, count: i64) -> Log {
        let log = Log::new(servers, what, 1).await;
        log.numbers(0, 0..count);
        log
    }
    /// One that exists, or does not.
    pub(crate) fn there(servers: &str, name: &str) -> Log {
        Log { servers: servers.to_owned(), name: name.to_owned() }
    }

    fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.servers);
        config
    }
    fn admin(&self) -> AdminClient<DefaultClientContext> {
        self.config().create().unwrap()
    }
    /// A reader without a group's membership.
    fn consumer(&self) -> BaseConsumer {
        let mut config = self.config();
        config.set("group.id", "none").set("enable.auto.commit", "false").set("fetch.wait.max.ms", "10");
        config.set("auto.offset.reset", "earliest").set("enable.partition.eof", "true").create().unwrap()
    }

    /// Waits until the broker tells of so many partitions.
    async fn is_there_with(&self, partitions: i32) {
        let consumer = self.consumer();
        let began = Instant::now();
        loop {
            let metadata = consumer.fetch_metadata(Some(&self.name), SOON).unwrap();
            let found = metadata.topics().iter().find(|topic| topic.name() == self.name).unwrap();
            if found.error().is_none() && found.partitions().len() == usize::try_from(partitions).unwrap() {
                return;
            }
            assert!(began.elapsed() < SOON, "{} has no {partitions} partitions", self.name);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Adds partitions up to this number.
    pub(crate) async fn grow(&self, partitions: i32) {
        let count = usize::try_from(partitions).unwrap();
        let grown = NewPartitions::new(&self.name, count);
        let grown = self.admin().create_partitions([&grown], &AdminOptions::new()).await.unwrap();
        grown.into_iter().for_each(|topic| drop(topic.unwrap()));
        self.is_there_with(partitions).await;
    }
    pub(crate) async fn delete(&self) {
        let gone = self.admin().delete_topics(&[&self.name], &AdminOptions::new()).await.unwrap();
        gone.into_iter().for_each(|topic| drop(topic.unwrap()));
    }
    /// From now on `offset` is the partition's first.
    pub(crate) async fn cut(&self, partition: i32, offset: i64) {
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(&self.name, partition, Offset::Offset(offset)).unwrap();
        let cut = self.admin().delete_records(&list, &AdminOptions::new()).await.unwrap();
        cut.elements().iter().for_each(|cut| cut.error().unwrap());
        assert_eq!(self.ends(partition).0, offset);
    }

    pub(crate) fn writer(&self) -> Writer<'_> {
        self.writer_of(&mut self.config())
    }
    pub(crate) fn writer_with(&self, settings: &[(&str, &str)]) -> Writer<'_> {
        let mut config = self.config();
        for (name, value) in settings {
            config.set(*name, *value);
        }
        self.writer_of(&mut config)
    }
    /// One inside of a transaction.
    pub(crate) fn transaction(&self) -> Writer<'_> {
        let writer = self.writer_of(self.config().set("transactional.id", unique("transaction")));
        writer.producer.init_transactions(SOON).unwrap();
        writer.producer.begin_transaction().unwrap();
        writer
    }
    fn writer_of(&self, config: &mut ClientConfig) -> Writer<'_> {
        config.set("linger.ms", "1").set("partitioner", "murmur2_random");
        Writer { log: self, producer: config.create().unwrap() }
    }

    /// Messages whose values are these numbers as text, and without keys. In a partition of which they are the
    /// first, the number is the offset.
    pub(crate) fn numbers(&self, partition: i32, numbers: Range<i64>) {
        let writer = self.writer();
        for number in numbers {
            writer.put(Some(partition), None, Some(number.to_string().as_bytes()));
        }
        writer.done();
    }

    pub(crate) fn partitions(&self) -> Vec<i32> {
        let metadata = self.consumer().fetch_metadata(Some(&self.name), SOON).unwrap();
        let topics = metadata.topics().iter();
        topics.flat_map(MetadataTopic::partitions).map(MetadataPartition::id).collect()
    }
    /// The partition's first offset, and the one after its last.
    pub(crate) fn ends(&self, partition: i32) -> (i64, i64) {
        self.consumer().fetch_watermarks(&self.name, partition, SOON).unwrap()
    }

    /// All that is there, each partition in order; what is in transactions only where they were committed.
    pub(crate) fn read(&self) -> Vec<Row> {
        self.read_of(&self.partitions())
    }
    /// The same of some partitions.
    pub(crate) fn read_of(&self, partitions: &[i32]) -> Vec<Row> {
        let consumer = self.consumer();
        let mut list = TopicPartitionList::new();
        let mut left = Vec::new();
        for partition in partitions.iter().copied() {
            let (low, high) = consumer.fetch_watermarks(&self.name, partition, SOON).unwrap();
            if low < high {
                list.add_partition_offset(&self.name, partition, Offset::Offset(low)).unwrap();
                left.push(partition);
            }
        }
        consumer.assign(&list).unwrap();
        let mut rows = Vec::new();
        let began = Instant::now();
        while !left.is_empty() {
            assert!(began.elapsed() < 2 * SOON, "{} cannot be read to its end", self.name);
            match consumer.poll(Duration::from_millis(10)) {
                Some(Ok(message)) => rows.push(row(&message)),
                // Said by position, and so behind a transaction's marker too.
                Some(Err(KafkaError::PartitionEOF(partition))) => left.retain(|other| *other != partition),
                Some(Err(error)) => panic!("{}: {error}", self.name),
                None => {}
            }
        }
        rows.sort_by_key(|row| (row.partition, row.offset));
        rows
    }

    /// Their values as text, over all partitions, in order of the text.
    pub(crate) fn texts(&self) -> Vec<String> {
        let mut texts: Vec<_> = self.read().iter().map(Row::text).collect();
        texts.sort();
        texts
    }
}

fn row(message: &rdkafka::message::BorrowedMessage<'_>) -> Row {
    let headers = message.headers().into_iter().flat_map(|headers| headers.iter());
    let headers = headers.map(|header| (header.key.to_owned(), header.value.unwrap_or_default().to_vec()));
    Row {
        partition: message.partition(),
        offset: message.offset(),
        key: message.key().map(<[u8]>::to_vec),
        value: message.payload().map(<[u8]>::to_vec),
        headers: headers.collect(),
        millis: message.timestamp().to_millis(),
    }
}

/// A producer for one topic, whose records go out side by side.
pub(crate) struct Writer<'l> {
    log: &'l Log,
    producer: BaseProducer,
}

impl Writer<'_> {
    /// Where no partition is given, the key chooses.
    pub(crate) fn put(&self, partition: Option<i32>, key: Option<&[u8]>, value: Option<&[u8]>) {
        self.put_with(partition, key, value, &[], None);
    }
    pub(crate) fn put_with(
        &self,
        partition: Option<i32>,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(&str, &[u8])],
        millis: Option<i64>,
    ) {
        let mut record: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(&self.log.name);
        (record.partition, record.key, record.payload, record.timestamp) = (partition, key, value, millis);
        if !headers.is_empty() {
            let add = |all: OwnedHeaders, (key, value): &(&str, &[u8])| {
                all.insert(Header { key, value: Some(*value) })
            };
            record.headers = Some(headers.iter().fold(OwnedHeaders::new(), add));
        }
        let began = Instant::now();
        while let Err((error, back)) = self.producer.send(record) {
            let is_full = error == KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull);
            assert!(is_full && began.elapsed() < SOON, "{error}");
            self.producer.poll(Duration::from_millis(10));
            record = back;
        }
    }
    /// Waits until all is there.
    pub(crate) fn done(self) {
        self.sent();
    }
    /// The same, and more may follow.
    pub(crate) fn sent(&self) {
        // A flush of the client's would wait for a tenth of a second.
        let began = Instant::now();
        while self.producer.in_flight_count() > 0 {
            assert!(began.elapsed() < 2 * SOON, "{} records do not arrive", self.producer.in_flight_count());
            self.producer.poll(Duration::from_millis(1));
        }
    }
    pub(crate) fn commit(self) {
        self.producer.commit_transaction(SOON).unwrap();
    }
    pub(crate) fn abort(self) {
        // Else the records would never leave this process.
        self.producer.flush(SOON).unwrap();
        self.producer.abort_transaction(SOON).unwrap();
    }
}
