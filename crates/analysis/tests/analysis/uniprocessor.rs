//! Compares bounds for one processor with simulated schedules, with each other, and with published values.

use fastrand::Rng;
use lockwright_analysis::uniprocessor::compositional::{self, Activation, Events, Link};
use lockwright_analysis::uniprocessor::jobs::{self, Completion, Job};
use lockwright_analysis::uniprocessor::{Preemption, Task, edf, fifo, fp};
use lockwright_analysis::{Demand, Failure, Limit, Sharer, Sharing, Sporadic};

const NO_LIMIT: u64 = u64::MAX;

fn sporadic(cost: u64, period: u64, deadline: u64) -> Sporadic {
    Sporadic { cost, period, deadline }
}

/// Builds tasks in order of decreasing priority.
fn tasks(rows: &[(u64, u64, u64)]) -> Vec<Task> {
    let task = |(index, &(cost, period, deadline)): (usize, &(u64, u64, u64))| Task {
        priority: 1_000 - index as u32,
        ..sporadic(cost, period, deadline).into()
    };
    rows.iter().enumerate().map(task).collect()
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Policy {
    Fp,
    Edf,
    Fifo,
}

/// Returns the longest time from release to finish of each task's jobs in one schedule. Tasks arrive from `offsets` on.
/// Each job is released later by a random part of its jitter, and suspends for a random part of its suspension in the
/// middle of its execution. Only full preemption, or none, is supported.
fn simulate(tasks: &[Task], offsets: &[u64], policy: Policy, until: u64, random: &mut Rng) -> Vec<u64> {
    struct Running {
        task: usize,
        released: u64,
        left: u64,
        suspends: u64,
        asleep_until: u64,
    }
    let mut jobs: Vec<Running> = Vec::new();
    let mut releases = Vec::new();
    for (index, (task, &offset)) in tasks.iter().zip(offsets).enumerate() {
        let mut latest = 0;
        for arrival in (offset..until).step_by(task.period as usize) {
            latest = (arrival + random.u64(0..=task.jitter)).max(latest);
            releases.push((latest, index));
        }
    }
    releases.sort_unstable();
    let mut releases = releases.into_iter().peekable();
    let mut longest = vec![0; tasks.len()];
    let mut current: Option<(usize, u64)> = None;
    for now in 0..until {
        while let Some((released, task)) = releases.next_if(|&(released, _)| released <= now) {
            let suspends = random.u64(0..=tasks[task].suspension);
            jobs.push(Running { task, released, left: tasks[task].cost, suspends, asleep_until: 0 });
        }
        // A job waits for the previous job of the same task.
        let first = |index: usize| !jobs[..index].iter().any(|other| other.task == jobs[index].task);
        let ready = (0..jobs.len()).filter(|&index| first(index) && jobs[index].asleep_until <= now);
        let urgency = |job: &Running| match policy {
            Policy::Fp => (u64::from(u32::MAX - tasks[job.task].priority), 0),
            Policy::Edf => (job.released + tasks[job.task].deadline, 0),
            Policy::Fifo => (job.released, 0),
        };
        let key = |&index: &usize| {
            let job = &jobs[index];
            let keeps = current == Some((job.task, job.released));
            let kept = keeps && (policy == Policy::Fifo || tasks[job.task].preemption == Preemption::Never);
            (!kept, urgency(job), job.released, index)
        };
        let Some(chosen) = ready.min_by_key(key) else {
            current = None;
            continue;
        };
        let job = &mut jobs[chosen];
        current = Some((job.task, job.released));
        job.left -= 1;
        if job.left == 0 {
            longest[job.task] = longest[job.task].max(now + 1 - job.released);
            jobs.remove(chosen);
            current = None;
        } else if job.suspends > 0 {
            job.asleep_until = now + 1 + std::mem::take(&mut job.suspends);
        }
    }
    longest
}

struct Shape {
    tasks: usize,
    utilization: f64,
    jitter: bool,
    arbitrary: bool,
}

fn random_tasks(random: &mut Rng, shape: &Shape) -> Vec<Task> {
    let shares: Vec<f64> = (0..shape.tasks).map(|_| random.f64() + 0.05).collect();
    let sum: f64 = shares.iter().sum();
    let mut tasks: Vec<Task> = shares
        .iter()
        .map(|share| {
            let period = random.u64(5..40);
            let cost = ((period as f64 * share / sum * shape.utilization) as u64).max(1);
            let longest = if shape.arbitrary { 3 * period } else { period.max(cost) };
            let deadline = random.u64(cost..=longest);
            let jitter = if shape.jitter { random.u64(0..=period) } else { 0 };
            Task { jitter, ..sporadic(cost, period, deadline).into() }
        })
        .collect();
    tasks.sort_by_key(|task| task.deadline);
    for (index, task) in tasks.iter_mut().enumerate() {
        task.priority = 100 - index as u32;
    }
    tasks
}

fn random_shape(random: &mut Rng) -> Shape {
    Shape {
        tasks: random.usize(1..6),
        utilization: 0.3 + 0.7 * random.f64(),
        jitter: random.bool(),
        arbitrary: random.bool(),
    }
}

#[test]
fn no_simulated_schedule_exceeds_a_bound() {
    let mut random = Rng::with_seed(1);
    let mut compared = [0; 5];
    for _ in 0..400 {
        let shape = random_shape(&mut random);
        let mut tasks = random_tasks(&mut random, &shape);
        let offsets: Vec<u64> = tasks.iter().map(|task| random.u64(0..=task.period)).collect();
        let never = random.bool();
        if never {
            tasks.iter_mut().for_each(|task| task.preemption = Preemption::Never);
        }
        let mut hold = |kind: usize, policy, tasks: &[Task], bounds: Vec<Option<u64>>| {
            for offsets in [&offsets, &vec![0; tasks.len()]] {
                let seen = simulate(tasks, offsets, policy, 600, &mut random);
                for (seen, bound) in seen.iter().zip(&bounds) {
                    compared[kind] += u32::from(bound.is_some());
                    assert!(bound.is_none_or(|bound| *seen <= bound), "{policy:?} {tasks:?} {seen} {bounds:?}");
                }
            }
        };
        let from_release = |bounds: Vec<Result<u64, Failure>>, tasks: &[Task]| {
            bounds.iter().zip(tasks).map(|(bound, task)| bound.ok().map(|bound| bound - task.jitter)).collect()
        };
        let bounds = from_release(fp::response_bounds(&tasks, 100_000), &tasks);
        hold(0, Policy::Fp, &tasks, bounds);
        let bounds = edf::response_bounds(&tasks, 100_000).map(|bounds| bounds.into_iter().map(Some).collect());
        hold(1, Policy::Edf, &tasks, bounds.unwrap_or_default());
        let bound = fifo::response_bound(&tasks, 100_000).ok();
        hold(2, Policy::Fifo, &tasks, vec![bound; tasks.len()]);
        if !never {
            for task in &mut tasks {
                task.suspension = if task.cost > 1 { task.period / 8 } else { 0 };
            }
            let bounds = from_release(fp::response_bounds(&tasks, 100_000), &tasks);
            hold(3, Policy::Fp, &tasks, bounds);
            if let Ok(bounds) = fp::response_times(&tasks) {
                let bounds = bounds.into_iter().map(Ok).collect();
                hold(4, Policy::Fp, &tasks, from_release(bounds, &tasks));
            }
        }
    }
    assert!(compared.iter().all(|&count| count > 300), "{compared:?}");
}

#[test]
fn fixed_priority_bounds_are_met_by_synchronous_arrivals() {
    let mut random = Rng::with_seed(2);
    for _ in 0..500 {
        let shape = Shape { jitter: false, ..random_shape(&mut random) };
        let tasks = random_tasks(&mut random, &shape);
        let bounds = fp::response_bounds(&tasks, 2_000);
        let seen = simulate(&tasks, &vec![0; tasks.len()], Policy::Fp, 2_500, &mut random);
        for (bound, seen) in bounds.iter().zip(seen) {
            if let Ok(bound) = bound {
                assert_eq!(*bound, seen, "{tasks:?}");
            }
        }
    }
}

#[test]
fn the_verdict_of_fixed_priorities_is_that_of_the_bounds() {
    let mut random = Rng::with_seed(3);
    let mut accepted = 0;
    for round in 0..400 {
        let shape = random_shape(&mut random);
        let mut tasks = random_tasks(&mut random, &shape);
        for task in &mut tasks {
            task.blocking = random.u64(0..3);
            task.suspension = if round % 2 == 0 { random.u64(0..3) } else { 0 };
        }
        let bounds: Result<Vec<u64>, Failure> = fp::response_bounds(&tasks, 20_000).into_iter().collect();
        let bounds = bounds
            .ok()
            .filter(|bounds| bounds.iter().zip(&tasks).all(|(bound, task)| bound - task.jitter <= task.deadline));
        let times = fp::response_times(&tasks);
        assert_eq!(times.ok(), bounds, "{tasks:?}");
        accepted += usize::from(bounds.is_some());
    }
    assert!((60..340).contains(&accepted), "{accepted}");
}

#[test]
fn demand_and_response_times_agree_under_edf() {
    let mut random = Rng::with_seed(4);
    let mut accepted = 0;
    for _ in 0..2_000 {
        let shape = Shape { jitter: false, ..random_shape(&mut random) };
        let tasks = random_tasks(&mut random, &shape);
        let plain: Vec<Sporadic> = tasks.iter().map(|task| sporadic(task.cost, task.period, task.deadline)).collect();
        let (demand, times) = (edf::schedulable(&plain, &[]), edf::response_times(&tasks));
        assert_eq!(demand.is_ok(), times.is_ok(), "{plain:?} {demand:?} {times:?}");
        accepted += usize::from(demand.is_ok());
        let exact = edf::response_bounds(&tasks, NO_LIMIT);
        if let (Ok(approximate), Ok(exact)) = (edf::approximate_response_times(&tasks), exact) {
            assert!(approximate.iter().zip(&exact).all(|(a, e)| a >= e), "{plain:?}");
            assert!(demand.is_ok());
        }
    }
    assert!((400..1_900).contains(&accepted), "{accepted}");
}

#[test]
fn accepted_non_preemptive_sets_are_never_late_in_simulation() {
    let mut random = Rng::with_seed(5);
    let mut accepted = 0;
    for _ in 0..600 {
        let shape = Shape { jitter: false, ..random_shape(&mut random) };
        let mut tasks = random_tasks(&mut random, &shape);
        tasks.iter_mut().for_each(|task| task.preemption = Preemption::Never);
        let plain: Vec<Sporadic> = tasks.iter().map(|task| sporadic(task.cost, task.period, task.deadline)).collect();
        let sections: Vec<(Sporadic, u64)> = plain.iter().map(|&task| (task, task.cost)).collect();
        if edf::schedulable(&plain, &edf::blocking_of_sections(&sections)).is_ok() {
            accepted += 1;
            let offsets: Vec<u64> = tasks.iter().map(|task| random.u64(0..=task.period)).collect();
            let seen = simulate(&tasks, &offsets, Policy::Edf, 600, &mut random);
            assert!(seen.iter().zip(&tasks).all(|(seen, task)| *seen <= task.deadline), "{plain:?}");
            // The response-time test agrees for the same schedules.
            assert!(edf::response_times(&tasks).is_ok(), "{plain:?}");
        }
    }
    assert!(accepted > 50, "{accepted}");
}

#[test]
fn easier_tasks_stay_accepted() {
    let mut random = Rng::with_seed(6);
    for _ in 0..1_000 {
        let shape = random_shape(&mut random);
        let tasks = random_tasks(&mut random, &shape);
        let mut easier = tasks.clone();
        let chosen = random.usize(..easier.len());
        let task = &mut easier[chosen];
        match random.u8(0..4) {
            0 => task.cost -= random.u64(0..task.cost),
            1 => task.period += random.u64(1..20),
            2 => task.jitter = 0,
            _ => task.deadline += random.u64(1..20),
        }
        assert!(fp::response_times(&tasks).is_err() || fp::response_times(&easier).is_ok(), "{tasks:?} {easier:?}");
        assert!(edf::response_times(&tasks).is_err() || edf::response_times(&easier).is_ok(), "{tasks:?} {easier:?}");
    }
}

#[test]
fn published_response_times_under_edf() {
    // From SchedCAT's tests of Guan and Yi's algorithms, by increasing deadlines.
    type Rows = &'static [(u64, u64, u64)];
    let sets: [(Rows, &[u64], &[u64]); 6] = [
        (&[(2, 4, 4), (3, 12, 12)], &[2, 7], &[2, 9]),
        (&[(2, 4, 4), (2, 9, 9), (3, 12, 12)], &[3, 8, 11], &[3, 8, 11]),
        (&[(1, 4, 4), (1, 12, 12), (3, 16, 16)], &[1, 2, 6], &[1, 4, 8]),
        (&[(1, 4, 4), (2, 4, 4)], &[3, 3], &[3, 3]),
        (&[(2, 5, 4), (3, 6, 5)], &[4, 5], &[4, 5]),
        (&[(2, 4, 3), (2, 9, 7), (3, 12, 10)], &[3, 7, 10], &[3, 7, 10]),
    ];
    for (rows, exact, approximate) in sets {
        assert_eq!(edf::response_times(&tasks(rows)).as_deref(), Ok(exact), "{rows:?}");
        assert_eq!(edf::approximate_response_times(&tasks(rows)).as_deref(), Ok(approximate), "{rows:?}");
    }
    let overload = tasks(&[(2, 3, 3), (2, 4, 4), (3, 12, 12)]);
    assert_eq!(edf::response_times(&overload), Err(Failure::Overload));
    assert_eq!(edf::approximate_response_times(&overload), Err(Failure::Overload));
}

#[test]
fn a_job_delays_the_next_of_its_own_task() {
    // Lehoczky's example: the second job of the second task is the late one.
    let late = tasks(&[(52, 100, 110), (52, 140, 154)]);
    assert_eq!(fp::response_times(&late), Err(Failure::Late { task: 1, response: 156 }));
    // With jitter this occurs even if the deadline is within the period: C = 6 of T = 10, and the second release is 1
    // after the first.
    let mut jitter = tasks(&[(6, 10, 10)]);
    jitter[0].jitter = 9;
    assert_eq!(fp::response_times(&jitter), Err(Failure::Late { task: 0, response: 20 }));
    jitter[0].deadline = 11;
    assert_eq!(fp::response_times(&jitter), Ok(vec![20]));
}

#[test]
fn invalid_input_is_an_error() {
    assert_eq!(fp::response_times(&[]), Ok(vec![]));
    assert_eq!(edf::response_times(&[]), Ok(vec![]));
    assert_eq!(edf::schedulable(&[], &[]), Ok(()));
    assert_eq!(fifo::response_bound(&[], NO_LIMIT), Ok(0));
    // Exactly full use, and slightly more, which floating point would not distinguish.
    let full = [sporadic(1, 3, 3), sporadic(2, 6, 6), sporadic(1, 3, 3)];
    assert_eq!(edf::schedulable(&full, &[]), Ok(()));
    let full_and_tight = [sporadic(1, 3, 3), sporadic(2, 6, 5), sporadic(1, 3, 2)];
    assert_eq!(edf::schedulable(&full_and_tight, &[]), Ok(()));
    let long = 1 << 60;
    let above = [sporadic(1, 3, 3), sporadic(2, 3, 3), sporadic(1, long, long)];
    assert_eq!(edf::schedulable(&above, &[]), Err(Failure::Overload));
    assert_eq!(edf::schedulable(&[sporadic(3, 10, 2)], &[]), Err(Failure::Demand { interval: 2, demand: 3 }));
    assert_eq!(fp::response_times(&tasks(&[(0, 1, 1), (1, 2, 2)])), Ok(vec![1, 1]));
    // Periods of 0, and great numbers.
    assert!(matches!(fp::response_times(&tasks(&[(1, 0, 1)])), Err(Failure::Unsupported { task: 0, .. })));
    assert!(matches!(edf::schedulable(&[sporadic(0, 0, 1)], &[]), Err(Failure::Unsupported { task: 0, .. })));
    let max = u64::MAX;
    for cost in [1, max / 2, max - 1, max] {
        let huge = [(cost, max, max), (cost, max, max), (cost, max - 1, max)];
        let plain: Vec<Sporadic> = huge.iter().map(|&(c, t, d)| sporadic(c, t, d)).collect();
        // None of these calls panics.
        let _ = fp::response_times(&tasks(&huge));
        let _ = fp::response_bounds(&tasks(&huge), max);
        let _ = edf::response_times(&tasks(&huge));
        let _ = edf::approximate_response_times(&tasks(&huge));
        let _ = edf::schedulable(&plain, &[edf::Step { from: 3, blocking: max }]);
        let _ = fifo::response_bound(&tasks(&huge), max);
    }
    assert_eq!(fp::response_times(&tasks(&[(5, max, 4)])), Err(Failure::Late { task: 0, response: 5 }));
    // A busy interval as long as the product of the periods.
    let endless = tasks(&[(1, 2, 2), (499_000_000, 1_000_000_007, max), (1, 1_000_000_007, max), (1, 1_999, max)]);
    let why = fp::response_bounds(&endless, 1_000)[3];
    assert!(matches!(why, Err(Failure::Diverged { task: 3, limit: Limit { most: 1_000, .. } })), "{why:?}");
    // A less urgent task has no bound if a more urgent one suspends itself without a known response time.
    let mut suspends = tasks(&[(3, 4, 4), (2, 4, 4), (1, 100, 100)]);
    suspends[1].suspension = 1;
    let why = fp::response_bounds(&suspends, 1_000);
    assert_eq!(why[1..], [Err(Failure::Overload), Err(Failure::Task { task: 1 })]);
    let unsorted = [tasks(&[(1, 9, 9), (1, 9, 9)])[1], tasks(&[(1, 9, 9)])[0]];
    assert!(matches!(fp::response_times(&unsorted), Err(Failure::Unsupported { task: 1, .. })));
}

#[test]
fn the_limit_on_terms_ends_a_test() {
    // Full use: the busy interval is almost the product of the periods, with a deadline before it.
    let prime = [1_000_000_007_u64, 998_244_353, 1_000_000_009];
    let rows = prime.map(|period| sporadic(period / 3, period, period));
    let left = sporadic(1, 3, 3);
    let set = [rows[0], rows[1], left, sporadic(1, 1 << 40, 1 << 39)];
    // The test returns, whatever the result.
    let _ = edf::schedulable(&set, &[]);
    let _ = edf::response_bounds(&set.map(Task::from), NO_LIMIT);
}

#[test]
fn blocking_under_srp_counts_between_deadlines_only() {
    let share = |deadline: u64, resource: u16, length: u64, cluster: u16| Sharer {
        cost: 2,
        period: 100,
        deadline,
        cluster,
        requests: vec![Demand { resource, count: 1, length }],
        ..Sharer::default()
    };
    let step = |from, blocking| edf::Step { from, blocking };
    // Resource 0 is local: the section of 7 of the task with the longest deadline blocks from the first user's deadline
    // on.
    let mut sharing = Sharing { tasks: vec![share(10, 0, 1, 0), share(20, 1, 1, 0), share(50, 0, 7, 0)] };
    let (costs, steps) = edf::msrp(&sharing, 0).unwrap();
    assert_eq!(costs[2].cost, 2);
    assert_eq!(steps, [step(10, 7), step(50, 0)]);
    // With a user elsewhere it is global: each request spins for 3, and blocks for 3 + 7.
    sharing.tasks.push(share(100, 0, 3, 1));
    let (costs, steps) = edf::msrp(&sharing, 0).unwrap();
    assert_eq!(costs.iter().map(|task| task.cost).collect::<Vec<_>>(), [5, 2, 5]);
    assert_eq!(steps, [step(10, 10), step(50, 0)]);
    let tight = [sporadic(2, 100, 5), sporadic(2, 100, 20)];
    assert_eq!(edf::schedulable(&tight, &[step(5, 3), step(20, 0)]), Ok(()));
    let why = edf::schedulable(&tight, &[step(5, 4), step(20, 0)]);
    assert_eq!(why, Err(Failure::Demand { interval: 5, demand: 6 }));
}

/// All of the processor is used, and the periods have a large common multiple. A section of 50 ms of the second task
/// begins just before a job of the first arrives, whose deadline is after 2 ms. Where there is no room beside the
/// deadlines of the last step, earlier steps still have blocking.
#[test]
fn blocking_counts_at_full_use() {
    let all = [sporadic(1_000_003, 2_000_006, 2_000_006), sporadic(100_000_007, 200_000_014, 200_000_014)];
    let steps = |blocking| [edf::Step { from: 2_000_006, blocking }, edf::Step { from: 200_000_014, blocking: 0 }];
    let late = edf::schedulable(&all, &steps(50_000_000));
    assert!(matches!(late, Err(Failure::Demand { .. })), "{late:?}");
    assert!(edf::schedulable(&all, &steps(1_000_004)).is_err());
    assert_eq!(edf::schedulable(&all, &steps(1_000_003)), Ok(()));
    assert_eq!(edf::schedulable(&all, &[]), Ok(()));
}

/// Finds the completions by trying every release and every execution time.
fn completions_by_trial(all: &[Job]) -> Option<Vec<Completion>> {
    let mut found = vec![Completion { best: u64::MAX, worst: 0 }; all.len()];
    let mut choice: Vec<(u64, u64)> = all.iter().map(|job| (job.release_min, job.cost_min)).collect();
    loop {
        let (mut now, mut left) = (0, (0..all.len()).collect::<Vec<_>>());
        while !left.is_empty() {
            let ready = left.iter().copied().filter(|&index| choice[index].0 <= now);
            match ready.min_by_key(|&index| (std::cmp::Reverse(all[index].priority), index)) {
                None => now += 1,
                Some(index) => {
                    now += choice[index].1;
                    if now > all[index].deadline {
                        return None;
                    }
                    found[index].best = found[index].best.min(now);
                    found[index].worst = found[index].worst.max(now);
                    left.retain(|&other| other != index);
                }
            }
        }
        // The next choice, like incrementing a number.
        let mut at = 0;
        loop {
            let Some(job) = all.get(at) else { return Some(found) };
            if choice[at].0 < job.release_max {
                choice[at].0 += 1;
                break;
            }
            choice[at].0 = job.release_min;
            if choice[at].1 < job.cost_max {
                choice[at].1 += 1;
                break;
            }
            choice[at].1 = job.cost_min;
            at += 1;
        }
    }
}

#[test]
fn exploration_equals_exhaustive_trial() {
    let mut random = Rng::with_seed(8);
    let mut accepted = 0;
    for _ in 0..1_500 {
        let all: Vec<Job> = (0..random.usize(1..6))
            .map(|_| {
                let (release_min, cost_min) = (random.u64(0..12), random.u64(1..4));
                Job {
                    release_min,
                    release_max: release_min + random.u64(0..3),
                    cost_min,
                    cost_max: cost_min + random.u64(0..3),
                    deadline: release_min + random.u64(8..25),
                    priority: random.u64(0..4),
                }
            })
            .collect();
        let (explored, tried) = (jobs::completions(&all, 1), completions_by_trial(&all));
        assert_eq!(explored.as_ref().ok(), tried.as_ref(), "{all:?} {explored:?}");
        accepted += usize::from(tried.is_some());
        // The exploration ends for several processors as well.
        let _ = jobs::completions(&all, 2);
    }
    assert!((200..1_400).contains(&accepted), "{accepted}");
    assert_eq!(jobs::completions(&[], 1), Ok(vec![]));
    assert_eq!(jobs::completions(&[Job::default()], 0), Err(Failure::Overload));
    let huge = Job { release_max: u64::MAX, cost_max: u64::MAX, deadline: u64::MAX, ..Job::default() };
    assert_eq!(jobs::completions(&[huge; 3], 1), Err(Failure::Overflow));
}

#[test]
fn invalid_chains_are_refused() {
    let link = |cost, activation| Link { cost, cost_min: cost, processor: 0, priority: 1, activation };
    let source = Activation::Source(Events { period: 10, jitter: 0, distance: 0 });
    assert_eq!(compositional::response_times(&[]), Ok(vec![]));
    let pair = compositional::response_times(&[link(2, source), link(3, Activation::After(0))]).unwrap();
    assert_eq!(pair.iter().map(|response| response.worst).collect::<Vec<_>>(), [2, 5]);
    let overload = compositional::response_times(&[link(6, source), link(5, Activation::After(0))]);
    assert_eq!(overload, Err(Failure::Overload));
    let circle = [link(1, Activation::After(1)), link(1, Activation::After(0))];
    assert!(matches!(compositional::response_times(&circle), Err(Failure::Unsupported { task: 0, .. })));
    assert!(compositional::response_times(&[link(1, Activation::After(7))]).is_err());
    assert!(compositional::response_times(&[link(1, Activation::Source(Events::default()))]).is_err());
}
