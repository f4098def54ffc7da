//! [`Timestamp`]: a point in time, as event times, keys of caches and markers of checkpoints are.
//!
//! A number of microseconds and nothing else: no zone of the machine, no calendar, no leap seconds
//! takes part, so the same input gives the same result everywhere.
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::time::{Duration, SystemTime};

mod convert;
mod text;

/// A point in time: microseconds since 1970-01-01T00:00:00Z.
///
/// Microseconds are the unit of Avro, Parquet and Postgres, and in 64 bits reach 292,000 years both
/// ways. What is finer is rounded down, towards the past, before 1970 as well.
///
/// As text it is RFC 3339. Text without an offset is refused: it would mean another time on another
/// machine. Serde writes the text for people (JSON) and the number of microseconds for machines
/// (MessagePack), and reads both in both. A format that does not tell what comes next (bincode,
/// postcard) cannot answer that: there, keep [`as_micros`](Self::as_micros).
///
/// ```
/// use std::time::Duration;
/// # use slipstream_core::Timestamp;
///
/// let departure: Timestamp = "2024-07-01T10:00:00-04:00".parse()?;
/// assert_eq!(departure.to_string(), "2024-07-01T14:00:00Z");
///
/// let arrival = departure + Duration::from_secs(3600);
/// assert_eq!(arrival.duration_since(departure), Some(Duration::from_secs(3600)));
/// assert_eq!(departure.duration_since(arrival), None);
/// assert!("2024-07-01T10:00:00".parse::<Timestamp>().is_err());
/// # Ok::<(), slipstream_core::TimestampError>(())
/// ```
///
/// `+` and `-` stop at [`MIN`](Self::MIN) and [`MAX`](Self::MAX): a window that reaches past the end
/// of time holds all there is, and a handler does not panic over it. Where that would hide a
/// mistake, there are [`checked_add`](Self::checked_add) and [`checked_sub`](Self::checked_sub).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// Why there is no such [`Timestamp`], or no such time in another type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TimestampError {
    /// The text has a date but no offset from UTC: which time it means depends on where it is read.
    #[error(
        "`{text}` has no offset, so it means another time on another machine: \
         write `Z` after it for UTC, or an offset such as `-04:00`"
    )]
    NoOffset {
        /// The text as it was given.
        text: String,
    },
    /// The text is not RFC 3339.
    #[error("`{text}` is not a time such as `2024-07-01T10:00:00Z`: {reason}")]
    Unreadable {
        /// The text as it was given.
        text: String,
        /// Where reading it failed.
        reason: String,
    },
    /// The other type does not reach this time.
    #[error("{timestamp} is out of the range of `{target}`")]
    OutOfRange {
        /// The time.
        timestamp: Timestamp,
        /// The type that cannot hold it.
        target: &'static str,
    },
}

impl Timestamp {
    /// The first there is, about 292,000 years before 1970.
    pub const MIN: Self = Self(i64::MIN);
    /// The last there is, about 292,000 years after 1970.
    pub const MAX: Self = Self(i64::MAX);
    /// 1970-01-01T00:00:00Z.
    pub const UNIX_EPOCH: Self = Self(0);

    /// The clock's time.
    #[must_use]
    pub fn now() -> Self {
        SystemTime::now().into()
    }

    /// The time at so many microseconds since 1970 (before it, when negative).
    #[inline]
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// The time at so many milliseconds since 1970, as Kafka has them. `None` past
    /// [`MAX`](Self::MAX) or before [`MIN`](Self::MIN).
    #[inline]
    #[must_use]
    pub const fn from_millis(millis: i64) -> Option<Self> {
        match millis.checked_mul(1_000) {
            Some(micros) => Some(Self(micros)),
            None => None,
        }
    }

    /// The time at so many seconds since 1970. `None` past [`MAX`](Self::MAX) or before
    /// [`MIN`](Self::MIN).
    #[inline]
    #[must_use]
    pub const fn from_secs(secs: i64) -> Option<Self> {
        match secs.checked_mul(1_000_000) {
            Some(micros) => Some(Self(micros)),
            None => None,
        }
    }

    /// Microseconds since 1970.
    #[inline]
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Whole milliseconds since 1970, rounded down.
    #[inline]
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0.div_euclid(1_000)
    }

    /// Whole seconds since 1970, rounded down.
    #[inline]
    #[must_use]
    pub const fn as_secs(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// So much later. `None` past [`MAX`](Self::MAX).
    #[must_use]
    pub fn checked_add(self, duration: Duration) -> Option<Self> {
        let micros = i64::try_from(i128::from(self.0).checked_add_unsigned(duration.as_micros())?);
        micros.ok().map(Self)
    }

    /// So much earlier. `None` before [`MIN`](Self::MIN).
    #[must_use]
    pub fn checked_sub(self, duration: Duration) -> Option<Self> {
        // A part of a microsecond leads into the one before.
        let whole = duration.as_nanos().div_ceil(1_000);
        let micros = i64::try_from(i128::from(self.0).checked_sub_unsigned(whole)?);
        micros.ok().map(Self)
    }

    /// How long after `earlier` this is; `None` when it is before it.
    #[must_use]
    pub const fn duration_since(self, earlier: Self) -> Option<Duration> {
        if self.0 < earlier.0 { None } else { Some(self.abs_diff(earlier)) }
    }

    /// How far apart the two are.
    #[inline]
    #[must_use]
    pub const fn abs_diff(self, other: Self) -> Duration {
        Duration::from_micros(self.0.abs_diff(other.0))
    }

    /// For what may be finer and reach further: rounded down, and stopped at the ends.
    fn from_nanos(nanos: i128) -> Self {
        match i64::try_from(nanos.div_euclid(1_000)) {
            Ok(micros) => Self(micros),
            Err(_) if nanos < 0 => Self::MIN,
            Err(_) => Self::MAX,
        }
    }
}

/// Stops at [`Timestamp::MAX`].
impl Add<Duration> for Timestamp {
    type Output = Self;
    fn add(self, duration: Duration) -> Self {
        self.checked_add(duration).unwrap_or(Self::MAX)
    }
}

/// Stops at [`Timestamp::MAX`].
impl AddAssign<Duration> for Timestamp {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

/// Stops at [`Timestamp::MIN`].
impl Sub<Duration> for Timestamp {
    type Output = Self;
    fn sub(self, duration: Duration) -> Self {
        self.checked_sub(duration).unwrap_or(Self::MIN)
    }
}

/// Stops at [`Timestamp::MIN`].
impl SubAssign<Duration> for Timestamp {
    fn sub_assign(&mut self, duration: Duration) {
        *self = *self - duration;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn larger_units_are_refused_where_they_do_not_fit_and_rounded_down() {
        assert_eq!(Timestamp::from_millis(-1).map(Timestamp::as_micros), Some(-1_000));
        assert_eq!(Timestamp::from_secs(3).map(Timestamp::as_micros), Some(3_000_000));
        assert_eq!(Timestamp::from_millis(i64::MAX), None);
        assert_eq!(Timestamp::from_secs(i64::MIN), None);
        assert_eq!(Timestamp::from_micros(-1).as_millis(), -1);
        assert_eq!(Timestamp::from_micros(-1).as_secs(), -1);
        assert_eq!(Timestamp::from_micros(1_999_999).as_secs(), 1);
    }

    #[test]
    fn sums_and_differences_stop_at_the_ends() {
        assert_eq!(Timestamp::MAX + SECOND, Timestamp::MAX);
        assert_eq!(Timestamp::MIN - Duration::MAX, Timestamp::MIN);
        assert_eq!(Timestamp::MAX.checked_add(SECOND), None);
        assert_eq!(Timestamp::MIN.checked_sub(SECOND), None);
        assert_eq!(Timestamp::MIN + Timestamp::MAX.abs_diff(Timestamp::MIN), Timestamp::MAX);
    }

    #[test]
    fn a_part_of_a_microsecond_is_rounded_down() {
        let nanos = Duration::from_nanos(1_500);
        assert_eq!(Timestamp::from_micros(5) + nanos, Timestamp::from_micros(6));
        assert_eq!(Timestamp::from_micros(5) - nanos, Timestamp::from_micros(3));
        assert_eq!(Timestamp::from_nanos(-1), Timestamp::from_micros(-1));
        assert_eq!(Timestamp::from_nanos(i128::MIN), Timestamp::MIN);
    }

    #[test]
    fn a_time_is_since_an_earlier_one_and_not_since_a_later_one() {
        let (earlier, later) = (Timestamp::from_micros(-1), Timestamp::from_micros(1));
        assert_eq!(later.duration_since(earlier), Some(Duration::from_micros(2)));
        assert_eq!(earlier.duration_since(later), None);
        assert_eq!(later.duration_since(later), Some(Duration::ZERO));
        assert_eq!(earlier.abs_diff(later), Duration::from_micros(2));
    }
}
