//! The interface of all machines with owners.

use crate::{Action, Refusal};
use lockwright_model::{Instant, Priority, ResourceId, TaskId};

/// The machine of a protocol. Each event is decided at once. A refused event changes nothing.
///
/// Tasks and resources that the machine does not have are refused with [`Refusal::UnknownTask`] and
/// [`Refusal::UnknownResource`].
pub trait Machine {
    /// Returns whether the machine needs the events of jobs: [`arrive`](Machine::arrive) and
    /// [`finish`](Machine::finish).
    fn counts_jobs(&self) -> bool {
        false
    }

    /// Returns whether the priorities that a decision gives to other tasks must be in effect before the next event is
    /// decided.
    ///
    /// If so, the caller applies them one by one, in the order of the actions, under the same mutual exclusion. This is
    /// necessary where priorities express the order of requests: otherwise a request that is decided in between could
    /// be above an earlier one whose task does not have its new priority yet.
    fn settles_others_at_once(&self) -> bool {
        false
    }

    /// A job of `task` is released. It may start unless the machine answers [`Action::Hold`].
    ///
    /// # Errors
    /// [`Refusal::Job`] if the machine counts jobs, and the task has one already.
    fn arrive(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        let _ = (task, act);
        Ok(())
    }

    /// As [`arrive`](Machine::arrive), for a job whose absolute deadline is `due`. Only a machine that schedules by
    /// deadlines distinguishes the two: it treats a job that arrives without a deadline as one that is due last.
    ///
    /// # Errors
    /// Those of [`arrive`](Machine::arrive).
    fn arrive_due(&mut self, task: TaskId, due: Instant, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        let _ = due;
        self.arrive(task, act)
    }

    /// The job of `task` is complete.
    ///
    /// # Errors
    /// [`Refusal::Job`] if the machine counts jobs, and the task has none that can end: a job cannot end while it is
    /// held, or while it holds or waits for a resource.
    fn finish(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        let _ = (task, act);
        Ok(())
    }

    /// `task` requests `resource`. The machine answers [`Action::Grant`], or an action that makes the task wait.
    ///
    /// # Errors
    /// [`Refusal::AlreadyHeld`] and [`Refusal::Waiting`] in all machines; [`Refusal::AboveCeiling`],
    /// [`Refusal::Nested`], [`Refusal::TooDeep`], [`Refusal::Deadlock`] and [`Refusal::Job`] as the protocol requires.
    fn request(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal>;

    /// As [`request`](Machine::request), for reading. Only reader-writer protocols distinguish the two: under every
    /// other protocol, a section that reads is exclusive.
    ///
    /// # Errors
    /// Those of [`request`](Machine::request).
    fn request_read(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.request(task, resource, act)
    }

    /// `task` releases `resource`.
    ///
    /// # Errors
    /// [`Refusal::NotHeld`], or [`Refusal::Waiting`] if the task waits for another resource.
    fn release(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal>;

    /// `task` executes again without the resource that it requested: it was woken without a grant, or it has arrived
    /// where it was sent.
    ///
    /// # Errors
    /// [`Refusal::NotWaiting`]. A machine that only wakes tasks with a grant always refuses.
    fn woken(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        let _ = (task, act);
        Err(Refusal::NotWaiting)
    }

    /// A waiting task gives up.
    ///
    /// # Errors
    /// [`Refusal::NotWaiting`]: the task may have been granted the resource already.
    fn cancel(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal>;

    /// The base priority of `task` changes.
    ///
    /// # Errors
    /// [`Refusal::UnknownTask`].
    fn set_base(&mut self, task: TaskId, base: Priority, act: &mut dyn FnMut(Action)) -> Result<(), Refusal>;
}
