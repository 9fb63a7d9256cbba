//! Interruptible critical sections on one processor with fixed priorities.
//!
//! A section that a conflicting section interrupted starts again. The equations are those of Johnson, Harathi,
//! *Interruptible Critical Sections*, section 8, and the figures of its tables 1 to 3 are reproduced. Tasks are in
//! order of decreasing priority. b(k, z) is the length of the section of task k on z, or 0 if it has none:
//! ```text
//!   r_i = C_i + sum over j < i of ceil(r_i / T_j) C_j                                             (1)
//!   r_i = C_i + sum over j < i of ceil(r_i / T_j) (C_j + btot(j, i))          (4; 2 and 3 for two and three tasks)
//!   btot(j, i) = max over z of j, j < k <= i, of b(k, z)
//! ```
//! In combination with the priority ceiling protocol, the I(z) most urgent tasks enter z without a lock, and the others
//! lock it:
//! ```text
//!   r_i = C_i + sum over j < i of ceil(r_i / T_j) (C_j + bptot(j, i)) + B(i)                      (5)
//!   bptot(j, i): as btot, over those z that j enters without a lock
//!   BP(z) = max over i that does not lock z, j that does, of ceil(r_j / T_i) b(j, z); without such an i, of b(j, z)
//!   B(i)  = max of BP(z) over the z that can block i
//! ```
//! Response times and BP depend on each other and are found together. z can block every task that is no more urgent
//! than the first task that locks it.
//!
//! The published figures and equation 5 differ, and neither is a bound: see [`Reading`].
//!
//! # Examples
//! ```
//! use lockwright_analysis::Sporadic;
//! use lockwright_analysis::uniprocessor::ics::{Interruptible, Reading, Section, response_times};
//! let task = |cost, period, length| Interruptible {
//!     task: Sporadic { cost, period, deadline: period },
//!     sections: vec![Section { resource: 0, length, ..Section::default() }],
//! };
//! // A job of the first task may restart a section of 3.
//! assert_eq!(response_times(&[task(2, 20, 1), task(5, 40, 3)], Reading::Tight)?, [2, 10]);
//! # Ok::<(), lockwright_analysis::Failure>(())
//! ```

use crate::rows::divisor::Divisor;
use crate::rows::failure::Failure;
use crate::rows::fixed_point::TERMS_MAX;
use crate::{Limit, Sporadic};

/// A task with interruptible sections.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Interruptible {
    /// C without sections that are executed again, T and D.
    pub task: Sporadic,
    /// The sections, with each resource at most once.
    pub sections: Vec<Section>,
}

/// A section of a task on one resource.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Section {
    /// The resource, z.
    pub resource: u16,
    /// The length of the section, b.
    pub length: u64,
    /// Whether the task locks the resource, under the priority ceiling protocol. All tasks that lock z are less urgent
    /// than all those that do not.
    pub locked: bool,
}

/// The interpretation of equation 5.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reading {
    /// The interpretation that reproduces the figures of the source's table 3: a release exactly at the response time
    /// counts, and a task is charged with blocking by the sections of any task, including its own and those of more
    /// urgent tasks.
    ///
    /// This is not a bound if a section under a lock is longer than the sections of the tasks that it blocks: the job
    /// that restarts it is charged with the shorter ones. Nor is it a bound if a task has sections on several
    /// resources: one job of it can restart a section on each of them, of different tasks.
    Published,
    /// A bound: least fixed points, and blocking only by less urgent tasks, once, for b(j, z). The least urgent task is
    /// not blocked. A job that restarts the section that blocks is charged with it. A job is charged with one section
    /// for each resource that it commits, or with one for each task whose section it can restart, whichever is less.
    Tight,
}

/// Returns the response times under equations 1 to 5, on one processor with fixed priorities.
///
/// Tasks are in order of decreasing priority, and so is the result. Response times are in the unit of the input.
/// Deadlines must not exceed periods. The source is Johnson, Harathi; see the [module](self).
///
/// # Errors
/// Returns [`Failure::Late`] with the first task found late. Returns [`Failure::Unsupported`] for a task without a
/// period, with a deadline beyond it, or that enters a resource without the lock that a more urgent task uses. Returns
/// [`Failure::Diverged`] or [`Failure::Overflow`] if there is no result.
pub fn response_times(tasks: &[Interruptible], reading: Reading) -> Result<Vec<u64>, Failure> {
    let system = System::new(tasks, reading)?;
    let mut responses: Vec<u64> = tasks.iter().map(|task| task.task.cost).collect();
    let mut terms = TERMS_MAX;
    // BOUND: each round except the last increases a response time, and none exceeds its deadline; also the limit on
    // terms.
    loop {
        let mut changed = false;
        let mut urgent: Vec<Option<Restarts>> = Vec::with_capacity(tasks.len());
        for i in 0..tasks.len() {
            let response = system.response(i, &mut urgent, &responses, &mut terms)?;
            changed |= response > responses[i];
            responses[i] = response;
            urgent.push(system.charge(i));
        }
        // Only the published interpretation makes a response time depend on those of other tasks.
        if !changed || reading == Reading::Tight {
            return Ok(responses);
        }
    }
}

struct System<'a> {
    tasks: &'a [Interruptible],
    periods: Vec<Divisor>,
    reading: Reading,
    /// By task: its sections in their order, with resources numbered from 0.
    rows: Vec<Vec<RestartedSection>>,
    /// By this number of the resource: the first task that locks it.
    ceilings: Vec<Option<usize>>,
    /// By this number of the resource: of the tasks that do not lock it, which are all more urgent than those that do,
    /// the one with the least period.
    quickest: Vec<Option<usize>>,
}

impl<'a> System<'a> {
    fn new(tasks: &'a [Interruptible], reading: Reading) -> Result<Self, Failure> {
        let all = tasks.iter().flat_map(|task| &task.sections);
        let mut resources: Vec<u16> = all.map(|section| section.resource).collect();
        resources.sort_unstable();
        resources.dedup();
        let number = |resource| resources.partition_point(|&other| other < resource);
        let mut ceilings: Vec<Option<usize>> = vec![None; resources.len()];
        let mut quickest = ceilings.clone();
        let (mut periods, mut rows) = (Vec::new(), Vec::new());
        for (index, task) in tasks.iter().enumerate() {
            let none = Failure::Unsupported { task: index, what: "has no period" };
            periods.push(Divisor::new(task.task.period).ok_or(none)?);
            if task.task.deadline > task.task.period {
                return Err(Failure::Unsupported { task: index, what: "has a deadline beyond its period" });
            }
            let row = |section: &Section| RestartedSection {
                task: index,
                resource: number(section.resource),
                length: section.length,
            };
            rows.push(task.sections.iter().map(row).collect::<Vec<RestartedSection>>());
            for (section, row) in task.sections.iter().zip(&rows[index]) {
                let first = &mut ceilings[row.resource];
                if first.is_some() && !section.locked {
                    let what = "enters a resource without the lock that a more urgent one uses";
                    return Err(Failure::Unsupported { task: index, what });
                }
                if section.locked {
                    first.get_or_insert(index);
                    continue;
                }
                let quickest = &mut quickest[row.resource];
                if quickest.is_none_or(|other| task.task.period < tasks[other].task.period) {
                    *quickest = Some(index);
                }
            }
        }
        Ok(Self { tasks, periods, reading, rows, ceilings, quickest })
    }

    /// Returns the sections of a task that it enters under a lock, or those that it enters without.
    fn sections(&self, task: usize, locked: bool) -> impl Iterator<Item = RestartedSection> {
        let pairs = self.tasks[task].sections.iter().zip(&self.rows[task]);
        pairs.filter(move |(section, _)| section.locked == locked).map(|(_, row)| *row)
    }

    fn can_block(&self, resource: usize, i: usize) -> bool {
        self.ceilings[resource].is_some_and(|first| first <= i)
    }

    /// Returns the charge for the sections that a job restarts, before any task below it is added. Returns `None` if it
    /// restarts none.
    fn charge(&self, task: usize) -> Option<Restarts> {
        Restarts::new(self.sections(task, false).map(|row| row.resource))
    }

    /// Returns btot(j, i) or bptot(j, i), where i is the last task added. For several resources, it is the bound of
    /// [`Restarts`].
    fn again(&self, charge: &Restarts, blockers: &[RestartedSection]) -> Option<u64> {
        match self.reading {
            Reading::Published => Some(charge.greatest),
            Reading::Tight => u64::try_from(charge.with(blockers).0).ok(),
        }
    }

    /// Returns the sections under locks of less urgent tasks that can block i: the longest on each resource.
    fn blockers(&self, i: usize) -> Vec<RestartedSection> {
        let mut longest: Vec<Option<RestartedSection>> = vec![None; self.ceilings.len()];
        for row in (i + 1..self.tasks.len()).flat_map(|task| self.sections(task, true)) {
            let known = &mut longest[row.resource];
            if self.can_block(row.resource, i) && known.is_none_or(|other| other.length < row.length) {
                *known = Some(row);
            }
        }
        longest.into_iter().flatten().collect()
    }

    /// Returns the number of releases of k that count in a response time of `t`.
    fn releases(&self, k: usize, t: u64) -> u64 {
        match self.reading {
            Reading::Published => self.periods[k].floor(t) + 1,
            Reading::Tight => self.periods[k].ceil(t),
        }
    }

    /// Returns the blocking due to a section of task j, as published.
    fn blocking_of(&self, j: usize, section: RestartedSection, responses: &[u64]) -> Option<u64> {
        let most = self.quickest[section.resource].map_or(1, |k| self.periods[k].ceil(responses[j]));
        section.length.checked_mul(most.max(1))
    }

    fn blocking(&self, i: usize, blockers: &[RestartedSection], responses: &[u64]) -> Option<u64> {
        let mut most = 0;
        match self.reading {
            Reading::Tight => {
                most = blockers.iter().map(|section| section.length).max().unwrap_or(0);
            }
            Reading::Published => {
                for j in 0..self.tasks.len() {
                    for section in self.sections(j, true).filter(|section| self.can_block(section.resource, i)) {
                        most = self.blocking_of(j, section, responses)?.max(most);
                    }
                }
            }
        }
        Some(most)
    }

    /// Returns the least response time of i for the current response times of the others, no less than its current one.
    /// Adds the sections of i to the charges of more urgent tasks.
    fn response(
        &self,
        i: usize,
        urgent: &mut [Option<Restarts>],
        responses: &[u64],
        terms: &mut u64,
    ) -> Result<u64, Failure> {
        let mut spend = |more: usize| {
            let limit = Limit { name: "terms", most: TERMS_MAX };
            *terms = terms.checked_sub(more as u64).ok_or(Failure::Diverged { task: i, limit })?;
            Ok(())
        };
        let task = self.tasks[i].task;
        spend(self.rows.iter().map(Vec::len).sum())?;
        let blockers = self.blockers(i);
        let own = self.blocking(i, &blockers, responses).and_then(|blocked| blocked.checked_add(task.cost));
        let own = own.ok_or(Failure::Overflow)?;
        spend(urgent.iter().flatten().count() * (self.rows[i].len() + blockers.len()))?;
        let charges = urgent.iter_mut().zip(self.tasks).map(|(charge, j)| {
            let Some(charge) = charge else { return Some(j.task.cost) };
            charge.add(self.rows[i].iter().copied());
            j.task.cost.checked_add(self.again(charge, &blockers)?)
        });
        let charges: Vec<u64> = charges.collect::<Option<_>>().ok_or(Failure::Overflow)?;
        let mut t = responses[i].max(own);
        // BOUND: the deadline, and the limit on terms.
        loop {
            if t > task.deadline {
                return Err(Failure::Late { task: i, response: t });
            }
            spend(i + 1)?;
            let mut next = own;
            for (j, &charge) in charges.iter().enumerate() {
                let more = self.releases(j, t).checked_mul(charge);
                next = more.and_then(|more| next.checked_add(more)).ok_or(Failure::Overflow)?;
            }
            if next <= t {
                return Ok(t);
            }
            t = next;
        }
    }
}

/// A section: its task, its resource and its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RestartedSection {
    pub(crate) task: usize,
    pub(crate) resource: usize,
    pub(crate) length: u64,
}

/// The greatest time for which one job makes others execute again, as the tasks below it are added one by one.
///
/// The job restarts at most one section on each resource, and at most one of each task. The longest section on each
/// resource, or of each task, whichever sum is less, therefore bounds the total.
pub(crate) struct Restarts {
    /// The longest section on each resource, up to the last resource that the job commits. The length is 0 before there
    /// is a section; the entry is `None` if the job does not commit the resource.
    longest: Vec<Option<RestartedSection>>,
    of_resources: u128,
    of_tasks: u128,
    /// The length of the longest section of all.
    pub(crate) greatest: u64,
}

impl Restarts {
    /// Creates the charge of a job that commits these resources. Returns `None` if there are none.
    pub(crate) fn new(resources: impl Iterator<Item = usize>) -> Option<Self> {
        let mut longest = Vec::new();
        for resource in resources {
            longest.resize(longest.len().max(resource + 1), None);
            longest[resource] = Some(RestartedSection { task: usize::MAX, resource, length: 0 });
        }
        (!longest.is_empty()).then_some(Self { longest, of_resources: 0, of_tasks: 0, greatest: 0 })
    }

    /// Returns the longest section on the resource, if the job commits it.
    fn known(&self, resource: usize) -> Option<RestartedSection> {
        self.longest.get(resource).copied().flatten()
    }

    /// Adds the sections of a task below. Returns the longest of those that the job can restart.
    pub(crate) fn add(&mut self, sections: impl Iterator<Item = RestartedSection>) -> Option<RestartedSection> {
        let mut longest: Option<RestartedSection> = None;
        for section in sections {
            let Some(known) = self.known(section.resource) else { continue };
            if known.length < section.length {
                self.longest[section.resource] = Some(section);
                self.of_resources += u128::from(section.length - known.length);
            }
            if longest.is_none_or(|other| other.length < section.length) {
                longest = Some(section);
            }
        }
        let length = longest.map_or(0, |section| section.length);
        self.of_tasks += u128::from(length);
        self.greatest = self.greatest.max(length);
        longest
    }

    /// Returns the charge with one more task that has these sections, each on another resource, and the length of the
    /// longest of them that the job can restart.
    pub(crate) fn with(&self, sections: &[RestartedSection]) -> (u128, u64) {
        let (mut more, mut longest) = (0, 0);
        for section in sections {
            let Some(known) = self.known(section.resource) else { continue };
            more += u128::from(section.length.saturating_sub(known.length));
            longest = longest.max(section.length);
        }
        ((self.of_resources + more).min(self.of_tasks + u128::from(longest)), longest)
    }

    /// Returns the sections whose lengths sum to the bound. `of_tasks` are the sections that [`Restarts::add`]
    /// returned.
    pub(crate) fn chosen(self, of_tasks: Vec<RestartedSection>) -> Vec<RestartedSection> {
        let of_resources = self.longest.into_iter().flatten().filter(|section| section.length > 0);
        if self.of_tasks < self.of_resources { of_tasks } else { of_resources.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds tasks from T, C and D in tenths of a millisecond, with sections of 1 ms on resource 0 (X, z) or 1 (Y), as
    /// in the source's tables.
    fn tasks(rows: &[(u64, u64, u64, &[u16])], locked_from: usize) -> Vec<Interruptible> {
        let task = |(index, &(period, cost, deadline, resources)): (usize, &(u64, u64, u64, &[u16]))| Interruptible {
            task: Sporadic { cost, period, deadline },
            sections: resources
                .iter()
                .map(|&resource| Section { resource, length: 10, locked: index >= locked_from })
                .collect(),
        };
        rows.iter().enumerate().map(task).collect()
    }

    const TABLE_3: [(u64, u64, u64, &[u16]); 8] = [
        (250, 30, 65, &[0]),
        (250, 30, 65, &[1]),
        (300, 30, 150, &[0]),
        (300, 30, 200, &[1]),
        (300, 30, 300, &[0]),
        (300, 30, 300, &[1]),
        (1000, 30, 800, &[0]),
        (1000, 30, 900, &[1]),
    ];

    #[test]
    fn table_1_is_reproduced() {
        let rows: [(u64, u64, u64, &[u16]); 3] = [(100, 25, 30, &[0]), (150, 50, 100, &[0]), (300, 40, 280, &[0])];
        assert_eq!(response_times(&tasks(&rows, 9), Reading::Tight), Ok(vec![25, 85, 265]));
    }

    #[test]
    fn table_2_is_reproduced() {
        let rows: [(u64, u64, u64, &[u16]); 5] = [
            (200, 25, 55, &[0]),
            (200, 25, 55, &[1]),
            (300, 50, 150, &[0]),
            (400, 40, 250, &[1]),
            (500, 40, 300, &[0, 1]),
        ];
        assert_eq!(response_times(&tasks(&rows, 9), Reading::Tight), Ok(vec![25, 50, 110, 160, 290]));
    }

    #[test]
    fn table_3_is_reproduced_without_locks() {
        let expected = vec![30, 60, 100, 140, 180, 220, 490, 860];
        assert_eq!(response_times(&tasks(&TABLE_3, 9), Reading::Tight), Ok(expected));
        let mut late = TABLE_3;
        late[7].2 = 800;
        let why = response_times(&tasks(&late, 9), Reading::Tight);
        assert!(matches!(why, Err(Failure::Late { task: 7, .. })), "{why:?}");
    }

    #[test]
    fn table_3_is_reproduced_with_locks_as_published() {
        let expected = vec![30, 60, 120, 160, 190, 220, 450, 480];
        assert_eq!(response_times(&tasks(&TABLE_3, 2), Reading::Published), Ok(expected));
    }

    #[test]
    fn the_tight_reading_is_no_longer() {
        // Task 7 is done before the next release at 25 ms, and nothing blocks task 8. A lock blocks once, for 1 ms.
        let expected = vec![30, 60, 110, 150, 180, 210, 240, 460];
        assert_eq!(response_times(&tasks(&TABLE_3, 2), Reading::Tight), Ok(expected));
    }

    #[test]
    fn a_long_section_that_blocks_is_charged_to_what_starts_it_again() {
        // Task 3 is in its section of 10 on z. At its end, task 1 arrives and restarts it while task 2, whose own
        // section takes 1, waits: 10 + 10 + 1 + 2.
        let section = |length, locked| vec![Section { resource: 0, length, locked }];
        let task = |cost, period| Sporadic { cost, period, deadline: period };
        let tasks = [
            Interruptible { task: task(1, 100), sections: section(1, false) },
            Interruptible { task: task(2, 200), sections: section(1, true) },
            Interruptible { task: task(10, 300), sections: section(10, true) },
        ];
        let (published, tight) =
            (response_times(&tasks, Reading::Published).unwrap(), response_times(&tasks, Reading::Tight).unwrap());
        assert_eq!(published[1], 2 + (1 + 1) + 10);
        assert_eq!(tight[1], 2 + (1 + 10) + 10);
    }

    #[test]
    fn a_job_that_commits_two_resources_starts_a_section_of_each_again() {
        // Task 3 is in its section of 10 on resource 1 when task 2 arrives. Task 2 is in its section of 5 on resource 0
        // when task 1 arrives and commits both, so 5 + 10 are executed again.
        let section = |resource, length| Section { resource, length, locked: false };
        let task = |cost, sections: &[Section]| Interruptible {
            task: Sporadic { cost, period: 100, deadline: 100 },
            sections: sections.to_vec(),
        };
        let mut tasks =
            vec![task(2, &[section(0, 1), section(1, 1)]), task(5, &[section(0, 5)]), task(10, &[section(1, 10)])];
        let responses = |tasks: &[Interruptible]| {
            [Reading::Published, Reading::Tight].map(|reading| response_times(tasks, reading).unwrap().pop())
        };
        assert_eq!(responses(&tasks), [Some(17 + 10), Some(17 + 15)]);
        // With one task below, the job restarts one section, as that task is in one section at a time.
        tasks.remove(1);
        tasks[1].sections.push(section(0, 5));
        assert_eq!(responses(&tasks), [Some(12 + 10); 2]);
    }

    #[test]
    fn restarts_count_among_the_terms() {
        // A thousand tasks commit the same resources. For each, the sections of all are examined, and for each pair
        // those of both.
        let of = |resources| {
            let sections = (0..resources).map(|resource| Section { resource, length: 1, locked: false }).collect();
            let task = Sporadic { cost: 1, period: 1 << 30, deadline: 1 << 30 };
            let responses = response_times(&vec![Interruptible { task, sections }; 1_000], Reading::Tight);
            responses.map(|responses| responses[999])
        };
        // For one job, a section on each resource, or of each task below.
        assert_eq!(of(60), Ok(1_000 + (1..1_000).map(|below| below.min(60)).sum::<u64>()));
        assert!(matches!(of(70), Err(Failure::Diverged { limit: Limit { name: "terms", .. }, .. })));
    }

    #[test]
    fn invalid_input_is_refused() {
        assert_eq!(response_times(&[], Reading::Tight), Ok(vec![]));
        let huge = Sporadic { cost: u64::MAX, period: u64::MAX, deadline: u64::MAX };
        let section = vec![Section { resource: 0, length: u64::MAX, locked: false }];
        let tasks = vec![Interruptible { task: huge, sections: section }; 2];
        assert_eq!(response_times(&tasks, Reading::Tight), Err(Failure::Overflow));
        assert!(response_times(&[Interruptible::default()], Reading::Tight).is_err(), "no period");
    }
}
