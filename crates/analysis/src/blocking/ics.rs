//! `ics` and `ics_lock`: sections that begin again, and sections under a lock.
//!
//! ```text
//!   w = C_i + B_i + sum over h at least as urgent on the processor of ceil((w + J_h) / T_h) * (C_h + again(h, i))
//!   again(h, i) = the less of   sum over resources z that h commits without a lock of max over k of b(k, z)
//!                               sum over k of max over such z of b(k, z)
//!                 k: tasks at least as urgent as i and less than h; and, as one, the less urgent tasks whose section can block i
//!   B_i = max over l less urgent than i, z that l locks at a ceiling of at least i's priority, of b(l, z)
//! ```
//! Take the time from when a less urgent task that blocks i began its section (else, since when none at least as urgent as i was pending) until i is
//! done. All jobs and sections executed in it began in it, so a section that began again in it did so for a commit in it. Give each execution in vain to
//! the last commit during it, of all on its resource. No other section on that resource lay between the two then: it would have committed later. And what lies below a
//! job stands still from its start to its end. So of one job and one resource it commits there is at most one, the first below; and of one job and one task below it at
//! most one, for no sections are nested. An execution in vain lasts as long as the section at worst, as the conflict is found at its end.
//!
//! B_i counts its section once, however often it begins again: that is charged to who makes it do so. A task that locks makes nobody begin again: all that may be in the
//! section without the lock are more urgent, and do not wait.
//!
//! A job makes nothing of an equal's delay begin again: it commits no resource freely that is locked at a ceiling of its own priority or more. For a given h both sums grow task by task on the way down to i.
//! So all pairs together cost a step for each h and each section below it: they count among the terms of the analysis.
//!
//! Reference: Johnson, Harathi: Interruptible critical sections, section 8, whose equations 4 and 5 differ: docs/errata.md.

use super::Blocker;
use crate::bound::Unbounded;
use crate::ics::{Charge, Row};
use crate::omit::Omit;
use crate::tables::Tables;
use lockwright_model::{Priority, ResourceId, TaskId};

/// The ceiling at which `holder` locks the resource, if it locks it at one on its processor.
pub(crate) fn lock_ceiling(tables: &Tables<'_>, holder: TaskId, resource: ResourceId) -> Option<Priority> {
    tables.lock_ceilings[resource.index()].filter(|_| !commits_freely(tables, holder, resource))
}

/// Whether what `task` commits on the resource can make others begin again.
fn commits_freely(tables: &Tables<'_>, task: TaskId, resource: ResourceId) -> bool {
    tables.cutoffs[resource.index()].is_some_and(|cutoff| tables.system.task(task).priority >= cutoff)
}

fn rows(tables: &Tables<'_>, task: TaskId) -> impl Iterator<Item = Row> {
    let requests = tables.system.requests(task).iter();
    requests.map(move |request| Row {
        task: task.index(),
        resource: request.resource.index(),
        length: request.length.as_ns(),
    })
}

/// How long one job makes others execute again at worst.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Length {
    pub(crate) all: u64,
    /// Of it, at most, the section that blocks.
    pub(crate) blocker: u64,
}

/// What jobs make begin again on one processor.
pub(crate) struct Again<'t> {
    tables: &'t Tables<'t>,
    /// The tasks of one priority each, the most urgent first.
    levels: Vec<&'t [TaskId]>,
    /// By level: sections of less urgent tasks that can block its tasks, and that more urgent ones may make begin again; the longest of each resource.
    blockers: Vec<Vec<Row>>,
}

impl<'t> Again<'t> {
    /// Of the tasks of one processor, the most urgent first.
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

    /// From the least urgent level up. Of sections of one length, that of the more urgent task.
    fn find_blockers(&mut self) {
        let tables = self.tables;
        let under_lock = |row: Row| {
            let ceiling = lock_ceiling(tables, TaskId::new(row.task), ResourceId::new(row.resource))?;
            tables.cutoffs[row.resource].is_some().then_some((ceiling, row))
        };
        let mut longest: Vec<Option<(Priority, Row)>> = vec![None; tables.cutoffs.len()];
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

    /// The resources that `h` commits without a lock.
    fn freely(&self, h: TaskId) -> impl Iterator<Item = ResourceId> {
        let resources = self.tables.system.requests(h).iter().map(|request| request.resource);
        resources.filter(move |&resource| commits_freely(self.tables, h, resource))
    }

    /// What a job of `h` makes begin again, with no task below it yet; `None` where it commits nothing without a lock.
    fn charge(&self, h: TaskId) -> Option<Charge> {
        Charge::new(self.freely(h).map(ResourceId::index))
    }

    /// Calls `found` with every two tasks of which the first, named by its place, commits something without a lock, and the second is less urgent.
    /// Where the budget does not suffice, with none.
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

    /// The tasks and sections that [`Again::each`] looks at, for one task after the other.
    fn terms(&self) -> u64 {
        let (mut terms, mut below) = (0, 0);
        for (tasks, blockers) in self.levels.iter().zip(&self.blockers).rev() {
            terms += below * tasks.iter().filter(|&&h| self.freely(h).next().is_some()).count();
            let requests = tasks.iter().map(|&task| self.tables.system.requests(task).len());
            below += blockers.len() + requests.map(|requests| 1 + requests).sum::<usize>();
        }
        terms as u64
    }

    fn length(&self, charge: &Charge, blockers: &[Row]) -> Length {
        let (sum, blocker) = charge.with(blockers);
        let all = match () {
            () if self.tables.omits(Omit::Again) => 0,
            () if self.tables.omits(Omit::AgainRest) => charge.greatest.max(blocker).into(),
            () if self.tables.omits(Omit::AgainOfBlocker) => charge.with(&[]).0,
            () => sum,
        };
        Length { all: u64::try_from(all).unwrap_or(u64::MAX), blocker }
    }

    /// The sections that one job of `h` makes begin again at worst while `task` is delayed: their sum is the bound.
    pub(crate) fn sections(&self, h: TaskId, task: TaskId) -> Vec<Blocker> {
        let Some(mut charge) = self.charge(h) else { return Vec::new() };
        let down_to = |task| self.levels.partition_point(|level| self.priority(level[0]) >= self.priority(task));
        let mut of_tasks: Vec<Row> = Vec::new();
        for &k in self.levels[down_to(h)..down_to(task)].iter().copied().flatten() {
            of_tasks.extend(charge.add(rows(self.tables, k)));
        }
        of_tasks.extend(charge.add(self.blockers[down_to(task) - 1].iter().copied()));
        let section = |row: Row| Blocker {
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
    use crate::fixed_point::TERMS_MAX;
    use lockwright_model::Protocol;
    use lockwright_model::format::parse_system;

    #[test]
    fn what_is_looked_at_counts_and_is_not_begun_where_the_budget_is_less() {
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
        // Below a there are four tasks with five sections, below c and d one with two. Under a lock only a makes others begin again, and e's section on s blocks c and d: one more.
        for (protocol, terms) in [(Protocol::Ics, 9 + 3 + 3), (Protocol::IcsLock, 9 + 1)] {
            for (left, expected) in [(terms, Ok(())), (terms - 1, Err(Unbounded::Unsettled))] {
                let tables = Tables::new(&system, protocol, None);
                tables.budget.spend(TERMS_MAX - left).unwrap();
                let mut pairs = 0;
                let found = Again::new(&tables, &tables.cpus[0]).each(|_, _, _| pairs += 1);
                assert_eq!((found.clone(), pairs > 0), (expected.clone(), expected.is_ok()), "{protocol}, {left}");
            }
        }
    }
}
