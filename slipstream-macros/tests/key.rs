//! What `derive(Key)` writes does what the field's key and the tuple's do.
use std::cmp::Reverse;

use slipstream_core::__private::key::{AsKey, Distance, Key, KeyError, PrefixOf};
use slipstream_macros::Key;

#[derive(Key, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[key(crate = slipstream_core)]
struct Origin(String);

#[derive(Key, Debug, PartialEq)]
#[key(crate = slipstream_core)]
struct Airport {
    code: Origin,
}

#[derive(Key, Clone, Copy, Debug, PartialEq)]
#[key(crate = slipstream_core)]
struct Celsius(f64);

#[derive(Key, Debug, PartialEq)]
#[key(crate = slipstream_core)]
struct Digest([u8; 4]);

#[derive(Key, Debug, PartialEq)]
#[key(crate = slipstream_core)]
struct Departure {
    origin: Origin,
    r#type: u8,
    time: i64,
}

#[derive(Key, Debug, PartialEq)]
#[key(crate = slipstream_core)]
struct Nested((u8, u8), Reverse<Departure>);

#[derive(Key, Debug, PartialEq)]
#[key(crate = slipstream_core)]
struct Six(bool, bool, bool, bool, bool, Option<Celsius>);

fn encode<K: Key, Q: AsKey<K> + ?Sized>(form: &Q) -> (usize, Vec<u8>) {
    let mut bytes = Vec::new();
    (form.encode(&mut bytes).expect("a key without NaN"), bytes)
}

fn prefix<K: Key, P: PrefixOf<K> + ?Sized>(prefix: &P) -> Vec<u8> {
    let mut bytes = Vec::new();
    prefix.encode_prefix(&mut bytes).expect("a prefix without NaN");
    bytes
}

#[track_caller]
fn is_as<K: Key + PartialEq + std::fmt::Debug, T: Key>(key: &K, as_it: &T) {
    let (group, bytes) = encode::<K, K>(key);
    assert_eq!((group, bytes.clone()), encode::<T, T>(as_it));
    assert_eq!(K::decode(&mut bytes.as_slice()).as_ref(), Ok(key));
    assert_eq!(K::format(), T::format());
}

fn jfk() -> Origin {
    Origin("JFK".to_owned())
}

#[test]
fn a_struct_of_one_field_is_written_as_the_field() {
    is_as(&jfk(), &"JFK".to_owned());
    is_as(&Airport { code: jfk() }, &"JFK".to_owned());
    is_as(&Celsius(-1.5), &-1.5);
    is_as(&Digest([0, 1, 2, 3]), &[0, 1, 2, 3]);
}

#[test]
fn a_struct_of_several_fields_is_written_as_the_tuple() {
    is_as(&Departure { origin: jfk(), r#type: 7, time: -1 }, &("JFK".to_owned(), 7_u8, -1_i64));
    is_as(
        &Nested((1, 2), Reverse(Departure { origin: jfk(), r#type: 7, time: -1 })),
        &((1_u8, 2_u8), Reverse(("JFK".to_owned(), 7_u8, -1_i64))),
    );
    is_as(&Six(true, false, true, false, true, None), &(true, false, true, false, true, None::<f64>));
}

#[test]
fn a_struct_is_looked_up_by_borrowed_forms() {
    assert_eq!(encode::<Origin, _>("JFK"), encode::<Origin, _>(&jfk()));
    assert_eq!(encode::<Airport, _>("JFK"), encode::<Origin, _>(&jfk()));
    assert_eq!(encode::<(Origin, i64), _>(&("JFK", 5)), encode::<(Origin, i64), _>(&(jfk(), 5)));

    let departure = Departure { origin: jfk(), r#type: 7, time: 5 };
    assert_eq!(encode::<Departure, _>(&("JFK", 7, 5)), encode::<Departure, _>(&departure));
    assert_eq!(encode::<Departure, _>(&(&departure.origin, 7, 5)), encode::<Departure, _>(&departure));
}

#[test]
fn a_struct_is_narrowed_as_its_field_or_its_tuple_is() {
    assert_eq!(prefix::<Origin, _>("J"), b"J");
    assert_eq!(prefix::<Airport, _>("J"), b"J");
    assert_eq!(prefix::<Departure, _>("JFK"), b"JFK\0\x01");
    assert_eq!(prefix::<Departure, _>(&jfk()), b"JFK\0\x01");
    assert_eq!(prefix::<Departure, _>(&("JFK",)), b"JFK\0\x01");
    assert_eq!(prefix::<Departure, _>(&("JFK", 7)), b"JFK\0\x01\x07");
    assert_eq!(prefix::<Nested, _>(&((1, 2),)), [1, 2]);
    assert_eq!(prefix::<(Origin, i64), _>(&jfk()), b"JFK\0\x01");
    assert_eq!(prefix::<(Departure, i64), _>(&(("JFK", 7, 5),)), encode::<Departure, _>(&("JFK", 7, 5)).1);
}

#[test]
fn a_struct_has_the_distance_of_its_last_field() {
    assert_eq!(Celsius(-1.5).distance(&Celsius(1.0)), 2.5);
    let departure = |time| Departure { origin: jfk(), r#type: 7, time };
    assert_eq!(departure(-1).distance(&departure(4)), 5);
}

#[test]
fn a_struct_fails_as_its_field_does() {
    assert_eq!(Celsius(f64::NAN).encode(&mut Vec::new()), Err(KeyError::NotANumber));
    assert!(matches!(Departure::decode(&mut &b"JFK"[..]), Err(KeyError::Malformed { .. })));
}

macro_rules! row {
    ($name:ident, $first:ty) => {
        #[derive(Key, Debug, PartialEq)]
        #[key(crate = slipstream_core)]
        struct $name(pub $first, bool, u8);
    };
}

#[test]
fn a_struct_that_a_macro_writes_within_a_function_is_a_key() {
    row!(Pair, (u8, u8));
    row!(Text, String);
    is_as(&Pair((1, 2), true, 3), &((1_u8, 2_u8), true, 3_u8));
    is_as(&Text("a".to_owned(), true, 3), &("a".to_owned(), true, 3_u8));
    assert_eq!(prefix::<Pair, _>(&((1, 2), true)), [1, 2, 1]);
    assert_eq!(prefix::<Text, _>("a"), b"a\0\x01");
}
