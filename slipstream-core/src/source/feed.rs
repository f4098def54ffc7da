//! How items travel from a source to its route: in chunks, so that one dynamic call, one waking
//! and one setting of the transaction serve many messages.
use crate::error::Fault;
use futures::stream::FusedStream;
use std::{
    pin::Pin,
    task::{Context, Poll},
};

/// How many items a chunk holds at the most. Smaller, and the cost per chunk (about 10 ns a
/// message at 1) is felt; larger brings nothing measurable and lets a busy source hold its worker longer.
pub(crate) const CHUNK: usize = 128;

/// An open source whose own type is forgotten.
pub(crate) trait Feed<I>: Send {
    /// Adds what is ready to an empty `chunk`, at most [`CHUNK`]. Ready with nothing added: it has
    /// ended. An error stands where the next item would.
    fn poll_chunk(&mut self, chunk: &mut Vec<I>, cx: &mut Context<'_>) -> Poll<Result<(), Fault>>;
}

impl<S: FusedStream + Send> Feed<S::Item> for Pin<Box<S>> {
    fn poll_chunk(&mut self, chunk: &mut Vec<S::Item>, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        while chunk.len() < CHUNK {
            match self.as_mut().poll_next(cx) {
                Poll::Ready(Some(item)) => chunk.push(item),
                Poll::Pending if chunk.is_empty() => return Poll::Pending,
                // An end in the middle of a chunk is asked for once more: streams come here fused.
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        Poll::Ready(Ok(()))
    }
}
