//! Times as keys: an instant is its seconds since 1970 and the nanoseconds from there on, so a time
//! before 1970 has negative seconds and counts its nanoseconds forward.
use std::time::{Duration, SystemTime};

use super::{AsKey, Cow, Distance, Key, KeyError, Single, take};
use crate::timestamp::Timestamp;

impl Key for Timestamp {
    fn format() -> Cow<'static, str> {
        Cow::Borrowed("timestamp")
    }
    #[inline]
    fn decode(bytes: &mut &[u8]) -> Result<Self, KeyError> {
        let micros = i64::from_be_bytes(take::<Self, 8>(bytes)?) ^ i64::MIN;
        Ok(Self::from_micros(micros))
    }
}

impl AsKey<Timestamp> for Timestamp {
    #[inline]
    fn encode(&self, bytes: &mut Vec<u8>) -> Result<usize, KeyError> {
        self.as_micros().encode(bytes)
    }
}

impl Single for Timestamp {}

impl Distance for Timestamp {
    type Distance = Duration;
    #[inline]
    fn distance(&self, other: &Self) -> Duration {
        self.abs_diff(*other)
    }
}

impl Key for Duration {
    fn format() -> Cow<'static, str> {
        Cow::Borrowed("duration")
    }
    #[inline]
    fn decode(bytes: &mut &[u8]) -> Result<Self, KeyError> {
        let secs = u64::from_be_bytes(take::<Self, 8>(bytes)?);
        match u32::from_be_bytes(take::<Self, 4>(bytes)?) {
            nanos @ 0..1_000_000_000 => Ok(Self::new(secs, nanos)),
            _ => Err(KeyError::malformed::<Self>("nanoseconds of a second or more")),
        }
    }
}

impl AsKey<Duration> for Duration {
    #[inline]
    fn encode(&self, bytes: &mut Vec<u8>) -> Result<usize, KeyError> {
        bytes.extend_from_slice(&self.as_secs().to_be_bytes());
        bytes.extend_from_slice(&self.subsec_nanos().to_be_bytes());
        Ok(0)
    }
}

impl Single for Duration {}

impl Distance for Duration {
    type Distance = Self;
    #[inline]
    fn distance(&self, other: &Self) -> Self {
        self.abs_diff(*other)
    }
}

/// A point in time as `(secs, nanos)`, ordered as the pair.
pub(super) trait Instant: Sized {
    /// `None` where the type could not be made of the answer again.
    fn parts(&self) -> Option<(i64, u32)>;
    /// `None` outside of what the type can hold.
    fn from_parts(secs: i64, nanos: u32) -> Option<Self>;
}

pub(super) fn decode_instant<K: Key + Instant>(bytes: &mut &[u8]) -> Result<K, KeyError> {
    let secs = i64::from_be_bytes(take::<K, 8>(bytes)?) ^ i64::MIN;
    let nanos = u32::from_be_bytes(take::<K, 4>(bytes)?);
    K::from_parts(secs, nanos).ok_or_else(|| KeyError::malformed::<K>("a time that this type cannot hold"))
}

#[inline]
pub(super) fn encode_instant<K: Instant>(instant: &K, bytes: &mut Vec<u8>) -> Result<usize, KeyError> {
    let (secs, nanos) = instant.parts().ok_or(KeyError::OutOfRange)?;
    bytes.extend_from_slice(&(secs ^ i64::MIN).to_be_bytes());
    bytes.extend_from_slice(&nanos.to_be_bytes());
    Ok(0)
}

macro_rules! instants {
    ($($type:ty, $format:literal;)*) => {$(
        impl Key for $type {
            fn format() -> Cow<'static, str> {
                Cow::Borrowed($format)
            }
            #[inline]
            fn decode(bytes: &mut &[u8]) -> Result<Self, KeyError> {
                $crate::key::time::decode_instant(bytes)
            }
        }

        impl AsKey<$type> for $type {
            #[inline]
            fn encode(&self, bytes: &mut Vec<u8>) -> Result<usize, KeyError> {
                $crate::key::time::encode_instant(self, bytes)
            }
        }

        impl Single for $type {}
    )*};
}
#[cfg(any(feature = "chrono", feature = "jiff", feature = "time"))]
pub(super) use instants;

instants! { SystemTime, "instant"; }

impl Instant for SystemTime {
    #[inline]
    fn parts(&self) -> Option<(i64, u32)> {
        Some(match self.duration_since(Self::UNIX_EPOCH) {
            Ok(since) => (since.as_secs().cast_signed(), since.subsec_nanos()),
            Err(before) => {
                let before = before.duration();
                // Wrapping, since the first second there is, -2^63, has no positive.
                let secs = before.as_secs().cast_signed().wrapping_neg();
                match before.subsec_nanos() {
                    0 => (secs, 0),
                    nanos => (secs.checked_sub(1)?, 1_000_000_000 - nanos),
                }
            }
        })
    }
    fn from_parts(secs: i64, nanos: u32) -> Option<Self> {
        let whole = Duration::from_secs(secs.unsigned_abs());
        let second = match secs {
            0.. => Self::UNIX_EPOCH.checked_add(whole),
            _ => Self::UNIX_EPOCH.checked_sub(whole),
        }?;
        (nanos < 1_000_000_000).then(|| second.checked_add(Duration::from_nanos(nanos.into())))?
    }
}

impl Distance for SystemTime {
    type Distance = Duration;
    #[inline]
    fn distance(&self, other: &Self) -> Duration {
        self.duration_since(*other).unwrap_or_else(|later| later.duration())
    }
}
