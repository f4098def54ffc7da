//! Positions: where a message stands in its source, and where a source goes on.
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where a message stands: its partition, and its number in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    partition: i32,
    offset: i64,
    check: u64,
}

impl Position {
    /// The message number `offset` of a partition; both begin at 0.
    #[must_use]
    pub fn new(partition: i32, offset: i64) -> Self {
        Position { partition, offset, check: 0 }
    }
    /// Adds a number by which the source will know that it still reads the same log: a hash of all
    /// before and at this message, an epoch of the log. It comes back in [`Positions::check`].
    #[must_use]
    pub fn with_check(self, check: u64) -> Self {
        Position { check, ..self }
    }
    /// The partition.
    #[must_use]
    pub fn partition(&self) -> i32 {
        self.partition
    }
    /// The message's number in its partition.
    #[must_use]
    pub fn offset(&self) -> i64 {
        self.offset
    }
    /// The number of the message after it.
    #[must_use]
    pub fn next(&self) -> i64 {
        self.offset.saturating_add(1)
    }
    /// The source's own check of the log up to here; 0 without one.
    #[must_use]
    pub fn check(&self) -> u64 {
        self.check
    }
}

/// Where the partitions of a source go on, by the last commit. A partition that is not here begins
/// at its beginning.
///
/// ```
/// use slipstream_core::Positions;
///
/// let positions = Positions::from_iter([(0, 17), (1, 4)]);
/// assert_eq!(positions.next(1), Some(4));
/// assert_eq!(positions.next(2), None);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Positions(BTreeMap<i32, (i64, u64)>);

impl Positions {
    /// The offset of the next message of a partition.
    #[must_use]
    pub fn next(&self, partition: i32) -> Option<i64> {
        self.0.get(&partition).map(|(next, _)| *next)
    }
    /// What the source had said [`with_check`](Position::with_check) at the message before it.
    #[must_use]
    pub fn check(&self, partition: i32) -> Option<u64> {
        self.0.get(&partition).map(|(_, check)| *check)
    }
    /// The partitions and the offsets of their next messages, by partition.
    pub fn iter(&self) -> impl Iterator<Item = (i32, i64)> {
        self.0.iter().map(|(partition, (next, _))| (*partition, *next))
    }
    /// Whether no partition is here.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Forgets a partition.
    #[cfg_attr(not(feature = "kafka"), allow(dead_code))]
    pub(crate) fn remove(&mut self, partition: i32) {
        self.0.remove(&partition);
    }
    /// Takes over what `other` has of each partition.
    #[cfg(feature = "rocksdb")]
    pub(crate) fn overlay(&mut self, other: &Positions) {
        self.0.extend(&other.0);
    }
    pub(crate) fn set(&mut self, partition: i32, next: i64, check: u64) {
        self.0.insert(partition, (next, check));
    }
}

/// Partitions, and the offsets of their next messages.
impl FromIterator<(i32, i64)> for Positions {
    fn from_iter<P: IntoIterator<Item = (i32, i64)>>(partitions: P) -> Self {
        Positions(partitions.into_iter().map(|(partition, next)| (partition, (next, 0))).collect())
    }
}
