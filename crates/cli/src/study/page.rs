//! The page of a study: its verdict, its tables and its curves.

use super::folder::Identity;
use crate::args::StudyRun;
use crate::console::Console;
use crate::curves::{Grid, Inset};
use crate::exit::Exit;
use crate::export::{ResultFile, ResultFolder};
use crate::html::{self, facts};
use crate::units;
use lockwright_report::page::{Cell, Column, Page, Part, Picture, Section, Table, Verdict};
use lockwright_study::experiment::{Experiment, Tally};
use lockwright_study::plan::{Method, Plan};
use std::ffi::OsString;
use std::path::Path;

/// The contents of a page about a study.
pub struct Account<'a> {
    /// The result, in a sentence.
    pub verdict: Verdict,
    /// The first table, with the title of its section.
    pub first: (&'static str, Table),
    /// The figures.
    pub grids: &'a [Grid],
    /// The identity of the study.
    pub identity: &'a Identity,
    /// Whether all samples were judged.
    pub complete: bool,
    /// The command.
    pub command: &'a [OsString],
}

/// Opens the file of `--html`, if it is wanted. It may be in `folder`, the directory of the results.
///
/// # Errors
/// The file cannot be written, or a share is judged, which has no page; the console has the message.
pub fn open(run: &StudyRun, folder: &Path, console: &Console) -> Result<Option<ResultFile>, Exit> {
    let Some(path) = &run.html else { return Ok(None) };
    if run.share.is_some_and(|share| share.number > 0) {
        console.error("a share has no page", "leave --html out; give it to the command that finishes with --resume");
        return Err(Exit::BadInput);
    }
    ResultFolder::create(folder, "-o", console)?;
    ResultFile::open(path, "--html", console).map(Some)
}

/// Writes the page.
///
/// # Errors
/// A figure cannot be drawn, or the file cannot be written; the console has the message.
pub fn write(file: ResultFile, account: Account<'_>, console: &Console) -> Result<(), Exit> {
    let drawn = account.grids.iter().map(|grid| Ok((grid, grid.to_svg()?)));
    let drawn = drawn.collect::<Result<Vec<_>, Box<dyn std::error::Error>>>().map_err(|error| {
        console.error(format!("a figure cannot be drawn: {error}"), "");
        Exit::Machine
    })?;
    let Account { verdict, first: (title, table), identity, complete, command, .. } = account;
    let mut facts = facts::machine();
    facts.extend([
        ("Seed", identity.seed.to_string()),
        ("Systems", format!("{} in each cell", identity.samples)),
        ("Command", facts::command(command, &[])),
    ]);
    if !complete {
        facts.push(("Incomplete", "the study was interrupted; these are the parts that were finished".into()));
    }
    let overheads = identity.overheads.iter().flat_map(|(name, text)| {
        [Part::Text(format!("The methods charge the overheads of {name}:")), Part::Source(text.clone())]
    });
    let page = Page {
        title: format!("{}, studied", identity.study),
        verdicts: vec![verdict],
        sections: vec![
            Section { title, parts: vec![Part::Table(table)] },
            Section { title: "Curves", parts: drawn.into_iter().flat_map(|(grid, svg)| figure(grid, svg)).collect() },
            Section { title: "Overheads", parts: overheads.collect() },
            Section { title: "How to repeat this", parts: vec![Part::Facts(facts)] },
            Section { title: "The study", parts: vec![Part::Source(identity.specification.clone())] },
        ],
    };
    html::write_file(file, &page, console)
}

/// A figure, and its points as tables.
fn figure<'a>(grid: &Grid, svg: String) -> [Part<'a>; 2] {
    let caption = match grid.insets.as_slice() {
        [Inset { title, .. }] if !title.is_empty() => format!("{}, {title}", grid.title),
        _ => grid.title.clone(),
    };
    let tables = grid.insets.iter().map(|inset| Part::Table(points(grid, inset))).collect();
    let folded = Part::Folded(format!("The points of {caption}"), false, tables);
    let draw = Box::new(move |_: lockwright_report::Place<'_>| svg.clone());
    [Part::Picture(Picture { caption, task: None, draw }), folded]
}

/// One row for each horizontal position, one column for each curve.
fn points(grid: &Grid, inset: &Inset) -> Table {
    let mut places: Vec<f64> = inset.curves.iter().flatten().map(|point| point.x).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let shown: Vec<usize> = (0..inset.curves.len()).filter(|&curve| !inset.curves[curve].is_empty()).collect();
    let name = |curve: usize| grid.legend.get(curve).cloned().unwrap_or_default();
    let columns = shown.iter().map(|&curve| Column::numbers(name(curve), "y"));
    let row = |x: &f64| {
        let cell = |&curve: &usize| match inset.curves[curve].iter().find(|point| point.x == *x) {
            Some(point) => number(point.y, point.interval),
            None => Cell::absent(),
        };
        std::iter::once(number(*x, None)).chain(shown.iter().map(cell)).collect()
    };
    let title = [inset.title.as_str(), inset.y.as_str()].into_iter().filter(|text| !text.is_empty());
    Table {
        caption: title.collect::<Vec<_>>().join(": "),
        columns: std::iter::once(Column::numbers(&inset.x, "x")).chain(columns).collect(),
        rows: places.iter().map(row).collect(),
    }
}

/// A number, with the ends of its interval, and its millionths to sort by.
fn number(value: f64, interval: Option<(f64, f64)>) -> Cell {
    let shown = |value: f64| format!("{}", (value * 1e4).round() / 1e4);
    let text = match interval {
        Some((low, high)) => format!("{} ({} to {})", shown(value), shown(low), shown(high)),
        None => shown(value),
    };
    Cell::number(text, (value * 1e6).round() as i64)
}

/// Returns the first sentence about a study that a file describes: the method that accepts the most, and all methods
/// over all cells. `of` has the sums of a method, and how often they count each system.
pub fn methods(plan: &Plan, of: impl Fn(usize) -> (Tally, u64), complete: bool) -> (Verdict, Table) {
    let row = |(index, method): (usize, &Method)| {
        let (tally, times) = of(index);
        let interval = tally.interval_of_repeated(times);
        let interval = interval.map(|(low, high)| format!("{:.2} to {:.2} %", low * 100.0, high * 100.0));
        vec![
            Cell::text(&method.name),
            Cell::number(tally.accepted.to_string(), tally.accepted),
            Cell::number(tally.samples.to_string(), tally.samples),
            share(tally.share()),
            interval.map_or_else(Cell::absent, Cell::text),
            share(tally.weighted()),
        ]
    };
    let table = Table {
        caption: METHODS.into(),
        columns: vec![
            Column::words("method", "method"),
            Column::numbers("accepted", "accepted"),
            Column::numbers("of", "samples"),
            Column::numbers("share", "share"),
            Column::words("95 % interval", "low"),
            Column::numbers("weighted", "weighted"),
        ],
        rows: plan.methods.iter().enumerate().map(row).collect(),
    };
    let best = (0..plan.methods()).filter_map(|method| Some((of(method).0.share()?, method)));
    let best = best.max_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1)));
    let text = match best {
        Some((share, method)) => format!(
            "Of {} methods, {} accepts the most of {} systems in {}: {:.2} %.",
            plan.methods(),
            plan.methods[method].name,
            of(method).0.samples,
            units::count(plan.cells() as u64, "cell"),
            share * 100.0
        ),
        None => "No system was judged.".into(),
    };
    (Verdict { holds: complete, text }, table)
}

/// The caption of the table of methods.
const METHODS: &str =
    "The methods over all cells; weighted: the share of the utilization that belongs to accepted systems";

/// A share of 1 as a cell in percent, with its millionths to sort by.
fn share(value: Option<f64>) -> Cell {
    value.map_or_else(Cell::absent, |value| {
        Cell::number(format!("{:.2} %", value * 100.0), (value * 1e6).round() as i64)
    })
}
