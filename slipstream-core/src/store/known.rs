//! How far the rows of a cache reach in RocksDB, so that a look-up which the epoch can answer does not ask
//! there: the rows of what is joined by time come mostly in order, and the newest are asked for.
//!
//! ```text
//! RocksDB  …  8:00  9:00 │ epoch  9:10  9:20  9:30        as of 9:25: 9:20, and RocksDB has nothing later
//!                  greatest
//! ```
//!
//! Invariants: what is not known is asked; while a flow runs its commits alone write to a cache in RocksDB,
//! and any other write (a name in the catalogue) is noticed by the number of the last write, and ends the
//! knowledge until the next commit; rows of the commit that is just being written are in the closing layer
//! too, which is asked anyway.
use std::collections::BTreeMap;

use super::cursor::Cursor;
use super::rows::Rows;
use super::{Bytes, Store};

/// What is known since the last commit.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    /// RocksDB's number of the last write.
    sequence: u64,
    /// Of each cache that this flow has committed rows of: no key is greater.
    greatest: BTreeMap<u32, Bytes>,
}

impl Known {
    /// Whether no row of the cache in RocksDB has a greater key, but for what is closing.
    #[inline]
    pub(super) fn is_past(&self, store: &Store, cache: u32, key: &[u8]) -> bool {
        self.greatest.get(&cache).is_some_and(|greatest| key >= &**greatest)
            && self.sequence == store.db().latest_sequence_number()
    }

    /// A commit of `rows` is written. RocksDB's number was `before`, and grew by `changes` if nobody else
    /// wrote meanwhile.
    pub(super) fn learn<'r>(
        &mut self,
        store: &Store,
        rows: impl Iterator<Item = &'r Rows>,
        before: u64,
        changes: u64,
    ) {
        // Asked before a cursor is made, which may then see more than is known, never less.
        let after = store.db().latest_sequence_number();
        if self.sequence != before || after != before + changes {
            self.greatest.clear();
        }
        self.sequence = after;
        for (cache, key) in rows.flat_map(Rows::greatest) {
            match self.greatest.get_mut(&cache) {
                Some(greatest) if *greatest < *key => *greatest = key.clone(),
                Some(_) => {}
                None => {
                    // The look-up that meets the error of a disk says so; here it is just not known.
                    if let Ok(greatest) = stored(store, cache) {
                        self.greatest.insert(cache, greatest.unwrap_or_else(|| key.clone()));
                    }
                }
            }
        }
    }
}

/// The greatest key of a cache in RocksDB.
fn stored(store: &Store, cache: u32) -> Result<Option<Bytes>, rocksdb::Error> {
    let (first, end) = (cache.to_be_bytes(), cache.saturating_add(1).to_be_bytes());
    let mut cursor = Cursor::open(store.db(), &first, &end);
    cursor.seek_before(&end)?;
    Ok(cursor.key().map(Bytes::from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cache;

    /// One commit of what is published.
    fn commit(store: &Store) {
        let frozen = store.freeze().unwrap();
        store.write_frozen(&frozen, false).unwrap();
        store.thaw(frozen);
    }

    fn is_past(cache: &Cache<u8, u8>, key: u8) -> bool {
        let id = 1_u32;
        let key = [&id.to_be_bytes()[..], &[key]].concat();
        cache.store().layers().unwrap().is_past(cache.store(), id, &key)
    }

    #[test]
    fn what_the_cache_held_before_the_flow_is_known_after_its_first_commit() {
        let cache = Cache::<u8, u8>::in_memory().unwrap();
        cache.insert(&50, 0).unwrap();
        cache.store().begin_epochs(vec![]).unwrap();
        assert!(!is_past(&cache, 60));
        cache.insert(&10, 0).unwrap();
        commit(cache.store());
        assert!(!is_past(&cache, 49) && is_past(&cache, 50) && is_past(&cache, 60));
        cache.insert(&60, 0).unwrap();
        // It is in a layer until it is known.
        assert!(is_past(&cache, 50));
        assert_eq!(cache.as_of(&90).unwrap(), Some((60, 0)));
        commit(cache.store());
        assert!(!is_past(&cache, 59) && is_past(&cache, 60));
        assert_eq!(cache.as_of(&90).unwrap(), Some((60, 0)));
    }

    #[test]
    fn a_deleted_row_does_not_stand_for_those_before_it() {
        let cache = Cache::<u8, u8>::in_memory().unwrap();
        cache.insert(&50, 0).unwrap();
        cache.store().begin_epochs(vec![]).unwrap();
        cache.insert(&60, 0).unwrap();
        commit(cache.store());
        cache.remove(&60).unwrap();
        cache.insert(&70, 0).unwrap();
        assert_eq!(cache.as_of(&69).unwrap(), Some((50, 0)));
        assert_eq!(cache.as_of(&70).unwrap(), Some((70, 0)));
        cache.remove(&70).unwrap();
        assert_eq!(cache.as_of(&70).unwrap(), Some((50, 0)));
    }

    #[test]
    fn a_write_of_another_ends_the_knowledge_until_the_next_commit() {
        let cache = Cache::<u8, u8>::in_memory().unwrap();
        let store = cache.store();
        store.begin_epochs(vec![]).unwrap();
        cache.insert(&10, 0).unwrap();
        commit(store);
        assert!(is_past(&cache, 10));
        // A name in the catalogue.
        store.cache::<u8, u8>("another").unwrap();
        assert!(!is_past(&cache, 10));
        // And one that no flow may make: it is found all the same.
        store.set(&[0, 0, 0, 1, 90], Some(&[9])).unwrap();
        cache.insert(&20, 0).unwrap();
        commit(store);
        assert!(!is_past(&cache, 20) && is_past(&cache, 90));
        cache.insert(&30, 0).unwrap();
        assert_eq!(cache.as_of(&100).unwrap(), Some((90, 9)));
    }
}
