//! The times of the crates `chrono`, `jiff` and `time` as keys, each under the feature of its name.
//!
//! Instants share one format, so that a store written with one crate is read with another.
use std::time::Duration;

use super::time::{Instant, instants};
use super::{AsKey, Cow, Distance, Key, KeyError, Single};

macro_rules! distances {
    ($($type:ty;)*) => {$(
        impl Distance for $type {
            type Distance = Duration;
            #[inline]
            fn distance(&self, other: &Self) -> Duration {
                let (later, earlier) = if self < other { (other, self) } else { (self, other) };
                between(*later, *earlier)
            }
        }
    )*};
}

#[cfg(feature = "jiff")]
mod of_jiff {
    use super::*;

    instants! { jiff::Timestamp, "instant"; }

    impl Instant for jiff::Timestamp {
        #[inline]
        fn parts(&self) -> Option<(i64, u32)> {
            // Before 1970 its nanoseconds are negative, as its seconds are.
            Some(match self.subsec_nanosecond() {
                nanos @ 0.. => (self.as_second(), nanos.cast_unsigned()),
                nanos => (self.as_second() - 1, (nanos + 1_000_000_000).cast_unsigned()),
            })
        }
        fn from_parts(secs: i64, nanos: u32) -> Option<Self> {
            (nanos < 1_000_000_000).then(|| Self::new(secs, nanos.cast_signed()).ok())?
        }
    }

    distances! { jiff::Timestamp; }

    fn between(later: jiff::Timestamp, earlier: jiff::Timestamp) -> Duration {
        later.duration_since(earlier).unsigned_abs()
    }
}

#[cfg(feature = "chrono")]
mod of_chrono {
    use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, Timelike, Utc};

    use super::*;

    instants! {
        DateTime<Utc>, "instant";
        NaiveDateTime, "datetime";
    }

    // A leap second has nanoseconds of a second or more; the pair still orders it.
    impl Instant for DateTime<Utc> {
        #[inline]
        fn parts(&self) -> Option<(i64, u32)> {
            Some((self.timestamp(), self.timestamp_subsec_nanos()))
        }
        fn from_parts(secs: i64, nanos: u32) -> Option<Self> {
            Self::from_timestamp(secs, 0)?.with_nanosecond(nanos)
        }
    }

    impl Instant for NaiveDateTime {
        #[inline]
        fn parts(&self) -> Option<(i64, u32)> {
            self.and_utc().parts()
        }
        fn from_parts(secs: i64, nanos: u32) -> Option<Self> {
            DateTime::from_parts(secs, nanos).map(|instant| instant.naive_utc())
        }
    }

    distances! { DateTime<Utc>; NaiveDateTime; }

    fn between<T: std::ops::Sub<Output = chrono::TimeDelta>>(later: T, earlier: T) -> Duration {
        // Never negative, so it always converts.
        (later - earlier).to_std().unwrap_or_default()
    }

    /// 1970-01-01, with 0001-01-01 as day 1.
    const EPOCH: i32 = 719_163;

    impl Key for NaiveDate {
        fn format() -> Cow<'static, str> {
            Cow::Borrowed("date")
        }
        #[inline]
        fn decode(bytes: &mut &[u8]) -> Result<Self, KeyError> {
            let days = i32::decode(bytes)?.checked_add(EPOCH);
            days.and_then(Self::from_num_days_from_ce_opt)
                .ok_or_else(|| KeyError::malformed::<Self>("a day that this type cannot hold"))
        }
    }

    impl AsKey<NaiveDate> for NaiveDate {
        #[inline]
        fn encode(&self, bytes: &mut Vec<u8>) -> Result<usize, KeyError> {
            (self.num_days_from_ce() - EPOCH).encode(bytes)
        }
    }

    impl Single for NaiveDate {}

    impl Distance for NaiveDate {
        /// In days.
        type Distance = u32;
        #[inline]
        fn distance(&self, other: &Self) -> u32 {
            self.num_days_from_ce().abs_diff(other.num_days_from_ce())
        }
    }
}

#[cfg(feature = "time")]
mod of_time {
    use ::time::{OffsetDateTime, UtcDateTime};

    use super::*;

    // Two of them are equal, and ordered, as instants, whatever their offsets; so the offset is
    // not kept.
    instants! {
        OffsetDateTime, "instant";
        UtcDateTime, "instant";
    }

    impl Instant for OffsetDateTime {
        #[inline]
        fn parts(&self) -> Option<(i64, u32)> {
            self.checked_to_utc()?.parts()
        }
        fn from_parts(secs: i64, nanos: u32) -> Option<Self> {
            Self::from_unix_timestamp(secs).ok()?.replace_nanosecond(nanos).ok()
        }
    }

    impl Instant for UtcDateTime {
        #[inline]
        fn parts(&self) -> Option<(i64, u32)> {
            Some((self.unix_timestamp(), self.nanosecond()))
        }
        fn from_parts(secs: i64, nanos: u32) -> Option<Self> {
            Self::from_unix_timestamp(secs).ok()?.replace_nanosecond(nanos).ok()
        }
    }

    distances! { OffsetDateTime; UtcDateTime; }

    fn between<T: std::ops::Sub<Output = ::time::Duration>>(later: T, earlier: T) -> Duration {
        (later - earlier).unsigned_abs()
    }
}
