//! `lockwright study rtas2008`: the figures and the conclusions of a published study.

use super::beside;
use super::engine::{self, Outcome};
use super::folder::{Folder, Identity, PLOTS, cannot_compute};
use super::page;
use super::table::{Kind, Table, Value};
use crate::args::Rtas2008;
use crate::console::Console;
use crate::curves::{self, Grid, Point};
use crate::exit::Exit;
use crate::input;
use crate::interrupt;
use crate::layout::Column;
use crate::paths::OVERHEADS;
use crate::units;
use lockwright_model::Overheads;
use lockwright_model::format::write_overheads;
use lockwright_report::page::{self as html, Tone, Verdict};
use lockwright_study::experiment::Tally;
use lockwright_study::rtas2008::{
    Cell, Conclusion, Figure, Inset, Machine, Quantity, Study, Switches, conclusions, figures,
};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Executes `study rtas2008`.
///
/// # Errors
/// The console has the message.
pub fn rtas2008(arguments: &Rtas2008, console: &Console) -> Result<Exit, Exit> {
    let mut numbers: Vec<u32> = if arguments.all { figures().collect() } else { arguments.figure.clone() };
    numbers.sort_unstable();
    numbers.dedup();
    if let Some(unknown) = numbers.iter().find(|&&number| !figures().any(|known| known == number)) {
        console.error(
            format!("figure {unknown} cannot be repeated"),
            "choose 1 to 4 or 7 to 132; docs/rtas2008.md gives the reason why the others are missing",
        );
        return Err(Exit::BadInput);
    }
    if arguments.real.is_some() && !numbers.contains(&2) {
        console.error("--real executes the sets of figure 2, which is not requested", "add it: --figure 2");
        return Err(Exit::BadInput);
    }
    let (machine, overheads) = machine(arguments.overheads.as_deref(), console)?;
    let is_larger = |number: &&u32| (21..=48).contains(*number) || **number >= 77;
    if let Some(larger) = numbers.iter().find(is_larger).filter(|_| !machine.has_working_sets()) {
        console.error(
            format!("figure {larger} needs the cache costs of 32 and 64 KiB of working set, which the overheads lack"),
            "add cache_delay = [[4, \"...\"], [32, \"...\"], [64, \"...\"]] to both files, or choose figures up to 20 and \
             49 to 76",
        );
        return Err(Exit::BadInput);
    }
    let switches = Switches {
        lengths: arguments.lengths,
        counting: arguments.counting,
        others: arguments.others,
        tests: arguments.tests,
        nesting: arguments.nesting,
        retries: arguments.retries,
    };
    let identity = Identity {
        study: "rtas2008".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        seed: arguments.seed,
        samples: arguments.samples,
        specification: format!("figures {numbers:?}, {switches:?}"),
        overheads,
    };
    let study = Study::new(&numbers, switches, machine, arguments.seed, arguments.samples);
    let html = page::open(&arguments.run, &arguments.output, console)?;
    // A machine that refuses real time leaves no unfinished study.
    arguments.real.map_or(Ok(()), |_| beside::try_out(arguments.seed, console))?;
    let folder = Folder::open(&arguments.output, &identity, &study, arguments.run.resume, console)?;
    let real = match arguments.real {
        Some(duration) => Some(beside::execute(arguments.seed, duration, &folder, console)?),
        None => {
            interrupt::listen(|| {}, console);
            None
        }
    };
    let outcome = engine::run(&study, &folder, &identity, &arguments.run, console)?;
    if outcome.share.is_some() {
        return engine::ended(&outcome, &folder, console);
    }
    let found = conclusions(&study, &outcome.tallies);
    let mut grids = write(&study, &outcome, &found, &folder, console)?;
    grids.extend(real);
    if let Some(file) = html {
        let (verdict, table) = checks(&found);
        let first = ("Conclusions of the paper", table);
        let (complete, command) = (outcome.complete, arguments.run.command.as_slice());
        let account = page::Account { verdict, first, grids: &grids, identity: &identity, complete, command };
        page::write(file, account, console)?;
    }
    console.print_text(&table(&study, &found, console))?;
    engine::ended(&outcome, &folder, console)
}

/// The overheads of the paper, or those of a directory.
fn machine(folder: Option<&Path>, console: &Console) -> Result<(Machine, BTreeMap<String, String>), Exit> {
    let Some(folder) = folder else { return Ok((Machine::published(), BTreeMap::new())) };
    let read = |name: &str| input::read_overheads(&folder.join(name), console);
    let [worst_name, average_name] = OVERHEADS;
    let (worst, average) = (read(worst_name)?, read(average_name)?);
    let text = |name: &str, overheads: &Overheads| (name.to_owned(), write_overheads(overheads));
    let both = BTreeMap::from([text(worst_name, &worst), text(average_name, &average)]);
    Ok((Machine::measured(worst, average), both))
}

/// The columns of the tables: a row is a point of a curve.
const COLUMNS: [(&str, Kind); 11] = [
    ("figure", Kind::Whole),
    ("inset", Kind::Text),
    ("curve", Kind::Text),
    ("x", Kind::Whole),
    ("samples", Kind::Whole),
    ("schedulable", Kind::Whole),
    ("share", Kind::Number(6)),
    ("low", Kind::Number(6)),
    ("high", Kind::Number(6)),
    ("tardiness_us", Kind::Number(3)),
    ("background", Kind::Number(6)),
];

fn empty() -> Table {
    Table::new(COLUMNS.map(|(name, kind)| (name.to_owned(), kind)).into())
}

/// The points of one curve of an inset, from left to right: the cell, its place, and its tally under the method.
fn points<'a>(
    study: &'a Study,
    tallies: &'a [Tally],
    inset: &'a Inset,
    method: usize,
) -> impl Iterator<Item = (&'a Cell, u32, &'a Tally)> {
    let methods = lockwright_study::experiment::Experiment::methods(study);
    inset.cells.iter().filter_map(move |cell| {
        let tally = &tallies[study.cell(cell)? * methods + method];
        (tally.samples > 0).then(|| (cell, Inset::place(cell), tally))
    })
}

/// Adds the points of a figure.
fn add_points(table: &mut Table, study: &Study, tallies: &[Tally], figure: &Figure) {
    for inset in &figure.insets {
        for &method in &inset.methods {
            for (cell, x, tally) in points(study, tallies, inset, method) {
                let (low, high) = tally.interval().unzip();
                let of = |quantity| tally.mean_bound().filter(|_| inset.quantity == quantity);
                table.push(vec![
                    Value::Whole(figure.number.into()),
                    Value::Text(inset.letter.to_string()),
                    cell.methods()[method].1.into(),
                    Value::Whole(x.into()),
                    Value::Whole(tally.samples),
                    Value::Whole(tally.accepted),
                    Value::Number(tally.share()),
                    Value::Number(low),
                    Value::Number(high),
                    Value::Number(of(Quantity::Tardiness).map(|ns| ns / 1_000.0)),
                    Value::Number(of(Quantity::Background).map(|left| left / 1e6)),
                ]);
            }
        }
    }
}

fn grid(study: &Study, tallies: &[Tally], figure: &Figure) -> Grid {
    // All insets share the legend: that of all methods of the figure's cells.
    let methods = figure.insets.first().and_then(|inset| inset.cells.first()).map_or(&[][..], |cell| cell.methods());
    let inset = |inset: &Inset| {
        let curve = |method: usize| {
            if !inset.methods.contains(&method) {
                return Vec::new();
            }
            let point = |(_, x, tally): (&Cell, u32, &Tally)| {
                let y = match inset.quantity {
                    Quantity::Share => tally.share()?,
                    Quantity::Tardiness => tally.mean_bound()? / 1_000.0,
                    Quantity::Background => tally.mean_bound()? / 1e6,
                };
                let interval = if inset.quantity == Quantity::Share { tally.interval() } else { None };
                Some(Point { x: f64::from(x), y, interval })
            };
            points(study, tallies, inset, method).filter_map(point).collect()
        };
        curves::Inset {
            title: inset.title.clone(),
            x: inset.axis().into(),
            y: match inset.quantity {
                Quantity::Share => "share of schedulable sets".into(),
                Quantity::Tardiness => "mean tardiness bound [µs]".into(),
                Quantity::Background => "processors for background jobs".into(),
            },
            end: (inset.quantity == Quantity::Share).then_some(1.0),
            curves: (0..methods.len()).map(curve).collect(),
        }
    };
    Grid {
        title: figure.title.clone(),
        columns: figure.columns,
        legend: methods.iter().map(|(_, name)| (*name).to_owned()).collect(),
        insets: figure.insets.iter().map(inset).collect(),
    }
}

/// A conclusion in tables.
#[derive(Default, Serialize)]
struct Judged {
    number: &'static str,
    verdict: &'static str,
    conclusion: &'static str,
    evidence: String,
}

fn judged(conclusion: &Conclusion) -> Judged {
    Judged {
        number: conclusion.number,
        verdict: match conclusion.holds {
            Some(true) => "holds",
            Some(false) => "does not hold",
            None => "not shown",
        },
        conclusion: conclusion.statement,
        evidence: conclusion.evidence.clone(),
    }
}

fn write(
    study: &Study,
    outcome: &Outcome,
    found: &[Conclusion],
    folder: &Folder,
    console: &Console,
) -> Result<Vec<Grid>, Exit> {
    let mut all = empty();
    let mut grids = Vec::new();
    for figure in &study.figures {
        let mut one = empty();
        add_points(&mut one, study, &outcome.tallies, figure);
        add_points(&mut all, study, &outcome.tallies, figure);
        folder.write_table(&format!("figure-{}.csv", figure.number), &one, console)?;
        let grid = grid(study, &outcome.tallies, figure);
        let svg = grid.to_svg().map_err(|error| cannot_compute(&*error, console))?;
        folder.write(&format!("{PLOTS}/figure-{}.svg", figure.number), svg.as_bytes(), console)?;
        grids.push(grid);
    }
    folder.write_results(&all, console)?;
    let judgements: Vec<Judged> = found.iter().map(judged).collect();
    let text = crate::export::csv_text(&judgements).map_err(|error| cannot_compute(&*error, console))?;
    folder.write("conclusions.csv", text.as_bytes(), console)?;
    let figures = units::count(study.figures.len() as u64, "figure");
    console.note(format!("{figures} and conclusions.csv are in {}", folder.path().display()));
    Ok(grids)
}

/// The conclusions as checks.
fn checks(found: &[Conclusion]) -> (Verdict, html::Table) {
    let row = |conclusion: &Conclusion| {
        let one = judged(conclusion);
        let verdict = match conclusion.holds {
            Some(true) => html::Cell::text(format!("✓ {}", one.verdict)).with(Tone::Good),
            Some(false) => html::Cell::text(format!("✗ {}", one.verdict)).with(Tone::Bad),
            None => html::Cell::text(one.verdict),
        };
        vec![html::Cell::text(one.number), verdict, html::Cell::text(one.conclusion), html::Cell::text(one.evidence)]
    };
    let columns = vec![
        html::Column::words("number", "number"),
        html::Column::words("verdict", "verdict"),
        html::Column::prose("conclusion of the paper", "conclusion"),
        html::Column::prose("in these results", "evidence"),
    ];
    let table = html::Table {
        caption: "The conclusions of the paper, checked".into(),
        columns,
        rows: found.iter().map(row).collect(),
    };
    let count = |verdict| found.iter().filter(|conclusion| conclusion.holds == verdict).count();
    let (good, bad, open) = (count(Some(true)), count(Some(false)), count(None));
    let text = format!(
        "Of the conclusions of the paper, {good} hold, {bad} do not, and {open} are not shown by these figures."
    );
    (Verdict { holds: bad == 0 && good > 0, text }, table)
}

fn table(study: &Study, found: &[Conclusion], console: &Console) -> String {
    let all: Vec<Judged> = found.iter().map(judged).collect();
    let each = |of: &dyn Fn(&Judged) -> String| -> Vec<String> { all.iter().map(of).collect() };
    let drawn = console.layout.draw(&[
        Column::words("", each(&|one| one.number.into())),
        Column::words("verdict", each(&|one| one.verdict.into())),
        Column::prose("conclusion of the paper", each(&|one| one.conclusion.into())),
        Column::prose("in these results", each(&|one| one.evidence.clone())),
    ]);
    format!(
        "RTAS 2008: {}, {} at each of {}, seed {}\n\n{drawn}",
        units::count(study.figures.len() as u64, "figure"),
        units::count(study.samples, "task set"),
        units::count(study.cells.len() as u64, "point"),
        study.seed
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conclusions_of_which_none_was_checked_do_not_hold() {
        assert!(!checks(&[]).0.holds);
    }
}
