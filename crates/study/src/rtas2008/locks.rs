//! Tests with spinlocks (short resources) and semaphores (long resources).
//!
//! All waiting counts as execution. `|k,q|` is the longest section of task k on q, as others see it. One request of i
//! waits for:
//!
//! - G-EDF, short: the m − 1 greatest of `|k,q|`, k ≠ i;
//! - P-EDF, short: the greatest `|k,q|` of each other processor;
//! - G-EDF, long: the sum of all `|k,q|`, k ≠ i;
//! - P-EDF, long: the same, and for each k of another processor the longest section there of another task.
//!
//! Short resources block a job at its arrival by the longest span (wait and section) of a task with a later deadline,
//! under P-EDF of its processor. Long resources under P-EDF block it at its arrival and at each resumption, by the
//! longest section of a task of its processor with a later deadline.
//!
//! Under P-EDF, a long resource whose users are all on one processor is under the stack resource policy: no request
//! waits, and one section with a late enough ceiling blocks once.

use super::charges::{Charges, Kind};
use super::sets::{Set, Use};
use super::switches::{Counting, Switches, Tests};
use super::tables::{Demand, Edf};
use crate::rtas2008::Machine;
use lockwright_analysis::blocking::{Platform, fmlp, spin};
use lockwright_analysis::uniprocessor::edf::{self, Step};
use lockwright_analysis::{Demand as Requests, Fit, Sharer, Sharing, Sporadic, global, partition};

/// The verdict on a set: the bound on its tardiness if it is accepted, which is 0 for hard deadlines.
pub(super) type Verdict = Option<u64>;

/// A task with its waits and overheads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Charged {
    /// The execution time with waits and overheads.
    pub(super) cost: u64,
    pub(super) period: u64,
    /// The longest time for which it can block others at once.
    span: u64,
}

impl Charged {
    fn sporadic(self, blocking: u64) -> Sporadic {
        Sporadic { cost: self.cost.saturating_add(blocking), period: self.period, deadline: self.period }
    }
}

/// Tests a set with spinlocks.
pub(super) fn short(set: &Set, machine: &Machine, test: (Demand, Edf), switches: &Switches) -> Verdict {
    let (demand, scheduler) = test;
    let charges = Charges::new(machine.overheads(demand, scheduler), set.tasks.len());
    match scheduler {
        Edf::Global => {
            let spins = spins(set, &charges, None, switches)?;
            let tasks = charged(set, &charges, &spins)?;
            globally(&tasks, set.processors, demand, switches)
        }
        Edf::Partitioned => {
            let homes = place(set, &charges, Kind::Short, false)?;
            let spins = spins(set, &charges, Some(&homes), switches)?;
            let tasks = charged(set, &charges, &spins)?;
            let on = |cpu: u16| -> Option<()> {
                let local: Vec<Charged> =
                    tasks.iter().zip(&homes).filter(|(_, home)| **home == cpu).map(|(task, _)| *task).collect();
                let blocking: Vec<(u64, u64)> = local.iter().map(|task| (later(&local, task.period), 0)).collect();
                on_processor(&local, &blocking, switches)
            };
            (0..set.processors).try_for_each(on)?;
            Some(0)
        }
    }
}

/// Adds waits and overheads to the tasks. `spins` has the wait of all requests and the longest span, by task.
fn charged(set: &Set, charges: &Charges, spins: &[(u64, u64)]) -> Option<Vec<Charged>> {
    let each = |(task, &(wait, span)): (&super::sets::Row, &(u64, u64))| {
        let requests: u64 = task.uses.iter().map(|one| one.count).sum();
        let own = task.cost + task.inside + requests * charges.request(Kind::Short);
        Some(Charged { cost: charges.inflate(own + wait, 0)?, period: task.period, span })
    };
    set.tasks.iter().zip(spins).map(each).collect()
}

/// Returns the wait of all requests and the longest span of each task under spinlocks, global or partitioned.
fn spins(set: &Set, charges: &Charges, homes: Option<&[u16]>, switches: &Switches) -> Option<Vec<(u64, u64)>> {
    let users = set.users();
    let seen = |one: &Use| charges.seen(Kind::Short, one.length, switches.others);
    let waits = |task: usize, one: &Use| -> u64 {
        let others = users[usize::from(one.resource)].iter().filter(|(other, _)| *other != task);
        match homes {
            None => {
                let mut lengths: Vec<u64> = others.map(|(_, other)| seen(other)).collect();
                lengths.sort_unstable_by(|one, other| other.cmp(one));
                lengths.iter().take(usize::from(set.processors) - 1).sum()
            }
            Some(homes) => {
                let mut longest = vec![0_u64; usize::from(set.processors)];
                for (other, theirs) in others.filter(|(other, _)| homes[*other] != homes[task]) {
                    let slot = &mut longest[usize::from(homes[*other])];
                    *slot = (*slot).max(seen(theirs));
                }
                longest.iter().sum()
            }
        }
    };
    let mut spins: Vec<(u64, u64)> = Vec::with_capacity(set.tasks.len());
    for (index, task) in set.tasks.iter().enumerate() {
        let each = task.uses.iter().map(|one| (one, waits(index, one)));
        let (wait, span) =
            each.fold((0, 0), |(sum, longest), (one, wait)| (sum + one.count * wait, longest.max(wait + seen(one))));
        spins.push((wait, span));
    }
    if switches.counting == Counting::PerJob {
        let sharing = sharing(set, homes, |one| seen(one));
        let platform = match homes {
            None => Platform { clusters: 1, processors: set.processors, interrupts: None },
            Some(_) => Platform { clusters: set.processors, processors: 1, interrupts: None },
        };
        let delays = spin::fifo(&sharing, platform).ok()?;
        for (spin, delay) in spins.iter_mut().zip(delays) {
            spin.0 = spin.0.min(delay.remote?);
        }
    }
    Some(spins)
}

/// Returns the set in the form of the analysis, with deadlines as response times.
fn sharing(set: &Set, homes: Option<&[u16]>, length: impl Fn(&Use) -> u64) -> Sharing {
    let sharer = |(index, task): (usize, &super::sets::Row)| Sharer {
        cost: task.cost,
        period: task.period,
        deadline: task.period,
        response: task.period,
        priority: 0,
        cluster: homes.map_or(0, |homes| homes[index]),
        requests: task
            .uses
            .iter()
            .map(|one| Requests { resource: one.resource, count: one.count as u32, length: length(one) })
            .collect(),
    };
    Sharing { tasks: set.tasks.iter().enumerate().map(sharer).collect() }
}

/// Returns the longest span of a task with a later deadline.
fn later(tasks: &[Charged], period: u64) -> u64 {
    tasks.iter().filter(|other| other.period > period).map(|other| other.span).max().unwrap_or(0)
}

/// Tests a set under global EDF.
pub(super) fn globally(tasks: &[Charged], processors: u16, demand: Demand, switches: &Switches) -> Verdict {
    let m = u32::from(processors);
    match demand {
        Demand::Hard => {
            let blocked: Vec<Sporadic> = tasks.iter().map(|task| task.sporadic(later(tasks, task.period))).collect();
            let accepts = match switches.tests {
                Tests::Published => global::gfb(&blocked, m),
                Tests::Best => global::edf(&blocked, m),
            };
            accepts.ok().map(|_| 0)
        }
        Demand::Soft => {
            let plain: Vec<Sporadic> = tasks.iter().map(|task| task.sporadic(0)).collect();
            let spans: Vec<u64> = tasks.iter().map(|task| task.span.min(task.cost)).collect();
            let x = global::devi_anderson_sections(&plain, &spans, m).ok()?;
            tasks.iter().map(|task| task.cost.saturating_add(x)).max().or(Some(0))
        }
    }
}

/// Tests the tasks of one processor under EDF. `blocking` has the blocking of each task at its arrival, which falls
/// with later deadlines, and at all its resumptions together.
fn on_processor(tasks: &[Charged], blocking: &[(u64, u64)], switches: &Switches) -> Option<()> {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_unstable_by_key(|&index| tasks[index].period);
    let mut sum = 0;
    let published = order.iter().try_for_each(|&index| {
        let (task, (arrival, resumed)) = (&tasks[index], blocking[index]);
        sum += share(task.cost, task.period)?;
        (sum + share(arrival.saturating_add(resumed), task.period)? <= WHOLE).then_some(())
    });
    if published.is_some() || switches.tests == Tests::Published {
        return published;
    }
    let step = |&index: &usize| Step { from: tasks[index].period, blocking: blocking[index].0 };
    let mut steps: Vec<Step> = order.iter().map(step).collect();
    // Tasks of one period have one blocking: it depends on the later ones.
    steps.dedup_by_key(|step| step.from);
    // The resumptions of a job count as execution.
    let plain: Vec<Sporadic> = tasks.iter().zip(blocking).map(|(task, (_, resumed))| task.sporadic(*resumed)).collect();
    edf::schedulable(&plain, &steps).ok()
}

/// A whole processor in the units of [`share`].
const WHOLE: u128 = 1 << 60;

/// Returns C/T in units of 2^-60, rounded up.
fn share(cost: u64, period: u64) -> Option<u128> {
    (u128::from(cost) << 60).checked_add(u128::from(period) - 1).map(|cost| cost / u128::from(period))
}

/// Assigns tasks to processors by decreasing utilization with their own accesses, each to the one with the least
/// utilization. Users of one resource stay together if `groups` is set.
pub(super) fn place(set: &Set, charges: &Charges, kind: Kind, groups: bool) -> Option<Vec<u16>> {
    let own = |task: &super::sets::Row| {
        let requests: u64 = task.uses.iter().map(|one| one.count).sum();
        Sporadic {
            cost: task.cost + task.inside + requests * charges.request(kind),
            period: task.period,
            deadline: task.period,
        }
    };
    place_rows(&set.tasks.iter().map(own).collect::<Vec<_>>(), set, groups)
}

/// As [`place`], with these tasks.
pub(super) fn place_rows(tasks: &[Sporadic], set: &Set, groups: bool) -> Option<Vec<u16>> {
    let together: Vec<Vec<usize>> = match groups {
        false => Vec::new(),
        true => set.users().iter().map(|users| users.iter().map(|(task, _)| *task).collect()).collect(),
    };
    let shares: Option<Vec<u128>> = tasks.iter().map(|task| share(task.cost, task.period)).collect();
    let shares = shares?;
    let fits = |members: &[usize]| members.iter().map(|&member| shares[member]).sum::<u128>() <= WHOLE;
    let homes = partition(tasks, usize::from(set.processors), Fit::Worst, &together, fits).ok()?;
    Some(homes.into_iter().map(|home| home as u16).collect())
}

/// Tests a set with semaphores.
pub(super) fn long(set: &Set, machine: &Machine, test: (Demand, Edf), switches: &Switches) -> Verdict {
    let (demand, scheduler) = test;
    let charges = Charges::new(machine.overheads(demand, scheduler), set.tasks.len());
    match scheduler {
        Edf::Global => {
            let tasks = suspended(set, &charges, switches)?;
            globally(&tasks, set.processors, demand, switches)
        }
        // First with all users of a resource together, then without.
        Edf::Partitioned => [true, false].into_iter().find_map(|groups| {
            let homes = place(set, &charges, Kind::Long, groups)?;
            partitioned_long(set, &charges, &homes, switches)
        }),
    }
}

/// Returns the tasks with the waits for semaphores under global EDF.
fn suspended(set: &Set, charges: &Charges, switches: &Switches) -> Option<Vec<Charged>> {
    let users = set.users();
    let seen = |one: &Use| charges.seen(Kind::Long, one.length, switches.others);
    let all: Vec<u64> = users.iter().map(|users| users.iter().map(|(_, one)| seen(one)).sum()).collect();
    let delays = match switches.counting {
        Counting::PerRequest => None,
        Counting::PerJob => Some(fmlp::fmlp_long(&sharing(set, None, |one| seen(one))).ok()?),
    };
    let each = |(index, task): (usize, &super::sets::Row)| {
        let (mut wait, mut suspensions, mut requests) = (0, 0, 0);
        for one in &task.uses {
            let resource = usize::from(one.resource);
            wait += one.count * (all[resource] - seen(one));
            suspensions += if users[resource].len() > 1 { one.count } else { 0 };
            requests += one.count;
        }
        if let Some(delays) = &delays {
            wait = wait.min(delays[index].remote?);
        }
        let own = task.cost + task.inside + requests * charges.request(Kind::Long);
        Some(Charged { cost: charges.inflate(own + wait, suspensions)?, period: task.period, span: 0 })
    };
    set.tasks.iter().enumerate().map(each).collect()
}

/// Tests a set with semaphores under partitioned EDF with this placement.
fn partitioned_long(set: &Set, charges: &Charges, homes: &[u16], switches: &Switches) -> Verdict {
    let users = set.users();
    let is_local: Vec<bool> = users
        .iter()
        .map(|users| {
            users.iter().all(|(task, _)| users.first().is_some_and(|(first, _)| homes[*task] == homes[*first]))
        })
        .collect();
    let kind = |one: &Use| if is_local[usize::from(one.resource)] { Kind::Local } else { Kind::Long };
    let seen = |one: &Use| charges.seen(kind(one), one.length, switches.others);
    // The longest section of each task on a resource of several processors, which is not preemptive.
    let longest: Vec<u64> = set
        .tasks
        .iter()
        .map(|task| task.uses.iter().filter(|one| kind(one) == Kind::Long).map(seen).max().unwrap_or(0))
        .collect();
    // The two longest of each processor, with the task of the first one.
    let mut top = vec![(0_u64, usize::MAX, 0_u64); usize::from(set.processors)];
    for (task, &length) in longest.iter().enumerate() {
        let slot = &mut top[usize::from(homes[task])];
        if length > slot.0 {
            *slot = (length, task, slot.0);
        } else {
            slot.2 = slot.2.max(length);
        }
    }
    let of_others = |task: usize| {
        let (first, owner, second) = top[usize::from(homes[task])];
        if owner == task { second } else { first }
    };
    let mut tasks = Vec::with_capacity(set.tasks.len());
    let mut suspensions = Vec::with_capacity(set.tasks.len());
    for (index, task) in set.tasks.iter().enumerate() {
        let (mut wait, mut count, mut accesses) = (0, 0, 0);
        for one in &task.uses {
            accesses += one.count * charges.request(kind(one));
            if kind(one) == Kind::Local {
                continue;
            }
            count += one.count;
            for (other, theirs) in users[usize::from(one.resource)].iter().filter(|(other, _)| *other != index) {
                let first = if homes[*other] == homes[index] { 0 } else { of_others(*other) };
                wait += one.count * (seen(theirs) + first);
            }
        }
        let cost = charges.inflate(task.cost + task.inside + accesses + wait, count)?;
        tasks.push(Charged { cost, period: task.period, span: longest[index] });
        suspensions.push(count);
    }
    let on = |cpu: u16| -> Option<()> {
        let members: Vec<usize> = (0..set.tasks.len()).filter(|&task| homes[task] == cpu).collect();
        let local: Vec<Charged> = members.iter().map(|&task| tasks[task]).collect();
        let blocked = |&task: &usize| {
            let section = later(&local, tasks[task].period);
            let arrival = section.max(ceiling(set, &members, tasks[task].period, &kind, &seen));
            (arrival, suspensions[task] * section)
        };
        let blocking: Vec<(u64, u64)> = members.iter().map(blocked).collect();
        on_processor(&local, &blocking, switches)
    };
    (0..set.processors).try_for_each(on)?;
    Some(0)
}

/// Returns the longest section of a task of the processor with a later deadline, on a local resource that a task with
/// a deadline at most `period` uses.
fn ceiling(
    set: &Set,
    members: &[usize],
    period: u64,
    kind: &impl Fn(&Use) -> Kind,
    seen: &impl Fn(&Use) -> u64,
) -> u64 {
    let uses = |urgent: bool| {
        let side = members.iter().filter(move |&&task| (set.tasks[task].period <= period) == urgent);
        side.flat_map(|&task| &set.tasks[task].uses).filter(|one| kind(one) == Kind::Local)
    };
    let blocks = |one: &&Use| uses(true).any(|urgent| urgent.resource == one.resource);
    uses(false).filter(blocks).map(seen).max().unwrap_or(0)
}

impl Charged {
    /// A task that never waits.
    pub(super) fn alone(cost: u64, period: u64) -> Self {
        Self { cost, period, span: 0 }
    }
}

/// Tests tasks that never wait under partitioned EDF with this placement.
pub(super) fn independently(tasks: &[Charged], homes: &[u16], processors: u16, switches: &Switches) -> Verdict {
    let on = |cpu: u16| -> Option<()> {
        let local: Vec<Charged> =
            tasks.iter().zip(homes).filter(|(_, home)| **home == cpu).map(|(task, _)| *task).collect();
        on_processor(&local, &vec![(0, 0); local.len()], switches)
    };
    (0..processors).try_for_each(on)?;
    Some(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtas2008::sets::Row;
    use lockwright_model::{Cost, Duration, Overhead, Overheads};

    /// A machine on which nothing takes time except the refill of caches, which shows the number of suspensions.
    fn machine(refill: u64) -> Machine {
        let mut overheads = Overheads::default();
        overheads.set(Overhead::CacheRefill, Cost::constant(Duration::from_ns(refill)));
        Machine::measured(overheads.clone(), overheads)
    }

    fn task(cost: u64, period: u64, uses: &[(u16, u64, u64)]) -> Row {
        let uses = uses.iter().map(|&(resource, count, length)| Use { resource, count, length });
        Row { cost, period, inside: 0, uses: uses.collect() }
    }

    fn set(processors: u16, tasks: Vec<Row>) -> Set {
        Set { processors, tasks, resources: 2 }
    }

    fn three() -> Set {
        set(2, vec![task(10, 100, &[(0, 2, 3)]), task(10, 200, &[(0, 1, 5)]), task(10, 300, &[(0, 1, 7), (1, 1, 2)])])
    }

    #[test]
    fn waits_are_those_of_the_table() {
        let (set, switches) = (three(), Switches::default());
        let charges = Charges::new(machine(0).overheads(Demand::Hard, Edf::Global), 3);
        // One of two processors is before each request.
        assert_eq!(spins(&set, &charges, None, &switches), Some(vec![(14, 10), (7, 12), (5, 12)]));
        let homes = [0, 0, 1];
        assert_eq!(spins(&set, &charges, Some(&homes), &switches), Some(vec![(14, 10), (7, 12), (5, 12)]));
        assert_eq!(spins(&set, &charges, Some(&[0, 0, 0]), &switches), Some(vec![(0, 3), (0, 5), (0, 7)]));
        // Semaphores: all others, and one refill for each of the requests that may suspend.
        let charges = Charges::new(machine(1_000).overheads(Demand::Hard, Edf::Global), 3);
        let costs = |switches: &Switches| -> Vec<u64> {
            suspended(&set, &charges, switches).expect("fits").iter().map(|task| task.cost).collect()
        };
        assert_eq!(costs(&switches), [10 + 24 + 3_000, 10 + 10 + 2_000, 10 + 8 + 2_000]);
        // In 100 units the third task has two jobs with one request each; of the second there are two as well.
        let per_job = Switches { counting: Counting::PerJob, ..switches };
        assert!(costs(&per_job).iter().zip(costs(&switches)).all(|(per_job, per_request)| *per_job <= per_request));
    }

    #[test]
    fn counts_per_job_are_never_worse() {
        let (per_request, per_job) =
            (Switches::default(), Switches { counting: Counting::PerJob, ..Switches::default() });
        let charges = Charges::new(machine(0).overheads(Demand::Hard, Edf::Global), 3);
        let many = set(3, vec![task(10, 10, &[(0, 50, 3)]), task(10, 1_000, &[(0, 1, 5)]), task(10, 9, &[])]);
        let one = spins(&many, &charges, None, &per_request).expect("fits");
        let other = spins(&many, &charges, None, &per_job).expect("fits");
        // Two jobs of the second task have two requests, which do not delay 50 of the first one.
        assert_eq!((one[0].0, other[0].0), (250, 10));
        assert!(one.iter().zip(&other).all(|(one, other)| other.0 <= one.0));
    }

    #[test]
    fn blocking_decides() {
        let fits = |section: u64| {
            let tasks = vec![task(50, 100, &[(0, 1, 1)]), task(40, 1_000, &[(0, 1, section)])];
            let set = set(1, tasks);
            let switches = Switches::default();
            [short, long].map(|judge| judge(&set, &machine(0), (Demand::Hard, Edf::Partitioned), &switches).is_some())
        };
        // 50 + B up to 100: the section blocks once, as a spinlock and under the stack resource policy.
        assert_eq!((fits(50), fits(51)), ([true, true], [false, false]));
    }

    #[test]
    fn suspensions_meet_sections_on_the_way() {
        // Both users of resource 0 are alone on their processors except for tasks with resource 1.
        let tasks = |section| {
            vec![
                task(500, 1_000, &[(0, 1, 10)]),
                task(490, 1_000, &[(0, 1, 10)]),
                task(400, 2_000, &[(1, 1, section)]),
                task(300, 2_000, &[(1, 1, section)]),
            ]
        };
        let judge = |section| {
            let set = set(2, tasks(section));
            let charges = Charges::new(machine(0).overheads(Demand::Hard, Edf::Partitioned), 4);
            partitioned_long(&set, &charges, &[0, 1, 0, 1], &Switches::default()).is_some()
        };
        // Task 0 waits for 10 and one section of resource 1 on the other processor, and meets two on its own:
        // 500 + 10 + L + 2 L <= 1,000.
        assert_eq!((judge(163), judge(164)), (true, false));
    }

    /// Tasks with periods that do not divide each other: the demand of the first deadlines is all that is due.
    #[test]
    fn the_best_test_accepts_more() {
        let set = set(1, vec![task(60, 100, &[]), task(40, 110, &[(0, 1, 5)]), task(1, 10_000, &[(0, 1, 5)])]);
        let judge = |tests| {
            let switches = Switches { tests, ..Switches::default() };
            short(&set, &machine(0), (Demand::Hard, Edf::Partitioned), &switches)
        };
        // Utilizations: 60/100 + 40/110 + 5/110 > 1. Demand: 60 + 40 + 5 <= 110, and 2 * 60 + 40 + 5 <= 200.
        assert_eq!((judge(Tests::Published), judge(Tests::Best)), (None, Some(0)));
    }

    #[test]
    fn soft_bounds_are_those_of_devi_and_anderson() {
        let tasks = [Charged { cost: 30, period: 40, span: 5 }, Charged { cost: 60, period: 70, span: 9 }];
        let plain: Vec<Sporadic> = tasks.iter().map(|task| task.sporadic(0)).collect();
        let x = global::devi_anderson_sections(&plain, &[5, 9], 2).expect("fits");
        assert_eq!(globally(&tasks, 2, Demand::Soft, &Switches::default()), Some(60 + x));
        let over = [Charged { cost: 41, period: 40, span: 0 }];
        assert_eq!(globally(&over, 2, Demand::Soft, &Switches::default()), None);
    }
}
