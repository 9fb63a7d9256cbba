//! The work that keeps jobs of a cluster waiting, summed up for many tasks at once.

use crate::rows::divisor::Divisor;
use crate::rows::simd::{LANES, SMALL, Short};
use fearless_simd::{Level, dispatch};
use std::ops::Range;

/// Values of the variables, by place. See `clusters.rs`.
#[derive(Clone)]
pub(super) struct Point {
    /// The execution time with waits, E.
    pub(super) executed: Vec<u64>,
    /// The lag G, with the release jitter.
    pub(super) lags: Vec<u64>,
}

/// The parameters of all tasks, by place.
pub(super) struct Work {
    level: Level,
    divisors: Vec<Divisor>,
    periods: Vec<u64>,
    /// How many times the work of a task counts.
    times: Vec<u64>,
    /// The three parts of each division, if all windows are short enough for it.
    small: Option<[Vec<u64>; 3]>,
}

/// A window of the job at a place, for which it waits for `lag`.
#[derive(Clone, Copy)]
pub(super) struct Waiting {
    pub(super) place: usize,
    pub(super) lag: u64,
}

impl Work {
    /// `longest` is the greatest sum of a window and a lag.
    pub(super) fn new(divisors: Vec<Divisor>, times: Vec<u64>, longest: u64) -> Self {
        let parts = |part: usize| divisors.iter().map(|&period| Short::division(period)[part]).collect();
        let small = (longest < SMALL && divisors.iter().all(|period| period.get() < SMALL))
            .then(|| [parts(0), parts(1), parts(2)]);
        let periods = divisors.iter().map(|period| period.get()).collect();
        Self { level: Level::new(), divisors, periods, times, small }
    }

    pub(super) fn period(&self, place: usize) -> Divisor {
        self.divisors[place]
    }

    /// Returns the sum of the work of the tasks in `range` that keeps the job waiting, and the lag up to which no work
    /// begins to rise. Writes for each of them the lag up to which this work rises as fast as the lag, or a value that
    /// is not above the present lag. See `clustered.rs`.
    pub(super) fn sum(&self, at: &Point, range: Range<usize>, waiting: Waiting, untils: &mut [u64]) -> (u64, u64) {
        match &self.small {
            Some([multipliers, adds, shifts]) => {
                let of = range.clone();
                let (multipliers, adds, shifts) = (&multipliers[of.clone()], &adds[of.clone()], &shifts[of]);
                let count = untils.len();
                let (multipliers, adds, shifts) = (&multipliers[..count], &adds[..count], &shifts[..count]);
                dispatch!(self.level, _ => self.sum_by::<{ SMALL - 1 }>(at, range, waiting, untils, |h, x| {
                    low::<{ SMALL - 1 }>(x, multipliers[h]).wrapping_add(adds[h]).wrapping_shr(shifts[h] as u32)
                }))
            }
            None => {
                let divisors = &self.divisors[range.clone()];
                self.sum_by::<{ u64::MAX }>(at, range, waiting, untils, |h, x| divisors[h].floor(x))
            }
        }
    }

    /// Finds the values above `lag`, of the tasks from the place `first` on, and how many times the work of each
    /// counts.
    pub(super) fn rising(&self, untils: &[u64], first: usize, lag: u64, rises: &mut Vec<(u64, u64)>) {
        rises.clear();
        let (blocks, rest) = untils.as_chunks::<LANES>();
        let add = |untils: &[u64], first: usize, rises: &mut Vec<(u64, u64)>| {
            let all = untils.iter().zip(&self.times[first..]);
            rises.extend(all.filter(|&(&until, _)| until > lag).map(|(&until, &times)| (until, times)));
        };
        dispatch!(self.level, _ => for (index, block) in blocks.iter().enumerate() {
            // Few rise. A block of others is passed at once.
            if block.iter().fold(false, |above, &until| above | (until > lag)) {
                add(block, first + index * LANES, rises);
            }
        });
        add(rest, first + blocks.len() * LANES, rises);
    }

    /// All factors are at most `MOST`, which is 2^k - 1. It works on slices of any length, so that the compiler can
    /// vectorize the loop. No number overflows; see `Shape::new`.
    #[inline(always)]
    fn sum_by<const MOST: u64>(
        &self,
        at: &Point,
        range: Range<usize>,
        Waiting { place, lag }: Waiting,
        untils: &mut [u64],
        divide: impl Fn(usize, u64) -> u64,
    ) -> (u64, u64) {
        let (window, most, count) = (at.executed[place].wrapping_add(lag), lag.wrapping_add(1), untils.len());
        let (periods, times) = (&self.periods[range.clone()][..count], &self.times[range.clone()][..count]);
        let (executed, lags) = (&at.executed[range.clone()][..count], &at.lags[range][..count]);
        let (mut sum, mut known) = (0_u64, u64::MAX);
        for h in 0..count {
            let x = window.wrapping_add(lags[h]);
            let whole = divide(h, x);
            let rest = x.wrapping_sub(low::<MOST>(whole, periods[h]));
            let before = low::<MOST>(whole, executed[h]);
            let (done, work) = (before.wrapping_add(executed[h]), before.wrapping_add(executed[h].min(rest)));
            sum = sum.wrapping_add(low::<MOST>(work.min(most), times[h]));
            let until = if work >= most { done.wrapping_sub(1) } else { lag.wrapping_add(done).wrapping_sub(work) };
            untils[h] = until;
            // The next job begins at the end of the period. If the work rises until then, it goes on rising.
            known = known.min(until.max(lag.wrapping_add(periods[h]).wrapping_sub(rest)));
        }
        (sum, known)
    }
}

/// Returns the product of two numbers that are at most `MOST`.
#[inline(always)]
fn low<const MOST: u64>(one: u64, other: u64) -> u64 {
    (one & MOST).wrapping_mul(other & MOST)
}
