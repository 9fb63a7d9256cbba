//! What all machines with owners have in common.

use crate::{Action, Refusal};
use lockwright_model::{Priority, ResourceId, TaskId};

/// A protocol's machine, for whoever carries out the actions of several: each event is decided at once, and a refused one changes
/// nothing. Each machine's own methods of the same names say what they refuse.
pub trait Machine {
    /// Whether it wants to hear of jobs: [`arrive`](Machine::arrive) and [`finish`](Machine::finish).
    fn counts_jobs(&self) -> bool {
        false
    }

    /// Whether the priorities that a decision tells other tasks must be in effect before the next event is decided: whoever carries them out does so, one by one
    /// as they are told, under the same mutual exclusion. Where requests are told their order by priorities, a request decided in between could otherwise be above one that
    /// was not told yet.
    fn settles_others_at_once(&self) -> bool {
        false
    }

    /// A job of `task` is released. It may start unless it is told to [`Hold`](Action::Hold).
    ///
    /// # Errors
    /// Why that cannot be.
    fn arrive(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        let _ = (task, act);
        Ok(())
    }

    /// The job of `task` is done.
    ///
    /// # Errors
    /// Why that cannot be.
    fn finish(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        let _ = (task, act);
        Ok(())
    }

    /// `task` asks for `resource`.
    ///
    /// # Errors
    /// Why that cannot be.
    fn request(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal>;

    /// `task` gives `resource` back.
    ///
    /// # Errors
    /// Why that cannot be.
    fn release(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal>;

    /// `task` executes again, without what it asked for: it was woken without a grant, or has arrived where it was sent.
    ///
    /// # Errors
    /// Why that cannot be.
    fn woken(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        let _ = (task, act);
        Err(Refusal::NotWaiting)
    }

    /// A waiting task gives up.
    ///
    /// # Errors
    /// Why that cannot be.
    fn cancel(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal>;

    /// The base priority of `task` changes.
    ///
    /// # Errors
    /// Why that cannot be.
    fn set_base(&mut self, task: TaskId, base: Priority, act: &mut dyn FnMut(Action)) -> Result<(), Refusal>;
}
