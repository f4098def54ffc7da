use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::*;

type Waiting = Pin<Box<dyn Future<Output = Result<KeyLock, StoreError>> + Send>>;

fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Locks at once, in a message.
fn lock_now(message: &mut Message, cache: &Cache<i64, i64>, key: i64) -> Result<KeyLock, StoreError> {
    let Poll::Ready(locked) = message.handle(|| poll(pin!(cache.lock(&key)))) else {
        panic!("another has the lock on {key}")
    };
    locked
}

/// Whether nobody has the lock.
fn is_free(cache: &Cache<i64, i64>, key: i64) -> bool {
    poll(pin!(cache.lock(&key))).is_ready()
}

fn waiting(cache: &Cache<i64, i64>, key: i64) -> Waiting {
    Box::pin(cache.lock(&key))
}

#[track_caller]
fn refused(locked: Result<KeyLock, StoreError>) {
    let error = locked.unwrap_err();
    assert!(matches!(&error, StoreError::SecondLock { cache, .. } if &**cache == "default"), "{error:?}");
}

#[test]
fn a_message_has_its_lock_until_it_is_published_whatever_becomes_of_the_guard() {
    let cache = Cache::<i64, i64>::in_memory().unwrap();
    let commit = commit(cache.store());
    let (mut one, mut other) = (Message::new(), Message::new());
    drop(lock_now(&mut one, &cache, 1).unwrap());
    one.handle(|| cache.insert(&1, 1).unwrap());
    let mut later = waiting(&cache, 1);
    assert!(other.handle(|| poll(later.as_mut())).is_pending() && is_free(&cache, 2));
    assert_eq!(one.publish_to(&commit), Published::Whole);
    let Poll::Ready(Ok(lock)) = other.handle(|| poll(later.as_mut())) else { panic!("it was not let go") };
    assert_eq!(other.handle(|| cache.get(&1).unwrap()), Some(1));
    drop((lock, later));
    assert!(!is_free(&cache, 1));
    // Also where nothing else was done.
    assert_eq!(other.publish_to(&commit), Published::Whole);
    assert!(is_free(&cache, 1));
    assert_eq!(cache.store().locked_keys(), 0);
}

#[test]
fn a_message_that_is_rolled_back_or_dropped_lets_go() {
    let cache = Cache::<i64, i64>::in_memory().unwrap();
    let mut message = Message::new();
    for _ in 0..2 {
        let _lock = lock_now(&mut message, &cache, 1).unwrap();
        assert!(!is_free(&cache, 1));
        message.roll_back();
        assert!(is_free(&cache, 1));
    }
    let lock = lock_now(&mut message, &cache, 1).unwrap();
    drop(message);
    assert!(is_free(&cache, 1));
    drop(lock);
    assert_eq!(cache.store().locked_keys(), 0);
}

#[test]
fn a_lock_is_let_go_with_what_was_done_since_a_savepoint() {
    let cache = Cache::<i64, i64>::in_memory().unwrap();
    let mut message = Message::new();
    let before = message.savepoint();
    let _lock = lock_now(&mut message, &cache, 1).unwrap();
    let after = message.savepoint();
    message.handle(|| cache.insert(&1, 1).unwrap());
    message.roll_back_to(&after);
    assert!(!is_free(&cache, 1));
    message.roll_back_to(&before);
    assert!(is_free(&cache, 1));
    let _lock = lock_now(&mut message, &cache, 2).unwrap();
    assert!(!is_free(&cache, 2));
}

#[test]
fn a_second_lock_of_a_message_is_refused_also_while_the_first_waits() {
    let cache = Cache::<i64, i64>::in_memory().unwrap();
    let mut message = Message::new();
    let Poll::Ready(Ok(taken)) = poll(pin!(cache.lock(&1))) else { panic!("nobody has it") };
    let mut first = waiting(&cache, 1);
    assert!(message.handle(|| poll(first.as_mut())).is_pending());
    refused(lock_now(&mut message, &cache, 2));
    drop(taken);
    let Poll::Ready(Ok(_lock)) = message.handle(|| poll(first.as_mut())) else { panic!("it is free") };
    refused(lock_now(&mut message, &cache, 1));
    let Poll::Ready(again) = message.handle(|| poll(pin!(cache.lock_all([2, 3])))) else { panic!() };
    refused(again);
    // Elsewhere it is allowed.
    let Poll::Ready(Ok(_two)) = poll(pin!(cache.lock(&2))) else { panic!("nobody has it") };
    let Poll::Ready(Ok(_three)) = poll(pin!(cache.lock(&3))) else { panic!("nobody has it") };
}

#[test]
fn a_call_that_is_dropped_while_it_waits_has_locked_nothing() {
    let cache = Cache::<i64, i64>::in_memory().unwrap();
    let mut message = Message::new();
    let Poll::Ready(Ok(taken)) = poll(pin!(cache.lock(&2))) else { panic!("nobody has it") };
    let mut all: Waiting = Box::pin(cache.lock_all([3, 1, 2]));
    assert!(message.handle(|| poll(all.as_mut())).is_pending());
    assert!(!is_free(&cache, 1) && is_free(&cache, 3));
    let mut behind = waiting(&cache, 1);
    assert!(poll(behind.as_mut()).is_pending());
    drop(all);
    let Poll::Ready(Ok(_one)) = poll(behind.as_mut()) else { panic!("it was let go") };
    drop(taken);
    let _lock = lock_now(&mut message, &cache, 2).unwrap();
    assert_eq!(cache.store().locked_keys(), 2);
}

#[test]
fn a_call_that_ends_in_another_message_leaves_the_lock_to_its_answer() {
    let cache = Cache::<i64, i64>::in_memory().unwrap();
    let (mut one, mut other) = (Message::new(), Message::new());
    let Poll::Ready(Ok(taken)) = poll(pin!(cache.lock(&1))) else { panic!("nobody has it") };
    let mut moved = waiting(&cache, 1);
    assert!(one.handle(|| poll(moved.as_mut())).is_pending());
    one.roll_back();
    drop(taken);
    let Poll::Ready(Ok(lock)) = other.handle(|| poll(moved.as_mut())) else { panic!("it is free") };
    drop((one, other));
    assert!(!is_free(&cache, 1));
    drop(lock);
    assert!(is_free(&cache, 1));
}

#[test]
fn a_key_given_twice_is_locked_once_and_a_bad_one_is_an_error() {
    let cache = Cache::<f64, i64>::in_memory().unwrap();
    let Poll::Ready(Ok(lock)) = poll(pin!(cache.lock_all([1.0, -0.0, 1.0, 0.0]))) else { panic!("waits") };
    assert_eq!(cache.store().locked_keys(), 2);
    drop(lock);
    let Poll::Ready(Err(error)) = poll(pin!(cache.lock_all([&1.0, &f64::NAN]))) else { panic!("waits") };
    assert!(matches!(error, StoreError::Key { .. }), "{error:?}");
    assert_eq!(cache.store().locked_keys(), 0);
    let Poll::Ready(Ok(_none)) = poll(pin!(cache.lock_all(Vec::<f64>::new()))) else { panic!("waits") };
}

/// A future of a message's handler: polled with its transaction set.
struct InMessage<'m, F>(&'m mut Message, Pin<Box<F>>);

impl<F: Future> Future for InMessage<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Self(message, future) = &mut *self;
        message.handle(|| future.as_mut().poll(cx))
    }
}

// S18: `lock_all(a, b)` against `lock_all(b, a)`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_that_lock_the_same_keys_in_another_order_do_not_wait_for_each_other() {
    const ROUNDS: i64 = 300;
    let cache = Cache::<String, i64>::in_memory().unwrap();
    let commit = Arc::new(commit(cache.store()));
    let tasks: Vec<_> = [["a", "b"], ["b", "a"], ["a", "a"]]
        .map(|keys| {
            let (cache, commit) = (cache.clone(), Arc::clone(&commit));
            tokio::spawn(async move {
                let mut message = Message::new();
                for _ in 0..ROUNDS {
                    let add = async {
                        let _ = cache.lock_all(keys).await.unwrap();
                        for key in keys {
                            let count = cache.get(key).unwrap().unwrap_or(0);
                            tokio::task::yield_now().await;
                            cache.insert(key, count + 1).unwrap();
                        }
                    };
                    InMessage(&mut message, Box::pin(add)).await;
                    assert_eq!(message.publish_to(&commit), Published::Whole);
                }
            })
        })
        .into();
    for task in tasks {
        tokio::time::timeout(Duration::from_secs(60), task).await.expect("a deadlock").unwrap();
    }
    assert_eq!(rows(|| cache.iter()), [("a".to_owned(), 4 * ROUNDS), ("b".to_owned(), 2 * ROUNDS)]);
    assert_eq!(cache.store().locked_keys(), 0);
}
