//! What the handlers of a message give to others inside of it: to channels, and by writing to caches
//! that have handlers of their own.
//!
//! ```text
//! channel.send, cache.insert ──give──▶ Given ──take, newest first──▶ route::inner
//! ```
//!
//! Invariants: only what a handler of the flow reads is kept; the order of giving is kept over all
//! receivers; nothing is boxed for an item.
use crate::BoxError;
use std::{
    any::Any,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// What tells a channel, or a cache, from all others of the process.
pub(crate) type ReceiverId = u64;

/// An id that no other has.
pub(crate) fn unique_id() -> ReceiverId {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// What makes items of what was given to a channel or a cache.
pub(crate) trait Receiver<I>: Send + Sync {
    fn id(&self) -> ReceiverId;
    /// A place for what is given.
    fn queue(&self) -> Box<dyn Queue>;
    /// Takes the last of such a place as it is into another.
    fn take_last(&self, from: &mut dyn Any, to: &mut dyn Any);
    /// Makes an item of the last of such a place, which it takes if that can be.
    fn item(&self, of: &mut dyn Any) -> Option<Result<I, BoxError>>;
}

/// A source whose items of one flow are handled inside of the messages that gave them: a channel, and a
/// cache's changes.
pub struct Receives<I>(pub(crate) Arc<dyn Receiver<I>>);

impl<I> fmt::Debug for Receives<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Receives")
    }
}

/// Items for one receiver, in the order given.
pub(crate) trait Queue: Send {
    fn as_any(&mut self) -> &mut dyn Any;
    fn drop_last(&mut self);
}

impl<T: Send + 'static> Queue for Vec<T> {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
    fn drop_last(&mut self) {
        self.pop();
    }
}

/// What was given and is not yet being handled.
#[derive(Default)]
pub(crate) struct Given {
    receivers: Vec<(ReceiverId, Box<dyn Queue>)>,
    /// The places of the receivers, one for each item.
    order: Vec<usize>,
}

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Given").field("items", &self.order.len()).finish_non_exhaustive()
    }
}

impl Given {
    /// For these receivers, whose places are their order here.
    pub(crate) fn new(receivers: impl Iterator<Item = (ReceiverId, Box<dyn Queue>)>) -> Self {
        Given { receivers: receivers.collect(), order: Vec::new() }
    }

    /// Whether a handler of the flow reads what is given to it.
    #[cfg_attr(not(feature = "rocksdb"), allow(dead_code, reason = "a channel gives without asking"))]
    #[inline]
    pub(crate) fn is_read(&self, id: ReceiverId) -> bool {
        self.receivers.iter().any(|(known, _)| *known == id)
    }

    /// Gives an item, if a handler of the flow reads it.
    pub(crate) fn give<T: Send + 'static>(&mut self, id: ReceiverId, item: T) {
        let receivers = self.receivers.iter_mut().enumerate();
        let mut queues = receivers.filter(|(_, (known, _))| *known == id);
        if let Some((place, (_, queue))) = queues.next()
            && let Some(queue) = queue.as_any().downcast_mut::<Vec<T>>()
        {
            queue.push(item);
            self.order.push(place);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// Takes the newest item: `take` has it as the last of its receiver's queue, a `Vec`.
    pub(crate) fn take_last(&mut self, take: impl FnOnce(usize, &mut dyn Any)) {
        if let Some(place) = self.order.pop()
            && let Some((_, queue)) = self.receivers.get_mut(place)
        {
            take(place, queue.as_any());
        }
    }

    /// Forgets what was given after there were `len` items.
    pub(crate) fn truncate(&mut self, len: usize) {
        while self.order.len() > len
            && let Some(place) = self.order.pop()
        {
            if let Some((_, queue)) = self.receivers.get_mut(place) {
                queue.drop_last();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_taken_newest_first_over_all_receivers_and_forgotten_from_the_end() {
        let (numbers, words, other) = (unique_id(), unique_id(), unique_id());
        let queues: [(_, Box<dyn Queue>); 2] =
            [(numbers, Box::<Vec<u32>>::default()), (words, Box::<Vec<&str>>::default())];
        let mut given = Given::new(queues.into_iter());
        given.give(numbers, 1_u32);
        given.give(words, "two");
        given.give(other, "nobody reads this");
        given.give(numbers, 3_u32);
        given.give(numbers, 4_u32);
        assert!(given.is_read(words) && !given.is_read(other));
        given.truncate(3);
        let mut taken = Vec::new();
        while given.len() > 0 {
            given.take_last(|place, queue| {
                let number = queue.downcast_mut::<Vec<u32>>().and_then(Vec::pop).map(|n| n.to_string());
                let word = queue.downcast_mut::<Vec<&str>>().and_then(Vec::pop).map(str::to_owned);
                taken.push((place, number.or(word)));
            });
        }
        let expected = [(0, "3"), (1, "two"), (0, "1")].map(|(place, item)| (place, Some(item.to_owned())));
        assert_eq!(taken, expected);
    }
}
