//! One topic of a member: the queue of its partitions, and what is known of each.
//!
//! ```text
//! feed ──try_lock──▶ gate: queue, partitions, seeks ◀──lock── poll thread: assign, revoke, seek
//!   ▲                                                            │
//!   └────────────────────────── waker ◀──────────────────────────┘ when it has let go
//! ```
//!
//! Invariants: draining, seeking, assigning and revoking exclude each other by the gate; a task never waits for
//! the gate; under the gate nothing is waited for but librdkafka's own threads, and no flow is called; a message
//! is let through once, and only while its partition is this process's and not being sought.
use super::{commits::Commits, context::Context};
use crate::{
    kafka::{
        Offset,
        batch::Batch,
        native::{Queue, Taken},
    },
    source::{Control, Standing},
};
use futures::task::AtomicWaker;
use rdkafka::error::RDKafkaErrorCode;
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::{Deref, DerefMut},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

/// One topic of a member.
pub(in crate::kafka) struct Slot {
    pub(in crate::kafka) topic: Arc<str>,
    pub(in crate::kafka) places: Places,
    pub(in crate::kafka) control: Control,
    /// Woken when there may be something for the feed.
    pub(in crate::kafka) waker: Arc<AtomicWaker>,
    /// Where it stands in the flow, from the opening until the member is closed.
    pub(super) standing: Mutex<Option<Arc<dyn Standing>>>,
    pub(super) commits: Mutex<Commits>,
    /// There is something for the poll thread to do: seeks, or troubles to tell.
    pub(in crate::kafka) calls: AtomicBool,
    gate: Mutex<Gate>,
}

/// Where a topic is read from, and to.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::kafka) struct Places {
    pub(in crate::kafka) start: Offset,
    /// For single partitions, in place of `start`.
    pub(in crate::kafka) starts: BTreeMap<i32, Offset>,
    pub(in crate::kafka) until: Option<Offset>,
}

/// What is changed under the lock.
#[derive(Default)]
pub(in crate::kafka) struct Gate {
    pub(super) queue: Option<Queue<Context>>,
    /// By their numbers.
    parts: Vec<Part>,
    /// Where partitions were sought and are not yet: of those that are not this process's, the next assignment
    /// takes them.
    pub(super) sought: BTreeMap<i32, i64>,
    /// Whether partitions were assigned and are, or are about to be again.
    pub(in crate::kafka) phase: Phase,
    /// Partitions that were taken away, where the next assignment says whether they come back.
    pub(super) gone: BTreeSet<i32>,
    /// What went wrong with single partitions, for the poll thread.
    pub(super) troubles: Vec<Trouble>,
}

/// What is the matter with a partition.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) partition: i32,
    pub(super) code: RDKafkaErrorCode,
    pub(super) text: String,
}

/// Where a topic is between two assignments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::kafka) enum Phase {
    /// Nothing has been assigned yet, or all was taken away and what comes is not known.
    #[default]
    Waiting,
    Assigned,
    /// It got no partition, at that moment.
    Empty(Instant),
}

/// What is known of one partition.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::kafka) struct Part {
    is_ours: bool,
    is_sought: bool,
    /// Where the assignment began, or the last seek.
    began: i64,
    /// The offset of the next message. One before it has been let through.
    next: i64,
    /// Up to where all has been read, where that was told: behind the last message there may be a transaction's
    /// marker.
    read: i64,
    /// Where it ends, if the source does.
    end: Option<i64>,
}

impl Part {
    /// Up to where all has been read.
    fn reached(&self) -> i64 {
        self.next.max(self.read)
    }
}

/// A partition as the gate knows it.
#[derive(Debug, Clone, Copy)]
pub(in crate::kafka) struct Assigned {
    pub(in crate::kafka) partition: i32,
    /// Where the assignment began, or the last seek.
    pub(in crate::kafka) began: i64,
    /// The offset of the next message to come out.
    pub(in crate::kafka) next: i64,
    /// Up to where all has been read.
    pub(in crate::kafka) reached: i64,
}

impl Slot {
    pub(super) fn new(topic: Arc<str>, places: Places, control: Control) -> Self {
        Slot {
            topic,
            places,
            control,
            waker: Arc::default(),
            standing: Mutex::default(),
            commits: Mutex::default(),
            calls: AtomicBool::new(false),
            gate: Mutex::default(),
        }
    }

    /// For tasks: the gate, if nobody has it. Whoever has it wakes the feed afterwards.
    #[inline]
    pub(in crate::kafka) fn try_gate(&self) -> Option<MutexGuard<'_, Gate>> {
        match self.gate.try_lock() {
            Ok(gate) => Some(gate),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// For threads: the gate, and then the feed is woken.
    pub(in crate::kafka) fn gate(&self) -> Held<'_> {
        // What runs under it does not panic, so it is never left half changed.
        let gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        Held { gate, _wakes: Wakes(&self.waker) }
    }

    pub(super) fn commits(&self) -> MutexGuard<'_, Commits> {
        self.commits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn standing(&self) -> Option<Arc<dyn Standing>> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on, or no longer.
    pub(in crate::kafka) fn stands(&self, standing: Option<Arc<dyn Standing>>) {
        *self.standing.lock().unwrap_or_else(PoisonError::into_inner) = standing;
    }

    /// Remembers seeks, for the poll thread to do.
    pub(in crate::kafka) fn seek(&self, gate: &mut Gate, seeks: impl Iterator<Item = (i32, i64)>) {
        for (partition, offset) in seeks {
            gate.sought.insert(partition, offset);
            if let Some(part) = gate.ours_mut(partition) {
                part.is_sought = true;
            }
        }
        self.calls.store(true, Ordering::Release);
    }
}

/// The gate while a thread has it. When it lets go, the feed is woken, which may have found it taken.
pub(in crate::kafka) struct Held<'a> {
    // Dropped in this order.
    gate: MutexGuard<'a, Gate>,
    _wakes: Wakes<'a>,
}

struct Wakes<'a>(&'a AtomicWaker);

impl Drop for Wakes<'_> {
    fn drop(&mut self) {
        self.0.wake();
    }
}

impl Deref for Held<'_> {
    type Target = Gate;
    fn deref(&self) -> &Gate {
        &self.gate
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut Gate {
        &mut self.gate
    }
}

impl Gate {
    fn part_mut(&mut self, partition: i32) -> Option<&mut Part> {
        self.parts.get_mut(usize::try_from(partition).ok()?)
    }

    fn ours_mut(&mut self, partition: i32) -> Option<&mut Part> {
        self.part_mut(partition).filter(|part| part.is_ours)
    }

    /// A partition is this process's, from this message on.
    pub(super) fn assign(&mut self, partition: i32, next: i64, end: Option<i64>) {
        let Ok(at) = usize::try_from(partition) else { return };
        if self.parts.len() <= at {
            self.parts.resize(at + 1, Part::default());
        }
        if let Some(part) = self.part_mut(partition) {
            // The end is that of the first assignment: what is behind it came later.
            let end = part.end.or(end);
            *part = Part { is_ours: true, is_sought: false, began: next, next, read: 0, end };
        }
        self.phase = Phase::Assigned;
    }

    /// Nothing of these partitions is let through from now on.
    pub(super) fn withdraw(&mut self, partitions: &[i32]) {
        for partition in partitions {
            if let Some(part) = self.part_mut(*partition) {
                part.is_ours = false;
                // A seek to where it stood was to keep it there, and where it goes on is asked anew.
                let stood = part.next;
                if self.sought.get(partition) == Some(&stood) {
                    self.sought.remove(partition);
                }
            }
        }
        if !self.parts.iter().any(|part| part.is_ours) {
            self.phase = Phase::Waiting;
        }
    }

    /// What comes of a partition from now on is from this message on.
    pub(super) fn goes_on(&mut self, partition: i32, next: i64) {
        if let Some(part) = self.ours_mut(partition) {
            *part = Part { is_sought: false, began: next, next, read: 0, ..*part };
        }
    }

    /// Whether a partition is this process's.
    pub(in crate::kafka) fn is_ours(&self, partition: i32) -> bool {
        usize::try_from(partition).ok().and_then(|at| self.parts.get(at)).is_some_and(|part| part.is_ours)
    }

    /// This process's partitions.
    pub(in crate::kafka) fn assigned(&self) -> impl Iterator<Item = Assigned> {
        let ours = (0..).zip(&self.parts).filter(|(_, part)| part.is_ours);
        ours.map(|(partition, part)| {
            let (began, next, reached) = (part.began, part.next, part.reached());
            Assigned { partition, began, next, reached }
        })
    }

    /// Whether all of this process's partitions have been read to their ends.
    pub(in crate::kafka) fn has_ended(&self) -> bool {
        match self.phase {
            Phase::Waiting => false,
            Phase::Empty(since) => since.elapsed() >= super::EMPTY_FOR,
            Phase::Assigned => {
                let mut ours = self.parts.iter().filter(|part| part.is_ours);
                ours.all(|part| !part.is_sought && part.end.is_some_and(|end| part.reached() >= end))
            }
        }
    }

    /// Takes what is ready into an empty batch. Answers how much there was, let through or not.
    #[inline]
    pub(in crate::kafka) fn drain(&mut self, batch: &mut Batch) -> usize {
        let Gate { queue, parts, troubles, .. } = self;
        let Some(queue) = queue else { return 0 };
        queue.take(batch, |taken| match taken {
            Taken::Message { partition, offset } => {
                let part = usize::try_from(partition).ok().and_then(|at| parts.get_mut(at));
                part.is_some_and(|part| {
                    let is_let_through = part.is_ours
                        && !part.is_sought
                        && offset >= part.next
                        && part.end.is_none_or(|end| offset < end);
                    if part.is_ours && !part.is_sought && offset >= part.next {
                        part.next = offset + 1;
                    }
                    is_let_through
                })
            }
            Taken::End { partition, offset } => {
                let part = usize::try_from(partition).ok().and_then(|at| parts.get_mut(at));
                if let Some(part) = part.filter(|part| part.is_ours && !part.is_sought) {
                    part.read = offset;
                }
                false
            }
            Taken::Error { partition, code, text } => {
                // A few are enough to tell, and nobody else bounds them.
                if troubles.len() < 16 {
                    troubles.push(Trouble { partition, code, text });
                }
                false
            }
        })
    }

    /// What went wrong since it was last asked.
    pub(super) fn take_troubles(&mut self) -> Vec<Trouble> {
        std::mem::take(&mut self.troubles)
    }

    pub(in crate::kafka) fn has_troubles(&self) -> bool {
        !self.troubles.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seek_that_was_to_keep_a_partition_where_it_is_goes_with_it_and_one_elsewhere_waits_for_it() {
        let places = Places { start: Offset::Beginning, starts: BTreeMap::new(), until: None };
        let slot = Slot::new("words".into(), places, Control::default());
        let mut gate = slot.gate();
        gate.assign(0, 5, None);
        gate.assign(1, 5, None);
        slot.seek(&mut gate, [(0, 5), (1, 3)].into_iter());
        gate.withdraw(&[0, 1]);
        assert_eq!(gate.sought, [(1, 3)].into());
    }
}
