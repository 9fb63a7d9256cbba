//! Figure 2 of `study rtas2008` with real threads: ordinary work beside the sets of the simulation.

use super::folder::{Folder, cannot_compute};
use super::table::{Kind, Table, Value};
use crate::console::Console;
use crate::curves::{self, Grid, Point};
use crate::exit::Exit;
use crate::run::{Stopper, refuse};
use crate::units;
use lockwright_engine::{Control, Ended, RunConfig, run, run_beside};
use lockwright_model::{CPUS_MAX, Duration, Protocol};
use lockwright_study::rtas2008::{background_left, background_system};

/// The period of all tasks: the shortest of the simulation.
const PERIOD: Duration = Duration::from_ms(40);
/// The number of sets of each simulated point.
const SIMULATED: u64 = 10;
/// The numbers of resources.
const RESOURCES: [usize; 3] = [1, 2, 4];
/// The protocols: those of short and long resources.
const WAITS: [(&str, Protocol); 2] = [("spin", Protocol::FmlpShort), ("suspend", Protocol::FmlpLong)];

/// One set under one protocol.
struct Ran {
    /// The number of its curve.
    curve: usize,
    share: u32,
    simulated: f64,
    executed: f64,
    misses: u64,
}

/// The time of each run: a whole number of periods, as in the simulation, since all tasks begin at once.
fn whole_periods(duration: Duration) -> Duration {
    Duration::from_ns(duration.as_ns().div_ceil(PERIOD.as_ns()) * PERIOD.as_ns())
}

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(CPUS_MAX)
}

/// Executes a first set for a moment.
///
/// # Errors
/// The machine refuses real time; the console has the message.
pub fn try_out(seed: u64, console: &Console) -> Result<(), Exit> {
    let system = background_system(seed, 0, (cpus(), RESOURCES[0]), PERIOD);
    let config = RunConfig::new(WAITS[0].1, Duration::from_ms(1));
    run(&system, &config, &Control::new()).map(drop).map_err(|error| refuse(&system, &error, console))
}

/// Executes the sets, each for `duration` or until the period ends in which that does, and writes `figure-2-real.csv`
/// and its picture.
///
/// # Errors
/// The machine refuses real time, the user interrupts, or a file cannot be written; the console has the message.
pub fn execute(seed: u64, duration: Duration, folder: &Folder, console: &Console) -> Result<Grid, Exit> {
    let (cpus, duration) = (cpus(), whole_periods(duration));
    let stopper = Stopper::listen(console);
    let all = 11 * WAITS.len() * RESOURCES.len();
    // As long again without the set, and about as long to set a run up.
    let seconds = all as u64 * 3 * duration.as_ns() / 1_000_000_000;
    console.note(format!(
        "executing {all} sets of figure 2 with real threads on {}, for about {} under `p-fp`",
        units::count(cpus as u64, "CPU"),
        units::count(seconds.max(1), "second"),
    ));
    let mut found: Vec<Ran> = Vec::with_capacity(all);
    for share in (0..=10).map(|tenths| 10 * tenths) {
        for (curve, (spins, protocol, resources)) in methods().enumerate() {
            let Some(control) = stopper.control() else { return Err(interrupted(console)) };
            let system = background_system(seed, share, (cpus, resources), PERIOD);
            let (outcome, executed) = run_beside(&system, &RunConfig::new(protocol, duration), &control)
                .map_err(|error| refuse(&system, &error, console))?;
            if outcome.ended == Ended::Interrupted {
                return Err(interrupted(console));
            }
            let simulated = background_left(seed, SIMULATED, share, (cpus as u64, resources), spins);
            let misses = outcome.tasks.iter().map(|task| task.observation.misses).sum();
            found.push(Ran { curve, share, simulated, executed, misses });
        }
    }
    write(&found, cpus, folder, console)
}

fn interrupted(console: &Console) -> Exit {
    console.note("interrupted: the sets with real threads are written only when all of them have been executed");
    Exit::Interrupted
}

/// Whether waiting jobs spin, the protocol and the number of resources, by curve.
fn methods() -> impl Iterator<Item = (bool, Protocol, usize)> {
    let of = |(_, protocol)| RESOURCES.map(|resources| (protocol == Protocol::FmlpShort, protocol, resources));
    WAITS.into_iter().flat_map(of)
}

fn names() -> Vec<String> {
    let of = |(wait, _)| RESOURCES.map(|count| format!("{wait}, {}", units::count(count as u64, "resource")));
    WAITS.into_iter().flat_map(of).collect()
}

fn write(found: &[Ran], cpus: usize, folder: &Folder, console: &Console) -> Result<Grid, Exit> {
    let names = names();
    let columns = [
        ("curve", Kind::Text),
        ("x", Kind::Whole),
        ("cpus", Kind::Whole),
        ("simulated", Kind::Number(4)),
        ("executed", Kind::Number(4)),
        ("misses", Kind::Whole),
    ];
    let mut table = Table::new(columns.map(|(name, kind)| (name.to_owned(), kind)).into());
    for ran in found {
        table.push(vec![
            names[ran.curve].as_str().into(),
            Value::Whole(ran.share.into()),
            Value::Whole(cpus as u64),
            Value::Number(Some(ran.simulated)),
            Value::Number(Some(ran.executed)),
            Value::Whole(ran.misses),
        ]);
    }
    folder.write_table("figure-2-real.csv", &table, console)?;
    let inset = |title: &str, of: fn(&Ran) -> f64| {
        let point = |ran: &Ran| Point { x: f64::from(ran.share), y: of(ran), interval: None };
        let curve = |curve| found.iter().filter(|ran| ran.curve == curve).map(point).collect();
        curves::Inset {
            title: format!("{title}, {}", units::count(cpus as u64, "CPU")),
            x: "execution in sections [%]".into(),
            y: "work beside, share of idle CPUs".into(),
            end: Some(1.0),
            curves: (0..names.len()).map(curve).collect(),
        }
    };
    let insets =
        vec![inset("(a) simulated, G-EDF", |ran| ran.simulated), inset("(b) real threads, P-FP", |ran| ran.executed)];
    let grid = Grid { title: "Figure 2 on this machine".into(), columns: 2, legend: names, insets };
    let svg = grid.to_svg().map_err(|error| cannot_compute(&*error, console))?;
    folder.write("plots/figure-2-real.svg", svg.as_bytes(), console)?;
    let late: u64 = found.iter().map(|ran| ran.misses).sum();
    if late > 0 {
        console.warn(format!("{} missed a deadline while the sets were executed", units::count(late, "job")));
    }
    console.note("figure-2-real.csv has the shares of work beside real threads");
    Ok(grid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_executed_for_whole_periods() {
        let of = |ms| whole_periods(Duration::from_ms(ms)).as_ns() / 1_000_000;
        assert_eq!([40, 50, 80, 240, 250, 2_000].map(of), [40, 80, 80, 240, 280, 2_000]);
    }
}
