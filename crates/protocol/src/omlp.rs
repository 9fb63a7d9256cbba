//! `omlp`: the O(m) locking protocol under clustered scheduling, with priority donation. A partitioned system has
//! clusters of one processor.
//!
//! ```text
//!   arrive    a place is free, or the last place is not that of a job with a request: -
//!             the last place is that of a job a with a request, and d is more urgent: d lends it its priority, hold;
//!                                                            the previous lender of a: wake
//!   request   deferred until the job has a place of its own;
//!             then boosted above all jobs; free: -> task, grant;  else: queue, first come, first served, wait
//!   release   first waiter w: -> w, grant w, wake w;  the lender: wake;
//!             deferred requests with a place now: go on;  fall
//!   finish    lenders to jobs that are now among the first of the cluster: wake;
//!             deferred requests with a place: go on
//! ```
//!
//! A cluster of c processors has c *places*, which its jobs take in the order of their priorities. If a job with a
//! request has a lender, it has the place of its lender, and the lender has none. The lender neither executes nor makes
//! requests until the request is complete, until the own priority of the other job suffices, or until a still more
//! urgent job arrives and becomes the lender instead. So each job lends at most once, when it arrives. Each request has
//! a place from the request to the release, and owners execute.
//!
//! With one processor, there is no other job that a lender could keep waiting. So a lender is not held back, and
//! executes while the request waits. Of the deferred requests, the most urgent one continues first, and among equally
//! urgent ones the earliest. A job does not lose its place to an equally urgent one without a request.

use crate::parts::queue::{Links, WaitQueue};
use crate::parts::single::{Single, Stand};
use crate::{Action, DEFAULT_RESOURCES, DEFAULT_TASKS, Machine, Refusal};
use lockwright_model::{CPUS_MAX, CpuId, Priority, ResourceId, TaskId};

/// Mutexes whose queues are at most as long as the number of processors.
///
/// # Bound
/// A request waits for at most one section of each other processor. A job is also delayed once by one request of a less
/// urgent task of its cluster, from the request to the release. Time during which a job is suspended counts as
/// execution.
///
/// # Reference
/// B. Brandenburg, J. Anderson, "Real-time resource-sharing under clustered scheduling: mutex, reader-writer, and
/// k-exclusion locks", EMSOFT 2011. In that paper, a lender executes while the request of its job waits; here it is
/// held from its arrival on.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Omlp<const TASKS: usize = DEFAULT_TASKS, const RESOURCES: usize = DEFAULT_RESOURCES> {
    single: Single<TASKS, RESOURCES>,
    jobs: [bool; TASKS],
    /// By the first processor of a cluster: the number of its jobs.
    jobs_there: [u16; CPUS_MAX],
    /// By task: the task to which its job lends its priority.
    lends_to: [Option<TaskId>; TASKS],
    /// The number of jobs that lend.
    lenders: usize,
    /// By the first processor of a cluster: the number of its processors.
    processors: [u8; CPUS_MAX],
    /// By the first processor of a cluster: the tasks whose requests are deferred.
    held_back: [WaitQueue; CPUS_MAX],
    links: Links<TaskId, TASKS>,
}

impl<const TASKS: usize, const RESOURCES: usize> Omlp<TASKS, RESOURCES> {
    /// There are no jobs, and all resources are free. `tasks[t]` is the base priority and the processor of task `t`.
    /// Other tasks and resources are refused.
    #[must_use]
    pub fn new(tasks: &[(Priority, CpuId)], resources: usize) -> Self {
        Self {
            single: Single::new(tasks, resources),
            jobs: [false; TASKS],
            jobs_there: [0; CPUS_MAX],
            lends_to: [None; TASKS],
            lenders: 0,
            processors: [1; CPUS_MAX],
            held_back: [WaitQueue::EMPTY; CPUS_MAX],
            links: Links::new(),
        }
    }

    /// The same machine with clusters. The processor of a task is the first one of its cluster, and `processors` gives
    /// the size of each cluster, by its first processor.
    #[must_use]
    pub fn with_clusters(mut self, processors: [u8; CPUS_MAX]) -> Self {
        self.processors = processors;
        self
    }

    /// Returns the owner of a resource.
    #[must_use]
    pub fn owner(&self, resource: ResourceId) -> Option<TaskId> {
        self.single.owner(resource)
    }

    fn set_job(&mut self, task: TaskId, has_job: bool) -> Result<(), Refusal> {
        self.single.known(task)?;
        let is_busy = self.single.stand(task) != Stand::Idle || self.lends_to[task.index()].is_some();
        let job = &mut self.jobs[task.index()];
        if *job == has_job || is_busy {
            return Err(Refusal::Job);
        }
        *job = has_job;
        let there = &mut self.jobs_there[self.single.own_cpu(task).index()];
        *there = if has_job { *there + 1 } else { *there - 1 };
        Ok(())
    }

    fn places(&self, cluster: CpuId) -> usize {
        usize::from(self.processors[cluster.index()])
    }

    /// The other tasks of its cluster.
    fn beside(&self, task: TaskId) -> impl Iterator<Item = TaskId> + use<'_, TASKS, RESOURCES> {
        self.single.peers(task).iter().copied().filter(move |&other| other != task)
    }

    fn has_asked(&self, task: TaskId) -> bool {
        matches!(self.single.stand(task), Stand::Waits(_) | Stand::Holds(_))
    }

    fn lender(&self, task: TaskId) -> Option<TaskId> {
        let is_lender = |other: &TaskId| self.lends_to[other.index()] == Some(task);
        if self.lenders == 0 { None } else { self.beside(task).find(is_lender) }
    }

    /// Ends the loan of a job. Returns whether the job lent.
    fn end_loan(&mut self, lender: TaskId) -> bool {
        let lent = self.lends_to[lender.index()].take().is_some();
        self.lenders -= usize::from(lent);
        lent
    }

    /// The priority by which a job has its place, or `None` if it has no place of its own.
    fn standing(&self, task: TaskId) -> Option<Priority> {
        let own = self.single.base(task);
        let lent = || self.lender(task).map_or(own, |lender| self.single.base(lender).max(own));
        let counts = self.jobs[task.index()] && self.lends_to[task.index()].is_none();
        counts.then(|| if self.has_asked(task) { lent() } else { own })
    }

    /// The job whose place an arriving job takes: if all places are taken, and the arriving job is more urgent than the
    /// last job with a place, that last job.
    ///
    /// BOUND: for each processor of the cluster, a step for each task, and as many again for each request.
    fn displaced(&self, task: TaskId) -> Option<TaskId> {
        // Among equals, a job with a request keeps its place.
        let order = |other: TaskId| Some((self.standing(other)?, self.has_asked(other), other));
        let mut last = None;
        for _ in 0..self.places(self.single.own_cpu(task)) {
            let behind = |&place: &(Priority, bool, TaskId)| last.is_none_or(|last| place < last);
            last = Some(self.beside(task).filter_map(order).filter(behind).max()?);
        }
        let (standing, _, displaced) = last?;
        (standing < self.single.base(task)).then_some(displaced)
    }

    /// Whether a job that makes a request has a place of its own: fewer other jobs of its cluster than the cluster has
    /// processors have a request, or are more urgent and do not lend.
    ///
    /// BOUND: no loop if the cluster has a processor for each of its jobs, otherwise a step for each task.
    fn may_go_on(&self, task: TaskId) -> bool {
        let places = self.places(self.single.own_cpu(task));
        // The count includes this job.
        if usize::from(self.jobs_there[self.single.own_cpu(task).index()]) <= places {
            return true;
        }
        let base = self.single.base(task);
        let goes_first = |&other: &TaskId| {
            let counts = self.jobs[other.index()] && self.lends_to[other.index()].is_none();
            counts && (self.has_asked(other) || self.single.base(other) > base)
        };
        self.beside(task).filter(goes_first).take(places).count() < places
    }

    /// Ends the loans to jobs that no longer need them, in the cluster of `changed`.
    ///
    /// BOUND: no loop if no job lends; otherwise a step for each task of the cluster, and as many again for each job
    /// that lends.
    fn give_back(&mut self, changed: TaskId, act: &mut dyn FnMut(Action)) {
        if self.lenders == 0 {
            return;
        }
        let places = self.places(self.single.own_cpu(changed));
        for place in self.single.peer_places(changed) {
            let lender = self.single.peer_at(place);
            let Some(task) = self.lends_to[lender.index()] else { continue };
            let base = self.single.base(task);
            let is_before = |&other: &TaskId| self.jobs[other.index()] && self.single.base(other) >= base;
            if !self.has_asked(task) || self.beside(task).filter(is_before).take(places).count() < places {
                self.end_loan(lender);
                act(Action::Wake { task: lender });
            }
        }
    }

    /// Lets as many deferred requests of a cluster go on as have places now, the first ones first. The caller is not
    /// woken, because it has not been told to wait.
    ///
    /// BOUND: one round for each processor of the cluster.
    fn admit(&mut self, cluster: CpuId, caller: Option<TaskId>, act: &mut dyn FnMut(Action)) {
        while let Some(task) = self.held_back[cluster.index()].first().filter(|&task| self.may_go_on(task)) {
            let Stand::Sent(resource) = self.single.stand(task) else { return };
            self.held_back[cluster.index()].pop(&mut self.links);
            let owns = self.single.enter(task, resource, Priority::MIN);
            self.settle(task, act);
            if owns {
                act(Action::Grant { task, resource });
                if caller != Some(task) {
                    act(Action::Wake { task });
                }
            }
        }
    }

    /// Reports the current priority of a task, if it has changed.
    fn settle(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) {
        let base = self.single.base(task);
        self.single.tell(task, if self.has_asked(task) { Priority::BASE_MAX.boosted() } else { base }, act);
    }

    /// The plain form of [`Omlp::give_back`] and [`Omlp::admit`], over all tasks of each cluster, to which the tests
    /// compare these.
    #[cfg(test)]
    pub(crate) fn settle_all(&mut self, act: &mut dyn FnMut(Action)) {
        let cluster = |task| self.single.own_cpu(task);
        let base = |task| self.single.base(task);
        for task in self.single.tasks() {
            let beside = |other: &TaskId| *other != task && cluster(*other) == cluster(task);
            let goes_first = |other: &TaskId| {
                let counts = self.jobs[other.index()] && self.lends_to[other.index()].is_none();
                counts && (self.has_asked(*other) || base(*other) > base(task))
            };
            let before = self.single.tasks().filter(beside).filter(goes_first).count();
            let is_first = self.held_back[cluster(task).index()].first() == Some(task);
            let loan = self.lends_to[task.index()].map(|to| {
                let others = self.single.tasks().filter(|&other| other != to && cluster(other) == cluster(to));
                let is_before = |other: &TaskId| self.jobs[other.index()] && base(*other) >= base(to);
                self.has_asked(to) && others.filter(is_before).count() >= self.places(cluster(to))
            });
            if is_first && before < self.places(cluster(task)) || loan == Some(false) {
                act(Action::Wake { task });
            }
        }
        assert_eq!(self.lenders, self.lends_to.iter().flatten().count());
        for task in self.single.tasks() {
            let there = |other: &TaskId| cluster(*other) == cluster(task) && self.jobs[other.index()];
            let jobs = self.single.tasks().filter(there).count();
            assert_eq!(usize::from(self.jobs_there[cluster(task).index()]), jobs, "each job counts once");
        }
    }

    /// For the exhaustive walk: states that differ only in epochs are one.
    #[cfg(test)]
    pub(crate) fn forget_epochs(&mut self) {
        self.single.forget_epochs();
    }
}

impl<const TASKS: usize, const RESOURCES: usize> Machine for Omlp<TASKS, RESOURCES> {
    fn counts_jobs(&self) -> bool {
        true
    }

    fn arrive(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.set_job(task, true)?;
        if self.places(self.single.own_cpu(task)) == 1 {
            return Ok(());
        }
        let Some(displaced) = self.displaced(task).filter(|&other| self.has_asked(other)) else { return Ok(()) };
        if let Some(relieved) = self.lender(displaced) {
            self.end_loan(relieved);
            act(Action::Wake { task: relieved });
        }
        self.lends_to[task.index()] = Some(displaced);
        self.lenders += 1;
        act(Action::Hold { task });
        Ok(())
    }

    fn finish(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.set_job(task, false)?;
        let cluster = self.single.own_cpu(task);
        self.give_back(task, act);
        self.admit(cluster, None, act);
        Ok(())
    }

    fn request(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.single.may_ask(task, resource)?;
        if !self.jobs[task.index()] || self.lends_to[task.index()].is_some() {
            return Err(Refusal::Job);
        }
        let cluster = self.single.own_cpu(task);
        self.single.send_off(task, resource);
        self.held_back[cluster.index()].insert(&mut self.links, task, self.single.base(task));
        self.admit(cluster, Some(task), act);
        if self.single.stand(task) != Stand::Holds(resource) {
            act(Action::Block { task, resource });
        }
        Ok(())
    }

    fn release(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        if let Some(next) = self.single.exit(task, resource)? {
            act(Action::Grant { task: next, resource });
            act(Action::Wake { task: next });
        }
        let cluster = self.single.own_cpu(task);
        self.give_back(task, act);
        self.admit(cluster, None, act);
        self.settle(task, act);
        Ok(())
    }

    fn cancel(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.single.known(task)?;
        let cluster = self.single.own_cpu(task);
        if self.end_loan(task) {
            // The job has not begun, and does not begin.
            self.jobs[task.index()] = false;
            self.jobs_there[cluster.index()] -= 1;
        } else if let Stand::Sent(_) = self.single.give_up(task)? {
            self.held_back[cluster.index()].remove(&mut self.links, task);
        }
        self.give_back(task, act);
        self.admit(cluster, None, act);
        act(Action::Wake { task });
        self.settle(task, act);
        Ok(())
    }

    fn set_base(&mut self, task: TaskId, base: Priority, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.single.set_base(task, base)?;
        let cluster = self.single.own_cpu(task);
        if let Stand::Sent(_) = self.single.stand(task) {
            self.held_back[cluster.index()].reorder(&mut self.links, task, base);
        }
        self.give_back(task, act);
        self.admit(cluster, None, act);
        self.settle(task, act);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::vec::Vec;

    const TASKS: usize = 6;

    /// Covers cases that are too large for the walk: changing and equal base priorities, and larger clusters. After
    /// every event, a cluster has no more requests than processors, and each lender lends to one request; in the end
    /// all jobs finish.
    #[test]
    fn requests_keep_their_places_when_priorities_change() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut lent = 0;
        for _ in 0..if cfg!(miri) { 1 } else { 2_000 } {
            let mut sizes = [1; CPUS_MAX];
            (sizes[0], sizes[3]) = (random.u8(1..=3), random.u8(1..=2));
            let mut base = || Priority::base(random.u32(1..=5));
            let tasks: Vec<_> = (0..TASKS).map(|task| (base(), CpuId(if task < 4 { 0 } else { 3 }))).collect();
            let mut machine = Omlp::<TASKS, 2>::new(&tasks, 2).with_clusters(sizes);
            let mut asleep = [false; TASKS];
            for step in 0..400 {
                // In the end no more jobs arrive.
                let events = if step < 200 { 6 } else { 3 };
                let (task, resource) = (TaskId::new(random.usize(0..TASKS)), ResourceId::new(random.usize(0..2)));
                let runs = !asleep[task.index()];
                let mut told = Vec::new();
                let act = &mut |action| told.push(action);
                let done = match random.u8(0..events) {
                    0 | 1 if runs => machine.release(task, resource, act),
                    2 if runs => machine.finish(task, act),
                    3 if runs => machine.arrive(task, act),
                    4 if runs => machine.request(task, resource, act),
                    5 => machine.set_base(task, Priority::base(random.u32(1..=5)), act),
                    _ => Ok(()),
                };
                assert!(done.is_ok() || told.is_empty());
                for action in told {
                    match action {
                        Action::Hold { task } | Action::Block { task, .. } => asleep[task.index()] = true,
                        Action::Wake { task } => {
                            assert!(core::mem::take(&mut asleep[task.index()]), "woken for nothing");
                        }
                        _ => {}
                    }
                }
                for cluster in [0, 3] {
                    let requests = machine.single.tasks().filter(|&task| machine.has_asked(task));
                    let there = requests.filter(|&task| machine.single.own_cpu(task) == CpuId(cluster)).count();
                    assert!(there <= usize::from(sizes[usize::from(cluster)]));
                }
                let lenders: Vec<TaskId> = machine.lends_to.iter().copied().flatten().collect();
                lent += lenders.len();
                assert!(lenders.iter().all(|&to| machine.has_asked(to)));
                assert!(lenders.iter().enumerate().all(|(place, to)| !lenders[..place].contains(to)));
            }
            // Each holder releases its resource, and each job finishes.
            for _ in 0..4 * TASKS {
                for task in machine.single.tasks() {
                    let mut told = Vec::new();
                    let act = &mut |action| told.push(action);
                    for resource in [0, 1].map(ResourceId) {
                        let _ = machine.release(task, resource, act);
                    }
                    if !asleep[task.index()] {
                        let _ = machine.finish(task, act);
                    }
                    for action in told {
                        if let Action::Wake { task } = action {
                            asleep[task.index()] = false;
                        }
                    }
                }
            }
            assert_eq!((asleep, machine.jobs), ([false; TASKS], [false; TASKS]));
        }
        assert!(cfg!(miri) || lent > 1_000, "{lent}");
    }
}
