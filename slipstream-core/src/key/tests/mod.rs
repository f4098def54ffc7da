//! What holds for every type of key: the order, the way back, and the bytes themselves.
use super::{AsKey, Key, KeyError, PrefixOf};
use crate::timestamp::Timestamp;

mod laws;
mod vectors;

// As a cache calls them: the key's type is known, the form's is found.
pub(super) fn encode<K: Key, Q: AsKey<K> + ?Sized>(form: &Q) -> Vec<u8> {
    let mut bytes = Vec::new();
    form.encode(&mut bytes).unwrap();
    bytes
}

pub(super) fn group<K: Key, Q: AsKey<K> + ?Sized>(form: &Q) -> usize {
    form.encode(&mut Vec::new()).unwrap()
}

pub(super) fn prefix<K: Key, P: PrefixOf<K> + ?Sized>(prefix: &P) -> Vec<u8> {
    let mut bytes = Vec::new();
    prefix.encode_prefix(&mut bytes).unwrap();
    bytes
}

pub(super) fn under<K: Key, Q: AsKey<K> + ?Sized>(under: &(impl PrefixOf<K> + ?Sized), key: &Q) -> bool {
    encode::<K, Q>(key).starts_with(&prefix::<K, _>(under))
}

pub(super) fn decode<K: Key>(mut bytes: &[u8]) -> Result<K, KeyError> {
    let key = K::decode(&mut bytes)?;
    assert!(bytes.is_empty(), "not all bytes were taken: {bytes:?} are left");
    Ok(key)
}

#[test]
fn numbers_are_in_numeric_order_on_both_sides_of_zero() {
    let integers = [i64::MIN, -86_400, -1, 0, 1, i64::MAX];
    let encoded = integers.map(|key| encode::<i64, _>(&key));
    assert!(encoded.is_sorted_by(|a, b| a < b), "{encoded:?}");

    let floats = [f64::NEG_INFINITY, -86_400.0, -1.5, 0.0, 1.0, f64::INFINITY];
    let encoded = floats.map(|key| encode::<f64, _>(&key));
    assert!(encoded.is_sorted_by(|a, b| a < b), "{encoded:?}");
    assert_eq!(encode::<f64, _>(&-0.0), encode::<f64, _>(&0.0));
}

#[test]
fn a_float_that_is_no_number_is_refused_wherever_it_stands() {
    let mut bytes = Vec::new();
    assert_eq!(f64::NAN.encode(&mut bytes), Err(KeyError::NotANumber));
    assert_eq!(AsKey::<f32>::encode(&&-f32::NAN, &mut bytes), Err(KeyError::NotANumber));
    assert_eq!(AsKey::<(String, f64)>::encode(&("JFK", f64::NAN), &mut bytes), Err(KeyError::NotANumber));
    assert_eq!(AsKey::<Option<f64>>::encode(&Some(f64::NAN), &mut bytes), Err(KeyError::NotANumber));
}

#[test]
fn keys_under_a_prefix_are_one_run_of_the_sorted_keys() {
    let keys: [&[u8]; 9] =
        [b"boo/0", b"foo/0", b"foo/1", b"foo0", b"zoo/0", b"foo\xff", b"\xff\xff", b"", b"foo\0"];
    let mut sorted = keys.map(encode::<Vec<u8>, _>);
    sorted.sort();
    for text in [&b"foo/"[..], b"foo", b"", b"\xff", b"\xff\xff\xff", b"\0"] {
        let start = prefix::<Vec<u8>, _>(text);
        let mut expected = keys.iter().filter(|key| key.starts_with(text)).collect::<Vec<_>>();
        expected.sort();
        let from = sorted.partition_point(|key| *key < start);
        let run = sorted.iter().skip(from).take_while(|key| key.starts_with(&start));
        let found = run.map(|key| decode::<Vec<u8>>(key).unwrap()).collect::<Vec<_>>();
        assert_eq!(
            found.iter().map(Vec::as_slice).collect::<Vec<_>>(),
            expected.into_iter().copied().collect::<Vec<_>>()
        );
    }
}

#[test]
fn two_stations_at_one_second_are_two_keys_and_two_groups() {
    type Update = (String, i64);
    let (jfk, lga) = (encode::<Update, _>(&("JFK", 5)), encode::<Update, _>(&("LGA", 5)));
    assert_ne!(jfk, lga);
    let group = group::<Update, _>(&("JFK", 5));
    assert_ne!(jfk[..group], lga[..group]);
}

#[test]
fn a_form_is_found_from_the_type_of_the_key_alone() {
    // Literals have no type of their own: that these compile is the test.
    struct Cache<K>(std::marker::PhantomData<K>);
    impl<K: Key> Cache<K> {
        fn get<Q: AsKey<K> + ?Sized>(&self, form: &Q) -> Vec<u8> {
            encode::<K, Q>(form)
        }
        fn prefix<P: PrefixOf<K> + ?Sized>(&self, under: &P) -> Vec<u8> {
            prefix::<K, P>(under)
        }
    }
    fn cache<K>() -> Cache<K> {
        Cache(std::marker::PhantomData)
    }
    let name = String::from("foo");
    let time = Timestamp::UNIX_EPOCH;

    assert_eq!(cache::<i64>().get(&5), [0x80, 0, 0, 0, 0, 0, 0, 5]);
    assert_eq!(cache::<f64>().get(&5.0).len(), 8);
    assert_eq!(cache::<String>().get("foo"), cache::<String>().get(&name));
    assert_eq!(cache::<String>().get(&&name), cache::<String>().get(name.as_str()));
    assert_eq!(cache::<Vec<u8>>().get(b"foo"), cache::<Vec<u8>>().get(&b"foo"[..]));
    assert_eq!(
        cache::<(String, Timestamp)>().get(&("foo", time)),
        cache::<(String, Timestamp)>().get(&(name.clone(), time))
    );
    assert_eq!(cache::<(String, u8, i64)>().get(&(&name, 1, 5)).len(), 5 + 1 + 8);
    assert_eq!(cache::<Option<i64>>().get(&Some(5)).len(), 9);
    assert_eq!(cache::<(Option<String>, i64)>().get(&(Some("foo"), 5)).len(), 1 + 5 + 8);
    assert!(cache::<()>().get(&()).is_empty());
    assert_eq!(cache::<(u8, i64)>().prefix(&5), [5]);
    assert_eq!(cache::<(u8, i64)>().prefix(&(5,)), [5]);
    assert_eq!(cache::<(String, u8, i64)>().prefix(&("foo", 5)), cache::<(String, u8)>().get(&("foo", 5)));
    assert_eq!(cache::<(String, u8, i64)>().prefix("foo"), cache::<String>().get("foo"));
    assert_eq!(cache::<String>().prefix("foo"), b"foo");
    assert_eq!(cache::<Vec<u8>>().prefix(b"foo"), b"foo");
}
