//! The laws of keys, on random values of every type: the order of bytes is `Ord`, the way back, no
//! encoding a prefix of another, and no bytes that make a decoder panic.
use std::cmp::{Ordering, Reverse};
use std::fmt::Debug;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::time::Instant;
use super::super::{Key, KeyError};
use super::{decode, encode, group, under};
use crate::timestamp::Timestamp;

fn uphold<K: Key + Debug>(a: &K, b: &K, order: Ordering) {
    let (bytes, other) = (encode::<K, K>(a), encode::<K, K>(b));
    assert_eq!(bytes.cmp(&other), order);
    if bytes != other {
        assert!(!bytes.starts_with(&other) && !other.starts_with(&bytes), "{bytes:?} and {other:?}");
    }
    assert_eq!(encode::<K, K>(&decode(&bytes).unwrap()), bytes);

    // Within a tuple, its end is found whatever follows.
    let followed = [bytes.as_slice(), &other].concat();
    let mut rest = followed.as_slice();
    K::decode(&mut rest).unwrap();
    assert_eq!(rest, other);
}

/// What a decoder takes is exactly what the encoder writes.
fn endure<K: Key>(bytes: &[u8]) {
    let mut rest = bytes;
    match K::decode(&mut rest) {
        Ok(key) => assert_eq!(encode::<K, K>(&key), bytes[..bytes.len() - rest.len()]),
        Err(error) => assert!(matches!(error, KeyError::Malformed { .. })),
    }
}

/// Bytes as the encodings have them.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![Just(0), Just(1), Just(0xff), Just(b'a'), any::<u8>()], 0..24)
}

fn binary() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![Just(0), Just(1), Just(0xff), any::<u8>()], 0..5)
}

fn text() -> impl Strategy<Value = String> {
    let letter = prop_oneof![Just('\0'), Just('\u{1}'), Just('a'), Just('\u{ff}'), any::<char>()];
    vec(letter, 0..5).prop_map(String::from_iter)
}

fn parts() -> impl Strategy<Value = (i64, u32)> {
    let secs = prop_oneof![-3_i64..3, -90_000_000_000_i64..90_000_000_000, any::<i64>()];
    (secs, prop_oneof![0_u32..3, 0_u32..1_000_000_000])
}

fn instant<T: Instant + Debug>() -> impl Strategy<Value = T> {
    parts().prop_filter_map("past the end of the type", |(secs, nanos)| T::from_parts(secs, nanos))
}

fn timestamp() -> impl Strategy<Value = Timestamp> {
    prop_oneof![-3_i64..3, any::<i64>()].prop_map(Timestamp::from_micros)
}

macro_rules! laws {
    ($($name:ident: $key:ty = $strategy:expr;)*) => {
        proptest! {$(
            #[test]
            fn $name(a in $strategy, b in $strategy) {
                uphold::<$key>(&a, &b, a.cmp(&b));
            }
        )*}

        $(mod $name {
            use super::*;
            proptest! {
                #[test]
                fn endures_any_bytes(bytes in bytes()) {
                    endure::<$key>(&bytes);
                }
                #[test]
                fn endures_bytes_that_are_nearly_right(a in $strategy, at: usize, byte: u8, cut: bool) {
                    let mut bytes = encode::<$key, $key>(&a);
                    if !bytes.is_empty() {
                        let at = at % bytes.len();
                        if cut { bytes.truncate(at) } else { bytes[at] = byte }
                    }
                    endure::<$key>(&bytes);
                }
            }
        })*
    };
}

laws! {
    u8_is_ordered: u8 = any::<u8>();
    u16_is_ordered: u16 = any::<u16>();
    u32_is_ordered: u32 = any::<u32>();
    u64_is_ordered: u64 = any::<u64>();
    u128_is_ordered: u128 = any::<u128>();
    usize_is_ordered: usize = any::<usize>();
    i8_is_ordered: i8 = any::<i8>();
    i16_is_ordered: i16 = any::<i16>();
    i32_is_ordered: i32 = any::<i32>();
    i64_is_ordered: i64 = any::<i64>();
    i128_is_ordered: i128 = any::<i128>();
    isize_is_ordered: isize = any::<isize>();
    bool_is_ordered: bool = any::<bool>();
    char_is_ordered: char = any::<char>();
    string_is_ordered: String = text();
    boxed_str_is_ordered: Box<str> = text().prop_map(Box::from);
    shared_str_is_ordered: Arc<str> = text().prop_map(Arc::from);
    bytes_are_ordered: Vec<u8> = binary();
    boxed_bytes_are_ordered: Box<[u8]> = binary().prop_map(Box::from);
    shared_bytes_are_ordered: Arc<[u8]> = binary().prop_map(Arc::from);
    array_is_ordered: [u8; 3] = any::<[u8; 3]>();
    empty_array_is_ordered: [u8; 0] = Just([]);
    unit_is_ordered: () = Just(());
    option_is_ordered: Option<i8> = any::<Option<i8>>();
    option_of_string_is_ordered: Option<String> = proptest::option::of(text());
    option_of_option_is_ordered: Option<Option<bool>> = any::<Option<Option<bool>>>();
    reverse_is_ordered: Reverse<i16> = any::<i16>().prop_map(Reverse);
    reverse_of_string_is_ordered: Reverse<String> = text().prop_map(Reverse);
    reverse_of_tuple_is_ordered: Reverse<(String, Reverse<i8>)> =
        (text(), any::<i8>().prop_map(Reverse)).prop_map(Reverse);
    ipv4_is_ordered: Ipv4Addr = any::<Ipv4Addr>();
    ipv6_is_ordered: Ipv6Addr = any::<Ipv6Addr>();
    ip_is_ordered: IpAddr = any::<IpAddr>();
    timestamp_is_ordered: Timestamp = timestamp();
    duration_is_ordered: Duration = any::<Duration>();
    system_time_is_ordered: SystemTime = instant::<SystemTime>();
    one_is_ordered: (i8,) = (any::<i8>(),);
    two_are_ordered: (String, i64) = (text(), any::<i64>());
    two_strings_are_ordered: (String, String) = (text(), text());
    three_are_ordered: (Vec<u8>, String, Timestamp) = (binary(), text(), timestamp());
    four_are_ordered: (bool, String, bool, Vec<u8>) = (any::<bool>(), text(), any::<bool>(), binary());
    five_are_ordered: (bool, bool, String, bool, i8) =
        (any::<bool>(), any::<bool>(), text(), any::<bool>(), any::<i8>());
    six_are_ordered: (bool, (), String, Option<bool>, bool, i8) =
        (any::<bool>(), Just(()), text(), any::<Option<bool>>(), any::<bool>(), any::<i8>());
    nested_are_ordered: ((String, bool), (Vec<u8>, (String,)), Option<(String, i8)>) =
        ((text(), any::<bool>()), (binary(), (text(),)), proptest::option::of((text(), any::<i8>())));
}

#[cfg(feature = "jiff")]
laws! {
    jiff_timestamp_is_ordered: jiff::Timestamp = instant::<jiff::Timestamp>();
}

// With chrono's leap seconds, which it lets a time have at any second.
#[cfg(feature = "chrono")]
laws! {
    chrono_date_time_is_ordered: chrono::DateTime<chrono::Utc> = leaping();
    chrono_naive_date_time_is_ordered: chrono::NaiveDateTime = leaping();
    chrono_naive_date_is_ordered: chrono::NaiveDate =
        leaping::<chrono::NaiveDateTime>().prop_map(|time| time.date());
}

#[cfg(feature = "chrono")]
fn leaping<T: Instant + Debug>() -> impl Strategy<Value = T> {
    (parts(), any::<bool>()).prop_filter_map("past the end of the type", |((secs, nanos), leap)| {
        T::from_parts(secs, if leap { nanos + 1_000_000_000 } else { nanos })
    })
}

#[cfg(feature = "time")]
laws! {
    time_offset_date_time_is_ordered: ::time::OffsetDateTime = anywhere();
    time_utc_date_time_is_ordered: ::time::UtcDateTime = instant::<::time::UtcDateTime>();
}

#[cfg(feature = "time")]
fn anywhere() -> impl Strategy<Value = ::time::OffsetDateTime> {
    (instant::<::time::OffsetDateTime>(), -25..=25_i8)
        .prop_filter_map("past the end of the type", |(time, hours)| {
            time.checked_to_offset(::time::UtcOffset::from_hms(hours, 0, 0).ok()?)
        })
}

fn number() -> impl Strategy<Value = f64> {
    let special = [f64::NEG_INFINITY, f64::MIN, -1.5, -f64::MIN_POSITIVE, -0.0, 0.0, 5e-324, f64::INFINITY];
    prop_oneof![proptest::sample::select(special.to_vec()), any::<u64>().prop_map(f64::from_bits)]
        .prop_filter("a number", |value| !value.is_nan())
}

fn numeric_order(a: f64, b: f64) -> Ordering {
    (a + 0.0).total_cmp(&(b + 0.0))
}

proptest! {
    #[test]
    fn f64_is_ordered_as_the_numbers_are(a in number(), b in number()) {
        uphold(&a, &b, numeric_order(a, b));
        uphold(&Reverse(a), &Reverse(b), numeric_order(b, a));
        uphold(&("a".to_owned(), a), &("a".to_owned(), b), numeric_order(a, b));
        uphold(&(a, 1_u8), &(b, 0_u8), numeric_order(a, b).then(Ordering::Greater));
        uphold(&Some(a), &Some(b), numeric_order(a, b));
        prop_assert_eq!(decode::<f64>(&encode::<f64, _>(&a)), Ok(a));
    }

    #[test]
    fn f32_is_ordered_as_the_numbers_are(a: u32, b: u32) {
        let (a, b) = (f32::from_bits(a), f32::from_bits(b));
        if !a.is_nan() && !b.is_nan() {
            uphold(&a, &b, (a + 0.0).total_cmp(&(b + 0.0)));
            prop_assert_eq!(decode::<f32>(&encode::<f32, _>(&a)), Ok(a));
        }
    }

    #[test]
    fn floats_endure_any_bytes(bytes in bytes()) {
        endure::<f64>(&bytes);
        endure::<f32>(&bytes);
        endure::<(String, f64, Option<f32>)>(&bytes);
    }

    #[test]
    fn a_key_is_decoded_as_what_it_was(a in (text(), timestamp(), proptest::option::of(binary()))) {
        type Row = (String, Timestamp, Option<Vec<u8>>);
        prop_assert_eq!(decode::<Row>(&encode::<Row, _>(&a)), Ok(a));
    }

    #[test]
    fn a_borrowed_form_is_encoded_as_the_key(a in text(), b in binary(), c: i64) {
        let owned = encode::<(String, Vec<u8>, i64), _>(&(a.clone(), b.clone(), c));
        prop_assert_eq!(encode::<(String, Vec<u8>, i64), _>(&(a.as_str(), b.as_slice(), &c)), owned);
    }

    #[test]
    fn the_group_is_the_encoding_of_all_but_the_last(a in text(), b in binary(), c: i64) {
        let length = group::<(String, Vec<u8>, i64), _>(&(&a, &b, c));
        prop_assert_eq!(length, encode::<(String, Vec<u8>), _>(&(a, b)).len());
    }

    #[test]
    fn strings_under_a_prefix_are_those_that_begin_with_it(beginning in text(), key in text()) {
        let longer = format!("{beginning}{key}");
        prop_assert_eq!(under::<String, _>(&beginning, &key), key.starts_with(&beginning));
        prop_assert!(under::<String, _>(&beginning, &longer));
    }

    #[test]
    fn bytes_under_a_prefix_are_those_that_begin_with_it(beginning in binary(), key in binary()) {
        let longer = [beginning.as_slice(), &key].concat();
        prop_assert_eq!(under::<Vec<u8>, _>(&beginning, &key), key.starts_with(&beginning));
        prop_assert!(under::<Vec<u8>, _>(&beginning, &longer));
    }

    #[test]
    fn tuples_under_a_prefix_are_those_that_share_its_elements(
        key in (text(), any::<bool>(), text()), a in text(), b: bool,
    ) {
        prop_assert_eq!(under::<(String, bool, String), _>(&a, &key), key.0 == a);
        prop_assert_eq!(under::<(String, bool, String), _>(&(&a, b), &key), key.0 == a && key.1 == b);
        prop_assert!(under::<(String, bool, String), _>(&(&key.0, key.1), &key));
    }
}
