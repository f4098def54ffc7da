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
//! # Words
//!
//! | word | meaning | here |
//! |---|---|---|
//! | source | can be opened, and gives items until it ends | [`AsyncIterable`], [`iter`], [`interval`], [`replay`] |
//! | handler | a function under `#[handle]`, or a closure | [`handle`], [`source`] |
//! | sink | takes each output | [`Sink`], [`print`](struct@print), `Cache` |
//! | pipe | a function from stream to stream, before a handler | [`Items`] |
//! | flow | handlers run together | [`flow!`], [`Flow`] |
//! | store | one database on disk or in memory | `Store` |
//! | cache | an ordered, typed map in a store | `Cache` |
//! | message | an item with its key and place | [`Message`] |
//! | position | where a message stands in its source; committed with the state | [`Position`], [`replay`] |
//! | commit | the moment at which state and positions become durable together | [`Flow::commit_every`] |
//! | transaction | all that one message causes: visible at once and whole, or not at all | [`in_message`] |
//!
//! # What it is not
//!
//! Not a cluster: one process on one machine. Not a query language: state is a map, a handler is a
//! function. Not yet complete: topics and checkpoints follow. A source without positions begins anew
//! after a restart, and the caches hold what its messages had written.
//!
//! # Limits
//!
//! - Handlers of one source see its messages one after the other; parallel work is by source.
//! - A handler that blocks its thread holds up the other sources on that thread: wait with `.await`.
//! - What a message writes is held in memory until it is done.
//!
//! # Features
//!
//! `rocksdb` (on by default): `Store` and `Cache`. `chrono`, `jiff`, `time`: the times of these crates
//! as keys. All are additive.
pub use slipstream_core::{
    AsKey, AsyncIterable, BoxError, Channel, Closed, CommitError, Control, Csv, Distance, Emitter, Error,
    Flow, FlowHandle, FromItem, Handler, Interval, IntoContext, Items, Iter, Json, Key, KeyError, Line, Mark,
    Message, Mount, OnError, Output, Position, Positions, PrefixOf, Replay, ReplayError, Result, Routes,
    Seekable, Seeks, Sink, SinkAsync, SourceName, Timestamp, TimestampError, builder, flow, in_message,
    interval, iter, key, one, output, print, replay, sink_async, source,
};
#[cfg(feature = "rocksdb")]
pub use slipstream_core::{Cache, LostState, OnLostState, Store, StoreError, ValueFormat, cache, store};
pub use slipstream_macros::{Key, handle};

/// What `#[handle]` and `derive(Key)` name; not for use by hand.
#[doc(hidden)]
pub mod __private {
    pub use slipstream_core::__private::*;
}

/// The README's code, compiled.
#[cfg(all(doctest, feature = "rocksdb"))]
#[doc = include_str!("../README.md")]
struct Readme;
