//! Topics are created where they are missing.
//!
//! ```text
//! create_topic ─▶ is it there? ─ no ─▶ create ─▶ wait until the brokers know it
//! ```
use super::{
    Connection, Kafka, TopicError,
    connect::{LOOK_UP, waiting},
    native_producer::{Event, NativeProducer},
};
use rdkafka::{
    ClientConfig,
    admin::{AdminClient, AdminOptions, NewTopic, TopicReplication},
    error::{KafkaError, RDKafkaErrorCode},
};
use std::{sync::atomic::AtomicBool, time::Duration};

impl Kafka {
    /// Creates the topic with so many partitions, unless there is one of that name, which stays as it is. How long
    /// messages are kept, and how many copies there are, is as the cluster has it by default.
    ///
    /// ```
    /// use slipstream_core::kafka::Kafka;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> slipstream_core::Result<()> {
    /// let kafka = Kafka::in_process()?;
    /// kafka.create_topic("weather", 4).await?;
    /// kafka.create_topic("weather", 4).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`TopicError`] when no broker answers within 30 s, when they refuse the login, and when the cluster does not
    /// create it: for want of the right to, for example.
    ///
    /// # Cancel safety
    /// The topic may or may not be created when the future is dropped; the call can be repeated.
    pub async fn create_topic(&self, name: &str, partitions: i32) -> Result<(), TopicError> {
        let refused =
            move |topic: &str, cause| TopicError::Create { topic: topic.to_owned(), partitions, cause };
        if partitions < 1 {
            return Err(refused(name, KafkaError::AdminOp(RDKafkaErrorCode::InvalidPartitions)));
        }
        if let Some(mock) = self.mock() {
            return match mock.create_topic(name, partitions, 1) {
                Ok(()) | Err(KafkaError::MockCluster(RDKafkaErrorCode::TopicAlreadyExists)) => Ok(()),
                Err(cause) => Err(refused(name, cause)),
            };
        }
        let mut config = Self::producer_config(self.settings());
        config.set("allow.auto.create.topics", "false").remove("enable.idempotence");
        let (servers, name) = (self.bootstrap_servers().to_owned(), name.to_owned());
        let runtime = tokio::runtime::Handle::current();
        let created = waiting(move |quits| {
            // It hears of a refused login, which the other client would not tell.
            let looking = Looking::new(&config, &servers)?;
            match looking.look_up(&name, Duration::ZERO, quits) {
                Err(TopicError::Unknown { .. }) => {}
                known => return known,
            }
            let admin: AdminClient<_> =
                config.create_with_context(Connection::new(&servers)).map_err(TopicError::client)?;
            let topic = NewTopic::new(&name, partitions, TopicReplication::Fixed(BY_DEFAULT));
            let options = AdminOptions::new().request_timeout(Some(LOOK_UP)).operation_timeout(Some(LOOK_UP));
            let results = runtime.block_on(admin.create_topics([&topic], &options));
            match results.map_err(|cause| refused(&name, cause))?.into_iter().next() {
                Some(Err((_, RDKafkaErrorCode::TopicAlreadyExists)) | Ok(_)) | None => {}
                Some(Err((_, code))) => return Err(refused(&name, KafkaError::AdminOp(code))),
            }
            // The broker that has created it knows it first.
            looking.look_up(&name, LOOK_UP, quits)
        });
        created.await?
    }
}

/// As many copies as the cluster makes by default.
const BY_DEFAULT: i32 = -1;

/// A client that only looks.
struct Looking(NativeProducer);

impl Looking {
    fn new(config: &ClientConfig, servers: &str) -> Result<Self, TopicError> {
        let native = NativeProducer::new(config, Connection::new(servers)).map_err(TopicError::client)?;
        Ok(Looking(native))
    }

    /// Looks again for so long where the topic is not there.
    fn look_up(&self, topic: &str, again: Duration, quits: &AtomicBool) -> Result<(), TopicError> {
        let (client, connection) = (self.0.client(), self.0.client().context());
        let hear = || {
            while self.0.poll(Duration::ZERO, |event| {
                if let Event::Error(code, reason) = event {
                    connection.hear(code, &reason);
                }
            }) {}
        };
        connection.look_up_again(client, topic, LOOK_UP, again, quits, hear).map(|_| ())
    }
}
