//! How far execution times can grow before a deadline breaks.

use crate::analyse;
use crate::bound::Unbounded;
use crate::response::is_schedulable;
use lockwright_model::{Duration, Protocol, ResourceId, Step, System};

/// The largest factor a set of execution times can take with every deadline met.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Growth {
    /// In thousandths; 1000 is as it is now, less says how far they must shrink.
    Permille(u64),
    /// No factor helps: a deadline breaks, or a bound is missing, even with next to nothing.
    Broken,
    /// No factor up to [`FACTOR_MAX`] breaks a deadline.
    Unlimited,
}

/// The largest factor tried, in thousandths: a million times.
pub const FACTOR_MAX: u64 = 1_000_000_000;

/// What [`sensitivity`] found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sensitivity {
    /// All execution times together, sections included.
    pub all: Growth,
    /// The sections on one resource, by resource id.
    pub resources: Vec<(ResourceId, Growth)>,
}

/// Finds the factors by bisection over [`analyse`], whose verdict only worsens as execution times grow. Scaled times
/// are rounded up, so a factor is never too large.
///
/// `go_on` is told, again and again, how many of how many factors are found; `None` where it says no.
pub fn sensitivity(
    system: &System,
    protocol: Protocol,
    mut go_on: impl FnMut(usize, usize) -> bool,
) -> Option<Sensitivity> {
    let whole = 1 + system.resources().len();
    // A task that has no bound, whatever the times are, has none with others.
    let has_hazard = analyse(system, protocol).tasks.iter().any(|task| task.unbounded.as_ref().is_some_and(is_hazard));
    let mut find = |done, resource| {
        if has_hazard { Some(Growth::Broken) } else { growth(system, protocol, resource, || go_on(done, whole)) }
    };
    let all = find(0, None)?;
    let resources = system.resource_ids().map(|resource| Some((resource, find(1 + resource.index(), Some(resource))?)));
    Some(Sensitivity { all, resources: resources.collect::<Option<_>>()? })
}

/// Whether the reason has nothing to do with execution times.
fn is_hazard(reason: &Unbounded) -> bool {
    !matches!(reason, Unbounded::BeyondPeriod | Unbounded::DependsOn { .. } | Unbounded::Unsettled)
}

fn growth(
    system: &System,
    protocol: Protocol,
    resource: Option<ResourceId>,
    mut go_on: impl FnMut() -> bool,
) -> Option<Growth> {
    if resource.is_some_and(|resource| system.users(resource).is_empty()) {
        return Some(Growth::Unlimited);
    }
    let mut holds =
        |permille| go_on().then(|| scaled(system, resource, permille).is_some_and(|s| is_schedulable(&s, protocol)));
    // Every task of the last system that held, and the first that did not.
    let (mut holding, mut breaking) = if holds(1000)? {
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
    // BOUND: thirty halvings.
    while breaking - holding > 1 {
        let middle = holding + (breaking - holding) / 2;
        if holds(middle)? {
            holding = middle;
        } else {
            breaking = middle;
        }
    }
    Some(Growth::Permille(holding))
}

/// The system with all runs, or those inside sections on `resource`, taken `permille` thousandths of; `None` where
/// that is no valid system any more.
fn scaled(system: &System, resource: Option<ResourceId>, permille: u64) -> Option<System> {
    let mut tasks = system.tasks().to_vec();
    for task in &mut tasks {
        let mut wcet = Duration::ZERO;
        let mut inside = resource.is_none();
        for step in &mut task.body {
            match step {
                Step::Run(time) => {
                    if inside {
                        let ns = u128::from(time.as_ns()) * u128::from(permille);
                        *time = Duration::from_ns(u64::try_from(ns.div_ceil(1000)).ok()?);
                    }
                    wcet = wcet.checked_add(*time)?;
                }
                Step::Lock(locked) if Some(*locked) == resource => inside = true,
                Step::Unlock(locked) if Some(*locked) == resource => inside = false,
                Step::Lock(_) | Step::Unlock(_) => {}
            }
        }
        task.wcet = wcet;
    }
    let name = system.name().to_owned();
    System::new(name, system.cpus(), system.protocol(), system.resources().to_vec(), tasks).ok()
}
