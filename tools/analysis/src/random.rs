//! Pseudo-random numbers for resampling: a function of the seed alone, so that the same data gives the same interval.

/// SplitMix64 (Steele, Lea and Flood, 2014): one addition and a mixing function, equidistributed over 64 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Generator(u64);

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A whole number below `bound`, 0 for a bound of 0. The bias of the multiplication is below 2⁻³² for any slice that fits in
    /// memory.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let wide = u128::from(self.bits()) * bound as u128;
        (wide >> 64) as usize
    }

    /// A number in [0, 1).
    #[cfg(test)]
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A nearly normal number with mean 0 and deviation 1: twelve uniform ones added.
    #[cfg(test)]
    pub(crate) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_sequence_for_seed_zero_comes_out() {
        let mut generator = Generator::new(0);
        assert_eq!([generator.bits(), generator.bits()], [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
    }

    #[test]
    fn numbers_below_a_bound_reach_every_value_alike() {
        let mut generator = Generator::new(3);
        let mut counts = [0; 7];
        (0..7000).for_each(|_| counts[generator.below(7)] += 1);
        assert!(counts.iter().all(|count| (900..1100).contains(count)), "{counts:?}");
        assert_eq!(generator.below(0), 0);
    }
}
