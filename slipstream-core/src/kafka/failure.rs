//! What can go wrong with a topic.
use super::SettingError;
use crate::{BoxError, codec::CodecError};
use rdkafka::error::KafkaError;
use std::time::Duration;

/// Why a topic could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TopicError {
    /// A setting cannot be taken.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A client of Kafka could not be made, or refused.
    #[error("the Kafka client failed")]
    Client {
        /// What librdkafka said.
        #[source]
        cause: KafkaError,
    },
    /// A key or a value is not what the topic's codec reads.
    #[error("{part} of message {offset} of partition {partition} of topic `{topic}` cannot be read")]
    Decode {
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
        /// The message's number.
        offset: i64,
        /// `the key` or `the value`.
        part: &'static str,
        /// What does not fit.
        #[source]
        cause: CodecError,
    },
    /// A key or a value cannot be written by the topic's codec.
    #[error("{part} of a record for topic `{topic}` cannot be written")]
    Encode {
        /// The topic.
        topic: String,
        /// `the key` or `the value`.
        part: &'static str,
        /// What does not fit.
        #[source]
        cause: CodecError,
    },
    /// A record is larger than the producer takes.
    #[error("a record for topic `{topic}` has {bytes} bytes, and the setting `{setting}` allows {most}")]
    TooLarge {
        /// The topic.
        topic: String,
        /// Its key, value and headers, and what Kafka adds.
        bytes: usize,
        /// How many it may have.
        most: usize,
        /// The setting that says so.
        setting: &'static str,
    },
    /// A record has something that cannot be sent.
    #[error("a record for topic `{topic}` cannot be sent: {reason}")]
    Record {
        /// The topic.
        topic: String,
        /// What it has.
        reason: &'static str,
    },
    /// A record was given up: the broker has refused it, or did not acknowledge it in time.
    #[error("a record for {} of topic `{topic}` was not delivered", at(*partition))]
    Delivery {
        /// The topic.
        topic: String,
        /// The partition, where one was chosen.
        partition: Option<i32>,
        /// What librdkafka said.
        #[source]
        cause: KafkaError,
    },
    /// The cluster does not have the topic.
    #[error(
        "there is no topic `{topic}` at `{brokers}`: create it first, with `kafka.create_topic(…)` for example"
    )]
    Unknown {
        /// The topic.
        topic: String,
        /// The setting `bootstrap.servers`.
        brokers: String,
    },
    /// No broker answers.
    #[error(
        "no broker of `{brokers}` told about topic `{topic}` within {waited:.1?}: {said}; is the address right?"
    )]
    Unreachable {
        /// The topic.
        topic: String,
        /// The setting `bootstrap.servers`.
        brokers: String,
        /// How long it took to give up.
        waited: Duration,
        /// What librdkafka said last.
        said: String,
    },
    /// The brokers refuse the login.
    #[error("the brokers at `{brokers}` refuse the login: {reason}")]
    Login {
        /// The setting `bootstrap.servers`.
        brokers: String,
        /// What librdkafka said.
        reason: String,
    },
    /// librdkafka has given a client up.
    #[error("the Kafka client has given up: {reason}")]
    Fatal {
        /// What librdkafka said.
        reason: String,
    },
    /// The cluster does not say what there is to know about a topic.
    #[error("topic `{topic}` cannot be looked up")]
    LookUp {
        /// The topic.
        topic: String,
        /// What librdkafka said.
        #[source]
        cause: KafkaError,
    },
    /// The cluster does not create a topic.
    #[error("topic `{topic}` with {partitions} partitions cannot be created")]
    Create {
        /// The topic.
        topic: String,
        /// How many it was to have.
        partitions: i32,
        /// What librdkafka said.
        #[source]
        cause: KafkaError,
    },
    /// The runtime was shut down meanwhile, or what waited has panicked.
    #[error("waiting for the brokers was interrupted")]
    Interrupted {
        /// By what.
        #[source]
        cause: BoxError,
    },
}

fn at(partition: Option<i32>) -> String {
    partition.map_or_else(|| "a partition".to_owned(), |partition| format!("partition {partition}"))
}

impl TopicError {
    pub(super) fn client(cause: KafkaError) -> Self {
        TopicError::Client { cause }
    }
}
