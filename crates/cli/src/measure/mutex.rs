//! `lockwright measure mutex`: mutexes alone, and from one owner to the next.

use super::figures;
use crate::args::Mutexes;
use crate::console::Console;
use crate::exit::Exit;
use crate::export::{ResultFolder, csv_text};
use crate::interrupt;
use crate::json::{self, MeasureVerb, MutexHandOver, MutexOutput, MutexSubject};
use crate::progress::Progress;
use crate::table::{self, Column};
use lockwright::Control;
use lockwright::measure::{Costs, HandOver, hand_over, mutex_cost};
use std::path::Path;

/// Does `measure mutex`.
///
/// # Errors
/// What was wrong has been said on the console.
pub fn mutex(arguments: &Mutexes, console: &Console) -> Result<Exit, Exit> {
    let folder = |path: Option<&Path>, option| path.map(|path| ResultFolder::create(path, option, console)).transpose();
    let svg = folder(arguments.svg.as_deref(), "--svg")?;
    let csv = folder(arguments.csv.as_deref(), "--csv")?;
    let control = Control::new();
    let stop = control.clone();
    interrupt::listen(move || stop.stop(), console);
    let costs = mutex_cost(arguments.readings, &control).map_err(|error| super::refuse(&error, console))?;
    if !costs.realtime {
        console.warn("measured without real-time priority: anything may have come between; `lockwright doctor` says what is missing");
    }
    let handed = if arguments.alone {
        Vec::new()
    } else {
        let progress = Progress::new(console, "measuring");
        let mut tell = |done: usize, whole: usize| progress.set(done as u64, whole as u64);
        hand_over(&arguments.waiters, arguments.rounds, &control, &mut tell)
            .map_err(|error| super::refuse(&error, console))?
    };
    let output = MutexOutput {
        verb: MeasureVerb::Measure,
        subject: MutexSubject::Mutex,
        cycles_per_ns: costs.cycles_per_ns,
        harness_cycles: costs.harness_cycles,
        cold_harness_cycles: costs.cold_harness_cycles,
        realtime: costs.realtime,
        readings: costs.readings(),
        interrupted: control.is_stopped(),
        costs: costs.costs.iter().map(super::cost_result).collect(),
        hand_over: handed.iter().map(hand_over_result).collect(),
    };
    // Each goes where it can, whatever becomes of the others.
    let printed = console.print(&if arguments.json { json::to_text(&output) } else { as_text(&costs, &output) });
    let tabled = csv.map_or(Ok(()), |csv| {
        csv.write("cost.csv", csv_text(&output.costs), console)?;
        // No results replace none.
        if output.hand_over.is_empty() {
            Ok(())
        } else {
            csv.write("hand-over.csv", csv_text(&output.hand_over), console)
        }
    });
    let drawn = svg.map_or(Ok(()), |svg| figures::write_mutex(&output, &svg, console));
    if output.interrupted {
        console.warn("interrupted; numbers of waiters that were not measured to their end are left out");
    }
    printed.and(tabled).and(drawn)?;
    Ok(if output.interrupted { Exit::Interrupted } else { Exit::Holds })
}

fn hand_over_result(seen: &HandOver) -> MutexHandOver {
    MutexHandOver {
        lock: seen.lock.to_owned(),
        waiters: seen.waiters,
        cold: seen.cold,
        rounds: seen.ns.len(),
        min_ns: seen.quantile(0.0),
        median_ns: seen.quantile(0.5),
        p90_ns: seen.quantile(0.9),
        max_ns: seen.quantile(1.0),
    }
}

fn as_text(costs: &Costs, output: &MutexOutput) -> String {
    let mut text = super::costs_as_text(costs, &output.costs);
    if output.hand_over.is_empty() {
        return text;
    }
    text.push_str("\nfrom an unlock until the first waiter executes, on one CPU\n\n");
    let each = |of: fn(&MutexHandOver) -> String| output.hand_over.iter().map(of);
    let us = |ns: u64| format!("{:.2}", ns as f64 / 1e3);
    text.push_str(&table::draw(&[
        Column::numbers("waiters", each(|seen| seen.waiters.to_string())),
        Column::words("mutex", each(|seen| seen.lock.clone())),
        Column::words("caches", each(|seen| super::caches(seen.cold).to_owned())),
        Column::numbers("min us", output.hand_over.iter().map(|seen| us(seen.min_ns))),
        Column::numbers("median", output.hand_over.iter().map(|seen| us(seen.median_ns))),
        Column::numbers("p90", output.hand_over.iter().map(|seen| us(seen.p90_ns))),
        Column::numbers("max", output.hand_over.iter().map(|seen| us(seen.max_ns))),
    ]));
    text
}
