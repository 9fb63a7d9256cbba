//! Reading study files.

use super::axes::{Axis, Generator, Plan};
use super::method::{Method, Test, protocols};
use super::setting::{Drawn, Key, Meaning, Setting, Value};
use super::values::{Limits, number, range, read_value, whole};
use crate::experiment::Experiment;
use crate::generators::Division;
use lockwright_analysis::Fit;
use lockwright_model::format::reader::{Diagnostic, Diagnostics, Faults, Fields, Found, read};
use lockwright_model::{Overheads, Protocol, Scheduler};
use std::ops::Range;
use std::sync::Arc;

/// The greatest number of cells of a study.
pub const CELLS_MAX: usize = 10_000;

/// The greatest number of samples of a cell.
pub const SAMPLES_MAX: u64 = 1_000_000_000;

/// Returns the overheads in the file with this path, or a message.
pub type LoadOverheads<'a> = dyn FnMut(&str) -> Result<Overheads, String> + 'a;

/// Reads a study from a study file.
///
/// # Errors
/// Returns at least one fault, in order of place.
pub fn parse_plan(source: &str, overheads: &mut LoadOverheads<'_>) -> Result<Plan, Diagnostics> {
    let keys = ["name", "seed", "samples", "x", "generator", "sections", "vary", "method"];
    read(source, "a study", &keys, |fields, faults| read_plan(fields, overheads, faults))
}

/// Reads a generator from a file with the tables `[generator]` and `[sections]` of a study file.
///
/// # Errors
/// Returns at least one fault, in order of place.
pub fn parse_generator(source: &str) -> Result<Generator, Diagnostics> {
    read(source, "a generator", &["generator", "sections"], |fields, faults| {
        let mut settings = read_settings(fields, faults)?;
        fill_defaults(&mut settings.base);
        if let Err(refusal) = settings.base.check() {
            let place = settings.places.iter().find(|(key, _)| *key == refusal.key).map(|(_, place)| place.clone());
            faults.push(Diagnostic::new(refusal.fault).at(place.unwrap_or(0..0)).help(refusal.help));
            return None;
        }
        Some(Generator { setting: settings.base })
    })
}

/// The values of the generator and of what varies, with their places.
struct Settings {
    base: Setting,
    places: Vec<(Key, Range<usize>)>,
    axes: Vec<Axis>,
    /// By axis and by value.
    axis_places: Vec<Vec<Range<usize>>>,
}

fn read_plan(fields: &Fields<'_, '_>, overheads: &mut LoadOverheads<'_>, faults: &mut Faults) -> Option<Plan> {
    let name = fields.get("name").map_or(Some(String::new()), |found| found.text("the name of the study", faults));
    let seed = match fields.get("seed") {
        Some(found) => found.integer("the seed", 0, i64::MAX as u64, faults).map(Some),
        None => Some(None),
    };
    let samples = fields
        .require("samples", "the study", "add the number of systems in each cell, for example samples = 100", faults)
        .and_then(|found| found.integer("the number of samples", 1, SAMPLES_MAX, faults));
    let settings = read_settings(fields, faults);
    let methods = read_methods(fields, overheads, faults);
    let (mut settings, methods) = (settings?, methods?);
    fill_defaults(&mut settings.base);
    let x = read_x(fields, &settings.axes, faults);
    let plan = Plan {
        name: name?,
        seed: seed?,
        samples: samples?,
        x: x?,
        methods: methods.iter().map(|(method, _)| method.clone()).collect(),
        base: settings.base.clone(),
        axes: settings.axes.clone(),
    };
    let cells = plan.axes.iter().try_fold(1_usize, |product, axis| product.checked_mul(axis.values.len()));
    if cells.is_none_or(|cells| cells > CELLS_MAX) {
        let place = fields.get("vary").map_or(0..0, |found| found.span());
        let fault = Diagnostic::new("what varies has too many combinations").at(place);
        faults.push(fault.help(format!("at most {CELLS_MAX} are supported: remove values")));
        return None;
    }
    check_cells(&plan, &settings, &methods, faults);
    Some(plan)
}

/// Sets the values that a file need not give, so that the results name them and the random numbers depend on them.
fn fill_defaults(base: &mut Setting) {
    let word = |label: &str, meaning| Value { label: label.into(), meaning };
    let mut fill = |key, value| {
        if base.get(key).is_none() {
            base.set(key, value);
        }
    };
    fill(Key::Cpus, word("1", Meaning::Whole(1)));
    fill(Key::Utilizations, word("rand-fixed-sum", Meaning::Utilizations(Drawn::Sum(Division::RandFixedSum))));
    fill(Key::Placement, word("worst-fit", Meaning::Placement(Fit::Worst)));
    fill(Key::Periods, word("log-uniform 10 ms to 1 s", Meaning::Periods(super::setting::DEFAULT_PERIODS)));
}

fn read_settings(fields: &Fields<'_, '_>, faults: &mut Faults) -> Option<Settings> {
    let help = "add [generator] with cpus, tasks and load";
    let generator = fields.require("generator", "the study", help, faults);
    let mut settings =
        Settings { base: Setting::default(), places: Vec::new(), axes: Vec::new(), axis_places: Vec::new() };
    let tables =
        [(generator, "[generator]", &Key::OF_TASKS[..]), (fields.get("sections"), "[sections]", &Key::OF_SECTIONS[..])];
    for (found, owner, keys) in tables {
        let Some(found) = found else { continue };
        let names: Vec<&'static str> = keys.iter().map(|key| key.name()).collect();
        let Some(inner) = found.fields(owner, &names, &format!("write {owner}"), faults) else { continue };
        for &key in keys {
            let Some(found) = inner.get(key.name()) else { continue };
            settings.places.push((key, found.span()));
            if let Some(value) = read_value(key, &found, faults) {
                settings.base.set(key, value);
            }
        }
    }
    read_axes(fields, &mut settings, faults);
    let given = |key: Key| {
        settings.places.iter().any(|(known, _)| *known == key) || settings.axes.iter().any(|axis| axis.key == key)
    };
    let place = fields.get("generator").map_or(0..0, |found| found.key_span());
    for (key, help) in [
        (Key::Tasks, "add the number of tasks, for example tasks = 40"),
        (Key::Load, "add the utilization as a share of all CPUs, for example load = 0.5, or vary it"),
    ] {
        if !given(key) {
            faults.push(Diagnostic::new(format!("the study has no {}", key.name())).at(place.clone()).help(help));
        }
    }
    check_sharing(&given, &settings, faults);
    Some(settings)
}

/// Refuses sections with too many or too few keys.
fn check_sharing(given: &impl Fn(Key) -> bool, settings: &Settings, faults: &mut Faults) {
    let place = |key: Key| {
        let of_axis = || {
            let axis = settings.axes.iter().position(|axis| axis.key == key)?;
            settings.axis_places[axis].first().cloned()
        };
        let base = settings.places.iter().find(|(known, _)| *known == key).map(|(_, place)| place.clone());
        base.or_else(of_axis).unwrap_or(0..0)
    };
    let Some(first) = Key::OF_SECTIONS.into_iter().find(|&key| given(key)) else { return };
    let help = "give accesses (and degree), or resources, probability and requests";
    let others = [Key::Resources, Key::Probability, Key::Requests];
    if given(Key::Accesses) {
        if let Some(other) = others.into_iter().find(|&key| given(key)) {
            let fault = Diagnostic::new(format!("`accesses` and `{}` exclude each other", other.name()));
            faults.push(fault.at(place(other)).help(help));
        }
    } else if !given(Key::Resources) {
        faults.push(Diagnostic::new("sections without `accesses` or `resources`").at(place(first)).help(help));
    } else if given(Key::Degree) {
        let fault = Diagnostic::new("`degree` has no meaning without `accesses`").at(place(Key::Degree));
        faults.push(fault.help(help));
    }
}

fn read_axes(fields: &Fields<'_, '_>, settings: &mut Settings, faults: &mut Faults) {
    let Some(vary) = fields.get("vary") else { return };
    let names = Key::ALL.map(Key::name);
    let Some(inner) = vary.fields("[vary]", &names, "write [vary]", faults) else { return };
    let mut found: Vec<(Key, Found<'_, '_>)> =
        Key::ALL.into_iter().filter_map(|key| Some((key, inner.get(key.name())?))).collect();
    found.sort_by_key(|(_, found)| found.key_span().start);
    for (key, found) in found {
        if settings.places.iter().any(|(known, _)| *known == key) {
            let fault = Diagnostic::new(format!("`{}` varies and also has a value", key.name()));
            faults.push(fault.at(found.key_span()).help("remove one of the two"));
        }
        let values = read_axis(key, &found, faults);
        let mut seen: Vec<&str> = Vec::new();
        for (value, place) in &values {
            if seen.contains(&value.label.as_str()) {
                let fault = Diagnostic::new(format!("`{}` takes the value {} twice", key.name(), value.label));
                faults.push(fault.at(place.clone()).help("remove one of them"));
            }
            seen.push(&value.label);
        }
        if values.is_empty() {
            continue;
        }
        let (values, places) = values.into_iter().unzip();
        settings.axes.push(Axis { key, values });
        settings.axis_places.push(places);
    }
}

/// Reads the values of one axis: a list, or a table with `from`, `to` and `step`. Faults lead to no values.
fn read_axis(key: Key, found: &Found<'_, '_>, faults: &mut Faults) -> Vec<(Value, Range<usize>)> {
    let what = format!("what `{}` varies over", key.name());
    if found.is_table() && key != Key::Periods {
        return read_steps(key, found, faults).unwrap_or_default();
    }
    let Some(list) = found.list(&what, "write a list of values, in [ ]", faults) else { return Vec::new() };
    if list.is_empty() {
        faults.push(Diagnostic::new(format!("{what} is empty")).at(found.span()).help("add at least one value"));
    }
    let read = |one: &Found<'_, '_>| Some((read_value(key, one, faults)?, one.span()));
    // A value that is wrong has been reported.
    list.iter().filter_map(read).collect()
}

fn read_steps(key: Key, found: &Found<'_, '_>, faults: &mut Faults) -> Option<Vec<(Value, Range<usize>)>> {
    const HELP: &str = "write a list of values, or { from = 1, to = 9, step = 1 }";
    let Some((what, range)) = range(key) else {
        let fault = found.mistyped(&format!("what `{}` varies over", key.name()), "a list");
        faults.push(fault.help("write a list of values, in [ ]"));
        return None;
    };
    let inner = found.fields("a range", &["from", "to", "step"], HELP, faults)?;
    let [from, to, step] = ["from", "to", "step"].map(|name| inner.require(name, "the range", HELP, faults));
    let (from, to, step) = (from?, to?, step?);
    let values: Vec<Value> = match range {
        Limits::Whole(least, most) => {
            let (first, last) = (from.integer(what, least, most, faults), to.integer(what, least, most, faults));
            let step = step.integer("the step", 1, most, faults)?;
            (first?..=last?).step_by(usize::try_from(step).ok()?).map(whole).collect()
        }
        Limits::Number(least, most) => {
            let (first, last) = (from.number(what, least, most, faults), to.number(what, least, most, faults));
            let step = step.number("the step", 0.001, most, faults)?;
            let (first, last) = (first?, last?);
            // The last value may be one step too far by rounding.
            let count = ((last - first) / step + 1e-9).floor();
            let at = |place: u32| number(((first + f64::from(place) * step) * 1e9).round() / 1e9);
            if count < 0.0 { Vec::new() } else { (0..=count as u32).map(at).collect() }
        }
    };
    if values.is_empty() {
        faults.push(Diagnostic::new("a range that ends before it begins").at(found.span()).help("swap from and to"));
    }
    Some(values.into_iter().map(|value| (value, found.span())).collect())
}

/// Reads the axis of the curves: the one that the file names, or the first one with numbers.
fn read_x(fields: &Fields<'_, '_>, axes: &[Axis], faults: &mut Faults) -> Option<Option<usize>> {
    let has_places = |axis: &&Axis| axis.values.iter().all(|value| value.place().is_some());
    let Some(found) = fields.get("x") else { return Some(axes.iter().position(|axis| has_places(&axis))) };
    let keys: Vec<(&'static str, usize)> = axes.iter().map(|axis| axis.key.name()).zip(0..).collect();
    if keys.is_empty() {
        faults.push(Diagnostic::new("`x` without anything that varies").at(found.span()).help("add [vary]"));
        return None;
    }
    let axis = found.one_of("axis", "`x`", &keys, faults)?;
    if !has_places(&&axes[axis]) {
        let fault = Diagnostic::new(format!("the values of `{}` are no numbers", axes[axis].key.name()));
        faults.push(fault.at(found.span()).help("choose an axis of numbers or of single lengths"));
        return None;
    }
    Some(Some(axis))
}

fn read_methods(
    fields: &Fields<'_, '_>,
    overheads: &mut LoadOverheads<'_>,
    faults: &mut Faults,
) -> Option<Vec<(Method, Range<usize>)>> {
    let help = "add [[method]], with protocols = [\"mpcp\"] below it";
    let list = fields.require("method", "the study", help, faults)?;
    let list = list.list("`method`", "write each as [[method]]", faults)?;
    let mut methods: Vec<(Method, Range<usize>)> = Vec::new();
    for found in &list {
        methods.extend(read_method(found, overheads, faults).unwrap_or_default());
    }
    for (index, (method, place)) in methods.iter().enumerate() {
        if methods[..index].iter().any(|(other, _)| other.name == method.name) {
            let fault = Diagnostic::new(format!("two methods are called `{}`", method.name)).at(place.clone());
            faults.push(fault.help("give them a name: name = \"...\""));
        }
    }
    if list.is_empty() {
        faults.push(Diagnostic::new("the study has no method").help(help));
    }
    Some(methods)
}

/// Reads one `[[method]]`, which is a method for each of its protocols.
fn read_method(
    found: &Found<'_, '_>,
    overheads: &mut LoadOverheads<'_>,
    faults: &mut Faults,
) -> Option<Vec<(Method, Range<usize>)>> {
    let keys = ["name", "scheduler", "protocols", "test", "overheads"];
    let fields = found.fields("a method", &keys, "write [[method]]", faults)?;
    let names = Scheduler::ALL.map(|known| (known.name(), known));
    let scheduler = match fields.get("scheduler") {
        Some(found) => found.one_of("scheduler for studies", "the scheduler", &names, faults)?,
        None => Scheduler::PFp,
    };
    let tests = Test::of(scheduler);
    let test = match fields.get("test") {
        Some(found) => found.one_of(&format!("test of {scheduler}"), "the test", tests, faults)?,
        None => tests[0].1,
    };
    let overheads = match fields.get("overheads") {
        None => None,
        Some(found) => {
            let path = found.text("the overheads file", faults)?;
            match overheads(&path) {
                Ok(overheads) => Some((path, Arc::new(overheads))),
                Err(message) => {
                    let fault = Diagnostic::new(message).at(found.span());
                    faults
                        .push(fault.help("give an overheads file, relative to the study file; see docs/overheads.md"));
                    return None;
                }
            }
        }
    };
    let own = match fields.get("name") {
        Some(found) => Some(found.text("the name of a method", faults)?),
        None => None,
    };
    let ruling = match fields.get("protocols") {
        Some(found) => {
            let known: Vec<_> = protocols(scheduler).iter().map(|&protocol| (protocol.name(), protocol)).collect();
            let what = match scheduler {
                Scheduler::PFp => "protocol".to_owned(),
                _ => format!("protocol of studies under {scheduler}"),
            };
            let list = found.list("`protocols`", "write a list, such as [\"mpcp\", \"dpcp\"]", faults)?;
            if list.is_empty() {
                faults.push(Diagnostic::new("a method without protocols").at(found.span()).help("name at least one"));
                return None;
            }
            let read = |one: &Found<'_, '_>| Some((Some(one.one_of(&what, "a protocol", &known, faults)?), one.span()));
            list.iter().map(read).collect::<Option<Vec<_>>>()?
        }
        None => vec![(None, fields.get("scheduler").map_or(found.span(), |found| found.span()))],
    };
    let method = |(protocol, place): (Option<Protocol>, Range<usize>)| {
        let protocol_name = protocol.map(Protocol::name);
        let test_name = (test != tests[0].1).then(|| test.name(scheduler));
        let charged = overheads.as_ref().map(|(path, _)| path.as_str());
        let parts = match &own {
            Some(own) => [Some(own.as_str()), protocol_name, None, None],
            None => [Some(scheduler.name()), protocol_name, test_name, charged],
        };
        let name = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
        (Method { name, scheduler, protocol, test, overheads: overheads.clone() }, place)
    };
    Some(ruling.into_iter().map(method).collect())
}

/// Refuses cells without systems, and methods that cover no system of a cell. Each fault is reported once.
fn check_cells(plan: &Plan, settings: &Settings, methods: &[(Method, Range<usize>)], faults: &mut Faults) {
    let mut told: Vec<(Range<usize>, String)> = Vec::new();
    let mut tell = |place: Range<usize>, fault: String, help: String, faults: &mut Faults| {
        if !told.iter().any(|(known, text)| *known == place && *text == fault) {
            told.push((place.clone(), fault.clone()));
            faults.push(Diagnostic::new(fault).at(place).help(help));
        }
    };
    for cell in 0..plan.cells() {
        let setting = plan.setting(cell);
        if let Err(refusal) = setting.check() {
            let axis = plan.axes.iter().position(|axis| axis.key == refusal.key);
            let place = match axis {
                Some(axis) => Some(settings.axis_places[axis][plan.places(cell)[axis]].clone()),
                None => settings.places.iter().find(|(key, _)| *key == refusal.key).map(|(_, place)| place.clone()),
            };
            tell(place.unwrap_or(0..0), refusal.fault, refusal.help, faults);
        }
        for (method, place) in methods {
            if let Some((fault, help)) = uncovered(method, &setting) {
                tell(place.clone(), fault, help.into(), faults);
            }
        }
    }
}

/// The protocols with bounds for nested sections, on one processor.
const NESTABLE: [Protocol; 5] = [Protocol::None, Protocol::Pip, Protocol::Icpp, Protocol::Pcp, Protocol::Srp];

/// Returns why a method covers no system of a cell, with a remedy.
fn uncovered(method: &Method, setting: &Setting) -> Option<(String, &'static str)> {
    let (name, has_sections) = (method.scheduler.name(), setting.has_sections());
    if method.scheduler != Scheduler::PEdf && has_sections && method.protocol.is_none() {
        return Some((
            "a method without a protocol for the sections".into(),
            match method.scheduler {
                Scheduler::PFp => "add protocols = [...], for example [\"mpcp\", \"fmlp_short\"]",
                Scheduler::CFp => "add protocols = [\"omlp\"]",
                _ => "add protocols = [...], for example [\"fmlp_short\", \"fmlp_long\", \"lock_free\"]",
            },
        ));
    }
    if setting.cluster() > 1 && matches!(method.scheduler, Scheduler::PFp | Scheduler::PEdf) {
        return Some((
            format!("under `{name}` each task has one CPU, and clusters have {} here", setting.cluster()),
            "set scheduler = \"c-fp\", or cluster = 1",
        ));
    }
    let is_alone = setting.cpus() == 1;
    let nests = match method.protocol {
        Some(protocol) => is_alone && NESTABLE.contains(&protocol),
        None => is_alone,
    };
    if setting.is_nested() && !nests {
        let protocol = method.protocol.map_or(name, Protocol::name);
        return Some((
            format!("`{protocol}` has no bounds for nested sections on these CPUs"),
            "set nesting = \"traced-groups\", which makes one lock of resources that are held together",
        ));
    }
    None
}
