//! Small numbers of several tasks at once: loops over blocks become the machine's vector instructions.

use super::tables::{Arrivals, Tally};

/// Numbers in a block.
pub(crate) const LANES: usize = 8;

/// More jobs than that are counted as so many.
pub(crate) const JOBS_MAX: i16 = 256;

/// Times are below it.
pub(crate) const SMALL: u64 = 1 << 31;

/// Most requests one job issues, so that those of [`JOBS_MAX`] jobs fit.
pub(crate) const ISSUED_MAX: u64 = 127;

/// A task's arrivals, to count its jobs in many intervals.
///
/// The period d is multiplied by its reciprocal: with 2^(k-1) < d <= 2^k and s = 31 + k, m = floor((2^s - 1) / d) + 1 is above 2^s / d by less
/// than 1, or as much, and m a / 2^s above a / d by at most a / 2^s, less than 1 / d, for a below 2^31. And m is below 2^32.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Short {
    multiplier: u32,
    shift: u32,
    carry: u32,
}

impl Short {
    #[inline]
    pub(crate) fn new(arrivals: Arrivals) -> Self {
        let k = 64 - (arrivals.period.get() - 1).leading_zeros();
        let shift = 31 + k;
        let multiplier = ((arrivals.period.inverse() >> (64 - shift)) as u32).wrapping_add(1);
        Self { multiplier, shift, carry: arrivals.carry as u32 }
    }

    /// How many jobs each interval of `times` meets, below 2^15; at most [`JOBS_MAX`].
    ///
    /// Of slices, whatever their length: so the compiler makes vector instructions of the loop.
    #[inline]
    pub(crate) fn jobs(self, times: &[[u32; LANES]], into: &mut [Counts]) {
        for (jobs, time) in into.as_flattened_mut().iter_mut().zip(times.as_flattened()) {
            let product = u64::from(time.wrapping_add(self.carry)) * u64::from(self.multiplier);
            *jobs = (product.wrapping_shr(self.shift) as i16).min(JOBS_MAX);
        }
    }
}

/// Numbers of requests, or jobs.
pub(crate) type Counts = [i16; LANES];

/// Adds them up.
#[inline]
pub(crate) fn sum(a: Counts, b: Counts) -> Counts {
    each(|lane| a[lane].wrapping_add(b[lane]))
}

/// The lesser of each two.
#[inline]
pub(crate) fn least(a: Counts, b: Counts) -> Counts {
    each(|lane| a[lane].min(b[lane]))
}

/// How many requests so many `jobs` make with `count` in each, at most `most`.
#[inline]
pub(crate) fn taken(jobs: Counts, count: i16, most: Counts) -> Counts {
    each(|lane| jobs[lane].wrapping_mul(count).min(most[lane]))
}

/// Adds `length` for each of `taken`, none of which are negative.
#[inline]
pub(crate) fn add_lengths(lengths: &mut [u32; LANES], taken: Counts, length: u32) {
    let mut sums = *lengths;
    for (sum, taken) in sums.iter_mut().zip(taken) {
        *sum = sum.wrapping_add(u32::from(taken as u16).wrapping_mul(length));
    }
    *lengths = sums;
}

/// A task that asks at some place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker {
    pub(crate) task: u32,
    /// Its response time.
    pub(crate) time: u32,
    /// Requests of this key do not delay it.
    pub(crate) key: i16,
    /// Of each request at most so many do; of each key in all.
    pub(crate) each: i16,
    pub(crate) total: i16,
}

/// A task's request there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) arrivals: Short,
    pub(crate) length: u32,
    pub(crate) count: i16,
    pub(crate) key: i16,
    /// It is the first of its key, and the longest.
    pub(crate) leads: bool,
}

/// What delays the askers at one place, in blocks.
#[derive(Debug)]
pub(crate) struct Crowd {
    tasks: Vec<u32>,
    times: Vec<[u32; LANES]>,
    jobs: Vec<Counts>,
    blocks: Vec<Block>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Block {
    keys: Counts,
    each: Counts,
    total: Counts,
    left: Counts,
    requests: Counts,
    lengths: [u32; LANES],
}

impl Block {
    /// Adds what of the requests of `step` delays, where so many `jobs` can be.
    #[inline]
    fn add(&mut self, step: &Step, jobs: &Counts) {
        let first = i16::from(step.leads).wrapping_neg();
        self.left = each(|lane| (self.total[lane] & first) | (self.left[lane] & !first));
        let most = each(|lane| {
            let other = i16::from(self.keys[lane] != step.key).wrapping_neg();
            self.each[lane].min(self.left[lane]) & other
        });
        let taken = taken(*jobs, step.count, most);
        self.left = each(|lane| self.left[lane].wrapping_sub(taken[lane]));
        self.requests = sum(self.requests, taken);
        add_lengths(&mut self.lengths, taken, step.length);
    }
}

impl Crowd {
    /// With room for so many askers at one place.
    pub(crate) fn new(askers: usize) -> Self {
        let blocks = askers.div_ceil(LANES);
        Self {
            tasks: Vec::with_capacity(askers),
            times: Vec::with_capacity(blocks),
            jobs: Vec::with_capacity(blocks),
            blocks: Vec::with_capacity(blocks),
        }
    }

    /// The longest requests that delay each of `askers`, by `steps` in the order of keys.
    #[inline]
    pub(crate) fn longest_of_each(
        &mut self,
        steps: impl Iterator<Item = Step>,
        askers: impl Iterator<Item = Asker>,
        mut add: impl FnMut(u32, Tally),
    ) {
        self.tasks.clear();
        self.times.clear();
        self.blocks.clear();
        for asker in askers {
            let lane = self.tasks.len() % LANES;
            if lane == 0 {
                self.times.push([0; LANES]);
                self.blocks.push(Block::default());
            }
            self.tasks.push(asker.task);
            if let (Some(times), Some(block)) = (self.times.last_mut(), self.blocks.last_mut()) {
                times[lane] = asker.time;
                block.keys[lane] = asker.key;
                block.each[lane] = asker.each;
                block.total[lane] = asker.total;
            }
        }
        self.jobs.resize(self.blocks.len(), [0; LANES]);
        for step in steps {
            step.arrivals.jobs(&self.times, &mut self.jobs);
            for (block, jobs) in self.blocks.iter_mut().zip(&self.jobs) {
                block.add(&step, jobs);
            }
        }
        for (place, task) in self.tasks.iter().enumerate() {
            let (block, lane) = (&self.blocks[place / LANES], place % LANES);
            add(*task, Tally { length: u64::from(block.lengths[lane]), requests: block.requests[lane] as u64 });
        }
    }
}

#[inline]
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
    use crate::divisor::Divisor;
    use crate::multiprocessor::random;
    use crate::multiprocessor::tables::{Entry, Grouping, Saturates, Tables, longest, longest_of_each};

    #[test]
    fn jobs_are_counted_as_by_division() {
        let mut random = fastrand::Rng::with_seed(1);
        let edges = |x: u64| [x.saturating_sub(1), x, x + 1];
        for shift in 0..31 {
            let all = edges(1 << shift).into_iter().chain((0..50).map(|_| random.u64(1..SMALL) >> shift));
            for period in all.filter(|period| (1..SMALL).contains(period)).collect::<Vec<_>>() {
                let carry = random.u64(..SMALL) >> random.u32(..31);
                let arrivals = Arrivals { period: Divisor::new(period).unwrap(), carry };
                let times = || random.u64(..SMALL - carry) >> random.u32(..31);
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

    #[test]
    fn many_askers_at_once_are_as_one_by_one() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut crowd = Crowd::new(0);
        for round in 0..400 {
            let count = if round % 20 == 0 { 200 } else { 20 };
            let mut sharing = random::sharing(&mut random, 4, count, 5);
            for task in &mut sharing.tasks {
                task.response *= random.u64(..2);
            }
            let requests = |task: usize| sharing.tasks[task].requests.as_slice();
            let together = Tables::new(&sharing.tasks, requests, Grouping::Together).unwrap();
            let clusters = Tables::new(&sharing.tasks, requests, Grouping::Clusters).unwrap();
            assert!(together.is_small() && clusters.is_small());
            let (total, each) = (random.i16(1..30), random.i16(1..7));
            let mut at = 0;
            for resource in 0..together.resource_count() as u32 {
                let entries = together.entries_of(resource);
                let askers: Vec<Asker> = (entries.iter())
                    .map(|entry| Asker { total, ..together.asker(entry.task, entry.task, each) })
                    .collect();
                let steps = entries.iter().map(|entry| together.step(entry, entry.task));
                crowd.longest_of_each(steps, askers.into_iter(), |task, tally| {
                    let (task, window) = (task as usize, together.window(task as usize));
                    assert_eq!(tally, longest::<Saturates>(entries, task, window, total as u64, each as u64));
                    at += 1;
                });
                let entries = clusters.entries_of(resource);
                let askers = entries.iter().map(|entry| clusters.asker(entry.task, entry.cluster, each));
                let steps = entries.iter().map(|entry| clusters.step(entry, entry.cluster));
                crowd.longest_of_each(steps, askers, |task, tally| {
                    let (window, own) = (clusters.window(task as usize), clusters.rows[task as usize].cluster);
                    let cluster = |entry: &Entry| entry.cluster;
                    assert_eq!(tally, longest_of_each::<Saturates>(entries, cluster, window, own, each as u64));
                    at += 1;
                });
            }
            assert_eq!(at, 2 * together.all_asked().len());
        }
    }
}
