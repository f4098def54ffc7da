use std::error::Error;

use serde::{Deserialize, Serialize};

use super::super::*;
use crate::{Cache, Position};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Before {
    a: u32,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct WithMore {
    b: Option<String>,
    a: u32,
    #[serde(default)]
    c: Vec<u8>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct WithText {
    a: String,
}

#[test]
fn a_field_added_with_a_default_reads_and_one_of_another_type_is_an_error() {
    for format in [ValueFormat::MessagePack, ValueFormat::Json] {
        let store = Store::in_memory().unwrap();
        let before: Cache<(String, i64), Before> = store.cache_as("state", format).unwrap();
        before.insert(&("JFK", -1), Before { a: 7 }).unwrap();

        let more: Cache<(String, i64), WithMore> = store.cache_as("state", format).unwrap();
        let expected = WithMore { a: 7, b: None, c: Vec::new() };
        assert_eq!(more.get(&("JFK", -1)).unwrap(), Some(expected));

        let text: Cache<(String, i64), WithText> = store.cache_as("state", format).unwrap();
        let errors = [
            text.get(&("JFK", -1)).unwrap_err(),
            text.as_of(&("JFK", 0)).unwrap_err(),
            text.iter().next().unwrap().unwrap_err(),
            text.values().next_back().unwrap().unwrap_err(),
        ];
        for error in errors {
            let shown = error.to_string();
            for part in [
                "`state`",
                "memory:",
                r#""JFK\x00\x01\x7f"#,
                "WithText",
                "(alloc::string::String, i64)",
                format.name(),
            ] {
                assert!(shown.contains(part), "{shown} names no {part}");
            }
            assert!(error.source().unwrap().to_string().contains("string"), "{error:?}");
            assert!(matches!(error, StoreError::Decode { .. }));
        }
        assert_eq!(text.keys().count(), 1);
        assert!(text.contains_key(&("JFK", -1)).unwrap());
    }
}

#[test]
fn an_iterator_goes_on_after_a_row_that_is_not_of_its_type() {
    let store = Store::in_memory().unwrap();
    let texts = store.cache::<u8, String>("mixed").unwrap();
    let numbers = store.cache::<u8, u32>("mixed").unwrap();
    numbers.insert(&1, 1).unwrap();
    texts.insert(&2, "two".to_owned()).unwrap();
    numbers.insert(&3, 3).unwrap();
    let read: Vec<Option<u32>> = numbers.iter().map(|row| row.ok().map(|(_, value)| value)).collect();
    assert_eq!(read, [Some(1), None, Some(3)]);
}

#[test]
fn a_cache_is_opened_with_the_formats_it_was_made_with() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    for _ in 0..2 {
        let store = Store::open(&path).unwrap();
        store.cache::<i64, u32>("numbers").unwrap().insert(&1, 1).unwrap();
        store.cache_as::<String, u32>("texts", ValueFormat::Json).unwrap().insert("a", 1).unwrap();

        let error = store.cache::<String, u32>("numbers").unwrap_err();
        let StoreError::KeyFormat { path: named, cache, stored, asked } = &error else { panic!("{error:?}") };
        assert_eq!((&**named, &**cache, stored.as_str(), &**asked), (&*path, "numbers", "i64", "string"));

        let error = store.cache::<String, u32>("texts").unwrap_err();
        let StoreError::ValueFormat { path: named, cache, stored, asked } = &error else {
            panic!("{error:?}")
        };
        assert_eq!((&**named, &**cache, stored.as_str()), (&*path, "texts", "json"));
        assert_eq!(*asked, ValueFormat::MessagePack);

        assert!(matches!(store.cache::<i64, u32>(""), Err(StoreError::NoName { .. })));
        assert!(store.cache::<i64, u32>("a name: \0 with all of ☂").is_ok());
    }
}

#[test]
fn the_rows_of_a_store_are_these_bytes() {
    let store = Store::in_memory().unwrap();
    let numbers = store.cache::<(String, i8), Before>("numbers").unwrap();
    let texts: Cache<u16, String> = store.cache_as("texts", ValueFormat::Json).unwrap();
    texts.insert(&258, "a".to_owned()).unwrap();
    let turn = store.begin_epochs(vec!["s".into()]).unwrap();
    numbers.insert(&("b", -1), Before { a: 7 }).unwrap();
    let at = Position::new(3, 4).with_check(5);
    assert!(store.publish(Some(turn), &[], Rows::default(), Some(((0, 3), at))).unwrap());
    store.write_frozen(&store.freeze().unwrap(), false).unwrap();
    store.set_owner("sky").unwrap();
    let id = u128::from_str_radix(&store.id().to_string(), 16).unwrap();
    let row = |id: u8, keys: &str, values: &str| {
        let text = |text: &str| [&[0xa0 | u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
        let fields =
            [text("id"), vec![id], text("layout"), vec![1], text("keys"), text(keys), text("values")];
        [vec![0x84], fields.concat(), text(values)].concat()
    };
    let expected: [(&[u8], Vec<u8>); 9] = [
        (b"\0\0\0\0\0", b"slipstream\0\0\0\x01".to_vec()),
        (b"\0\0\0\0\x01numbers", row(1, "(string,i8)", "messagepack")),
        (b"\0\0\0\0\x01texts", row(2, "u16", "json")),
        (b"\0\0\0\0\x02s\0\x01\x80\0\0\x03", [5_u64.to_be_bytes(), 5_u64.to_be_bytes()].concat()),
        (b"\0\0\0\0\x04\0", id.to_be_bytes().to_vec()),
        (b"\0\0\0\0\x04\x01", 1_u64.to_be_bytes().to_vec()),
        (b"\0\0\0\0\x04\x02", b"sky".to_vec()),
        (b"\0\0\0\x01b\0\x01\x7f", vec![0x81, 0xa1, b'a', 7]),
        (b"\0\0\0\x02\x01\x02", b"\"a\"".to_vec()),
    ];
    let mut rows = store.db().raw_iterator();
    rows.seek_to_first();
    for (key, value) in &expected {
        assert_eq!(rows.item(), Some((*key, &**value)), "{}", key.escape_ascii());
        rows.next();
    }
    assert!(!rows.valid());
}

#[test]
fn bytes_that_are_no_key_of_the_cache_are_an_error() {
    let cache = Cache::<u16, u8>::in_memory().unwrap();
    cache.insert(&1, 1).unwrap();
    for key in [b"\0\0\0\x01\0", b"\0\0\0\x01\0\x02\x03".as_slice()] {
        let db = cache.store().db();
        db.put(key, b"\x01").unwrap();
        let errors: Vec<_> = cache.keys().filter_map(Result::err).collect();
        assert!(matches!(errors[..], [StoreError::Key { .. }]), "{errors:?}");
        assert!(errors[0].source().unwrap().to_string().contains("`u16`"), "{errors:?}");
        db.delete(key).unwrap();
    }
}

#[test]
fn threads_that_open_one_new_cache_get_one() {
    let store = Store::in_memory().unwrap();
    let barrier = std::sync::Barrier::new(8);
    std::thread::scope(|scope| {
        for n in 0..8_u32 {
            let (store, barrier) = (&store, &barrier);
            scope.spawn(move || {
                barrier.wait();
                store.cache::<u32, u32>("one").unwrap().insert(&n, n).unwrap();
                store.cache::<u32, u32>(&format!("of {n}")).unwrap().insert(&n, n).unwrap();
            });
        }
    });
    assert_eq!(store.cache::<u32, u32>("one").unwrap().iter().count(), 8);
    for n in 0..8 {
        let own = store.cache::<u32, u32>(&format!("of {n}")).unwrap();
        assert_eq!(own.iter().map(Result::unwrap).collect::<Vec<_>>(), [(n, n)]);
    }
}

#[test]
fn a_value_that_its_format_cannot_write_is_an_error_and_writes_nothing() {
    use std::collections::BTreeMap;
    let store = Store::in_memory().unwrap();
    let cache: Cache<u8, BTreeMap<Option<u8>, u8>> = store.cache_as("maps", ValueFormat::Json).unwrap();
    let error = cache.insert(&1, BTreeMap::from([(None, 1)])).unwrap_err();
    assert!(matches!(error, StoreError::Encode { format: ValueFormat::Json, .. }), "{error:?}");
    assert!(cache.is_empty().unwrap());
}
