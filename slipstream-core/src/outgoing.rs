//! What a message sends out when it is published: to topics.
//!
//! ```text
//! sink topic, topic.send ──put──▶ Outgoing ──published──▶ hand_over ─▶ Outbox ─▶ broker
//!                                    │ rolled back                       ▲
//!                                    ▼                                   └── flush, before each commit
//!                                 nothing
//! ```
//!
//! Invariants: nothing leaves before the message is published, and then all of it does, in the order of the
//! calls; handing over cannot fail and does not wait; nothing is boxed for a record.
use crate::BoxError;
use futures::future::BoxFuture;
use std::{any::Any, fmt, sync::Arc};

/// Takes what messages send out.
pub(crate) trait Outbox: Send + Sync {
    /// What tells it from others of the process: see [`unique_id`](crate::given::unique_id).
    fn id(&self) -> u64;
    /// A place for what one message at a time sends to it.
    fn queue(self: Arc<Self>) -> Box<dyn OutQueue>;
    /// Whether another message may begin: it has not to keep back what was handed over.
    fn has_room(&self) -> bool;
    /// Waits until it has.
    fn room(&self) -> BoxFuture<'_, ()>;
    /// Waits until all that was handed over before the call is where a crash of this process does not lose it.
    fn flush(&self) -> BoxFuture<'_, Result<(), BoxError>>;
}

impl fmt::Debug for dyn Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox").field("id", &self.id()).finish()
    }
}

/// Records for one outbox, in the order of the calls.
pub(crate) trait OutQueue: Send {
    fn as_any(&mut self) -> &mut dyn Any;
    /// Forgets the newest record.
    fn drop_last(&mut self);
    /// Gives all records to the outbox, oldest first, and is empty then.
    fn hand_over(&mut self);
}

/// What the message in hand has put into outboxes.
#[derive(Default)]
pub(crate) struct Outgoing {
    outboxes: Vec<Known>,
    /// The places of the outboxes, one for each record.
    order: Vec<usize>,
    /// The message's outputs were sent before, by whoever had its partition then.
    is_withheld: bool,
}

struct Known {
    outbox: Arc<dyn Outbox>,
    queue: Box<dyn OutQueue>,
    /// The commits know that they have to flush it.
    is_told: bool,
}

impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outgoing").field("records", &self.order.len()).finish_non_exhaustive()
    }
}

impl Outgoing {
    /// Puts a record into the queue of `outbox`, a `Q`, by `put`: exactly one, or an error and none. Nothing
    /// where the message's outputs are withheld.
    #[cfg_attr(not(feature = "kafka"), allow(dead_code))]
    pub(crate) fn put<Q: OutQueue + 'static>(
        &mut self,
        outbox: &Arc<impl Outbox + 'static>,
        put: impl FnOnce(&mut Q) -> Result<(), BoxError>,
    ) -> Result<(), BoxError> {
        if self.is_withheld {
            return Ok(());
        }
        let id = outbox.id();
        let place = match self.outboxes.iter().position(|known| known.outbox.id() == id) {
            Some(place) => place,
            None => {
                let outbox = Arc::clone(outbox) as Arc<dyn Outbox>;
                let queue = Arc::clone(&outbox).queue();
                self.outboxes.push(Known { outbox, queue, is_told: false });
                self.outboxes.len() - 1
            }
        };
        if let Some(known) = self.outboxes.get_mut(place)
            && let Some(queue) = known.queue.as_any().downcast_mut::<Q>()
        {
            put(queue)?;
            self.order.push(place);
        }
        Ok(())
    }

    /// From now on nothing is put, or again.
    pub(crate) fn withhold(&mut self, is_withheld: bool) {
        self.is_withheld = is_withheld;
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// Forgets what was put after there were `len` records.
    pub(crate) fn truncate(&mut self, len: usize) {
        while self.order.len() > len
            && let Some(place) = self.order.pop()
        {
            if let Some(known) = self.outboxes.get_mut(place) {
                known.queue.drop_last();
            }
        }
    }

    /// The message is published: its records go to the outboxes, each of which is told to `tell` once.
    /// Answers whether all of them have room for more.
    pub(crate) fn hand_over(&mut self, mut tell: impl FnMut(&Arc<dyn Outbox>)) -> bool {
        self.order.clear();
        self.outboxes.iter_mut().fold(true, |room, known| {
            if !std::mem::replace(&mut known.is_told, true) {
                tell(&known.outbox);
            }
            known.queue.hand_over();
            room && known.outbox.has_room()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::given::unique_id;
    use std::sync::Mutex;

    struct Log {
        id: u64,
        sent: Mutex<Vec<u32>>,
    }

    struct Queue {
        log: Arc<Log>,
        records: Vec<u32>,
    }

    impl Outbox for Log {
        fn id(&self) -> u64 {
            self.id
        }
        fn queue(self: Arc<Self>) -> Box<dyn OutQueue> {
            Box::new(Queue { log: self, records: Vec::new() })
        }
        fn has_room(&self) -> bool {
            self.sent.lock().unwrap().len() < 3
        }
        fn room(&self) -> BoxFuture<'_, ()> {
            Box::pin(std::future::pending())
        }
        fn flush(&self) -> BoxFuture<'_, Result<(), BoxError>> {
            Box::pin(std::future::ready(Ok(())))
        }
    }

    impl OutQueue for Queue {
        fn as_any(&mut self) -> &mut dyn Any {
            self
        }
        fn drop_last(&mut self) {
            self.records.pop();
        }
        fn hand_over(&mut self) {
            self.log.sent.lock().unwrap().append(&mut self.records);
        }
    }

    fn log() -> Arc<Log> {
        Arc::new(Log { id: unique_id(), sent: Mutex::default() })
    }

    fn put(outgoing: &mut Outgoing, log: &Arc<Log>, record: u32) {
        let put = |queue: &mut Queue| {
            queue.records.push(record);
            Ok(())
        };
        outgoing.put(log, put).unwrap();
    }

    #[test]
    fn records_leave_in_their_order_when_the_message_is_published_and_those_forgotten_never_do() {
        let (one, other) = (log(), log());
        let mut outgoing = Outgoing::default();
        put(&mut outgoing, &one, 1);
        put(&mut outgoing, &other, 2);
        put(&mut outgoing, &one, 3);
        put(&mut outgoing, &other, 4);
        outgoing.truncate(3);
        let mut told = 0;
        assert!(outgoing.hand_over(|_| told += 1));
        put(&mut outgoing, &one, 5);
        assert!(!outgoing.hand_over(|_| told += 1), "the one is full then");
        assert!(outgoing.is_empty());
        assert_eq!((&*one.sent.lock().unwrap(), &*other.sent.lock().unwrap()), (&vec![1, 3, 5], &vec![2]));
        assert_eq!(told, 2, "each outbox is told of once");
    }

    #[test]
    fn what_is_withheld_never_leaves() {
        let log = log();
        let mut outgoing = Outgoing::default();
        outgoing.withhold(true);
        put(&mut outgoing, &log, 1);
        outgoing.withhold(false);
        put(&mut outgoing, &log, 2);
        outgoing.hand_over(|_| ());
        assert_eq!(*log.sent.lock().unwrap(), [2]);
    }
}
