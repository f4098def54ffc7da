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

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use proptest::prelude::*;

    use super::*;

    #[cfg(any(feature = "chrono", feature = "jiff", feature = "time"))]
    const NEAR: std::ops::Range<i64> = -60_000_000_000_000_000..60_000_000_000_000_000;

    fn there_and_back<T>(timestamp: Timestamp)
    where
        T: TryFrom<Timestamp, Error = TimestampError> + Into<Timestamp> + Debug,
    {
        assert_eq!(T::try_from(timestamp).map(Into::into), Ok(timestamp));
    }

    /// For the times in nanoseconds: half a microsecond before 1970 is rounded into the one before.
    fn is_rounded_down<T: Into<Timestamp>>(half_before: T) {
        assert_eq!(half_before.into(), Timestamp::from_micros(-1));
    }

    #[cfg(any(feature = "chrono", feature = "jiff", feature = "time"))]
    fn is_out_of_range<T: TryFrom<Timestamp, Error = TimestampError> + Debug>(target: &'static str) {
        for timestamp in [Timestamp::MIN, Timestamp::MAX] {
            let error = T::try_from(timestamp).unwrap_err();
            assert_eq!(error, TimestampError::OutOfRange { timestamp, target });
        }
    }

    proptest! {
        #[test]
        fn a_system_time_is_there_and_back(micros: i64) {
            there_and_back::<SystemTime>(Timestamp::from_micros(micros));
        }
    }

    #[test]
    fn a_system_time_is_rounded_down_and_stops_at_the_ends() {
        is_rounded_down(SystemTime::UNIX_EPOCH - Duration::from_nanos(500));
        let far = Duration::from_secs(1 << 60);
        assert_eq!(Timestamp::from(SystemTime::UNIX_EPOCH + far), Timestamp::MAX);
        assert_eq!(Timestamp::from(SystemTime::UNIX_EPOCH - far), Timestamp::MIN);
    }

    #[test]
    fn now_is_between_two_looks_at_the_clock() {
        let before = Timestamp::from(SystemTime::now());
        let now = Timestamp::now();
        assert!(before <= now && now <= Timestamp::from(SystemTime::now()));
    }

    #[cfg(feature = "jiff")]
    mod of_jiff {
        use super::*;

        proptest! {
            #[test]
            fn a_jiff_timestamp_is_there_and_back(micros in NEAR) {
                there_and_back::<jiff::Timestamp>(Timestamp::from_micros(micros));
            }
        }

        #[test]
        fn a_jiff_timestamp_is_rounded_down_and_ends_with_its_calendar() {
            is_rounded_down(jiff::Timestamp::from_nanosecond(-500).unwrap());
            is_out_of_range::<jiff::Timestamp>("jiff::Timestamp");
        }
    }

    #[cfg(feature = "chrono")]
    mod of_chrono {
        use chrono::{DateTime, FixedOffset, Utc};

        use super::*;

        proptest! {
            #[test]
            fn a_chrono_time_is_there_and_back(micros in NEAR) {
                there_and_back::<DateTime<Utc>>(Timestamp::from_micros(micros));
            }
        }

        #[test]
        fn a_chrono_time_is_rounded_down_and_ends_with_its_calendar() {
            is_rounded_down(DateTime::from_timestamp_nanos(-500));
            is_out_of_range::<DateTime<Utc>>("chrono::DateTime<Utc>");
            assert!(Timestamp::from(DateTime::<Utc>::MIN_UTC) > Timestamp::MIN);
            assert!(Timestamp::from(DateTime::<Utc>::MAX_UTC) < Timestamp::MAX);
        }

        #[test]
        fn a_chrono_time_is_the_instant_whatever_its_zone() {
            let utc = DateTime::from_timestamp(1_719_828_000, 0).unwrap();
            let there = utc.with_timezone(&FixedOffset::west_opt(4 * 3600).unwrap());
            assert_eq!(Timestamp::from(there), Timestamp::from(utc));
        }
    }

    #[cfg(feature = "time")]
    mod of_time {
        use time::{OffsetDateTime, UtcDateTime, UtcOffset};

        use super::*;

        proptest! {
            #[test]
            fn a_time_of_time_is_there_and_back(micros in NEAR) {
                there_and_back::<OffsetDateTime>(Timestamp::from_micros(micros));
                there_and_back::<UtcDateTime>(Timestamp::from_micros(micros));
            }
        }

        #[test]
        fn a_time_of_time_is_rounded_down_and_ends_with_its_calendar() {
            is_rounded_down(OffsetDateTime::from_unix_timestamp_nanos(-500).unwrap());
            is_rounded_down(UtcDateTime::from_unix_timestamp_nanos(-500).unwrap());
            is_out_of_range::<OffsetDateTime>("time::OffsetDateTime");
            is_out_of_range::<UtcDateTime>("time::UtcDateTime");
        }

        #[test]
        fn a_time_of_time_is_the_instant_whatever_its_offset() {
            let utc = OffsetDateTime::from_unix_timestamp(1_719_828_000).unwrap();
            let there = utc.to_offset(UtcOffset::from_hms(-4, 0, 0).unwrap());
            assert_eq!(Timestamp::from(there), Timestamp::from(utc));
        }
    }
}
