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
        // Asked for a number, MessagePack refuses text, which others do write there. So this asks for
        // whatever there is, which JSON and MessagePack can answer.
        deserializer.deserialize_any(TextOrMicros)
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

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    const TEN: Timestamp = Timestamp(1_719_828_000_000_000);

    #[test]
    fn text_is_read_by_its_own_offset() {
        for text in [
            "2024-07-01T10:00:00Z",
            "2024-07-01T10:00:00.000Z",
            "2024-07-01T10:00:00+00:00",
            "2024-07-01T06:00:00-04:00",
            "2024-07-01T15:30:00+05:30",
            "2024-07-01 10:00:00Z",
            "2024-07-01t10:00:00z",
            "2024-07-01T06:00:00-04:00[America/New_York]",
            "2024-07-01T10:00:00Z[America/New_York]",
        ] {
            assert_eq!(text.parse(), Ok(TEN), "{text}");
        }
        assert_eq!(TEN.to_string(), "2024-07-01T10:00:00Z");
        assert_eq!(format!("{TEN:?}"), "2024-07-01T10:00:00Z");
    }

    #[test]
    fn text_without_an_offset_is_refused_with_the_remedy() {
        for text in
            ["2024-07-01T10:00:00", "2024-07-01 10:00", "2024-07-01", "2024-07-01T10:00[America/New_York]"]
        {
            let error = text.parse::<Timestamp>().unwrap_err();
            assert_eq!(error, TimestampError::NoOffset { text: text.to_owned() });
            assert!(error.to_string().contains("write `Z` after it for UTC"), "{error}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused_with_what_it_says() {
        for text in
            ["", "noon", "2024-02-30T00:00:00Z", "2024-07-01T25:00:00Z", "5", "us", "99999999999999999999us"]
        {
            let error = text.parse::<Timestamp>().unwrap_err();
            assert!(matches!(error, TimestampError::Unreadable { .. }), "{error}");
            assert!(error.to_string().starts_with(&format!("`{text}` is not a time")), "{error}");
        }
    }

    #[test]
    fn the_zone_of_the_machine_changes_nothing() {
        // The zone is the process's, so the tests above run again in processes of other zones.
        let this = std::env::current_exe().unwrap();
        for zone in ["America/New_York", "Asia/Kolkata", "Pacific/Kiritimati", "nowhere"] {
            for test in
                ["text_is_read_by_its_own_offset", "text_without_an_offset_is_refused_with_the_remedy"]
            {
                let name = format!("timestamp::text::tests::{test}");
                let run = Command::new(&this).args(["--exact", &name]).env("TZ", zone).output().unwrap();
                let said = String::from_utf8_lossy(&run.stdout);
                assert!(run.status.success() && said.contains("1 passed"), "{zone}: {said}");
            }
        }
    }

    #[test]
    fn a_part_of_a_second_has_as_many_digits_as_it_needs() {
        assert_eq!(Timestamp(TEN.0 + 500_000).to_string(), "2024-07-01T10:00:00.5Z");
        assert_eq!(Timestamp(-1).to_string(), "1969-12-31T23:59:59.999999Z");
        assert_eq!("1969-12-31T23:59:59.999999999Z".parse(), Ok(Timestamp(-1)));
    }

    #[test]
    fn past_the_calendar_the_text_is_the_number() {
        assert_eq!(Timestamp::MAX.to_string(), "9223372036854775807us");
        assert_eq!("-9223372036854775808us".parse(), Ok(Timestamp::MIN));
    }

    #[test]
    fn serde_writes_text_for_people_and_a_number_for_machines() {
        assert_eq!(serde_json::to_string(&TEN).unwrap(), r#""2024-07-01T10:00:00Z""#);
        assert_eq!(rmp_serde::to_vec(&TEN).unwrap(), rmp_serde::to_vec(&TEN.0).unwrap());
    }

    #[test]
    fn serde_reads_text_and_number_everywhere() {
        assert_eq!(serde_json::from_str::<Timestamp>(r#""2024-07-01T06:00:00-04:00""#).unwrap(), TEN);
        assert_eq!(serde_json::from_str::<Timestamp>("1719828000000000").unwrap(), TEN);
        let text = rmp_serde::to_vec("2024-07-01T10:00:00Z").unwrap();
        assert_eq!(rmp_serde::from_slice::<Timestamp>(&text).unwrap(), TEN);
        let number = rmp_serde::to_vec(&TEN).unwrap();
        assert_eq!(rmp_serde::from_slice::<Timestamp>(&number).unwrap(), TEN);
    }

    #[test]
    fn serde_says_why_it_does_not_read() {
        let said = |json| serde_json::from_str::<Timestamp>(json).unwrap_err().to_string();
        assert!(said(r#""2024-07-01T10:00:00""#).contains("no offset"));
        assert!(said("18446744073709551615").contains("whole number of microseconds"));
        assert!(said("1.5").contains("whole number of microseconds"));
        assert!(said("null").contains("RFC 3339"));
    }

    #[test]
    fn a_timestamp_can_name_a_member_of_an_object() {
        let map = std::collections::BTreeMap::from([(TEN, 1)]);
        let json = serde_json::to_string(&map).unwrap();
        assert_eq!(json, r#"{"2024-07-01T10:00:00Z":1}"#);
        assert_eq!(serde_json::from_str::<std::collections::BTreeMap<Timestamp, i32>>(&json).unwrap(), map);
    }

    proptest! {
        #[test]
        fn text_is_read_as_what_was_written(micros in prop_oneof![any::<i64>(), -(1_i64 << 58)..1 << 58]) {
            prop_assert_eq!(Timestamp(micros).to_string().parse(), Ok(Timestamp(micros)));
        }

        #[test]
        fn serde_reads_what_it_wrote(micros: i64) {
            let time = Timestamp(micros);
            let json = serde_json::to_string(&time).unwrap();
            prop_assert_eq!(serde_json::from_str::<Timestamp>(&json).unwrap(), time);
            let packed = rmp_serde::to_vec(&time).unwrap();
            prop_assert_eq!(rmp_serde::from_slice::<Timestamp>(&packed).unwrap(), time);
        }

        #[test]
        fn no_text_makes_reading_panic(text: String) {
            let _ = text.parse::<Timestamp>();
        }
    }
}
