//! The processor demand of partitioned EDF with resources across processors under the long FMLP.
//!
//! Requests are served first come, first served, and a job that waits suspends. An owner is before all jobs of its
//! processor that own nothing; of several owners, the one whose request was made first. Resources of one processor are
//! under SRP. Among the jobs that SRP orders are those that wait, so as long as a ceiling keeps one of these from
//! continuing, no job with a later deadline starts a section (`protocol/src/global_edf.rs`).
//!
//! ```text
//!   C'_i = C_i + W_i + n_i S_i, and C_i if n_i = 0;    n_i = the number of requests of a job for long resources
//!   W_i  = the delay of i under the FMLP+, with equal priorities (`blocking/fmlp.rs`)
//!   S_i  = the longest section under SRP of another task of its processor
//!   B(t) = sum over tasks of the processor with D > t of the longest section on a long resource
//!          + the longest section under SRP that can block an interval of t, as without long resources
//! ```
//! W_i consists of sections of other processors (remote), and of 1 + n_i sections, at most, of each other task of its
//! own (local). `edf::schedulable` tests C' and B.
//!
//! *Argument.* Let a job of a processor miss a deadline at d, the first miss of the system. Call jobs *due* whose
//! deadlines are at most d. Let t0 be the last time before d at which no due job is pending, with those that wait; so
//! all that is due in the demand of t = d - t0 arrived from t0 on. At each time since then, one of these applies:
//!
//! 1. A due job executes. This takes C of each in all.
//! 2. None does, and a due job i waits for a resource. Its owner, or an owner on the processor of that one whose
//!    request was made before, executes. All these requests were made before that of i, and each task has one request
//!    at a time. On other processors, this is the wait that the FMLP+ bounds. On this one, the section belongs to a job
//!    that is not due, which requested it when i was not ready: so it was requested when i arrived, or when i resumed
//!    the last time, and each other task has one such section for each of these 1 + n_i times.
//! 3. None executes, none waits, and so all that are pending are ready. A job that is not due executes: an owner, or
//!    one whose section under SRP keeps a due job from executing. It made its request, or entered its section, before
//!    this period of ready jobs began, because it is not before them otherwise. The period began at t0, with tasks
//!    whose deadline is longer than t, or when a job i resumed. In the first case each task has at most one section on
//!    a long resource (B). In the second it is the section that the task had requested when i resumed, which is one of
//!    those counted for i in 2.
//!
//!    Under SRP, one section at most delays a period. Assume that two do, of jobs a and b, of which b entered later,
//!    and so above the ceiling of a. The job that a keeps from executing was not pending then: no job with a later
//!    deadline enters a section while a ceiling holds it. So it arrived later than b, its deadline is earlier, and its
//!    level is above that of b, and above the ceiling of a. So this section is part of B, or of the n_i S_i of the job
//!    that resumed. The latter may be of a task with any deadline, and may hold up any job that arrives in this period.
//!
//! So the due jobs and B fill the interval only if the demand exceeds it. Windows of others extend over their
//! deadlines, which have not been missed before d; so what is proved of one processor needs a proof of all that share
//! with it.
//!
//! This does not cover resources under MSRP or objects beside long ones, as a job that resumes could wait for a job
//! that spins, nor overheads. The protocol is that of Block, Leontyev, Brandenburg, Anderson, *A flexible real-time
//! locking protocol for multiprocessors*, RTCSA 2007, with the order of owners of the FMLP+ (Brandenburg, dissertation,
//! 2011).

use super::delayed::Terms;
use crate::blocking::Delay;
use crate::blocking::fmlp::{self, Sections, fmlp_plus};
use crate::rows::failure::Failure;
use crate::rows::mutant::{Mutant, Omission};
use crate::rows::sharing::{Demand, Sharer, Sharing};
use crate::rows::sporadic::Sporadic;
use crate::system::explain::Cause;
use crate::uniprocessor::edf::{self, Held, Step};
use lockwright_model::{Overheads, Protocol, ResourceId, Scheduler, System, TaskId};

/// Returns a resource across processors whose waiters suspend, if the system is under partitioned EDF.
pub(crate) fn long_resource(system: &System) -> Option<ResourceId> {
    let is_long = |&id: &ResourceId| {
        system.protocol_of(id, system.protocol_or_default()) == Protocol::FmlpLong && !system.users(id).is_empty()
    };
    system.resource_ids().find(|id| system.scheduler() == Scheduler::PEdf && is_long(id))
}

/// Returns a long resource if there are overheads to charge to its waits.
pub(super) fn uncharged(system: &System, overheads: &Overheads) -> Option<ResourceId> {
    long_resource(system).filter(|_| !overheads.charges_nothing())
}

/// The locks of a system under partitioned EDF, with what is the same for all of its processors.
pub(crate) struct Locks<'a> {
    sharing: &'a Sharing,
    omission: Omission<Mutant>,
    /// `None` without long resources.
    long: Option<Long>,
}

struct Long {
    /// The tasks with their requests for long resources, and with all others.
    long: Sharing,
    short: Sharing,
    /// The delays under the FMLP+, by task.
    delays: Result<Vec<Delay>, Failure>,
}

impl<'a> Locks<'a> {
    pub(crate) fn new(system: &System, sharing: &'a Sharing, omission: Omission<Mutant>) -> Self {
        let long = long_resource(system).map(|_| Long::new(system, sharing));
        Self { sharing, omission, long }
    }

    /// Returns the tasks of a processor with their waits, and their blocking.
    ///
    /// # Errors
    /// Returns [`Failure::Overflow`] if a number does not fit.
    pub(crate) fn on_processor(&self, cpu: u16) -> Result<(Vec<Sporadic>, Vec<Step>), Failure> {
        match self.suspending(cpu)? {
            Some(suspending) => suspending.demand(),
            None => edf::msrp(self.sharing, cpu),
        }
    }

    /// Returns what the tasks of a processor wait for, if the system has long resources.
    pub(super) fn suspending(&self, cpu: u16) -> Result<Option<Suspending<'a>>, Failure> {
        self.long.as_ref().map(|long| Suspending::new(self.sharing, long, cpu, self.omission)).transpose()
    }
}

impl Long {
    fn new(system: &System, sharing: &Sharing) -> Self {
        let is_long = |request: &Demand| {
            let id = ResourceId(request.resource);
            system.protocol_of(id, system.protocol_or_default()) == Protocol::FmlpLong
        };
        let of_kind = |long: bool| {
            let one = |task: &Sharer| Sharer {
                requests: task.requests.iter().copied().filter(|request| is_long(request) == long).collect(),
                response: task.deadline,
                priority: 0,
                ..task.clone()
            };
            Sharing { tasks: sharing.tasks.iter().map(one).collect() }
        };
        let long = of_kind(true);
        let delays = fmlp_plus(&long, Sections::Preemptive);
        Self { long, short: of_kind(false), delays }
    }
}

/// What the tasks of one processor wait for.
pub(super) struct Suspending<'a> {
    sharing: &'a Sharing,
    omission: Omission<Mutant>,
    waits: Vec<Waits>,
    /// By task: the longest section on a long resource, or 0.
    long: Vec<u64>,
    /// The sections under SRP.
    held: Vec<Held>,
}

/// What one job waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Waits {
    task: usize,
    /// The number of requests for long resources.
    requests: u64,
    remote: u64,
    local: u64,
    /// The section under SRP that can delay each resumption.
    resumption: u64,
}

impl<'a> Suspending<'a> {
    fn new(sharing: &'a Sharing, long: &Long, cpu: u16, omission: Omission<Mutant>) -> Result<Self, Failure> {
        let Long { long, short, delays } = long;
        let (held, delays) = (edf::held(short, cpu)?, delays.as_ref().map_err(|&why| why)?);
        let mut waits = Vec::new();
        for (task, own) in long.tasks.iter().enumerate().filter(|(_, own)| own.cluster == cpu) {
            let requests: u64 = own.requests.iter().map(|request| u64::from(request.count)).sum();
            let remote = match omission.is(Mutant::Stretch) {
                // Only requests for the same resource.
                true => fmlp::fmlp_long(&without_neighbours(long, task))?[task].remote,
                false => delays[task].remote,
            };
            let others = held.iter().filter(|one| one.task != task).map(|one| one.length).max();
            let unless = |mutant, time: u64| if requests == 0 || omission.is(mutant) { 0 } else { time };
            waits.push(Waits {
                task,
                requests,
                remote: unless(Mutant::Waiting, remote.ok_or(Failure::Overflow)?),
                local: unless(Mutant::Repeats, delays[task].local),
                resumption: unless(Mutant::Resumption, others.unwrap_or(0)),
            });
        }
        let longest = |task: &Sharer| {
            let own = task.requests.iter().map(|request| request.length).max();
            own.filter(|_| task.cluster == cpu && !omission.is(Mutant::Boosted)).unwrap_or(0)
        };
        Ok(Self { sharing, omission, waits, long: long.tasks.iter().map(longest).collect(), held })
    }

    /// Returns C' of the tasks, and B.
    fn demand(&self) -> Result<(Vec<Sporadic>, Vec<Step>), Failure> {
        let mut tasks = Vec::new();
        for Waits { task, requests, remote, local, resumption } in self.waits.iter().copied() {
            let task = &self.sharing.tasks[task];
            let resumptions = requests.checked_mul(resumption);
            let waits = [Some(remote), Some(local), resumptions];
            let cost = waits.into_iter().try_fold(task.cost, |sum, wait| sum.checked_add(wait?));
            let cost = cost.ok_or(Failure::Overflow)?;
            tasks.push(Sporadic { cost, period: task.period, deadline: task.deadline });
        }
        // The sums are at most those at 0.
        self.long.iter().try_fold(0_u64, |sum, &length| sum.checked_add(length)).ok_or(Failure::Overflow)?;
        let blocking = edf::steps(tasks.iter().map(|task| task.deadline), |t| {
            let owners: u64 = self.owners(t).map(|(_, length)| length).sum();
            Some(owners.saturating_add(self.blocker(t).map_or(0, |one| one.span)))
        });
        Ok((tasks, blocking))
    }

    /// The tasks whose sections on long resources can block an interval, and the longest of each.
    fn owners(&self, interval: u64) -> impl Iterator<Item = (usize, u64)> {
        let later = self.long.iter().copied().enumerate().filter(|&(_, length)| length > 0);
        later.filter(move |&(task, _)| self.sharing.tasks[task].deadline > interval)
    }

    /// The section under SRP that can block an interval.
    fn blocker(&self, interval: u64) -> Option<&Held> {
        edf::blocker(&self.held, interval).filter(|_| !self.omission.is(Mutant::LocalIcpp))
    }

    /// Adds the terms of the waits of these jobs of a task.
    pub(super) fn add_waits(&self, terms: &mut Terms, task: TaskId, by: Option<TaskId>, jobs: u64) {
        let Some(waits) = self.waits.iter().find(|waits| waits.task == task.index()) else { return };
        let resumptions = jobs.saturating_mul(waits.requests);
        for (cause, count, each, why) in [
            (Cause::Waiting, jobs, waits.remote, "sections of other CPUs that were requested before its requests"),
            (Cause::Local, jobs, waits.local, "sections of its CPU that were requested before it arrived or resumed"),
            (Cause::Local, resumptions, waits.resumption, "a section of its CPU has begun when it resumes"),
        ] {
            if each > 0 && count > 0 {
                terms.add(cause, by, None, count, each, why);
            }
        }
    }

    /// Adds the terms of the blocking of an interval.
    pub(super) fn add_blocking(&self, terms: &mut Terms, interval: u64) {
        for (task, length) in self.owners(interval) {
            let why = "has requested its section, and has a later deadline";
            terms.add(Cause::Local, Some(TaskId::new(task)), None, 1, length, why);
        }
        if let Some(one) = self.blocker(interval) {
            let why = "has begun its section, and has a later deadline";
            terms.add(Cause::Local, Some(TaskId::new(one.task)), Some(ResourceId(one.resource)), 1, one.span, why);
        }
    }
}

/// The requests without those of other tasks on the processor of `task`.
fn without_neighbours(long: &Sharing, task: usize) -> Sharing {
    let mut long = long.clone();
    let own = long.tasks[task].cluster;
    let others = long.tasks.iter_mut().enumerate().filter(|(other, it)| *other != task && it.cluster == own);
    others.for_each(|(_, other)| other.requests.clear());
    long
}
