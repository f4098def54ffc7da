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
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
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
    /// One of those below. News is told, and taken, under the slot's lock.
    state: AtomicU8,
    slot: Mutex<Slot<I>>,
}

struct Slot<I> {
    item: Option<I>,
    ended: bool,
    /// Of the route's task, which polls the stream itself when it has put an item.
    route: Option<Waker>,
    /// Of whatever else has asked.
    waker: Option<Waker>,
}

/// The stream has not looked since the route put an item, or the end.
const NEWS: u8 = 0;
/// It has taken the item.
const TAKEN: u8 = 1;
/// It has asked for the next, in a poll of the route's.
const ASKED: u8 = 2;
/// The same, but with another waker: perhaps in another task, while the route does something else.
const ASKED_ELSEWHERE: u8 = 3;

impl<I> Inlet<I> {
    fn new() -> Self {
        let slot = Slot { item: None, ended: false, route: None, waker: None };
        Inlet { state: AtomicU8::new(NEWS), slot: Mutex::new(slot) }
    }
    // A panic in a user's stream cannot leave the slot half changed.
    fn slot(&self) -> MutexGuard<'_, Slot<I>> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The stream's end of the inlet.
struct FromInlet<I> {
    inlet: Arc<Inlet<I>>,
    /// The route's waker, if the stream was last polled with it.
    own: Option<Waker>,
}

impl<I> FromInlet<I> {
    /// Asks for the item after one that it took, both in polls of the route's: what is asked once
    /// for each message, so without the lock.
    #[inline]
    fn asks_again(&self, cx: &Context<'_>) -> bool {
        let state = &self.inlet.state;
        // A look first: an exchange that fails costs as much as one that does not.
        state.load(Ordering::Acquire) == TAKEN
            && is(&self.own, cx)
            && state.compare_exchange(TAKEN, ASKED, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

impl<I> Stream for FromInlet<I> {
    type Item = I;
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<I>> {
        if self.asks_again(cx) {
            return Poll::Pending;
        }
        let FromInlet { inlet, own } = &mut *self;
        let mut slot = inlet.slot();
        let is_own = is(&slot.route, cx);
        if is_own {
            remember(own, cx);
        } else {
            *own = None;
            remember(&mut slot.waker, cx);
        }
        if let Some(item) = slot.item.take() {
            inlet.state.store(TAKEN, Ordering::Release);
            return Poll::Ready(Some(item));
        }
        if slot.ended {
            return Poll::Ready(None);
        }
        inlet.state.store(if is_own { ASKED } else { ASKED_ELSEWHERE }, Ordering::Release);
        // The route may wait for nothing else than that this asks.
        let route = if is_own { None } else { slot.route.clone() };
        drop(slot);
        route.into_iter().for_each(Waker::wake);
        Poll::Pending
    }
}

#[inline]
fn is(waker: &Option<Waker>, cx: &Context<'_>) -> bool {
    waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()))
}

#[inline]
fn remember(place: &mut Option<Waker>, cx: &Context<'_>) {
    if !is(place, cx) {
        *place = Some(cx.waker().clone());
    }
}

/// A running pipe, seen from the route.
pub(crate) struct Piped<I, J> {
    inlet: Arc<Inlet<I>>,
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
        let inlet = Arc::new(Inlet::new());
        let from_inlet = FromInlet { inlet: Arc::clone(&inlet), own: None };
        Piped { inlet, stream: pipes(Items(from_inlet.boxed())), ended: false }
    }
    /// Puts an item where the stream will find it.
    pub(crate) fn put(&mut self, item: I, cx: &Context<'_>) {
        let mut slot = self.inlet.slot();
        slot.item = Some(item);
        remember(&mut slot.route, cx);
        self.inlet.state.store(NEWS, Ordering::Release);
        // Some combinators poll what is inside them only when that has woken them; the task itself,
        // which is about to poll the stream, need not be.
        let waker = slot.waker.take_if(|waker| !waker.will_wake(cx.waker()));
        drop(slot);
        waker.into_iter().for_each(Waker::wake);
    }
    /// The source has ended: the stream gets to know it when it asks next.
    pub(crate) fn end(&mut self) {
        let mut slot = self.inlet.slot();
        slot.ended = true;
        self.inlet.state.store(NEWS, Ordering::Release);
        let waker = slot.waker.take();
        drop(slot);
        waker.into_iter().for_each(Waker::wake);
    }
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }
    /// Goes on until the stream gives, asks or ends; pending while it waits for something else.
    #[inline]
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Flowed<J>> {
        if self.ended {
            return Poll::Ready(Flowed::Ended);
        }
        loop {
            let before = self.inlet.state.load(Ordering::Acquire);
            match self.stream.poll_next_unpin(cx) {
                Poll::Ready(Some(item)) => return Poll::Ready(Flowed::Gave(item)),
                Poll::Ready(None) => {
                    self.ended = true;
                    return Poll::Ready(Flowed::Ended);
                }
                Poll::Pending => match self.inlet.state.load(Ordering::Acquire) {
                    ASKED => return Poll::Ready(Flowed::Asks),
                    ASKED_ELSEWHERE if before == ASKED_ELSEWHERE => return Poll::Ready(Flowed::Asks),
                    // What was given before it asked may have come just after the look at the stream.
                    ASKED_ELSEWHERE => {}
                    _ => return Poll::Pending,
                },
            }
        }
    }
}
