//! Scripted changes of base priorities, which a thread above all tasks makes on time.

use super::config::PriorityChange;
use super::failure::Failure;
use super::shared::{Nap, Shared};
use lockwright_model::{Event, Instant, Record};
use lockwright_sys::clock;

/// Makes `changes`, which are in order of time, and logs each. Returns the first failure.
///
/// BOUND: the last change, or the end of the run.
pub(super) fn play(shared: &Shared, nap: &Nap, changes: &[PriorityChange], log: &mut Vec<Record>) -> Option<Failure> {
    for change in changes {
        if !nap.until(shared.start_ns().saturating_add(change.at.as_ns())) {
            return None;
        }
        if let Err(error) = shared.locks.set_base(change.task, change.priority) {
            return Some(Failure::Change { task: change.task, error });
        }
        let event = Event::Priority(shared.locks.executor.effective(change.task));
        let at = Instant::from_ns(clock::now_ns().saturating_sub(shared.start_ns()));
        log.push(Record { at, task: change.task, event });
    }
    None
}
