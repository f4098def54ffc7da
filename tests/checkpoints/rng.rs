//! Numbers from a seed: splitmix64.
use std::sync::{Arc, Mutex};

/// A clone goes on with the same numbers.
#[derive(Debug, Clone)]
pub(crate) struct Rng(Arc<Mutex<u64>>);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Rng(Arc::new(Mutex::new(seed)))
    }

    fn next(&self) -> u64 {
        let mut state = self.0.lock().unwrap();
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Below `end`, which is not 0.
    pub(crate) fn below(&self, end: i64) -> i64 {
        (self.next() % end.unsigned_abs()) as i64
    }

    /// True so many times of a hundred.
    pub(crate) fn percent(&self, percent: i64) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn of<T: Copy>(&self, choices: &[T]) -> T {
        choices[self.below(choices.len() as i64) as usize]
    }
}
