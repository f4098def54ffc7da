//! Nothing is allocated for a message, whatever handles it and whatever takes its outputs; and a
//! look-up in a cache allocates nothing but what its key and value hold.
//!
//! What is counted is Rust's, on the test's own thread, on which a flow runs whole; RocksDB's own
//! allocations are not.
#![allow(clippy::unwrap_used)]
use futures::{Stream, StreamExt, future::ready, stream};
use slipstream::{AsyncIterable, Emitter, Flow, Items, Message, Result, flow, handle};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    hint::black_box,
    sync::Arc,
};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

impl Counting {
    fn count() {
        // At a thread's end its counter may be gone; nothing is counted then.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
    }
}

// SAFETY: all is left to the system's allocator; counting allocates nothing, since the counter is a
// thread-local without a constructor or destructor.
#[allow(unsafe_code, reason = "there is no other way to see allocations")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: it came from `System`, since `alloc` and `realloc` have it from there.
        unsafe { System.dealloc(at, layout) }
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::count();
        // SAFETY: as for `dealloc`.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

struct App {
    numbers: Numbers,
    messages: Messages,
    factor: u64,
}

struct Numbers(u64);

impl AsyncIterable for Numbers {
    type Item = u64;
    fn open(&self) -> impl Stream<Item = u64> + Send + 'static {
        stream::iter(0..self.0)
    }
}

/// Their items are not what a handler takes: it takes the value.
struct Messages(u64);

impl AsyncIterable for Messages {
    type Item = Message<(), u64>;
    fn open(&self) -> impl Stream<Item = Message<(), u64>> + Send + 'static {
        // The topic's name is made once: it is the source's to allocate, not the message's.
        let first = Message::new((), 0);
        stream::iter(0..self.0).map(move |value| {
            let mut message = first.clone();
            message.value = value;
            message
        })
    }
}

fn take<T>(output: &T) {
    black_box(output);
}

#[handle(app.numbers, sink = take)]
fn sync(app: &App, n: u64) -> u64 {
    n * app.factor
}
#[handle(app.numbers, sink = take)]
async fn ready_at_once(app: &App, n: u64) -> u64 {
    n * app.factor
}
#[handle(app.numbers, sink = take)]
async fn waits(app: &App, n: u64) -> u64 {
    tokio::task::yield_now().await;
    n * app.factor
}
#[handle(app.numbers, sink = [take, |n| async move { tokio::task::yield_now().await; black_box(n); }])]
async fn into_a_sink_that_waits(app: &App, n: u64) -> u64 {
    n * app.factor
}
#[handle(app.numbers, sink = take)]
fn emits(app: &App, n: u64, out: &mut Emitter<u64>) {
    out.emit(n);
    out.emit(app.factor);
}
#[handle(app.numbers, sink = take)]
async fn emits_and_waits(app: &App, n: u64, out: &mut Emitter<u64>) -> Result<()> {
    out.emit(n);
    tokio::task::yield_now().await;
    out.emit(app.factor);
    Ok(())
}
#[handle(app.numbers, sink = take)]
fn some_or_none(app: &App, n: u64) -> Option<u64> {
    n.is_multiple_of(2).then_some(n * app.factor)
}
#[handle(app.numbers, sink = take)]
async fn three(app: &App, n: u64) -> Result<[u64; 3]> {
    Ok([n, n, app.factor])
}
#[handle(app.messages, sink = take)]
fn value(app: &App, n: u64) -> u64 {
    n * app.factor
}
#[handle(app.messages, sink = take)]
async fn whole(app: &App, message: Message<(), u64>) -> u64 {
    message.value * app.factor
}
fn differences(numbers: Items<u64>) -> impl Stream<Item = u64> {
    numbers.scan(0, |before, n| ready(Some(n - std::mem::replace(before, n))))
}
#[handle(app.numbers, pipe = [differences, |n| n.filter(|n| ready(*n > 0))], sink = take)]
async fn piped(app: &App, n: u64) -> u64 {
    n * app.factor
}

fn counted(run: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.get();
    run();
    ALLOCATIONS.get() - before
}

/// Items are kept for messages that may run again as long as the process has a store: here it has one
/// throughout, whatever the other tests do.
#[cfg(feature = "rocksdb")]
fn with_a_store_open() {
    static STORE: std::sync::OnceLock<slipstream::Store> = std::sync::OnceLock::new();
    STORE.get_or_init(|| slipstream::Store::in_memory().unwrap());
}

/// What a flow allocates over some messages.
fn of_messages(flow: Flow<App>, count: u64) -> usize {
    #[cfg(feature = "rocksdb")]
    with_a_store_open();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let app = Arc::new(App { numbers: Numbers(count), messages: Messages(count), factor: 3 });
    counted(|| {
        runtime.block_on(async {
            // A runtime keeps a list from its first yield on; a flow of many messages may yield.
            tokio::task::yield_now().await;
            flow.run(app).await.unwrap();
        });
    })
}

/// The flow allocates when it starts, and then no more.
#[track_caller]
fn allocates_for_no_message(flow: impl Fn() -> Flow<App>) {
    let (few, many) = (of_messages(flow(), 300), of_messages(flow(), 10_300));
    assert!(few > 0, "the counter counts");
    assert_eq!(many - few, 0, "for 10,000 messages");
}

#[test]
fn a_sync_handler() {
    allocates_for_no_message(|| flow![sync]);
}

#[test]
fn an_async_handler() {
    allocates_for_no_message(|| flow![ready_at_once]);
}

#[test]
fn a_handler_that_waits() {
    allocates_for_no_message(|| flow![waits]);
}

#[test]
fn several_handlers_on_one_source() {
    allocates_for_no_message(|| flow![sync, ready_at_once, waits]);
}

#[test]
fn two_sinks_of_which_one_waits() {
    allocates_for_no_message(|| flow![into_a_sink_that_waits]);
}

#[test]
fn an_emitter() {
    allocates_for_no_message(|| flow![emits]);
    allocates_for_no_message(|| flow![emits_and_waits]);
}

#[test]
fn none_or_several_outputs() {
    allocates_for_no_message(|| flow![some_or_none]);
    allocates_for_no_message(|| flow![three]);
}

#[test]
fn the_value_of_a_message() {
    allocates_for_no_message(|| flow![value]);
    allocates_for_no_message(|| flow![value, whole]);
}

#[test]
fn pipes() {
    allocates_for_no_message(|| flow![piped]);
    allocates_for_no_message(|| flow![piped, sync]);
}

#[test]
fn all_of_them_on_one_source() {
    let flow = || flow![sync, waits, into_a_sink_that_waits, emits_and_waits, some_or_none, three, piped];
    allocates_for_no_message(flow);
}

#[cfg(feature = "rocksdb")]
mod caches {
    use super::*;
    use serde::{Deserialize, Serialize};
    use slipstream::{Cache, source};

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Price {
        bid: f64,
        ask: f64,
        volume: u64,
    }

    fn price(n: i64) -> Price {
        Price { bid: n as f64, ask: n as f64 + 0.5, volume: 100 }
    }

    fn prices() -> Cache<(u32, i64), Price> {
        let prices = Cache::in_memory().unwrap();
        (0..1_000).for_each(|n| prices.insert(&(7, n * 10), price(n)).unwrap());
        prices
    }

    /// After a first look-up, which makes a cursor and buffers for the thread.
    #[track_caller]
    fn allocates_for_no_look_up(look_up: impl Fn(i64)) {
        look_up(5);
        assert_eq!(counted(|| (0..1_000).for_each(look_up)), 0, "for 1,000 look-ups");
    }

    #[test]
    fn a_look_up_of_a_value_without_heap() {
        let prices = prices();
        allocates_for_no_look_up(|n| assert_eq!(prices.get(&(7, n * 10)).unwrap(), Some(price(n))));
        allocates_for_no_look_up(|n| assert_eq!(prices.get(&(7, n * 10 + 1)).unwrap(), None));
        allocates_for_no_look_up(|n| assert!(prices.contains_key(&(7, n * 10)).unwrap()));
        allocates_for_no_look_up(|n| {
            assert_eq!(prices.as_of(&(7, n * 10 + 9)).unwrap(), Some(((7, n * 10), price(n))));
        });
        allocates_for_no_look_up(|n| {
            assert_eq!(prices.after(&(7, n * 10 - 1)).unwrap(), Some(((7, n * 10), price(n))));
        });
        allocates_for_no_look_up(|n| {
            assert_eq!(prices.nearest(&(7, n * 10 + 4)).unwrap(), Some(((7, n * 10), price(n))));
        });
    }

    #[test]
    fn a_look_up_between_writes() {
        let prices = prices();
        let write_and_look_up = |n| {
            prices.insert(&(7, n * 10), price(n + 1)).unwrap();
            assert_eq!(prices.as_of(&(7, n * 10)).unwrap(), Some(((7, n * 10), price(n + 1))));
        };
        allocates_for_no_look_up(write_and_look_up);
    }

    #[test]
    fn a_look_up_by_a_borrowed_key_allocates_the_key_that_it_answers() {
        let places = Cache::<(String, i64), Price>::in_memory().unwrap();
        places.insert(&("JFK", 100), price(1)).unwrap();
        assert!(places.as_of(&("JFK", 150)).unwrap().is_some());
        assert_eq!(counted(|| assert!(places.get(&("JFK", 100)).unwrap().is_some())), 0);
        assert_eq!(counted(|| assert!(places.as_of(&("JFK", 150)).unwrap().is_some())), 1);
    }

    /// Look-ups in a message, and what a row staged in one costs.
    #[test]
    fn in_a_message() {
        fn of_messages(count: i64, prices: &Cache<(u32, i64), Price>, writes: bool) -> usize {
            let (numbers, cache) = (slipstream::iter(0..count), prices.clone());
            let handler = source(&numbers).handle(move |n| {
                let held = cache.as_of(&(7, n * 10)).unwrap();
                assert!(held.is_some() && cache.get(&(7, 0)).unwrap().is_some());
                writes.then_some(((7, n), price(n)))
            });
            let flow = Flow::<()>::new().with(handler.sink(prices));
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            counted(|| runtime.block_on(flow.run(())).unwrap())
        }
        let prices = prices();
        of_messages(1, &prices, false);
        let look_ups = of_messages(1_300, &prices, false) - of_messages(300, &prices, false);
        assert_eq!(look_ups, 0, "for 1,000 messages that look up");
        let writes = of_messages(1_300, &prices, true) - of_messages(300, &prices, true);
        assert!(
            writes <= 3_300,
            "{writes} for 1,000 messages that write a row: its key, its value, its place in the message, \
             and its share of the epoch's map"
        );
    }
}
