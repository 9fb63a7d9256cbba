//! The traffic: the times and sizes of bursts, their members, and the lengths of critical sections.

use super::model::Model;
use super::random::{below, exponential};
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};

/// The number of ticks of the mean critical section. All times of the simulation are integer ticks. One tick is about
/// a ten-thousandth of the paper's unit of time, of which the mean section has 100.
pub const TICKS_PER_SECTION: u64 = 1 << 20;

/// The random choices of a simulation. Each kind of choice has its own stream, so that the k-th burst or the k-th
/// section is the same one for every simulated lock.
pub trait Traffic {
    /// Returns the ticks from one burst to the next. They must not stay 0 forever: all bursts of a section are drawn
    /// before the simulation continues.
    fn gap(&mut self) -> u64;
    /// Returns the number of sources that the burst would take if all were idle, at least 1.
    fn size(&mut self) -> u32;
    /// Returns which of `idle` idle sources requests next, as a number below `idle`.
    fn pick(&mut self, idle: u32) -> u32;
    /// Returns the ticks of the next critical section.
    fn section(&mut self) -> u64;
}

/// Returns the seeds of the runs of one study. Studies with neighbouring seeds share no run.
///
/// # Reference
/// Steele, Lea and Flood, Fast splittable pseudorandom number generators, OOPSLA 2014.
pub fn run_seeds(seed: u64) -> impl Iterator<Item = u64> {
    let mut seeds = SplitMix64::seed_from_u64(seed);
    std::iter::repeat_with(move || seeds.next_u64())
}

/// Random traffic: exponential gaps and sections, uniform sizes, and members chosen with equal probability.
///
/// # Reference
/// Blackman and Vigna, Scrambled linear pseudorandom number generators, ACM TOMS 47(4), 2021: xoshiro256++.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Random {
    gaps: Xoshiro256PlusPlus,
    sizes: Xoshiro256PlusPlus,
    picks: Xoshiro256PlusPlus,
    sections: Xoshiro256PlusPlus,
    /// The mean gap in units of 2^-16 ticks. A whole number of ticks would be too coarse for frequent bursts.
    gap_mean: u64,
    size_end: u32,
}

/// The number of binary places of [`Random::gap_mean`].
const GAP_PLACES: u32 = 16;

impl Random {
    /// Returns the traffic of one seed. Apart from the seed it depends only on the model's rate and burst, and not on
    /// the lock or on other figures that are computed.
    #[must_use]
    pub fn new(model: &Model, seed: u64) -> Self {
        let gaps = Xoshiro256PlusPlus::seed_from_u64(seed);
        // Each stream starts 2^128 numbers after the one before, so they never meet.
        let after = |stream: &Xoshiro256PlusPlus| {
            let mut next = stream.clone();
            next.jump();
            next
        };
        let sizes = after(&gaps);
        let picks = after(&sizes);
        let sections = after(&picks);
        // One division, rounded as in IEEE 754: the same on every platform.
        let gap_mean = ((TICKS_PER_SECTION << GAP_PLACES) as f64 / model.rate()) as u64;
        Self { gaps, sizes, picks, sections, gap_mean, size_end: 2 * model.burst() - 1 }
    }
}

impl Traffic for Random {
    #[inline]
    fn gap(&mut self) -> u64 {
        // At most about 2^71 times 2^56, which fits, and the shifted result fits again. It is unchecked, because a
        // checked multiplication is a call.
        (exponential(&mut self.gaps).wrapping_mul(u128::from(self.gap_mean)) >> (64 + GAP_PLACES)) as u64
    }

    #[inline]
    fn size(&mut self) -> u32 {
        1 + below(&mut self.sizes, self.size_end)
    }

    #[inline]
    fn pick(&mut self, idle: u32) -> u32 {
        below(&mut self.picks, idle)
    }

    #[inline]
    fn section(&mut self) -> u64 {
        // At most about 2^71 times 2^20.
        (exponential(&mut self.sections).wrapping_mul(u128::from(TICKS_PER_SECTION)) >> 64) as u64
    }
}
