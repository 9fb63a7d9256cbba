//! How far execution times and blocking can grow before a deadline is missed.

mod alone;
mod apart;
mod bisection;
mod clusters;
mod crew;
mod demands;
mod forms;
mod greatest;
mod growth;
mod joint;
mod locals;
mod rooms;
mod scale;
mod shape;
mod wide;

use crate::analyse;
use crate::rows::bound::Unbounded;
use crate::rows::mutant::Omission;
use crate::rows::tables::Tables;
use crate::system::{across, scheduled};
use growth::Progress;
pub use growth::{FACTOR_MAX, Growth, Sensitivity};
use lockwright_model::{Overheads, Protocol, Scheduler, System};
use scale::Scale;

/// Finds how far execution times and blocking can grow with all deadlines met.
///
/// The factors are found by bisection over the verdict of [`analyse`], or of [`scheduled()`](crate::scheduled()) under
/// other schedulers, or by searches for the same factors. The verdict never improves as execution times grow, except
/// where an analysis ends for want of steps: there, the factors can be other ones that are safe as well. Scaled times
/// are rounded up, so no factor is too large. `protocol` governs the resources for which the system names no protocol.
/// Overheads are charged anew to each scaled system, so they do not grow. The homes of resources do not change.
///
/// `go_on` is called repeatedly with the number of factors found and the number of all factors. If it returns `false`,
/// the search ends and the result is `None`. Other threads may take part in the search; `go_on` is called by the
/// caller's.
///
/// # Examples
/// ```
/// use lockwright_analysis::{Growth, sensitivity};
/// use lockwright_model::format::parse_system;
/// use lockwright_model::{Duration, Overheads, Protocol};
/// let system = parse_system(
///     r#"
///     [[resource]]
///     name = "bus"
///
///     [[task]]
///     name = "control"
///     period = "10 ms"
///     body = [{ run = "1 ms" }, { lock = "bus" }, { run = "1 ms" }, { unlock = "bus" }]
///
///     [[task]]
///     name = "log"
///     period = "50 ms"
///     body = [{ lock = "bus" }, { run = "4 ms" }, { unlock = "bus" }, { run = "10 ms" }]
///     "#,
/// )
/// .expect("a valid task set");
/// let found = sensitivity(&system, &Overheads::default(), Protocol::Icpp, |_, _| true).expect("not interrupted");
/// // The deadline of `control` is 10 ms, and its response time 6 ms.
/// assert_eq!(found.all, Growth::Permille(1666));
/// assert_eq!(found.tolerated[0].1, Some(Duration::from_ms(4)));
/// ```
pub fn sensitivity(
    system: &System,
    overheads: &Overheads,
    protocol: Protocol,
    go_on: impl FnMut(usize, usize) -> bool,
) -> Option<Sensitivity> {
    // Homes that are derived from execution times would change as these grow.
    let has_homes = |resource| system.protocol_of(resource, protocol).has_homes();
    let at_home = system.resource_ids().any(has_homes).then(|| system.clone().with_homes());
    let system = at_home.as_ref().unwrap_or(system);
    let whole = 1 + 2 * system.tasks().len() + system.resources().len();
    let progress = Progress::new(whole, go_on);
    if has_hazard(system, protocol) {
        return progress.asked().then(|| Sensitivity::broken(system));
    }
    let scale = Scale::new(system, overheads, protocol);
    if let Some(scale) = &scale
        && system.has_clusters()
        && let Some(found) = clusters::find(scale, &progress)?
    {
        return Some(found);
    }
    if let Some(scale) = scale.filter(|_| !system.has_clusters())
        && let Some(tables) = joint_tables(&scale)
    {
        match across::ruling(&tables) {
            None => return forms::find(&tables, &scale, &progress),
            Some(ruling) => {
                if let Some(found) = wide::find(&tables, &scale, ruling, &progress)? {
                    return Some(found);
                }
            }
        }
    }
    let is_apart = |_: &_| overheads.charges_nothing() && !is_unsettled(system, protocol);
    match apart::processors(system, protocol).filter(is_apart) {
        Some(processors) => apart::find(system, &processors, protocol, &progress),
        None => bisection::find(system, overheads, protocol, &progress),
    }
}

/// Returns whether a task has no bound, whatever the execution times are.
fn has_hazard(system: &System, protocol: Protocol) -> bool {
    match system.scheduler() {
        Scheduler::PFp | Scheduler::CFp => {
            analyse(system, protocol).tasks.iter().any(|task| task.unbounded.as_ref().is_some_and(is_hazard))
        }
        _ => scheduled::uncovered(system).is_some(),
    }
}

/// Returns whether the analysis gives up on a task.
fn is_unsettled(system: &System, protocol: Protocol) -> bool {
    analyse(system, protocol).tasks.iter().any(|task| task.unbounded == Some(Unbounded::Unsettled))
}

/// Returns the tables of a system that [`forms`] or [`wide`] covers, or `None` for any other system.
fn joint_tables<'s>(scale: &'s Scale<'_>) -> Option<Tables<'s>> {
    let tables = Tables::new(&scale.charged, scale.protocol, Omission::NOTHING);
    let is_covered = across::ruling(&tables).is_some() || tables.cutoffs.iter().all(Option::is_none);
    is_covered.then_some(tables)
}

/// Returns whether the reason does not depend on execution times.
fn is_hazard(reason: &Unbounded) -> bool {
    !matches!(reason, Unbounded::BeyondPeriod | Unbounded::DependsOn { .. } | Unbounded::Unsettled)
}

#[cfg(test)]
mod tests;
