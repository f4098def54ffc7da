//! The changes of a cache, for handlers that are mounted on it.
//!
//! ```text
//! in a message:  row ──▶ the transaction's gifts ──▶ the cache's handlers, inside of the message
//! elsewhere:     row ──▶ at most 1,024 waiting  ──▶ the cache's handlers, a message each
//! ```
//!
//! Invariants: a cache that no running flow reads costs a look at an empty list; changes from outside
//! come in the order in which they were published; what waits is bounded, and a write that has no room
//! is refused before anything is written.
use super::{Bytes, StoreError};
use crate::given::{ReceiverId, unique_id};
use futures::{Stream, StreamExt};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// How many changes from outside may wait for their handlers.
const ROOM: usize = 1024;

/// A key with its cache's id in front, and its value; `None` where it was removed.
pub(crate) type Change = (Bytes, Option<Bytes>);

/// The changes of one cache.
pub(crate) struct Changes {
    id: ReceiverId,
    outside: OnceLock<Outside>,
}

/// Those from outside of messages.
struct Outside {
    /// How many running flows read them.
    readers: Arc<AtomicUsize>,
    /// Held from a publication until it waits, so that the order is the same, and there is room still.
    sender: Mutex<async_channel::Sender<Change>>,
    waiting: async_channel::Receiver<Change>,
}

impl Changes {
    pub(super) fn new() -> Self {
        Changes { id: unique_id(), outside: OnceLock::new() }
    }

    /// By what a message knows whether a handler reads them.
    #[inline]
    pub(crate) fn id(&self) -> ReceiverId {
        self.id
    }

    /// Writes from outside of messages by `write`, which answers whether it has, and lets those who read
    /// know.
    pub(crate) fn outside(
        &self,
        path: impl FnOnce() -> Arc<Path>,
        changes: impl FnOnce() -> Change,
        write: impl FnOnce() -> Result<bool, StoreError>,
    ) -> Result<bool, StoreError> {
        let read = self.outside.get().filter(|outside| outside.readers.load(Ordering::Acquire) > 0);
        let Some(outside) = read else { return write() };
        let sender = outside.sender.lock().unwrap_or_else(PoisonError::into_inner);
        if sender.is_full() {
            return Err(StoreError::Behind { path: path(), waiting: ROOM });
        }
        let is_written = write()?;
        if is_written {
            // There is room, and this end has the other one.
            let _ = sender.try_send(changes());
        }
        Ok(is_written)
    }

    /// The changes from outside, as long as the stream lives.
    pub(crate) fn open(&self) -> impl Stream<Item = Change> + Send + 'static {
        let outside = self.outside.get_or_init(|| {
            let (sender, waiting) = async_channel::bounded(ROOM);
            Outside { readers: Arc::default(), sender: Mutex::new(sender), waiting }
        });
        let reader = Reader::new(&outside.readers);
        outside.waiting.clone().map(move |change| {
            let _read_by = &reader;
            change
        })
    }
}

/// Counts one who reads.
struct Reader(Arc<AtomicUsize>);

impl Reader {
    fn new(readers: &Arc<AtomicUsize>) -> Self {
        readers.fetch_add(1, Ordering::AcqRel);
        Reader(Arc::clone(readers))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
