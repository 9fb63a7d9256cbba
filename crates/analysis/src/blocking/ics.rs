//! `ics` and `ics_lock`: sections that are executed again, and sections under a lock.
//!
//! ```text
//!   w = C_i + B_i + sum over h at least as urgent on the processor of ceil((w + J_h) / T_h) * (C_h + again(h, i))
//!   again(h, i) = the lesser of   sum over resources z that h commits without a lock of max over k of b(k, z)
//!                                 sum over k of max over such z of b(k, z)
//!                 k: tasks at least as urgent as i and less than h; and the less urgent tasks whose section can
//!                 block i, together as one task
//!   B_i = max over l less urgent than i, z that l locks at a ceiling of at least i's priority, of b(l, z)
//! ```
//! Consider the time from the start of the section of a less urgent task that blocks i (or, if there is none, from the
//! last time at which no task at least as urgent as i was pending) until i is done. All jobs and sections that execute
//! in this time began in it, so each restart in it is due to a commit in it. Restarts each invalidated execution to the
//! last commit on its resource during that execution. Then no other section on this resource lies between the two in
//! the order of preemption, as it would have committed later. Moreover, everything below a job stands still from the
//! start of that job to its end. One job therefore invalidates at most one execution for each resource that it commits,
//! that of the first section below it. It also invalidates at most one execution of each task below it, as no sections
//! are nested. An invalidated execution lasts at most as long as the section, as the conflict is detected at its end.
//!
//! B_i counts its section once, however often it restarts: the repetitions are charged to the jobs that cause them. A
//! task that locks restarts no section, because every task that may be in the section without the lock is more urgent
//! and does not wait.
//!
//! A job restarts nothing that delays a task of equal priority, as it commits no resource without a lock that others
//! lock at a ceiling of its own priority or more. For a given h both sums grow task by task on the way down to i. All
//! pairs together therefore cost a step for each h and each section below it. These steps count among the terms of the
//! analysis.
//!
//! Reference: Johnson, Harathi, *Interruptible Critical Sections*, section 8. Its equations 4 and 5 differ: see
//! docs/errata.md.

use super::delay::BlockingSection;
use crate::rows::bound::Unbounded;
use crate::rows::mutant::Mutant;
use crate::rows::tables::Tables;
use crate::uniprocessor::ics::{RestartedSection, Restarts};
use lockwright_model::{Priority, ResourceId, TaskId};

fn rows(tables: &Tables<'_>, task: TaskId) -> impl Iterator<Item = RestartedSection> {
    let requests = tables.system.requests(task).iter();
    requests.map(move |request| RestartedSection {
        task: task.index(),
        resource: request.resource.index(),
        length: request.length.as_ns(),
    })
}

/// The greatest time for which one job makes others execute again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Length {
    pub(crate) all: u64,
    /// The greatest part of it that is due to the section that blocks.
    pub(crate) blocker: u64,
}

/// The restarts that jobs cause on one processor.
pub(crate) struct Again<'t> {
    tables: &'t Tables<'t>,
    /// The tasks of each priority, most urgent first.
    levels: Vec<&'t [TaskId]>,
    /// By level: the sections of less urgent tasks that can block its tasks and that more urgent tasks may restart, the
    /// longest for each resource.
    blockers: Vec<Vec<RestartedSection>>,
}

impl<'t> Again<'t> {
    /// Prepares the tasks of one processor, which are in order of decreasing priority.
    pub(crate) fn new(tables: &'t Tables<'t>, tasks: &'t [TaskId]) -> Self {
        let mut again = Self { tables, levels: Vec::new(), blockers: Vec::new() };
        if tables.cutoffs.iter().any(Option::is_some) {
            again.levels = tasks.chunk_by(|&one, &other| again.priority(one) == again.priority(other)).collect();
            again.find_blockers();
        }
        again
    }

    fn priority(&self, task: TaskId) -> Priority {
        self.tables.system.task(task).priority
    }

    /// Goes from the least urgent level up. Of sections of the same length, that of the more urgent task counts.
    fn find_blockers(&mut self) {
        let tables = self.tables;
        let under_lock = |row: RestartedSection| {
            let ceiling = tables.lock_ceiling(TaskId::new(row.task), ResourceId::new(row.resource))?;
            tables.cutoffs[row.resource].is_some().then_some((ceiling, row))
        };
        let mut longest: Vec<Option<(Priority, RestartedSection)>> = vec![None; tables.cutoffs.len()];
        for level in self.levels.iter().rev() {
            let can_block = longest.iter().flatten().filter(|(ceiling, _)| *ceiling >= self.priority(level[0]));
            self.blockers.push(can_block.map(|(_, row)| *row).collect());
            let sections = level.iter().rev().flat_map(|&task| rows(tables, task)).filter_map(under_lock);
            for (ceiling, row) in sections {
                let known = &mut longest[row.resource];
                if known.is_none_or(|(_, other)| other.length <= row.length) {
                    *known = Some((ceiling, row));
                }
            }
        }
        self.blockers.reverse();
    }

    /// Returns the resources that `h` commits without a lock.
    fn freely(&self, h: TaskId) -> impl Iterator<Item = ResourceId> {
        let resources = self.tables.system.requests(h).iter().map(|request| request.resource);
        resources.filter(move |&resource| self.tables.commits_freely(h, resource))
    }

    /// Returns the charge for the sections that a job of `h` restarts, before any task below it is added. Returns
    /// `None` if it commits nothing without a lock.
    fn charge(&self, h: TaskId) -> Option<Restarts> {
        Restarts::new(self.freely(h).map(ResourceId::index))
    }

    /// Calls `found` with every pair of tasks of which the first, named by its place, commits a resource without a
    /// lock, and the second is less urgent. Calls it with none if the budget does not suffice.
    pub(crate) fn each(&self, mut found: impl FnMut(usize, TaskId, Length)) -> Result<(), Unbounded> {
        self.tables.budget.spend(self.terms())?;
        let places = self.levels.iter().enumerate().flat_map(|(level, tasks)| tasks.iter().map(move |&h| (h, level)));
        for (place, (h, level)) in places.enumerate() {
            let Some(mut charge) = self.charge(h) else { continue };
            for (tasks, blockers) in self.levels.iter().zip(&self.blockers).skip(level + 1) {
                for &k in *tasks {
                    charge.add(rows(self.tables, k));
                }
                let length = self.length(&charge, blockers);
                for &i in *tasks {
                    found(place, i, length);
                }
            }
        }
        Ok(())
    }

    /// Returns the number of tasks and sections that [`Again::each`] examines.
    fn terms(&self) -> u64 {
        let (mut terms, mut below) = (0, 0);
        for (tasks, blockers) in self.levels.iter().zip(&self.blockers).rev() {
            terms += below * tasks.iter().filter(|&&h| self.freely(h).next().is_some()).count();
            let requests = tasks.iter().map(|&task| self.tables.system.requests(task).len());
            below += blockers.len() + requests.map(|requests| 1 + requests).sum::<usize>();
        }
        terms as u64
    }

    fn length(&self, charge: &Restarts, blockers: &[RestartedSection]) -> Length {
        let (sum, blocker) = charge.with(blockers);
        let all = match () {
            () if self.tables.is_mutant(Mutant::Again) => 0,
            () if self.tables.is_mutant(Mutant::AgainRest) => charge.greatest.max(blocker).into(),
            () if self.tables.is_mutant(Mutant::AgainOfBlocker) => charge.with(&[]).0,
            () => sum,
        };
        Length { all: u64::try_from(all).unwrap_or(u64::MAX), blocker }
    }

    /// Returns the sections that one job of `h` restarts at worst while `task` is delayed. Their sum is the bound.
    pub(crate) fn sections(&self, h: TaskId, task: TaskId) -> Vec<BlockingSection> {
        let Some(mut charge) = self.charge(h) else { return Vec::new() };
        let down_to = |task| self.levels.partition_point(|level| self.priority(level[0]) >= self.priority(task));
        let mut of_tasks: Vec<RestartedSection> = Vec::new();
        for &k in self.levels[down_to(h)..down_to(task)].iter().copied().flatten() {
            of_tasks.extend(charge.add(rows(self.tables, k)));
        }
        of_tasks.extend(charge.add(self.blockers[down_to(task) - 1].iter().copied()));
        let section = |row: RestartedSection| BlockingSection {
            task: TaskId::new(row.task),
            resource: ResourceId::new(row.resource),
            length: row.length,
        };
        charge.chosen(of_tasks).into_iter().map(section).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::fixed_point::TERMS_MAX;
    use crate::rows::mutant::Omission;
    use lockwright_model::Protocol;
    use lockwright_model::format::parse_system;

    #[test]
    fn all_pairs_are_found_or_none_without_the_budget() {
        let task = |name: &str, priority: u8, sections: &[&str]| {
            let section = |resource: &&str| {
                format!("{{ lock = \"{resource}\" }}, {{ run = \"1 ms\" }}, {{ unlock = \"{resource}\" }}, ")
            };
            let body: String = sections.iter().map(section).collect();
            format!(
                "[[task]]\nname = \"{name}\"\npriority = {priority}\nperiod = \"1 s\"\nbody = [{body}{{ run = \"1 ms\" }}]\n"
            )
        };
        let text = "[platform]\npriorities = \"explicit\"\n[[resource]]\nname = \"r\"\n[[resource]]\nname = \"s\"\n[[resource]]\nname = \"t\"\n".to_owned()
            + &task("a", 4, &["r", "s"])
            + &task("b", 3, &[])
            + &task("c", 2, &["s"])
            + &task("d", 2, &["r", "s"])
            + &task("e", 1, &["s", "t"]);
        let system = parse_system(&text).unwrap();
        // Below a there are four tasks with five sections, and below c and d one with two. Under a lock only a restarts
        // others, and the section of e on s blocks c and d: one more.
        for (protocol, terms) in [(Protocol::Ics, 9 + 3 + 3), (Protocol::IcsLock, 9 + 1)] {
            for (left, expected) in [(terms, Ok(())), (terms - 1, Err(Unbounded::Unsettled))] {
                let tables = Tables::new(&system, protocol, Omission::NOTHING);
                tables.budget.spend(TERMS_MAX - left).unwrap();
                let mut pairs = 0;
                let found = Again::new(&tables, &tables.cpus[0]).each(|_, _, _| pairs += 1);
                assert_eq!((found.clone(), pairs > 0), (expected.clone(), expected.is_ok()), "{protocol}, {left}");
            }
        }
    }
}
