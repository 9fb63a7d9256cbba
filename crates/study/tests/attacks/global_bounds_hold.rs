//! Simulated schedules of tasks without locks never exceed a bound, under global and partitioned EDF, G-FL and global
//! fixed priorities. A bound with an omission is caught.

use fastrand::Rng;
use lockwright_analysis::global::{self, CarryIn, mutants};
use lockwright_analysis::{Failure, Sporadic};
use lockwright_sim::plain::{Order, PlainTask, Sporadically, simulate, simulate_partitioned};

/// The number of task sets.
fn sets() -> u64 {
    crate::attacked::sets(4_000)
}
/// The number of schedules of each set under each scheduler.
const RUNS: u32 = 8;
/// The time during which jobs arrive in each schedule, in longest periods.
const HORIZON: u64 = 15;

/// Tasks sorted by deadline, which is also the order of the fixed priorities.
struct Set {
    tasks: Vec<Sporadic>,
    m: u32,
    /// The longest non-preemptive section of each task, or 0.
    sections: Vec<u64>,
    /// The processor of each task under partitioning.
    placement: Vec<u16>,
    /// The offsets of one of the schedules. If empty, they are random.
    offsets: Vec<u64>,
}

/// The scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Scheduler {
    GlobalEdf,
    /// Global EDF where each job begins with its section.
    GlobalEdfSections,
    FairLateness,
    FixedPriority,
    PartitionedEdf,
}

const SCHEDULERS: [Scheduler; 5] = [
    Scheduler::GlobalEdf,
    Scheduler::GlobalEdfSections,
    Scheduler::FairLateness,
    Scheduler::FixedPriority,
    Scheduler::PartitionedEdf,
];

/// A test that yields bounds on all response times, or none.
struct Bound {
    name: &'static str,
    scheduler: Scheduler,
    responses: fn(&Set) -> Option<Vec<u64>>,
}

impl Set {
    /// Returns sets that are known to be hard for some test: costs,
    /// deadlines, periods and offsets. Each section is a whole job.
    fn known() -> Vec<Self> {
        let set = |tasks: &[(u64, u64, u64, u64)]| Self {
            tasks: tasks.iter().map(|&(cost, deadline, period, _)| Sporadic { cost, period, deadline }).collect(),
            m: 2,
            sections: tasks.iter().map(|task| task.0).collect(),
            placement: vec![0; tasks.len()],
            offsets: tasks.iter().map(|task| task.3).collect(),
        };
        vec![
            // U = m: one of three tasks is late by 1 again and again.
            set(&[(2, 3, 3, 0), (2, 3, 3, 0), (2, 3, 3, 0)]),
            // Two long sections begin before the short job arrives.
            set(&[(1, 2, 2, 1), (100, 1000, 1000, 0), (100, 1000, 1000, 0)]),
            // The job of the third task is still pending when the two
            // others arrive, and its deadline is as near as theirs.
            set(&[(3, 9, 200, 25), (8, 10, 200, 25), (28, 35, 200, 0)]),
        ]
    }

    fn generate(random: &mut Rng) -> Self {
        let m = random.u32(2..=3);
        let share = (0.3 + 0.75 * random.f64()) * f64::from(m);
        let (kind, longest, most) = (random.u32(..3), random.u64(4..=24), 0.2 + 0.8 * random.f64());
        let (mut tasks, mut sum) = (Vec::new(), 0.0);
        while tasks.len() < 10 {
            let period = random.u64(2..=longest);
            let cost = ((random.f64() * most * period as f64) as u64).max(1);
            sum += cost as f64 / period as f64;
            if sum > share {
                break;
            }
            let deadline = match kind {
                0 => period,
                1 => random.u64(cost..=period),
                _ => random.u64(cost..=2 * period),
            };
            tasks.push(Sporadic { cost, period, deadline });
        }
        tasks.sort_by_key(|task: &Sporadic| task.deadline);
        let sections = tasks.iter().map(|task| if random.bool() { 0 } else { random.u64(0..=task.cost) }).collect();
        let mut load = vec![0.0; m as usize];
        let placement = tasks
            .iter()
            .map(|task| {
                let of = |a: &usize, b: &usize| f64::total_cmp(&load[*a], &load[*b]);
                let least = (0..load.len()).min_by(of).unwrap_or(0);
                load[least] += task.cost as f64 / task.period as f64;
                least as u16
            })
            .collect();
        Self { tasks, m, sections, placement, offsets: Vec::new() }
    }

    /// Returns the longest response times in some schedules: synchronous and periodic first, then with offsets, late
    /// arrivals and short executions.
    fn seen(&self, scheduler: Scheduler, random: &mut Rng) -> Vec<u64> {
        let longest = self.tasks.iter().map(|task| task.period).max().unwrap_or(1);
        let mut seen = vec![0; self.tasks.len()];
        for run in 0..RUNS {
            let plain: Vec<PlainTask> = (0..self.tasks.len())
                .map(|index| {
                    let it = &self.tasks[index];
                    let deadline = match scheduler {
                        Scheduler::FairLateness => global::g_fl_point(it, self.m).unwrap_or(0),
                        _ => it.deadline,
                    };
                    PlainTask {
                        cost: it.cost,
                        period: it.period,
                        deadline,
                        offset: match self.offsets.get(index) {
                            _ if run == 0 => 0,
                            Some(&offset) if run == 1 => offset,
                            _ => random.u64(0..=it.period),
                        },
                        priority: (self.tasks.len() - index) as u32,
                        section: if scheduler == Scheduler::GlobalEdfSections { self.sections[index] } else { 0 },
                    }
                })
                .collect();
            let mut releases = Sporadically {
                random: random.fork(),
                late: if run % 4 < 2 { 0 } else { 4 },
                short: if run % 4 == 3 { 4 } else { 0 },
                until: HORIZON * longest,
            };
            let order =
                if scheduler == Scheduler::FixedPriority { Order::FixedPriority } else { Order::EarliestDeadline };
            let outcome = if scheduler == Scheduler::PartitionedEdf {
                simulate_partitioned(&plain, &self.placement, order, u64::MAX, &mut releases)
            } else {
                simulate(&plain, self.m as usize, order, u64::MAX, &mut releases)
            };
            for (seen, task) in seen.iter_mut().zip(outcome.tasks) {
                *seen = (*seen).max(task.response);
            }
        }
        seen
    }
}

fn deadlines(set: &Set, verdict: Result<(), Failure>) -> Option<Vec<u64>> {
    verdict.is_ok().then(|| set.tasks.iter().map(|task| task.deadline).collect())
}

/// Returns T + C + x for each task.
fn beyond(set: &Set, x: Result<u64, Failure>) -> Option<Vec<u64>> {
    let x = x.ok()?;
    Some(set.tasks.iter().map(|task| task.period + task.cost + x).collect())
}

/// Tests the processor demand of every processor, at each time that U < 1 does not already settle.
fn demand_fits(set: &Set, counts: fn(&Sporadic, u64) -> u64) -> Result<(), Failure> {
    for processor in 0..set.m as u16 {
        let here: Vec<&Sporadic> =
            (0..set.tasks.len()).filter(|&i| set.placement[i] == processor).map(|i| &set.tasks[i]).collect();
        let utilization: f64 = here.iter().map(|task| task.cost as f64 / task.period as f64).sum();
        if utilization > 0.999 {
            return Err(Failure::Overload);
        }
        let early: f64 =
            here.iter().map(|task| task.cost as f64 * task.period.max(task.deadline) as f64 / task.period as f64).sum();
        let last = (early / (1.0 - utilization)) as u64 + here.iter().map(|task| task.deadline).max().unwrap_or(0) + 1;
        for time in 0..=last {
            let demand: u64 = here.iter().map(|task| counts(task, time) * task.cost).sum();
            if demand > time {
                return Err(Failure::Demand { interval: time, demand });
            }
        }
    }
    Ok(())
}

const fn bound(name: &'static str, scheduler: Scheduler, responses: fn(&Set) -> Option<Vec<u64>>) -> Bound {
    Bound { name, scheduler, responses }
}

const BOUNDS: [Bound; 15] = [
    bound("gfb", Scheduler::GlobalEdf, |set| deadlines(set, global::gfb(&set.tasks, set.m))),
    bound("bak", Scheduler::GlobalEdf, |set| deadlines(set, global::bak(&set.tasks, set.m))),
    bound("bcl", Scheduler::GlobalEdf, |set| deadlines(set, global::bcl(&set.tasks, set.m))),
    bound("bcl_iterative", Scheduler::GlobalEdf, |set| deadlines(set, global::bcl_iterative(&set.tasks, set.m))),
    bound("bar", Scheduler::GlobalEdf, |set| deadlines(set, global::bar(&set.tasks, set.m))),
    bound("ff_dbf", Scheduler::GlobalEdf, |set| deadlines(set, global::ff_dbf(&set.tasks, set.m))),
    bound("edf", Scheduler::GlobalEdf, |set| deadlines(set, global::edf(&set.tasks, set.m))),
    bound("rta", Scheduler::GlobalEdf, |set| global::rta(&set.tasks, set.m).ok()),
    bound("devi_anderson", Scheduler::GlobalEdf, |set| beyond(set, global::devi_anderson(&set.tasks, set.m))),
    bound("devi_anderson_sections", Scheduler::GlobalEdfSections, |set| {
        beyond(set, global::devi_anderson_sections(&set.tasks, &set.sections, set.m))
    }),
    bound("g_edf", Scheduler::GlobalEdf, |set| global::g_edf(&set.tasks, set.m).ok()),
    bound("g_fl", Scheduler::FairLateness, |set| global::g_fl(&set.tasks, set.m).ok()),
    bound("bertogna_cirinei", Scheduler::FixedPriority, |set| {
        global::bertogna_cirinei(&set.tasks, &[], set.m, CarryIn::Responses).ok()
    }),
    bound("guan", Scheduler::FixedPriority, |set| global::guan(&set.tasks, set.m).ok()),
    bound("processor demand", Scheduler::PartitionedEdf, |set| {
        let counts =
            |task: &Sporadic, time: u64| time.checked_sub(task.deadline).map_or(0, |since| since / task.period + 1);
        deadlines(set, demand_fits(set, counts))
    }),
];

const MUTANTS: [Bound; 14] = [
    bound("gfb", Scheduler::GlobalEdf, |set| deadlines(set, mutants::gfb_without_the_densest(&set.tasks, set.m))),
    bound("bak", Scheduler::GlobalEdf, |set| deadlines(set, mutants::bak_without_early_deadlines(&set.tasks, set.m))),
    bound("bcl", Scheduler::GlobalEdf, |set| deadlines(set, mutants::bcl_without_carry_in(&set.tasks, set.m))),
    bound("bcl_iterative", Scheduler::GlobalEdf, |set| {
        deadlines(set, mutants::bcl_iterative_without_carry_in(&set.tasks, set.m))
    }),
    bound("bar", Scheduler::GlobalEdf, |set| deadlines(set, mutants::bar_without_carry_in(&set.tasks, set.m))),
    bound("ff_dbf", Scheduler::GlobalEdf, |set| {
        deadlines(set, mutants::ff_dbf_without_forced_demand(&set.tasks, set.m))
    }),
    bound("rta", Scheduler::GlobalEdf, |set| mutants::rta_without_carry_in(&set.tasks, set.m).ok()),
    // Without the task's own cost.
    bound("devi_anderson", Scheduler::GlobalEdf, |set| {
        let x = global::devi_anderson(&set.tasks, set.m).ok()?;
        Some(set.tasks.iter().map(|task| task.period + x).collect())
    }),
    // Without the sections.
    bound("devi_anderson_sections", Scheduler::GlobalEdfSections, |set| {
        beyond(set, global::devi_anderson(&set.tasks, set.m))
    }),
    // With x reduced by a third.
    bound("g_edf", Scheduler::GlobalEdf, |set| {
        let found = global::g_edf(&set.tasks, set.m).ok()?;
        Some(set.tasks.iter().zip(found).map(|(task, bound)| bound - bound.saturating_sub(task.cost) / 3).collect())
    }),
    bound("g_fl", Scheduler::FairLateness, |set| {
        let found = global::g_fl(&set.tasks, set.m).ok()?;
        Some(set.tasks.iter().zip(found).map(|(task, bound)| bound - bound.saturating_sub(task.cost) / 3).collect())
    }),
    bound("bertogna_cirinei", Scheduler::FixedPriority, |set| {
        mutants::bertogna_cirinei_without_carry_in(&set.tasks, set.m).ok()
    }),
    bound("guan", Scheduler::FixedPriority, |set| mutants::guan_without_carry_in(&set.tasks, set.m).ok()),
    // With deadlines one period later than they are.
    bound("processor demand", Scheduler::PartitionedEdf, |set| {
        deadlines(set, demand_fits(set, |task, time| time.saturating_sub(task.deadline) / task.period))
    }),
];

/// Returns for each bound the number of sets that it bounds, and the first set that exceeds it.
fn attack(bounds: &[Bound], sets: u64) -> Vec<(u64, Option<String>)> {
    let mut found = vec![(0, None); bounds.len()];
    let known = Set::known().into_iter().map(|set| (0, set));
    for (seed, set) in known.chain((1..=sets).map(|seed| (seed, Set::generate(&mut Rng::with_seed(seed))))) {
        let mut random = Rng::with_seed(!seed);
        for scheduler in SCHEDULERS {
            let seen = set.seen(scheduler, &mut random);
            for (bound, (bounded, excess)) in bounds.iter().zip(&mut found) {
                if bound.scheduler != scheduler {
                    continue;
                }
                let Some(responses) = (bound.responses)(&set) else { continue };
                *bounded += u64::from(!set.tasks.is_empty());
                if excess.is_none() && seen.iter().zip(&responses).any(|(seen, bound)| seen > bound) {
                    *excess = Some(format!(
                        "{}, seed {seed}: {seen:?} above {responses:?} on {} of {:?}, sections {:?}",
                        bound.name, set.m, set.tasks, set.sections
                    ));
                }
            }
        }
    }
    found
}

#[test]
fn no_schedule_exceeds_a_bound() {
    let sets = sets();
    let found = attack(&BOUNDS, sets);
    for (bound, (bounded, excess)) in BOUNDS.iter().zip(&found) {
        println!("{}: {bounded} of {sets} sets bounded", bound.name);
        assert_eq!(*excess, None);
        assert!(*bounded > sets / 40, "{} bounds too few sets: {bounded}", bound.name);
    }
}

#[test]
fn every_mutant_is_caught() {
    let found = attack(&MUTANTS, 4_000);
    for (bound, (_, excess)) in MUTANTS.iter().zip(&found) {
        println!("{}: {excess:?}", bound.name);
    }
    for (bound, (_, excess)) in MUTANTS.iter().zip(&found) {
        assert!(excess.is_some(), "no schedule exceeds the mutant of {}", bound.name);
    }
}

#[test]
fn as_many_sections_as_processors_block() {
    // Two long jobs begin at 0 and are not preempted. A short job arrives at 1 and waits for a processor.
    let task = |cost, period| Sporadic { cost, period, deadline: period };
    let tasks = [task(100, 1000), task(100, 1000), task(1, 2)];
    let plain: Vec<PlainTask> = tasks
        .iter()
        .enumerate()
        .map(|(index, task)| PlainTask {
            cost: task.cost,
            period: task.period,
            deadline: task.deadline,
            offset: u64::from(index == 2),
            section: u64::MAX,
            ..PlainTask::default()
        })
        .collect();
    let mut releases = Sporadically { random: Rng::with_seed(0), late: 0, short: 0, until: 500 };
    let seen = simulate(&plain, 2, Order::EarliestDeadline, u64::MAX, &mut releases);
    let sections: Vec<u64> = tasks.iter().map(|task| task.cost).collect();
    let published = global::devi_anderson_non_preemptive_as_published(&tasks, 2).unwrap();
    let bound = global::devi_anderson_sections(&tasks, &sections, 2).unwrap();
    assert_eq!((seen.tasks[2].tardiness, published, bound), (98, 71, 100));
}
