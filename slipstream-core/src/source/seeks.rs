//! Sources that can be read again from a place, and how a route holds one whose own type is
//! forgotten.
//!
//! ```text
//! impl Seekable ──Seeks::new──▶ Seeks<I> ──open──▶ Feed<I>      at the start, and again after each seek
//!                                  │
//!                                  └──▶ AnySeekable             start, control, marks: without the item's type
//! member of a group ──Seeks::of_member──▶ the same, its feed its own
//! ```
//!
//! Invariant: nothing here is called for a message; a stream is read with its own type.
use super::{
    AsyncIterable, Control, Feed, Joined, Joining, Mark, SourceName,
    feed::{Positioned, Steered},
};
use crate::{
    Result,
    position::{Position, Positions},
};
use futures::{
    Stream, StreamExt,
    future::{BoxFuture, ready},
};
use std::{fmt, future::Future, sync::Arc};

/// A source whose messages have positions, so that it can be read again from where it stood: the state that
/// its messages make is exactly right after a crash.
///
/// Such a source has a name, its [`identity`](AsyncIterable::identity), under which the store keeps the positions,
/// and says in [`seeks`](AsyncIterable::seeks) that it is one. A log of your own:
///
/// ```
/// use futures::{Stream, StreamExt, stream};
/// use slipstream_core::{AsyncIterable, Position, Positions, Seekable, Seeks};
/// use std::sync::Arc;
///
/// #[derive(Clone)]
/// struct Log(Arc<Vec<String>>);
///
/// impl AsyncIterable for Log {
///     type Item = String;
///     fn open(&self) -> impl Stream<Item = String> + Send + 'static {
///         self.open_at(Positions::default()).map(|(_, line)| line)
///     }
///     fn identity(&self) -> Option<String> {
///         Some("log".into())
///     }
///     fn seeks(&self) -> Option<Seeks<String>> {
///         Some(Seeks::new(self))
///     }
/// }
///
/// impl Seekable for Log {
///     fn open_at(&self, start: Positions) -> impl Stream<Item = (Position, String)> + Send + 'static {
///         let (log, next) = (Arc::clone(&self.0), start.next(0).unwrap_or(0));
///         let line = move |at: i64| Some((Position::new(0, at), log.get(usize::try_from(at).ok()?)?.clone()));
///         stream::iter((next..).map_while(line))
///     }
/// }
/// ```
pub trait Seekable: AsyncIterable + Clone + Send + Sync {
    /// Begins where `start` says, and says where each item stands; a partition that is not in `start`
    /// begins at its beginning. Within a partition the offsets grow. Called inside the runtime when the
    /// flow starts, and again after each seek.
    fn open_at(&self, start: Positions) -> impl Stream<Item = (Position, Self::Item)> + Send + 'static;

    /// Where partitions begin if the store has no position of this source, where that is not their
    /// beginning ("the end" as a number, say). It is stored before the first message is handled, so that a
    /// later start goes on from there and asks no more: a partition that is new by then begins at its
    /// beginning, so that nothing is lost.
    fn start(&self) -> impl Future<Output = Result<Positions>> + Send {
        ready(Ok(Positions::default()))
    }

    /// By what a program pauses it and seeks in it; without one it can be neither. The same one each time.
    fn control(&self) -> Option<&Control> {
        None
    }

    /// How many of its partitions may be handled at the same time; the messages of one are always
    /// handled one after the other.
    fn concurrency(&self) -> usize {
        1
    }

    /// Told with each commit how far it is, after the store has it. An error ends the flow. What it
    /// remembers it gives back in [`last_committed`](Seekable::last_committed).
    fn committed(&self, mark: &Mark) -> impl Future<Output = Result<()>> + Send {
        let _ = mark;
        ready(Ok(()))
    }

    /// Asked at the start for what it was last told, so that a store that was lost, put back from an
    /// older copy or swapped for another is noticed: then `Flow::on_lost_state` says what is done. `None` where it
    /// remembers nothing.
    fn last_committed(&self) -> impl Future<Output = Result<Option<Mark>>> + Send {
        ready(Ok(None))
    }
}

/// What [`AsyncIterable::seeks`] gives for a [`Seekable`] source of items `I`: the source, whose own
/// type is forgotten.
pub struct Seeks<I>(Arc<dyn Opens<I>>);

impl<I: Clone + Send + Sync + 'static> Seeks<I> {
    /// Of this source.
    pub fn new<S: Seekable<Item = I>>(source: &S) -> Self {
        Seeks(Arc::new(source.clone()))
    }

    /// Of a member of a group, which sees to its seeks itself.
    #[cfg_attr(not(feature = "kafka"), allow(dead_code))]
    pub(crate) fn of_member<S: Opens<I> + 'static>(source: S) -> Self {
        Seeks(Arc::new(source))
    }

    /// Opens the source at `start`, or where it was sought before.
    pub(crate) fn open(&self, start: Positions, joined: Option<Joined>) -> Box<dyn Feed<I>> {
        match self.0.control() {
            Some(control) if joined.is_none() => Box::new(Steered::new(self.clone(), control.clone(), start)),
            _ => self.0.open(start, joined),
        }
    }

    /// Opens the source at `start`, for a feed that sees to the seeks itself.
    pub(super) fn open_only(&self, start: Positions) -> Box<dyn Feed<I>> {
        self.0.open(start, None)
    }

    /// The source without the type of its items.
    pub(crate) fn any(&self) -> Arc<dyn AnySeekable> {
        Arc::clone(&self.0) as Arc<dyn AnySeekable>
    }
}

impl<I> Clone for Seeks<I> {
    fn clone(&self) -> Self {
        Seeks(Arc::clone(&self.0))
    }
}

impl<I> fmt::Debug for Seeks<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seeks")
    }
}

/// A [`Seekable`] source whose type and items are forgotten.
#[cfg_attr(not(feature = "rocksdb"), expect(dead_code))]
pub(crate) trait AnySeekable: Send + Sync {
    fn start(&self) -> BoxFuture<'_, Result<Positions>>;
    fn control(&self) -> Option<&Control>;
    fn concurrency(&self) -> usize;
    fn committed<'a>(&'a self, mark: &'a Mark, flow: &'a Joining) -> BoxFuture<'a, Result<()>>;
    fn last_committed(&self) -> BoxFuture<'_, Result<Option<Mark>>>;
    /// Whether it is a member of a group: then the positions from which it goes on are its own matter, by
    /// [`Standing`](super::Standing), `start` and `last_committed` are not asked, and it needs no store.
    fn is_member(&self) -> bool {
        false
    }
    /// A flow is about to read it. The name under which the store keeps its positions, where it is another
    /// than its identity.
    fn join<'a>(&'a self, flow: &'a Joining) -> BoxFuture<'a, Result<Option<SourceName>>> {
        let _ = flow;
        Box::pin(ready(Ok(None)))
    }
    /// What people call it, where that is another name than the store's.
    fn called(&self) -> Option<&str> {
        None
    }
    /// The flow has made its last commit, and its sources are not read any more.
    fn leave<'a>(&'a self, flow: &'a Joining) -> BoxFuture<'a, Result<()>> {
        let _ = flow;
        Box::pin(ready(Ok(())))
    }
}

impl<S: Seekable> AnySeekable for S {
    fn start(&self) -> BoxFuture<'_, Result<Positions>> {
        Box::pin(Seekable::start(self))
    }
    fn control(&self) -> Option<&Control> {
        Seekable::control(self)
    }
    fn concurrency(&self) -> usize {
        Seekable::concurrency(self).max(1)
    }
    fn committed<'a>(&'a self, mark: &'a Mark, _: &'a Joining) -> BoxFuture<'a, Result<()>> {
        Box::pin(Seekable::committed(self, mark))
    }
    fn last_committed(&self) -> BoxFuture<'_, Result<Option<Mark>>> {
        Box::pin(Seekable::last_committed(self))
    }
}

/// One that opens a feed of its items.
pub(crate) trait Opens<I>: AnySeekable {
    fn open(&self, start: Positions, joined: Option<Joined>) -> Box<dyn Feed<I>>;
}

impl<S: Seekable> Opens<S::Item> for S {
    fn open(&self, start: Positions, _: Option<Joined>) -> Box<dyn Feed<S::Item>> {
        Box::new(Positioned::new(self.open_at(start).fuse()))
    }
}
