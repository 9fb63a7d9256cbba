//! Local and boosted blocking of all tasks of a system at once, and of forms that differ in one task.
//!
//! Sections of less urgent tasks of the same processor block a task (`blocking/icpp.rs`, `pip.rs`, `mpcp/system.rs`).
//! One pass over each processor, from the least urgent task on, therefore suffices: the sections seen so far block the
//! next task.

use super::shape::Shape;
use crate::rows::tables::Tables;
use crate::system::response::occasions;
use lockwright_model::{Priority, Protocol, ResourceId, System};

/// The longest section of several tasks, its task, and the longest section of any other task.
#[derive(Clone, Copy, Default)]
struct Longest {
    length: u64,
    place: usize,
    second: u64,
}

impl Longest {
    /// Adds a section of a task without a section here.
    fn add(&mut self, length: u64, place: usize) {
        if length > self.length {
            *self = Self { length, place, second: self.length };
        } else {
            self.second = self.second.max(length);
        }
    }

    /// Returns the longest section of a task other than that at `place`.
    fn beside(self, place: usize) -> u64 {
        if place == self.place { self.second } else { self.length }
    }
}

/// The blocking of one task.
#[derive(Clone, Copy, Default)]
struct Local {
    /// The sections under `icpp`.
    ceilings: Longest,
    /// The sum of the longest sections of each task, and on each resource, under `pip` or `none`.
    by_task: u128,
    by_resource: u128,
    /// The sum of the longest sections of each task under `mpcp`.
    boosted: u128,
    /// How often these sections can block a job.
    occasions: u64,
}

impl Local {
    /// Returns B, or `None` if it does not fit. `is_flat` tells whether no sections are nested, so that one section of
    /// each resource is a bound as well.
    fn blocking(&self, is_flat: bool) -> Option<u64> {
        let inherited = if is_flat { self.by_task.min(self.by_resource) } else { self.by_task };
        let whole = u128::from(self.ceilings.length).checked_add(inherited)?.checked_add(self.boosted)?;
        u64::try_from(whole.checked_mul(u128::from(self.occasions))?).ok()
    }
}

/// The blocking of all tasks. By place, except for `suffixes`.
pub(super) struct Locals {
    locals: Vec<Local>,
    /// Whether no sections under `pip` or `none` are nested on the processor.
    flat: Vec<bool>,
    /// By resource under `pip` or `none`, on its only processor: the longest sections from the place of each user on,
    /// the last user first.
    suffixes: Vec<Vec<(usize, Longest)>>,
}

/// Returns whether holders under the protocol inherit priorities.
fn inherits(protocol: Protocol) -> bool {
    matches!(protocol, Protocol::Pip | Protocol::None)
}

/// Returns the longest section of the task that can pass on this priority by inheritance.
fn inherited(tables: &Tables<'_>, system: &System, shape: &Shape<'_>, place: usize, priority: Priority) -> u64 {
    let requests = system.requests(shape.id(place)).iter();
    let passing = requests
        .filter(|r| inherits(tables.protocol(r.resource)) && tables.ceilings.get(r.resource) >= priority)
        .map(|request| request.length.as_ns());
    passing.max().unwrap_or(0)
}

/// Returns the longest section of the task under `mpcp`.
fn boosted(tables: &Tables<'_>, system: &System, shape: &Shape<'_>, place: usize) -> u64 {
    let requests = system.requests(shape.id(place)).iter();
    let mpcp = requests.filter(|request| tables.protocol(request.resource) == Protocol::Mpcp);
    mpcp.map(|request| request.length.as_ns()).max().unwrap_or(0)
}

impl Locals {
    /// Computes the blocking of a form of the system of the tables.
    pub(super) fn new(shape: &Shape<'_>, tables: &Tables<'_>, system: &System) -> Self {
        let (count, resources) = (system.tasks().len(), system.resources().len());
        let mut all = Self {
            locals: vec![Local::default(); count],
            flat: vec![true; count],
            suffixes: vec![Vec::new(); resources],
        };
        let (mut first, mut longest) = (0, vec![Longest::default(); resources]);
        for tasks in &tables.cpus {
            all.go_over(shape, tables, system, (first, first + tasks.len()), &mut longest);
            first += tasks.len();
        }
        all
    }

    /// Computes the blocking on one processor, whose tasks are at these places.
    fn go_over(
        &mut self,
        shape: &Shape<'_>,
        tables: &Tables<'_>,
        system: &System,
        (first, end): (usize, usize),
        longest: &mut [Longest],
    ) {
        let requests = |place: usize| system.requests(shape.id(place)).iter();
        let mut used: Vec<ResourceId> = (first..end).flat_map(requests).map(|request| request.resource).collect();
        used.sort_unstable();
        used.dedup();
        used.iter().for_each(|resource| longest[resource.index()] = Longest::default());
        let ceiling = |resource: ResourceId| tables.lock_ceilings[resource.index()];
        let under_ceilings: Vec<ResourceId> =
            used.iter().copied().filter(|&resource| ceiling(resource).is_some()).collect();
        used.retain(|&resource| inherits(tables.protocol(resource)));
        used.sort_by_key(|&resource| tables.ceilings.get(resource));
        let is_nested = |place: usize| {
            let sections = system.sections(shape.id(place)).iter();
            sections.clone().any(|section| section.parent.is_some() && inherits(tables.protocol(section.resource)))
        };
        let is_flat = !(first..end).any(is_nested);
        self.flat[first..end].fill(is_flat);
        // Resources that cannot pass on such a priority are at the end, the lowest ceiling first.
        let (mut passing, mut contributed) = (&used[..], vec![0; end - first]);
        let mut so_far = Local::default();
        let mut place = end;
        while place > first {
            // Tasks of equal priority do not block each other.
            let equals = shape.urgent(place - 1).1;
            let priority = system.task(shape.id(place - 1)).priority;
            while let Some((&resource, rest)) = passing.split_first()
                && tables.ceilings.get(resource) < priority
            {
                passing = rest;
                so_far.by_resource -= u128::from(longest[resource.index()].length);
                for &(user, _) in &self.suffixes[resource.index()] {
                    let left = inherited(tables, system, shape, user, priority);
                    so_far.by_task -= u128::from(contributed[user - first] - left);
                    contributed[user - first] = left;
                }
            }
            so_far.ceilings = Longest::default();
            let rising = || {
                let above = under_ceilings.iter().filter(|&&resource| ceiling(resource) >= Some(priority));
                above.map(|resource| longest[resource.index()])
            };
            if let Some(most) = rising().max_by_key(|longest| longest.length) {
                let second = rising().map(|longest| longest.beside(most.place)).max().unwrap_or(0);
                so_far.ceilings = Longest { second, ..most };
            }
            while place > first && system.task(shape.id(place - 1)).priority == priority {
                place -= 1;
                self.locals[place] = Local { occasions: occasions(tables, shape.id(place)), ..so_far };
            }
            for user in (place..equals).rev() {
                for request in requests(user) {
                    let all = &mut longest[request.resource.index()];
                    let before = all.length;
                    all.add(request.length.as_ns(), user);
                    if inherits(tables.protocol(request.resource)) {
                        self.suffixes[request.resource.index()].push((user, *all));
                        if tables.ceilings.get(request.resource) >= priority {
                            so_far.by_resource += u128::from(all.length - before);
                        }
                    }
                }
                contributed[user - first] = inherited(tables, system, shape, user, priority);
                so_far.by_task += u128::from(contributed[user - first]);
                so_far.boosted += u128::from(boosted(tables, system, shape, user));
            }
        }
    }

    /// Returns B of each task, or `None` if one does not fit.
    pub(super) fn blocking(&self) -> Option<Vec<u64>> {
        self.locals.iter().zip(&self.flat).map(|(local, &is_flat)| local.blocking(is_flat)).collect()
    }

    /// Returns B of the task at `above` in a system that differs from the one of `self` in the less urgent task at
    /// `place` alone.
    pub(super) fn beside(
        &self,
        shape: &Shape<'_>,
        tables: &Tables<'_>,
        system: &System,
        place: usize,
        above: usize,
    ) -> Option<u64> {
        let (before, priority) = (tables.system, tables.system.task(shape.id(above)).priority);
        let mut local = self.locals[above];
        let changed = |sum: u128, of: &dyn Fn(&System) -> u64| {
            sum.checked_sub(u128::from(of(before)))?.checked_add(u128::from(of(system)))
        };
        local.ceilings.length = local.ceilings.beside(place);
        local.by_task = changed(local.by_task, &|system| inherited(tables, system, shape, place, priority))?;
        local.boosted = changed(local.boosted, &|system| boosted(tables, system, shape, place))?;
        for request in system.requests(shape.id(place)) {
            let (resource, length) = (request.resource, request.length.as_ns());
            if tables.lock_ceilings[resource.index()] >= Some(priority) {
                local.ceilings.length = local.ceilings.length.max(length);
            }
            if inherits(tables.protocol(resource)) && tables.ceilings.get(resource) >= priority {
                let suffixes = &self.suffixes[resource.index()];
                let behind = suffixes.partition_point(|&(user, _)| user >= shape.urgent(above).1);
                let (_, longest) = suffixes[..behind].last()?;
                let rest = local.by_resource.checked_sub(u128::from(longest.length))?;
                local.by_resource = rest.checked_add(u128::from(longest.beside(place).max(length)))?;
            }
        }
        local.blocking(self.flat[above])
    }
}
