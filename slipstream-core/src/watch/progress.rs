//! How far each handler of a source has come, where they are not all at the source's position: while messages
//! are handled again.
//!
//! ```text
//! offsets      0 ─────── back ───── position ───── next of the others ── high
//! checks                  └─ replayed ─▶ │
//! only counts                            │ ◀─ done: not called ─┘
//! ```
//!
//! Invariants: the source's position is the lowest of the handlers' next offsets; an offset below `high` was
//! published by the handler, unless it is among the deferred; what is even is not kept.
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// How a handler takes a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handling {
    /// For the first time, but for what was not published or was deferred.
    First,
    /// It has published it before.
    Again,
    /// It has, and is not called again.
    Done,
}

/// One handler in one partition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Way {
    /// Its next offset, or lower: then it is the source's.
    next: i64,
    /// After the last offset that it has published.
    high: i64,
    /// The offsets before that which it has answered only by deferring.
    #[serde(default)]
    deferred: BTreeSet<i64>,
}

/// The partitions in which handlers are apart, by handler.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    partitions: BTreeMap<i32, Vec<Way>>,
    pub(crate) is_changed: bool,
}

/// What is stored.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Record {
    partitions: BTreeMap<i32, BTreeMap<String, Way>>,
}

impl Progress {
    pub(crate) fn is_even(&self) -> bool {
        self.partitions.is_empty()
    }

    pub(crate) fn read(bytes: &[u8], handlers: &[Arc<str>]) -> Result<Self, rmp_serde::decode::Error> {
        let record: Record = rmp_serde::from_slice(bytes)?;
        let of = |ways: BTreeMap<String, Way>| {
            // One that was not there has seen nothing.
            handlers.iter().map(|name| ways.get(&**name).cloned().unwrap_or_default()).collect()
        };
        let partitions = record.partitions.into_iter().map(|(partition, ways)| (partition, of(ways)));
        Ok(Progress { partitions: partitions.collect(), is_changed: false })
    }

    pub(crate) fn write(&self, handlers: &[Arc<str>]) -> Vec<u8> {
        let named = |ways: &Vec<Way>| {
            handlers.iter().zip(ways).map(|(name, way)| (name.to_string(), way.clone())).collect()
        };
        let partitions = self.partitions.iter().map(|(partition, ways)| (*partition, named(ways)));
        // Numbers and text are never refused.
        rmp_serde::to_vec_named(&Record { partitions: partitions.collect() }).unwrap_or_default()
    }

    fn ways(&mut self, partition: i32, next: i64, handlers: usize) -> &mut Vec<Way> {
        self.partitions
            .entry(partition)
            .or_insert_with(|| vec![Way { next, high: next, deferred: BTreeSet::new() }; handlers])
    }

    /// `handlers` go back to `offset`; see [`Watch::go_back`](super::Watch::go_back).
    pub(crate) fn go_back(&mut self, partition: i32, next: i64, offset: i64, handlers: &[bool]) -> i64 {
        let ways = self.ways(partition, next, handlers.len());
        let mut lowest = next;
        for (way, goes) in ways.iter_mut().zip(handlers) {
            // Where it is not apart, it is at the source's position.
            way.next = way.next.max(next);
            way.high = way.high.max(next);
            if *goes {
                way.next = way.next.min(offset);
            }
            lowest = lowest.min(way.next);
        }
        lowest
    }

    /// Answers whether anything has changed.
    pub(crate) fn sought(&mut self, partition: i32, offset: i64) -> bool {
        let Some(ways) = self.partitions.get_mut(&partition) else { return false };
        ways.iter_mut().for_each(|way| way.next = way.next.min(offset));
        true
    }

    pub(crate) fn restarts(&self, partition: i32, handler: usize) -> bool {
        let way = self.partitions.get(&partition).and_then(|ways| ways.get(handler));
        way.is_none_or(|way| way.next < way.high || way.high == 0)
    }

    pub(crate) fn handling(&self, partition: i32, offset: i64, handling: &mut [Handling]) {
        let Some(ways) = self.partitions.get(&partition) else { return handling.fill(Handling::First) };
        for (handling, way) in handling.iter_mut().zip(ways) {
            *handling = if offset < way.next {
                Handling::Done
            } else if offset < way.high && !way.deferred.contains(&offset) {
                Handling::Again
            } else {
                Handling::First
            };
        }
    }

    /// Answers whether anything has changed.
    pub(crate) fn published(
        &mut self,
        partition: i32,
        offset: i64,
        handling: &[Handling],
        deferred: &[usize],
    ) -> bool {
        if deferred.is_empty() && !self.partitions.contains_key(&partition) {
            return false;
        }
        let ways = self.ways(partition, offset, handling.len());
        for (number, (way, handling)) in ways.iter_mut().zip(handling).enumerate() {
            if *handling == Handling::Done {
                continue;
            }
            way.next = way.next.max(offset + 1);
            way.high = way.high.max(offset + 1);
            if !deferred.contains(&number) {
                way.deferred.remove(&offset);
            } else if *handling == Handling::First {
                // What was published before stays so, whatever is answered now.
                way.deferred.insert(offset);
            }
        }
        let is_even = |way: &Way| way.next <= offset + 1 && way.high <= offset + 1 && way.deferred.is_empty();
        if ways.iter().all(is_even) {
            self.partitions.remove(&partition);
        }
        true
    }
}

#[cfg(test)]
mod tests;
