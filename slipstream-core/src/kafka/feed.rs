//! What a route reads of a topic: chunks, drained from the topic's queue by the route's own task.
//!
//! ```text
//! Slot's queue ──drain, under the gate──▶ Batch ──▶ Chunk of Encoded     one Arc a chunk
//!      ▲ seeks, for the poll thread
//!   Control: sought, revoked
//! ```
//!
//! Invariants: what a chunk holds was drained at the state that it says; nothing of a partition that is sought is
//! let through before the consumer is there; a task never waits for the gate, but is woken when it is free.
use super::{
    batch::Batch,
    encoded::{Encoded, Filled},
    member::{Member, Slot},
    topic::Codecs,
};
use crate::{
    error::{Cause, Fault, FaultOf},
    position::{Position, Positions},
    source::{Chunk, Feed},
};
use std::{
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
};

/// A topic that is read.
pub(super) struct TopicFeed<K, V> {
    member: Arc<Member>,
    slot: Arc<Slot>,
    /// Up to which state of the control it has followed.
    as_of: u64,
    /// The last chunk, and with it what is used again for the next.
    filled: Arc<Filled<K, V>>,
    has_failed: bool,
}

/// How often it looks on where nothing of what it drained is let through, before others have their turn.
const LOOKS: usize = 16;

impl<K, V> TopicFeed<K, V> {
    /// Begins where the topic was sought before, if it was.
    pub(super) fn new(member: Arc<Member>, slot: Arc<Slot>, codecs: Arc<Codecs<K, V>>) -> Self {
        let mut sought = Positions::default();
        let as_of = slot.control.opening(&mut sought, &slot.waker);
        if !sought.is_empty() {
            slot.seek(&mut slot.gate(), sought.iter());
        }
        let topic = Arc::clone(&slot.topic);
        let filled = Arc::new(Filled { batch: Batch::default(), codecs, topic });
        TopicFeed { member, slot, as_of, filled, has_failed: false }
    }

    pub(super) fn topic(&self) -> &str {
        &self.slot.topic
    }

    /// Looks once for what is ready, and adds it.
    fn fill(&mut self, chunk: &mut Chunk<Encoded<K, V>>) -> Filling {
        let TopicFeed { member, slot, as_of, filled, .. } = self;
        let Some(mut gate) = slot.try_gate() else { return Filling::Nothing };
        if slot.control.state() != *as_of {
            let mut sought = Positions::default();
            let (any, now) = slot.control.take_sought(&mut sought, *as_of);
            *as_of = now;
            if any {
                slot.seek(&mut gate, sought.iter());
                member.shared.unpark();
            }
        }
        chunk.as_of = *as_of;
        // Whoever keeps an item keeps its batch.
        if Arc::get_mut(filled).is_none() {
            let (codecs, topic) = (Arc::clone(&filled.codecs), Arc::clone(&filled.topic));
            *filled = Arc::new(Filled { batch: Batch::default(), codecs, topic });
        }
        let Some(Filled { batch, .. }) = Arc::get_mut(filled) else { return Filling::Nothing };
        batch.clear();
        let drained = gate.drain(batch);
        if gate.has_troubles() {
            slot.calls.store(true, Ordering::Release);
            member.shared.unpark();
        }
        let has_ended = slot.places.until.is_some() && filled.batch.len() == 0 && gate.has_ended();
        drop(gate);
        if has_ended {
            return Filling::End;
        }
        let count = filled.batch.len();
        if count == 0 {
            return if drained == 0 { Filling::Nothing } else { Filling::NothingYet };
        }
        chunk.items.extend((0..count).map(|at| Encoded::new(filled, at)));
        let position = |at| filled.batch.get(at).map(|record| Position::new(record.partition, record.offset));
        chunk.positions.extend((0..count).filter_map(position));
        Filling::Some
    }
}

/// What came of a look.
enum Filling {
    Some,
    /// There was something, but nothing to let through.
    NothingYet,
    /// The queue is empty, or somebody else has the gate: the waker says when that changes.
    Nothing,
    End,
}

impl<K: Send + Sync + 'static, V: Send + Sync + 'static> Feed<Encoded<K, V>> for TopicFeed<K, V> {
    fn poll_chunk(
        &mut self,
        chunk: &mut Chunk<Encoded<K, V>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Fault>> {
        self.member.is_read();
        let mut is_registered = false;
        for _ in 0..LOOKS {
            if self.member.shared.has_failed() {
                if std::mem::replace(&mut self.has_failed, true) {
                    return Poll::Pending;
                }
                let cause = self.member.shared.failure_of(&self.slot.topic);
                return Poll::Ready(Err(FaultOf::new("", Cause::Source(cause))));
            }
            match self.fill(chunk) {
                Filling::Some | Filling::End => return Poll::Ready(Ok(())),
                Filling::NothingYet => {}
                Filling::Nothing if is_registered => return Poll::Pending,
                Filling::Nothing => {
                    self.slot.waker.register(cx.waker());
                    is_registered = true;
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn keep(&mut self, _: bool) {
        // The last chunk is there in any case.
    }

    fn again(&mut self, at: usize) -> Option<Result<Encoded<K, V>, Fault>> {
        (at < self.filled.batch.len()).then(|| Ok(Encoded::new(&self.filled, at)))
    }
}
