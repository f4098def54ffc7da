//! Channels: what one handler gives out, handled by others inside of the same message; and a way into a
//! flow from outside of it.
//!
//! ```text
//! in a message:  handler ──send──▶ the transaction ──▶ the channel's handlers, before the next handler
//! elsewhere:     task ──send, waits for room──▶ at most 128 ──▶ the channel's handlers, a message each
//! ```
//!
//! Invariants: what is given in a message is handled with it or dropped with it; what waits from outside
//! is bounded.
use crate::{
    AsyncIterable, BoxError, Sink, SourceName,
    given::{Queue, Receiver, ReceiverId, Receives, unique_id},
    transaction,
};
use futures::Stream;
use std::{any::Any, fmt, marker::PhantomData, sync::Arc};

/// How many items from outside may wait. More, and a flow that stops leaves more undone; fewer, and each
/// sender waits for the handlers.
const ROOM: usize = 128;

/// Hands what one handler gives out to others in the process: a sink for the one, a source for the others.
///
/// ```
/// use slipstream_core::{Channel, Flow, iter, print, source};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> slipstream_core::Result<()> {
/// let words = Channel::new();
/// let lines = iter(["to be or", "not to be"]);
/// let split = source(&lines).handle(|line| line.split(' ').collect::<Vec<_>>()).sink(&words);
/// let show = source(&words).handle(Some).sink(&print);
/// Flow::new().with(split).with(show).run(()).await
/// # }
/// ```
///
/// **In a message** what is sent belongs to the message. Its handlers run as soon as the handler that
/// sent it is done, before the next handler of the message, and what they give to channels before
/// anything else. All of it becomes visible at once, or not at all. Where no handler of the flow reads the
/// channel, what is sent is dropped. A channel may feed itself, as long as that comes to an end.
///
/// **From outside** (a task, a web server) each item is a message of its own. It cannot be read again: what
/// is not yet handled and committed is lost when the process crashes. What waits when a flow is stopped waits
/// for the next one.
///
/// As a source it ends when the flow's other sources have ended and nothing is left in it; in a flow that
/// reads channels and caches alone, when it is [closed](Channel::close). A pipe between a channel and its
/// handler may see an item twice, since a message may run again: what must be exact belongs in a cache.
///
/// Where a channel with a pipe feeds another one with a pipe, mount the handlers of the first one first: at the
/// end the pipes end in that order.
///
/// A clone is another handle on the same channel.
pub struct Channel<T> {
    inner: Arc<Inner<T>>,
}

struct Inner<T> {
    id: ReceiverId,
    outside: async_channel::Sender<T>,
    waiting: async_channel::Receiver<T>,
}

/// The channel is closed, and takes nothing more; here is the item.
#[derive(thiserror::Error, Clone, Copy, PartialEq, Eq)]
#[error("the channel is closed: what was sent is not handled")]
pub struct Closed<T>(pub T);

impl<T> fmt::Debug for Closed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Closed")
    }
}

impl<T> Channel<T> {
    /// A new channel.
    #[must_use]
    pub fn new() -> Self {
        let (outside, waiting) = async_channel::bounded(ROOM);
        Channel { inner: Arc::new(Inner { id: unique_id(), outside, waiting }) }
    }
}

impl<T: Send + 'static> Channel<T> {
    /// Gives an item to the channel's handlers. In a message it returns at once; elsewhere when there is
    /// room for it, which may be never while no flow reads the channel. Two flows that read one channel
    /// share what comes from outside.
    ///
    /// # Errors
    /// From outside of a message, when the channel is closed.
    ///
    /// # Cancel safety
    /// Dropped while it waits, it has sent nothing.
    pub async fn send(&self, item: T) -> Result<(), Closed<T>> {
        match self.give(item) {
            Ok(()) => Ok(()),
            Err(item) => self.inner.outside.send(item).await.map_err(|error| Closed(error.0)),
        }
    }

    /// Takes nothing more from outside. A flow that reads the channel handles what waits in it.
    pub fn close(&self) {
        self.inner.outside.close();
    }

    /// Gives an item to the message in hand, if there is one.
    fn give(&self, item: T) -> Result<(), T> {
        let mut item = Some(item);
        transaction::with(|current| {
            if let Some(transaction) = current
                && let Some(item) = item.take()
            {
                transaction.given.give(self.inner.id, item);
            }
        });
        item.map_or(Ok(()), Err)
    }
}

impl<T> Clone for Channel<T> {
    fn clone(&self) -> Self {
        Channel { inner: Arc::clone(&self.inner) }
    }
}

impl<T> Default for Channel<T> {
    fn default() -> Self {
        Channel::new()
    }
}

impl<T> fmt::Debug for Channel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel").field("id", &self.inner.id).finish_non_exhaustive()
    }
}

impl<T: Clone + Send + Sync + 'static> AsyncIterable for Channel<T> {
    type Item = T;
    fn open(&self) -> impl Stream<Item = T> + Send + 'static {
        self.inner.waiting.clone()
    }
    fn identity(&self) -> Option<SourceName> {
        Some(format!("channel {}", self.inner.id))
    }
    fn receives(&self) -> Option<Receives<T>> {
        Some(Receives(Arc::new(Gifts { id: self.inner.id, items: PhantomData })))
    }
}

impl<T: Clone + Send + Sync + 'static> Sink<T> for Channel<T> {
    const WAITS: bool = false;
    fn stage(&self, output: &T) -> Result<(), BoxError> {
        // A sink stages inside of a message only.
        let _ = self.give(output.clone());
        Ok(())
    }
}

/// What handlers gave to a channel: items as they are.
struct Gifts<T> {
    id: ReceiverId,
    items: PhantomData<fn() -> T>,
}

impl<T: Send + 'static> Receiver<T> for Gifts<T> {
    fn id(&self) -> ReceiverId {
        self.id
    }
    fn queue(&self) -> Box<dyn Queue> {
        Box::<Vec<T>>::default()
    }
    fn take_last(&self, from: &mut dyn Any, to: &mut dyn Any) {
        if let (Some(from), Some(to)) = (from.downcast_mut::<Vec<T>>(), to.downcast_mut::<Vec<T>>()) {
            to.extend(from.pop());
        }
    }
    fn item(&self, of: &mut dyn Any) -> Option<Result<T, BoxError>> {
        of.downcast_mut::<Vec<T>>()?.pop().map(Ok)
    }
}
