//! `lockwright measure mutex`: uncontended mutexes, and hand-overs.

use super::costs::{caches, cost_result, costs_as_text};
use super::figures;
use super::frame::{self, Findings, Frame};
use crate::args::Mutexes;
use crate::console::Console;
use crate::exit::Exit;
use crate::json::{MEASURE, MutexHandOver, MutexOutput};
use crate::layout::{Column, Layout};
use lockwright_measure::{Costs, HandOver, hand_over, mutex_cost};

/// Executes `measure mutex`.
///
/// # Errors
/// The console has the message.
pub fn mutex(arguments: &Mutexes, console: &Console) -> Result<Exit, Exit> {
    let frame = Frame::begin(&arguments.results, console)?.works_alone(arguments.alone);
    let costs = frame.costs(|control| mutex_cost(arguments.readings, control))?;
    let handed = if arguments.alone {
        Vec::new()
    } else {
        frame.measure(|control, tell| hand_over(&arguments.waiters, arguments.rounds, control, tell))?
    };
    let output = MutexOutput {
        verb: MEASURE,
        subject: MutexOutput::SUBJECT,
        cycles_per_ns: costs.cycles_per_ns,
        harness_cycles: costs.harness_cycles.round() as u64,
        cold_harness_cycles: costs.cold_harness_cycles.round() as u64,
        realtime: costs.realtime,
        readings: costs.readings(),
        interrupted: frame.control.is_stopped(),
        costs: costs.costs.iter().map(|cost| cost_result(cost, costs.cycles_per_ns)).collect(),
        hand_over: handed.iter().map(hand_over_result).collect(),
    };
    frame.end(Findings {
        output: &output,
        text: as_text(&costs, &output, console.layout),
        csv: frame::tables(&output.costs, "hand-over.csv", &output.hand_over),
        figures: figures::of_mutexes(&output),
        interrupted: output.interrupted,
        cut: "incomplete numbers of waiters",
    })
}

fn hand_over_result(seen: &HandOver) -> MutexHandOver {
    MutexHandOver {
        lock: seen.lock.to_owned(),
        waiters: seen.waiters,
        cold: seen.cold,
        rounds: seen.ns.count(),
        min_ns: seen.ns.quantile(0.0),
        median_ns: seen.ns.quantile(0.5),
        p90_ns: seen.ns.quantile(0.9),
        max_ns: seen.ns.quantile(1.0),
    }
}

fn as_text(costs: &Costs, output: &MutexOutput, layout: Layout) -> String {
    let mut text = costs_as_text(costs, layout);
    if output.hand_over.is_empty() {
        return text;
    }
    text.push_str("\nfrom an unlock until the first waiter executes, on one CPU\n\n");
    let each = |of: fn(&MutexHandOver) -> String| output.hand_over.iter().map(of);
    let us = |ns: u64| format!("{:.2}", ns as f64 / 1e3);
    text.push_str(&layout.draw(&[
        Column::numbers("waiters", each(|seen| seen.waiters.to_string())),
        Column::words("mutex", each(|seen| seen.lock.clone())),
        Column::words("caches", each(|seen| caches(seen.cold).to_owned())),
        Column::numbers("min us", output.hand_over.iter().map(|seen| us(seen.min_ns))),
        Column::numbers("median", output.hand_over.iter().map(|seen| us(seen.median_ns))),
        Column::numbers("p90", output.hand_over.iter().map(|seen| us(seen.p90_ns))),
        Column::numbers("max", output.hand_over.iter().map(|seen| us(seen.max_ns))),
    ]));
    text
}
