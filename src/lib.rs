//! Slipstream.
pub use slipstream_core::{
    AsyncIterable, BoxError, Emitter, Error, Flow, FromItem, Handler, Interval, IntoContext, Items, Iter, Key,
    Message, Mount, Output, Result, Routes, Sink, SinkAsync, SourceName, Timestamp, builder, flow, in_message,
    interval, iter, key, one, output, print, sink_async, source, timestamp,
};
pub use slipstream_macros::handle;

/// What `#[handle]` and `derive(Key)` name; not for use by hand.
#[doc(hidden)]
pub mod __private {
    pub use slipstream_core::__private::*;
}
