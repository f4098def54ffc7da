//! [`Timestamp`] as text, and what serde makes of it.
use std::fmt;
use std::str::FromStr;

use jiff::fmt::temporal::DateTimeParser;
use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use serde::ser::{Serialize, Serializer};

use super::{Timestamp, TimestampError};

/// After the number of microseconds where the calendar ends.
const MICROS: &str = "us";

/// RFC 3339 in UTC, with as many digits of a second as there are. Outside of the years -9999 to
/// 9999, for which RFC 3339 has no text, the microseconds since 1970: `9223372036854775807us`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(time) => time.fmt(f),
            Err(_) => write!(f, "{}{MICROS}", self.0),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Reads what `Display` writes, and RFC 3339 with any offset. A zone in brackets after it
/// (RFC 9557) does not count.
impl FromStr for Timestamp {
    type Err = TimestampError;
    fn from_str(text: &str) -> Result<Self, TimestampError> {
        match text.parse::<jiff::Timestamp>() {
            Ok(time) => Ok(Self::from_nanos(time.as_nanosecond())),
            Err(error) => {
                let micros = text.strip_suffix(MICROS).and_then(|micros| micros.parse().ok());
                micros.map(Self).ok_or_else(|| why_unreadable(text, &error))
            }
        }
    }
}

#[cold]
fn why_unreadable(text: &str, error: &jiff::Error) -> TimestampError {
    let text = text.to_owned();
    match DateTimeParser::new().parse_pieces(&text) {
        Ok(pieces) if pieces.offset().is_none() => TimestampError::NoOffset { text },
        _ => TimestampError::Unreadable { text, reason: error.to_string() },
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            serializer.serialize_i64(self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            deserializer.deserialize_any(TextOrMicros)
        } else {
            // MessagePack gives what it finds; a format that does not tell gives the number.
            deserializer.deserialize_i64(TextOrMicros)
        }
    }
}

struct TextOrMicros;

impl Visitor<'_> for TextOrMicros {
    type Value = Timestamp;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time as RFC 3339 text, or a whole number of microseconds since 1970")
    }

    fn visit_i64<E: Error>(self, micros: i64) -> Result<Timestamp, E> {
        Ok(Timestamp(micros))
    }

    fn visit_u64<E: Error>(self, micros: u64) -> Result<Timestamp, E> {
        i64::try_from(micros)
            .map(Timestamp)
            .map_err(|_| E::invalid_value(Unexpected::Unsigned(micros), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Timestamp, E> {
        text.parse().map_err(E::custom)
    }
}
