//! The assignment of priorities: the file gives all of them, or a rule assigns all of them.

use super::task::Draft;
use super::{Diagnostic, Faults, named};
use crate::{Task, assign_deadline_monotonic, assign_rate_monotonic};

/// The values of the key `priorities`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Policy {
    RateMonotonic,
    DeadlineMonotonic,
    Explicit,
}

pub(super) const POLICIES: [(&str, Policy); 3] = [
    ("rate-monotonic", Policy::RateMonotonic),
    ("deadline-monotonic", Policy::DeadlineMonotonic),
    ("explicit", Policy::Explicit),
];

/// Assigns a priority to every task, or reports why that is not possible.
pub(super) fn assign(drafts: &mut [Draft], policy: Option<Policy>, faults: &mut Faults) {
    let given = drafts.iter().find(|draft| draft.gives_priority);
    let missing = drafts.iter().find(|draft| !draft.gives_priority);
    match (policy, given, missing) {
        (None | Some(Policy::Explicit), _, None) => {}
        (Some(Policy::Explicit), _, Some(missing)) => {
            let fault = Diagnostic::new(format!("{} has no priority", named("task", &missing.task.name)))
                .at(missing.places.of(Some("name")));
            faults.push(fault.help("priorities = \"explicit\" needs a priority for every task"));
        }
        (None, Some(given), Some(missing)) => {
            let (given_name, missing_name) = (named("task", &given.task.name), named("task", &missing.task.name));
            let fault = Diagnostic::new(format!("{given_name} gives a priority, but {missing_name} does not"))
                .at(missing.places.of(Some("name")))
                .label("no priority");
            faults.push(fault.help("give every task a priority, or none"));
        }
        (Some(Policy::RateMonotonic | Policy::DeadlineMonotonic), Some(given), _) => {
            let name = named("task", &given.task.name);
            let fault = Diagnostic::new(format!("{name} gives a priority, but the platform assigns them all"))
                .at(given.places.of(Some("priority")));
            faults.push(fault.help("remove the priority, or set priorities = \"explicit\""));
        }
        (None | Some(Policy::RateMonotonic), None, Some(_)) => assign_by(drafts, assign_rate_monotonic),
        (Some(Policy::DeadlineMonotonic), None, _) => assign_by(drafts, assign_deadline_monotonic),
        (Some(Policy::RateMonotonic), None, None) => {}
    }
}

fn assign_by(drafts: &mut [Draft], rule: fn(&mut [Task])) {
    let mut tasks: Vec<Task> = drafts.iter_mut().map(|draft| draft.take()).collect();
    rule(&mut tasks);
    for (draft, task) in drafts.iter_mut().zip(tasks) {
        draft.task = task;
    }
}
