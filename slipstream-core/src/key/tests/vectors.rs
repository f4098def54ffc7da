//! The bytes and formats that stores hold, written out: a change here makes state unreadable.
use std::cmp::Reverse;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::super::{Distance, Key};
use super::{decode, encode};
use crate::timestamp::Timestamp;

#[track_caller]
fn is_written<K: Key + PartialEq + std::fmt::Debug>(key: K, format: &str, bytes: &[u8]) {
    assert_eq!(encode::<K, K>(&key), bytes);
    assert_eq!(decode::<K>(bytes), Ok(key));
    assert_eq!(K::format(), format);
}

#[test]
fn integers_are_written_as_ever() {
    is_written(0x12_u8, "u8", &[0x12]);
    is_written(0x1234_u16, "u16", &[0x12, 0x34]);
    is_written(1_u32, "u32", &[0, 0, 0, 1]);
    is_written(u64::MAX, "u64", &[0xff; 8]);
    is_written(1_u128, "u128", &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    is_written(5_usize, "u64", &[0, 0, 0, 0, 0, 0, 0, 5]);
    is_written(-1_i8, "i8", &[0x7f]);
    is_written(i16::MIN, "i16", &[0, 0]);
    is_written(1_i32, "i32", &[0x80, 0, 0, 1]);
    is_written(-2_i64, "i64", &[0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe]);
    is_written(i128::MAX, "i128", &[0xff; 16]);
    is_written(-1_isize, "i64", &[0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
}

#[test]
fn floats_are_written_as_ever() {
    is_written(0.0_f64, "f64", &[0x80, 0, 0, 0, 0, 0, 0, 0]);
    is_written(1.0_f64, "f64", &[0xbf, 0xf0, 0, 0, 0, 0, 0, 0]);
    is_written(-1.5_f64, "f64", &[0x40, 0x07, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    is_written(f64::NEG_INFINITY, "f64", &[0x00, 0x0f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    is_written(-1.0_f32, "f32", &[0x40, 0x7f, 0xff, 0xff]);
    assert_eq!(encode::<f32, _>(&-0.0), [0x80, 0, 0, 0]);
}

#[test]
fn bool_and_char_are_written_as_ever() {
    is_written(false, "bool", &[0]);
    is_written(true, "bool", &[1]);
    is_written('€', "char", &[0, 0, 0x20, 0xac]);
}

#[test]
fn strings_and_bytes_are_written_as_ever() {
    is_written(String::new(), "string", &[0, 1]);
    is_written(String::from("JFK"), "string", b"JFK\0\x01");
    is_written(String::from("\0a\0\0"), "string", b"\0\xffa\0\xff\0\xff\0\x01");
    is_written(Box::<str>::from("ü"), "string", b"\xc3\xbc\0\x01");
    is_written(Arc::<str>::from("a"), "string", b"a\0\x01");
    is_written(vec![0xff, 0, 1], "bytes", b"\xff\0\xff\x01\0\x01");
    is_written(Box::<[u8]>::from([1]), "bytes", b"\x01\0\x01");
    is_written(Arc::<[u8]>::from([0]), "bytes", b"\0\xff\0\x01");
    is_written([0_u8, 1, 0xff], "bytes[3]", &[0, 1, 0xff]);
}

#[test]
fn options_reverses_and_tuples_are_written_as_ever() {
    is_written((), "()", &[]);
    is_written(None::<u8>, "option<u8>", &[0]);
    is_written(Some(7_u8), "option<u8>", &[1, 7]);
    is_written(Reverse(String::from("a")), "reverse<string>", &[0x9e, 0xff, 0xfe]);
    is_written((7_u8,), "(u8)", &[7]);
    is_written((String::from("a"), 7_u8), "(string,u8)", b"a\0\x01\x07");
    is_written((1_u8, (2_u8, 3_u8), Some(false)), "(u8,(u8,u8),option<bool>)", &[1, 2, 3, 1, 0]);
    is_written((1_u8, 2_u8, 3_u8, 4_u8, 5_u8, 6_u8), "(u8,u8,u8,u8,u8,u8)", &[1, 2, 3, 4, 5, 6]);
}

#[test]
fn addresses_are_written_as_ever() {
    let (v4, v6) = (Ipv4Addr::new(127, 0, 0, 1), Ipv6Addr::LOCALHOST);
    is_written(v4, "ipv4", &[127, 0, 0, 1]);
    is_written(v6, "ipv6", &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    is_written(IpAddr::from(v4), "ip", &[4, 127, 0, 0, 1]);
    is_written(IpAddr::from(v6), "ip", &[6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
}

/// A nanosecond before 1970.
const BEFORE: [u8; 12] = [0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3b, 0x9a, 0xc9, 0xff];
/// 2001-09-09T01:46:40.000000005Z.
const AFTER: [u8; 12] = [0x80, 0, 0, 0, 0x3b, 0x9a, 0xca, 0, 0, 0, 0, 5];

#[test]
fn times_of_std_and_ours_are_written_as_ever() {
    is_written(Timestamp::from_micros(-1), "timestamp", &[0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    is_written(Timestamp::from_micros(0x1234), "timestamp", &[0x80, 0, 0, 0, 0, 0, 0x12, 0x34]);
    is_written(Duration::new(1, 2), "duration", &[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2]);
    is_written(SystemTime::UNIX_EPOCH - Duration::from_nanos(1), "instant", &BEFORE);
    is_written(SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 5), "instant", &AFTER);
}

#[cfg(feature = "jiff")]
#[test]
fn times_of_jiff_are_written_as_ever() {
    let (before, after) =
        (jiff::Timestamp::new(0, -1).unwrap(), jiff::Timestamp::new(1_000_000_000, 5).unwrap());
    is_written(before, "instant", &BEFORE);
    is_written(after, "instant", &AFTER);
    apart(&before, &after);
}

#[cfg(feature = "chrono")]
#[test]
fn times_of_chrono_are_written_as_ever() {
    use chrono::{DateTime, NaiveDate};

    let (before, after) =
        (DateTime::from_timestamp_nanos(-1), DateTime::from_timestamp(1_000_000_000, 5).unwrap());
    is_written(before, "instant", &BEFORE);
    is_written(after, "instant", &AFTER);
    is_written(before.naive_utc(), "datetime", &BEFORE);
    is_written(after.naive_utc(), "datetime", &AFTER);
    apart(&before, &after);
    apart(&before.naive_utc(), &after.naive_utc());

    let leap = NaiveDate::from_ymd_opt(2016, 12, 31).unwrap().and_hms_nano_opt(23, 59, 59, 1_500_000_000);
    is_written(leap.unwrap(), "datetime", &[0x80, 0, 0, 0, 0x58, 0x68, 0x46, 0x7f, 0x59, 0x68, 0x2f, 0]);

    let (before, after) = (NaiveDate::from_ymd_opt(1969, 12, 31), NaiveDate::from_ymd_opt(1970, 1, 3));
    is_written(before.unwrap(), "date", &[0x7f, 0xff, 0xff, 0xff]);
    is_written(after.unwrap(), "date", &[0x80, 0, 0, 2]);
    assert_eq!(before.unwrap().distance(&after.unwrap()), 3);
}

#[cfg(feature = "time")]
#[test]
fn times_of_time_are_written_as_ever() {
    use ::time::{OffsetDateTime, UtcDateTime, UtcOffset};

    let before = OffsetDateTime::from_unix_timestamp_nanos(-1).unwrap();
    let after = OffsetDateTime::from_unix_timestamp_nanos(1_000_000_000_000_000_005).unwrap();
    let elsewhere = after.to_offset(UtcOffset::from_hms(-4, 0, 0).unwrap());
    is_written(before, "instant", &BEFORE);
    is_written(after, "instant", &AFTER);
    is_written(elsewhere, "instant", &AFTER);
    is_written(UtcDateTime::from(elsewhere), "instant", &AFTER);
    apart(&before, &elsewhere);
    apart(&UtcDateTime::from(before), &UtcDateTime::from(after));
}

#[cfg(feature = "time")]
#[test]
fn a_time_past_the_last_year_in_utc_is_refused() {
    use ::time::{OffsetDateTime, PrimitiveDateTime, UtcOffset};

    let west = UtcOffset::from_hms(-1, 0, 0).unwrap();
    let last: OffsetDateTime = PrimitiveDateTime::MAX.assume_offset(west);
    let error = super::AsKey::encode(&last, &mut Vec::new());
    assert_eq!(error, Err(super::KeyError::OutOfRange));
}

/// For `BEFORE` and `AFTER`.
#[cfg(any(feature = "chrono", feature = "jiff", feature = "time"))]
fn apart<K: Distance<Distance = Duration>>(before: &K, after: &K) {
    let distance = Duration::new(1_000_000_000, 6);
    assert_eq!(before.distance(after), distance);
    assert_eq!(after.distance(before), distance);
}

#[test]
fn times_of_std_and_ours_lie_apart_by_a_duration() {
    let (before, after) = (SystemTime::UNIX_EPOCH - Duration::from_nanos(1), SystemTime::UNIX_EPOCH);
    assert_eq!(before.distance(&after), Duration::from_nanos(1));
    assert_eq!(after.distance(&before), Duration::from_nanos(1));
    assert_eq!(Timestamp::from_micros(-1).distance(&Timestamp::from_micros(1)), Duration::from_micros(2));
    assert_eq!(Duration::ZERO.distance(&Duration::MAX), Duration::MAX);
}

#[test]
fn one_format_of_instants_is_read_as_another_of_them() {
    let far =
        encode::<SystemTime, _>(&SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(1 << 50)).unwrap());
    #[cfg(feature = "jiff")]
    {
        assert_eq!(
            decode::<jiff::Timestamp>(&AFTER).unwrap(),
            jiff::Timestamp::new(1_000_000_000, 5).unwrap()
        );
        assert!(decode::<jiff::Timestamp>(&far).is_err());
    }
    assert_eq!(encode::<SystemTime, _>(&decode::<SystemTime>(&far).unwrap()), far);
}
