//! The thread of one task: waits for each arrival, executes the body step by step, and records what happens.
//!
//! ```text
//!   sleep until the arrival -> Run -> steps -> Finish, Stop -> next
//!                                      |
//!                       stopped: release all resources, end; the job does not count as finished
//! ```

use super::failure::Failure;
use super::outcome::{Job, TaskOutcome};
use super::report::Report;
use super::shared::Shared;
use crate::burn::Burner;
use crate::control::FAILED;
use crate::log::Log;
use hdrhistogram::Histogram;
use lockwright::raw::{Ending, Turn};
use lockwright::tasks::ResourceError;
use lockwright_model::{
    Duration, Event, Instant, Mode, NESTING_MAX, Observation, Priority, ResourceId, Step, Task, TaskId,
};
use lockwright_sys::clock;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Systems with at most this many tasks get histograms of three digits (about 200 KiB each), others of two.
const FINE_TASKS_MAX: usize = 64;

/// How a job ended.
enum Ended {
    Finished(u64),
    Stopped,
}

/// The state of one task's thread. All of it is allocated before the start.
pub(super) struct TaskThread<'a> {
    shared: &'a Shared,
    id: TaskId,
    task: &'a Task,
    start_ns: u64,
    burner: Burner<'a>,
    /// The decisions on its requests, if they are kept.
    turns: Option<Log>,
    /// The resources that the current job holds, in the order of acquisition.
    held: Vec<ResourceId>,
    /// Whether the protocols have a job of this task that has not ended.
    has_job: bool,
    /// Under SCHED_DEADLINE: how long a job may execute, in nanoseconds.
    runtime_ns: Option<u64>,
    outcome: TaskOutcome,
}

impl<'a> TaskThread<'a> {
    pub(super) fn new(shared: &'a Shared, id: TaskId, log: Log, turns: Option<Log>) -> Self {
        let task = shared.system.task(id);
        let executor = &shared.locks.executor;
        let burner = Burner::new(&shared.calibration, log).at(executor.seat(id).places());
        let is_clustered = shared.system.cpus_of(id).count() > 1;
        Self {
            shared,
            id,
            task,
            start_ns: 0,
            burner: if is_clustered { burner.anywhere(executor.cpus()) } else { burner },
            turns,
            held: Vec::with_capacity(NESTING_MAX),
            has_job: false,
            runtime_ns: shared.reservations.get(id.index()).map(|reservation| reservation.runtime().as_ns()),
            outcome: TaskOutcome {
                observation: Observation::default(),
                responses: histogram(shared),
                lock_waits: histogram(shared),
                throttled: 0,
                worst_job: None,
            },
        }
    }

    /// Executes all jobs of the run. In every case, the task holds nothing afterwards, and its job is ended in the
    /// protocols.
    pub(super) fn execute(mut self) -> Report {
        self.start_ns = self.shared.start_ns();
        let mut failure = match catch_unwind(AssertUnwindSafe(|| self.jobs())) {
            Ok(Ok(())) => None,
            Ok(Err(failure)) => Some(failure),
            Err(_) => Some(Failure::Panicked(self.id)),
        };
        match catch_unwind(AssertUnwindSafe(|| self.release_all().and(self.end_job()))) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => failure = failure.or(Some(error)),
            Err(_) => failure = failure.or(Some(Failure::Panicked(self.id))),
        }
        if failure.is_some() {
            self.shared.control.leave(FAILED);
        }
        Report { outcome: self.outcome, log: self.burner.log, turns: self.turns.unwrap_or_default(), failure }
    }

    fn jobs(&mut self) -> Result<(), Failure> {
        // BOUND: the arrivals before the end of the run.
        for index in 0.. {
            let Some(arrival) = self.arrival(index) else { return Ok(()) };
            let released = self.shared.naps[self.id.index()].until(self.start_ns + arrival);
            if !released || self.shared.control.is_stopped() {
                self.abandon(index, false);
                return Ok(());
            }
            let executed = self.runtime_ns.map(|_| clock::executed_ns());
            self.burner.log.push(self.start_ns + arrival, Event::Arrive);
            self.burner.begin();
            self.has_job = true;
            let due = Instant::from_ns(self.start_ns + arrival) + self.task.deadline;
            self.shared.locks.arrive(self.id, due).map_err(|error| self.job_failure(error))?;
            // The protocol may have delayed the start of the job.
            self.burner.after_call();
            let ended = self.job()?;
            match ended {
                Ended::Finished(at) => {
                    self.finished(arrival, at - self.start_ns);
                    self.end_job()?;
                    self.burner.after_call();
                }
                Ended::Stopped => {
                    self.release_all().and(self.end_job())?;
                    self.burner.end();
                    self.abandon(index, true);
                    return Ok(());
                }
            }
            if let (Some(before), Some(runtime)) = (executed, self.runtime_ns) {
                self.outcome.throttled += u64::from(clock::executed_ns() - before > runtime);
            }
            self.burner.end();
        }
        Ok(())
    }

    /// The arrival of job `index` relative to the start, or `None` if the run is over by then.
    fn arrival(&self, index: u64) -> Option<u64> {
        let after = index.checked_mul(self.task.period.as_ns())?.checked_add(self.task.offset.as_ns())?;
        (after < self.shared.duration.as_ns()).then_some(after)
    }

    fn job(&mut self) -> Result<Ended, Failure> {
        let mut waited_ns = 0;
        let mut next = 0;
        // BOUND: the steps of the body. The steps of an interruptible section are executed once more for each commit of
        // another task that invalidates the section, until the run is stopped.
        while let Some(&step) = self.task.body.get(next) {
            next += 1;
            match step {
                Step::Run(time) => {
                    if !self.burner.burn(time.as_ns(), &self.shared.control) {
                        return Ok(Ended::Stopped);
                    }
                }
                Step::Lock(_) | Step::Read(_) if self.shared.control.is_stopped() => return Ok(Ended::Stopped),
                Step::Lock(resource) => waited_ns += self.lock(resource, Mode::Write)?,
                Step::Read(resource) => waited_ns += self.lock(resource, Mode::Read)?,
                Step::Unlock(resource) if self.unlock(resource)? => {
                    if self.shared.control.is_stopped() {
                        return Ok(Ended::Stopped);
                    }
                    next = self.beginning(resource, next);
                }
                Step::Unlock(_) => {}
            }
        }
        let at = self.burner.now();
        self.burner.log.push(at, Event::Finish);
        let longest = &mut self.outcome.observation.lock_wait;
        *longest = (*longest).max(Some(Duration::from_ns(waited_ns)));
        Ok(Ended::Finished(at))
    }

    /// Locks `resource`. Returns the nanoseconds from the request to the grant.
    fn lock(&mut self, resource: ResourceId, mode: Mode) -> Result<u64, Failure> {
        let asked = self.burner.now();
        self.burner.log.push(asked, Event::Request(resource));
        let before = self.priority(resource);
        let waited = self.shared.locks.lock_in(mode, self.id, resource);
        let waited = waited.map_err(|error| self.failure(resource, error))?;
        self.held.push(resource);
        self.log_turn(resource, Turn::Asking, Event::Request(resource));
        self.log_turn(resource, Turn::Asked, Event::Stop);
        self.log_change(resource);
        self.log_turn(resource, Turn::Owned, Event::Acquire(resource));
        #[cfg(test)]
        super::fault::strike();
        self.log_priority(asked, resource, before);
        let got = self.burner.after_request(waited);
        self.burner.log.push(got, Event::Acquire(resource));
        self.outcome.lock_waits.saturating_record(got - asked);
        Ok(got - asked)
    }

    /// The index of the first step of the section on `resource` that ends before step `until`.
    fn beginning(&self, resource: ResourceId, until: usize) -> usize {
        let lock = self.task.body[..until].iter().rposition(|step| step.acquired() == Some(resource));
        // The resource is held, so a lock precedes.
        lock.map_or(0, |lock| lock + 1)
    }

    /// Unlocks `resource`. Returns whether the section was invalidated and must be executed again; it is still held in
    /// that case.
    fn unlock(&mut self, resource: ResourceId) -> Result<bool, Failure> {
        let at = self.burner.now();
        let before = self.priority(resource);
        if let Some(ended) = self.shared.locks.end_interruptible(self.id, resource) {
            return self.ended(resource, before, ended);
        }
        self.burner.log.push(at, Event::Release(resource));
        self.held.retain(|&held| held != resource);
        self.shared.locks.unlock(self.id, resource).map_err(|error| self.failure(resource, error))?;
        self.log_turn(resource, Turn::Left, Event::Release(resource));
        self.log_priority(at, resource, before);
        self.burner.after_call();
        Ok(false)
    }

    /// Records the number of an event of the last request, if they are kept.
    fn log_turn(&mut self, resource: ResourceId, turn: Turn, event: Event) {
        let locks = &self.shared.locks;
        if let Some(turns) = self.turns.as_mut().filter(|_| locks.has_turns(resource)) {
            turns.push(locks.executor.seat(self.id).turn(turn), event);
        }
    }

    /// Records the last change of priority since the last request, if the numbers of events are kept.
    fn log_change(&mut self, resource: ResourceId) {
        let executor = &self.shared.locks.executor;
        let seat = executor.seat(self.id);
        if self.turns.is_some() && seat.turn(Turn::Changed) >= seat.turn(Turn::Asking) {
            self.log_turn(resource, Turn::Changed, Event::Priority(executor.effective(self.id)));
        }
    }

    /// Records how an interruptible section ended. Returns whether it must be executed again.
    fn ended(
        &mut self,
        resource: ResourceId,
        before: Option<Priority>,
        ended: Result<Ending, ResourceError>,
    ) -> Result<bool, Failure> {
        let is_over = !matches!(ended, Ok(Ending { restarts: true, .. }));
        if is_over {
            self.held.retain(|&held| held != resource);
        }
        let at = ended.map_err(|error| self.failure(resource, error))?.at_ns;
        self.burner.called(at);
        if is_over {
            self.burner.log.push(at, Event::Release(resource));
            self.log_priority(at, resource, before);
        } else {
            self.burner.log.push(at, Event::Restart(resource));
            self.outcome.observation.restarts += 1;
        }
        self.burner.after_call();
        Ok(!is_over)
    }

    /// Releases all resources, the one acquired last first. Continues after a failure, and returns the first one.
    ///
    /// The rest of an interruptible section is not executed here; the section ends as if it had been. Sections that its
    /// commit invalidates end in the same way, because the run ends.
    fn release_all(&mut self) -> Result<(), Failure> {
        let mut result = Ok(());
        // BOUND: the held resources, at most NESTING_MAX. For an interruptible section, one more round for each commit
        // of another task between two rounds.
        while let Some(&resource) = self.held.last() {
            result = result.and(self.unlock(resource).map(drop));
        }
        result
    }

    /// Ends the job in the protocols, once.
    fn end_job(&mut self) -> Result<(), Failure> {
        if !std::mem::take(&mut self.has_job) {
            return Ok(());
        }
        self.shared.locks.finish(self.id).map_err(|error| self.job_failure(error))
    }

    /// The effective priority of this task if locking `resource` changes it visibly, that is, through a ceiling.
    /// Inheritance is internal to the kernel.
    fn priority(&self, resource: ResourceId) -> Option<Priority> {
        let locks = &self.shared.locks;
        locks.has_ceiling(resource).then(|| locks.executor.effective(self.id))
    }

    fn log_priority(&mut self, at: u64, resource: ResourceId, before: Option<Priority>) {
        let now = self.priority(resource);
        if let Some(priority) = now.filter(|_| now != before) {
            self.burner.log.push(at, Event::Priority(priority));
        }
    }

    fn finished(&mut self, arrival: u64, finish: u64) {
        let response = finish - arrival;
        let seen = &mut self.outcome.observation;
        seen.jobs += 1;
        seen.misses += u64::from(response > self.task.deadline.as_ns());
        if seen.response < Some(Duration::from_ns(response)) {
            seen.response = Some(Duration::from_ns(response));
            self.outcome.worst_job = Some(Job { arrival: Instant::from_ns(arrival), finish: Instant::from_ns(finish) });
        }
        self.outcome.responses.saturating_record(response);
    }

    /// Accounts for a run that was stopped before job `first` finished: this job and those that arrived after it may
    /// have missed their deadlines.
    fn abandon(&mut self, first: u64, has_begun: bool) {
        // Before the start, none has arrived.
        let Some(now) = clock::now_ns().checked_sub(self.start_ns) else { return };
        let (offset, period) = (self.task.offset.as_ns(), self.task.period.as_ns());
        let arrived_by = |at: u64| {
            let at = at.min(self.shared.duration.as_ns().saturating_sub(1));
            Some(at.checked_sub(offset)? / period + 1)
        };
        let arrived = arrived_by(now).unwrap_or(0);
        let late = now.checked_sub(self.task.deadline.as_ns() + 1).and_then(arrived_by).unwrap_or(0);
        self.outcome.observation.misses += late.saturating_sub(first);
        let unlogged = first + u64::from(has_begun);
        // BOUND: the room in the log.
        let logged = arrived.min(unlogged + self.burner.log.room() as u64);
        for index in unlogged..logged {
            self.burner.log.push(self.start_ns + offset + index * period, Event::Arrive);
        }
        self.burner.log.drop_unseen(arrived.saturating_sub(logged.max(unlogged)));
    }

    fn job_failure(&self, error: ResourceError) -> Failure {
        Failure::Job { task: self.id, error }
    }

    fn failure(&self, resource: ResourceId, error: ResourceError) -> Failure {
        Failure::Lock { task: self.id, resource, error }
    }
}

/// A histogram for any response time of the run, with every page touched.
fn histogram(shared: &Shared) -> Histogram<u64> {
    let digits = if shared.system.tasks().len() <= FINE_TASKS_MAX { 3 } else { 2 };
    let longest = shared.cut.as_ns().max(1_000);
    let Ok(mut histogram) = Histogram::new_with_bounds(1, longest, digits) else { panic!("the bounds are valid") };
    // Writes every count, and so every page.
    histogram.reset();
    histogram
}
