//! What can go wrong with a topic.
use super::SettingError;
use crate::{BoxError, codec::CodecError, error::write_chain};
use rdkafka::error::KafkaError;
use std::{fmt, time::Duration};

/// Why a topic could not be read or written. Its `Debug`, which `main` prints, is the whole chain on one line.
#[derive(thiserror::Error)]
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
    /// The brokers do not let this user read the topic, or not in its group.
    #[error("the brokers at `{brokers}` refuse topic `{topic}`: {said}; see to what this user may do there")]
    Refused {
        /// The topic.
        topic: String,
        /// The setting `bootstrap.servers`.
        brokers: String,
        /// What they said.
        said: String,
    },
    /// A source without a group: two programs of one default name would take each other's partitions.
    #[error(
        "topic `{topic}` has no consumer group: name the flow with `.named(…)`, or the group with \
         `.group(…)`"
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

fn at(partition: Option<i32>) -> String {
    partition.map_or_else(|| "a partition".to_owned(), |partition| format!("partition {partition}"))
}

impl fmt::Debug for TopicError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_chain(self, f)
    }
}

impl TopicError {
    pub(super) fn client(cause: KafkaError) -> Self {
        TopicError::Client { cause }
    }
}
