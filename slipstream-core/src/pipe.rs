//! Pipes: functions from stream to stream, applied before a handler. A pipe sees the source's
//! items one at a time, inside the message they belong to.
//!
//! ```text
//! route ──put──▶ Inlet ──Items──▶ the user's stream ──poll──▶ handler
//! ```
//!
//! Invariants: an item is put only when the stream has asked for one, so the stream is never ahead
//! of the route; a message is done when the stream asks for the next item.
use futures::{Stream, StreamExt, stream::BoxStream};
use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

/// What a pipe is given: the stream of the source's items, or of those of the pipe before it.
///
/// ```
/// use futures::{Stream, StreamExt};
/// use slipstream_core::Items;
///
/// fn pairwise(items: Items<i64>) -> impl Stream<Item = (i64, i64)> {
///     items.scan(None, |before, item| {
///         let pair = before.replace(item).map(|before| (before, item));
///         std::future::ready(Some(pair))
///     })
///     .filter_map(std::future::ready)
/// }
/// ```
///
/// A generic function does as well: `fn pairwise<S: Stream<Item = i64>>(items: S) -> …`.
///
/// What a pipe remembers is in memory only: what must outlive the process belongs in a cache. What
/// it gives counts for the last item it took, so it should not read ahead (`buffered`, `peekable`):
/// after a crash those items would be skipped. Where a pipe's stream ends, its handler is done.
pub struct Items<I>(BoxStream<'static, I>);

impl<I> Stream for Items<I> {
    type Item = I;
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<I>> {
        self.0.poll_next_unpin(cx)
    }
}

impl<I> fmt::Debug for Items<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Items").finish_non_exhaustive()
    }
}

/// One or several pipes, in the order written: makes a stream of `J` from one of `I`.
pub(crate) type Pipes<I, J> = Arc<dyn Fn(Items<I>) -> Items<J> + Send + Sync>;

/// A pipe whose stream's type is forgotten.
pub(crate) fn pipe<I, S>(function: impl Fn(Items<I>) -> S + Send + Sync + 'static) -> Pipes<I, S::Item>
where
    S: Stream + Send + 'static,
{
    Arc::new(move |items| Items(function(items).boxed()))
}

/// Two pipes, one after the other.
pub(crate) fn chain<I: 'static, J: 'static, K: 'static>(
    first: Pipes<I, J>,
    second: Pipes<J, K>,
) -> Pipes<I, K> {
    Arc::new(move |items| second(first(items)))
}

/// What passes from the route to the pipe's stream: at most one item.
struct Inlet<I> {
    item: Option<I>,
    ended: bool,
    /// The stream has asked, and found nothing, since the last item was put.
    asked: bool,
    waker: Option<Waker>,
}

struct FromInlet<I>(Arc<Mutex<Inlet<I>>>);

impl<I> Stream for FromInlet<I> {
    type Item = I;
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<I>> {
        let mut inlet = lock(&self.0);
        if let Some(item) = inlet.item.take() {
            return Poll::Ready(Some(item));
        }
        if inlet.ended {
            return Poll::Ready(None);
        }
        inlet.asked = true;
        match &mut inlet.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

/// A running pipe, seen from the route.
pub(crate) struct Piped<I, J> {
    inlet: Arc<Mutex<Inlet<I>>>,
    stream: Items<J>,
    ended: bool,
}

/// What a pipe answers when it is asked to go on.
pub(crate) enum Flowed<J> {
    /// It gives this.
    Gave(J),
    /// It wants the next item.
    Asks,
    /// Its stream has ended.
    Ended,
}

impl<I: Send + 'static, J> Piped<I, J> {
    pub(crate) fn new(pipes: &Pipes<I, J>) -> Self {
        let inlet = Arc::new(Mutex::new(Inlet { item: None, ended: false, asked: false, waker: None }));
        let stream = pipes(Items(FromInlet(Arc::clone(&inlet)).boxed()));
        Piped { inlet, stream, ended: false }
    }
    /// Puts an item where the stream will find it.
    pub(crate) fn put(&mut self, item: I, cx: &Context<'_>) {
        let mut inlet = lock(&self.inlet);
        inlet.item = Some(item);
        inlet.asked = false;
        // Some combinators poll what is inside them only when that has woken them; the task itself,
        // which is about to poll the stream, need not be.
        let waker = inlet.waker.take_if(|waker| !waker.will_wake(cx.waker()));
        drop(inlet);
        waker.into_iter().for_each(Waker::wake);
    }
    /// The source has ended: the stream gets to know it when it asks next.
    pub(crate) fn end(&mut self) {
        let mut inlet = lock(&self.inlet);
        inlet.ended = true;
        inlet.asked = false;
        let waker = inlet.waker.take();
        drop(inlet);
        waker.into_iter().for_each(Waker::wake);
    }
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }
    /// Goes on until the stream gives, asks or ends; pending while it waits for something else.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Flowed<J>> {
        if self.ended {
            return Poll::Ready(Flowed::Ended);
        }
        match self.stream.poll_next_unpin(cx) {
            Poll::Ready(Some(item)) => Poll::Ready(Flowed::Gave(item)),
            Poll::Ready(None) => {
                self.ended = true;
                Poll::Ready(Flowed::Ended)
            }
            Poll::Pending if lock(&self.inlet).asked => Poll::Ready(Flowed::Asks),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// A panic in a user's stream cannot leave the inlet half changed.
fn lock<I>(inlet: &Mutex<Inlet<I>>) -> MutexGuard<'_, Inlet<I>> {
    inlet.lock().unwrap_or_else(PoisonError::into_inner)
}
