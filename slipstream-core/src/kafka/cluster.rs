//! A handle on one Kafka cluster: its settings, shared by its topics, and the clients that they share.
use super::{SettingError, Settings, TopicError, Unformatted};
use crate::given::unique_id;
use rdkafka::{ClientConfig, mocking::MockCluster, producer::DefaultProducerContext};
use std::{fmt, sync::Arc};

/// A handle on one Kafka cluster, with the settings that its topics begin with. Clones are the same handle.
#[derive(Clone)]
pub struct Kafka {
    inner: Arc<Inner>,
}

struct Inner {
    /// What tells it from others of the process.
    id: u64,
    settings: Settings,
    servers: String,
    /// Lives as long as this handle and its topics.
    mock: Option<MockCluster<'static, DefaultProducerContext>>,
}

impl Kafka {
    /// The cluster that these settings lead to; see [`Settings`] for their names.
    ///
    /// # Errors
    /// [`SettingError`] for the first that cannot be taken.
    pub fn new<N: AsRef<str>, V: AsRef<str>>(
        settings: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, SettingError> {
        let settings = Settings::new(settings)?;
        let servers = settings.get("bootstrap.servers").unwrap_or_default().to_owned();
        Ok(Kafka { inner: Arc::new(Inner { id: unique_id(), settings, servers, mock: None }) })
    }

    /// A cluster inside of this process, librdkafka's mock, with nothing to install.
    ///
    /// # Errors
    /// [`TopicError`] when it cannot be started.
    pub fn in_process() -> Result<Self, TopicError> {
        let mock = MockCluster::new(1).map_err(TopicError::client)?;
        let servers = mock.bootstrap_servers();
        let settings = Settings::new([("bootstrap.servers", &servers)])?;
        Ok(Kafka { inner: Arc::new(Inner { id: unique_id(), settings, servers, mock: Some(mock) }) })
    }

    /// A topic of this cluster; say next how its values are written.
    pub fn topic<K: Send + Sync + 'static, V: Send + Sync + 'static>(&self, name: &str) -> Unformatted<K, V> {
        Unformatted::new(self.clone(), name)
    }

    /// Where its brokers are.
    #[must_use]
    pub fn bootstrap_servers(&self) -> &str {
        &self.inner.servers
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    pub(super) fn id(&self) -> u64 {
        self.inner.id
    }

    /// What a consumer of this cluster is made with, by the settings of its first topic.
    pub(super) fn consumer_config(
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
        config.set("client.id", "slipstream").set("enable.idempotence", "true");
        for (name, value) in settings.producer() {
            config.set(name, value);
        }
        config.set("partitioner", "murmur2_random");
        config
    }
}

impl fmt::Debug for Kafka {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kafka").field("bootstrap_servers", &self.inner.servers).finish_non_exhaustive()
    }
}
