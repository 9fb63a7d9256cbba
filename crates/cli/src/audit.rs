//! The audit of a run: the kernel's trace beside the orders of the protocols.

use crate::json;
use crate::tame::line;
use crate::units;
use lockwright_engine::{Audit, Departed, Departure};
use lockwright_model::System;

/// The most departures that are printed.
const SHOWN: usize = 10;

/// The audit in a sentence, and what departs from the orders.
pub(crate) fn text(audit: &Audit, system: &System) -> String {
    if audit.lost > 0 {
        return "\nAudit: none, because records were lost.\n".to_owned();
    }
    let judged = format!(
        "{}, {} and {} in the kernel's trace, beside {}",
        units::count(audit.switches, "context switch").replace("switchs", "switches"),
        units::count(audit.boosts, "inherited priority").replace("prioritys", "priorities"),
        units::count(audit.wake_ups, "wake-up"),
        units::count(audit.orders, "order"),
    );
    if audit.departed == 0 {
        return format!("\nAudit: {judged}: all were ordered.\n");
    }
    let mut text = format!("\nAudit: {judged}: {} not ordered:\n", audit.departed);
    for departure in audit.departures.iter().take(SHOWN) {
        let name = &system.task(departure.task).name;
        text.push_str(&(line(&format!("  {name}, at {}: {}", departure.at, what(departure, system))) + "\n"));
    }
    let rest = audit.departed.saturating_sub(SHOWN.min(audit.departures.len()) as u64);
    if rest > 0 {
        text.push_str(&format!("  and {rest} more\n"));
    }
    text
}

/// Why there is no audit although the run was traced.
pub(crate) fn lost(audit: &Audit) -> Option<String> {
    let records = || units::count(audit.lost, "record");
    (audit.lost > 0).then(|| format!("no audit: {} of the kernel or of the orders are missing", records()))
}

/// The departure in words, with the names of tasks.
fn what(departure: &Departure, system: &System) -> String {
    match &departure.what {
        Departed::WakeUp { by: Some(by) } => format!("was woken by `{}`, which was not ordered", system.task(*by).name),
        what => what.to_string(),
    }
}

pub(crate) fn as_json(audit: &Audit, system: &System) -> json::AuditResult {
    let departure = |departure: &Departure| json::DepartureResult {
        task: system.task(departure.task).name.clone(),
        at_ns: departure.at.as_ns(),
        what: what(departure, system),
    };
    json::AuditResult {
        switches: audit.switches,
        boosts: audit.boosts,
        wake_ups: audit.wake_ups,
        orders: audit.orders,
        lost: audit.lost,
        departed: audit.departed,
        departures: audit.departures.iter().map(departure).collect(),
    }
}
