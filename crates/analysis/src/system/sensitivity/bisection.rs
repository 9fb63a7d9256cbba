//! The search for factors in any system: by bisection over verdicts.

use super::demands::{self, FORM_TERMS_MAX};
use super::growth::{FACTOR_MAX, Growth, Progress, Sensitivity};
use super::scale::{Part, halve, lengthened, of_parts, scaled};
use crate::charge;
use crate::system::response::is_schedulable;
use crate::system::scheduled::{self, Refutation};
use crate::uniprocessor::Effort;
use lockwright_model::{DURATION_MAX, Overheads, Protocol, Scheduler, System, TaskId};
use std::cell::{Cell, RefCell};

/// The system whose growth is searched for.
pub(super) struct Subject<'a> {
    pub(super) system: &'a System,
    pub(super) overheads: &'a Overheads,
    pub(super) protocol: Protocol,
    /// Under partitioned EDF: the refutations of scaled systems found so far.
    pub(super) refutations: RefCell<Vec<Refutation>>,
    /// Whether the system is schedulable unchanged, once that is known.
    pub(super) unchanged: Cell<Option<bool>>,
}

impl<'a> Subject<'a> {
    pub(super) fn new(system: &'a System, overheads: &'a Overheads, protocol: Protocol) -> Self {
        Self { system, overheads, protocol, refutations: RefCell::new(Vec::new()), unchanged: Cell::new(None) }
    }

    /// Returns whether the unchanged system meets all deadlines, or `None` if the test was interrupted. The effort is
    /// not limited, so the verdict is that of the test itself.
    pub(super) fn holds_unchanged(&self, go_on: &dyn Fn() -> bool) -> Option<bool> {
        if self.unchanged.get().is_none() {
            self.unchanged.set(Some(self.holds_within(self.system, Effort { go_on, ..Effort::FULL })?));
        }
        self.unchanged.get()
    }

    /// Returns whether a scaled system meets all deadlines, or `None` if the test was interrupted.
    pub(super) fn holds(&self, system: &System, go_on: &dyn Fn() -> bool) -> Option<bool> {
        self.holds_within(system, Effort { terms: FORM_TERMS_MAX, go_on })
    }

    fn holds_within(&self, system: &System, effort: Effort<'_>) -> Option<bool> {
        let go_on = effort.go_on;
        if !go_on() {
            return None;
        }
        if matches!(system.scheduler(), Scheduler::PFp | Scheduler::CFp) {
            // Only the tasks of the system are judged. The interrupts follow them.
            let charged = charge(system, self.overheads, self.protocol);
            return Some(charged.is_ok_and(|charged| is_schedulable(&charged, self.protocol, system.tasks().len())));
        }
        let verdict = scheduled::verdict(system, self.overheads, effort).ok()?;
        if let Err(Some(refutation)) = verdict {
            let mut known = self.refutations.borrow_mut();
            if !known.contains(&refutation) {
                known.push(refutation);
            }
        }
        Some(verdict.is_ok())
    }

    /// Returns whether a known refutation refutes a scaled system as well.
    fn is_refuted(&self, system: &System) -> bool {
        scheduled::is_refuted(system, self.overheads, &self.refutations.borrow())
    }

    /// Returns the greatest amount for which `form` is schedulable, or `None` if the search was interrupted. `form` is
    /// schedulable for `holding`, and not for `breaking`.
    ///
    /// Under partitioned EDF, the verdict is expensive near full utilization, and a known refutation is cheap to check.
    /// The greatest amount without a known refutation is therefore tried first. If it is schedulable, it is the result.
    fn bisect(
        &self,
        (mut holding, mut breaking): (u64, u64),
        form: impl Fn(u64) -> Option<System>,
        go_on: &dyn Fn() -> bool,
    ) -> Option<u64> {
        let mut knows = self.system.scheduler() == Scheduler::PEdf;
        // BOUND: each round except the last halves the distance, or adds one interval to the finite number of those in
        // which the demand grows.
        while breaking - holding > 1 {
            let mut tried = holding + (breaking - holding) / 2;
            if knows {
                let unrefuted = halve((holding, breaking), |amount| {
                    go_on().then(|| form(amount).is_some_and(|system| !self.is_refuted(&system)))
                })?;
                if unrefuted == holding {
                    break;
                }
                let known = self.refutations.borrow().len();
                if form(unrefuted).map_or(Some(false), |system| self.holds(&system, go_on))? {
                    return Some(unrefuted);
                }
                breaking = unrefuted;
                if self.refutations.borrow().len() > known {
                    continue;
                }
                // This verdict needs too much effort. Smaller amounts need less.
                knows = false;
                tried = holding + (breaking - holding) / 2;
                if tried == holding {
                    break;
                }
            }
            if form(tried).map_or(Some(false), |system| self.holds(&system, go_on))? {
                holding = tried;
            } else {
                breaking = tried;
            }
        }
        Some(holding)
    }
}

/// Returns the result for any system. Each scaled system is analysed anew.
pub(super) fn find(
    system: &System,
    overheads: &Overheads,
    protocol: Protocol,
    progress: &Progress<impl FnMut(usize, usize) -> bool>,
) -> Option<Sensitivity> {
    let subject = Subject::new(system, overheads, protocol);
    let asked = || progress.asked();
    if subject.holds_unchanged(&asked)?
        && let Some(found) = demands::find(system, overheads, progress)?
    {
        return Some(found);
    }
    let room = |task| {
        let most = tolerance(&subject, task, &asked)?;
        progress.add();
        Some(most)
    };
    let rooms = system.task_ids().map(room).collect::<Option<Vec<_>>>()?;
    of_parts(system, rooms, progress, |part| growth(&subject, part, &asked))
}

/// Returns the longest additional blocking of a job of `task`, or `None` inside if a deadline is missed without it. The
/// outer `None` stands for an interrupted search.
pub(super) fn tolerance(subject: &Subject<'_>, task: TaskId, go_on: &dyn Fn() -> bool) -> Option<Option<u64>> {
    if !subject.holds_unchanged(go_on)? {
        return Some(None);
    }
    // A response within the deadline leaves no more room than this.
    let breaking = subject.system.task(task).deadline.as_ns().min(DURATION_MAX.as_ns()) + 1;
    let most = subject.bisect((0, breaking), |extra| lengthened(subject.system, task, extra), go_on)?;
    Some(Some(most))
}

/// Returns the greatest factor of a part, or `None` if the search was interrupted.
pub(super) fn growth(subject: &Subject<'_>, part: Part, go_on: &dyn Fn() -> bool) -> Option<Growth> {
    let system = subject.system;
    if matches!(part, Part::Sections(resource) if system.users(resource).is_empty()) {
        return Some(Growth::Unlimited);
    }
    let form = |permille| scaled(system, part, permille);
    let holds = |permille| form(permille).map_or(Some(false), |scaled| subject.holds(&scaled, go_on));
    // A factor with which all deadlines are met, and one with which one is missed.
    let between = if subject.holds_unchanged(go_on)? {
        let mut factor = 1000;
        loop {
            if factor == FACTOR_MAX {
                return Some(Growth::Unlimited);
            }
            let next = (factor * 2).min(FACTOR_MAX);
            if !holds(next)? {
                break (factor, next);
            }
            factor = next;
        }
    } else if holds(1)? {
        (1, 1000)
    } else {
        return Some(Growth::Broken);
    };
    subject.bisect(between, form, go_on).map(Growth::Permille)
}
