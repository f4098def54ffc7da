//! Slipstream.
pub use slipstream_core::{
    AsKey, AsyncIterable, BoxError, Distance, Emitter, Error, Flow, FromItem, Handler, Interval, IntoContext,
    Items, Iter, Key, KeyError, Message, Mount, Output, PrefixOf, Result, Routes, Sink, SinkAsync,
    SourceName, Timestamp, TimestampError, builder, flow, in_message, interval, iter, key, one, output,
    print, sink_async, source,
};
#[cfg(feature = "rocksdb")]
pub use slipstream_core::{Cache, Store, StoreError, ValueFormat, cache, store};
pub use slipstream_macros::{Key, handle};

/// What `#[handle]` and `derive(Key)` name; not for use by hand.
#[doc(hidden)]
pub mod __private {
    pub use slipstream_core::__private::*;
}
