//! What can go wrong with a topic.
use super::SettingError;
use crate::codec::CodecError;
use rdkafka::error::KafkaError;

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
}

impl TopicError {
    pub(super) fn client(cause: KafkaError) -> Self {
        TopicError::Client { cause }
    }
}
