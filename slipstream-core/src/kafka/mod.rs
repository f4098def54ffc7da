//! Kafka, through librdkafka: so far what its clients are set up with.
//!
//! ```text
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
mod encoded;
mod error;
mod failure;
mod feed;
mod known;
mod member;
mod native;
mod offset;
mod owned;
mod settings;
mod source;
mod steering;
mod stream;
mod topic;

#[cfg(test)]
mod tests;

pub use cluster::Kafka;
pub use encoded::Encoded;
pub use error::SettingError;
pub use failure::TopicError;
pub use offset::Offset;
pub use settings::Settings;
pub use topic::{Topic, Unformatted};
