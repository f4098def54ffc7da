use std::sync::Barrier;

use super::*;

fn counts() -> Cache<i64, i64> {
    Cache::in_memory().unwrap()
}

fn increment(cache: &Cache<i64, i64>, key: i64) -> i64 {
    cache.update(&key, |count| count.unwrap_or(0) + 1).unwrap()
}

// S18: two messages that increment one key, with an await before the publication.
#[test]
fn of_two_messages_that_change_a_key_the_second_conflicts_and_runs_again() {
    let cache = counts();
    let commit = commit(cache.store());
    let (mut one, mut other) = (Message::new(), Message::new());
    assert_eq!(one.handle(|| increment(&cache, 1)), 1);
    one.handle(|| cache.insert(&2, 2).unwrap());
    assert_eq!(other.handle(|| increment(&cache, 1)), 1);
    assert_eq!(other.publish_to(&commit), Published::Whole);
    assert_eq!(one.publish_to(&commit), Published::Conflict);
    assert_eq!(rows(|| cache.iter()), [(1, 1)]);
    one.roll_back();
    assert_eq!(one.handle(|| (increment(&cache, 1), increment(&cache, 1))), (2, 3));
    assert_eq!(one.publish_to(&commit), Published::Whole);
    assert_eq!(rows(|| cache.iter()), [(1, 3)]);
    // Nothing of that is remembered by the next message.
    increment(&cache, 1);
    one.handle(|| cache.insert(&5, 5).unwrap());
    assert_eq!(one.publish_to(&commit), Published::Whole);
}

/// What may lie between the reading of a key, with or without a value in this layer, and the publication.
#[test]
fn a_commit_between_reading_and_publication_is_no_change() {
    for (value, frozen, written) in
        [(None, false, false), (Some(7), false, false), (Some(7), true, false), (Some(7), true, true)]
    {
        let cache = counts();
        let store = cache.store();
        let turn = store.begin_epochs(vec![]).unwrap();
        let mut message = Message::new();
        let write = |frozen: Frozen| {
            store.write_frozen(&frozen, false).unwrap();
            store.thaw(frozen);
        };
        if let Some(value) = value {
            cache.insert(&1, value).unwrap();
        }
        let closing = frozen.then(|| store.freeze().unwrap());
        if written {
            closing.into_iter().for_each(write);
            message.handle(|| increment(&cache, 1));
            cache.insert(&2, 2).unwrap();
            write(store.freeze().unwrap());
        } else {
            message.handle(|| increment(&cache, 1));
            closing.into_iter().for_each(write);
        }
        cache.insert(&3, 3).unwrap();
        write(store.freeze().unwrap());
        let staged = message.0.as_mut().unwrap().staged.as_mut().unwrap();
        let rows = staged.take();
        assert!(store.publish(Some(turn), staged.reads(), rows, None).unwrap());
        assert_eq!(cache.get(&1).unwrap(), Some(value.unwrap_or(0) + 1));
    }
}

#[test]
fn what_others_do_to_a_key_in_between_is_a_change_unless_it_is_the_same_again() {
    type Change = fn(&Cache<i64, i64>);
    let changes: [(Change, Published); 6] = [
        (|cache| cache.insert(&1, 8).unwrap(), Published::Conflict),
        (|cache| cache.remove(&1).unwrap(), Published::Conflict),
        (|cache| cache.clear().unwrap(), Published::Conflict),
        (|cache| cache.insert(&1, 7).unwrap(), Published::Whole),
        (|cache| cache.remove(&2).unwrap(), Published::Whole),
        (|cache| assert_eq!(cache.update(&1, |_| 9).unwrap(), 9), Published::Conflict),
    ];
    for (number, (change, expected)) in changes.into_iter().enumerate() {
        for is_stored in [false, true] {
            let cache = counts();
            if is_stored {
                cache.insert(&1, 7).unwrap();
            }
            let commit = commit(cache.store());
            if !is_stored {
                cache.insert(&1, 7).unwrap();
            }
            let mut message = Message::new();
            message.handle(|| increment(&cache, 1));
            change(&cache);
            assert_eq!(message.publish_to(&commit), expected, "change {number}");
        }
    }
    // A clearing changes nothing where there was no key.
    let cache = counts();
    let commit = commit(cache.store());
    let mut message = Message::new();
    message.handle(|| increment(&cache, 1));
    cache.clear().unwrap();
    assert_eq!(message.publish_to(&commit), Published::Whole);
}

#[test]
fn a_key_that_a_message_has_written_itself_is_not_compared() {
    let cache = counts();
    let commit = commit(cache.store());
    let mut message = Message::new();
    message.handle(|| {
        cache.insert(&1, 10).unwrap();
        cache.remove(&2).unwrap();
        assert_eq!((increment(&cache, 1), increment(&cache, 2)), (11, 1));
    });
    (1..=2).for_each(|key| cache.insert(&key, 99).unwrap());
    assert_eq!(message.publish_to(&commit), Published::Whole);
    message.handle(|| {
        cache.clear().unwrap();
        assert_eq!(increment(&cache, 3), 1);
    });
    cache.insert(&3, 99).unwrap();
    assert_eq!(message.publish_to(&commit), Published::Whole);
    assert_eq!(rows(|| cache.iter()), [(3, 1)]);
}

#[test]
fn what_was_read_since_a_savepoint_is_forgotten_with_it() {
    let cache = counts();
    let commit = commit(cache.store());
    let mut message = Message::new();
    message.handle(|| increment(&cache, 1));
    let savepoint = message.savepoint();
    message.handle(|| increment(&cache, 2));
    increment(&cache, 2);
    message.roll_back_to(&savepoint);
    assert_eq!(message.publish_to(&commit), Published::Whole);
    // What was read before is not.
    message.handle(|| increment(&cache, 1));
    let savepoint = message.savepoint();
    message.handle(|| cache.insert(&2, 5).unwrap());
    message.roll_back_to(&savepoint);
    increment(&cache, 1);
    assert_eq!(message.publish_to(&commit), Published::Conflict);
    assert_eq!(rows(|| cache.iter()), [(1, 2), (2, 1)]);
}

#[test]
fn the_closure_sees_the_value_before_and_none_removes_it() {
    let cache = Cache::<String, Option<u8>>::in_memory().unwrap();
    let mut message = Message::new();
    let change = || {
        assert_eq!(
            cache.update("a", |old| old.map_or(Some(1), |old| old.map(|old| old + 1))).unwrap(),
            Some(1)
        );
        assert_eq!(cache.update("a", |old| Some(old.unwrap().map(|old| old + 1))).unwrap(), Some(Some(2)));
        assert_eq!(cache.get("a").unwrap(), Some(Some(2)));
        assert_eq!(cache.update("a", |_| None::<Option<u8>>).unwrap(), None);
        assert_eq!(cache.update("b", |old| old.filter(|_| true)).unwrap(), None);
        assert!(cache.is_empty().unwrap());
    };
    message.handle(change);
    assert!(message.publish().unwrap());
    change();
}

#[test]
fn an_update_that_fails_changes_nothing() {
    let store = Store::in_memory().unwrap();
    let cache: Cache<u8, std::collections::BTreeMap<Option<u8>, u8>> =
        store.cache_as("maps", ValueFormat::Json).unwrap();
    let update = || cache.update(&1, |_| std::collections::BTreeMap::from([(None, 1)]));
    assert!(matches!(update(), Err(StoreError::Encode { .. })));
    let mut message = Message::new();
    message.handle(|| assert!(matches!(update(), Err(StoreError::Encode { .. }))));
    assert!(message.publish().unwrap());
    assert!(cache.is_empty().unwrap());
    let nan = Cache::<f64, u8>::in_memory().unwrap().update(&f64::NAN, |_| 1);
    assert!(matches!(nan, Err(StoreError::Key { .. })));
}

#[test]
fn a_closure_may_use_caches_and_the_key_itself() {
    let cache = counts();
    let mut calls = 0;
    let update = |calls: &mut i32| {
        cache.update(&1, |count: Option<i64>| {
            *calls += 1;
            if *calls == 1 {
                // As another task would in between.
                cache.insert(&1, 10).unwrap();
            }
            count.unwrap_or(0) + 1
        })
    };
    assert_eq!(update(&mut calls).unwrap(), 11);
    assert_eq!(calls, 2);
}

#[test]
fn no_update_from_outside_is_lost_whether_a_flow_runs_begins_or_ends() {
    const THREADS: i64 = 3;
    const TIMES: i64 = 400;
    let cache = counts();
    let barrier = Barrier::new(5);
    let busy = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        use std::sync::atomic::Ordering::SeqCst;
        busy.store(4, SeqCst);
        for _ in 0..THREADS {
            scope.spawn(|| {
                barrier.wait();
                for n in 0..TIMES {
                    increment(&cache, 1);
                    // A plain write of a key that another thread reads in order to change it.
                    if n % 7 == 0 {
                        cache.insert(&(100 + n), n).unwrap();
                    }
                }
                busy.fetch_sub(1, SeqCst);
            });
        }
        // Plain writes, each of which a lost update would undo.
        scope.spawn(|| {
            barrier.wait();
            for n in 0..TIMES {
                cache.insert(&2, n).unwrap();
                let seen = cache.update(&2, |count| count).unwrap();
                assert!(seen >= Some(n), "{seen:?} after {n}");
            }
            busy.fetch_sub(1, SeqCst);
        });
        barrier.wait();
        let store = cache.store();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut message = Message::new();
        let mut published = 0;
        while busy.load(SeqCst) > 0 {
            let commit = commit(store);
            for _ in 0..3 {
                message.handle(|| increment(&cache, 3));
                assert_eq!(message.publish_to(&commit), Published::Whole);
                published += 1;
                if let Some(frozen) = store.freeze() {
                    store.write_frozen(&frozen, false).unwrap();
                    store.thaw(frozen);
                }
            }
            runtime.block_on(commit.end(&[], false)).unwrap();
            std::thread::yield_now();
        }
        assert_eq!(cache.get(&3).unwrap(), Some(published));
    });
    assert_eq!(cache.get(&1).unwrap(), Some(THREADS * TIMES));
    assert_eq!(cache.get(&2).unwrap(), Some(TIMES - 1));
}

#[test]
fn no_update_is_lost_between_messages_and_the_outside() {
    const TIMES: i64 = 1000;
    let cache = counts();
    let commit = commit(cache.store());
    let barrier = Barrier::new(3);
    std::thread::scope(|scope| {
        let message = || {
            barrier.wait();
            let mut message = Message::new();
            for _ in 0..TIMES {
                loop {
                    message.handle(|| increment(&cache, 1));
                    std::thread::yield_now();
                    match message.publish_to(&commit) {
                        Published::Whole => break,
                        Published::Conflict => message.roll_back(),
                    }
                }
            }
        };
        scope.spawn(message);
        scope.spawn(message);
        barrier.wait();
        for n in 0..TIMES {
            increment(&cache, 1);
            if n % 50 == 0
                && let Some(frozen) = cache.store().freeze()
            {
                cache.store().write_frozen(&frozen, false).unwrap();
                cache.store().thaw(frozen);
            }
        }
    });
    assert_eq!(cache.get(&1).unwrap(), Some(3 * TIMES));
}

// S19: an iterator is open while the same handler inserts and another publishes, with an await between two steps,
// also at the moment at which an epoch is written.
#[test]
fn an_iterator_held_across_awaits_sees_what_it_saw_when_it_was_made() {
    let cache = counts();
    (0..10).for_each(|key| cache.insert(&key, key).unwrap());
    let store = cache.store();
    let commit = commit(store);
    let (mut one, mut other) = (Message::new(), Message::new());
    let mut open = one.handle(|| {
        cache.insert(&3, 30).unwrap();
        cache.iter()
    });
    let mut frozen = None;
    for step in 0..10 {
        // Each is a poll of the handler.
        let row = one.handle(|| open.next().unwrap().unwrap());
        assert_eq!(row, (step, if step == 3 { 30 } else { step }));
        one.handle(|| cache.insert(&(step + 100), step).unwrap());
        other.handle(|| {
            cache.insert(&(step + 200), step).unwrap();
            cache.remove(&(step + 1)).unwrap();
        });
        assert_eq!(other.publish_to(&commit), Published::Whole);
        match (step % 3, frozen.take()) {
            (0, _) => frozen = store.freeze(),
            (1, Some(closing)) => {
                store.write_frozen(&closing, false).unwrap();
                frozen = Some(closing);
            }
            (_, Some(closing)) => store.thaw(closing),
            (_, None) => {}
        }
    }
    assert!(one.handle(|| open.next()).is_none());
    assert_eq!(one.publish_to(&commit), Published::Whole);
    assert_eq!(cache.iter().count(), 22);
}
