//! `lockwright study FILE`: a study that a file describes.

use super::engine::{self, Outcome};
use super::folder::{Folder, Identity};
use super::page;
use crate::args::Study;
use crate::console::Console;
use crate::curves::{Grid, Inset, Point};
use crate::diagnose::Severity;
use crate::exit::Exit;
use crate::input::{self, Source};
use crate::interrupt;
use crate::layout::Column;
use crate::seed;
use crate::units;
use lockwright_model::Overheads;
use lockwright_model::format::{parse_overheads, write_overheads};
use lockwright_study::experiment::{Experiment, Tally};
use lockwright_study::plan::{Key, Plan, parse_plan};
use std::collections::BTreeMap;
use std::path::Path;

/// Executes `study FILE`.
///
/// # Errors
/// The console has the message.
pub fn file(arguments: &Study, console: &Console) -> Result<Exit, Exit> {
    let (Some(file), Some(output)) = (&arguments.file, &arguments.output) else {
        console.error("no study is given", "give a study file and -o DIR, or the name of a published study");
        return Err(Exit::BadInput);
    };
    let source = Source::read(file, console)?;
    let text = source.text(console)?;
    let mut charged = BTreeMap::new();
    let beside = file.parent().unwrap_or(Path::new(""));
    let mut load = |path: &str| {
        let overheads = read_overheads(&beside.join(path), path)?;
        charged.insert(path.to_owned(), write_overheads(&overheads));
        Ok(overheads)
    };
    let mut plan = parse_plan(text, &mut load).map_err(|faults| {
        source.show(&faults, Severity::Error, console);
        Exit::BadInput
    })?;
    let given = arguments.seed.or(plan.seed);
    let seed = given.or_else(|| Folder::seed_of(output)).unwrap_or_else(seed::draw);
    if given.is_none() {
        console.note(format!("the seed is {seed}; `seed = {seed}` in the file repeats this study"));
    }
    plan.seed = Some(seed);
    plan.samples = arguments.samples.unwrap_or(plan.samples);
    let identity = Identity {
        study: if plan.name.is_empty() { source.stem.clone() } else { plan.name.clone() },
        version: env!("CARGO_PKG_VERSION").into(),
        seed,
        samples: plan.samples,
        specification: text.to_owned(),
        overheads: charged,
    };
    let html = page::open(arguments.run.html.as_deref(), console)?;
    let folder = Folder::open(output, &identity, arguments.run.resume, console)?;
    interrupt::listen(|| {}, console);
    let outcome = engine::run(&plan, &folder, &identity, &arguments.run, console)?;
    if outcome.share.is_some() {
        return engine::ended(&outcome, &folder, console);
    }
    let drawn = write(&plan, &outcome, &folder, console)?;
    if let Some(file) = html {
        let grids: Vec<Grid> = drawn.into_iter().map(|(_, grid)| grid).collect();
        let of = |method| sum(&plan, &outcome.tallies, method, 0..plan.cells());
        let (verdict, table) = page::methods(&plan, of, outcome.complete);
        let first = ("Methods", table);
        let (complete, command) = (outcome.complete, arguments.run.command.as_slice());
        let account = page::Account { verdict, first, grids: &grids, identity: &identity, complete, command };
        page::write(file, account, console)?;
    }
    let table = table(&plan, &identity.study, &outcome.tallies, console);
    console.print_text(&table)?;
    engine::ended(&outcome, &folder, console)
}

/// Reads the overheads file at `path`, which the study file calls `name`. The error is a message.
fn read_overheads(path: &Path, name: &str) -> Result<Overheads, String> {
    let text = input::read_text(path).map_err(|why| format!("cannot read {name}: {why}"))?;
    parse_overheads(&text).map_err(|faults| {
        let place = |(line, column)| format!(":{line}:{column}");
        let first = &faults[0];
        format!("{name}{}: {first}", first.line_column(&text).map(place).unwrap_or_default())
    })
}

/// The sums of some cells under one method.
fn sum(plan: &Plan, tallies: &[Tally], method: usize, cells: impl Iterator<Item = usize>) -> Tally {
    let mut all = Tally::default();
    cells.for_each(|cell| all.merge(&tallies[cell * plan.methods() + method]));
    all
}

/// The table of all methods over all cells.
fn table(plan: &Plan, name: &str, tallies: &[Tally], console: &Console) -> String {
    let all: Vec<Tally> = (0..plan.methods()).map(|method| sum(plan, tallies, method, 0..plan.cells())).collect();
    let percent = |share: Option<f64>| share.map_or("–".into(), |share| format!("{:.2} %", share * 100.0));
    let each = |of: &dyn Fn(&Tally) -> String| -> Vec<String> { all.iter().map(of).collect() };
    let interval = |tally: &Tally| match tally.interval() {
        Some((low, high)) => format!("{:.2} to {:.2} %", low * 100.0, high * 100.0),
        None => "–".into(),
    };
    let title = format!(
        "{name}: {}, {} each, seed {}\n\n",
        units::count(plan.cells() as u64, "cell"),
        units::count(plan.samples, "system"),
        plan.seed.unwrap_or_default()
    );
    let drawn = console.layout.draw(&[
        Column::words("method", plan.methods.iter().map(|method| method.name.clone())),
        Column::numbers("accepted", each(&|tally| tally.accepted.to_string())),
        Column::numbers("of", each(&|tally| tally.samples.to_string())),
        Column::numbers("share", each(&|tally| percent(tally.share()))),
        Column::words("95 % interval", each(&interval)).gives_way(1),
        Column::numbers("weighted", each(&|tally| percent(tally.weighted()))),
    ]);
    title + &drawn + "weighted: share of the utilization that belongs to accepted systems\n"
}

/// Writes the tables and the figures.
fn write(plan: &Plan, outcome: &Outcome, folder: &Folder, console: &Console) -> Result<Vec<(String, Grid)>, Exit> {
    let results = results(plan, &outcome.tallies).map_err(|error| broken(&*error, console))?;
    folder.write("results.csv", results.as_bytes(), console)?;
    let weighted = weighted(plan, &outcome.tallies).map_err(|error| broken(&*error, console))?;
    folder.write("weighted.csv", weighted.as_bytes(), console)?;
    let mut drawn = curves(plan, &outcome.tallies);
    drawn.extend(weighted_curves(plan, &outcome.tallies));
    for (name, grid) in &drawn {
        let svg = grid.to_svg().map_err(|error| broken(&*error, console))?;
        folder.write(&format!("plots/{name}.svg"), svg.as_bytes(), console)?;
    }
    let figures = units::count(drawn.len() as u64, "figure");
    console.note(format!("results.csv, weighted.csv and {figures} are in {}", folder.path().display()));
    Ok(drawn)
}

fn broken(error: &dyn std::error::Error, console: &Console) -> Exit {
    console.error(format!("the results cannot be written: {error}"), "");
    Exit::Machine
}

/// The columns of a tally in tables.
const SUMS: [&str; 6] = ["samples", "accepted", "share", "low", "high", "weighted"];

/// The cells of a tally in tables: empty without samples.
fn columns(tally: &Tally) -> [String; 6] {
    let decimal = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.6}"));
    let (low, high) = tally.interval().unzip();
    [
        tally.samples.to_string(),
        tally.accepted.to_string(),
        decimal(tally.share()),
        decimal(low),
        decimal(high),
        decimal(tally.weighted()),
    ]
}

type Text = Result<String, Box<dyn std::error::Error>>;

/// One row for each cell and method, in the order of the cells. Cells without samples have none.
fn results(plan: &Plan, tallies: &[Tally]) -> Text {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let keys = plan.axes.iter().map(|axis| axis.key.name());
    let method = ["method", "scheduler", "protocol", "test", "overheads"];
    writer.write_record(keys.chain(method).chain(SUMS))?;
    for cell in 0..plan.cells() {
        let values = plan.axes.iter().zip(plan.places(cell)).map(|(axis, place)| axis.values[place].label.clone());
        let values: Vec<String> = values.collect();
        for (index, method) in plan.methods.iter().enumerate() {
            let tally = &tallies[cell * plan.methods() + index];
            if tally.samples == 0 {
                continue;
            }
            let parts = [
                method.name.clone(),
                method.scheduler.name().into(),
                method.protocol.map_or(String::new(), |protocol| protocol.name().into()),
                method.test.name(method.scheduler).into(),
                method.overheads.as_ref().map_or(String::new(), |(path, _)| path.clone()),
            ];
            writer.write_record(values.iter().cloned().chain(parts).chain(columns(tally)))?;
        }
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

/// A combination of the values of some axes: the place on each axis, or `None` for an axis that is summed over.
type Group = Vec<Option<usize>>;

/// All combinations of the axes that are not in `over`, in the order of the cells.
fn groups(plan: &Plan, over: &[usize]) -> Vec<Group> {
    let mut groups: Vec<Group> = vec![Vec::new()];
    for (index, axis) in plan.axes.iter().enumerate() {
        let places: Vec<Option<usize>> =
            if over.contains(&index) { vec![None] } else { (0..axis.values.len()).map(Some).collect() };
        let longer = |group: &Group| -> Vec<Group> {
            places.iter().map(|&place| group.iter().copied().chain([place]).collect()).collect()
        };
        groups = groups.iter().flat_map(longer).collect();
    }
    groups
}

/// The cells of a group.
fn cells<'a>(plan: &'a Plan, group: &'a Group) -> impl Iterator<Item = usize> + 'a {
    let belongs = move |cell: &usize| {
        plan.places(*cell).iter().zip(group).all(|(place, wanted)| wanted.is_none_or(|wanted| wanted == *place))
    };
    (0..plan.cells()).filter(belongs)
}

/// One row for each method and each combination of values other than those of the horizontal axis.
fn weighted(plan: &Plan, tallies: &[Tally]) -> Text {
    let over: Vec<usize> = plan.x.into_iter().collect();
    let mut writer = csv::Writer::from_writer(Vec::new());
    let kept = || plan.axes.iter().enumerate().filter(|(index, _)| !over.contains(index)).map(|(_, axis)| axis);
    writer.write_record(kept().map(|axis| axis.key.name()).chain(["method"]).chain(SUMS))?;
    for group in groups(plan, &over) {
        for (index, method) in plan.methods.iter().enumerate() {
            let tally = sum(plan, tallies, index, cells(plan, &group));
            if tally.samples > 0 {
                let values = labels(plan, &group).into_iter().map(|(_, label)| label);
                writer.write_record(values.chain([method.name.clone()]).chain(columns(&tally)))?;
            }
        }
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

/// The keys and the values of a group.
fn labels(plan: &Plan, group: &Group) -> Vec<(Key, String)> {
    let fixed = plan.axes.iter().zip(group);
    fixed.filter_map(|(axis, place)| Some((axis.key, axis.values[(*place)?].label.clone()))).collect()
}

/// The figures of schedulability over the horizontal axis, one for each combination of the other values.
fn curves(plan: &Plan, tallies: &[Tally]) -> Vec<(String, Grid)> {
    let Some(x) = plan.x else { return Vec::new() };
    let y = |tally: &Tally| -> Option<Height> { Some((tally.share()?, tally.interval())) };
    let draw = |group: Group| figure(plan, tallies, "schedulability", "share of accepted systems", x, &group, y);
    groups(plan, &[x]).into_iter().map(draw).collect()
}

/// The figures of weighted schedulability over the first other axis with numbers.
fn weighted_curves(plan: &Plan, tallies: &[Tally]) -> Vec<(String, Grid)> {
    let Some(x) = plan.x else { return Vec::new() };
    let has_places = |index: &usize| plan.axes[*index].values.iter().all(|value| value.place().is_some());
    let Some(other) = (0..plan.axes.len()).filter(|&index| index != x).find(has_places) else { return Vec::new() };
    let y = |tally: &Tally| -> Option<Height> { Some((tally.weighted()?, None)) };
    let draw = |group: Group| figure(plan, tallies, "weighted", "weighted schedulability", other, &group, y);
    groups(plan, &[x, other]).into_iter().map(draw).collect()
}

/// The height of a point, and its interval if it has one.
type Height = (f64, Option<(f64, f64)>);

/// A figure over the axis `x`, with the name of its file.
fn figure(
    plan: &Plan,
    tallies: &[Tally],
    kind: &str,
    quantity: &str,
    x: usize,
    group: &Group,
    y: fn(&Tally) -> Option<Height>,
) -> (String, Grid) {
    let fixed = labels(plan, group);
    let curve = |method: usize| {
        let point = |place: usize| {
            let group: Group =
                group.iter().enumerate().map(|(axis, &kept)| if axis == x { Some(place) } else { kept }).collect();
            let tally = sum(plan, tallies, method, cells(plan, &group));
            let (y, interval) = y(&tally)?;
            Some(Point { x: plan.axes[x].values[place].place()?, y, interval })
        };
        let mut points: Vec<Point> = (0..plan.axes[x].values.len()).filter_map(point).collect();
        points.sort_by(|one, other| one.x.total_cmp(&other.x));
        points
    };
    let key = plan.axes[x].key;
    let unit = if key == Key::Lengths { " [µs]" } else { "" };
    let inset = Inset {
        title: fixed.iter().map(|(key, label)| format!("{} = {label}", key.name())).collect::<Vec<_>>().join(", "),
        x: format!("{}{unit}", key.name()),
        y: quantity.into(),
        end: Some(1.0),
        curves: (0..plan.methods()).map(curve).collect(),
    };
    let name: String = std::iter::once(kind.to_owned())
        .chain(fixed.iter().map(|(key, label)| format!("-{}-{label}", key.name())))
        .collect();
    let name = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect();
    let title = if plan.name.is_empty() { quantity.to_owned() } else { format!("{}: {quantity}", plan.name) };
    let legend = plan.methods.iter().map(|method| method.name.clone()).collect();
    (name, Grid { title, columns: 1, legend, insets: vec![inset] })
}
