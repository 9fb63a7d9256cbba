//! `lockwright measure protocols`: multiprocessor protocols, and the costs of the machine.

use super::figures;
use super::frame::{Findings, Frame};
use crate::args::MeasuredProtocols;
use crate::console::Console;
use crate::exit::Exit;
use crate::export::{ResultFolder, csv_text};
use crate::json::{MEASURE, MachineCost, ProtocolTimes, ProtocolsOutput};
use crate::layout::{Column, Layout};
use crate::units;
use lockwright_measure::{Pick, ProtocolCost, Protocols, Readings, Work};
use lockwright_model::Protocol;
use lockwright_model::format::write_overheads;

/// Executes `measure protocols`.
///
/// # Errors
/// The console has the message.
pub fn protocols(arguments: &MeasuredProtocols, console: &Console) -> Result<Exit, Exit> {
    let folder = arguments.overheads.as_deref();
    let folder = folder.map(|path| ResultFolder::create(path, "--overheads", console)).transpose()?;
    let frame = Frame::begin(&arguments.results, console)?;
    let pairs = if arguments.alone { 0 } else { arguments.pairs };
    let seen =
        frame.measure(|control, tell| lockwright_measure::protocols(arguments.readings, pairs, control, tell))?;
    let output = ProtocolsOutput {
        verb: MEASURE,
        subject: ProtocolsOutput::SUBJECT,
        application_cpus: seen.applications,
        synchronisation_cpu: seen.has_synchronisation,
        interrupted: seen.interrupted,
        tick_period_ns: seen.interruptions.period_ns(),
        machine: seen.machine.iter().map(machine_cost).collect(),
        protocols: seen.costs.iter().map(protocol_times).collect(),
    };
    if let Some(folder) = folder.filter(|_| !seen.interrupted) {
        let mut written = 0;
        for (kind, pick) in KINDS {
            let one = |protocol: &Protocol| (format!("{kind}-{protocol}.toml"), vec![*protocol]);
            let files = Protocol::ALL.iter().map(one).chain([(format!("{kind}.toml"), Protocol::ALL.to_vec())]);
            for (name, protocols) in files {
                let text = overheads(&seen, kind, pick, &protocols);
                folder.write(&name, Ok::<_, std::convert::Infallible>(text), console)?;
                written += 1;
            }
        }
        console.note(format!("{} in {}", units::count(written, "overheads file"), folder.path().display()));
    }
    frame.end(Findings {
        output: &output,
        text: as_text(&output, console.layout),
        csv: vec![("machine.csv", csv_text(&output.machine)), ("protocols.csv", csv_text(&output.protocols))],
        figures: figures::of_protocols(&output),
        interrupted: output.interrupted,
        cut: "incomplete protocols and all overheads files",
    })
}

/// The values that the files have, all without the top 1 %.
const KINDS: [(&str, Pick); 2] = [("worst", Pick::Worst), ("average", Pick::Average)];

/// The text of an overheads file for one protocol, or for all.
fn overheads(seen: &Protocols, kind: &str, pick: Pick, protocols: &[Protocol]) -> String {
    let of = match protocols {
        [one] => one.name(),
        _ => "all protocols",
    };
    format!(
        "# Measured by `lockwright measure protocols`: {kind}, {of}. Cache delays were not measured.\n{}",
        write_overheads(&seen.overheads(pick, protocols))
    )
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
    let of = |of: fn(&Readings) -> u64| cost.contended.as_ref().map(|(lock, unlock)| (of(lock), of(unlock)));
    let (min, mean) = (of(|readings| readings.quantile(0.0)), of(Readings::mean));
    let (p99, max) = (of(|readings| readings.quantile(0.99)), of(|readings| readings.quantile(1.0)));
    ProtocolTimes {
        protocol: cost.name.to_owned(),
        alone_median_ns: cost.alone.quantile(0.5),
        alone_p99_ns: cost.alone.quantile(0.99),
        target_ns: cost.target_ns,
        job_median_ns: cost.job.as_ref().map(|readings| readings.quantile(0.5)),
        job_p99_ns: cost.job.as_ref().map(|readings| readings.quantile(0.99)),
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

fn as_text(output: &ProtocolsOutput, layout: Layout) -> String {
    let us = |ns: u64| format!("{:.2}", ns as f64 / 1e3);
    let known = |ns: Option<u64>| ns.map_or_else(|| "–".into(), us);
    let machine = |of: fn(&MachineCost) -> u64| output.machine.iter().map(move |cost| us(of(cost)));
    let mut text = String::from("the machine and its kernel, in us; average and worst without the top 1 %\n\n");
    text.push_str(&layout.draw(&[
        Column::words("what", output.machine.iter().map(|cost| cost.work.clone())),
        Column::numbers("min", machine(|cost| cost.min_ns)),
        Column::numbers("median", machine(|cost| cost.median_ns)),
        Column::numbers("average", machine(|cost| cost.average_ns)),
        Column::numbers("worst", machine(|cost| cost.worst_ns)),
        Column::numbers("max", machine(|cost| cost.max_ns)),
    ]));
    text.push_str("\nuncontended lock and unlock together, and the begin and end of a job, in us\n\n");
    let each = |of: fn(&ProtocolTimes) -> u64| output.protocols.iter().map(move |seen| us(of(seen)));
    let names = || output.protocols.iter().map(|seen| seen.protocol.clone());
    text.push_str(&layout.draw(&[
        Column::words("protocol", names()),
        Column::numbers("median", each(|seen| seen.alone_median_ns)),
        Column::numbers("p99", each(|seen| seen.alone_p99_ns)),
        Column::numbers("target", output.protocols.iter().map(|seen| known(seen.target_ns))),
        Column::numbers("job median", output.protocols.iter().map(|seen| known(seen.job_median_ns))),
        Column::numbers("job p99", output.protocols.iter().map(|seen| known(seen.job_p99_ns))),
    ]));
    let loaded: Vec<&ProtocolTimes> = output.protocols.iter().filter(|seen| seen.loaded_readings > 0).collect();
    if loaded.is_empty() {
        return text;
    }
    let own = if output.synchronisation_cpu {
        "and one more CPU for synchronisation"
    } else {
        "the last of which also serves for synchronisation"
    };
    text.push_str(&format!(
        "\nunder load, in us: five tasks on each of {} CPUs, {own}; three resources\n\n",
        output.application_cpus
    ));
    let some =
        |of: fn(&ProtocolTimes) -> Option<u64>| loaded.iter().map(move |seen| known(of(seen))).collect::<Vec<_>>();
    text.push_str(&layout.draw(&[
        Column::words("protocol", loaded.iter().map(|seen| seen.protocol.clone())),
        Column::numbers("lock min", some(|seen| seen.lock_min_ns)).gives_way(1),
        Column::numbers("lock mean", some(|seen| seen.lock_mean_ns)),
        Column::numbers("lock p99", some(|seen| seen.lock_p99_ns)).gives_way(2),
        Column::numbers("lock max", some(|seen| seen.lock_max_ns)),
        Column::numbers("unlock min", some(|seen| seen.unlock_min_ns)).gives_way(1),
        Column::numbers("unlock mean", some(|seen| seen.unlock_mean_ns)),
        Column::numbers("unlock p99", some(|seen| seen.unlock_p99_ns)).gives_way(2),
        Column::numbers("unlock max", some(|seen| seen.unlock_max_ns)),
    ]));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockwright_measure::Interruptions;
    use lockwright_model::format::parse_overheads;
    use lockwright_model::{Duration, Overhead};

    #[test]
    fn an_overheads_file_is_read_back() {
        let readings = |ns: &[u64]| Readings::new(ns.to_vec()).expect("not empty");
        let cost = |protocol: Protocol, lock: u64| ProtocolCost {
            name: protocol.name(),
            protocol: Some(protocol),
            alone: readings(&[lock + 700]),
            alone_each: Some((readings(&[lock]), readings(&[700]))),
            job: Some(readings(&[40])),
            target_ns: None,
            contended: None,
        };
        let seen = Protocols {
            machine: vec![(Work::Release, readings(&[60]))],
            interruptions: Interruptions::default(),
            costs: vec![cost(Protocol::Mpcp, 1_500), cost(Protocol::Srp, 90)],
            applications: 2,
            has_synchronisation: false,
            interrupted: false,
        };
        let read = |protocols: &[Protocol]| {
            parse_overheads(&overheads(&seen, "worst", Pick::Worst, protocols)).expect("a file of ours")
        };
        let one = read(&[Protocol::Mpcp]);
        let ns = |ns| Duration::from_ns(ns);
        assert_eq!(one.cost(Overhead::Tick).with(9), ns(0));
        assert_eq!((one.cost(Overhead::Lock).with(9), one.cost(Overhead::Release).with(9)), (ns(1_500), ns(100)));
        let all = read(&Protocol::ALL);
        let lock = |protocol| all.cost_under(Overhead::Lock, protocol).with(9);
        assert_eq!((lock(Protocol::Mpcp), lock(Protocol::Srp)), (ns(1_500), ns(90)));
        assert_eq!(all.cost_under(Overhead::Unlock, Protocol::Srp).with(9), ns(700));
    }

    #[test]
    fn the_tables_fit_the_screen() {
        let ns = 98_765_432_100;
        let machine = |work: &Work| MachineCost {
            work: work.name().to_owned(),
            readings: 1,
            min_ns: ns,
            median_ns: ns,
            average_ns: ns,
            worst_ns: ns,
            max_ns: ns,
        };
        let protocol = |protocol: &Protocol| ProtocolTimes {
            protocol: format!("{protocol} (variant)"),
            alone_median_ns: ns,
            alone_p99_ns: ns,
            target_ns: Some(ns),
            job_median_ns: Some(ns),
            job_p99_ns: Some(ns),
            loaded_readings: 1,
            lock_min_ns: Some(ns),
            lock_mean_ns: Some(ns),
            lock_p99_ns: Some(ns),
            lock_max_ns: Some(ns),
            unlock_min_ns: Some(ns),
            unlock_mean_ns: Some(ns),
            unlock_p99_ns: Some(ns),
            unlock_max_ns: Some(ns),
        };
        let output = ProtocolsOutput {
            verb: MEASURE,
            subject: ProtocolsOutput::SUBJECT,
            application_cpus: 62,
            synchronisation_cpu: true,
            interrupted: false,
            tick_period_ns: None,
            machine: Work::ALL.iter().map(machine).collect(),
            protocols: Protocol::ALL.iter().map(protocol).collect(),
        };
        for width in [80, 100, 120] {
            let layout = Layout::new(width, false);
            let text = layout.prose(&as_text(&output, layout));
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(width), "{widest:?} at {width}:\n{text}");
        }
    }
}
