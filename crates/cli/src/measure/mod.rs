//! `lockwright measure`: what locks cost on this machine.

mod figures;
mod frame;
mod ics;
mod locks;
mod mutex;
mod protocols;

use crate::args::Measure;
use crate::console::Console;
use crate::exit::Exit;
use crate::json::LockCost;
use crate::layout::{Column, Layout};
use lockwright_measure::{Cost, Costs};

/// Executes `measure`.
///
/// # Errors
/// The console has the message.
pub fn measure(arguments: &Measure, console: &Console) -> Result<Exit, Exit> {
    match arguments {
        Measure::Locks(arguments) => locks::locks(arguments, console),
        Measure::Mutex(arguments) => mutex::mutex(arguments, console),
        Measure::Protocols(arguments) => protocols::protocols(arguments, console),
        Measure::Ics(arguments) => ics::ics(arguments, console),
    }
}

fn cost_result(cost: &Cost) -> LockCost {
    LockCost {
        lock: cost.lock.to_owned(),
        cold: cost.cold,
        min_cycles: cost.quantile(0.0),
        median_cycles: cost.quantile(0.5),
        p999_cycles: cost.quantile(0.999),
        max_cycles: cost.quantile(1.0),
    }
}

/// Name of the state of the caches.
fn caches(cold: bool) -> &'static str {
    if cold { "cold" } else { "warm" }
}

/// A table of costs without contention.
fn costs_as_text(measured: &Costs, costs: &[LockCost], layout: Layout) -> String {
    let readings = measured.readings();
    let each = |of: fn(&LockCost) -> String| costs.iter().map(of);
    let mut text = format!(
        "uncontended lock and unlock: {} readings each, in cycles of the time-stamp counter ({:.2} per ns)\n\n",
        readings, measured.cycles_per_ns
    );
    text.push_str(&layout.draw(&[
        Column::words("lock", each(|cost| cost.lock.clone())),
        Column::words("caches", each(|cost| caches(cost.cold).to_owned())),
        Column::numbers("min", each(|cost| cost.min_cycles.to_string())),
        Column::numbers("median", each(|cost| cost.median_cycles.to_string())),
        Column::numbers("p99.9", each(|cost| cost.p999_cycles.to_string())),
        Column::numbers("max", each(|cost| cost.max_cycles.to_string())),
    ]));
    text.push_str(&format!(
        "the cycles of an empty reading are subtracted: {} (warm) and {} (cold)\n",
        measured.harness_cycles, measured.cold_harness_cycles
    ));
    text
}
