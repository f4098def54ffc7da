//! Sources: what can be opened and gives items until it ends. A source is opened once per flow,
//! however many handlers read it, so a flow must be able to tell that two are the same one.
//!
//! ```text
//! AsyncIterable ──open─────▶ Stream of items ──────────────────┐
//!       │ seeks                                               ├──chunks──▶ route
//!       ▼                                                     │
//! Seekable ───────open_at──▶ Stream of positions and items ────┘
//!       ▲   again after a seek
//!    Control
//! ```
mod control;
mod feed;
mod identity;
mod iter;
mod joining;
mod mark;
mod named;
mod replay;
mod seeks;

pub use control::Control;
pub(crate) use control::Hand;
pub(crate) use feed::{Chunk, Feed, Kept, Plain};
pub(crate) use identity::Identity;
pub use identity::SourceName;
pub use iter::{Interval, Iter, interval, iter};
#[cfg_attr(not(feature = "kafka"), allow(unused_imports))]
pub(crate) use joining::{Joined, Joining, Judged, Standing};
pub use mark::Mark;
pub use named::{Named, named};
pub use replay::{Csv, Json, Line, Replay, ReplayError, replay};
#[cfg_attr(not(feature = "kafka"), allow(unused_imports))]
pub(crate) use seeks::{AnySeekable, Opens};
pub use seeks::{Seekable, Seeks};

use crate::given::Receives;
use futures::Stream;

/// Something that can be opened and gives items asynchronously, until it ends.
///
/// Any function that returns a [`Stream`] is one (name it, do not call it), so is [`iter`] of a
/// list and [`interval`] for timers. To make your own, say what it gives and how it begins:
///
/// ```
/// use futures::{Stream, stream};
/// use slipstream_core::AsyncIterable;
///
/// struct Countdown {
///     from: u32,
/// }
///
/// impl AsyncIterable for Countdown {
///     type Item = u32;
///     fn open(&self) -> impl Stream<Item = u32> + Send + 'static {
///         stream::iter((0..=self.from).rev())
///     }
/// }
/// ```
///
/// A source of this kind cannot be read again from a given place: after a crash it begins anew,
/// and what its messages had already written is kept. One that can is a [`Seekable`], and says so in
/// [`seeks`](AsyncIterable::seeks).
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read as a source",
    label = "not a source",
    note = "a source is a function that returns a `Stream` (name it without calling it), `iter(…)`, `interval(…)`, or a type with `impl AsyncIterable`",
    note = "its items are `Clone + Send + Sync + 'static`: derive `Clone` for a type of your own",
    note = "a source behind a pointer is named by the place it points to: `*app.source`"
)]
pub trait AsyncIterable: 'static {
    /// What it gives. Several handlers, and retries, need an item again: put what is dear to copy
    /// into an `Arc`.
    type Item: Clone + Send + Sync + 'static;

    /// Begins. Called once, inside the runtime, when the flow starts; the stream is then read by a task of
    /// its own, and must not block the thread it is polled on (`tokio::task::spawn_blocking` does not).
    fn open(&self) -> impl Stream<Item = Self::Item> + Send + 'static;

    /// A name, equal for two values that are one source. Without it a source is known by its place
    /// (a field of the context), or by its type where that has no state (a function).
    fn identity(&self) -> Option<SourceName> {
        None
    }

    /// If it can be read again from a place: `Some(Seeks::new(self))`, beside an `impl` of [`Seekable`],
    /// through which it is then opened in place of [`open`](AsyncIterable::open).
    fn seeks(&self) -> Option<Seeks<Self::Item>> {
        None
    }

    /// Whether what handlers give to it is handled inside of their messages: true of channels and caches.
    #[doc(hidden)]
    fn receives(&self) -> Option<Receives<Self::Item>> {
        None
    }
}

#[diagnostic::do_not_recommend]
impl<F, S> AsyncIterable for F
where
    F: Fn() -> S + 'static,
    S: Stream + Send + 'static,
    S::Item: Clone + Send + Sync + 'static,
{
    type Item = S::Item;
    fn open(&self) -> impl Stream<Item = S::Item> + Send + 'static {
        self()
    }
}
