//! The clusters that are measured against, and filling their topics.
use super::{Result, native, produce::Producer};
use rdkafka::{
    ClientConfig, Offset, TopicPartitionList,
    admin::{AdminClient, AdminOptions, NewTopic, TopicReplication},
    client::DefaultClientContext,
    consumer::{BaseConsumer, Consumer},
    producer::{BaseProducer, BaseRecord, Producer as _},
};
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use tokio::runtime::Runtime;

/// Of the in-process cluster, or of a real one.
pub(crate) struct Cluster {
    servers: String,
    /// Has the in-process cluster.
    mock: Option<BaseProducer>,
    names: AtomicU64,
}

/// A topic that is filled.
pub(crate) struct Filled {
    pub(crate) servers: String,
    pub(crate) topic: String,
    pub(crate) partitions: i32,
    pub(crate) count: u64,
}

const WITHIN: Duration = Duration::from_secs(30);

impl Cluster {
    /// librdkafka's mock, with one broker.
    pub(crate) fn in_process() -> Result<Self> {
        let client: BaseProducer = ClientConfig::new().set("test.mock.num.brokers", "1").create()?;
        // Else each group waits for three seconds whether more members come.
        native::no_rebalance_delay(&client);
        let mock = client.client().mock_cluster().ok_or("there is no mock cluster")?;
        let servers = mock.bootstrap_servers();
        drop(mock);
        Ok(Cluster { servers, mock: Some(client), names: AtomicU64::new(0) })
    }

    /// The one that `--bootstrap-servers=HOST:PORT` names, or the environment's `KAFKA_1`.
    pub(crate) fn given() -> Option<Self> {
        let mut arguments = std::env::args();
        let named =
            arguments.find_map(|argument| Some(argument.strip_prefix("--bootstrap-servers=")?.to_owned()));
        let servers = named.or_else(|| std::env::var("KAFKA_1").ok())?;
        Some(Cluster { servers, mock: None, names: AtomicU64::new(0) })
    }

    pub(crate) fn servers(&self) -> &str {
        &self.servers
    }

    /// A new, empty topic; its name.
    pub(crate) fn topic(&self, runtime: &Runtime, partitions: i32) -> Result<String> {
        let name = format!("bench-{}-{}", std::process::id(), self.names.fetch_add(1, Ordering::Relaxed));
        if let Some(mock) = &self.mock {
            let mock = mock.client().mock_cluster().ok_or("there is no mock cluster")?;
            mock.create_topic(&name, partitions, 1)?;
            return Ok(name);
        }
        let admin: AdminClient<DefaultClientContext> = self.config().create()?;
        let topic = NewTopic::new(&name, partitions, TopicReplication::Fixed(1));
        let options = AdminOptions::new().operation_timeout(Some(WITHIN));
        let made = runtime.block_on(admin.create_topics([&topic], &options))?;
        for topic in made {
            topic.map_err(|(topic, code)| format!("topic {topic}: {code}"))?;
        }
        Ok(name)
    }

    /// A topic with `count` values, each partition with as many.
    pub(crate) fn filled(
        &self,
        runtime: &Runtime,
        partitions: i32,
        count: u64,
        mut value: impl FnMut(u64, &mut Vec<u8>),
    ) -> Result<Filled> {
        let topic = self.topic(runtime, partitions)?;
        let mut config = self.config();
        config.set("linger.ms", "50");
        if self.mock.is_some() {
            // The mock keeps five megabytes of a partition as they were sent, so they have to be packed. The same
            // for all who read them.
            config.set("compression.type", "lz4");
        }
        let producer = Producer::new(&config, 100_000)?;
        let mut bytes = Vec::new();
        for n in 0..count {
            bytes.clear();
            value(n, &mut bytes);
            let partition = (n % u64::from(partitions.unsigned_abs())) as i32;
            producer.send(BaseRecord::<(), _>::to(&topic).payload(&bytes).partition(partition))?;
        }
        producer.drain()?;
        let filled = Filled { servers: self.servers.clone(), topic, partitions, count };
        filled.check()?;
        Ok(filled)
    }

    fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.servers);
        config
    }

    /// A producer's settings.
    pub(crate) fn producing(&self) -> ClientConfig {
        let mut config = self.config();
        config.set("enable.idempotence", "true").set("partitioner", "murmur2_random");
        config
    }
}

impl Filled {
    /// A consumer's settings.
    pub(crate) fn consuming(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", &self.servers)
            .set("group.id", "by-hand")
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("enable.partition.eof", "true")
            .set("auto.offset.reset", "error")
            .set("fetch.queue.backoff.ms", "10")
            .set("fetch.wait.max.ms", "50")
            .set("queued.max.messages.kbytes", "16384");
        config
    }

    /// All of its partitions from their beginning.
    pub(crate) fn assignment(&self) -> Result<TopicPartitionList> {
        let mut list = TopicPartitionList::new();
        for partition in 0..self.partitions {
            list.add_partition_offset(&self.topic, partition, Offset::Beginning)?;
        }
        Ok(list)
    }

    fn check(&self) -> Result<()> {
        let consumer: BaseConsumer = self.consuming().create()?;
        let mut held = 0;
        for partition in 0..self.partitions {
            let (low, high) = consumer.fetch_watermarks(&self.topic, partition, WITHIN)?;
            held += (high - low).unsigned_abs();
        }
        if held == self.count {
            return Ok(());
        }
        Err(format!("topic {} holds {held} messages, not {}", self.topic, self.count).into())
    }
}
