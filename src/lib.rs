//! Stateful stream processing inside an ordinary program: annotated functions over async sources,
//! with ordered state in RocksDB.
//!
//! # A tour
//!
//! A source gives items, a handler makes outputs of each, sinks take them. `#[handle]` binds the three,
//! [`flow!`] runs handlers together until their sources have ended.
//!
//! ```
//! use slipstream::{Cache, Iter, Result, Store, flow, handle, iter};
//! use std::sync::Arc;
//!
//! struct App {
//!     prices: Iter<[(u64, f64); 3]>, // when, and how much
//!     orders: Iter<[(u64, u32); 2]>, // when, and how many
//!     price: Cache<u64, f64>,        // ordered by time
//!     bills: Cache<u64, f64>,
//! }
//!
//! #[handle(app.prices, sink = app.price)]
//! fn handle_price(app: &App, (time, price): (u64, f64)) -> (u64, f64) {
//!     (time, price)
//! }
//!
//! #[handle(app.orders, sink = app.bills)]
//! async fn handle_order(app: &App, (time, count): (u64, u32)) -> Result<Option<(u64, f64)>> {
//!     let price = app.price.as_of(&time)?; // the latest at or before
//!     Ok(price.map(|(_, price)| (time, price * f64::from(count))))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<()> {
//! let store = Store::in_memory()?; // or `Store::open("state")?`
//! let app = Arc::new(App {
//!     prices: iter([(0, 2.5), (10, 3.0), (20, 3.5)]),
//!     orders: iter([(9, 4), (10, 1)]),
//!     price: store.cache("price")?,
//!     bills: store.cache("bills")?,
//! });
//! flow![handle_price].run(Arc::clone(&app)).await?; // both at once: `flow![handle_price, handle_order]`
//! flow![handle_order].run(Arc::clone(&app)).await?;
//! assert_eq!(app.bills.get(&9)?, Some(10.0));
//! assert_eq!(app.bills.get(&10)?, Some(3.0));
//!
//! // A handler is still a function.
//! assert_eq!(handle_order(&app, (25, 2)).await?, Some((25, 7.0)));
//! # Ok(())
//! # }
//! ```
//!
//! All that one message does takes effect when its handlers are done, whole or not at all, and is committed
//! together with its source's position, where the source has one ([`replay`], [`Seekable`]). What a handler gives
//! to a [`Channel`] belongs to the message too, and a handler says by `on_error` what becomes of it when it fails:
//!
//! ```
//! use slipstream::{Cache, Channel, Iter, OnError, Result, flow, handle, iter};
//! use std::sync::Arc;
//!
//! struct App {
//!     lines: Iter<[&'static str; 2]>,
//!     words: Channel<&'static str>,
//!     sums: Cache<String, i64>,
//! }
//!
//! #[handle(app.lines, sink = app.words)]
//! fn split(app: &App, line: &'static str) -> Vec<&'static str> {
//!     line.split(' ').collect()
//! }
//!
//! // What is no number is left out; without `on_error` the flow would stop, and nothing of the line count.
//! #[handle(app.words, on_error = OnError::skip())]
//! fn add(app: &App, word: &'static str) -> Result<()> {
//!     let number: i64 = word.parse()?;
//!     app.sums.update("sum", |sum| sum.unwrap_or(0) + number)?; // loses no change of another message
//!     Ok(())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<()> {
//! let app = Arc::new(App { lines: iter(["1 2", "3 x 4"]), words: Channel::new(), sums: Cache::in_memory()? });
//! flow![split, add].run(Arc::clone(&app)).await?;
//! assert_eq!(app.sums.get("sum")?, Some(10));
//! # Ok(())
//! # }
//! ```
//!
//! A `Topic` is a source and a sink, and topics of any number of Kafka clusters meet in one flow. A test needs none
//! outside of its process:
//!
//! ```
//! use slipstream::{Iter, Kafka, Offset, Result, Topic, flow, handle, iter};
//! use std::sync::Arc;
//!
//! struct App {
//!     numbers: Iter<[i64; 3]>,
//!     squares: Topic<String, i64>,
//! }
//!
//! #[handle(app.numbers, sink = app.squares)]
//! fn square(app: &App, number: i64) -> (String, i64) {
//!     (number.to_string(), number * number)
//! }
//!
//! #[handle(app.squares)]
//! fn check(app: &App, square: i64) {
//!     assert!([1, 4, 9].contains(&square));
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<()> {
//! let kafka = Kafka::in_process()?; // or `Kafka::new([("bootstrap.servers", "localhost:9092")])?`
//! kafka.create_topic("squares", 4).await?;
//! let squares = kafka.topic("squares").json().until(Offset::End); // without `until` it waits for more
//! let app = Arc::new(App { numbers: iter([1, 2, 3]), squares });
//! flow![square].run(Arc::clone(&app)).await?;
//! flow![check].named("checks").run(app).await // in the group `checks`
//! # }
//! ```
//!
//! # Words
//!
//! | word | meaning | here |
//! |---|---|---|
//! | source | can be opened, and gives items until it ends | [`AsyncIterable`], [`iter`], [`interval`], [`replay`] |
//! | handler | a function under `#[handle]`, or a closure | [`handle`], [`source`] |
//! | sink | takes each output | [`Sink`], [`print`](struct@print), `Cache` |
//! | pipe | a function from stream to stream, before a handler | [`Items`] |
//! | channel | hands what one handler gives out to others, inside of the message | [`Channel`] |
//! | flow | handlers run together | [`flow!`], [`Flow`], [`FlowHandle`] |
//! | store | one database on disk or in memory | `Store` |
//! | cache | an ordered, typed map in a store; a source of its changes | `Cache` |
//! | topic | a log of messages in a Kafka cluster; a source and a sink | `Kafka`, `Topic` |
//! | message | an item with its key and place | [`Message`] |
//! | position | where a message stands in its source; committed with the state | [`Position`], [`Seekable`], [`Control`] |
//! | commit | the moment at which state and positions become durable together | [`Flow::commit_every`] |
//! | transaction | all that one message causes: visible at once and whole, or not at all | [`in_message`] |
//! | checkpoint | whether what a stream depends on is alive and caught up; it waits, and is repaired | `Checkpoint`, `Dependency`, [`is_replayed`] |
//! | policy | what becomes of a message when a handler fails on it | [`OnError`] |
//! | update | changes a value by the one before, and loses no change of another | `Cache::update` |
//! | lock | keeps keys for one message among those that lock them | `Cache::lock`, `Cache::lock_all` |
//!
//! # What it is not
//!
//! Not a cluster: one process on one machine, or several that share the partitions of topics, each with a store of
//! its own. Not a query language: state is a map, a handler is a function. A
//! source without positions begins anew after a restart, and the caches hold what its messages had written.
//!
//! # Limits
//!
//! - Messages of one partition are handled one after the other. Sources are read side by side, and so are the
//!   partitions of one that says so ([`Seekable::concurrency`]); then two messages may change one key, which
//!   `update` and `lock` are for.
//! - A message that conflicts by `update` runs again, with its sinks: many that change one key at once are
//!   faster under a `lock`. A message locks in one call.
//! - Sinks outside of the store take outputs at least once.
//! - A handler that blocks its thread holds up the other sources on that thread: wait with `.await`.
//! - What a message writes is held in memory until it is done, and what is not yet committed until it is;
//!   [`Flow::epoch_bytes`] bounds the latter.
//! - 128 items from outside wait in a channel, and 1,024 changes from outside in a cache that has handlers.
//! - What a pipe remembers is gone after a crash.
//!
//! # Features
//!
//! `rocksdb` (on by default): `Store` and `Cache`. `kafka` (on by default): `Kafka` and `Topic`; for these `ssl`, which
//! is TLS and SASL/SCRAM, `gssapi`, which is Kerberos, and `zstd`. `chrono`, `jiff`, `time`: the times of these crates as
//! keys. All are additive.
pub use slipstream_core::{
    AsKey, AsyncIterable, BoxError, Channel, Closed, CommitError, Control, Csv, Deferred, Distance, Emitter,
    Error, Flow, FlowHandle, FromItem, Handler, Interval, IntoContext, Items, Iter, Json, Key, KeyError,
    Line, Mark, Message, Mount, Named, OnError, Output, Position, Positions, PrefixOf, Replay, ReplayError,
    Result, Routes, Seekable, Seeks, Sink, SinkAsync, SourceName, Timestamp, TimestampError, builder, codec,
    flow, in_message, interval, is_replayed, iter, key, named, one, output, print, replay, sink_async,
    source,
};
#[cfg(feature = "rocksdb")]
pub use slipstream_core::{Cache, LostState, OnLostState, Store, StoreError, ValueFormat, cache, store};
#[cfg(feature = "rocksdb")]
pub use slipstream_core::{
    Called, Check, Checkpoint, CheckpointBuilder, CheckpointError, Dependency, DependencyState,
    DependencyStatus, Down, Marker, OnEnd, Outage, Pulse, Recovery, Status, Unknown,
};
#[cfg(feature = "kafka")]
pub use slipstream_core::{
    kafka,
    kafka::{Kafka, Offset, Topic, TopicError},
};
pub use slipstream_macros::{Key, handle};

/// What `#[handle]` and `derive(Key)` name; not for use by hand.
#[doc(hidden)]
pub mod __private {
    pub use slipstream_core::__private::*;
}

/// The documents' code, compiled.
#[cfg(all(doctest, feature = "kafka", feature = "rocksdb"))]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../docs/late-events.md")]
#[doc = include_str!("../docs/operating.md")]
struct Documents;
