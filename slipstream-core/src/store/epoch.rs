//! The epoch: what is published and not yet committed, in memory, in front of RocksDB; and its
//! commit, which is one batch.
//!
//! ```text
//! message ──publish──▶ active ──freeze──▶ closing ──write──▶ RocksDB ──thaw──▶ gone
//!                         ▲                   ▲                  ▲
//! reads:   own rows,    newest ───────────────┴──────────────────┘ oldest
//! ```
//!
//! Invariants: a publication moves all rows of a message and its position into the active layer under
//! one lock, so nobody sees a part of it; state and positions reach RocksDB in one batch, so no crash
//! can part them; a layer is dropped only when RocksDB has its rows, under the lock under which
//! readers look at the layers, so a row on its way down is never missing from both; only one layer is
//! ever closing; while no flow runs, whoever writes to RocksDB holds that lock too, shared with other
//! writes, or alone where something that was read is compared first.
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tokio::sync::Notify;

use super::known::Known;
use super::rows::{Found, Rows};
use super::tiers::Tiers;
use super::{Read, Store, StoreError, identity, options, positions, records};
use crate::position::{Position, Positions};
use crate::watch::{Change, Recorded};

/// Where a source's partition stands: the number the flow gave the source, and the partition.
pub(crate) type Place = (u32, i32);

/// The layers of a store in front of RocksDB, newest first.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    active: Tiers,
    closing: Option<Tiers>,
    /// Of the messages published in the active layer, the last of each partition.
    moved: BTreeMap<Place, Position>,
    /// The same of the closing one.
    moved_closing: BTreeMap<Place, Position>,
    /// By the numbers that the flow gave them.
    sources: Vec<Arc<str>>,
    /// What is in RocksDB, since the last commit.
    known: Known,
    /// Why nothing more may be published: a commit has failed, and RocksDB holds the last good one.
    failed: bool,
}

impl Layers {
    /// The active and the closing one, where they have anything; `None` where one of them is in several
    /// tiers.
    #[inline]
    pub(crate) fn both(&self) -> Option<[Option<&Rows>; 2]> {
        let active = self.active.only()?;
        let closing = match &self.closing {
            Some(closing) => Some(closing.only()?),
            None => None,
        };
        Some([(!active.is_empty()).then_some(active), closing])
    }
    /// All of them, the newest first.
    pub(crate) fn newest_first(&self) -> impl Iterator<Item = &Arc<Rows>> {
        let closing = self.closing.iter().flat_map(Tiers::newest_first);
        self.active.newest_first().chain(closing)
    }
    /// Whether a row of these layers is known to be the last of its cache, or the last but for others in
    /// these layers.
    #[inline]
    pub(crate) fn is_past(&self, store: &Store, cache: u32, key: &[u8]) -> bool {
        self.known.is_past(store, cache, key)
    }
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> Found {
        match (self.active.find(key), &self.closing) {
            (Found::Nothing, Some(closing)) => closing.find(key),
            (found, _) => found,
        }
    }
}

/// The running flow's number, by which a store knows what a dropped one still wants of it.
pub(crate) type TurnNumber = u64;

/// A store's epochs. Without a running flow there are none: writes go to RocksDB at once.
#[derive(Debug, Default)]
pub(super) struct Epochs {
    running: AtomicBool,
    /// About how many bytes of rows the active layer has, and may have.
    active_bytes: AtomicUsize,
    most_bytes: AtomicUsize,
    /// More than that was written from outside of messages.
    is_past_bytes: Notify,
    layers: RwLock<Layers>,
    /// Held while a batch is written: a flow that was dropped may still be at it. What is known then is for
    /// the readers when the closing layer is dropped.
    writing: Mutex<Known>,
    /// Counts down to the write that fails: the seam of tests.
    #[cfg(test)]
    writes_left: AtomicUsize,
    /// Counts the flows that have begun and ended, so that nothing of an earlier one is published or
    /// written. Changed under the lock of the layers.
    turn: AtomicU64,
}

/// What a commit has taken out of the active layer, until it is written.
#[derive(Debug)]
pub(crate) struct Frozen {
    rows: Tiers,
    /// Apart from the rows, which an iterator may be looking at.
    positions: Rows,
    /// The offsets past which only the store knows.
    pub(crate) caps: BTreeMap<Place, i64>,
    turn: TurnNumber,
}

/// What is stored with each commit beside rows and positions.
pub(crate) type Recordings = Vec<Arc<dyn Recorded>>;

/// What each row weighs besides its bytes: its place in the map, and the heads of what is shared.
const ROW_BYTES: usize = 96;

impl Store {
    /// A flow begins to publish here. Its positions are to be read afterwards: until then another
    /// flow's may move.
    ///
    /// # Errors
    /// [`StoreError::Running`] when another flow does already.
    pub(crate) fn begin_epochs(&self, sources: Vec<Arc<str>>) -> Result<TurnNumber, StoreError> {
        // What a dropped flow is still writing is there before this one looks where it stands.
        let _written = self.inner.epochs.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut layers = self.layers_mut();
        if self.inner.epochs.running.swap(true, Ordering::AcqRel) {
            return Err(StoreError::Running { path: self.name() });
        }
        *layers = Layers { sources, ..Layers::default() };
        self.inner.epochs.active_bytes.store(0, Ordering::Relaxed);
        Ok(self.next_turn())
    }

    /// What the flow of this turn calls its sources, before their first messages.
    pub(crate) fn name_sources(&self, turn: TurnNumber, sources: Vec<Arc<str>>) {
        let mut layers = self.layers_mut();
        if self.is_turn(turn) {
            layers.sources = sources;
        }
    }

    /// The flow has made its last commit. Answers false while something is left: what was written
    /// outside of messages in the meantime.
    pub(crate) fn end_epochs(&self) -> bool {
        let mut layers = self.layers_mut();
        let is_empty = layers.active.is_empty() && layers.moved.is_empty() && layers.closing.is_none();
        if is_empty {
            self.end(&mut layers);
        }
        is_empty
    }

    /// The flow has made its last commit, and what is left is written while all others wait: whoever
    /// writes without end does not keep the flow from ending. It may block on the disk.
    pub(crate) fn finish_epochs(&self, turn: TurnNumber, sync: bool) -> Result<(), StoreError> {
        let _writing = self.inner.epochs.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut layers = self.layers_mut();
        // The flow may have been dropped before this had its thread.
        if !self.is_turn(turn) {
            return Err(StoreError::CommitFailed { path: self.name() });
        }
        debug_assert!(layers.moved.is_empty() && layers.closing.is_none(), "all messages are committed");
        if !layers.active.is_empty() {
            let active: Vec<&Rows> = layers.active.newest_first().rev().map(|rows| &**rows).collect();
            self.write_layers(&active, sync)?;
        }
        self.end(&mut layers);
        Ok(())
    }

    /// The flow of this number ends without a commit, if it has not ended yet: what is not in RocksDB is
    /// dropped. It waits for a batch that is being written, so that whoever writes to the store
    /// afterwards, or begins a flow, is not overwritten by it.
    pub(crate) fn drop_epochs(&self, turn: TurnNumber) {
        let mut layers = self.layers_mut();
        if !self.is_turn(turn) {
            return;
        }
        self.next_turn();
        *layers = Layers { failed: true, ..Layers::default() };
        drop(layers);
        let _written = self.inner.epochs.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.end(&mut self.layers_mut());
    }

    fn end(&self, layers: &mut Layers) {
        self.next_turn();
        *layers = Layers::default();
        self.inner.epochs.running.store(false, Ordering::Release);
    }

    fn next_turn(&self) -> TurnNumber {
        self.inner.epochs.turn.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn is_turn(&self, turn: TurnNumber) -> bool {
        self.inner.epochs.turn.load(Ordering::Relaxed) == turn
    }

    /// The layers as readers see them, while a flow runs.
    #[inline]
    pub(crate) fn layers(&self) -> Option<RwLockReadGuard<'_, Layers>> {
        self.is_running().then(|| self.layers_shared())
    }

    fn layers_shared(&self) -> RwLockReadGuard<'_, Layers> {
        self.inner.epochs.layers.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_running(&self) -> bool {
        self.inner.epochs.running.load(Ordering::Acquire)
    }

    // Nothing that could panic runs under the lock but what allocates, so it is never left half changed.
    fn layers_mut(&self) -> RwLockWriteGuard<'_, Layers> {
        self.inner.epochs.layers.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves a message's rows and position into the active layer, whole, if its flow still runs. Without a
    /// flow (a message of a test) and while none runs, the rows go to RocksDB at once.
    ///
    /// Calls `then` in the same step. Answers false, with nothing moved, where one of `reads` is not true any more.
    pub(crate) fn publish_and(
        &self,
        turn: Option<TurnNumber>,
        reads: &[Read],
        rows: Rows,
        moved: Option<(Place, Position)>,
        then: impl FnOnce(),
    ) -> Result<bool, StoreError> {
        if turn.is_none() && reads.is_empty() && !self.is_running() {
            let _shared = self.layers_shared();
            if !self.is_running() {
                return self.write_rows(&rows).map(|()| true);
            }
        }
        // Weighed before the lock is had, which readers wait for.
        let bytes: usize = rows.iter().map(|(key, value)| weight(key, value.map(|value| &**value))).sum();
        let mut layers = self.layers_mut();
        // A task of a flow that was dropped may still be at a message.
        if layers.failed || turn.is_some_and(|turn| !self.is_turn(turn)) {
            return Err(StoreError::CommitFailed { path: self.name() });
        }
        if !reads.is_empty() && !self.are_unchanged(&layers, reads)? {
            return Ok(false);
        }
        if !self.is_running() {
            return self.write_rows(&rows).map(|()| true);
        }
        if !rows.is_empty() {
            layers.active.change().take_over(rows);
            match turn {
                Some(_) => drop(self.inner.epochs.active_bytes.fetch_add(bytes, Ordering::Relaxed)),
                None => self.count_outside(bytes),
            }
        }
        if let Some((place, position)) = moved {
            layers.moved.insert(place, position);
        }
        then();
        Ok(true)
    }

    /// The same, with nothing else to do.
    pub(crate) fn publish(
        &self,
        turn: Option<TurnNumber>,
        reads: &[Read],
        rows: Rows,
        moved: Option<(Place, Position)>,
    ) -> Result<bool, StoreError> {
        self.publish_and(turn, reads, rows, moved, || ())
    }

    /// Changes where sources go on, and what is stored beside that, as a message does, in one step.
    pub(crate) fn publish_moves(&self, turn: TurnNumber, change: &mut Change<'_>) -> Result<(), StoreError> {
        let mut layers = self.layers_mut();
        if layers.failed || !self.is_turn(turn) {
            return Err(StoreError::CommitFailed { path: self.name() });
        }
        let moved = &mut layers.moved;
        change(&mut |source, partition, next| {
            // That of the message before.
            moved.insert((source, partition), Position::new(partition, next - 1));
        });
        Ok(())
    }

    /// A write of so many `bytes` from outside of a message: published if a flow runs, else `direct`ly to
    /// RocksDB.
    pub(crate) fn write_outside(
        &self,
        bytes: usize,
        change: impl FnOnce(&mut Rows),
        direct: impl FnOnce() -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        if !self.is_running() {
            let _shared = self.layers_shared();
            // From here on no flow begins, and nothing that was read is compared, before this is written.
            if !self.is_running() {
                return direct();
            }
        }
        let mut layers = self.layers_mut();
        if layers.failed {
            return Err(StoreError::CommitFailed { path: self.name() });
        }
        // The flow may have ended before the lock was had.
        if !self.is_running() {
            return direct();
        }
        change(layers.active.change());
        self.count_outside(bytes + ROW_BYTES);
        Ok(())
    }

    /// Writes rows to RocksDB at once.
    fn write_rows(&self, rows: &Rows) -> Result<(), StoreError> {
        match rows.only() {
            _ if rows.is_empty() => Ok(()),
            Some((key, value)) => self.set(key, value.map(|value| &**value)),
            None => self.write(super::staged::batch(&[rows])),
        }
    }

    /// Where the partitions of a source go on, by what is published: the messages of the active layer,
    /// those of the closing one, and then the last commit. `source` is the number that the running flow
    /// gave the source, `name` what the store knows it by.
    pub(crate) fn published(&self, source: u32, name: &str) -> Result<Positions, StoreError> {
        let layers = self.layers();
        // Fixes what it sees under the lock, so that no epoch is written and dropped in between.
        let stored = self.position_rows();
        let place = (source, i32::MIN)..=(source, i32::MAX);
        let of = |moved: &BTreeMap<Place, Position>| -> Vec<Position> {
            moved.range(place.clone()).map(|(_, position)| *position).collect()
        };
        let moved = layers.as_ref().map(|layers| [of(&layers.moved_closing), of(&layers.moved)]);
        drop(layers);
        let mut positions = self.read_positions(stored, name)?;
        for position in moved.into_iter().flatten().flatten() {
            positions.set(position.partition(), position.next(), position.check());
        }
        Ok(positions)
    }

    /// Makes the commit with this number fail when it is written; the first is 1.
    #[cfg(test)]
    pub(crate) fn fail_at(&self, write: usize) {
        self.inner.epochs.writes_left.store(write, Ordering::Relaxed);
    }

    /// So many bytes more were written from outside of messages, which nobody holds back.
    fn count_outside(&self, bytes: usize) {
        let Epochs { active_bytes, most_bytes, is_past_bytes, .. } = &self.inner.epochs;
        if active_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > most_bytes.load(Ordering::Relaxed) {
            is_past_bytes.notify_one();
        }
    }

    /// Says how many bytes may wait for a commit.
    pub(crate) fn set_most_bytes(&self, bytes: usize) {
        self.inner.epochs.most_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Waits until more was written from outside of messages.
    pub(crate) async fn past_bytes(&self) {
        self.inner.epochs.is_past_bytes.notified().await;
    }

    /// About how many bytes are published and not yet being committed.
    #[inline]
    pub(crate) fn epoch_bytes(&self) -> usize {
        self.inner.epochs.active_bytes.load(Ordering::Relaxed)
    }

    /// First step of a commit: takes the active layer and the positions, under a short lock. `None`
    /// when nothing was published. `records` are asked in the same step.
    pub(crate) fn freeze_with(&self, records: &[Arc<dyn Recorded>]) -> Option<Frozen> {
        let mut layers = self.layers_mut();
        debug_assert!(layers.closing.is_none(), "one layer closes at a time");
        let nothing_new = !records.iter().any(|record| record.is_changed());
        if layers.active.is_empty() && layers.moved.is_empty() && nothing_new {
            return None;
        }
        self.inner.epochs.active_bytes.store(0, Ordering::Relaxed);
        let rows = std::mem::take(&mut layers.active);
        let mut positions = Rows::default();
        let moved = std::mem::take(&mut layers.moved);
        for ((source, partition), position) in &moved {
            if let Some(source) = layers.sources.get(*source as usize) {
                positions::set(&mut positions, source, *partition, *position);
            }
        }
        let mut caps = BTreeMap::new();
        for record in records {
            record.records(&mut |kind, name, bytes| records::set(&mut positions, kind, name, bytes));
            record.caps(&mut caps);
        }
        layers.moved_closing = moved;
        layers.closing = Some(rows.clone());
        Some(Frozen { rows, positions, caps, turn: self.inner.epochs.turn.load(Ordering::Relaxed) })
    }

    /// The same, where there are no records.
    #[cfg(test)]
    pub(crate) fn freeze(&self) -> Option<Frozen> {
        self.freeze_with(&[])
    }

    /// Second step: one batch, which RocksDB has whole or not at all. It may block on the disk.
    pub(crate) fn write_frozen(&self, frozen: &Frozen, sync: bool) -> Result<(), StoreError> {
        let mut known = self.inner.epochs.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_turn(frozen.turn) {
            return Err(StoreError::CommitFailed { path: self.name() });
        }
        let before = self.db().latest_sequence_number();
        let rows = || frozen.rows.newest_first().rev().map(|rows| &**rows);
        let layers: Vec<&Rows> = rows().chain([&frozen.positions]).collect();
        let changes = self.write_layers(&layers, sync)?;
        known.learn(self, rows(), before, changes);
        Ok(())
    }

    /// Before the first message of a flow: whose the store is from now on, and where sources begin. It may
    /// block on the disk.
    pub(crate) fn write_starts(
        &self,
        turn: TurnNumber,
        owner: Option<&str>,
        starts: &[(Arc<str>, Positions)],
        sync: bool,
    ) -> Result<(), StoreError> {
        let _writing = self.inner.epochs.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_turn(turn) {
            return Err(StoreError::CommitFailed { path: self.name() });
        }
        if let Some(owner) = owner {
            self.set_owner(owner)?;
        }
        let mut rows = Rows::default();
        for (source, positions) in starts {
            for (partition, next) in positions.iter() {
                let check = positions.check(partition).unwrap_or(0);
                positions::set_next(&mut rows, source, partition, next, check);
            }
        }
        if rows.is_empty() { Ok(()) } else { self.write_layers(&[&rows], sync).map(|_| ()) }
    }

    /// Writes a commit, its layers oldest first, which gets the next number, and answers how many changes it has made. The caller
    /// holds the lock of writing.
    fn write_layers(&self, layers: &[&Rows], sync: bool) -> Result<u64, StoreError> {
        #[cfg(test)]
        if self.inner.epochs.writes_left.fetch_sub(1, Ordering::Relaxed) == 1 {
            return Err(StoreError::NoSpace { path: self.name() });
        }
        let mut options = options::write(self.inner.in_memory);
        options.set_sync(sync && !self.inner.in_memory);
        let epoch = self.epoch() + 1;
        let numbered = identity::numbered(epoch);
        let layers: Vec<&Rows> = layers.iter().copied().chain([&numbered]).collect();
        let batch = super::staged::batch(&layers);
        let changes = batch.len() as u64;
        self.write_with(batch, &options)?;
        self.inner.epoch.store(epoch, Ordering::Release);
        Ok(changes)
    }

    /// Last step: the closing layer is gone, since RocksDB has its rows.
    pub(crate) fn thaw(&self, frozen: Frozen) {
        let known = self.inner.epochs.writing.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut layers = self.layers_mut();
        // What closes now may be of another flow, if this one was dropped since.
        if !self.is_turn(frozen.turn) {
            return;
        }
        layers.known = known;
        let closed = (layers.closing.take(), std::mem::take(&mut layers.moved_closing));
        drop(layers);
        // The maps may be large: they are freed outside of the lock.
        drop((closed, frozen));
    }
}

fn weight(key: &[u8], value: Option<&[u8]>) -> usize {
    key.len() + value.map_or(0, <[u8]>::len) + ROW_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store with a flow that has published one row, and frozen it.
    fn closing() -> (Store, TurnNumber, Frozen) {
        let store = Store::in_memory().unwrap();
        let turn = store.begin_epochs(vec![]).unwrap();
        let mut rows = Rows::default();
        rows.set(&[0, 0, 0, 1, 7], Some(&[1]));
        assert!(store.publish(Some(turn), &[], rows, None).unwrap());
        let frozen = store.freeze().unwrap();
        (store, turn, frozen)
    }

    // A batch that was being written when its flow was dropped overwrote what the program had written since.
    #[test]
    fn a_dropped_flow_has_ended_when_its_batch_is_written() {
        let (store, turn, _) = closing();
        let writing = store.inner.epochs.writing.lock().unwrap();
        let dropped = std::thread::spawn({
            let store = store.clone();
            move || store.drop_epochs(turn)
        });
        while store.layers().is_some_and(|layers| !layers.failed) {
            std::thread::yield_now();
        }
        assert!(store.inner.epochs.running.load(Ordering::Acquire));
        drop(writing);
        dropped.join().unwrap();
        assert!(!store.inner.epochs.running.load(Ordering::Acquire));
    }

    #[test]
    fn nothing_of_a_dropped_flow_is_published_or_written_in_the_time_of_the_next() {
        let (store, dropped, frozen) = closing();
        store.drop_epochs(dropped);
        let next = store.begin_epochs(vec![]).unwrap();
        store.write_frozen(&frozen, false).unwrap_err();
        store.finish_epochs(dropped, false).unwrap_err();
        let mut rows = Rows::default();
        rows.set(&[0, 0, 0, 1, 8], Some(&[1]));
        store.publish(Some(dropped), &[], rows, None).unwrap_err();
        // Nor is the next one ended by it, or its closing layer dropped.
        store.drop_epochs(dropped);
        let mut rows = Rows::default();
        rows.set(&[0, 0, 0, 1, 9], Some(&[1]));
        assert!(store.publish(Some(next), &[], rows, None).unwrap());
        let closing = store.freeze().unwrap();
        store.thaw(frozen);
        assert!(matches!(store.layers().unwrap().find(&[0, 0, 0, 1, 9]), Found::Value(_)));
        store.write_frozen(&closing, false).unwrap();
        store.thaw(closing);
        assert!(store.publish(Some(next), &[], Rows::default(), None).unwrap());
        assert!(store.end_epochs());
        assert!(store.get(&[0, 0, 0, 1, 7]).unwrap().is_none());
        assert!(store.get(&[0, 0, 0, 1, 8]).unwrap().is_none());
    }

    // Else it would be overwritten by an update that had compared before it, or lie below what a flow that
    // began in between has published earlier.
    #[test]
    fn while_a_write_goes_to_rocksdb_at_once_no_flow_begins_and_nothing_is_compared() {
        let store = Store::in_memory().unwrap();
        let key = [0, 0, 0, 1, 7];
        let mut was_written = false;
        let direct = || {
            was_written = true;
            assert!(store.inner.epochs.layers.try_write().is_err());
            // Other such writes go on.
            store.write_outside(1, |_| {}, || store.set(&key, Some(&[1])))
        };
        store.write_outside(1, |_| {}, direct).unwrap();
        assert!(was_written && store.inner.epochs.layers.try_write().is_ok());
        let _turn = store.begin_epochs(vec![]).unwrap();
        store.write_outside(1, |rows| rows.set(&key, Some(&[2])), || panic!("a flow runs")).unwrap();
        assert_eq!(store.get(&key).unwrap().as_deref(), Some(&[1][..]));
    }

    #[test]
    fn where_a_source_stands_is_told_by_the_newest_layer_that_knows() {
        let store = Store::in_memory().unwrap();
        let turn = store.begin_epochs(vec!["other".into(), "source".into()]).unwrap();
        let publish = |source, partition, offset| {
            let at = Position::new(partition, offset).with_check(7);
            assert!(
                store.publish(Some(turn), &[], Rows::default(), Some(((source, partition), at))).unwrap()
            );
        };
        let now = || store.published(1, "source").unwrap().iter().collect::<Vec<_>>();
        assert_eq!(now(), []);
        (0..3).for_each(|partition| publish(1, partition, 10));
        publish(0, 5, 10);
        let frozen = store.freeze().unwrap();
        store.write_frozen(&frozen, false).unwrap();
        store.thaw(frozen);
        publish(1, 1, 20);
        publish(1, 2, 20);
        let closing = store.freeze().unwrap();
        publish(1, 2, 30);
        publish(0, 2, 40);
        assert_eq!(now(), [(0, 11), (1, 21), (2, 31)]);
        assert_eq!(store.published(1, "source").unwrap().check(2), Some(7));
        // What is not committed is gone with the flow.
        drop(closing);
        store.drop_epochs(turn);
        assert_eq!(now(), [(0, 11), (1, 11), (2, 11)]);
    }

    #[test]
    fn what_is_left_when_a_flow_ends_is_written() {
        let (store, turn, frozen) = closing();
        store.write_frozen(&frozen, false).unwrap();
        store.thaw(frozen);
        store.write_outside(1, |rows| rows.set(&[0, 0, 0, 1, 8], Some(&[2])), || Ok(())).unwrap();
        assert!(!store.end_epochs());
        store.finish_epochs(turn, false).unwrap();
        assert_eq!(store.get(&[0, 0, 0, 1, 7]).unwrap().as_deref(), Some(&[1][..]));
        assert_eq!(store.get(&[0, 0, 0, 1, 8]).unwrap().as_deref(), Some(&[2][..]));
        store.begin_epochs(vec![]).unwrap();
    }
}
