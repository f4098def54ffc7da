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
    /// There is no such topic.
    #[error("there is no topic `{topic}` at {servers}: create it, or mend its name")]
    Unknown {
        /// The topic.
        topic: String,
        /// The brokers that were asked.
        servers: String,
    },
    /// No broker answers.
    #[error(
        "no broker at {servers} answers for topic `{topic}`: {said}; see that one runs there, and that this \
         machine reaches the address that it advertises"
    )]
    Unreachable {
        /// The topic.
        topic: String,
        /// The brokers that were asked.
        servers: String,
        /// What librdkafka said last.
        said: String,
    },
    /// The brokers do not let this program in, or not to the topic or the group.
    #[error(
        "the brokers at {servers} refuse topic `{topic}`: {said}; see to the user name, the password and what \
         that user may do"
    )]
    Refused {
        /// The topic.
        topic: String,
        /// The brokers.
        servers: String,
        /// What they said.
        said: String,
    },
    /// A source without a group: two programs of one default name would take each other's partitions.
    #[error(
        "topic `{topic}` has no consumer group: name the flow with `.named(\u{2026})`, or the group with \
         `.group(\u{2026})`"
    )]
    NoGroup {
        /// The topic.
        topic: String,
    },
    /// A member of the group of that name is running in this process.
    #[error(
        "instance `{instance}` of group `{group}` is running in this process already: its topic `{topic}` needs a \
         name of its own for the instance, or another group"
    )]
    InstanceTwice {
        /// The topic that was to be read.
        topic: String,
        /// The group.
        group: String,
        /// The static member's name.
        instance: String,
    },
    /// Two topics of one group have other settings: their consumer is one, and has one set.
    #[error(
        "topics `{topic}` and `{other}` share the consumer of group `{group}`, but differ in its settings: give \
         both the same, or one of them another group"
    )]
    TwoSettings {
        /// The topic.
        topic: String,
        /// The one that was there before.
        other: String,
        /// The group; empty without one.
        group: String,
    },
    /// One flow reads a topic twice in one group.
    #[error(
        "topic `{topic}` is read twice in group `{group}`, by two sources: make it one `Topic` and clone that, or \
         give one of them another group"
    )]
    TopicTwice {
        /// The topic.
        topic: String,
        /// The group; empty without one.
        group: String,
    },
    /// A position that the log does not have, or no longer.
    #[error(
        "partition {partition} of topic `{topic}` goes on at {offset}, but its messages are {low} to {high} \
         (exclusive): {}", lost(*offset, *low)
    )]
    OutOfRange {
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
        /// Where it was to go on.
        offset: i64,
        /// The first message there is.
        low: i64,
        /// After the last one.
        high: i64,
    },
    /// Partitions that another process has, or nobody: they were not sought. The others were.
    #[error(
        "partitions {partitions:?} of topic `{topic}` are not this process's, and were not sought: seek where they \
         are"
    )]
    NotOurs {
        /// The topic.
        topic: String,
        /// The partitions.
        partitions: Vec<i32>,
    },
    /// The topic cannot be read any more.
    #[error("topic `{topic}` cannot be read: {said}")]
    Read {
        /// The topic.
        topic: String,
        /// What librdkafka said, or what is the matter.
        said: String,
    },
}

fn lost(offset: i64, low: i64) -> &'static str {
    if offset < low {
        "what came between is deleted; seek to where it should go on, and see to the topic's retention"
    } else {
        "the topic was made anew, or the position is of another; seek to where it should go on"
    }
}

impl TopicError {
    pub(super) fn client(cause: KafkaError) -> Self {
        TopicError::Client { cause }
    }
}
