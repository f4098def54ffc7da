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
mod error;
mod known;
mod native;
mod owned;
mod settings;

#[cfg(test)]
mod tests;

pub use error::SettingError;
pub use settings::Settings;
