//! The source of traffic: when bursts come, how large they are, whom they take, and how long each section is.

use super::model::Model;
use super::random::{below, exponential};
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};

/// Ticks of the mean critical section. All times of the simulation are integer ticks; one is about a ten-thousandth of the
/// paper's unit of time, of which the mean section has 100.
pub const TICKS_PER_SECTION: u64 = 1 << 20;

/// What is left to chance. Each question has its own stream of answers, so that the k-th burst, or the k-th section, is the
/// same one whichever lock is simulated.
pub trait Traffic {
    /// Ticks from one burst to the next; not 0 for ever: all bursts of a section are drawn before anything else happens.
    fn gap(&mut self) -> u64;
    /// How many sources the burst would take if all were idle; at least 1.
    fn size(&mut self) -> u32;
    /// Which of `idle` idle sources requests next: a number below it.
    fn pick(&mut self, idle: u32) -> u32;
    /// Ticks of the next critical section.
    fn section(&mut self) -> u64;
}

/// The seeds of the runs of one study: studies with seeds side by side share no run.
///
/// # Reference
/// Steele, Lea and Flood, Fast splittable pseudorandom number generators, OOPSLA 2014.
pub fn run_seeds(seed: u64) -> impl Iterator<Item = u64> {
    let mut seeds = SplitMix64::seed_from_u64(seed);
    std::iter::repeat_with(move || seeds.next_u64())
}

/// Exponential gaps and sections, uniform sizes, and members any of which is as likely as any other.
///
/// # Reference
/// Blackman and Vigna, Scrambled linear pseudorandom number generators, ACM TOMS 47(4), 2021: xoshiro256++.
#[derive(Clone, Debug)]
pub struct Random {
    gaps: Xoshiro256PlusPlus,
    sizes: Xoshiro256PlusPlus,
    picks: Xoshiro256PlusPlus,
    sections: Xoshiro256PlusPlus,
    /// In 2^-16 ticks: of frequent bursts a whole number of ticks would be too coarse.
    gap_mean: u64,
    size_end: u32,
}

/// Binary places of [`Random::gap_mean`].
const GAP_PLACES: u32 = 16;

impl Random {
    /// The traffic of one seed. It depends on nothing else but the model's rate and burst: neither on the lock nor on what
    /// other figures are computed.
    #[must_use]
    pub fn new(model: &Model, seed: u64) -> Self {
        let gaps = Xoshiro256PlusPlus::seed_from_u64(seed);
        // Each 2^128 numbers after the one before: they never meet.
        let after = |stream: &Xoshiro256PlusPlus| {
            let mut next = stream.clone();
            next.jump();
            next
        };
        let sizes = after(&gaps);
        let picks = after(&sizes);
        let sections = after(&picks);
        // One division, rounded as IEEE 754 says: the same everywhere.
        let gap_mean = ((TICKS_PER_SECTION << GAP_PLACES) as f64 / model.rate()) as u64;
        Self { gaps, sizes, picks, sections, gap_mean, size_end: 2 * model.burst() - 1 }
    }
}

impl Traffic for Random {
    #[inline]
    fn gap(&mut self) -> u64 {
        // At most some 2^71 times 2^56, which fits; and 2^-64 and 2^-16 taken off, it does again. Unchecked, for a check is a call.
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
        // At most some 2^71 times 2^20.
        (exponential(&mut self.sections).wrapping_mul(u128::from(TICKS_PER_SECTION)) >> 64) as u64
    }
}
