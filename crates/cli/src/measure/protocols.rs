//! `lockwright measure protocols`: protocols for several processors, and what of their cost is the machine's.

use super::figures;
use super::frame::{Findings, Frame};
use crate::args::MeasuredProtocols;
use crate::console::Console;
use crate::exit::Exit;
use crate::export::{ResultFolder, csv_text};
use crate::json::{MachineCost, MeasureVerb, ProtocolTimes, ProtocolsOutput, ProtocolsSubject};
use crate::table::{self, Column};
use crate::units;
use lockwright::measure::{ProtocolCost, Protocols, Readings, Work};
use lockwright_model::Duration;

/// Does `measure protocols`.
///
/// # Errors
/// What was wrong has been said on the console.
pub fn protocols(arguments: &MeasuredProtocols, console: &Console) -> Result<Exit, Exit> {
    let folder = arguments.overheads.as_deref();
    let folder = folder.map(|path| ResultFolder::create(path, "--overheads", console)).transpose()?;
    let frame = Frame::begin(&arguments.results, console)?;
    let pairs = if arguments.alone { 0 } else { arguments.pairs };
    let seen =
        frame.measure(|control, tell| lockwright::measure::protocols(arguments.readings, pairs, control, tell))?;
    let output = ProtocolsOutput {
        verb: MeasureVerb::Measure,
        subject: ProtocolsSubject::Protocols,
        application_cpus: seen.applications,
        synchronisation_cpu: seen.has_synchronisation,
        interrupted: seen.interrupted,
        tick_period_ns: seen.tick_period_ns,
        machine: seen.machine.iter().map(machine_cost).collect(),
        protocols: seen.costs.iter().map(protocol_times).collect(),
    };
    if let Some(folder) = folder.filter(|_| !seen.interrupted) {
        let mut written = 0;
        for cost in &seen.costs {
            let Some((lock, unlock)) = &cost.alone_each else { continue };
            for (kind, pick) in KINDS {
                let text = overheads(&seen, kind, cost.name, pick, (pick(lock), pick(unlock)));
                folder.write(
                    &format!("{kind}-{}.toml", cost.name),
                    Ok::<_, std::convert::Infallible>(text),
                    console,
                )?;
                written += 1;
            }
        }
        console.note(format!("{} in {}", units::count(written, "overheads file"), folder.path().display()));
    }
    frame.end(Findings {
        output: &output,
        text: as_text(&output),
        csv: vec![("machine.csv", csv_text(&output.machine)), ("protocols.csv", csv_text(&output.protocols))],
        figures: figures::of_protocols(&output),
        interrupted: output.interrupted,
        cut: "protocols that were not measured to their end, and overheads files,",
    })
}

type Pick = fn(&Readings) -> u64;

/// Without the top 1 %.
const KINDS: [(&str, Pick); 2] = [("worst", |readings| readings.usual().1), ("average", |readings| readings.usual().0)];

/// An overheads file for locks under any protocol: each operation takes as long as under the protocol where it takes longest.
pub(crate) fn overheads_of(seen: &Protocols) -> String {
    let (kind, pick) = KINDS[0];
    let each = || seen.costs.iter().filter_map(|cost| cost.alone_each.as_ref());
    let lock = each().map(|(lock, _)| pick(lock)).max().unwrap_or(0);
    let unlock = each().map(|(_, unlock)| pick(unlock)).max().unwrap_or(0);
    overheads(seen, kind, "any protocol", pick, (lock, unlock))
}

/// An overheads file. What is a part of another reading is taken from it, so that nothing is charged twice.
fn overheads(seen: &Protocols, kind: &str, protocol: &str, pick: Pick, (lock, unlock): (u64, u64)) -> String {
    let of = |work| seen.work(work).map_or(0, pick);
    let call = of(Work::SystemCall);
    let schedule = of(Work::Yield).saturating_sub(call);
    let switch = of(Work::ContextSwitch).saturating_sub(call + schedule);
    let wake = of(Work::WakeThere).saturating_sub(call + schedule + switch);
    let lateness = of(Work::ReleaseLatency).saturating_sub(schedule + switch);
    let mut rows = vec![
        ("release", of(Work::Release)),
        ("release_latency", lateness),
        ("schedule", schedule),
        ("context_switch", switch),
        ("ipi_latency", wake),
        ("syscall_in", call.div_ceil(2)),
        ("syscall_out", call.div_ceil(2)),
        ("lock", lock),
        ("unlock", unlock),
    ];
    if let Some(period) = seen.tick_period_ns {
        rows.insert(0, ("tick", of(Work::Tick)));
        rows.insert(0, ("tick_period", period));
    }
    let mut text =
        format!("# Measured by `lockwright measure protocols`: {kind}, {protocol}. Cache delays were not.\n");
    for (key, ns) in rows {
        text.push_str(&format!("{key} = \"{}\"\n", Duration::from_ns(ns)));
    }
    text
}

fn machine_cost((work, readings): &(Work, Readings)) -> MachineCost {
    let (average_ns, worst_ns) = readings.usual();
    MachineCost {
        work: work.name().to_owned(),
        readings: readings.count(),
        min_ns: readings.quantile(0.0),
        median_ns: readings.quantile(0.5),
        average_ns,
        worst_ns,
        max_ns: readings.quantile(1.0),
    }
}

fn protocol_times(cost: &ProtocolCost) -> ProtocolTimes {
    let of = |of: Pick| cost.contended.as_ref().map(|(lock, unlock)| (of(lock), of(unlock)));
    let (min, mean) = (of(|readings| readings.quantile(0.0)), of(Readings::mean));
    let (p99, max) = (of(|readings| readings.quantile(0.99)), of(|readings| readings.quantile(1.0)));
    ProtocolTimes {
        protocol: cost.name.to_owned(),
        alone_median_ns: cost.alone.quantile(0.5),
        alone_p99_ns: cost.alone.quantile(0.99),
        target_ns: cost.target_ns,
        loaded_readings: cost.contended.as_ref().map_or(0, |(lock, _)| lock.count()),
        lock_min_ns: min.map(|both| both.0),
        lock_mean_ns: mean.map(|both| both.0),
        lock_p99_ns: p99.map(|both| both.0),
        lock_max_ns: max.map(|both| both.0),
        unlock_min_ns: min.map(|both| both.1),
        unlock_mean_ns: mean.map(|both| both.1),
        unlock_p99_ns: p99.map(|both| both.1),
        unlock_max_ns: max.map(|both| both.1),
    }
}

fn as_text(output: &ProtocolsOutput) -> String {
    let us = |ns: u64| format!("{:.2}", ns as f64 / 1e3);
    let known = |ns: Option<u64>| ns.map_or_else(|| "–".into(), us);
    let machine = |of: fn(&MachineCost) -> u64| output.machine.iter().map(move |cost| us(of(cost)));
    let mut text = String::from("the machine and its kernel, in us; average and worst without the top 1 %\n\n");
    text.push_str(&table::draw(&[
        Column::words("what", output.machine.iter().map(|cost| cost.work.clone())),
        Column::numbers("min", machine(|cost| cost.min_ns)),
        Column::numbers("median", machine(|cost| cost.median_ns)),
        Column::numbers("average", machine(|cost| cost.average_ns)),
        Column::numbers("worst", machine(|cost| cost.worst_ns)),
        Column::numbers("max", machine(|cost| cost.max_ns)),
    ]));
    text.push_str("\nlock and unlock together that nobody else wants, in us\n\n");
    let each = |of: fn(&ProtocolTimes) -> u64| output.protocols.iter().map(move |seen| us(of(seen)));
    let names = || output.protocols.iter().map(|seen| seen.protocol.clone());
    text.push_str(&table::draw(&[
        Column::words("protocol", names()),
        Column::numbers("median", each(|seen| seen.alone_median_ns)),
        Column::numbers("p99", each(|seen| seen.alone_p99_ns)),
        Column::numbers("target", output.protocols.iter().map(|seen| known(seen.target_ns))),
    ]));
    let loaded: Vec<&ProtocolTimes> = output.protocols.iter().filter(|seen| seen.loaded_readings > 0).collect();
    if loaded.is_empty() {
        return text;
    }
    let own = if output.synchronisation_cpu {
        "and one more for synchronisation"
    } else {
        "the last of them for synchronisation, too"
    };
    text.push_str(&format!(
        "\nunder load, in us: five tasks on each of {} CPUs, {own}; three resources\n\n",
        output.application_cpus
    ));
    let some =
        |of: fn(&ProtocolTimes) -> Option<u64>| loaded.iter().map(move |seen| known(of(seen))).collect::<Vec<_>>();
    text.push_str(&table::draw(&[
        Column::words("protocol", loaded.iter().map(|seen| seen.protocol.clone())),
        Column::numbers("lock min", some(|seen| seen.lock_min_ns)),
        Column::numbers("mean", some(|seen| seen.lock_mean_ns)),
        Column::numbers("p99", some(|seen| seen.lock_p99_ns)),
        Column::numbers("max", some(|seen| seen.lock_max_ns)),
        Column::numbers("unlock min", some(|seen| seen.unlock_min_ns)),
        Column::numbers("mean", some(|seen| seen.unlock_mean_ns)),
        Column::numbers("p99", some(|seen| seen.unlock_p99_ns)),
        Column::numbers("max", some(|seen| seen.unlock_max_ns)),
    ]));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockwright_model::format::parse_overheads;

    #[test]
    fn an_overheads_file_is_read_back() {
        let seen = Protocols {
            machine: Vec::new(),
            tick_period_ns: Some(4_000_000),
            costs: Vec::new(),
            applications: 2,
            has_synchronisation: false,
            interrupted: false,
        };
        let text = overheads(&seen, "worst", "mpcp", KINDS[0].1, (1_500, 700));
        let read = parse_overheads(&text).expect("a file of ours");
        assert_eq!(read.tick_period, Duration::from_ms(4));
        assert_eq!(read.cost(lockwright_model::Overhead::Lock).with(9), Duration::from_ns(1_500));
    }
}
