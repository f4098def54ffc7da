//! A consumer group seen from outside: its offsets, its members, its generations, and a member of our own.
use crate::log::{Log, Row, SOON};
use rdkafka::{
    ClientConfig, Message as _, Offset, TopicPartitionList,
    consumer::{BaseConsumer, CommitMode, Consumer},
    groups::GroupInfo,
    topic_partition_list::TopicPartitionListElem,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

/// Where the broker keeps groups.
const OFFSETS_TOPIC: &str = "__consumer_offsets";

/// A group of one cluster.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    servers: String,
    pub(crate) name: String,
}

/// Of a group, for each partition that has been committed: the offset, and the text beside it.
pub(crate) type Committed = BTreeMap<i32, (i64, String)>;

impl Group {
    pub(crate) fn new(servers: &str, name: &str) -> Self {
        Group { servers: servers.to_owned(), name: name.to_owned() }
    }

    fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.servers).set("group.id", &self.name);
        config.set("enable.auto.commit", "false").set("auto.offset.reset", "earliest");
        config
    }

    /// What is committed for a topic.
    pub(crate) fn committed(&self, log: &Log) -> Committed {
        let consumer: BaseConsumer = self.config().create().unwrap();
        let mut list = TopicPartitionList::new();
        for partition in log.partitions() {
            list.add_partition(&log.name, partition);
        }
        let found = consumer.committed_offsets(list, SOON).unwrap();
        let known = found.elements().into_iter().filter_map(|found| match found.offset() {
            Offset::Offset(offset) => Some((found.partition(), (offset, found.metadata().to_owned()))),
            _ => None,
        });
        known.collect()
    }
    /// The offsets alone.
    pub(crate) fn offsets(&self, log: &Log) -> BTreeMap<i32, i64> {
        self.committed(log).into_iter().map(|(partition, (offset, _))| (partition, offset)).collect()
    }

    /// Commits in its name, as long as it has no members.
    pub(crate) fn commit(&self, log: &Log, partition: i32, offset: i64, metadata: &str) {
        let consumer: BaseConsumer = self.config().create().unwrap();
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(&log.name, partition, Offset::Offset(offset)).unwrap();
        list.find_partition(&log.name, partition).unwrap().set_metadata(metadata);
        consumer.commit(&list, CommitMode::Sync).unwrap();
    }

    /// Its members, by the names that the broker gave them.
    pub(crate) fn members(&self) -> Vec<String> {
        let consumer: BaseConsumer = self.config().create().unwrap();
        let groups = consumer.fetch_group_list(Some(&self.name), SOON).unwrap();
        let members = groups.groups().iter().flat_map(GroupInfo::members);
        let members: Vec<_> = members.map(|member| member.id().to_owned()).collect();
        if members.is_empty() { self.members_of_the_newer_protocol() } else { members }
    }

    /// What the broker has written down of it, and of others.
    fn written(&self) -> Vec<Row> {
        let log = Log::there(&self.servers, OFFSETS_TOPIC);
        // Where Java's `hashCode` of the name leads to.
        let hash = self
            .name
            .encode_utf16()
            .fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
        let partitions = i32::try_from(log.partitions().len()).unwrap();
        log.read_of(&[hash.checked_abs().unwrap_or(0) % partitions])
    }

    /// As the broker wrote them down, since the client cannot ask for them.
    fn members_of_the_newer_protocol(&self) -> Vec<String> {
        let mut members = BTreeSet::new();
        for row in self.written() {
            let Some(key) = row.key else { continue };
            let mut key = Reader(&key);
            // Keys of version 5 are members; without a value one has left.
            if key.short() == 5 && key.text() == self.name {
                let member = key.text();
                if row.value.is_some() {
                    members.insert(member)
                } else {
                    members.remove(&member)
                };
            }
        }
        members.into_iter().collect()
    }

    /// The generations that it has gone through, as the broker wrote them down: the last one is the present one.
    /// Of the classic protocol.
    pub(crate) fn generations(&self) -> Vec<i32> {
        let mut found = Vec::new();
        for row in self.written() {
            let (Some(key), Some(value)) = (row.key, row.value) else { continue };
            let mut key = Reader(&key);
            // Keys of version 2 are groups.
            if key.short() != 2 || key.text() != self.name {
                continue;
            }
            let mut value = Reader(&value);
            let version = value.short();
            assert!(version < 4, "the broker writes groups in version {version}");
            value.text();
            let generation = value.int();
            if found.last() != Some(&generation) {
                found.push(generation);
            }
        }
        found
    }

    /// A member from outside of the library.
    pub(crate) fn rival(&self, log: &Log, settings: &[(&str, &str)]) -> Rival {
        let mut config = self.config();
        for (name, value) in settings {
            config.set(*name, *value);
        }
        let consumer: BaseConsumer = config.create().unwrap();
        consumer.subscribe(&[&log.name]).unwrap();
        Rival { consumer, log: log.clone() }
    }
}

/// Reads what the broker has written.
struct Reader<'b>(&'b [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (taken, rest) = self.0.split_first_chunk().unwrap();
        self.0 = rest;
        *taken
    }
    fn short(&mut self) -> i16 {
        i16::from_be_bytes(self.take())
    }
    fn int(&mut self) -> i32 {
        i32::from_be_bytes(self.take())
    }
    fn text(&mut self) -> String {
        let length = usize::try_from(self.short()).unwrap();
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        String::from_utf8(text.to_vec()).unwrap()
    }
}

/// A member of a group that takes what it is assigned.
pub(crate) struct Rival {
    consumer: BaseConsumer,
    log: Log,
}

impl Rival {
    /// Polls once; gives the partition and offset of a message, if there is one.
    pub(crate) fn poll(&self) -> Option<(i32, i64)> {
        let message = self.consumer.poll(Duration::from_millis(5))?.ok()?;
        Some((message.partition(), message.offset()))
    }
    /// What it is assigned.
    pub(crate) fn assigned(&self) -> Vec<i32> {
        let list = self.consumer.assignment().unwrap();
        let mut partitions: Vec<i32> =
            list.elements().iter().map(TopicPartitionListElem::partition).collect();
        partitions.sort_unstable();
        partitions
    }
    /// Polls until it has been assigned so many partitions; answers what came meanwhile. Leaves the
    /// other tasks of a test time to run.
    pub(crate) async fn has(&self, partitions: usize) -> Vec<(i32, i64)> {
        let began = Instant::now();
        let mut seen = Vec::new();
        while self.assigned().len() != partitions {
            assert!(began.elapsed() < 2 * SOON, "{}: only {:?} are assigned", self.log.name, self.assigned());
            seen.extend(self.poll());
            tokio::task::yield_now().await;
        }
        seen
    }
    /// Polls until `done` says so of all that came.
    pub(crate) async fn sees(&self, mut done: impl FnMut(&[(i32, i64)]) -> bool) -> Vec<(i32, i64)> {
        let began = Instant::now();
        let mut seen = Vec::new();
        while !done(&seen) {
            assert!(began.elapsed() < 2 * SOON, "{}: only {seen:?} came", self.log.name);
            seen.extend(self.poll());
            tokio::task::yield_now().await;
        }
        seen
    }
    /// Commits that a partition goes on at `offset`.
    pub(crate) fn commit(&self, partition: i32, offset: i64) {
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(&self.log.name, partition, Offset::Offset(offset)).unwrap();
        self.consumer.commit(&list, CommitMode::Sync).unwrap();
    }
}
