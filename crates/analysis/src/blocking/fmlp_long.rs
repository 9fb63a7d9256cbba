//! `fmlp_long`: one section of each other user, and everything that can delay these users on their processors.
//!
//! While i waits for q, the owner of q is at least as urgent as i, because it inherits. On the owner's processor, only
//! tasks at least as urgent as i therefore execute in its stead: by their own priority, or in a section with such a
//! ceiling.
//! ```text
//!   W(i,q) = sum over other users k of L(k,q)
//!          + sum over processors of those users of (
//!                sum over h there at least as urgent as i of ceil((W + R_h) / T_h) C_h
//!              + sum over l there less urgent, r with ceiling(r) >= i, of ceil((W + R_l) / T_l) N(l,r) L(l,r) )
//!   S = sum of N(i,q) W(i,q)
//!   B = (1 + sum of N(i,q)) * sum over l less urgent on i's processor of max { L(l,r) : ceiling(r) >= i }
//! ```
//! A less urgent task delays i with the one section that it had requested before i arrived or resumed. The bound is our
//! own; the bounds of FMLP+ do not hold here.
//!
//! The work on one processor within W has steps: it stays the same until W and the response times there have grown
//! enough for one more job. It is kept for each wait, with the level at which its next step may come. A system that
//! differs from another in a few tasks, or by little, needs few works anew.

use super::delay::{Charge, Delay, DelayBounds};
use crate::rows::divisor::Divisor;
use crate::rows::fixed_point::Budget;
use crate::rows::simd::{Masks, SHORT_MAX, halves, mask_below, short_steps, whole_blocks};
use crate::rows::tables::Tables;
use crate::{Failure, Sharing};
use fearless_simd::{Level, dispatch};
use lockwright_model::{Priority, Protocol, System, TaskId};
use std::cmp::Reverse;
use std::mem::take;
use std::ops::Range;

/// The bounds of a system as a function of response times. Tasks are given by index.
///
/// Each task has a place: tasks are ordered by processor, and the most urgent comes first. Sections are ordered by
/// processor as well, and those that can rise to the highest priority come first.
pub(crate) struct FmlpLong {
    tasks: Vec<Task>,
    cpus: Vec<Cpu>,
    /// By place: the task, its period, and the halves of its inverse.
    order: Vec<usize>,
    periods: Vec<u64>,
    halves: Vec<[u32; 2]>,
    /// By order of sections: the place of the task, its period, and the halves of its inverse.
    rising: Vec<u64>,
    rising_periods: Vec<u64>,
    rising_halves: Vec<[u32; 2]>,
    /// Whether all periods are short.
    is_short: bool,
    masks: Masks,
    level: Level,
    /// By task.
    sections: Vec<Section>,
    waits: Vec<Wait>,
    /// By wait.
    shares: Vec<Share>,
    /// By section: the length of the longest.
    longest: Vec<u64>,
    /// By task: the sum of the longest sections of less urgent tasks of its processor.
    local: Vec<u128>,
    /// By resource: the sum of the longest sections of all users.
    users: Vec<u128>,
    known: Known,
    /// By task: whether its local delay may have changed with the last execution times.
    stale: Vec<bool>,
    budget: Budget,
}

/// The most that rises add up to. A window is shorter than a period, so both together fit.
const RISES_MAX: u64 = u64::MAX / 2;

/// The values that waits depend on, and what was found for them.
#[derive(Clone)]
pub(crate) struct Known {
    /// By place: the execution time and the response time.
    costs: Vec<u64>,
    responses: Vec<u64>,
    /// By order of sections: the sum of the lengths in one job, and the response time of the task.
    lengths: Vec<u64>,
    late: Vec<u64>,
    /// Whether all of these are short, and the execution times and lengths not above the periods.
    is_short: bool,
    /// By wait: W for the last values, or 0. W is not above that for greater values.
    windows: Vec<u64>,
    /// By share: the work of the urgent tasks, and that of the rising sections.
    works: Vec<[Work; 2]>,
    /// By place: at least the time by which a response time of this or a more urgent task of the processor has grown.
    rises: Vec<u64>,
    /// By order of sections: the same of this or a section before it on the processor.
    rising_rises: Vec<u64>,
}

/// Some work within W, as long as W and the time by which response times have grown are below `until` together. They
/// must not fall.
#[derive(Clone, Copy, Default)]
struct Work {
    work: u64,
    until: u64,
}

struct Task {
    priority: Priority,
    period: Divisor,
    cpu: u16,
    place: usize,
    sections: Range<usize>,
    waits: Range<usize>,
    /// The number of its requests.
    requests: u64,
}

struct Cpu {
    /// The places of its tasks.
    places: Range<usize>,
    /// Its part of the order of sections.
    rising: Range<usize>,
}

/// The sections of a task on one resource.
struct Section {
    resource: usize,
    /// Its place in the order of sections.
    slot: usize,
    /// The priority to which they can rise.
    top: Priority,
    /// Whether they rise by inheritance.
    inherits: bool,
}

/// The requests of a task for one resource.
struct Wait {
    section: usize,
    count: u64,
    shares: Range<usize>,
}

/// The work on the processor of another user.
struct Share {
    cpu: u16,
    /// The number of its tasks that are at least as urgent as the waiting one.
    urgent: usize,
    /// The number of its sections that can rise to that priority.
    rising: usize,
    /// The number of those tasks, and of those sections that are of other tasks: the terms of a sum.
    terms: usize,
}

/// Returns the sections of all tasks, and of each task, those among them.
fn sections(tables: &Tables<'_>) -> (Vec<Section>, Vec<Range<usize>>) {
    let system = tables.system;
    let (mut all, mut ranges) = (Vec::new(), Vec::new());
    for id in system.task_ids() {
        let first = all.len();
        all.extend(system.requests(id).iter().map(|request| {
            let resource = request.resource.index();
            let inherits = tables.protocol(request.resource) == Protocol::FmlpLong;
            let top = match inherits {
                true => system.highest_user(request.resource),
                false => system.ceiling(request.resource),
            };
            Section { resource, slot: 0, top, inherits }
        }));
        ranges.push(first..all.len());
    }
    (all, ranges)
}

impl FmlpLong {
    /// Creates the bounds for a system.
    pub(crate) fn new(tables: &Tables<'_>, sharing: &Sharing) -> Result<Self, Failure> {
        let system = tables.system;
        let (mut sections, ranges) = sections(tables);
        let order: Vec<usize> = tables.cpus.iter().flatten().map(|id| id.index()).collect();
        // The sections in their order, with the places of their tasks.
        let mut rising: Vec<(usize, usize)> = Vec::with_capacity(sections.len());
        let mut cpus: Vec<Cpu> = Vec::with_capacity(tables.cpus.len());
        for ids in &tables.cpus {
            let (first, begin) = (cpus.last().map_or(0, |cpu| cpu.places.end), rising.len());
            let of = |(place, id): (usize, &TaskId)| ranges[id.index()].clone().map(move |section| (section, place));
            rising.extend(ids.iter().enumerate().flat_map(|(at, id)| of((first + at, id))));
            rising[begin..].sort_by_key(|&(section, _)| Reverse(sections[section].top));
            cpus.push(Cpu { places: first..first + ids.len(), rising: begin..rising.len() });
        }
        for (slot, &(section, _)) in rising.iter().enumerate() {
            sections[section].slot = slot;
        }
        let (mut tasks, mut waits, mut shares) = (Vec::new(), Vec::new(), Vec::new());
        for (id, own) in system.task_ids().zip(&sharing.tasks) {
            let (priority, first) = (system.task(id).priority, waits.len());
            for section in ranges[id.index()].clone().filter(|&section| sections[section].inherits) {
                let request = &system.requests(id)[section - ranges[id.index()].start];
                let others = system.users(request.resource).iter().filter(|&&user| user != id);
                let mut places: Vec<u16> = others.map(|user| sharing.tasks[user.index()].cluster).collect();
                places.sort_unstable();
                places.dedup();
                let begin = shares.len();
                shares.extend(places.into_iter().map(|cpu| {
                    let on_cpu = &cpus[usize::from(cpu)];
                    let is_urgent = |&task: &usize| system.task(TaskId::new(task)).priority >= priority;
                    let rises = |&(section, _): &(usize, usize)| sections[section].top >= priority;
                    let urgent = order[on_cpu.places.clone()].partition_point(is_urgent);
                    let can_rise = &rising[on_cpu.rising.clone()];
                    let can_rise = &can_rise[..can_rise.partition_point(rises)];
                    let is_lesser = |&&(_, place): &&(usize, usize)| place >= on_cpu.places.start + urgent;
                    let terms = urgent + can_rise.iter().filter(is_lesser).count();
                    Share { cpu, urgent, rising: can_rise.len(), terms }
                }));
                waits.push(Wait { section, count: u64::from(request.count), shares: begin..shares.len() });
            }
            tasks.push(Task {
                priority,
                period: Divisor::new(own.period).ok_or(Failure::Overflow)?,
                cpu: own.cluster,
                place: 0,
                sections: ranges[id.index()].clone(),
                waits: first..waits.len(),
                requests: waits[first..].iter().map(|wait| wait.count).sum(),
            });
        }
        for (place, &task) in order.iter().enumerate() {
            tasks[task].place = place;
        }
        let is_short = tasks.iter().all(|task| (2..SHORT_MAX).contains(&task.period.get()));
        let halves: Vec<[u32; 2]> = order.iter().map(|&task| halves(tasks[task].period)).collect();
        let rising_halves = rising.iter().map(|&(_, place)| halves[place]).collect();
        let known = Known {
            costs: vec![0; tasks.len()],
            responses: vec![0; tasks.len()],
            lengths: vec![0; sections.len()],
            late: vec![0; sections.len()],
            is_short: false,
            windows: vec![0; waits.len()],
            works: vec![[Work::default(); 2]; shares.len()],
            rises: vec![0; tasks.len()],
            rising_rises: vec![0; sections.len()],
        };
        let periods: Vec<u64> = order.iter().map(|&task| tasks[task].period.get()).collect();
        let rising_periods = rising.iter().map(|&(_, place)| periods[place]).collect();
        let (longest, local) = (vec![0; sections.len()], vec![0; tasks.len()]);
        let users = vec![0; system.resources().len()];
        let budget = Budget::new();
        let rising = rising.into_iter().map(|(_, place)| place as u64).collect();
        let most = |cpu: &Cpu| cpu.places.len().max(cpu.rising.len());
        let masks = Masks::new(cpus.iter().map(most).max().unwrap_or(0));
        let level = Level::new();
        let mut bounds = Self {
            tasks,
            cpus,
            order,
            periods,
            halves,
            rising,
            rising_periods,
            rising_halves,
            is_short,
            masks,
            level,
            sections,
            waits,
            shares,
            longest,
            local,
            users,
            known,
            stale: Vec::new(),
            budget,
        };
        bounds.set_tasks(tables.system, &system.task_ids().collect::<Vec<_>>());
        Ok(bounds)
    }

    /// Takes over the execution times of these tasks from a system that differs from the former one in these alone.
    pub(crate) fn set_tasks(&mut self, system: &System, tasks: &[TaskId]) {
        self.forget();
        self.budget = Budget::new();
        self.stale.clear();
        self.stale.resize(self.tasks.len(), false);
        for &id in tasks {
            let task = id.index();
            self.known.costs[self.tasks[task].place] = system.task(id).wcet.as_ns();
            let sections = self.tasks[task].sections.clone();
            let before = self.longest[sections.clone()].to_vec();
            for (section, request) in sections.clone().zip(system.requests(id)) {
                let (length, count) = (request.length.as_ns(), u64::from(request.count));
                // A saturated sum of a job fits into no window.
                self.known.lengths[self.sections[section].slot] = length.saturating_mul(count);
                let of_users = &mut self.users[self.sections[section].resource];
                *of_users = *of_users - u128::from(self.longest[section]) + u128::from(length);
                self.longest[section] = length;
            }
            // It can delay the more urgent tasks of its processor by another length.
            let Self { tasks, cpus, order, sections: all, longest, local, stale, .. } = self;
            let Task { priority, cpu, place, .. } = tasks[task];
            let above = &order[cpus[usize::from(cpu)].places.start..place];
            for &above in above.iter().take_while(|&&above| tasks[above].priority > priority) {
                let delaying = |lengths: &[u64]| {
                    let its = all[sections.clone()].iter().zip(lengths);
                    let its = its.filter(|(section, _)| section.inherits && section.top >= tasks[above].priority);
                    u128::from(its.map(|(_, &length)| length).max().unwrap_or(0))
                };
                stale[above] = true;
                local[above] = local[above] - delaying(&before) + delaying(&longest[sections.clone()]);
            }
        }
        self.look();
    }

    /// Determines whether work may be computed as that of short times.
    fn look(&mut self) {
        let Self { periods, rising_periods, is_short, known, .. } = self;
        let are_within =
            |times: &[u64], periods: &[u64]| times.iter().zip(periods).all(|(time, period)| time <= period);
        known.is_short = *is_short
            && known.responses.iter().all(|&response| response < SHORT_MAX)
            && are_within(&known.costs, periods)
            && are_within(&known.lengths, rising_periods);
    }

    /// Returns what is known of these values.
    pub(crate) fn known(&self) -> &Known {
        &self.known
    }

    /// Continues from what was known of a system that differs in execution times alone, and of the response times that
    /// it had. Does nothing if an execution time was longer then.
    pub(crate) fn recall(&mut self, known: &Known) {
        let is_below = |then: &[u64], now: &[u64]| then.iter().zip(now).all(|(then, now)| then <= now);
        if !is_below(&known.costs, &self.known.costs) || !is_below(&known.lengths, &self.known.lengths) {
            return;
        }
        let (costs, lengths) = (take(&mut self.known.costs), take(&mut self.known.lengths));
        self.known.clone_from(known);
        // By processor: the first place, and the first section, that differ.
        let first = |range: &Range<usize>, then: &[u64], now: &[u64]| {
            range.clone().find(|&at| then[at] != now[at]).unwrap_or(usize::MAX)
        };
        let of_cpu =
            |cpu: &Cpu| [first(&cpu.places, &known.costs, &costs), first(&cpu.rising, &known.lengths, &lengths)];
        let firsts: Vec<[usize; 2]> = self.cpus.iter().map(of_cpu).collect();
        for (share, works) in self.shares.iter().zip(&mut self.known.works) {
            let (Cpu { places, rising }, [place, slot]) =
                (&self.cpus[usize::from(share.cpu)], firsts[usize::from(share.cpu)]);
            if place < places.start + share.urgent {
                works[0].until = 0;
            }
            if slot < rising.start + share.rising {
                works[1].until = 0;
            }
        }
        (self.known.costs, self.known.lengths) = (costs, lengths);
        self.look();
    }

    /// Lets the search for each wait begin anew. No level is kept, so rises count from 0 again.
    fn forget(&mut self) {
        self.known.windows.fill(0);
        self.known.works.fill([Work::default(); 2]);
        self.known.rises.fill(0);
        self.known.rising_rises.fill(0);
    }

    fn delay(&mut self, index: usize) -> Result<Delay, Failure> {
        let local = self.local[index].checked_mul(u128::from(1 + self.tasks[index].requests));
        let local = local.and_then(|local| u64::try_from(local).ok()).ok_or(Failure::Overflow)?;
        let remote = self.tasks[index].waits.clone().try_fold(0_u64, |sum, wait| {
            let window = self.wait(index, wait)?;
            sum.checked_add(window.checked_mul(self.waits[wait].count)?)
        });
        Ok(Delay { remote, local, ..Delay::default() })
    }

    /// Returns W of one request of a task.
    fn wait(&mut self, index: usize, wait: usize) -> Option<u64> {
        let (task, Wait { section, shares: its, .. }) = (&self.tasks[index], &self.waits[wait]);
        let others = self.users[self.sections[*section].resource] - u128::from(self.longest[*section]);
        let others = u64::try_from(others).ok()?;
        if others == 0 {
            return Some(0);
        }
        let (period, own, its) = (task.period.get(), task.place, its.clone());
        let limit = period - self.known.costs[own].min(period);
        let terms: usize = self.shares[its.clone()].iter().map(|share| share.terms).sum();
        let mut works = take(&mut self.known.works);
        let found = self.budget.least(others.max(self.known.windows[wait]), limit, 1 + terms as u64, |window| {
            its.clone().try_fold(others, |sum, share| {
                let works = &mut works[share];
                let share = &self.shares[share];
                let [urgent, rising] = self.levels(share, window)?;
                if urgent.is_some_and(|level| level >= works[0].until) {
                    works[0] = self.urgent_work(share, own, window)?.kept_from(urgent);
                }
                if rising.is_some_and(|level| level >= works[1].until) {
                    works[1] = self.rising_work(share, window)?.kept_from(rising);
                }
                sum.checked_add(works[0].work)?.checked_add(works[1].work)
            })
        });
        if found.is_err() {
            // Its works may be those of a longer window than the next.
            works[its].fill([Work::default(); 2]);
        }
        self.known.works = works;
        let window = found.ok()?;
        self.known.windows[wait] = window;
        Some(window)
    }

    /// Returns the levels of the two works of a share within a window, or `None` where there is no work.
    fn levels(&self, share: &Share, window: u64) -> Option<[Option<u64>; 2]> {
        let Cpu { places, rising } = &self.cpus[usize::from(share.cpu)];
        let level = |rises: &[u64], first: usize, count: usize| match count {
            0 => Some(None),
            _ => window.checked_add(rises[first + count - 1]).map(Some),
        };
        let Known { rises, rising_rises, .. } = &self.known;
        Some([level(rises, places.start, share.urgent)?, level(rising_rises, rising.start, share.rising)?])
    }

    /// Returns the work of the tasks of a share in a window, except for the task at the place `own`, and by how much
    /// the window may grow with the same work.
    fn urgent_work(&self, share: &Share, own: usize, window: u64) -> Option<Steps> {
        let (first, known) = (self.cpus[usize::from(share.cpu)].places.start, &self.known);
        let places = first..first + share.urgent;
        if known.is_short && window < SHORT_MAX {
            let itself = match places.contains(&own) {
                true => self.jobs(own, window, known.responses[own])? * known.costs[own],
                false => 0,
            };
            let blocks = first..whole_blocks(first, share.urgent, self.order.len());
            let (late, costs) = (&known.responses[blocks.clone()], &known.costs[blocks.clone()]);
            let rows = (&self.periods[blocks.clone()], &self.halves[blocks]);
            let others = self.masks.after(share.urgent);
            let (work, slack) =
                dispatch!(self.level, _ => short_steps(window, others.iter().copied(), late, rows, costs));
            return Some(Steps { work: work - itself, slack });
        }
        let terms = places.filter(|&place| place != own);
        self.steps(window, terms.map(|place| (place, known.responses[place], known.costs[place])))
    }

    /// Like [`urgent_work`](Self::urgent_work), of the sections of a share whose tasks are less urgent.
    fn rising_work(&self, share: &Share, window: u64) -> Option<Steps> {
        let (cpu, known) = (&self.cpus[usize::from(share.cpu)], &self.known);
        let (first, count) = (cpu.rising.start, share.rising);
        // The execution of tasks at least as urgent contains their sections.
        let end = (cpu.places.start + share.urgent) as u64;
        if known.is_short && window < SHORT_MAX {
            let blocks = first..whole_blocks(first, count, self.rising.len());
            let (late, lengths) = (&known.late[blocks.clone()], &known.lengths[blocks.clone()]);
            let rows = (&self.rising_periods[blocks.clone()], &self.rising_halves[blocks.clone()]);
            let (places, others) = (&self.rising[blocks], self.masks.after(count));
            let (work, slack) = dispatch!(self.level, _ => {
                let others = places.iter().zip(others).map(|(&place, other)| other | mask_below(place, end));
                short_steps(window, others, late, rows, lengths)
            });
            return Some(Steps { work, slack });
        }
        let slots = (first..first + count).filter(|&slot| self.rising[slot] >= end);
        self.steps(window, slots.map(|slot| (self.rising[slot] as usize, known.late[slot], known.lengths[slot])))
    }

    fn jobs(&self, place: usize, window: u64, late: u64) -> Option<u64> {
        Some(self.tasks[self.order[place]].period.ceil(window.checked_add(late)?))
    }

    /// Returns the work of these jobs in a window, given by place, response time and length.
    fn steps(&self, window: u64, terms: impl Iterator<Item = (usize, u64, u64)>) -> Option<Steps> {
        let mut steps = Steps { work: 0, slack: u64::MAX };
        for (place, late, length) in terms {
            let jobs = self.jobs(place, window, late)?;
            steps.work = steps.work.checked_add(jobs.checked_mul(length)?)?;
            // Where the end of the last period does not fit, no window reaches it.
            let end = jobs.saturating_mul(self.periods[place]);
            steps.slack = steps.slack.min(end - (window + late));
        }
        Some(steps)
    }
}

/// Some work in a window, and by how much the window may grow, or the response times of its tasks, with the same work.
struct Steps {
    work: u64,
    slack: u64,
}

impl Steps {
    /// Returns the work with the level at which it may no longer be the same, if it was computed at `level`.
    fn kept_from(self, level: Option<u64>) -> Work {
        let until = level.unwrap_or(0).saturating_add(self.slack).saturating_add(1);
        Work { work: self.work, until }
    }
}

impl DelayBounds for FmlpLong {
    fn set_responses(&mut self, responses: &[u64]) -> Result<(), Failure> {
        let Self { order, cpus, rising, known, .. } = self;
        let (mut falls, mut most) = (false, 0);
        for Cpu { places, rising: slots } in cpus {
            let mut rise = 0;
            for place in places.clone() {
                let (now, before) = (responses[order[place]], known.responses[place]);
                falls |= now < before;
                rise = rise.max(now.saturating_sub(before));
                known.responses[place] = now;
                known.rises[place] = known.rises[place].saturating_add(rise);
                most = most.max(known.rises[place]);
            }
            if rise == 0 && !falls {
                continue;
            }
            rise = 0;
            for slot in slots.clone() {
                let (now, before) = (known.responses[rising[slot] as usize], known.late[slot]);
                rise = rise.max(now.saturating_sub(before));
                known.late[slot] = now;
                known.rising_rises[slot] = known.rising_rises[slot].saturating_add(rise);
                most = most.max(known.rising_rises[slot]);
            }
        }
        self.look();
        if falls || most > RISES_MAX {
            self.forget();
        }
        Ok(())
    }

    fn delays(&mut self, delays: &mut [Delay]) -> Result<(), Failure> {
        for (index, delay) in delays.iter_mut().enumerate() {
            *delay = self.delay(index)?;
        }
        Ok(())
    }

    fn delays_in(&mut self, cluster: u16, delays: &mut [Delay]) -> Result<(), Failure> {
        for place in self.cpus[usize::from(cluster)].places.clone() {
            let index = self.order[place];
            delays[index] = self.delay(index)?;
        }
        Ok(())
    }

    fn mark_changed(&self, _: &[u64], marked: &mut [bool]) {
        let Known { windows, works, .. } = &self.known;
        let is_kept = |wait: usize| {
            self.waits[wait].shares.clone().all(|share| {
                let levels = self.levels(&self.shares[share], windows[wait]);
                levels.is_some_and(|levels| {
                    levels.iter().zip(&works[share]).all(|(level, work)| level.is_none_or(|level| level < work.until))
                })
            })
        };
        for ((marked, &stale), task) in marked.iter_mut().zip(&self.stale).zip(&self.tasks) {
            *marked |= stale || !task.waits.clone().all(is_kept);
        }
    }

    fn delays_again(&mut self, marked: &mut [bool], delays: &mut [Delay]) -> Result<(), Failure> {
        for (index, delay) in delays.iter_mut().enumerate().filter(|&(index, _)| marked[index]) {
            *delay = self.delay(index)?;
        }
        Ok(())
    }

    fn charge(&self, delay: &Delay) -> Option<Charge> {
        Charge::of_suspensions(delay)
    }
}

#[cfg(test)]
pub(super) mod tests;
