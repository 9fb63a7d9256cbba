//! `lockwright study FILE`: a study that a file describes.

use super::dask;
use super::engine::{self, Outcome};
use super::folder::{Folder, Identity, PLOTS, RESULTS, cannot_compute};
use super::page;
use super::table::{Kind, Table, Value};
use crate::args::Study;
use crate::console::Console;
use crate::curves::{Grid, Inset, Point};
use crate::diagnose::Severity;
use crate::exit::Exit;
use crate::input::{self, Source};
use crate::interrupt;
use crate::layout::Column;
use crate::paths;
use crate::seed;
use crate::tame::line;
use crate::units;
use lockwright_model::Overheads;
use lockwright_model::format::{parse_overheads, write_overheads};
use lockwright_study::experiment::{Experiment, Tally};
use lockwright_study::plan::{Axis, Key, Method, Plan, Test, parse_plan};
use std::collections::{BTreeMap, HashSet};
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
    if let Some(address) = &arguments.dask {
        return dask::on_cluster(arguments, file, output, address, console);
    }
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
    if let Some(html) = &arguments.run.html {
        let read: Vec<_> = charged.keys().map(|path| beside.join(path)).collect();
        paths::refuse_replaced(&read, "--html", html, console)?;
    }
    let given = arguments.seed.or(plan.seed);
    let known = given.or_else(|| Folder::seed_of(output));
    if known.is_none() && arguments.run.share.is_some_and(|share| share.of > 1) {
        console.error("the shares of a study need the same seed", "add `seed = 1` to the file, or --seed 1");
        return Err(Exit::BadInput);
    }
    let seed = known.unwrap_or_else(seed::draw);
    if given.is_none() {
        console.note(format!("the seed is {seed}; `seed = {seed}` in the file repeats this study"));
    }
    plan.seed = Some(seed);
    plan.samples = arguments.samples.unwrap_or(plan.samples);
    if plan.name.is_empty() {
        plan.name.clone_from(&source.stem);
    }
    let identity = Identity {
        study: plan.name.clone(),
        version: env!("CARGO_PKG_VERSION").into(),
        seed,
        samples: plan.samples,
        specification: text.to_owned(),
        overheads: charged,
    };
    let html = page::open(&arguments.run, output, console)?;
    let folder = Folder::open(output, &identity, &plan, arguments.run.resume, console)?;
    interrupt::listen(|| {}, console);
    let outcome = engine::run(&plan, &folder, &identity, &arguments.run, console)?;
    if outcome.share.is_some() {
        return engine::ended(&outcome, &folder, console);
    }
    write_tables(&plan, &outcome, &folder, console)?;
    console.print_text(&table(&plan, &outcome.tallies, console))?;
    let drawn = write_figures(&plan, &outcome, &folder, console)?;
    if let Some(file) = html {
        let grids: Vec<Grid> = drawn.into_iter().map(|(_, grid)| grid).collect();
        let of = |method| sum(&plan, &outcome.tallies, method, 0..plan.cells());
        let (verdict, table) = page::methods(&plan, of, outcome.complete);
        let first = ("Methods", table);
        let (complete, command) = (outcome.complete, arguments.run.command.as_slice());
        let account = page::Account { verdict, first, grids: &grids, identity: &identity, complete, command };
        page::write(file, account, console)?;
    }
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

/// The sums of some cells under one method, and how often they count each system: clusters of every size have the same
/// systems.
fn sum(plan: &Plan, tallies: &[Tally], method: usize, cells: impl IntoIterator<Item = usize>) -> (Tally, u64) {
    let cluster = plan.axes.iter().position(|axis| axis.key == Key::Cluster);
    let (mut all, mut sizes) = (Tally::default(), HashSet::new());
    for cell in cells {
        let tally = &tallies[cell * plan.methods() + method];
        all.merge(tally);
        if let Some(axis) = cluster.filter(|_| tally.samples > 0) {
            sizes.insert(plan.places(cell)[axis]);
        }
    }
    (all, sizes.len().max(1) as u64)
}

/// The table of all methods over all cells.
fn table(plan: &Plan, tallies: &[Tally], console: &Console) -> String {
    let all: Vec<_> = (0..plan.methods()).map(|method| sum(plan, tallies, method, 0..plan.cells())).collect();
    let percent = |share: Option<f64>| share.map_or("–".into(), |share| format!("{:.2} %", share * 100.0));
    let each = |of: &dyn Fn(&Tally) -> String| -> Vec<String> { all.iter().map(|(tally, _)| of(tally)).collect() };
    let interval = |(tally, times): &(Tally, u64)| match tally.interval_of_repeated(*times) {
        Some((low, high)) => format!("{:.2} to {:.2} %", low * 100.0, high * 100.0),
        None => "–".into(),
    };
    let title = format!(
        "{}: {}, {} each, seed {}\n\n",
        line(&plan.name),
        units::count(plan.cells() as u64, "cell"),
        units::count(plan.samples, "system"),
        plan.seed.unwrap_or_default()
    );
    let drawn = console.layout.draw(&[
        Column::words("method", plan.methods.iter().map(|method| method.name.clone())),
        Column::numbers("accepted", each(&|tally| tally.accepted.to_string())),
        Column::numbers("of", each(&|tally| tally.samples.to_string())),
        Column::numbers("share", each(&|tally| percent(tally.share()))),
        Column::words("95 % interval", all.iter().map(interval)).gives_way(1),
        Column::numbers("weighted", each(&|tally| percent(tally.weighted()))),
    ]);
    title + &drawn + "weighted: share of the utilization that belongs to accepted systems\n"
}

/// Writes the tables.
fn write_tables(plan: &Plan, outcome: &Outcome, folder: &Folder, console: &Console) -> Result<(), Exit> {
    folder.write_results(&results(plan, &outcome.tallies), console)?;
    folder.write_table("weighted.csv", &weighted(plan, &outcome.tallies), console)
}

/// Greatest number of characters in the name of a figure's file.
const NAME_MAX: usize = 120;

/// Writes the figures. A name that is too long is cut, and ends with the number of the figure.
fn write_figures(
    plan: &Plan,
    outcome: &Outcome,
    folder: &Folder,
    console: &Console,
) -> Result<Vec<(String, Grid)>, Exit> {
    let mut drawn = curves(plan, &outcome.tallies);
    drawn.extend(weighted_curves(plan, &outcome.tallies));
    for (index, (name, grid)) in drawn.iter_mut().enumerate() {
        if name.len() > NAME_MAX {
            // Names of figures are ASCII.
            name.truncate(NAME_MAX);
            name.push_str(&format!("-{}", index + 1));
        }
        let svg = grid.to_svg().map_err(|error| cannot_compute(&*error, console))?;
        folder.write(&format!("{PLOTS}/{name}.svg"), svg.as_bytes(), console)?;
    }
    let figures = units::count(drawn.len() as u64, "figure");
    console.note(format!("{RESULTS}, weighted.csv and {figures} are in {}", folder.path().display()));
    Ok(drawn)
}

/// The columns of a tally in tables.
const SUMS: [(&str, Kind); 7] = [
    ("samples", Kind::Whole),
    ("accepted", Kind::Whole),
    ("share", Kind::Number(6)),
    ("low", Kind::Number(6)),
    ("high", Kind::Number(6)),
    ("weighted", Kind::Number(6)),
    ("tardiness_us", Kind::Number(3)),
];

/// The mean over the accepted systems of their greatest tardiness, if the method bounds it.
fn tardiness_us(method: &Method, tally: &Tally) -> Option<f64> {
    tally.mean_bound().filter(|_| method.test == Test::Tardiness).map(|ns| ns / 1_000.0)
}

/// The cells of a tally in tables, which counts each system `times` times: none without samples.
fn columns(method: &Method, tally: &Tally, times: u64) -> [Value; 7] {
    let (low, high) = tally.interval_of_repeated(times).unzip();
    [
        Value::Whole(tally.samples),
        Value::Whole(tally.accepted),
        Value::Number(tally.share()),
        Value::Number(low),
        Value::Number(high),
        Value::Number(tally.weighted()),
        Value::Number(tardiness_us(method, tally)),
    ]
}

/// An empty table with the columns of these axes, of a method and of its tallies.
fn tidy<'a>(axes: impl Iterator<Item = &'a Axis>, method: &[&str]) -> Table {
    let axes = axes.map(|axis| {
        let kind = match axis.key {
            Key::Cpus | Key::Cluster | Key::Tasks | Key::Accesses | Key::Degree | Key::Resources | Key::Requests => {
                Kind::Whole
            }
            Key::Load | Key::Probability | Key::Reads => Kind::Number(9),
            Key::Utilizations | Key::Periods | Key::Placement | Key::Lengths | Key::Nesting => Kind::Text,
        };
        (axis.key.name().to_owned(), kind)
    });
    let method = method.iter().map(|name| ((*name).to_owned(), Kind::Text));
    let sums = SUMS.map(|(name, kind)| (name.to_owned(), kind));
    Table::new(axes.chain(method).chain(sums).collect())
}

/// One row for each cell and method, in the order of the cells. Cells without samples have none.
fn results(plan: &Plan, tallies: &[Tally]) -> Table {
    let mut table = tidy(plan.axes.iter(), &["method", "scheduler", "protocol", "test", "overheads"]);
    for cell in 0..plan.cells() {
        let values = plan.axes.iter().zip(plan.places(cell)).map(|(axis, place)| axis.values[place].label.as_str());
        let values: Vec<Value> = values.map(Value::from).collect();
        for (index, method) in plan.methods.iter().enumerate() {
            let tally = &tallies[cell * plan.methods() + index];
            if tally.samples == 0 {
                continue;
            }
            let parts = [
                method.name.as_str(),
                method.scheduler.name(),
                method.protocol.map_or("", |protocol| protocol.name()),
                method.test.name(method.scheduler),
                method.overheads.as_ref().map_or("", |(path, _)| path),
            ];
            table.push(values.iter().cloned().chain(parts.map(Value::from)).chain(columns(method, tally, 1)).collect());
        }
    }
    table
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

/// The cells of a group, in order: the places on the axes are the digits of their numbers, the last one the lowest.
fn cells(plan: &Plan, group: &Group) -> Vec<usize> {
    let mut cells = vec![0];
    for (axis, &wanted) in plan.axes.iter().zip(group) {
        let all = axis.values.len();
        let places = wanted.map_or(0..all, |place| place..place + 1);
        cells = cells.into_iter().flat_map(|cell| places.clone().map(move |place| cell * all + place)).collect();
    }
    cells
}

/// One row for each method and each combination of values other than those of the horizontal axis.
fn weighted(plan: &Plan, tallies: &[Tally]) -> Table {
    let over: Vec<usize> = plan.x.into_iter().collect();
    let kept = plan.axes.iter().enumerate().filter(|(index, _)| !over.contains(index)).map(|(_, axis)| axis);
    let mut table = tidy(kept, &["method"]);
    for group in groups(plan, &over) {
        for (index, method) in plan.methods.iter().enumerate() {
            let (tally, times) = sum(plan, tallies, index, cells(plan, &group));
            if tally.samples > 0 {
                let values = labels(plan, &group).into_iter().map(|(_, label)| Value::Text(label));
                table.push(values.chain([method.name.as_str().into()]).chain(columns(method, &tally, times)).collect());
            }
        }
    }
    table
}

/// The keys and the values of a group.
fn labels(plan: &Plan, group: &Group) -> Vec<(Key, String)> {
    let fixed = plan.axes.iter().zip(group);
    fixed.filter_map(|(axis, place)| Some((axis.key, axis.values[(*place)?].label.clone()))).collect()
}

/// The figures over the horizontal axis, one for each combination of the other values: of schedulability, and of
/// tardiness if a method bounds it.
fn curves(plan: &Plan, tallies: &[Tally]) -> Vec<(String, Grid)> {
    let Some(x) = plan.x else { return Vec::new() };
    let share = Shown {
        kind: "schedulability",
        quantity: "share of accepted systems",
        end: Some(1.0),
        y: |_, tally| Some((tally.share()?, tally.interval())),
    };
    let late = Shown {
        kind: "tardiness",
        quantity: "mean of the greatest tardiness [µs]",
        end: None,
        y: |method, tally| Some((tardiness_us(method, tally)?, None)),
    };
    let is_late = plan.methods.iter().any(|method| method.test == Test::Tardiness);
    let all = std::iter::once(share).chain(is_late.then_some(late));
    all.flat_map(|shown| groups(plan, &[x]).into_iter().map(move |group| figure(plan, tallies, &shown, x, &group)))
        .collect()
}

/// The figures of weighted schedulability over the first other axis with numbers.
fn weighted_curves(plan: &Plan, tallies: &[Tally]) -> Vec<(String, Grid)> {
    let Some(x) = plan.x else { return Vec::new() };
    let has_places = |index: &usize| plan.axes[*index].values.iter().all(|value| value.place().is_some());
    let Some(other) = (0..plan.axes.len()).filter(|&index| index != x).find(has_places) else { return Vec::new() };
    let shown = Shown {
        kind: "weighted",
        quantity: "weighted schedulability",
        end: Some(1.0),
        y: |_, tally| Some((tally.weighted()?, None)),
    };
    groups(plan, &[x, other]).into_iter().map(|group| figure(plan, tallies, &shown, other, &group)).collect()
}

/// What a figure shows.
struct Shown {
    /// The beginning of the names of files.
    kind: &'static str,
    /// The label of the vertical axis.
    quantity: &'static str,
    /// The end of the vertical axis, if it is fixed.
    end: Option<f64>,
    /// The height of a point.
    y: fn(&Method, &Tally) -> Option<Height>,
}

/// The height of a point, and its interval if it has one.
type Height = (f64, Option<(f64, f64)>);

/// A figure over the axis `x`, with the name of its file.
fn figure(plan: &Plan, tallies: &[Tally], shown: &Shown, x: usize, group: &Group) -> (String, Grid) {
    let fixed = labels(plan, group);
    let curve = |method: usize| {
        let point = |place: usize| {
            let group: Group =
                group.iter().enumerate().map(|(axis, &kept)| if axis == x { Some(place) } else { kept }).collect();
            let (tally, _) = sum(plan, tallies, method, cells(plan, &group));
            let (y, interval) = (shown.y)(&plan.methods[method], &tally)?;
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
        y: shown.quantity.into(),
        end: shown.end,
        curves: (0..plan.methods()).map(curve).collect(),
    };
    let name: String = std::iter::once(shown.kind.to_owned())
        .chain(fixed.iter().map(|(key, label)| format!("-{}-{label}", key.name())))
        .collect();
    let name = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect();
    let title = format!("{}: {}", plan.name, shown.quantity);
    let legend = plan.methods.iter().map(|method| method.name.clone()).collect();
    (name, Grid { title, columns: 1, legend, insets: vec![inset] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_a_group_are_those_with_its_places() {
        let text = "samples = 1\n[generator]\nload = 0.5\n[vary]\ntasks = [2, 3]\ncpus = [1, 2, 3]\n\
                    placement = [\"first-fit\", \"worst-fit\"]\n[[method]]\nscheduler = \"p-edf\"\n";
        let plan = parse_plan(text, &mut |_| Err("none".into())).expect("valid");
        for over in [&[][..], &[0], &[1], &[2], &[0, 2], &[0, 1, 2]] {
            let all = groups(&plan, over);
            for group in &all {
                let belongs = |cell: &usize| {
                    plan.places(*cell).iter().zip(group).all(|(place, kept)| kept.is_none_or(|kept| kept == *place))
                };
                assert_eq!(cells(&plan, group), (0..12).filter(belongs).collect::<Vec<_>>(), "{group:?}");
            }
            assert_eq!(all.iter().map(|group| cells(&plan, group).len()).sum::<usize>(), 12);
        }
    }
}
