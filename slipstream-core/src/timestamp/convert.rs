//! [`Timestamp`] to and from the times of `std` and of the usual crates.
//!
//! What is finer than a microsecond is rounded down. Into a [`Timestamp`] nothing fails: the times
//! past its end, 292,000 years away, become its ends.
use std::time::{Duration, SystemTime};

use super::{Timestamp, TimestampError};

impl Timestamp {
    #[cold]
    fn out_of_range(self, target: &'static str) -> TimestampError {
        TimestampError::OutOfRange { timestamp: self, target }
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => Self::UNIX_EPOCH + since,
            Err(before) => Self::UNIX_EPOCH - before.duration(),
        }
    }
}

/// Fails only where the system's clock does not reach 292,000 years.
impl TryFrom<Timestamp> for SystemTime {
    type Error = TimestampError;
    fn try_from(timestamp: Timestamp) -> Result<Self, TimestampError> {
        let distance = Duration::from_micros(timestamp.0.unsigned_abs());
        let time = match timestamp.0 {
            0.. => Self::UNIX_EPOCH.checked_add(distance),
            _ => Self::UNIX_EPOCH.checked_sub(distance),
        };
        time.ok_or_else(|| timestamp.out_of_range("SystemTime"))
    }
}

#[cfg(feature = "jiff")]
impl From<jiff::Timestamp> for Timestamp {
    fn from(time: jiff::Timestamp) -> Self {
        Self::from_nanos(time.as_nanosecond())
    }
}

/// Fails outside of the years -9999 to 9999.
#[cfg(feature = "jiff")]
impl TryFrom<Timestamp> for jiff::Timestamp {
    type Error = TimestampError;
    fn try_from(timestamp: Timestamp) -> Result<Self, TimestampError> {
        Self::from_microsecond(timestamp.0).map_err(|_| timestamp.out_of_range("jiff::Timestamp"))
    }
}

#[cfg(feature = "chrono")]
impl<Tz: chrono::TimeZone> From<chrono::DateTime<Tz>> for Timestamp {
    fn from(time: chrono::DateTime<Tz>) -> Self {
        // Its whole range, 262,000 years, is within ours.
        Self(time.timestamp_micros())
    }
}

/// Fails outside of the 262,000 years that `chrono` reaches.
#[cfg(feature = "chrono")]
impl TryFrom<Timestamp> for chrono::DateTime<chrono::Utc> {
    type Error = TimestampError;
    fn try_from(timestamp: Timestamp) -> Result<Self, TimestampError> {
        Self::from_timestamp_micros(timestamp.0)
            .ok_or_else(|| timestamp.out_of_range("chrono::DateTime<Utc>"))
    }
}

#[cfg(feature = "time")]
impl From<time::OffsetDateTime> for Timestamp {
    fn from(time: time::OffsetDateTime) -> Self {
        Self::from_nanos(time.unix_timestamp_nanos())
    }
}

#[cfg(feature = "time")]
impl From<time::UtcDateTime> for Timestamp {
    fn from(time: time::UtcDateTime) -> Self {
        Self::from_nanos(time.unix_timestamp_nanos())
    }
}

/// In UTC. Fails outside of the years -9999 to 9999.
#[cfg(feature = "time")]
impl TryFrom<Timestamp> for time::OffsetDateTime {
    type Error = TimestampError;
    fn try_from(timestamp: Timestamp) -> Result<Self, TimestampError> {
        Self::from_unix_timestamp_nanos(i128::from(timestamp.0) * 1_000)
            .map_err(|_| timestamp.out_of_range("time::OffsetDateTime"))
    }
}

/// Fails outside of the years -9999 to 9999.
#[cfg(feature = "time")]
impl TryFrom<Timestamp> for time::UtcDateTime {
    type Error = TimestampError;
    fn try_from(timestamp: Timestamp) -> Result<Self, TimestampError> {
        Self::from_unix_timestamp_nanos(i128::from(timestamp.0) * 1_000)
            .map_err(|_| timestamp.out_of_range("time::UtcDateTime"))
    }
}
