//! How items travel from a source to its route: in chunks, so that one dynamic call, one waking
//! and one setting of the transaction serve many messages.
//!
//! Invariant: what a chunk holds was fetched at one state of the source's control, which the chunk says: no
//! chunk mixes what came before a seek with what came after it.
use super::{Control, Seeks};
use crate::{
    error::Fault,
    position::{Position, Positions},
};
use futures::{Stream, stream::FusedStream, task::AtomicWaker};
use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

/// How many items a chunk holds at the most. Smaller, and the cost per chunk (about 10 ns a
/// message at 1) is felt; larger brings nothing measurable and lets a busy source hold its worker longer.
pub(crate) const CHUNK: usize = 128;

/// Some items, and beside them, where the source has positions, the position of each.
#[derive(Debug)]
pub(crate) struct Chunk<I> {
    pub(crate) items: Vec<I>,
    pub(crate) positions: Vec<Position>,
    /// The state of the source's control when it was fetched; 0 without one.
    pub(crate) as_of: u64,
}

impl<I> Chunk<I> {
    pub(crate) fn new() -> Self {
        Chunk { items: Vec::new(), positions: Vec::new(), as_of: 0 }
    }
}

/// An open source whose own type is forgotten.
pub(crate) trait Feed<I>: Send {
    /// Adds what is ready to an empty `chunk`, at most [`CHUNK`]. Ready with nothing added: it has
    /// ended. An error stands where the next item would.
    fn poll_chunk(&mut self, chunk: &mut Chunk<I>, cx: &mut Context<'_>) -> Poll<Result<(), Fault>>;
    /// From the next chunk on, keeps a copy of each item until the chunk after it, or does not.
    fn keep(&mut self, keep: bool);
    /// The item number `at` of the last chunk once more; `None` where it was not kept.
    fn again(&mut self, at: usize) -> Option<Result<I, Fault>>;
}

/// The items of the last chunk, where they are kept for a message that may run again.
pub(crate) struct Kept<I> {
    items: Vec<I>,
    keeps: bool,
}

impl<I: Clone> Kept<I> {
    pub(crate) fn new() -> Self {
        Kept { items: Vec::new(), keeps: false }
    }
    pub(crate) fn keep(&mut self, keep: bool) {
        self.keeps = keep;
    }
    #[inline]
    pub(crate) fn take(&mut self, items: &[I]) {
        self.items.clear();
        if self.keeps {
            self.items.extend_from_slice(items);
        }
    }
    pub(crate) fn again(&self, at: usize) -> Option<I> {
        self.items.get(at).cloned()
    }
}

/// A source without positions.
pub(crate) struct Plain<S: Stream> {
    stream: Pin<Box<S>>,
    /// How many items a chunk has.
    most: usize,
    kept: Kept<S::Item>,
}

impl<S: Stream<Item: Clone>> Plain<S> {
    pub(crate) fn new(stream: S) -> Self {
        Plain { stream: Box::pin(stream), most: CHUNK, kept: Kept::new() }
    }
    /// An item at a time, so that what others may still have is not taken before it is handled.
    pub(crate) fn one_by_one(stream: S) -> Self {
        Plain { most: 1, ..Plain::new(stream) }
    }
}

impl<S: FusedStream<Item: Clone + Send> + Send> Feed<S::Item> for Plain<S> {
    fn poll_chunk(&mut self, chunk: &mut Chunk<S::Item>, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        ready!(fill(self.stream.as_mut(), cx, self.most, &mut chunk.items, |item, items| items.push(item)));
        self.kept.take(&chunk.items);
        Poll::Ready(Ok(()))
    }
    fn keep(&mut self, keep: bool) {
        self.kept.keep(keep);
    }
    fn again(&mut self, at: usize) -> Option<Result<S::Item, Fault>> {
        self.kept.again(at).map(Ok)
    }
}

/// A source with positions.
pub(crate) struct Positioned<S, I> {
    stream: Pin<Box<S>>,
    kept: Kept<I>,
}

impl<I: Clone, S> Positioned<S, I> {
    pub(crate) fn new(stream: S) -> Self {
        Positioned { stream: Box::pin(stream), kept: Kept::new() }
    }
}

impl<I: Clone + Send, S: FusedStream<Item = (Position, I)> + Send> Feed<I> for Positioned<S, I> {
    fn poll_chunk(&mut self, chunk: &mut Chunk<I>, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        let Chunk { items, positions, .. } = chunk;
        ready!(fill(self.stream.as_mut(), cx, CHUNK, items, |(position, item), items| {
            positions.push(position);
            items.push(item);
        }));
        self.kept.take(&chunk.items);
        Poll::Ready(Ok(()))
    }
    fn keep(&mut self, keep: bool) {
        self.kept.keep(keep);
    }
    fn again(&mut self, at: usize) -> Option<Result<I, Fault>> {
        self.kept.again(at).map(Ok)
    }
}

/// A source with positions that can be sought: it is opened again after each seek.
pub(crate) struct Steered<I> {
    seeks: Seeks<I>,
    control: Control,
    /// Woken by a seek.
    waker: Arc<AtomicWaker>,
    feed: Box<dyn Feed<I>>,
    /// Where it would go on after what it has read.
    read: Positions,
    /// Up to which state of the control it has followed.
    as_of: u64,
    keeps: bool,
}

impl<I: Clone + Send + Sync + 'static> Steered<I> {
    /// Opens at `start`, or where the source was sought before.
    pub(super) fn new(seeks: Seeks<I>, control: Control, start: Positions) -> Self {
        let (waker, mut read) = (Arc::default(), start);
        let as_of = control.opening(&mut read, &waker);
        let feed = seeks.open_only(read.clone());
        Steered { seeks, control, waker, feed, read, as_of, keeps: false }
    }

    /// Goes to where the source was sought since it was last asked.
    #[cold]
    fn steer(&mut self) {
        let (is_sought, as_of) = self.control.take_sought(&mut self.read, self.as_of);
        self.as_of = as_of;
        if is_sought {
            self.feed = self.seeks.open_only(self.read.clone());
            self.feed.keep(self.keeps);
        }
    }

    /// Remembers how far each partition was read.
    fn note(&mut self, positions: &[Position]) {
        for run in positions.chunk_by(|one, next| one.partition() == next.partition()) {
            if let Some(last) = run.last() {
                self.read.set(last.partition(), last.next(), last.check());
            }
        }
    }
}

impl<I: Clone + Send + Sync + 'static> Feed<I> for Steered<I> {
    fn poll_chunk(&mut self, chunk: &mut Chunk<I>, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        loop {
            if self.control.state() != self.as_of {
                self.steer();
            }
            chunk.as_of = self.as_of;
            if let Poll::Ready(filled) = self.feed.poll_chunk(chunk, cx) {
                self.note(&chunk.positions);
                return Poll::Ready(filled);
            }
            self.waker.register(cx.waker());
            // A seek may have come before the waker was there.
            if self.control.state() == self.as_of {
                return Poll::Pending;
            }
        }
    }
    fn keep(&mut self, keep: bool) {
        self.keeps = keep;
        self.feed.keep(keep);
    }
    fn again(&mut self, at: usize) -> Option<Result<I, Fault>> {
        self.feed.again(at)
    }
}

fn fill<S: FusedStream, I>(
    mut stream: Pin<&mut S>,
    cx: &mut Context<'_>,
    most: usize,
    items: &mut Vec<I>,
    mut push: impl FnMut(S::Item, &mut Vec<I>),
) -> Poll<()> {
    while items.len() < most {
        match stream.as_mut().poll_next(cx) {
            Poll::Ready(Some(item)) => push(item, items),
            Poll::Pending if items.is_empty() => return Poll::Pending,
            // An end in the middle of a chunk is asked for once more: streams come here fused.
            Poll::Ready(None) | Poll::Pending => break,
        }
    }
    Poll::Ready(())
}
