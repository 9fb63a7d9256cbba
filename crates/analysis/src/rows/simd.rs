//! Computation with small numbers of several tasks at once. Loops over blocks compile to the widest vector instructions
//! of the machine that executes them.

use crate::rows::divisor::Divisor;
use crate::rows::tally::{Arrivals, Tally};
use fearless_simd::{Level, dispatch};

/// The number of values in a block.
pub(crate) const LANES: usize = 8;

/// Greater numbers of jobs count as this number.
pub(crate) const JOBS_MAX: i16 = 256;

/// Times are below this value.
pub(crate) const SMALL: u64 = 1 << 32;

/// The most requests that one job issues, so that those of [`JOBS_MAX`] jobs fit.
pub(crate) const ISSUED_MAX: u64 = 127;

/// The arrivals of a task, prepared for counting its jobs in many intervals.
///
/// Division by the period d is a multiplication by its reciprocal. With 2^k <= d < 2^(k+1) and 2^(32+k) = m d + r,
/// where 1 <= r <= d, the result for a below 2^32 is one of these two, rounded down:
///
/// ```text
/// m (a + 1) / 2^(32+k)   if r <= 2^k: below (a + 1) / d, by at most (a + 1) r / (d 2^(32+k)) <= 1 / d
/// (m + 1) a / 2^(32+k)   otherwise:   not below a / d, above by a (d - r) / (d 2^(32+k)) < 1 / d
/// ```
/// Multiplier and product fit: if r > 2^k, then d > 2^k, and m + 1 is below 2^32 as well.
///
/// Reference: Robison, *N-Bit Unsigned Division Via N-Bit Multiply-Add*, ARITH 2005.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Short {
    multiplier: u32,
    /// Added to the product.
    add: u32,
    shift: u32,
    carry: u32,
}

impl Short {
    /// Returns the multiplier, the number that is added to the product, and the shift, which divide a number below
    /// [`SMALL`] by the period.
    pub(crate) fn division(period: Divisor) -> [u64; 3] {
        let Self { multiplier, add, shift, .. } = Self::new(Arrivals { period, carry: 0 });
        [multiplier, add, shift].map(u64::from)
    }

    #[inline]
    pub(crate) fn new(arrivals: Arrivals) -> Self {
        let period = arrivals.period.get();
        let k = 63 - period.leading_zeros();
        let multiplier = arrivals.period.inverse() >> (32 - k);
        let rest = (1_u64 << (32 + k)).wrapping_sub(multiplier.wrapping_mul(period));
        let is_below = rest <= 1 << k;
        let multiplier = (multiplier as u32).wrapping_add(u32::from(!is_below));
        Self { multiplier, add: if is_below { multiplier } else { 0 }, shift: 32 + k, carry: arrivals.carry as u32 }
    }

    /// Computes the number of jobs that each interval of `times` meets, which is below 2^15, limited to [`JOBS_MAX`].
    ///
    /// It works on slices of any length, so that the compiler can vectorize the loop.
    #[inline(always)]
    pub(crate) fn jobs(self, times: &[[u32; LANES]], into: &mut [Counts]) {
        for (jobs, time) in into.as_flattened_mut().iter_mut().zip(times.as_flattened()) {
            let product = u64::from(time.wrapping_add(self.carry)) * u64::from(self.multiplier);
            let product = product.wrapping_add(u64::from(self.add));
            *jobs = (product.wrapping_shr(self.shift) as i16).min(JOBS_MAX);
        }
    }
}

/// Numbers of requests or jobs.
pub(crate) type Counts = [i16; LANES];

/// Returns the sums.
#[inline(always)]
pub(crate) fn sum(a: Counts, b: Counts) -> Counts {
    each(|lane| a[lane].wrapping_add(b[lane]))
}

/// Returns the minima.
#[inline(always)]
pub(crate) fn least(a: Counts, b: Counts) -> Counts {
    each(|lane| a[lane].min(b[lane]))
}

/// Returns the number of requests of these `jobs`, with `count` in each, at most `most`.
#[inline(always)]
pub(crate) fn taken(jobs: Counts, count: i16, most: Counts) -> Counts {
    each(|lane| jobs[lane].wrapping_mul(count).min(most[lane]))
}

/// Adds `length` for each of `taken`, none of which is negative.
#[inline(always)]
pub(crate) fn add_lengths(lengths: &mut [u32; LANES], taken: Counts, length: u32) {
    let mut sums = *lengths;
    for (sum, taken) in sums.iter_mut().zip(taken) {
        *sum = sum.wrapping_add(u32::from(taken as u16).wrapping_mul(length));
    }
    *lengths = sums;
}

/// A task with a request at some place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker<R> {
    /// The response time of the task.
    pub(crate) time: u32,
    pub(crate) rule: R,
}

/// The requests of a task that delay others at that place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step<R> {
    pub(crate) arrivals: Short,
    pub(crate) length: u32,
    pub(crate) count: i16,
    pub(crate) rule: R,
}

impl<S> Step<S> {
    /// Adds the part of it that delays in `times`. `jobs` has room for as many values.
    #[inline(always)]
    fn take<R: Rule<Step = S>>(&self, times: &[[u32; LANES]], jobs: &mut [Counts], blocks: &mut [Block<R>]) {
        self.arrivals.jobs(times, jobs);
        for (block, jobs) in blocks.iter_mut().zip(jobs) {
            let taken = block.rule.take(&self.rule, each(|lane| jobs[lane].wrapping_mul(self.count)));
            add_lengths(&mut block.requests, taken, 1);
            add_lengths(&mut block.lengths, taken, self.length);
        }
    }
}

/// A rule for the number of requests that delay each asker of a block.
pub(crate) trait Rule: Clone + Default {
    /// The data of an asker, and those of a step.
    type Asker;
    type Step;

    fn enter(&mut self, lane: usize, asker: Self::Asker);

    /// Returns the number of requests of a step that delay, of the `all` that it has.
    fn take(&mut self, step: &Self::Step, all: Counts) -> Counts;
}

/// An asker under [`Fair`]. Requests of `key` do not delay it. At most `each` of every other request delay it, and at
/// most `total` of each key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turns {
    pub(crate) key: i16,
    pub(crate) each: i16,
    pub(crate) total: i16,
}

/// A step under [`Fair`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) key: i16,
    /// Whether it is the first of its key, and thus the longest.
    pub(crate) leads: bool,
}

/// A limited number of requests of each key. The requests of a key are adjacent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fair {
    keys: Counts,
    each: Counts,
    total: Counts,
    left: Counts,
}

impl Rule for Fair {
    type Asker = Turns;
    type Step = Turn;

    #[inline]
    fn enter(&mut self, lane: usize, asker: Turns) {
        self.keys[lane] = asker.key;
        self.each[lane] = asker.each;
        self.total[lane] = asker.total;
    }

    #[inline(always)]
    fn take(&mut self, step: &Turn, all: Counts) -> Counts {
        let (keys, limits) = (self.keys, self.each);
        let first = i16::from(step.leads).wrapping_neg();
        let left = each(|lane| (self.total[lane] & first) | (self.left[lane] & !first));
        let other = each(|lane| i16::from(keys[lane] != step.key).wrapping_neg());
        let most = least(limits, left);
        let most = each(|lane| most[lane] & other[lane]);
        let taken = least(all, most);
        self.left = each(|lane| left[lane].wrapping_sub(taken[lane]));
        taken
    }
}

/// An asker under [`Ceilings`], with the number of less urgent requests that delay it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiter {
    task: i16,
    left: i16,
    priority: i32,
}

impl Waiter {
    #[inline]
    pub(crate) fn new(task: u32, priority: u32, left: u64) -> Self {
        Self { task: task as i16, left: left as i16, priority: signed(priority) }
    }
}

/// A step under [`Ceilings`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ceiling {
    task: i16,
    priority: i32,
    ceiling: i32,
}

impl Ceiling {
    #[inline]
    pub(crate) fn new(task: u32, priority: u32, ceiling: u32) -> Self {
        Self { task: task as i16, priority: signed(priority), ceiling: signed(ceiling) }
    }
}

/// All requests that are at least as urgent, and a limited number of the others under ceilings that are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ceilings {
    tasks: Counts,
    left: Counts,
    priorities: [i32; LANES],
}

impl Rule for Ceilings {
    type Asker = Waiter;
    type Step = Ceiling;

    #[inline]
    fn enter(&mut self, lane: usize, asker: Waiter) {
        self.tasks[lane] = asker.task;
        self.left[lane] = asker.left;
        self.priorities[lane] = asker.priority;
    }

    #[inline(always)]
    fn take(&mut self, step: &Ceiling, all: Counts) -> Counts {
        let (tasks, left) = (self.tasks, self.left);
        let (first, may) = (at_most(&self.priorities, step.priority), at_most(&self.priorities, step.ceiling));
        let other = each(|lane| all[lane] & i16::from(tasks[lane] != step.task).wrapping_neg());
        let less = least(other, left);
        let less = each(|lane| less[lane] & may[lane] & !first[lane]);
        self.left = each(|lane| left[lane].wrapping_sub(less[lane]));
        each(|lane| (other[lane] & first[lane]) | less[lane])
    }
}

/// Returns a mask with all bits set for each number that is at most `limit`.
#[inline(always)]
fn at_most(numbers: &[i32; LANES], limit: i32) -> Counts {
    let mut all = [0; LANES];
    for (mask, number) in all.iter_mut().zip(numbers) {
        *mask = i16::from(*number <= limit).wrapping_neg();
    }
    all
}

/// Maps priorities to signed numbers in the same order.
#[inline]
fn signed(priority: u32) -> i32 {
    (priority ^ 1 << 31) as i32
}

/// The delays of the askers at one place, in blocks.
#[derive(Debug)]
pub(crate) struct Crowd<R> {
    level: Level,
    times: Vec<[u32; LANES]>,
    jobs: Vec<Counts>,
    blocks: Vec<Block<R>>,
}

#[derive(Clone, Debug, Default)]
struct Block<R> {
    rule: R,
    requests: [u32; LANES],
    lengths: [u32; LANES],
}

impl<R: Rule> Crowd<R> {
    /// Creates the blocks with room for `askers` askers at one place.
    pub(crate) fn new(askers: usize) -> Self {
        let blocks = askers.div_ceil(LANES);
        let (times, jobs) = (Vec::with_capacity(blocks), Vec::with_capacity(blocks));
        Self { level: Level::new(), times, jobs, blocks: Vec::with_capacity(blocks) }
    }

    /// Computes the delay of each of `askers` by the requests of `steps`, in their order. `add` receives the place of
    /// the asker and its delay.
    #[inline]
    pub(crate) fn delays(
        &mut self,
        steps: impl Iterator<Item = Step<R::Step>>,
        askers: impl Iterator<Item = Asker<R::Asker>>,
        mut add: impl FnMut(usize, Tally),
    ) {
        self.times.clear();
        self.blocks.clear();
        let mut count = 0;
        for asker in askers {
            let lane = count % LANES;
            if lane == 0 {
                self.times.push([0; LANES]);
                self.blocks.push(Block::default());
            }
            count += 1;
            if let (Some(times), Some(block)) = (self.times.last_mut(), self.blocks.last_mut()) {
                times[lane] = asker.time;
                block.rule.enter(lane, asker.rule);
            }
        }
        self.jobs.resize(self.blocks.len(), [0; LANES]);
        let Self { level, times, jobs, blocks } = self;
        dispatch!(*level, _ => for step in steps {
            step.take(times, jobs, blocks);
        });
        for place in 0..count {
            let (block, lane) = (&self.blocks[place / LANES], place % LANES);
            add(place, Tally { length: u64::from(block.lengths[lane]), requests: u64::from(block.requests[lane]) });
        }
    }
}

/// Times below this value are short: the sum of two has 32 bits.
pub(crate) const SHORT_MAX: u64 = 1 << 31;

/// Returns 2^64 divided by a short period above 1, rounded up: the high 32 bits and the low ones.
pub(crate) fn halves(period: Divisor) -> [u32; 2] {
    let inverse = period.inverse().wrapping_add(1);
    [(inverse >> 32) as u32, inverse as u32]
}

/// Returns the sum of `ceil((window + jitter) / period) * cost` for a window above 0. All times are short, and no cost
/// exceeds its period.
#[inline(always)]
pub(crate) fn short_work(window: u64, jitters: &[u64], halves: &[[u32; 2]], costs: &[u64]) -> u64 {
    let tasks = jitters.iter().zip(halves).zip(costs);
    tasks.fold(0, |sum: u64, ((&jitter, &[high, low]), &cost)| {
        // The sum of two times has 32 bits, and so has the number of jobs. The work of each task is below 2^33.
        let before = (window as u32).wrapping_add(jitter as u32).wrapping_sub(1);
        let (before, high, low) = (u64::from(before), u64::from(high), u64::from(low));
        let jobs = ((before * high).wrapping_add((before * low) >> 32) >> 32).wrapping_add(1);
        sum.wrapping_add(u64::from(jobs as u32).wrapping_mul(u64::from(cost as u32)))
    })
}

/// Like [`short_work`], of those tasks whose mask in `others` is 0, not `u64::MAX`. Also returns by how much the window
/// may grow, or any of the jitters, until one more job counts; without a task, that has no limit.
///
/// The masks are data. From masks of conditions, the compiler makes branches, and the loop has no vector instructions.
#[inline(always)]
pub(crate) fn short_steps(
    window: u64,
    others: impl Iterator<Item = u64>,
    jitters: &[u64],
    (periods, halves): (&[u64], &[[u32; 2]]),
    costs: &[u64],
) -> (u64, u64) {
    let tasks = jitters.iter().zip(periods).zip(halves).zip(costs).zip(others);
    tasks.fold((0, u64::MAX), |(sum, slack), ((((&jitter, &period), &[high, low]), &cost), other)| {
        // As in `short_work`. The last of these jobs ends its period within 2^33.
        let before = (window as u32).wrapping_add(jitter as u32).wrapping_sub(1);
        let (before, high, low) = (u64::from(before), u64::from(high), u64::from(low));
        let jobs = u64::from(((before * high).wrapping_add((before * low) >> 32) >> 32).wrapping_add(1) as u32);
        let left = (jobs * u64::from(period as u32)).wrapping_sub(before + 1);
        let work = (jobs * u64::from(cost as u32)) & !other;
        (sum.wrapping_add(work), slack.min(left | other))
    })
}

/// Masks for [`short_steps`] that leave out all tasks after the first ones.
pub(crate) struct Masks(Vec<u64>);

impl Masks {
    /// Creates masks for up to `most` tasks.
    pub(crate) fn new(most: usize) -> Self {
        let mut masks = vec![0; most];
        masks.resize(most + LANES, u64::MAX);
        Self(masks)
    }

    /// Returns the masks of whole blocks with the first `count` tasks.
    pub(crate) fn after(&self, count: usize) -> &[u64] {
        let first = self.0.len() - LANES - count;
        &self.0[first..][..count.next_multiple_of(LANES)]
    }
}

/// Returns `u64::MAX` if `a` is below `b`, and 0 otherwise. Both are below 2^63.
#[inline(always)]
pub(crate) fn mask_below(a: u64, b: u64) -> u64 {
    ((a.wrapping_sub(b) as i64) >> 63) as u64
}

/// Returns the end of a range of `count` values from `first` on, extended to whole blocks, but at most `end`.
pub(crate) fn whole_blocks(first: usize, count: usize, end: usize) -> usize {
    (first + count.next_multiple_of(LANES)).min(end)
}

#[inline(always)]
fn each(of: impl Fn(usize) -> i16) -> Counts {
    let mut all = [0; LANES];
    for (lane, number) in all.iter_mut().enumerate() {
        *number = of(lane);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::divisor::Divisor;

    /// Blocks contain tasks that do not count, and the last block can be incomplete.
    #[test]
    fn short_steps_are_those_of_the_tasks_that_count() {
        let mut random = fastrand::Rng::with_seed(2);
        let masks = Masks::new(40);
        for round in 0..20_000 {
            let (len, window) = (random.usize(1..40), random.u64(1..SHORT_MAX) >> random.u32(..30));
            let window = window.max(1);
            let mut times = |least: u64| -> Vec<u64> {
                (0..len).map(|_| (random.u64(..SHORT_MAX) >> random.u32(..30)).max(least)).collect()
            };
            let (jitters, periods, places) = (times(0), times(2), times(0));
            let costs: Vec<u64> = times(0).iter().zip(&periods).map(|(cost, period)| cost % (period + 1)).collect();
            let inverses: Vec<[u32; 2]> = periods.iter().filter_map(|&p| Divisor::new(p)).map(halves).collect();
            let (count, end) = (random.usize(..=len), random.u64(..SHORT_MAX) >> random.u32(..30));
            let (mut work, mut slack) = (0, u64::MAX);
            for index in (0..count).filter(|&index| places[index] >= end) {
                let jobs = (window + jitters[index]).div_ceil(periods[index]);
                work += jobs * costs[index];
                slack = slack.min(jobs * periods[index] - window - jitters[index]);
            }
            let others = masks.after(count).iter().zip(&places).map(|(other, &place)| other | mask_below(place, end));
            let found = short_steps(window, others, &jitters, (&periods, &inverses), &costs);
            assert_eq!(found, (work, slack), "{round}: {count} of {len} tasks in {window}");
        }
    }

    #[test]
    fn job_counts_equal_the_divisions() {
        let mut random = fastrand::Rng::with_seed(1);
        let edges = |x: u64| [x.saturating_sub(1), x, x + 1];
        for shift in 0..32 {
            let all = edges(1 << shift).into_iter().chain((0..50).map(|_| random.u64(1..SMALL) >> shift));
            for period in all.filter(|period| (1..SMALL).contains(period)).collect::<Vec<_>>() {
                let carry = random.u64(..SMALL) >> random.u32(..32);
                let arrivals = Arrivals { period: Divisor::new(period).unwrap(), carry };
                let times = || random.u64(..SMALL - carry) >> random.u32(..32);
                let mut all: Vec<u64> = std::iter::repeat_with(times).take(50).collect();
                let jobs_max = JOBS_MAX as u64;
                for jobs in (1..20).chain([jobs_max - 1, jobs_max, jobs_max + 1, SMALL / period]) {
                    all.extend(edges(period * jobs).map(|a| a.saturating_sub(carry)));
                }
                all.push(SMALL - 1 - carry);
                for t in all.into_iter().filter(|t| t + carry < SMALL.min(period << 15)) {
                    let jobs = ((t + carry) / period).min(jobs_max) as i16;
                    let mut found = [[0; LANES]];
                    Short::new(arrivals).jobs(&[[t as u32; LANES]], &mut found);
                    assert_eq!(found, [[jobs; LANES]], "{t} + {carry}, {period}");
                }
            }
        }
    }
}
