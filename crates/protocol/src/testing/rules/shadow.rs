//! The rules of each protocol, from scratch: the required result of an event, and the properties that must hold after
//! it.

extern crate std;

use crate::Refusal;
use core::cmp::Reverse;
use lockwright_model::{CpuId, MpcpCeiling, Priority};
use std::vec::Vec;

/// Capacities; a setting may have fewer tasks.
pub(super) const TASKS: usize = 5;
pub(super) const RESOURCES: usize = 2;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rule {
    Pcp,
    Srp,
    MpcpVs,
    Dpcp,
    Dflp,
    FmlpLong,
    FmlpPlus,
    FmlpShort,
    Mrsp,
    Omlp,
}

/// The tasks and resources of a walk.
pub(super) struct Setting {
    pub(super) rule: Rule,
    pub(super) cpus: &'static [usize],
    /// The two base priorities that each task alternates between.
    pub(super) bases: &'static [[u32; 2]],
    /// Of `pcp` and `srp`; of `dpcp` the highest users.
    pub(super) ceilings: [u32; RESOURCES],
    /// Of `dpcp` and `dflp`.
    pub(super) homes: [usize; RESOURCES],
    /// Of `mrsp`.
    pub(super) users: [&'static [usize]; RESOURCES],
    /// Of `omlp`, by the first CPU of a cluster: the number of its CPUs.
    pub(super) sizes: [usize; 3],
}

pub(super) const MPCP_CEILINGS: [MpcpCeiling; RESOURCES] = [
    MpcpCeiling { home: CpuId(1), on_home: Priority::base(2).boosted(), elsewhere: Priority::base(3).boosted() },
    MpcpCeiling { home: CpuId(0), on_home: Priority::base(3).boosted(), elsewhere: Priority::base(3).boosted() },
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    Arrive(usize),
    Finish(usize),
    Request(usize, usize),
    Release(usize, usize),
    Woken(usize),
    Cancel(usize),
    /// To the other base, or to the same again.
    Rebase(usize, bool),
}

impl Event {
    pub(super) fn task(self) -> usize {
        match self {
            Self::Arrive(task) | Self::Finish(task) | Self::Woken(task) | Self::Cancel(task) => task,
            Self::Request(task, _) | Self::Release(task, _) | Self::Rebase(task, _) => task,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Job {
    None,
    Held,
    Started,
}

/// The state of a task according to the actions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Mode {
    Runs,
    Sleeps,
    Spins,
    /// Woken without a grant, and has not called since.
    Awake,
}

/// A request that is not granted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Request {
    task: usize,
    resource: usize,
    /// In the queue of the resource; else held back, or on its way.
    is_queued: bool,
    /// The most urgent first; among equals by their order in the list.
    key: u32,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Shadow {
    pub(super) owners: [Option<usize>; RESOURCES],
    pub(super) jobs: [Job; TASKS],
    requests: Vec<Request>,
    /// Of `omlp`: the task to which a job lends its priority.
    lends_to: [Option<usize>; TASKS],
    /// Where priorities follow it: tasks with a request, granted or not, in the order in which they asked.
    asked: Vec<usize>,
    /// As set, and as in effect.
    bases: [u32; TASKS],
    acting: [u32; TASKS],
    pub(super) mode: [Mode; TASKS],
    pub(super) told: [Priority; TASKS],
    pub(super) cpus: [usize; TASKS],
    pub(super) epochs: [u32; TASKS],
}

impl Rule {
    pub(super) fn counts_jobs(self) -> bool {
        matches!(self, Self::Srp | Self::Mrsp | Self::Omlp)
    }

    fn is_distributed(self) -> bool {
        matches!(self, Self::Dpcp | Self::Dflp)
    }

    fn spins(self) -> bool {
        matches!(self, Self::FmlpShort | Self::Mrsp)
    }

    fn nests(self) -> bool {
        matches!(self, Self::Pcp | Self::Srp)
    }

    fn queues_by_priority(self) -> bool {
        matches!(self, Self::Srp | Self::MpcpVs | Self::Dpcp)
    }

    /// Of those that are not in a queue yet.
    fn gates_by_priority(self) -> bool {
        self == Self::Omlp
    }
}

impl Setting {
    pub(super) fn tasks(&self) -> usize {
        self.cpus.len()
    }

    /// Of `mrsp`: the highest user on a processor, as it was first.
    fn local_ceiling(&self, resource: usize, cpu: usize) -> Priority {
        let users = self.users[resource].iter().filter(|&&user| self.cpus[user] == cpu);
        users.map(|&user| Priority::base(self.bases[user][0])).max().unwrap_or(Priority::MIN)
    }
}

impl Shadow {
    pub(super) fn initial(setting: &Setting) -> Self {
        let bases = core::array::from_fn(|task| setting.bases.get(task).map_or(0, |bases| bases[0]));
        Self {
            owners: [None; RESOURCES],
            jobs: [Job::None; TASKS],
            requests: Vec::new(),
            lends_to: [None; TASKS],
            asked: Vec::new(),
            bases,
            acting: bases,
            mode: [Mode::Runs; TASKS],
            told: bases.map(Priority::base),
            cpus: core::array::from_fn(|task| setting.cpus.get(task).copied().unwrap_or(0)),
            epochs: [0; TASKS],
        }
    }

    fn request(&self, task: usize) -> Option<&Request> {
        self.requests.iter().find(|request| request.task == task)
    }

    pub(super) fn wants(&self, task: usize) -> Option<usize> {
        self.request(task).map(|request| request.resource)
    }

    fn holds(&self, task: usize) -> Option<usize> {
        self.owners.iter().position(|&owner| owner == Some(task))
    }

    fn is_queued(&self, task: usize) -> bool {
        self.request(task).is_some_and(|request| request.is_queued)
    }

    /// In a queue, or owner.
    fn is_admitted(&self, task: usize) -> bool {
        self.is_queued(task) || self.holds(task).is_some()
    }

    fn base(&self, task: usize) -> Priority {
        Priority::base(self.acting[task])
    }

    pub(super) fn new_base(&self, setting: &Setting, task: usize, changes: bool) -> u32 {
        let Some(&[first, second]) = setting.bases.get(task) else { return 0 };
        if (self.bases[task] == first) == changes { second } else { first }
    }

    pub(super) fn is_over(&self) -> bool {
        self.requests.is_empty() && self.owners == [None; RESOURCES] && self.jobs == [Job::None; TASKS]
    }

    /// The most urgent of some requests, the earliest among equals.
    fn first(&self, which: impl Fn(&Request) -> bool) -> Option<Request> {
        let found = self.requests.iter().copied().enumerate().filter(|(_, request)| which(request));
        found.max_by_key(|&(place, request)| (request.key, Reverse(place))).map(|(_, request)| request)
    }

    /// Why the event has no meaning; any of the reasons will do.
    pub(super) fn refusals(&self, setting: &Setting, event: Event) -> Vec<Refusal> {
        let rule = setting.rule;
        let task = event.task();
        let mut reasons = Vec::new();
        let mut refuse = |applies: bool, why: Refusal| {
            if applies {
                reasons.push(why);
            }
        };
        if task >= setting.tasks() {
            refuse(true, Refusal::UnknownTask);
            refuse(matches!(event, Event::Woken(_)) && !self.tries_again(rule), Refusal::NotWaiting);
            return reasons;
        }
        let waits = self.wants(task).is_some();
        match event {
            Event::Request(_, resource) | Event::Release(_, resource) if resource >= RESOURCES => {
                refuse(true, Refusal::UnknownResource);
            }
            Event::Request(_, resource) => {
                refuse(rule.counts_jobs() && self.jobs[task] != Job::Started, Refusal::Job);
                refuse(waits, Refusal::Waiting);
                refuse(self.owners[resource] == Some(task), Refusal::AlreadyHeld);
                refuse(!rule.nests() && self.holds(task).is_some_and(|held| held != resource), Refusal::Nested);
                let ceiling = match rule {
                    Rule::Pcp | Rule::Srp => Priority::base(setting.ceilings[resource]),
                    Rule::Mrsp => setting.local_ceiling(resource, setting.cpus[task]),
                    _ => Priority::NON_PREEMPTIVE,
                };
                refuse(self.base(task) > ceiling, Refusal::AboveCeiling);
                let mut at = Some(resource);
                let mut closes = false;
                for _ in 0..TASKS {
                    let owner = at.and_then(|resource| self.owners[resource]);
                    closes |= owner == Some(task);
                    at = owner.and_then(|owner| self.wants(owner));
                }
                refuse(closes && self.owners[resource] != Some(task), Refusal::Deadlock);
            }
            Event::Release(_, resource) => {
                refuse(self.owners[resource] != Some(task), Refusal::NotHeld);
                refuse(waits && rule.nests(), Refusal::Waiting);
            }
            Event::Woken(_) => {
                refuse(!self.tries_again(rule) || !waits || self.is_queued(task), Refusal::NotWaiting);
            }
            Event::Cancel(_) => refuse(!waits && self.jobs[task] != Job::Held, Refusal::NotWaiting),
            Event::Arrive(_) => refuse(self.jobs[task] != Job::None, Refusal::Job),
            Event::Finish(_) => {
                refuse(self.jobs[task] != Job::Started || waits || self.holds(task).is_some(), Refusal::Job);
            }
            Event::Rebase(..) => {}
        }
        reasons
    }

    /// Whether there is a way from before the queue into it that the task goes by itself.
    fn tries_again(&self, rule: Rule) -> bool {
        matches!(rule, Rule::Pcp | Rule::MpcpVs) || rule.is_distributed()
    }

    /// The tasks that keep a waiting task from locking, under `pcp`, with these priorities.
    fn keepers(&self, setting: &Setting, task: usize, priorities: &[Priority; TASKS]) -> Vec<usize> {
        let Some(wanted) = self.wants(task) else { return Vec::new() };
        let owned = self.owners.iter().enumerate().filter_map(|(resource, &owner)| Some((resource, owner?)));
        let keeps = owned.filter(|&(resource, owner)| {
            let is_local = setting.cpus[owner] == setting.cpus[task];
            let is_at_ceiling = is_local && Priority::base(setting.ceilings[resource]) >= priorities[task];
            owner != task && (resource == wanted || is_at_ceiling)
        });
        keeps.map(|(_, owner)| owner).collect()
    }

    /// Whether a task that has asked may take the resource if it is free, or else queue.
    pub(super) fn may_go(&self, setting: &Setting, task: usize) -> bool {
        let neighbours = || (0..setting.tasks()).filter(|&t| t != task && setting.cpus[t] == setting.cpus[task]);
        match setting.rule {
            Rule::Pcp => self.keepers(setting, task, &self.priorities(setting)).is_empty(),
            Rule::MpcpVs => {
                let (own, is_called) = (self.base(task), |other: usize| self.mode[other] == Mode::Awake);
                let goes_first = |other| self.is_admitted(other) && self.base(other) >= own;
                !neighbours().any(|other| goes_first(other) || is_called(other) && self.base(other) > own)
            }
            // Rule D1, and a request whose lender gave up has its place all the same.
            Rule::Omlp if setting.sizes[setting.cpus[task]] > 1 => {
                let size = setting.sizes[setting.cpus[task]];
                let is_before = |&other: &usize| {
                    let goes_first = self.acting[other] > self.acting[task] && self.lends_to[other].is_none();
                    other != task && (self.is_admitted(other) || goes_first)
                };
                let pending = self.pending(setting, task);
                let is_first = pending.iter().take(size).any(|&first| first == task);
                is_first && self.lends_to[task].is_none() && pending.iter().copied().filter(is_before).count() < size
            }
            Rule::Omlp => {
                let more_urgent = |other| self.jobs[other] == Job::Started && self.base(other) > self.base(task);
                let is_local = |request: &Request| setting.cpus[request.task] == setting.cpus[task];
                let first = self.first(|request| !request.is_queued && is_local(request));
                let is_first = first.is_some_and(|first| first.task == task);
                is_first && !neighbours().any(|other| self.is_admitted(other) || more_urgent(other))
            }
            // The actions may not have reported its processor yet.
            Rule::Dpcp | Rule::Dflp => {
                self.wants(task).is_some_and(|resource| setting.homes[resource] == self.cpus[task])
            }
            _ => true,
        }
    }

    /// Whether a job of the task may start.
    fn may_start(&self, setting: &Setting, task: usize) -> bool {
        let in_the_way = |(resource, owner): (usize, &Option<usize>)| {
            let local = owner.filter(|&owner| owner != task && setting.cpus[owner] == setting.cpus[task]);
            local.is_some() && Priority::base(setting.ceilings[resource]) >= self.base(task)
        };
        let ceiling = setting.rule == Rule::Srp && self.owners.iter().enumerate().any(in_the_way);
        !ceiling && self.lends_to[task].is_none()
    }

    /// The jobs of the task's cluster, the most urgent first. Where clusters are larger than one, no two tasks of a
    /// setting have one priority.
    fn pending(&self, setting: &Setting, task: usize) -> Vec<usize> {
        let is_there = |&t: &usize| setting.cpus[t] == setting.cpus[task] && self.jobs[t] != Job::None;
        let mut pending: Vec<usize> = (0..setting.tasks()).filter(is_there).collect();
        pending.sort_by_key(|&t| Reverse(self.acting[t]));
        pending
    }

    /// Priority donation, rules D2 and D4: a job that displaces one with a request from the first of the cluster, or
    /// one that lends to such, lends in its place.
    fn donate(&mut self, setting: &Setting, task: usize) {
        let size = setting.sizes[setting.cpus[task]];
        let before = self.pending(setting, task);
        if size == 1 || before.len() < size || self.acting[before[size - 1]] >= self.acting[task] {
            return;
        }
        let displaced = before[size - 1];
        if self.is_admitted(displaced) {
            self.lends_to[task] = Some(displaced);
        } else {
            self.lends_to[task] = self.lends_to[displaced].take();
        }
    }

    /// Rule D6: until the request is complete, or its job is among the first of the cluster by itself.
    fn end_donations(&mut self, setting: &Setting) {
        for lender in 0..setting.tasks() {
            let Some(task) = self.lends_to[lender] else { continue };
            let first = self.pending(setting, task).iter().take(setting.sizes[setting.cpus[task]]).any(|&t| t == task);
            if first || !self.is_admitted(task) {
                self.lends_to[lender] = None;
            }
        }
    }

    fn queue(&mut self, rule: Rule, task: usize) {
        let place = self.requests.iter().position(|request| request.task == task).unwrap();
        if rule == Rule::Dflp {
            // In the order of the requests, not of arrivals.
            self.requests[place].is_queued = true;
            return;
        }
        let request = self.requests.remove(place);
        let key = if rule.queues_by_priority() { self.acting[task] } else { 0 };
        self.requests.push(Request { is_queued: true, key, ..request });
    }

    /// Computes the result of the event: owners, jobs and queues.
    pub(super) fn foretell(&mut self, setting: &Setting, event: Event) {
        let rule = setting.rule;
        match event {
            Event::Arrive(task) => {
                if rule == Rule::Omlp {
                    self.donate(setting, task);
                }
                self.jobs[task] = if self.may_start(setting, task) { Job::Started } else { Job::Held };
            }
            Event::Finish(task) => self.jobs[task] = Job::None,
            Event::Request(task, resource) => {
                let key = if rule.gates_by_priority() { self.acting[task] } else { 0 };
                self.requests.push(Request { task, resource, is_queued: false, key });
                if matches!(rule, Rule::Dflp | Rule::FmlpPlus) {
                    self.asked.push(task);
                }
            }
            Event::Release(task, resource) => {
                self.owners[resource] = None;
                self.asked.retain(|&asked| asked != task);
            }
            Event::Woken(task) => self.mode[task] = Mode::Runs,
            Event::Cancel(task) => {
                if self.wants(task).is_none() {
                    self.jobs[task] = Job::None;
                    self.lends_to[task] = None;
                }
                self.requests.retain(|request| request.task != task);
                self.asked.retain(|&asked| asked != task);
                if self.mode[task] != Mode::Sleeps {
                    self.mode[task] = Mode::Runs;
                }
            }
            Event::Rebase(task, changes) => self.bases[task] = self.new_base(setting, task, changes),
        }
        for task in 0..setting.tasks() {
            let is_deferred = match rule {
                Rule::Pcp => self.wants(task).is_some() || self.holds(task).is_some(),
                Rule::Srp => self.jobs[task] != Job::None,
                _ => false,
            };
            if is_deferred || self.acting[task] == self.bases[task] {
                continue;
            }
            self.acting[task] = self.bases[task];
            if let Some(place) = self.requests.iter().position(|request| request.task == task) {
                let is_queued = self.requests[place].is_queued;
                if if is_queued { rule.queues_by_priority() } else { rule.gates_by_priority() } {
                    let request = self.requests.remove(place);
                    self.requests.push(Request { key: self.acting[task], ..request });
                }
            }
        }
        if let Event::Request(task, _) | Event::Woken(task) = event {
            let arrives = rule.is_distributed() && matches!(event, Event::Woken(_));
            if rule != Rule::Omlp && (arrives || self.may_go(setting, task)) {
                self.queue(rule, task);
            }
        }
        if rule == Rule::Omlp {
            self.end_donations(setting);
            let held_back = self.requests.iter().filter(|request| !request.is_queued).map(|request| request.task);
            for task in held_back.collect::<Vec<_>>() {
                if self.may_go(setting, task) {
                    self.queue(rule, task);
                }
            }
        }
        for resource in 0..RESOURCES {
            // One that is on its way, and first, finds the resource free.
            let counts = |request: &Request| request.is_queued || rule == Rule::Dflp;
            if self.owners[resource].is_none()
                && let Some(next) = self.first(|request| counts(request) && request.resource == resource)
                && next.is_queued
            {
                self.owners[resource] = Some(next.task);
                self.requests.retain(|request| request.task != next.task);
            }
        }
        for task in 0..setting.tasks() {
            if self.jobs[task] == Job::Held && self.may_start(setting, task) {
                self.jobs[task] = Job::Started;
            }
        }
    }

    /// The priority of every task; where only an order is fixed, what the task was told.
    fn priorities(&self, setting: &Setting) -> [Priority; TASKS] {
        let base: [_; TASKS] = core::array::from_fn(|task| self.base(task));
        if setting.rule == Rule::Pcp {
            let mut priorities = base;
            loop {
                let mut next = base;
                for waiter in 0..setting.tasks() {
                    for owner in self.keepers(setting, waiter, &priorities) {
                        next[owner] = next[owner].max(priorities[waiter]);
                    }
                }
                if core::mem::replace(&mut priorities, next) == next {
                    return priorities;
                }
            }
        }
        core::array::from_fn(|task| {
            let (base, holds) = (self.base(task), self.holds(task));
            let Some(resource) = self.wants(task).or(holds) else { return base };
            match setting.rule {
                Rule::Pcp | Rule::Srp => base,
                Rule::MpcpVs if !self.is_admitted(task) => base,
                Rule::MpcpVs => MPCP_CEILINGS[resource].on(CpuId::new(setting.cpus[task])),
                Rule::Dpcp if !self.is_admitted(task) => base.boosted(),
                Rule::Dpcp => base.max(Priority::base(setting.ceilings[resource])).boosted(),
                Rule::Dflp | Rule::FmlpPlus => self.told[task],
                Rule::FmlpLong => {
                    let waiters = self.requests.iter().filter(|request| Some(request.resource) == holds);
                    waiters.map(|waiter| self.base(waiter.task)).fold(base, Priority::max)
                }
                Rule::FmlpShort => Priority::NON_PREEMPTIVE,
                Rule::Mrsp if holds.is_some() => setting.local_ceiling(resource, self.cpus[task]).raised(),
                Rule::Mrsp => setting.local_ceiling(resource, setting.cpus[task]),
                Rule::Omlp if self.is_admitted(task) => Priority::BASE_MAX.boosted(),
                Rule::Omlp => base,
            }
        })
    }

    /// The processor on which the order of requests determines the priority of the task, if there is one.
    fn slot(&self, setting: &Setting, task: usize) -> Option<usize> {
        let resource = self.wants(task).or(self.holds(task))?;
        match setting.rule {
            Rule::Dflp => Some(setting.homes[resource]),
            Rule::FmlpPlus => Some(setting.cpus[task]),
            _ => None,
        }
    }

    /// Where a task must be; `before` was the state before the event.
    fn place(&self, setting: &Setting, before: &Self, task: usize, priorities: &[Priority; TASKS]) -> usize {
        let own = setting.cpus[task];
        let holds = self.holds(task);
        match (setting.rule, self.wants(task).or(holds)) {
            (Rule::Dpcp | Rule::Dflp, Some(resource)) => setting.homes[resource],
            (Rule::Mrsp, Some(resource)) if holds.is_some() => {
                let is_first = |&cpu: &usize| {
                    let priority = setting.local_ceiling(resource, cpu).raised();
                    !(0..setting.tasks()).any(|other| {
                        let is_there = other != task && self.jobs[other] == Job::Started && self.cpus[other] == cpu;
                        is_there && priorities[other] > priority
                    })
                };
                let waiters = self.requests.iter().filter(|request| request.resource == resource);
                let lent: Vec<_> = waiters.map(|waiter| setting.cpus[waiter.task]).collect();
                // Where it was: a place that nobody lends any more is left.
                let was = if before.owners[resource] == Some(task) { before.cpus[task] } else { own };
                let stays = if lent.contains(&was) { was } else { own };
                let places = [own, stays].into_iter().chain(lent);
                places.into_iter().find(is_first).unwrap_or(stays)
            }
            _ => own,
        }
    }

    /// Checks the properties that must hold after every event.
    pub(super) fn check(&self, setting: &Setting, before: &Self, event: Event) {
        let rule = setting.rule;
        let priorities = self.priorities(setting);
        let places: [_; TASKS] = core::array::from_fn(|task| match task < setting.tasks() {
            true => self.place(setting, before, task, &priorities),
            false => self.cpus[task],
        });
        assert_eq!(self.cpus, places, "places after {event:?}");
        assert_eq!(self.told, priorities, "priorities after {event:?}");
        for (place, &later) in self.asked.iter().enumerate() {
            let Some(cpu) = self.slot(setting, later) else { continue };
            assert!(self.told[later].is_boosted(), "not boosted after {event:?}");
            for &earlier in self.asked[..place].iter().filter(|&&earlier| self.slot(setting, earlier) == Some(cpu)) {
                assert!(self.told[earlier] > self.told[later], "a later request goes first, after {event:?}");
            }
        }
        for task in 0..setting.tasks() {
            let mode = self.mode[task];
            if self.jobs[task] == Job::Held {
                assert_eq!(mode, Mode::Sleeps, "starts below a ceiling");
                assert!(!self.may_start(setting, task), "held for nobody");
                continue;
            }
            let Some(request) = self.request(task) else {
                assert_eq!(mode, Mode::Runs, "task {task} waits for nothing, and does not run, after {event:?}");
                continue;
            };
            if request.is_queued {
                let is_before = |other: &Request| other.resource == request.resource && !other.is_queued;
                let before = self.requests.iter().take_while(|other| other.task != task).any(is_before);
                let waits_for_one = self.owners[request.resource].is_some_and(|owner| owner != task);
                assert!(waits_for_one || rule == Rule::Dflp && before, "waits for nobody");
                let expected = if rule.spins() { Mode::Spins } else { Mode::Sleeps };
                assert_eq!(mode, expected, "how task {task} waits after {event:?}");
            } else if rule.is_distributed() {
                assert_eq!(mode, Mode::Runs, "on its way");
            } else if mode != Mode::Awake {
                assert_eq!(mode, Mode::Sleeps, "how task {task} waits after {event:?}");
                assert!(!self.may_go(setting, task), "may go on, and sleeps, after {event:?}");
            }
        }
        if rule == Rule::Omlp {
            for (cpu, &size) in setting.sizes.iter().enumerate() {
                let admitted = (0..setting.tasks()).filter(|&task| setting.cpus[task] == cpu && self.is_admitted(task));
                assert!(admitted.count() <= size, "more requests of a cluster than it has processors");
            }
            for lender in 0..setting.tasks() {
                let Some(task) = self.lends_to[lender] else { continue };
                assert!(self.is_admitted(task) && self.acting[lender] > self.acting[task], "lends for nothing");
                assert_eq!(self.lends_to.iter().filter(|&&to| to == Some(task)).count(), 1, "two lend to one");
            }
        }
    }

    /// States that differ only in epochs, and in gaps between the levels of requests, are one.
    pub(super) fn forget(&mut self, setting: &Setting) {
        self.epochs = [0; TASKS];
        let slots: Vec<_> = self.asked.iter().map(|&task| (task, self.slot(setting, task))).collect();
        for (place, &(task, slot)) in slots.iter().enumerate() {
            if slot.is_some() {
                let earlier = slots[..place].iter().filter(|other| other.1 == slot).count();
                self.told[task] = Priority::base(u32::from(u16::MAX) - earlier as u32).boosted();
            }
        }
    }
}
