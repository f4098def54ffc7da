//! The positions of a flow that keeps no state: there are only those of members of groups, which remember
//! them.
//!
//! Invariant: a position is told once its outputs are where they were sent to, and only if it has moved since
//! the last time.
use crate::position::{Position, Positions};
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Where partitions go on, by the numbers of their sources.
#[derive(Debug, Default)]
pub(super) struct Loose(Mutex<Moved>);

#[derive(Debug, Default)]
struct Moved {
    positions: BTreeMap<(u32, i32), Position>,
    is_new: bool,
}

impl Loose {
    /// A message is done.
    pub(super) fn move_to(&self, place: (u32, i32), position: Position) {
        let mut moved = self.moved();
        moved.positions.insert(place, position);
        moved.is_new = true;
    }

    /// All that is known of one source.
    pub(super) fn of(&self, source: u32) -> Positions {
        let mut positions = Positions::default();
        for ((_, partition), position) in
            self.moved().positions.range((source, i32::MIN)..=(source, i32::MAX))
        {
            positions.set(*partition, position.next(), position.check());
        }
        positions
    }

    /// All of all sources, if anything has moved since the last time.
    pub(super) fn freeze(&self) -> Option<BTreeMap<u32, Positions>> {
        let mut moved = self.moved();
        if !std::mem::take(&mut moved.is_new) {
            return None;
        }
        let mut all = BTreeMap::<u32, Positions>::new();
        for ((source, partition), position) in &moved.positions {
            all.entry(*source).or_default().set(*partition, position.next(), position.check());
        }
        Some(all)
    }

    // Nothing that runs under the lock panics.
    fn moved(&self) -> MutexGuard<'_, Moved> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
