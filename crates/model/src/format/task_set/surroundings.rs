//! The parts of a file to which a task may refer.

use crate::format::diagnostic::{Diagnostic, nearest, shown};
use crate::{Resource, Scheduler};

/// Whether tasks need a CPU in the file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Placing {
    /// Tasks need a CPU if there are several CPUs and the scheduler is not global.
    File,
    /// Tasks need no CPU: the caller places them, or gives the
    /// system another scheduler. A task without a CPU is on CPU 0.
    Caller,
}

/// The parts of a file to which a task may refer.
pub(super) struct Surroundings<'a> {
    /// `None` if the platform is wrong.
    pub(super) cpus: Option<usize>,
    /// `None` if the platform is wrong.
    pub(super) scheduler: Option<Scheduler>,
    pub(super) placing: Placing,
    pub(super) resources: &'a [Resource],
}

/// Returns the diagnostic of a resource that is not declared.
pub(super) fn undeclared(owner: &str, verb: &str, name: &str, surroundings: &Surroundings) -> Diagnostic {
    let names = surroundings.resources.iter().map(|resource| resource.name.as_str()).filter(|name| !name.is_empty());
    let fault = Diagnostic::new(format!("{owner} {verb} {}, which is not declared", shown(name)));
    match nearest(name, names) {
        Some(near) => fault.help(format!("did you mean {}?", shown(near))),
        None => fault.help("declare it: [[resource]] with that name"),
    }
}
