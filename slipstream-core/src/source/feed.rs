//! How items travel from a source to its route: in chunks, so that one dynamic call, one waking
//! and one setting of the transaction serve many messages.
use crate::{error::Fault, position::Position};
use futures::stream::FusedStream;
use std::{
    pin::Pin,
    task::{Context, Poll},
};

/// How many items a chunk holds at the most. Smaller, and the cost per chunk (about 10 ns a
/// message at 1) is felt; larger brings nothing measurable and lets a busy source hold its worker longer.
pub(crate) const CHUNK: usize = 128;

/// Some items, and beside them, where the source has positions, the position of each.
#[derive(Debug)]
pub(crate) struct Chunk<I> {
    pub(crate) items: Vec<I>,
    pub(crate) positions: Vec<Position>,
}

impl<I> Chunk<I> {
    pub(crate) fn new() -> Self {
        Chunk { items: Vec::new(), positions: Vec::new() }
    }
}

/// An open source whose own type is forgotten.
pub(crate) trait Feed<I>: Send {
    /// Adds what is ready to an empty `chunk`, at most [`CHUNK`]. Ready with nothing added: it has
    /// ended. An error stands where the next item would.
    fn poll_chunk(&mut self, chunk: &mut Chunk<I>, cx: &mut Context<'_>) -> Poll<Result<(), Fault>>;
}

/// A source without positions.
pub(crate) struct Plain<S>(pub(crate) Pin<Box<S>>);

impl<S: FusedStream + Send> Feed<S::Item> for Plain<S> {
    fn poll_chunk(&mut self, chunk: &mut Chunk<S::Item>, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        fill(self.0.as_mut(), cx, &mut chunk.items, |item, items| items.push(item))
    }
}

/// A source with positions.
pub(crate) struct Positioned<S>(pub(crate) Pin<Box<S>>);

impl<I, S: FusedStream<Item = (Position, I)> + Send> Feed<I> for Positioned<S> {
    fn poll_chunk(&mut self, chunk: &mut Chunk<I>, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        let Chunk { items, positions } = chunk;
        fill(self.0.as_mut(), cx, items, |(position, item), items| {
            positions.push(position);
            items.push(item);
        })
    }
}

fn fill<S: FusedStream, I>(
    mut stream: Pin<&mut S>,
    cx: &mut Context<'_>,
    items: &mut Vec<I>,
    mut push: impl FnMut(S::Item, &mut Vec<I>),
) -> Poll<Result<(), Fault>> {
    while items.len() < CHUNK {
        match stream.as_mut().poll_next(cx) {
            Poll::Ready(Some(item)) => push(item, items),
            Poll::Pending if items.is_empty() => return Poll::Pending,
            // An end in the middle of a chunk is asked for once more: streams come here fused.
            Poll::Ready(None) | Poll::Pending => break,
        }
    }
    Poll::Ready(Ok(()))
}
