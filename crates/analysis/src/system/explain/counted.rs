//! The sections that a bound of `across.rs` counts, and how often: the choice of the bound repeated for one task, with
//! names.
//!
//! The bounds add up lengths fast and keep no names. The sections chosen here are shown only if they sum to the bound.

use crate::blocking::accounting::{Accounting, accounting};
use crate::blocking::delay::BlockingSection;
use crate::rows::bound::Analysis;
use crate::rows::tables::Tables;
use crate::system::across;
use lockwright_model::{CpuId, Duration, Mode, Priority, Protocol, Request, ResourceId, System, TaskId};
use std::cmp::Reverse;

/// One task under the protocol that governs its system, with the response times of all tasks.
pub(super) struct Counted<'a> {
    tables: &'a Tables<'a>,
    system: &'a System,
    analysis: &'a Analysis,
    ruling: Protocol,
    task: TaskId,
    priority: Priority,
    cpu: CpuId,
}

/// Sections, with the number of times that each counts.
pub(super) type Sections = Vec<(u64, BlockingSection)>;

/// No limit.
const ALL: u64 = u64::MAX;

impl<'a> Counted<'a> {
    pub(super) fn new(tables: &'a Tables<'a>, analysis: &'a Analysis, ruling: Protocol, task: TaskId) -> Self {
        let (system, own) = (tables.system, tables.system.task(task));
        Self { tables, system, analysis, ruling, task, priority: own.priority, cpu: own.cpu }
    }

    /// Returns the sections for which its requests wait, if they are known and sum to `total`.
    pub(super) fn waits(&self, total: u64) -> Option<Sections> {
        let sections = match (self.ruling, accounting(self.ruling)?) {
            (Protocol::LockFree | Protocol::WaitFree, _) => return None,
            (Protocol::PhaseFair | Protocol::TaskFair, _) => self.of_readers_and_writers(),
            (Protocol::Omlp, _) | (_, Accounting::Spins) => self.one_of_each_cpu(),
            (Protocol::Dpcp, _) => self.by_priority_at_homes(),
            (Protocol::Dflp, _) => self.by_arrival_at_homes(),
            (Protocol::FmlpPlus, _) => self.of_other_cpus(),
            _ => return None,
        };
        summing_to(total, sections?)
    }

    /// Returns the other sections that delay it on its processor, if they are known and sum to `total`.
    pub(super) fn blockers(&self, total: u64) -> Option<Sections> {
        let sections = match self.ruling {
            Protocol::MpcpVs => self.longest_of_each(self.beside(), 1, |_| true),
            Protocol::FmlpLong => {
                let inherits = |request: &Request| self.system.highest_user(request.resource) >= self.priority;
                self.longest_of_each(self.tables.lesser(self.task).iter().copied(), 1 + self.asked(), inherits)
            }
            Protocol::Dpcp | Protocol::Dflp => self.at_home_here(),
            Protocol::FmlpPlus => self.boosted(),
            Protocol::PhaseFair | Protocol::TaskFair => self.shared_request_with_its_wait(total),
            _ => return self.request_with_its_wait(total),
        };
        summing_to(total, sections?)
    }

    fn asked(&self) -> u64 {
        across::requests(self.tables, self.ruling, self.task)
    }

    fn others(&self) -> impl Iterator<Item = TaskId> + use<'_> {
        self.system.task_ids().filter(|&other| other != self.task)
    }

    fn ruled(&self, task: TaskId) -> impl Iterator<Item = (TaskId, &'a Request)> + use<'a, '_> {
        let ruled = |request: &&Request| self.tables.protocol(request.resource) == self.ruling;
        self.system.requests(task).iter().filter(ruled).map(move |request| (task, request))
    }

    /// Returns the number of jobs of another task that can execute within the response time of this one.
    fn jobs(&self, other: TaskId) -> Option<u64> {
        let response = |id: TaskId| self.analysis.task(id).response.map(Duration::as_ns);
        Some(response(self.task)?.checked_add(response(other)?)?.div_ceil(self.system.task(other).period.as_ns()))
    }

    /// Returns the longest sections: at most `each` of every entry, and at most `all` in total.
    fn longest(&self, mut entries: Vec<(TaskId, &Request)>, each: u64, all: u64) -> Option<Sections> {
        entries.sort_by_key(|(_, request)| Reverse(request.length));
        let mut left = all;
        let mut sections = Sections::new();
        for (task, request) in entries {
            let there = self.jobs(task)?.checked_mul(u64::from(request.count))?;
            let count = there.min(each).min(left);
            left -= count;
            sections
                .push((count, BlockingSection { task, resource: request.resource, length: request.length.as_ns() }));
        }
        sections.retain(|(count, _)| *count > 0);
        Some(sections)
    }

    fn cpus(&self) -> impl Iterator<Item = CpuId> + use<'_> {
        (0..self.system.cpus()).map(CpuId::new).filter(|&cpu| cpu != self.cpu)
    }

    /// Returns the requests for one resource on a processor.
    fn on(&self, cpu: CpuId, resource: ResourceId) -> Vec<(TaskId, &'a Request)> {
        let there = self.others().filter(|&other| self.system.task(other).cpu == cpu);
        there.flat_map(|other| self.ruled(other)).filter(|(_, request)| request.resource == resource).collect()
    }

    /// Returns, for each request, one section of each other processor, including those of its own cluster.
    fn one_of_each_cpu(&self) -> Option<Sections> {
        let mut sections = Sections::new();
        for (_, own) in self.ruled(self.task) {
            sections.extend(self.one_of_each_cpu_on(own.resource, u64::from(own.count))?);
        }
        Some(sections)
    }

    fn one_of_each_cpu_on(&self, resource: ResourceId, count: u64) -> Option<Sections> {
        let mut sections = Sections::new();
        for cpu in (0..self.system.cpus()).map(CpuId::new) {
            // The tasks of a cluster are assigned to its first processor.
            let others = u64::from(self.system.cluster(cpu).count_ones()) - u64::from(cpu == self.cpu);
            sections.extend(self.longest(self.on(cpu, resource), count, count.checked_mul(others)?)?);
        }
        Some(sections)
    }

    /// Returns the requests of other processors for a resource in a mode.
    fn in_mode(&self, resource: ResourceId, mode: Mode) -> Vec<(TaskId, Request)> {
        let elsewhere = self.others().filter(|&other| self.system.task(other).cpu != self.cpu);
        let all =
            elsewhere.flat_map(|other| self.system.requests_in(other, mode).into_iter().map(move |its| (other, its)));
        all.filter(|(_, request)| request.resource == resource).collect()
    }

    /// Returns the longest of these requests: at most `each` of every entry, and at most `all` of each processor.
    fn longest_on_each_cpu(&self, requests: &[(TaskId, Request)], each: u64, all: u64) -> Option<Sections> {
        let mut sections = Sections::new();
        for cpu in self.cpus() {
            let there = requests.iter().filter(|(task, _)| self.system.task(*task).cpu == cpu);
            sections.extend(self.longest(there.map(|(task, request)| (*task, request)).collect(), each, all)?);
        }
        Some(sections)
    }

    /// Returns the number of requests of the task for a resource that write, and of those that read.
    fn issued(&self, resource: ResourceId) -> (u64, u64) {
        let count = |mode| {
            let own = self.system.requests_in(self.task, mode);
            own.iter().find(|request| request.resource == resource).map_or(0, |request| u64::from(request.count))
        };
        (count(Mode::Write), count(Mode::Read))
    }

    /// Returns the writes that can precede some requests of the task.
    fn writers(&self, resource: ResourceId, issued: u64) -> Option<Sections> {
        self.longest_on_each_cpu(&self.in_mode(resource, Mode::Write), issued, issued)
    }

    /// Returns the sections for which some requests of the task wait, `writes` and `reads`. `preceding` is the number
    /// of writers before which readers count.
    fn shared(&self, resource: ResourceId, (writes, reads): (u64, u64), preceding: u64) -> Option<Sections> {
        let issued = writes.checked_add(reads)?;
        let mut sections = self.writers(resource, issued)?;
        let phases = preceding.checked_add(writes)?;
        let readers = self.in_mode(resource, Mode::Read);
        if self.ruling == Protocol::PhaseFair {
            let cpus = self.system.tasks().iter().map(|task| task.cpu.index() as u64).max().unwrap_or(0);
            let phases = phases.min(reads.checked_add(writes.checked_mul(cpus)?)?);
            sections.extend(self.longest(
                readers.iter().map(|(task, request)| (*task, request)).collect(),
                ALL,
                phases,
            )?);
            return Some(sections);
        }
        let readers = self.longest_on_each_cpu(&readers, phases.min(issued), issued)?;
        sections.extend(first(readers, phases));
        let alone = self.one_of_each_cpu_on(resource, issued)?;
        Some(if sum(&alone)? < sum(&sections)? { alone } else { sections })
    }

    fn of_readers_and_writers(&self) -> Option<Sections> {
        let mut sections = Sections::new();
        for (_, own) in self.ruled(self.task) {
            let preceding = count(&self.writers(own.resource, u64::from(own.count))?);
            sections.extend(self.shared(own.resource, self.issued(own.resource), preceding)?);
        }
        Some(sections)
    }

    /// As [`request_with_its_wait`](Self::request_with_its_wait), for readers and writers.
    fn shared_request_with_its_wait(&self, total: u64) -> Option<Sections> {
        for other in self.beside() {
            let its = Counted::new(self.tables, self.analysis, self.ruling, other);
            for (_, request) in its.ruled(other) {
                for mode in [Mode::Write, Mode::Read] {
                    let all = self.system.requests_in(other, mode);
                    let Some(own) = all.iter().find(|own| own.resource == request.resource) else { continue };
                    let once = if mode == Mode::Write { (1, 0) } else { (0, 1) };
                    // The bound of `task_fair` counts readers before as many writers as all requests wait for.
                    let issued = if self.ruling == Protocol::TaskFair { u64::from(request.count) } else { 1 };
                    let preceding = count(&its.writers(own.resource, issued)?);
                    let wait = sum(&its.shared(own.resource, once, preceding)?)?;
                    let length = own.length.as_ns().checked_add(wait)?;
                    if length == total {
                        return Some(vec![(1, BlockingSection { task: other, resource: own.resource, length })]);
                    }
                }
            }
        }
        None
    }

    /// Returns the other homes at which the task has requests, with the number of its requests there.
    fn homes(&self) -> impl Iterator<Item = (CpuId, u64)> + use<'_> {
        self.cpus().filter_map(|home| {
            let there = self.ruled(self.task).filter(|(_, request)| self.system.home(request.resource) == home);
            let asked: u64 = there.map(|(_, request)| u64::from(request.count)).sum();
            (asked > 0).then_some((home, asked))
        })
    }

    fn at(&self, home: CpuId, task: TaskId) -> impl Iterator<Item = (TaskId, &'a Request)> + use<'a, '_> {
        self.ruled(task).filter(move |(_, request)| self.system.home(request.resource) == home)
    }

    /// Returns all sections of tasks at least as urgent, and for each request one section of the others.
    fn by_priority_at_homes(&self) -> Option<Sections> {
        let mut sections = Sections::new();
        for (home, asked) in self.homes() {
            let is_urgent = |&(task, _): &(TaskId, &Request)| self.system.task(task).priority >= self.priority;
            let all = self.others().flat_map(|other| self.at(home, other));
            let (urgent, mut lesser): (Vec<_>, Vec<_>) = all.partition(is_urgent);
            lesser.retain(|(_, request)| self.system.highest_user(request.resource) >= self.priority);
            sections.extend(self.longest(urgent, ALL, ALL)?);
            sections.extend(self.longest(lesser, ALL, asked)?);
        }
        Some(sections)
    }

    /// Returns, for each request, one section of each other task.
    fn by_arrival_at_homes(&self) -> Option<Sections> {
        let mut sections = Sections::new();
        for (home, asked) in self.homes() {
            for other in self.others() {
                sections.extend(self.longest(self.at(home, other).collect(), ALL, asked)?);
            }
        }
        Some(sections)
    }

    fn at_home_here(&self) -> Option<Sections> {
        self.longest(self.others().flat_map(|other| self.at(self.cpu, other)).collect(), ALL, ALL)
    }

    /// Returns for a processor, under FMLP+, how many of its requests can precede those of the task directly, and how
    /// many requests of the task are for resources used there.
    fn direct(&self, cpu: CpuId) -> Option<(u64, u64)> {
        let (mut direct, mut shared) = (0_u64, 0_u64);
        for (_, own) in self.ruled(self.task) {
            let users = self.on(cpu, own.resource);
            shared += if users.is_empty() { 0 } else { u64::from(own.count) };
            for (user, request) in users {
                let there = self.jobs(user)?.checked_mul(u64::from(request.count))?;
                direct += there.min(u64::from(own.count));
            }
        }
        Some((direct, shared))
    }

    fn of_other_cpus(&self) -> Option<Sections> {
        let mut sections = Sections::new();
        for cpu in self.cpus() {
            let (direct, shared) = self.direct(cpu)?;
            for other in self.others().filter(|&other| self.system.task(other).cpu == cpu) {
                sections.extend(self.longest(self.ruled(other).collect(), ALL, direct.min(shared))?);
            }
        }
        Some(sections)
    }

    /// Returns the other tasks of the processor that are no more urgent.
    fn beside(&self) -> impl Iterator<Item = TaskId> + use<'_> {
        let task = |id| self.system.task(id);
        self.others().filter(move |&other| task(other).cpu == self.cpu && task(other).priority <= self.priority)
    }

    fn boosted(&self) -> Option<Sections> {
        let mut direct = self.direct(self.cpu)?.0;
        for cpu in self.cpus() {
            direct += self.direct(cpu)?.0;
        }
        let mut sections = Sections::new();
        for other in self.beside() {
            sections.extend(self.longest(self.ruled(other).collect(), ALL, 1 + direct.min(self.asked()))?);
        }
        Some(sections)
    }

    fn longest_of_each(
        &self,
        tasks: impl Iterator<Item = TaskId>,
        count: u64,
        delays: impl Fn(&Request) -> bool,
    ) -> Option<Sections> {
        let longest = |other: TaskId| {
            let requests = self.ruled(other).filter(|(_, request)| delays(request));
            let (task, request) = requests.max_by_key(|(_, request)| request.length)?;
            Some((count, BlockingSection { task, resource: request.resource, length: request.length.as_ns() }))
        };
        Some(tasks.filter_map(longest).collect())
    }

    /// Returns one request of a task that is no more urgent and takes `total` including its wait; under `msrp` this may
    /// be a section at a ceiling.
    fn request_with_its_wait(&self, total: u64) -> Option<Sections> {
        let longest = |cpu, resource| self.on(cpu, resource).iter().map(|(_, other)| other.length.as_ns()).max();
        let mut spans = self.beside().flat_map(|other| {
            self.system.requests(other).iter().filter_map(move |request| {
                let own = self.tables.protocol(request.resource) == self.ruling;
                let elsewhere = |cpu| longest(cpu, request.resource).unwrap_or(0);
                let wait: u64 = if own { self.cpus().map(elsewhere).sum() } else { 0 };
                let length = request.length.as_ns().checked_add(wait)?;
                Some((1, BlockingSection { task: other, resource: request.resource, length }))
            })
        });
        Some(vec![spans.find(|(_, span)| span.length == total)?])
    }
}

fn summing_to(total: u64, sections: Sections) -> Option<Sections> {
    (sum(&sections) == Some(total)).then_some(sections)
}

fn sum(sections: &Sections) -> Option<u64> {
    let add =
        |sum: u64, (count, section): &(u64, BlockingSection)| sum.checked_add(section.length.checked_mul(*count)?);
    sections.iter().try_fold(0, add)
}

fn count(sections: &Sections) -> u64 {
    sections.iter().fold(0, |sum, (count, _)| sum.saturating_add(*count))
}

/// Returns the `all` longest of the sections.
fn first(mut sections: Sections, all: u64) -> Sections {
    sections.sort_by_key(|(_, section)| Reverse(section.length));
    let mut left = all;
    for (count, _) in &mut sections {
        *count = left.min(*count);
        left -= *count;
    }
    sections.retain(|(count, _)| *count > 0);
    sections
}
