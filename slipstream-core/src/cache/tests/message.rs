use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;

fn numbers(rows: impl IntoIterator<Item = i64>) -> Cache<i64, i64> {
    let cache = Cache::in_memory().unwrap();
    for n in rows {
        cache.insert(&n, n).unwrap();
    }
    cache
}

#[test]
fn a_message_sees_its_own_rows_and_others_see_them_when_it_is_published() {
    let cache = numbers([1, 3, 5]);
    let mut message = Message::new();
    message.handle(|| {
        cache.insert(&3, 30).unwrap();
        cache.insert(&4, 40).unwrap();
        cache.remove(&5).unwrap();
        cache.remove(&6).unwrap();
        assert_eq!(rows(|| cache.iter()), [(1, 1), (3, 30), (4, 40)]);
        assert_eq!((cache.get(&3).unwrap(), cache.get(&5).unwrap()), (Some(30), None));
        assert!(cache.contains_key(&4).unwrap() && !cache.contains_key(&5).unwrap());
        assert_eq!(cache.last_key_value().unwrap(), Some((4, 40)));
        assert_eq!(cache.after(&4).unwrap(), None);
        assert_eq!(cache.nearest(&6).unwrap(), Some((4, 40)));
        assert_eq!(cache.as_of(&3).unwrap(), Some((3, 30)));
        assert_eq!(cache.as_of(&2).unwrap(), Some((1, 1)));
    });
    assert_eq!(rows(|| cache.iter()), [(1, 1), (3, 3), (5, 5)]);
    let other = std::thread::scope(|scope| scope.spawn(|| cache.get(&3).unwrap()).join().unwrap());
    assert_eq!(other, Some(3));
    message.publish().unwrap();
    assert_eq!(rows(|| cache.iter()), [(1, 1), (3, 30), (4, 40)]);
    message.publish().unwrap();
    message.handle(|| assert_eq!(cache.iter().count(), 3));
}

#[test]
fn a_message_that_is_rolled_back_leaves_nothing() {
    let cache = numbers([1, 2]);
    let mut message = Message::new();
    message.handle(|| {
        cache.clear().unwrap();
        cache.insert(&7, 7).unwrap();
    });
    message.roll_back();
    message.handle(|| assert_eq!(rows(|| cache.iter()), [(1, 1), (2, 2)]));
    message.publish().unwrap();
    assert_eq!(rows(|| cache.iter()), [(1, 1), (2, 2)]);
}

#[test]
fn a_clearing_hides_all_that_was_before_and_nothing_after() {
    let cache = numbers([1, 2, 3]);
    let other = cache.store().cache::<i64, i64>("other").unwrap();
    other.insert(&1, 1).unwrap();
    let mut message = Message::new();
    message.handle(|| {
        cache.insert(&4, 4).unwrap();
        other.insert(&4, 4).unwrap();
        cache.clear().unwrap();
        assert!(cache.is_empty().unwrap());
        assert_eq!((cache.get(&1).unwrap(), cache.as_of(&9).unwrap()), (None, None));
        cache.insert(&2, 20).unwrap();
        cache.insert(&9, 90).unwrap();
        cache.remove(&9).unwrap();
        assert_eq!(rows(|| cache.iter()), [(2, 20)]);
        assert_eq!(rows(|| other.iter()), [(1, 1), (4, 4)]);
    });
    assert_eq!(cache.iter().count(), 3);
    message.publish().unwrap();
    assert_eq!(rows(|| cache.iter()), [(2, 20)]);
    assert_eq!(rows(|| other.iter()), [(1, 1), (4, 4)]);
}

#[test]
fn an_iterator_keeps_to_what_its_message_had_written_before() {
    let cache = numbers(0..10);
    let mut message = Message::new();
    let mut early = message.handle(|| {
        cache.insert(&3, 30).unwrap();
        cache.remove(&4).unwrap();
        let early = cache.iter();
        for row in &cache {
            let (key, _) = row.unwrap();
            cache.insert(&(key + 100), key).unwrap();
            cache.remove(&(key + 1)).unwrap();
        }
        assert_eq!(rows(|| cache.range(..5)), [(0, 0)]);
        early
    });
    // Also between the polls of its handler, and after the publication.
    assert_eq!(early.next().unwrap().unwrap(), (0, 0));
    assert_eq!(early.next_back().unwrap().unwrap(), (9, 9));
    message.publish().unwrap();
    cache.clear().unwrap();
    let rest: Vec<i64> = early.map(|row| row.unwrap().1).collect();
    assert_eq!(rest, [1, 2, 30, 5, 6, 7, 8]);
}

#[test]
fn a_message_that_writes_to_two_stores_is_refused_at_the_second() {
    let (first, second) = (numbers([]), numbers([1]));
    let mut message = Message::new();
    message.handle(|| {
        first.insert(&1, 1).unwrap();
        let name = |cache: &Cache<i64, i64>| cache.store().name();
        for refused in [second.insert(&2, 2), second.remove(&2), second.clear()] {
            let Err(StoreError::TwoStores { first: one, second: two }) = refused else {
                panic!("{refused:?}")
            };
            assert_eq!((one, two), (name(&first), name(&second)));
        }
        // Reading is allowed, and the rows of one are not those of the other.
        assert_eq!(rows(|| second.iter()), [(1, 1)]);
        assert_eq!(rows(|| first.iter()), [(1, 1)]);
    });
    message.publish().unwrap();
    // The next message may choose anew.
    message.handle(|| second.insert(&2, 2).unwrap());
    message.publish().unwrap();
    assert_eq!(rows(|| second.iter()), [(1, 1), (2, 2)]);
}

#[test]
fn others_see_a_message_whole_and_never_go_back() {
    const KEYS: i64 = 8;
    const MESSAGES: i64 = 1500;
    let cache = numbers((0..KEYS).map(|_| 0));
    let mut first = Message::new();
    let write = |message: &mut Message, n: i64| {
        message.handle(|| {
            if n % 50 == 0 {
                cache.clear().unwrap();
            }
            (0..KEYS).for_each(|key| cache.insert(&key, n).unwrap());
        });
        message.publish().unwrap();
    };
    write(&mut first, 0);
    let read = || {
        let mut last = 0;
        while last < MESSAGES {
            let seen: Vec<i64> = cache.values().collect::<Result<_, _>>().unwrap();
            assert_eq!(seen, [seen[0]; 8]);
            assert!(seen[0] >= last, "an iterator went back from {last} to {}", seen[0]);
            last = cache.get(&3).unwrap().unwrap();
            assert!(last >= seen[0], "a look-up went back from {} to {last}", seen[0]);
            let (_, found) = cache.as_of(&KEYS).unwrap().unwrap();
            assert!(found >= last, "an as-of look-up went back from {last} to {found}");
            last = found;
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(read);
        scope.spawn(read);
        let mut message = Message::new();
        (1..=MESSAGES).for_each(|n| write(&mut message, n));
    });
}

#[test]
fn a_handler_that_panics_leaves_the_thread_outside_of_its_message() {
    let cache = numbers([]);
    let mut message = Message::new();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        message.handle(|| {
            cache.insert(&1, 1).unwrap();
            panic!("in the handler");
        })
    }));
    assert!(panicked.is_err());
    cache.insert(&2, 2).unwrap();
    assert_eq!(rows(|| cache.iter()), [(2, 2)]);
    message.handle(|| assert_eq!(cache.iter().count(), 2));
    message.publish().unwrap();
    assert_eq!(cache.iter().count(), 2);
}

#[test]
fn what_a_value_does_while_it_is_written_belongs_to_the_message_too() {
    thread_local! {
        static LOG: std::cell::OnceCell<Cache<i64, i64>> = const { std::cell::OnceCell::new() };
    }
    struct Logs(i64);
    impl Serialize for Logs {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            LOG.with(|log| log.get().unwrap().insert(&self.0, self.0).unwrap());
            serializer.serialize_i64(self.0)
        }
    }
    impl<'de> serde::Deserialize<'de> for Logs {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let value = i64::deserialize(deserializer)?;
            LOG.with(|log| assert_eq!(log.get().unwrap().get(&value).unwrap(), Some(value)));
            Ok(Self(value))
        }
    }
    let log = numbers([]);
    let cache: Cache<i64, Logs> = log.store().cache("logs").unwrap();
    LOG.with(|cell| cell.set(log.clone()).unwrap());
    let mut message = Message::new();
    message.handle(|| {
        cache.insert(&1, Logs(5)).unwrap();
        assert_eq!(cache.get(&1).unwrap().unwrap().0, 5);
        assert_eq!(cache.as_of(&2).unwrap().unwrap().1.0, 5);
        assert_eq!(cache.iter().next().unwrap().unwrap().1.0, 5);
    });
    assert!(log.is_empty().unwrap());
    message.publish().unwrap();
    assert_eq!(log.get(&5).unwrap(), Some(5));
    LOG.with(|log| log.get().unwrap().remove(&5).unwrap());
    // Dropped while the database is still there.
    drop((cache, log));
}
