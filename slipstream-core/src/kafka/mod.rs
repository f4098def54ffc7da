//! Kafka, through librdkafka: clusters, their topics, and what is sent to these.
//!
//! ```text
//! Kafka ─▶ Topic ─ sink, send ─▶ records of the message ─ published ─▶ Producer ─▶ broker
//!
//! ("linger_ms", "5") ─▶ name: `_` for `.`, aliases ─▶ ours? ─▶ of its kind? ─▶ librdkafka takes it ─▶ Settings
//!                                   ▲                             ▲
//!                                   └── librdkafka's own table ───┘
//! ```
//!
//! Invariants: what is wrong with a setting is said when it is given, by its name; a secret is neither in an
//! error nor in `Debug`; which settings there are is librdkafka's to say, and no list of ours.
mod assignment;
mod batch;
mod cluster;
mod connect;
mod create;
mod deliveries;
mod encoded;
mod error;
mod failure;
mod feed;
mod known;
mod member;
mod native;
mod native_producer;
mod offset;
pub mod origin;
mod owned;
mod producer;
mod record;
mod records;
mod send;
mod settings;
mod sink;
mod source;
mod steering;
mod stream;
mod topic;

#[cfg(test)]
mod tests;

use connect::Connection;

pub use cluster::Kafka;
pub use encoded::Encoded;
pub use error::SettingError;
pub use failure::TopicError;
pub use offset::Offset;
pub use record::Record;
pub use settings::Settings;
pub use topic::{Topic, Unformatted};
