//! The runtime of Slipstream: sources, handlers, sinks, flows, and ordered state. Programs use the
//! crate `slipstream`, which adds the attribute `#[handle]`.
//!
//! ```text
//! flow → route → { cache } → { source, sink, output, pipe } → { transaction, store, message, codec, key, error }
//! ```
//!
//! Imports run downwards only; a test checks it.
pub mod builder;
#[cfg(feature = "rocksdb")]
pub mod cache;
mod channel;
#[cfg(feature = "rocksdb")]
mod checkpoint;
pub mod codec;
mod commit;
mod error;
mod flow;
mod given;
mod handler;
mod item;
mod message;
mod on_error;
mod once;
mod opaque;
mod outgoing;
pub mod output;
mod pipe;
mod position;
mod route;
mod sink;
mod source;
mod stop;
#[cfg(feature = "rocksdb")]
pub mod store;
mod transaction;
#[cfg_attr(not(feature = "rocksdb"), allow(dead_code))]
mod watch;

#[cfg(feature = "kafka")]
pub mod kafka;
pub mod key;
mod timestamp;

pub use builder::source;
#[cfg(feature = "rocksdb")]
pub use cache::Cache;
pub use channel::{Channel, Closed};
#[cfg(feature = "rocksdb")]
pub use checkpoint::{
    Called, Check, Checkpoint, CheckpointBuilder, CheckpointError, Dependency, DependencyState,
    DependencyStatus, Down, Marker, OnEnd, Outage, Pulse, Recovery, Status, Unknown,
};
pub use commit::CommitError;
pub use error::{BoxError, Error, Result};
pub use flow::{Flow, FlowHandle, IntoContext, Run};
#[cfg(feature = "rocksdb")]
pub use flow::{LostState, OnLostState};
pub use handler::Handler;
pub use item::FromItem;
pub use key::{AsKey, Distance, Key, KeyError, PrefixOf};
pub use message::Message;
pub use on_error::OnError;
pub use output::{Emitter, Output, one};
pub use pipe::Items;
pub use position::{Position, Positions};
pub use route::{Mount, Routes};
pub use sink::{Sink, SinkAsync, print, sink_async};
pub use source::{
    AsyncIterable, Control, Csv, Interval, Iter, Json, Line, Mark, Named, Replay, ReplayError, Seekable,
    Seeks, SourceName, interval, iter, named, replay,
};
#[cfg(feature = "rocksdb")]
pub use store::{Store, StoreError, ValueFormat};
pub use timestamp::{Timestamp, TimestampError};
pub use transaction::{in_message, is_replayed};
pub use watch::Deferred;

/// What `#[handle]` names; not for use by hand.
#[doc(hidden)]
pub mod __private {
    pub use crate::{
        BoxError, Emitter, Handler, Mount, Routes,
        handler::Context,
        key,
        output::{Emitted, ExactlyOne, Nothing, Whole, emits, emitted, gives, returns},
        route::{FromPipe, Handled, Mountable, Outputting, Piping, Readable, Reading, Taking, handled},
        sink::{SinkList, Sinks, Taken},
    };
}
