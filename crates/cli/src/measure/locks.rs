//! `lockwright measure locks`: every spinlock, uncontended and under contention.

use super::costs::{cost_result, costs_as_text};
use super::figures;
use super::frame::{self, Findings, Frame};
use crate::args::Locks;
use crate::console::Console;
use crate::exit::Exit;
use crate::json::{LockArrivals, LockContention, LocksOutput, MEASURE};
use crate::layout::{Column, Layout};
use crate::seed;
use lockwright_measure::{Arrivals, Contended, ContentionConfig, Costs, contention, cost};

/// Executes `measure locks`.
///
/// # Errors
/// The console has the message.
pub fn locks(arguments: &Locks, console: &Console) -> Result<Exit, Exit> {
    let seed = arguments.seed.unwrap_or_else(seed::draw);
    let frame = Frame::begin(&arguments.results, console)?.works_alone(arguments.alone);
    let costs = frame.costs(|control| cost(arguments.readings, control))?;
    let contended = if arguments.alone {
        Vec::new()
    } else {
        let config = ContentionConfig {
            section: arguments.section,
            requests: arguments.requests,
            rates: arguments.rate.clone(),
            seed,
        };
        frame.measure(|control, tell| contention(&config, control, tell))?
    };
    let output = LocksOutput {
        verb: MEASURE,
        subject: LocksOutput::SUBJECT,
        cycles_per_ns: costs.cycles_per_ns,
        harness_cycles: costs.harness_cycles.round() as u64,
        cold_harness_cycles: costs.cold_harness_cycles.round() as u64,
        realtime: costs.realtime,
        readings: costs.readings(),
        section_ns: arguments.section.as_ns(),
        seed,
        interrupted: frame.control.is_stopped(),
        costs: costs.costs.iter().map(|cost| cost_result(cost, costs.cycles_per_ns)).collect(),
        contention: contended.iter().map(contention_result).collect(),
    };
    frame.end(Findings {
        output: &output,
        text: as_text(&costs, &output, console.layout),
        csv: frame::tables(&output.costs, "contention.csv", &output.contention),
        figures: figures::of_locks(&output),
        interrupted: output.interrupted,
        cut: "incomplete rates and arrivals",
    })
}

fn contention_result(contended: &Contended) -> LockContention {
    let (weighted, top) = (contended.weighted_delay_over_fifo, contended.top_delay_over_fifo);
    LockContention {
        lock: contended.lock.to_owned(),
        arrivals: match contended.arrivals {
            Arrivals::Equal => LockArrivals::Equal,
            Arrivals::Rising => LockArrivals::Rising,
        },
        rate: contended.rate,
        tasks: contended.tasks,
        requests: contended.requests,
        disturbed: contended.disturbed,
        weighted_delay_ns: contended.weighted_delay_ns,
        weighted_delay_over_fifo: weighted.map(|ratio| ratio.median),
        weighted_delay_over_fifo_low: weighted.map(|ratio| ratio.low),
        weighted_delay_over_fifo_high: weighted.map(|ratio| ratio.high),
        top_delay_ns: contended.top_delay_ns,
        top_delay_over_fifo: top.map(|ratio| ratio.median),
        top_delay_over_fifo_low: top.map(|ratio| ratio.low),
        top_delay_over_fifo_high: top.map(|ratio| ratio.high),
        mean_sections_waited: contended.mean_sections_waited,
        max_sections_waited: contended.max_sections_waited,
    }
}

fn as_text(costs: &Costs, output: &LocksOutput, layout: Layout) -> String {
    let mut text = costs_as_text(costs, layout);
    let Some(first) = output.contention.first() else { return text };
    text.push_str(&format!(
        "\n{} tasks, one on each CPU, sections of {} us, seed {}\n\n",
        first.tasks,
        output.section_ns as f64 / 1e3,
        output.seed
    ));
    let each = |of: fn(&LockContention) -> String| output.contention.iter().map(of);
    let us = |ns: Option<f64>| ns.map_or("–".to_owned(), |ns| format!("{:.1}", ns / 1e3));
    let ratio = |ratio: [Option<f64>; 3]| match ratio {
        [Some(median), Some(low), Some(high)] => format!("{median:.2} ({low:.2}–{high:.2})"),
        _ => "–".to_owned(),
    };
    let weighted = |result: &LockContention| {
        ratio([
            result.weighted_delay_over_fifo,
            result.weighted_delay_over_fifo_low,
            result.weighted_delay_over_fifo_high,
        ])
    };
    let top = |result: &LockContention| {
        ratio([result.top_delay_over_fifo, result.top_delay_over_fifo_low, result.top_delay_over_fifo_high])
    };
    let results = || output.contention.iter();
    text.push_str(&layout.draw(&[
        Column::words("arrivals", each(|result| result.arrivals.name().to_owned())),
        Column::numbers("rate", each(|result| result.rate.to_string())),
        Column::words("lock", each(|result| result.lock.clone())),
        Column::numbers("delay us", results().map(|result| us(Some(result.weighted_delay_ns)))).gives_way(3),
        Column::numbers("over fifo", results().map(weighted)),
        Column::numbers("top us", results().map(|result| us(result.top_delay_ns))).gives_way(4),
        Column::numbers("over fifo", results().map(top)),
        Column::numbers("sections", each(|result| format!("{:.2}", result.mean_sections_waited))).gives_way(1),
        Column::numbers("max", each(|result| result.max_sections_waited.to_string())),
        Column::numbers("disturbed", each(|result| result.disturbed.to_string())).gives_way(2),
    ]));
    text.push_str(
        "rate: arrivals of all tasks over the service rate; delay: mean of the tasks' mean waits, weighted by importance; top: mean wait of \
         the most important task; over fifo: divided by that of the ticket lock, median (quartiles) of ten rounds; sections: sections \
         that ended between a request and its own; disturbed: requests delayed by more than sections, which are in no mean\n",
    );
    text
}
