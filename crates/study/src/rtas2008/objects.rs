//! Tests with non-blocking objects.
//!
//! A wait-free access costs its time. A lock-free access is repeated for each commit that makes it fail; the failed
//! attempts of a job are bounded by [`nonblocking::retries`], or by accesses that can overlap one access.

use super::charges::{Charges, Kind};
use super::locks::{self, Charged, Verdict, globally, independently, place_rows};
use super::sets::{Row, Set};
use super::switches::{Retries, Switches};
use super::tables::{Algorithm, Demand, Edf, Machine, Object, table_2};
use lockwright_analysis::{Demand as Requests, Sharer, Sharing, Sporadic, nonblocking};

/// The rounds after which the search for a joint bound on tardiness and retries gives up.
const ROUNDS_MAX: usize = 1_000;

/// Tests a set whose resources are objects of one type.
pub(super) fn judge(
    set: &Set,
    object: (Object, Algorithm),
    machine: &Machine,
    test: (Demand, Edf),
    switches: &Switches,
) -> Verdict {
    let (demand, scheduler) = test;
    let set = with_accesses(set, object, demand);
    if object.1 == Algorithm::Spinning {
        return locks::short(&set, machine, test, switches);
    }
    let charges = Charges::new(machine.overheads(demand, scheduler), set.tasks.len());
    let costs = |responses: &[u64]| -> Option<Vec<Charged>> {
        let retries = match object.1 {
            Algorithm::LockFree => retries(&set, responses, switches.retries)?,
            _ => vec![0; set.tasks.len()],
        };
        let each = |(task, retries): (&Row, u64)| {
            let cost = charges.inflate((task.cost + task.inside).checked_add(retries)?, 0)?;
            Some(Charged::alone(cost, task.period))
        };
        set.tasks.iter().zip(retries).map(each).collect()
    };
    let mut responses: Vec<u64> = set.tasks.iter().map(|task| task.period).collect();
    if scheduler == Edf::Partitioned {
        let own = |task: &Row| Sporadic { cost: task.cost + task.inside, period: task.period, deadline: task.period };
        let homes = place_rows(&set.tasks.iter().map(own).collect::<Vec<_>>(), &set, false)?;
        return independently(&costs(&responses)?, &homes, set.processors, switches);
    }
    // Late jobs overlap more others: the bounds on retries and on tardiness rise together.
    // BOUND: each round except the last raises a response time; also the limit on rounds.
    for _ in 0..ROUNDS_MAX {
        let tasks = costs(&responses)?;
        let tardiness = globally(&tasks, set.processors, demand, switches)?;
        let greatest = tasks.iter().map(|task| task.cost).max().unwrap_or(0);
        // The bound of the set is that of its longest task: C + x.
        let x = tardiness.saturating_sub(greatest);
        let late = |task: &Charged| if demand == Demand::Soft { task.cost.saturating_add(x) } else { 0 };
        let next: Vec<u64> = tasks.iter().map(|task| task.period.saturating_add(late(task))).collect();
        if next == responses {
            return Some(tardiness);
        }
        responses = next;
    }
    None
}

/// Returns the set with the accesses of the object in place of sections. Below a spinlock an access is a section.
fn with_accesses(set: &Set, (object, algorithm): (Object, Algorithm), demand: Demand) -> Set {
    let users = set.users();
    let mut set = set.clone();
    for task in &mut set.tasks {
        for one in &mut task.uses {
            one.length = table_2(object, algorithm, demand, users[usize::from(one.resource)].len());
        }
        task.inside = task.uses.iter().map(|one| one.count * one.length).sum();
    }
    set
}

/// Returns the cost of the failed attempts of one job of each task.
fn retries(set: &Set, responses: &[u64], counted: Retries) -> Option<Vec<u64>> {
    let sharer = |(task, &response): (&Row, &u64)| Sharer {
        cost: task.cost,
        period: task.period,
        deadline: task.period,
        response,
        priority: 0,
        cluster: 0,
        requests: task
            .uses
            .iter()
            .map(|one| Requests { resource: one.resource, count: one.count as u32, length: one.length })
            .collect(),
    };
    let sharing = Sharing { tasks: set.tasks.iter().zip(responses).map(sharer).collect() };
    let per_job = nonblocking::retries(&sharing).ok()?;
    if counted == Retries::PerJob {
        return Some(per_job);
    }
    let users = set.users();
    let per_access = |(index, task): (usize, &Row)| -> u64 {
        let of = |one: &super::sets::Use| {
            let others = users[usize::from(one.resource)].iter().filter(|(other, _)| *other != index);
            // An access overlaps at most two jobs of each other task.
            one.count * one.length * others.map(|(_, theirs)| 2 * theirs.count).sum::<u64>()
        };
        task.uses.iter().map(of).sum()
    };
    Some(set.tasks.iter().enumerate().map(per_access).zip(per_job).map(|(one, other)| one.min(other)).collect())
}

/// The cost of an access below a spinlock, with its lock, for tables.
#[must_use]
pub fn spinning_access(object: Object, demand: Demand, machine: &Machine) -> u64 {
    let charges = Charges::new(machine.overheads(demand, Edf::Partitioned), 1);
    table_2(object, Algorithm::Spinning, demand, 1) + charges.request(Kind::Short)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtas2008::sets::Use;

    fn set() -> Set {
        let row =
            |cost, period, count| Row { cost, period, inside: 0, uses: vec![Use { resource: 0, count, length: 1 }] };
        let tasks = vec![row(1_000_000, 100_000_000, 3), row(1_000_000, 10_000_000, 1), row(1_000_000, 50_000_000, 2)];
        Set { processors: 2, tasks, resources: 1 }
    }

    #[test]
    fn failed_attempts_are_counted() {
        let accesses = with_accesses(&set(), (Object::Heap, Algorithm::LockFree), Demand::Hard);
        let attempt = 19_430 + 3 * 90;
        assert_eq!(accesses.tasks[0].inside, 3 * attempt);
        let periods = [100_000_000, 10_000_000, 50_000_000];
        let per_job = retries(&accesses, &periods, Retries::PerJob).expect("fits");
        // ceil(110 / 10) jobs with one commit, and ceil(150 / 50) with two.
        assert_eq!(per_job[0], (11 + 3 * 2) * attempt);
        let per_access = retries(&accesses, &periods, Retries::PerAccess).expect("fits");
        // Three accesses would overlap 2 * (1 + 2) commits each, which is more. One access of the second task overlaps
        // 2 * (3 + 2); per job it is ceil(110 / 100) * 3 + ceil(60 / 50) * 2.
        assert_eq!((per_access[0], per_job[1], per_access[1]), (17 * attempt, 10 * attempt, 10 * attempt));
        assert!(per_access.iter().zip(&per_job).all(|(one, other)| one <= other));
    }

    #[test]
    fn tardiness_and_retries_rise_together() {
        let (set, machine, switches) = (set(), Machine::published(), Switches::default());
        let bound = |algorithm| {
            judge(&set, (Object::Heap, algorithm), &machine, (Demand::Soft, Edf::Global), &switches).expect("is light")
        };
        assert!(bound(Algorithm::LockFree) > bound(Algorithm::WaitFree));
        assert!(bound(Algorithm::Spinning) < bound(Algorithm::WaitFree));
        for scheduler in [Edf::Global, Edf::Partitioned] {
            for algorithm in [Algorithm::Spinning, Algorithm::LockFree, Algorithm::WaitFree] {
                let hard = judge(&set, (Object::Heap, algorithm), &machine, (Demand::Hard, scheduler), &switches);
                assert_eq!(hard, Some(0), "{scheduler:?} {algorithm:?}");
            }
        }
        // About 2 µs for a buffer below a spinlock, and three times that at worst.
        assert_eq!(spinning_access(Object::Buffer, Demand::Soft, &machine), 1_990);
    }
}
