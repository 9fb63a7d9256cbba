//! `lockwright measure ics`: the cost of interruptible sections, and the response times with and without them.

use super::figures;
use super::frame::{Findings, Frame};
use crate::args::MeasuredIcs;
use crate::console::Console;
use crate::exit::Exit;
use crate::export::csv_text;
use crate::json::{IcsBin, IcsCost, IcsOperation, IcsOutput, IcsResponses, IcsStrategy, MEASURE};
use crate::layout::{Column, Layout};
use crate::units;
use lockwright::ics::Kind;
use lockwright_measure::{Experiment, SectionCosts, ics_experiments, section_costs};
use lockwright_model::Duration;
use std::collections::BTreeMap;

/// Executes `measure ics`.
///
/// # Errors
/// The console has the message.
pub fn ics(arguments: &MeasuredIcs, console: &Console) -> Result<Exit, Exit> {
    let frame = Frame::begin(&arguments.results, console)?.works_alone(arguments.alone);
    let measured = frame.measure(|control, _| section_costs(arguments.readings, control))?;
    frame.warn_unless(measured.realtime);
    let tick_ns = arguments.tick.as_ns();
    let seen = if arguments.alone {
        Vec::new()
    } else {
        let tick = std::time::Duration::from_nanos(tick_ns);
        console.note(format!(
            "five mechanisms in two settings, {} with each, ticks of {}",
            units::count(arguments.operations as u64, "operation"),
            units::text(arguments.tick)
        ));
        frame.measure(|control, tell| ics_experiments(tick, arguments.operations, control, tell))?
    };
    let interrupted = frame.control.is_stopped();
    if !interrupted && seen.iter().any(|experiment| experiment.interrupted) {
        console.warn("not all operations were executed, although there was ample time: other work occupies the CPU");
    }
    let output = IcsOutput {
        verb: MEASURE,
        subject: IcsOutput::SUBJECT,
        strategy: strategy(measured.strategy),
        realtime: measured.realtime,
        tick_ns,
        operations: arguments.operations,
        interrupted,
        costs: costs(&measured),
        responses: seen.iter().map(responses).collect(),
        histogram: seen.iter().flat_map(|experiment| histogram(experiment, tick_ns)).collect(),
    };
    let mut csv = vec![("cost.csv", csv_text(&output.costs))];
    if !output.responses.is_empty() {
        csv.extend([("response.csv", csv_text(&output.responses)), ("histogram.csv", csv_text(&output.histogram))]);
    }
    frame.end(Findings {
        output: &output,
        text: as_text(&output, console.layout),
        csv,
        figures: figures::of_ics(&output),
        interrupted,
        cut: "readings, operations and mechanisms not yet begun",
    })
}

fn strategy(kind: Kind) -> IcsStrategy {
    match kind {
        Kind::Locked => IcsStrategy::Locked,
        Kind::Uniprocessor => IcsStrategy::Plain,
        Kind::Rseq => IcsStrategy::Rseq,
    }
}

fn costs(measured: &SectionCosts) -> Vec<IcsCost> {
    let reference = measured.costs.iter().find(|cost| cost.name == "glibc PI mutex").map(|cost| cost.ns.each(0.5));
    let cost = |cost: &lockwright_measure::SectionCost| IcsCost {
        what: cost.name.to_owned(),
        strategy: cost.strategy.map(strategy),
        readings: cost.ns.total.count(),
        count: cost.ns.count,
        min_ns: cost.ns.each(0.0),
        median_ns: cost.ns.each(0.5),
        p99_ns: cost.ns.each(0.99),
        max_ns: cost.ns.each(1.0),
        over_pi_mutex: reference.map(|reference| cost.ns.each(0.5) / reference),
    };
    measured.costs.iter().map(cost).collect()
}

fn responses(experiment: &Experiment) -> IcsResponses {
    let (dequeue, enqueue) = (&experiment.dequeue, &experiment.enqueue);
    let dequeued = |share| (!dequeue.is_empty()).then(|| dequeue.value_at_quantile(share));
    let enqueued = |share| (!enqueue.is_empty()).then(|| enqueue.value_at_quantile(share));
    IcsResponses {
        mechanism: experiment.mechanism.name().to_owned(),
        outside_ticks: experiment.setting.outside,
        inside_ticks: experiment.setting.inside,
        sleep_ticks: experiment.setting.sleeps,
        alone_ns: experiment.solo_ns,
        dequeued: dequeue.len(),
        dequeue_median_ns: dequeued(0.5),
        dequeue_p99_ns: dequeued(0.99),
        dequeue_max_ns: dequeued(1.0),
        enqueued: enqueue.len(),
        enqueue_median_ns: enqueued(0.5),
        enqueue_p99_ns: enqueued(0.99),
        enqueue_max_ns: enqueued(1.0),
        repeated: experiment.repeated,
    }
}

/// The bins of enqueuing, then those of dequeuing, by increasing response time.
fn histogram(experiment: &Experiment, tick_ns: u64) -> Vec<IcsBin> {
    let mut bins = Vec::new();
    let both = [(IcsOperation::Enqueue, &experiment.enqueue), (IcsOperation::Dequeue, &experiment.dequeue)];
    for (operation, responses) in both {
        let mut by_ticks = BTreeMap::new();
        for value in responses.iter_recorded() {
            // A section takes at least one tick.
            let ticks = ((value.value_iterated_to() + tick_ns / 2) / tick_ns).max(1);
            *by_ticks.entry(ticks).or_insert(0) += value.count_at_value();
        }
        bins.extend(by_ticks.into_iter().map(|(response_ticks, times)| IcsBin {
            mechanism: experiment.mechanism.name().to_owned(),
            outside_ticks: experiment.setting.outside,
            inside_ticks: experiment.setting.inside,
            operation,
            response_ticks,
            times,
        }));
    }
    bins
}

fn as_text(output: &IcsOutput, layout: Layout) -> String {
    let costs = || output.costs.iter();
    let ns = |of: fn(&IcsCost) -> f64| costs().map(move |cost| format!("{:.2}", of(cost)));
    let absent = || "–".to_owned();
    let mut text =
        format!("uncontended, in ns; threads of one CPU commit by `{}` on this machine\n\n", output.strategy.name());
    text.push_str(&layout.draw(&[
        Column::prose("what", costs().map(|cost| cost.what.clone())),
        Column::words("commit", costs().map(|cost| cost.strategy.map_or_else(absent, |by| by.name().to_owned()))),
        Column::numbers("min", ns(|cost| cost.min_ns)),
        Column::numbers("median", ns(|cost| cost.median_ns)),
        Column::numbers("p99", ns(|cost| cost.p99_ns)),
        Column::numbers("max", ns(|cost| cost.max_ns)),
        Column::numbers(
            "over PI",
            costs().map(|cost| cost.over_pi_mutex.map_or_else(absent, |ratio| format!("{ratio:.2}"))),
        ),
    ]));
    if let Some(first) = output.costs.first() {
        text.push_str(&format!(
            "{} of {} each; over PI: the median over that of the C library's mutex with priority inheritance\n",
            units::count(first.readings as u64, "reading"),
            first.count
        ));
    }
    if output.responses.is_empty() {
        return text;
    }
    text.push_str(&format!(
        "\nthree tasks enqueue, a more urgent one dequeues, on one CPU: response times in ms, ticks of {}\n\n",
        units::text(Duration::from_ns(output.tick_ns))
    ));
    let seen = || output.responses.iter();
    let number = |of: fn(&IcsResponses) -> u64| seen().map(move |seen| of(seen).to_string());
    let ms = |of: fn(&IcsResponses) -> Option<u64>| {
        seen().map(move |seen| of(seen).map_or_else(absent, |ns| format!("{:.3}", ns as f64 / 1e6)))
    };
    text.push_str(&layout.draw(&[
        Column::numbers("outside", number(|seen| seen.outside_ticks)),
        Column::numbers("inside", number(|seen| seen.inside_ticks)),
        Column::words("mechanism", seen().map(|seen| seen.mechanism.clone())),
        Column::numbers("alone", ms(|seen| Some(seen.alone_ns))),
        Column::numbers("dequeued", number(|seen| seen.dequeued)).gives_way(4),
        Column::numbers("deq median", ms(|seen| seen.dequeue_median_ns)),
        Column::numbers("deq p99", ms(|seen| seen.dequeue_p99_ns)).gives_way(1),
        Column::numbers("deq max", ms(|seen| seen.dequeue_max_ns)),
        Column::numbers("enqueued", number(|seen| seen.enqueued)).gives_way(3),
        Column::numbers("enq median", ms(|seen| seen.enqueue_median_ns)),
        Column::numbers("enq p99", ms(|seen| seen.enqueue_p99_ns)).gives_way(2),
        Column::numbers("enq max", ms(|seen| seen.enqueue_max_ns)),
        Column::numbers("again", number(|seen| seen.repeated)),
    ]));
    text.push_str(
        "outside, inside: ticks for which an enqueuing task executes outside and inside its section; alone: dequeuing while no other task \
         executes; again: sections restarted after a conflict\n",
    );
    text
}
