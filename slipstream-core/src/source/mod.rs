//! Sources: what can be opened and gives items until it ends. A source is opened once per flow,
//! however many handlers read it, so a flow must be able to tell that two are the same one.
//!
//! ```text
//! AsyncIterable ──open──▶ Stream ──chunks──▶ route
//! ```
mod feed;
mod identity;
mod iter;
mod replay;

pub(crate) use feed::{Chunk, Feed, Plain, Positioned};
pub(crate) use identity::Identity;
pub use identity::SourceName;
pub use iter::{Interval, Iter, interval, iter};
pub use replay::{Json, Line, Replay, ReplayError, replay};

use crate::position::{Position, Positions};
use futures::{Stream, StreamExt};

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
/// and what its messages had already written is kept.
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

    /// Whether it has positions, so that it can be read again from where it stood: then [`open_at`]
    /// is called in place of [`open`], and an [`identity`] is needed, under which the store keeps the
    /// positions.
    ///
    /// [`open`]: AsyncIterable::open
    /// [`open_at`]: AsyncIterable::open_at
    /// [`identity`]: AsyncIterable::identity
    const POSITIONS: bool = false;

    /// Begins where the last commit left each partition, and says where each item stands. Within a
    /// partition the offsets grow. Something like:
    ///
    /// ```
    /// use futures::{Stream, stream};
    /// use slipstream_core::{AsyncIterable, Position, Positions};
    ///
    /// struct Log(Vec<String>);
    ///
    /// impl AsyncIterable for Log {
    ///     type Item = String;
    ///     const POSITIONS: bool = true;
    ///     fn open(&self) -> impl Stream<Item = String> + Send + 'static {
    ///         stream::iter(self.0.clone())
    ///     }
    ///     fn open_at(&self, start: Positions) -> impl Stream<Item = (Position, String)> + Send + 'static {
    ///         let next = start.next(0).unwrap_or(0);
    ///         let lines = self.0.clone().into_iter().skip(usize::try_from(next).unwrap_or(0));
    ///         stream::iter((next..).zip(lines).map(|(offset, line)| (Position::new(0, offset), line)))
    ///     }
    ///     fn identity(&self) -> Option<String> {
    ///         Some("log".into())
    ///     }
    /// }
    /// ```
    fn open_at(&self, start: Positions) -> impl Stream<Item = (Position, Self::Item)> + Send + 'static {
        let _ = start;
        self.open()
            .enumerate()
            .map(|(at, item)| (Position::new(0, i64::try_from(at).unwrap_or(i64::MAX)), item))
    }

    /// A name, equal for two values that are one source. Without it a source is known by its place
    /// (a field of the context), or by its type where that has no state (a function).
    fn identity(&self) -> Option<SourceName> {
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
