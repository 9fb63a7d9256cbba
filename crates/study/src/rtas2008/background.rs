//! The processor time that is left for background jobs: figure 2.
//!
//! Identical tasks on 4 processors under global EDF consume a quarter of them. Jobs arrive together, once in a period,
//! and execute in a random order. Each has 10 sections, whose lengths vary by half, with equal times between them.
//! Processors without a job execute background jobs. The paper measured this on a real machine; here it is simulated,
//! and only execution and spinning take time.
//!
//! With semaphores a waiting job leaves its processor, so exactly the execution of the jobs is lost.

use crate::generators::{Philox, Stream};

/// The number of processors.
pub(super) const PROCESSORS: u64 = 4;
/// The number of tasks.
const TASKS: u64 = 32;
/// The number of sections of a job.
const SECTIONS: u64 = 10;
/// The periods that are simulated of each set.
const PERIODS: usize = 40;
/// The numbers of resources. Tasks are divided into as many groups.
pub(super) const RESOURCES: [usize; 3] = [1, 2, 4];

/// A job: the time before each section, and the length of the section, in nanoseconds.
struct Job {
    resource: usize,
    steps: Vec<(u64, u64)>,
    /// The time after the last section.
    rest: u64,
}

/// Returns the processors that are left for background jobs, in millionths of one processor, for a set in which `share`
/// percent of the execution is in sections. `spins` tells whether waiting jobs keep their processors.
pub(super) fn throughput(seed: u64, sample: u64, share: u32, resources: usize, spins: bool) -> u64 {
    let mut random = Philox::new(seed, u64::from(share)).stream(sample, 0);
    let period = random.whole((40_000_000, 1_000_000_000));
    let (mut busy, mut all) = (0_u64, 0_u64);
    for _ in 0..PERIODS {
        let jobs = jobs(&mut random, period, u64::from(share), resources);
        let taken = if spins { spinning(&jobs, resources) } else { executing(&jobs) };
        busy += taken.min(PROCESSORS * period);
        all += period;
    }
    ((PROCESSORS * all - busy) as u128 * 1_000_000 / u128::from(all)) as u64
}

/// Draws the jobs of one period, in the order in which they execute.
fn jobs(random: &mut Stream, period: u64, share: u64, resources: usize) -> Vec<Job> {
    let cost = period / TASKS;
    let section = cost * share / 100 / SECTIONS;
    let gap = (cost - cost * share / 100) / (SECTIONS + 1);
    let mut order: Vec<usize> = (0..TASKS as usize).collect();
    random.shuffle(&mut order);
    let job = |task: usize| Job {
        resource: task % resources,
        steps: (0..SECTIONS).map(|_| (gap, random.whole((section / 2, section + section / 2)))).collect(),
        rest: gap,
    };
    order.into_iter().map(job).collect()
}

/// Returns the time for which processors execute jobs.
fn executing(jobs: &[Job]) -> u64 {
    let of = |job: &Job| job.rest + job.steps.iter().map(|(gap, section)| gap + section).sum::<u64>();
    jobs.iter().map(of).sum()
}

/// Returns the time for which processors execute jobs or spin, with one FIFO spinlock for each resource.
fn spinning(jobs: &[Job], resources: usize) -> u64 {
    // By resource: when it becomes free. Requests are handled in order of time, so this is a queue in FIFO order.
    let mut free = vec![0_u64; resources];
    // By processor: the time, the job and its next step. A processor without a job has left the list.
    let mut active: Vec<(u64, usize, usize)> = Vec::new();
    let (mut next, mut busy) = (0, 0);
    for _ in 0..PROCESSORS.min(jobs.len() as u64) {
        active.push((jobs[next].first(), next, 0));
        next += 1;
    }
    // BOUND: each round executes a section or ends a job.
    while let Some(earliest) = (0..active.len()).min_by_key(|&cpu| (active[cpu].0, active[cpu].1)) {
        let (now, job, step) = active[earliest];
        let Job { resource, steps, rest } = &jobs[job];
        let Some((_, section)) = steps.get(step) else {
            if next < jobs.len() {
                active[earliest] = (now + jobs[next].first(), next, 0);
                next += 1;
            } else {
                busy += now;
                active.swap_remove(earliest);
            }
            continue;
        };
        let end = now.max(free[*resource]) + section;
        free[*resource] = end;
        let gap = steps.get(step + 1).map_or(*rest, |(gap, _)| *gap);
        active[earliest] = (end + gap, job, step + 1);
    }
    busy
}

impl Job {
    /// The time before the first section.
    fn first(&self) -> u64 {
        self.steps.first().map_or(self.rest, |(gap, _)| *gap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(resource: usize, steps: &[(u64, u64)], rest: u64) -> Job {
        Job { resource, steps: steps.to_vec(), rest }
    }

    #[test]
    fn processors_spin_in_the_order_of_requests() {
        // Both request at 2; the second one waits for 5.
        let both = [job(0, &[(2, 5)], 1), job(0, &[(2, 5)], 1)];
        assert_eq!((spinning(&both, 1), executing(&both)), (8 + 13, 16));
        let apart = [job(0, &[(2, 5)], 1), job(1, &[(2, 5)], 1)];
        assert_eq!(spinning(&apart, 2), 16);
        // Five jobs on four processors: the fifth follows the first one that ends.
        let five: Vec<Job> = (1..=5).map(|rest| job(0, &[], rest)).collect();
        assert_eq!(spinning(&five, 1), 2 + 3 + 4 + (1 + 5));
    }

    /// Without sections nothing is lost, and if all execution is in one section, everything.
    #[test]
    fn the_ends_are_known() {
        let of = |share, resources, spins| throughput(1, 0, share, resources, spins);
        for resources in RESOURCES {
            assert!((2_999_000..=3_001_000).contains(&of(0, resources, true)));
            assert!((2_900_000..=3_100_000).contains(&of(100, resources, false)));
        }
        assert!(of(100, 1, true) < 150_000, "{}", of(100, 1, true));
        assert!(of(100, 4, true) > of(100, 2, true) && of(100, 2, true) > of(100, 1, true));
    }
}
