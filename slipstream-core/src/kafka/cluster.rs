//! A handle on one Kafka cluster: its settings, shared by its topics, and the clients that they share.
//!
//! ```text
//! Kafka ─┬─ topic("weather") ─┬─ producer, one for topics with the same settings
//!        └─ topic("sky") ─────┘
//! ```
use super::{SettingError, Settings, TopicError, Unformatted, native, producer::Producer};
use rdkafka::{
    ClientConfig,
    client::{Client, DefaultClientContext},
    config::RDKafkaLogLevel,
    error::KafkaError,
    mocking::MockCluster,
    types::RDKafkaType,
};
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
};

/// A handle on one Kafka cluster, with the settings that its topics begin with. Clones are the same handle.
///
/// ```no_run
/// use slipstream_core::kafka::Kafka;
///
/// let kafka = Kafka::new([("bootstrap.servers", "localhost:9092"), ("linger_ms", "20")])?;
/// let weather = kafka.topic::<(), String>("weather").json();
/// # Ok::<(), slipstream_core::BoxError>(())
/// ```
///
/// Nothing is connected until a topic is read or written. Several handles may lead to one cluster, and a flow may use
/// topics of several clusters.
///
/// Tests and examples need no cluster installed:
///
/// ```
/// use slipstream_core::kafka::Kafka;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> slipstream_core::Result<()> {
/// let kafka = Kafka::in_process()?;
/// kafka.create_topic("greetings", 4).await?;
/// let greetings = kafka.topic::<String, String>("greetings").text();
/// greetings.send("Anna".into(), "good morning".into()).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Kafka {
    inner: Arc<Inner>,
}

type NamesAndValues = Vec<(String, String)>;

struct Inner {
    settings: Settings,
    servers: String,
    /// By all settings of producers, which the topics may have changed.
    producers: Mutex<HashMap<NamesAndValues, Weak<Producer>>>,
    /// A client with a cluster of its own; lives as long as this handle and its topics.
    mock: Option<Client<DefaultClientContext>>,
}

impl Kafka {
    /// The cluster that these settings lead to; see [`Settings`] for their names. There has to be `bootstrap.servers`,
    /// some of its brokers.
    ///
    /// ```
    /// use slipstream_core::kafka::Kafka;
    ///
    /// let error = Kafka::new([("linger.ms", "20")]).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "the Kafka setting `bootstrap.servers` is missing: \
    ///      give the address of a broker, as `localhost:9092`"
    /// );
    /// ```
    ///
    /// # Errors
    /// [`SettingError`] for the first that cannot be taken, or where there is no broker among them.
    pub fn new<N: AsRef<str>, V: AsRef<str>>(
        settings: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, SettingError> {
        Self::with(Settings::new(settings)?, None)
    }

    fn with(settings: Settings, mock: Option<Client<DefaultClientContext>>) -> Result<Self, SettingError> {
        let servers = settings.get("bootstrap.servers").unwrap_or_default().to_owned();
        if servers.trim().is_empty() {
            let reason = "give the address of a broker, as `localhost:9092`";
            return Err(SettingError::Missing { name: "bootstrap.servers", reason });
        }
        let producers = Mutex::default();
        Ok(Kafka { inner: Arc::new(Inner { settings, servers, producers, mock }) })
    }

    /// A cluster of one broker inside of this process, with nothing to install: librdkafka's mock. It keeps messages in
    /// memory and lives as long as a clone of this handle or a topic of it. It speaks Kafka's protocol on a port of the
    /// loopback, so it has groups, transactions and time-outs as a real one, but no compaction, retention or logins.
    ///
    /// # Errors
    /// [`TopicError`] when it cannot be started.
    pub fn in_process() -> Result<Self, TopicError> {
        let mut config = ClientConfig::new();
        // Nobody polls this client, so what it would log would be kept for ever.
        config.set("test.mock.num.brokers", "1").set_log_level(RDKafkaLogLevel::Emerg);
        let native = config.create_native_config().map_err(TopicError::client)?;
        let client = Client::new(&config, native, RDKafkaType::RD_KAFKA_PRODUCER, DefaultClientContext);
        let client = client.map_err(TopicError::client)?;
        native::groups_begin_at_once(&client);
        let servers = client.mock_cluster().map(|mock| mock.bootstrap_servers());
        let servers = servers
            .ok_or_else(|| TopicError::client(KafkaError::ClientCreation("it has no brokers".to_owned())))?;
        Ok(Self::with(Settings::new([("bootstrap.servers", &servers)])?, Some(client))?)
    }

    /// A topic of this cluster, with the types of its keys and values; say next how values are written:
    /// `.json()`, `.message_pack()`, `.text()`, `.raw()`, or `.codec(…)`.
    ///
    /// ```
    /// use slipstream_core::kafka::Kafka;
    ///
    /// let kafka = Kafka::new([("bootstrap.servers", "localhost:9092")])?;
    /// let temperatures = kafka.topic::<String, f64>("temperatures").json();
    /// # Ok::<(), slipstream_core::BoxError>(())
    /// ```
    ///
    /// Topics of a handle that have the same settings send through one producer, whichever flow they are in. A record
    /// that it gives up ends all flows that have sent through it; each of them begins with another when it runs again.
    pub fn topic<K: Send + Sync + 'static, V: Send + Sync + 'static>(&self, name: &str) -> Unformatted<K, V> {
        Unformatted::new(self.clone(), name)
    }

    /// Where its brokers are, as the setting `bootstrap.servers` says.
    #[must_use]
    pub fn bootstrap_servers(&self) -> &str {
        &self.inner.servers
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// The cluster, if it is one inside of this process.
    pub(super) fn mock(&self) -> Option<MockCluster<'_, DefaultClientContext>> {
        self.inner.mock.as_ref().and_then(Client::mock_cluster)
    }

    /// The producer with these settings, of all topics that have the same. One that has given up a record is left to
    /// those who have it.
    pub(super) fn producer(&self, settings: &Settings) -> Result<Arc<Producer>, TopicError> {
        let key: NamesAndValues =
            settings.producer().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let mut producers = self.inner.producers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(producer) = producers.get(&key).and_then(Weak::upgrade)
            && !producer.has_failed()
        {
            return Ok(producer);
        }
        let producer = Arc::new(Producer::start(&Self::producer_config(settings), settings, self.clone())?);
        producers.retain(|_, producer| producer.strong_count() > 0);
        producers.insert(key, Arc::downgrade(&producer));
        Ok(producer)
    }

    /// What a consumer of this cluster is made with, by the settings of its first topic.
    pub(super) fn consumer_config(
        &self,
        settings: &Settings,
        group: Option<&str>,
        instance: Option<&str>,
    ) -> ClientConfig {
        let mut config = ClientConfig::new();
        config
            .set("client.id", "slipstream")
            .set("fetch.queue.backoff.ms", "10")
            .set("fetch.wait.max.ms", "50")
            .set("queued.max.messages.kbytes", "16384");
        if self.inner.mock.is_some() && settings.get("group.protocol") != Some("consumer") {
            // The mock lets nobody into a group that was left before the session would have timed out, less a second. A
            // busy machine needs some of it: whoever is not heard of for so long is gone.
            config.set("session.timeout.ms", "6000").set("heartbeat.interval.ms", "500");
        }
        if let Some(instance) = instance {
            config.set("group.instance.id", instance);
        }
        for (name, value) in settings.consumer() {
            config.set(name, value);
        }
        if let Some(group) = group {
            config.set("group.id", group);
        }
        config
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("auto.offset.reset", "error")
            .set("enable.partition.eof", "true");
        config
    }

    /// What a producer of this cluster is made with.
    pub(super) fn producer_config(settings: &Settings) -> ClientConfig {
        let mut config = ClientConfig::new();
        // Where it is on, as librdkafka has it for producers, a misspelt topic is a new one.
        config.set("client.id", "slipstream").set("allow.auto.create.topics", "false");
        if may_be_idempotent(settings) {
            // A record that is sent again after a lost answer is there once, and in its order.
            config.set("enable.idempotence", "true");
        }
        for (name, value) in settings.producer() {
            config.set(name, value);
        }
        config.set("partitioner", "murmur2_random");
        config
    }
}

/// Whether the settings leave room for it: a client with both is refused by librdkafka.
fn may_be_idempotent(settings: &Settings) -> bool {
    let acks = settings.get("acks").is_none_or(|acks| acks == "all" || acks == "-1");
    let number = |name: &str| settings.get(name).and_then(|value| value.parse::<i64>().ok());
    let retries = number("retries").is_none_or(|retries| retries > 0);
    let in_flight =
        number("max.in.flight.requests.per.connection").is_none_or(|in_flight| (1..=5).contains(&in_flight));
    acks && retries && in_flight
}

impl fmt::Debug for Kafka {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kafka").field("bootstrap_servers", &self.inner.servers).finish_non_exhaustive()
    }
}
