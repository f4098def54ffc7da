//! Rows that keep growing while iterators keep what they have seen of them.
//!
//! ```text
//! publications ─▶ top ◀── an iterator looks at it: it is put below, and a new top begins
//!                  │
//!               below   64 rows · 300 · 5,000      each at least four times the one above it
//! ```
//!
//! To copy all rows for each iterator would cost more the longer an epoch lasts; so a top that an
//! iterator looks at is copied only while it is small, and tiers are merged as they grow: each row is
//! copied a few times at most, and a look-up asks a few tiers at most.
//!
//! Invariants: the upper tier wins; a tier below the top is never changed.
use super::rows::{Found, Rows};
use std::sync::Arc;

/// A top of so many rows at the most is copied, where an iterator looks at it. Fewer, and there are more
/// tiers; more, and each publication beside an iterator copies more.
const COPIED: usize = if cfg!(test) { 2 } else { 64 };

/// How many times larger a tier is than the one above it. More, and rows are copied more often; fewer, and
/// a look-up asks more tiers.
const GROWTH: usize = 4;

/// Rows in tiers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tiers {
    top: Arc<Rows>,
    /// The newest first.
    below: Vec<Arc<Rows>>,
}

impl Tiers {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.top.is_empty() && self.below.is_empty()
    }

    /// The top, to be changed: no iterator sees that.
    #[inline]
    pub(super) fn change(&mut self) -> &mut Rows {
        if self.top.len() > COPIED && Arc::get_mut(&mut self.top).is_none() {
            self.put_below();
        }
        Arc::make_mut(&mut self.top)
    }

    #[cold]
    fn put_below(&mut self) {
        let mut upper = std::mem::take(&mut self.top);
        while self.below.first().is_some_and(|lower| upper.len() * GROWTH > lower.len()) {
            let mut merged = Arc::unwrap_or_clone(self.below.remove(0));
            merged.take_over(Arc::unwrap_or_clone(upper));
            upper = Arc::new(merged);
        }
        self.below.insert(0, upper);
    }

    /// All tiers that have anything, the newest first.
    pub(crate) fn newest_first(&self) -> impl DoubleEndedIterator<Item = &Arc<Rows>> {
        std::iter::once(&self.top).filter(|top| !top.is_empty()).chain(&self.below)
    }

    /// The only tier there is, if there are not several.
    #[inline]
    pub(super) fn only(&self) -> Option<&Rows> {
        self.below.is_empty().then_some(&*self.top)
    }

    #[inline]
    pub(super) fn find(&self, key: &[u8]) -> Found {
        match self.top.get(key) {
            Found::Nothing if !self.below.is_empty() => self.find_below(key),
            found => found,
        }
    }

    fn find_below(&self, key: &[u8]) -> Found {
        let found = self.below.iter().map(|tier| tier.get(key)).find(|found| *found != Found::Nothing);
        found.unwrap_or(Found::Nothing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn key(n: u32) -> [u8; 8] {
        [[0, 0, 0, 1], n.to_be_bytes()].concat().try_into().unwrap()
    }

    /// What the tiers hold, by looking each key up.
    fn held(tiers: &Tiers, keys: u32) -> BTreeMap<u32, u8> {
        let value = |n| match tiers.find(&key(n)) {
            Found::Value(value) => Some((n, value[0])),
            Found::Deleted | Found::Nothing => None,
        };
        (0..keys).filter_map(value).collect()
    }

    #[test]
    fn an_iterator_keeps_what_it_saw_and_costs_no_copy_of_what_is_large() {
        let mut tiers = Tiers::default();
        (0..100).for_each(|n| tiers.change().set(&key(n), Some(&[0])));
        assert!(tiers.only().is_some(), "nobody looks: there is one tier");
        let seen: Vec<_> = tiers.newest_first().cloned().collect();
        tiers.change().set(&key(7), Some(&[1]));
        assert!(tiers.newest_first().any(|tier| Arc::ptr_eq(tier, &seen[0])), "it was copied");
        assert!(matches!(seen[0].get(&key(7)), Found::Value(value) if *value == [0]));
        assert!(matches!(tiers.find(&key(7)), Found::Value(value) if *value == [1]));
    }

    #[test]
    fn an_iterator_for_each_row_leaves_few_tiers_and_loses_nothing() {
        let (mut tiers, mut model, mut seen) = (Tiers::default(), BTreeMap::new(), Vec::new());
        for n in 0..3000_u32 {
            let at = n * 7919 % 1000;
            match n % 5 {
                4 => {
                    tiers.change().set(&key(at), None);
                    model.remove(&at);
                }
                _ => {
                    tiers.change().set(&key(at), Some(&[n as u8]));
                    model.insert(at, n as u8);
                }
            }
            if n == 1500 {
                tiers.change().clear(1);
                model.clear();
            }
            // Some are kept, and most are dropped at once.
            let now = tiers.clone();
            if n % 500 == 0 {
                seen.push((now, model.clone()));
            }
        }
        assert_eq!(held(&tiers, 1000), model);
        for (then, model) in seen {
            assert_eq!(held(&then, 1000), model);
        }
        let sizes: Vec<_> = tiers.newest_first().map(|tier| tier.len()).collect();
        assert!(sizes.len() <= 7, "{sizes:?}");
    }
}
