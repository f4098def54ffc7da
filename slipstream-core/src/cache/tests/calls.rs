use std::ops::Bound;

use futures::{StreamExt, TryStreamExt};

use super::*;
use crate::key::KeyError;
use crate::timestamp::Timestamp;

#[test]
fn integers_are_in_numeric_order_both_ways() {
    let cache = Cache::<i64, String>::in_memory().unwrap();
    let keys = [i64::MIN, -86400, -1, 0, 1, i64::MAX];
    for key in keys.iter().rev() {
        cache.insert(key, key.to_string()).unwrap();
    }
    let read: Vec<i64> = rows(|| cache.iter()).into_iter().map(|(key, _)| key).collect();
    assert_eq!(read, keys);
    assert_eq!(cache.first_key_value().unwrap().unwrap().0, i64::MIN);
    assert_eq!(cache.last_key_value().unwrap().unwrap().0, i64::MAX);
    assert_eq!(cache.after(&i64::MAX).unwrap(), None);
    assert_eq!(cache.as_of(&i64::MIN).unwrap().unwrap().0, i64::MIN);
}

#[test]
fn floats_are_in_numeric_order_and_one_that_is_not_a_number_is_refused() {
    let cache = Cache::<f64, u8>::in_memory().unwrap();
    for (n, key) in [f64::NEG_INFINITY, -86400.0, -1.5, -0.0, 0.0, 1.0, f64::INFINITY].iter().enumerate() {
        cache.insert(key, u8::try_from(n).unwrap()).unwrap();
    }
    let read = rows(|| cache.iter());
    let expected = [(f64::NEG_INFINITY, 0), (-86400.0, 1), (-1.5, 2), (0.0, 4), (1.0, 5), (f64::INFINITY, 6)];
    assert_eq!(read, expected);
    cache.remove(&-1.5).unwrap();
    assert_eq!(cache.as_of(&-1.5).unwrap(), Some((-86400.0, 1)));

    let refused = |result: Result<(), StoreError>| {
        assert!(matches!(result, Err(StoreError::Key { source: KeyError::NotANumber, .. })), "{result:?}");
    };
    refused(cache.insert(&f64::NAN, 0));
    refused(cache.remove(&f64::NAN));
    refused(cache.get(&f64::NAN).map(|_| ()));
    refused(cache.as_of(&f64::NAN).map(|_| ()));
    refused(cache.nearest(&f64::NAN).map(|_| ()));
    let mut range = cache.range(f64::NAN..);
    refused(range.next().unwrap().map(|_| ()));
    assert!(range.next().is_none());
}

#[test]
fn two_stations_with_an_update_at_one_second_are_kept_apart() {
    let cache = Cache::<(String, Timestamp), u8>::in_memory().unwrap();
    let time = |seconds| Timestamp::from_secs(seconds).unwrap();
    cache.insert(&("JFK", time(100)), 1).unwrap();
    cache.insert(&("SFO", time(100)), 2).unwrap();
    cache.insert(&("SFO", time(130)), 3).unwrap();
    assert_eq!(cache.iter().count(), 3);
    for (station, at, expected) in [("JFK", 100, Some(1)), ("SFO", 100, Some(2)), ("LHR", 100, None)] {
        let found = cache.as_of(&(station, time(at))).unwrap();
        assert_eq!(
            found.map(|(key, value)| (key.0, value)),
            expected.map(|value| (station.to_owned(), value))
        );
    }
    assert_eq!(cache.as_of(&("SFO", time(99))).unwrap(), None);
    assert_eq!(cache.after(&("JFK", time(100))).unwrap(), None);
    assert_eq!(cache.after(&("JFK", time(99))).unwrap().unwrap().1, 1);
    assert_eq!(cache.nearest(&("JFK", time(1000))).unwrap().unwrap().1, 1);
    assert_eq!(cache.nearest(&("LHR", time(100))).unwrap(), None);
    assert_eq!(cache.prefix("SFO").values().collect::<Result<Vec<_>, _>>().unwrap(), [2, 3]);
}

#[test]
fn an_update_at_the_very_time_matches_and_of_two_with_one_key_the_later() {
    let cache = Cache::<i64, String>::in_memory().unwrap();
    cache.insert(&10, "first".to_owned()).unwrap();
    cache.insert(&10, "second".to_owned()).unwrap();
    assert_eq!(cache.as_of(&10).unwrap(), Some((10, "second".to_owned())));
    assert_eq!(cache.as_of(&9).unwrap(), None);
    assert_eq!(cache.after(&10).unwrap(), None);
    assert_eq!(cache.iter().count(), 1);
}

#[test]
fn the_nearest_of_two_that_are_equally_near_is_the_earlier() {
    let cache = Cache::<i64, u8>::in_memory().unwrap();
    assert_eq!(cache.nearest(&0).unwrap(), None);
    cache.insert(&-10, 1).unwrap();
    cache.insert(&10, 2).unwrap();
    for (to, expected) in [(0, 1), (1, 2), (-1, 1), (10, 2), (-10, 1), (i64::MIN, 1), (i64::MAX, 2)] {
        assert_eq!(cache.nearest(&to).unwrap().unwrap().1, expected, "nearest to {to}");
    }
}

#[test]
fn a_prefix_answers_exactly_the_keys_that_begin_with_it() {
    let cache = Cache::<Vec<u8>, ()>::in_memory().unwrap();
    let keys: [&[u8]; 8] =
        [b"boo/0", b"foo\xff", b"foo/0", b"foo/1", b"foo0", b"zoo/0", b"\xff\xff", b"\xff\xff\xff\0"];
    for key in keys {
        cache.insert(key, ()).unwrap();
    }
    for prefix in [b"foo/".as_slice(), b"foo", b"", b"\xff\xff", b"\xff\xff\xff\xff", b"f", b"nope"] {
        let read: Vec<Vec<u8>> = rows(|| cache.prefix(prefix)).into_iter().map(|(key, ())| key).collect();
        let mut expected: Vec<Vec<u8>> =
            keys.iter().filter(|key| key.starts_with(prefix)).map(|key| key.to_vec()).collect();
        expected.sort();
        assert_eq!(read, expected, "prefix {}", prefix.escape_ascii());
    }
}

#[test]
fn a_range_takes_all_forms_of_bounds_and_none_of_them_panics() {
    let cache = Cache::<String, u32>::in_memory().unwrap();
    for (n, key) in ["a", "b", "b\0", "c"].into_iter().enumerate() {
        cache.insert(key, u32::try_from(n).unwrap()).unwrap();
    }
    let read = |range: Range<String, u32>| range.values().collect::<Result<Vec<_>, _>>().unwrap();
    assert_eq!(read(cache.range(..)), [0, 1, 2, 3]);
    assert_eq!(read(cache.range("b"..)), [1, 2, 3]);
    assert_eq!(read(cache.range("b".."c")), [1, 2]);
    assert_eq!(read(cache.range("b"..="c")), [1, 2, 3]);
    assert_eq!(read(cache.range(.."b")), [0]);
    assert_eq!(read(cache.range(..="b")), [0, 1]);
    assert_eq!(read(cache.range(&"a".to_owned()..&"b".to_owned())), [0]);
    assert_eq!(read(cache.range((Bound::Excluded("b"), Bound::Included("c")))), [2, 3]);
    assert!(read(cache.range((Bound::Excluded("b"), Bound::Excluded("b")))).is_empty());
    assert!(read(cache.range("c".."a")).is_empty());
    assert!(read(cache.range("c"..="a")).is_empty());
    assert!(read(cache.range("b".."b")).is_empty());
    assert!(cache.range("c".."a").next_back().is_none());
}

#[test]
fn both_ends_of_an_iterator_meet_and_it_stays_at_its_end() {
    let cache = Cache::<u32, u32>::in_memory().unwrap();
    for n in 0..5 {
        cache.insert(&n, n).unwrap();
    }
    let mut rows = cache.iter().keys();
    let mut read = Vec::new();
    while let Some(key) = if read.len() % 2 == 0 { rows.next() } else { rows.next_back() } {
        read.push(key.unwrap());
    }
    assert_eq!(read, [0, 4, 1, 3, 2]);
    cache.insert(&9, 9).unwrap();
    assert!(rows.next().is_none() && rows.next_back().is_none() && rows.next().is_none());
}

#[test]
fn an_iterator_sees_what_there_was_when_it_was_made() {
    let cache = Cache::<u32, u32>::in_memory().unwrap();
    for n in 0..100 {
        cache.insert(&n, 0).unwrap();
    }
    let mut before = cache.iter();
    for row in &cache {
        let (key, value) = row.unwrap();
        assert!(key < 100 && value == 0);
        cache.insert(&key, 1).unwrap();
        cache.insert(&(key + 100), 1).unwrap();
        cache.remove(&(99 - key)).unwrap();
        assert_eq!(before.next().unwrap().unwrap(), (key, 0));
    }
    assert!(before.next().is_none());
    cache.clear().unwrap();
    assert!(cache.is_empty().unwrap());
}

#[test]
fn caches_of_one_store_do_not_see_each_other() {
    let store = Store::in_memory().unwrap();
    let caches: Vec<Cache<i64, usize>> =
        (0..4).map(|n| store.cache(&format!("cache {n}")).unwrap()).collect();
    for (n, cache) in caches.iter().enumerate() {
        for key in [i64::MIN, 0, i64::MAX] {
            cache.insert(&key, n).unwrap();
        }
    }
    for (n, cache) in caches.iter().enumerate() {
        assert!(rows(|| cache.iter()).into_iter().all(|(_, value)| value == n));
        assert_eq!(cache.after(&i64::MAX).unwrap(), None);
        cache.remove(&i64::MIN).unwrap();
        assert_eq!(cache.as_of(&-1).unwrap(), None);
    }
    caches[1].clear().unwrap();
    assert_eq!(caches.iter().map(|cache| cache.iter().count()).collect::<Vec<_>>(), [2, 0, 2, 2]);
    let again = store.cache::<i64, usize>("cache 2").unwrap();
    assert_eq!(again.get(&0).unwrap(), Some(2));
    assert_eq!(format!("{again:?}"), format!("{:?}", caches[2]));
}

#[test]
fn a_cache_with_one_possible_key_holds_one_value() {
    let cache = Cache::<(), u32>::in_memory().unwrap();
    cache.insert(&(), 1).unwrap();
    cache.insert(&(), 2).unwrap();
    assert_eq!(cache.get(&()).unwrap(), Some(2));
    assert_eq!(rows(|| cache.iter()), [((), 2)]);
    assert_eq!(cache.as_of(&()).unwrap(), Some(((), 2)));
    assert_eq!(cache.after(&()).unwrap(), None);
}

#[tokio::test]
async fn a_stream_gives_the_rows_and_gives_way_meanwhile() {
    let cache = Cache::<u32, u32>::in_memory().unwrap();
    for n in 0..1000 {
        cache.insert(&n, n).unwrap();
    }
    let context = &mut std::task::Context::from_waker(std::task::Waker::noop());
    let mut stream = cache.range(10..).stream();
    let (mut ready, mut pending) = (0, 0);
    loop {
        match stream.poll_next_unpin(context) {
            std::task::Poll::Ready(Some(row)) => assert_eq!(row.unwrap().0, 10 + ready),
            std::task::Poll::Ready(None) => break,
            std::task::Poll::Pending => {
                pending += 1;
                continue;
            }
        }
        ready += 1;
    }
    assert_eq!((ready, pending), (990, 990 / 64));
    let all: Vec<_> = cache.iter().stream().try_collect().await.unwrap();
    assert_eq!(all.len(), 1000);
}

#[test]
fn a_cache_and_what_it_gives_can_go_to_other_threads() {
    use std::panic::{RefUnwindSafe, UnwindSafe};
    fn check<T: Send + Sync + Unpin + 'static>() {}
    fn check_unwinding<T: UnwindSafe + RefUnwindSafe>() {}
    check_unwinding::<Store>();
    check_unwinding::<Cache<i64, String>>();
    check::<Store>();
    check::<StoreError>();
    check::<Cache<i64, String>>();
    check::<Range<i64, String>>();
    check::<Keys<i64>>();
    check::<Values<i64, String>>();
    check::<RangeStream<i64, String>>();
    check::<KeyLock>();
}
