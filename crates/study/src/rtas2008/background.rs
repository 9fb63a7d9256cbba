//! The processor time that is left for background jobs: figure 2.
//!
//! Identical tasks on 4 processors under global EDF consume a quarter of them. Jobs arrive together, once in a period,
//! and execute in a random order. Each has 10 sections, whose lengths vary by half, with equal times between them.
//! Processors without a job execute background jobs. The paper measured this on a real machine; here it is simulated,
//! and only execution and spinning take time.
//!
//! [`background_system`] returns a set as real threads can execute it, and [`background_left`] simulates it.
//!
//! With semaphores a waiting job leaves its processor, so exactly the execution of the jobs is lost.

use crate::generators::{Philox, Stream};
use lockwright_model::{CpuId, Duration, Priority, Resource, ResourceId, Step, System, Task};

/// The number of processors.
pub(super) const PROCESSORS: u64 = 4;
/// The number of tasks for each processor.
const TASKS_EACH: u64 = 8;
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
    left(seed, sample, share, (PROCESSORS, resources), spins)
}

/// Returns the mean share of `cpus` processors that is left for background jobs, simulated for `samples` sets.
#[must_use]
pub fn background_left(seed: u64, samples: u64, share: u32, (cpus, resources): (u64, usize), spins: bool) -> f64 {
    let all: u64 = (0..samples).map(|sample| left(seed, sample, share, (cpus, resources), spins)).sum();
    all as f64 / (samples.max(1) * cpus) as f64 / 1e6
}

/// Returns a set of identical tasks under partitioned fixed priorities on `cpus` processors, of which it executes a
/// quarter. All jobs arrive together, and those of one processor execute in the order of their tasks. The sections of
/// a task have the same lengths in each job.
///
/// # Panics
/// Panics if `share` exceeds 100, or `cpus` the limit of a system.
#[must_use]
pub fn background_system(seed: u64, share: u32, (cpus, resources): (usize, usize), period: Duration) -> System {
    let mut random = Philox::new(seed, u64::from(share)).stream(0, 1);
    let jobs = jobs(&mut random, period.as_ns(), u64::from(share), (cpus as u64, resources));
    let task = |(place, job): (usize, &Job)| {
        // Those who share a resource are on all processors.
        let resource = ResourceId::new(place / cpus % resources);
        let mut body = Vec::new();
        let run = |ns: u64, body: &mut Vec<Step>| {
            if ns > 0 {
                body.push(Step::Run(Duration::from_ns(ns)));
            }
        };
        for &(gap, section) in &job.steps {
            run(gap, &mut body);
            if section > 0 {
                body.extend([Step::Lock(resource), Step::Run(Duration::from_ns(section)), Step::Unlock(resource)]);
            }
        }
        run(job.rest, &mut body);
        Task {
            name: format!("t{place}"),
            cpu: CpuId::new(place % cpus),
            priority: Priority::base((TASKS_EACH as usize - place / cpus) as u32),
            period,
            deadline: period,
            jitter: Duration::ZERO,
            offset: Duration::ZERO,
            wcet: Duration::from_ns(job.rest + job.steps.iter().map(|(gap, section)| gap + section).sum::<u64>()),
            body,
        }
    };
    let tasks = jobs.iter().enumerate().map(task).collect();
    let resources = (0..resources).map(|index| Resource::new(format!("r{index}"))).collect();
    System::new(format!("{share} % in sections"), cpus, None, resources, tasks).expect("the set keeps every rule")
}

fn left(seed: u64, sample: u64, share: u32, (processors, resources): (u64, usize), spins: bool) -> u64 {
    let mut random = Philox::new(seed, u64::from(share)).stream(sample, 0);
    let period = random.whole((40_000_000, 1_000_000_000));
    let (mut busy, mut all) = (0_u64, 0_u64);
    for _ in 0..PERIODS {
        let jobs = jobs(&mut random, period, u64::from(share), (processors, resources));
        let taken = if spins { spinning(&jobs, processors, resources) } else { executing(&jobs) };
        busy += taken.min(processors * period);
        all += period;
    }
    ((processors * all - busy) as u128 * 1_000_000 / u128::from(all)) as u64
}

/// Draws the jobs of one period, in the order in which they execute.
fn jobs(random: &mut Stream, period: u64, share: u64, (processors, resources): (u64, usize)) -> Vec<Job> {
    let cost = period / (4 * TASKS_EACH);
    let section = cost * share / 100 / SECTIONS;
    let gap = (cost - cost * share / 100) / (SECTIONS + 1);
    let mut order: Vec<usize> = (0..(processors * TASKS_EACH) as usize).collect();
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
fn spinning(jobs: &[Job], processors: u64, resources: usize) -> u64 {
    // By resource: when it becomes free. Requests are handled in order of time, so this is a queue in FIFO order.
    let mut free = vec![0_u64; resources];
    // By processor: the time, the job and its next step. A processor without a job has left the list.
    let mut active: Vec<(u64, usize, usize)> = Vec::new();
    let (mut next, mut busy) = (0, 0);
    for _ in 0..processors.min(jobs.len() as u64) {
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
        assert_eq!((spinning(&both, PROCESSORS, 1), executing(&both)), (8 + 13, 16));
        let apart = [job(0, &[(2, 5)], 1), job(1, &[(2, 5)], 1)];
        assert_eq!(spinning(&apart, PROCESSORS, 2), 16);
        // Five jobs on four processors: the fifth follows the first one that ends.
        let five: Vec<Job> = (1..=5).map(|rest| job(0, &[], rest)).collect();
        assert_eq!(spinning(&five, PROCESSORS, 1), 2 + 3 + 4 + (1 + 5));
    }

    #[test]
    fn real_sets_have_the_load_and_sections_of_the_simulation() {
        let period = Duration::from_ms(40);
        for (share, cpus, resources) in [(0, 2, 1), (30, 2, 4), (100, 1, 2), (70, 4, 2)] {
            let system = background_system(1, share, (cpus, resources), period);
            assert_eq!((system.tasks().len(), system.cpus()), (8 * cpus, cpus));
            let cost: u64 = system.tasks().iter().map(|task| task.wcet.as_ns()).sum();
            let inside: u64 = system.task_ids().flat_map(|id| system.sections(id)).map(|s| s.length.as_ns()).sum();
            let all = period.as_ns() * cpus as u64;
            assert!((cost as f64 / all as f64 - 0.25).abs() < 0.02, "{cost}");
            assert!((inside as f64 / cost as f64 - f64::from(share) / 100.0).abs() < 0.05, "{inside}");
            for id in system.resource_ids().filter(|_| share > 0) {
                let users = system.users(id).iter().map(|&user| system.task(user).cpu);
                assert_eq!(users.collect::<std::collections::BTreeSet<_>>().len(), cpus, "all share {id:?}");
            }
        }
        let of = |spins| background_left(1, 20, 100, (2, 1), spins);
        // The sections of two processors follow one another, so half of the time one of them waits.
        assert!((of(true) - 0.5).abs() < 0.05 && (of(false) - 0.75).abs() < 0.05, "{}", of(true));
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
