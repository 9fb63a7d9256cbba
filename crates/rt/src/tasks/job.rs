//! Jobs and their critical sections, which end when their values are dropped.

use super::error::TaskError;
use super::set::Member;
use lockwright_model::{Mode, ResourceId};
use lockwright_sys::futex::Deadline;

impl Member {
    /// Begins a job. Under `srp`, under `omlp` in a cluster, and under the scheduler `p-edf`, returns when the job may
    /// start. Under `p-edf` its deadline is the relative deadline of the task from now; see [`Member::begin_due`].
    ///
    /// # Errors
    /// [`TaskError::Begun`] if another job of the task has not ended; [`TaskError::Lock`].
    ///
    /// # Bound
    /// Under `srp`, one section of a less urgent task. Under `omlp` in a cluster, one request of a less urgent task,
    /// from its issue to its release. Under `p-edf`, the jobs of its CPU with earlier deadlines, one section of a job
    /// with a later one, with the spinning before it, and what the threads of the CPU execute between their jobs; a job
    /// that suspends itself keeps its place, and later jobs wait for it. Under the others, one decision.
    pub fn begin(&self) -> Result<Job<'_>, TaskError> {
        self.begin_job()?;
        Ok(Job { member: self })
    }

    /// As [`Member::begin`], for a job whose absolute deadline is `due`: the release of the job plus the relative
    /// deadline of the task. A thread that begins a job late, for example because the job before took too long, gives
    /// the job the deadline that it would have had in time. The deadline has no effect under other schedulers than
    /// `p-edf`.
    ///
    /// # Errors
    /// Those of [`Member::begin`].
    ///
    /// # Bound
    /// That of [`Member::begin`], if the job is late only because the job before it was. A job with an earlier deadline
    /// than that, or one that begins late for another reason, may also wait for a whole job with a later deadline,
    /// which had started above a section that holds this job back.
    pub fn begin_due(&self, due: Deadline) -> Result<Job<'_>, TaskError> {
        self.begin_job_due(due)?;
        Ok(Job { member: self })
    }
}

/// A job, which ends when this value is dropped, even during a panic.
#[derive(Debug)]
#[must_use = "the job ends when this is dropped"]
pub struct Job<'a> {
    member: &'a Member,
}

impl Job<'_> {
    /// Locks a resource until the returned section is dropped.
    ///
    /// # Errors
    /// [`TaskError::NotAUser`]; [`TaskError::Lock`] if the protocol refuses or a system call failed. After an error the
    /// resource is not held.
    ///
    /// # Bound
    /// The protocol's; see its page in `docs/`.
    pub fn lock(&self, resource: ResourceId) -> Result<Section<'_>, TaskError> {
        self.lock_in(resource, Mode::Write)
    }

    /// Locks a resource to read it until the returned section is dropped. Under `phase_fair` and `task_fair`, other
    /// jobs may read it at the same time. Under every other protocol this is [`Job::lock`].
    ///
    /// A task set from a [`System`](lockwright_model::System) declares which sections read; under these two protocols a
    /// job can neither read a resource that its task only writes, nor write one that it only reads, because the bounds
    /// would not hold.
    ///
    /// # Errors
    /// Those of [`Job::lock`].
    ///
    /// # Bound
    /// The protocol's; see its page in `docs/`.
    pub fn read(&self, resource: ResourceId) -> Result<Section<'_>, TaskError> {
        self.lock_in(resource, Mode::Read)
    }

    pub(super) fn lock_in(&self, resource: ResourceId, mode: Mode) -> Result<Section<'_>, TaskError> {
        let waited = self.member.lock(resource, mode)?;
        Ok(Section { member: self.member, resource, waited })
    }

    /// Ends the job like dropping it does, and returns the error if that fails.
    ///
    /// # Errors
    /// [`TaskError::Lock`] if a system call failed.
    pub fn end(self) -> Result<(), TaskError> {
        let member = self.member;
        std::mem::forget(self);
        member.end()
    }
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        // A level that could not be set is set with the next change of the task.
        let _ = self.member.end();
    }
}

/// A critical section, which ends when this value is dropped, even during a panic. A section that is forgotten
/// (`std::mem::forget`) ends with its job.
#[derive(Debug)]
#[must_use = "the section ends when this is dropped"]
pub struct Section<'a> {
    member: &'a Member,
    resource: ResourceId,
    waited: bool,
}

impl Section<'_> {
    /// Whether the resource was held when it was requested.
    #[must_use]
    pub fn waited(&self) -> bool {
        self.waited
    }

    /// Ends the section like dropping it does, and returns the error if that fails.
    ///
    /// # Errors
    /// [`TaskError::Lock`] if a system call failed; the resource is nevertheless unlocked.
    pub fn end(self) -> Result<(), TaskError> {
        let (member, resource) = (self.member, self.resource);
        std::mem::forget(self);
        member.unlock(resource)
    }
}

impl Drop for Section<'_> {
    fn drop(&mut self) {
        let _ = self.member.unlock(self.resource);
    }
}
