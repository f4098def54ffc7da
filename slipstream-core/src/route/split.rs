//! A source dealt out to several workers, and a source that ends with others.
//!
//! ```text
//! feed ─chunk─▶ by partition ─┬─▶ at most one chunk ─▶ worker 1
//!                             └─▶ at most one chunk ─▶ worker 2
//! ```
//!
//! Invariants: a partition has one worker for as long as the flow runs, so its messages are handled one
//! after the other; what is dealt out and not yet handled is bounded; a worker that has ended ends the
//! dealing.
use super::{
    Shared,
    drive::{waits_for_the_others_of, while_empty},
};
use crate::{
    error::Fault,
    source::{Chunk, Control, Feed, Kept},
    stop::Stop,
    watch::Watch,
};
use futures::{FutureExt, future::BoxFuture};
use std::{
    collections::HashMap,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::sync::mpsc;

/// The work of dealing out, and what it is dealt out to.
type Split<I> = (BoxFuture<'static, Result<(), Fault>>, Vec<Box<dyn Feed<I>>>);

/// Deals the messages of a feed out to so many others, by partition.
pub(super) fn split<I: Clone + Send + 'static>(
    feed: Box<dyn Feed<I>>,
    workers: usize,
    control: Control,
    shared: Arc<Shared>,
    watch: Option<Arc<Watch>>,
) -> Split<I> {
    // One, since a chunk is enough to work on while the next is being read.
    let (senders, feeds): (Vec<_>, Vec<_>) = (0..workers).map(|_| mpsc::channel(1)).unzip();
    let feeds =
        feeds.into_iter().map(|parts| Box::new(Dealt { parts, in_hand: None, kept: Kept::new() }) as _);
    (deal(feed, senders, control, shared, watch).boxed(), feeds.collect())
}

async fn deal<I: Send>(
    mut feed: Box<dyn Feed<I>>,
    workers: Vec<mpsc::Sender<Part<I>>>,
    control: Control,
    shared: Arc<Shared>,
    watch: Option<Arc<Watch>>,
) -> Result<(), Fault> {
    let mut worker_of = HashMap::new();
    let mut chunk = Chunk::new();
    let (mut in_hand, mut done) = mpsc::channel(1);
    let mut asked_again = false;
    loop {
        // What is sought, or held, from here on is news.
        let state = control.state();
        let filled = poll_fn(|cx| feed.poll_chunk(&mut chunk, cx));
        tokio::select! {
            filled = while_empty(filled, watch.as_deref(), || control.is_idle()) => filled?,
            () = shared.stop.stopped() => return Ok(()),
        }
        if chunk.items.is_empty() {
            if asked_again {
                match &watch {
                    Some(watch) if !waits_for_the_others_of(watch, &control, state, &shared.stop).await => {
                        asked_again = false;
                        continue;
                    }
                    _ => return Ok(()),
                }
            }
            // What is in hand may still seek, and so may whoever holds the source.
            drop(in_hand);
            let _ = done.recv().await;
            (in_hand, done) = mpsc::channel(1);
            tokio::select! {
                () = control.resumed() => {}
                () = shared.stop.stopped() => return Ok(()),
            }
            asked_again = true;
            continue;
        }
        asked_again = false;
        let mut parts: Vec<Chunk<I>> = workers.iter().map(|_| Chunk::new()).collect();
        for (item, position) in chunk.items.drain(..).zip(chunk.positions.drain(..)) {
            // A new one goes to the worker that has had the fewest.
            let next = worker_of.len() % workers.len();
            let worker = *worker_of.entry(position.partition()).or_insert(next);
            if let Some(part) = parts.get_mut(worker) {
                part.items.push(item);
                part.positions.push(position);
            }
        }
        for (worker, mut part) in workers.iter().zip(parts) {
            if !part.items.is_empty() {
                part.as_of = chunk.as_of;
                if worker.send(Part { chunk: part, in_hand: in_hand.clone() }).await.is_err() {
                    return Ok(());
                }
            }
        }
    }
}

/// What one worker gets at a time.
struct Part<I> {
    chunk: Chunk<I>,
    /// To be dropped when all of it is done.
    in_hand: mpsc::Sender<()>,
}

/// What one worker gets.
struct Dealt<I> {
    parts: mpsc::Receiver<Part<I>>,
    /// That of the chunk being handled.
    in_hand: Option<mpsc::Sender<()>>,
    kept: Kept<I>,
}

impl<I: Clone + Send> Feed<I> for Dealt<I> {
    fn poll_chunk(&mut self, chunk: &mut Chunk<I>, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        self.in_hand = None;
        if let Some(part) = ready!(self.parts.poll_recv(cx)) {
            *chunk = part.chunk;
            self.in_hand = Some(part.in_hand);
            self.kept.take(&chunk.items);
        } else {
            // Nothing comes after it, wherever the source is sought.
            chunk.as_of = u64::MAX;
        }
        Poll::Ready(Ok(()))
    }
    fn keep(&mut self, keep: bool) {
        self.kept.keep(keep);
    }
    fn again(&mut self, at: usize) -> Option<Result<I, Fault>> {
        self.kept.again(at).map(Ok)
    }
}

/// A feed that ends when others have and nothing is left in it.
pub(super) struct UntilOthersEnd<I> {
    feed: Box<dyn Feed<I>>,
    /// `None` once they have.
    others_ended: Option<BoxFuture<'static, ()>>,
}

impl<I> UntilOthersEnd<I> {
    pub(super) fn new(feed: Box<dyn Feed<I>>, others_ended: Arc<Stop>) -> Self {
        UntilOthersEnd { feed, others_ended: Some(async move { others_ended.stopped().await }.boxed()) }
    }
}

impl<I> Feed<I> for UntilOthersEnd<I> {
    fn poll_chunk(&mut self, chunk: &mut Chunk<I>, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        // Asked before the feed, so that what was sent before the others ended is seen.
        if self.others_ended.as_mut().is_some_and(|ended| ended.as_mut().poll(cx).is_ready()) {
            self.others_ended = None;
        }
        let ended = self.others_ended.is_none();
        match self.feed.poll_chunk(chunk, cx) {
            Poll::Pending if ended => Poll::Ready(Ok(())),
            polled => polled,
        }
    }
    fn keep(&mut self, keep: bool) {
        self.feed.keep(keep);
    }
    fn again(&mut self, at: usize) -> Option<Result<I, Fault>> {
        self.feed.again(at)
    }
}
