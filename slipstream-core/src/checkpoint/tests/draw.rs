//! Draws from a seed: the same ones for the same seed, on each machine.

/// `SplitMix64`, of Steele, Lea and Flood: small, and good enough to vary schedules.
pub(super) struct Draw(u64);

impl Draw {
    pub(super) fn new(seed: u64) -> Self {
        Draw(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 on, below 1.
    pub(super) fn unit(&mut self) -> f64 {
        f64::from((self.next() >> 32) as u32) / 4_294_967_296.0
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.unit() * end as f64) as usize
    }

    pub(super) fn happens(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    pub(super) fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// One of them, by their weights.
    pub(super) fn weighted<T: Copy>(&mut self, of: &[(T, f64)]) -> T {
        let all: f64 = of.iter().map(|(_, weight)| weight).sum();
        let mut left = self.unit() * all;
        for (one, weight) in of {
            left -= weight;
            if left < 0.0 {
                return *one;
            }
        }
        of[of.len() - 1].0
    }
}
