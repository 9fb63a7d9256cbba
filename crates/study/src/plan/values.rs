//! Reading the values of the keys of a generator.

use super::setting::{Drawn, Key, Meaning, Value};
use crate::generators::{Division, Groups, Lengths, Nesting, Periods, Utilization};
use lockwright_analysis::Fit;
use lockwright_model::format::reader::{Diagnostic, Faults, Found};
use lockwright_model::{CPUS_MAX, Duration, NESTING_MAX, RESOURCES_MAX};

/// The greatest number of tasks of a generated system.
pub const TASKS_MAX: usize = 1_000;

/// The range of a key with whole numbers or numbers, and how its messages call it.
pub(super) enum Limits {
    Whole(u64, u64),
    Number(f64, f64),
}

pub(super) fn range(key: Key) -> Option<(&'static str, Limits)> {
    Some(match key {
        Key::Cpus => ("the number of CPUs", Limits::Whole(1, CPUS_MAX as u64)),
        Key::Cluster => ("the number of CPUs of a cluster", Limits::Whole(1, CPUS_MAX as u64)),
        Key::Tasks => ("the number of tasks", Limits::Whole(1, TASKS_MAX as u64)),
        Key::Load => ("the load", Limits::Number(0.001, 1.0)),
        Key::Accesses => ("the number of accesses", Limits::Whole(1, 1_000)),
        Key::Degree => ("the degree of sharing", Limits::Whole(1, 1_000)),
        Key::Resources => ("the number of resources", Limits::Whole(1, RESOURCES_MAX as u64)),
        Key::Probability => ("the probability", Limits::Number(0.0, 1.0)),
        Key::Requests => ("the number of requests", Limits::Whole(1, 100)),
        Key::Reads => ("the share of sections that read", Limits::Number(0.0, 1.0)),
        Key::Utilizations | Key::Periods | Key::Placement | Key::Lengths | Key::Nesting => return None,
    })
}

pub(super) fn whole(whole: u64) -> Value {
    Value { label: whole.to_string(), meaning: Meaning::Whole(whole) }
}

pub(super) fn number(number: f64) -> Value {
    Value { label: number.to_string(), meaning: Meaning::Number(number) }
}

/// Reads the value of a key.
pub(super) fn read_value(key: Key, found: &Found<'_, '_>, faults: &mut Faults) -> Option<Value> {
    match range(key) {
        Some((what, Limits::Whole(least, most))) => return found.integer(what, least, most, faults).map(whole),
        Some((what, Limits::Number(least, most))) => return found.number(what, least, most, faults).map(number),
        None => {}
    }
    match key {
        Key::Periods => read_periods(found, faults),
        Key::Lengths => read_lengths(found, faults),
        Key::Placement => word("placement", "the placement", found, &PLACEMENTS, faults),
        Key::Nesting => read_nesting(found, faults),
        _ => read_utilizations(found, faults),
    }
}

/// Reads the distribution of utilizations: a word, or a table with the limits of the tasks.
fn read_utilizations(found: &Found<'_, '_>, faults: &mut Faults) -> Option<Value> {
    const HELP: &str = "write the least and the greatest utilizations of the tasks in turn, such as { convolutional-fixed-sum = [[0, 0.2], [0.1, 0.8]] }";
    let what = "the distribution of utilizations";
    if !found.is_table() {
        return word("distribution", what, found, &UTILIZATIONS, faults);
    }
    let name = "convolutional-fixed-sum";
    let inner = found.fields("utilizations", &[name], HELP, faults)?;
    let list = inner.require(name, "utilizations", HELP, faults)?.list("the limits", HELP, faults)?;
    let limits = list.iter().map(|found| read_limits(found, HELP, faults)).collect::<Option<Vec<_>>>()?;
    if limits.is_empty() {
        faults.push(Diagnostic::new("the utilizations have no limits").at(found.span()).help(HELP));
        return None;
    }
    let texts: Vec<String> = limits.iter().map(|(least, most)| format!("{least} to {most}")).collect();
    let label = format!("{name} {}", texts.join(", "));
    Some(Value { label, meaning: Meaning::Utilizations(Drawn::Within(limits)) })
}

/// Reads the least and the greatest utilization of a task.
fn read_limits(found: &Found<'_, '_>, help: &str, faults: &mut Faults) -> Option<(f64, f64)> {
    let list = found.list("the limits of a task", help, faults)?;
    let [least, most] = list.as_slice() else {
        let fault = Diagnostic::new(format!("a task has {} limits, and not 2", list.len()));
        faults.push(fault.at(found.span()).help(help));
        return None;
    };
    let mut limit = |found: &Found<'_, '_>| found.number("a limit of a utilization", 0.0, 1.0, faults);
    let (least, most) = (limit(least), limit(most));
    let (least, most) = (least?, most?);
    if least > most {
        faults.push(Diagnostic::new("the limits end before they begin").at(found.span()).help(help));
        return None;
    }
    Some((least, most))
}

/// Reads which sections contain others: a word, or a table with the shares that a recording found.
fn read_nesting(found: &Found<'_, '_>, faults: &mut Faults) -> Option<Value> {
    const HELP: &str = "write the percentages of sections with one other section inside and with more, such as { traced = [6.65, 0.07], deepest = 4 }";
    if !found.is_table() {
        return word("nesting", "the nesting", found, &NESTINGS, faults);
    }
    let inner = found.fields("nesting", &["traced", "traced-groups", "deepest"], HELP, faults)?;
    let given: Vec<(&str, Groups, Found<'_, '_>)> = [("traced", Groups::Separate), ("traced-groups", Groups::Joined)]
        .into_iter()
        .filter_map(|(name, groups)| Some((name, groups, inner.get(name)?)))
        .collect();
    let [(name, groups, shares)] = given.as_slice() else {
        let fault = Diagnostic::new(format!("the nesting has {} lists of shares, and not 1", given.len()));
        faults.push(fault.at(found.span()).help(HELP));
        return None;
    };
    let list = shares.list("the shares", HELP, faults)?;
    let [one, deeper] = list.as_slice() else {
        let fault = Diagnostic::new(format!("the nesting has {} shares, and not 2", list.len()));
        faults.push(fault.at(shares.span()).help(HELP));
        return None;
    };
    let mut percent = |found: &Found<'_, '_>| found.number("a share of sections", 0.0, 100.0, faults);
    let (one, deeper) = (percent(one), percent(deeper));
    let (one, deeper) = (one?, deeper?);
    let deepest = match inner.get("deepest") {
        Some(deepest) => deepest.integer("the greatest number of resources", 2, NESTING_MAX as u64, faults)? as usize,
        None => Nesting::TRACED.deepest,
    };
    let hundredths = |percent: f64| (percent * 100.0).round() as u16;
    let nesting = Nesting { one: hundredths(one), deeper: hundredths(deeper), deepest };
    if nesting.one + nesting.deeper > 10_000 {
        faults.push(Diagnostic::new("the shares are more than 100 %").at(shares.span()).help(HELP));
        return None;
    }
    if deepest == 2 && nesting.deeper > 0 {
        let fault = Diagnostic::new("sections with more than one other inside hold at least 3 resources");
        faults.push(fault.at(found.span()).help("leave `deepest` out, or set it to 3 or more"));
        return None;
    }
    let label = format!("{name} {one} and {deeper} %, at most {deepest}");
    Some(Value { label, meaning: Meaning::Nesting(nesting, *groups) })
}

fn word(
    kind: &str,
    what: &str,
    found: &Found<'_, '_>,
    words: &[(&'static str, Meaning)],
    faults: &mut Faults,
) -> Option<Value> {
    let places: Vec<(&str, usize)> = words.iter().map(|(word, _)| *word).zip(0..).collect();
    let (label, meaning) = words[found.one_of(kind, what, &places, faults)?].clone();
    Some(Value { label: label.into(), meaning })
}

const PLACEMENTS: [(&str, Meaning); 3] = [
    ("worst-fit", Meaning::Placement(Fit::Worst)),
    ("first-fit", Meaning::Placement(Fit::First)),
    ("best-fit", Meaning::Placement(Fit::Best)),
];

const NESTINGS: [(&str, Meaning); 3] = [
    ("none", Meaning::Nesting(Nesting::NONE, Groups::Separate)),
    ("traced", Meaning::Nesting(Nesting::TRACED, Groups::Separate)),
    ("traced-groups", Meaning::Nesting(Nesting::TRACED, Groups::Joined)),
];

const UTILIZATIONS: [(&str, Meaning); 10] = {
    const fn class(of: Utilization) -> Meaning {
        Meaning::Utilizations(Drawn::Class(of))
    }
    [
        ("rand-fixed-sum", Meaning::Utilizations(Drawn::Sum(Division::RandFixedSum))),
        ("uunifast", Meaning::Utilizations(Drawn::Sum(Division::UUniFast))),
        ("uunifast-discard", Meaning::Utilizations(Drawn::Sum(Division::UUniFastDiscard))),
        ("uniform-low", class(Utilization::UNIFORM_LOW)),
        ("uniform-medium", class(Utilization::UNIFORM_MEDIUM)),
        ("uniform-high", class(Utilization::UNIFORM_HIGH)),
        ("exponential-low", class(Utilization::EXPONENTIAL_LOW)),
        ("exponential-medium", class(Utilization::EXPONENTIAL_MEDIUM)),
        ("exponential-high", class(Utilization::EXPONENTIAL_HIGH)),
        ("bimodal", class(Utilization::Bimodal)),
    ]
};

const LENGTHS: [(&str, Lengths); 3] = [("short", Lengths::SHORT), ("medium", Lengths::MEDIUM), ("long", Lengths::LONG)];

/// Reads a positive duration.
fn positive(what: &str, found: &Found<'_, '_>, faults: &mut Faults) -> Option<Duration> {
    let time = found.duration(what, faults)?;
    if time == Duration::ZERO {
        faults.push(Diagnostic::new(format!("{what} is zero")).at(found.span()).help("it must be positive"));
        return None;
    }
    Some(time)
}

/// Reads a list of two durations, the second one not below the first.
fn pair(what: &str, found: &Found<'_, '_>, faults: &mut Faults) -> Option<(Duration, Duration)> {
    let help = "write the least and the greatest value, such as [\"10 ms\", \"1 s\"]";
    let list = found.list(what, help, faults)?;
    let [least, most] = list.as_slice() else {
        faults.push(Diagnostic::new(format!("{what} has {} values", list.len())).at(found.span()).help(help));
        return None;
    };
    let (least, most) = (positive(what, least, faults)?, positive(what, most, faults)?);
    if least > most {
        faults.push(Diagnostic::new(format!("{what} ends before it begins")).at(found.span()).help(help));
        return None;
    }
    Some((least, most))
}

/// Reads lengths: a class, one duration, or two.
fn read_lengths(found: &Found<'_, '_>, faults: &mut Faults) -> Option<Value> {
    let what = "the length of sections";
    let value = |label: String, lengths| Some(Value { label, meaning: Meaning::Lengths(lengths) });
    if found.is_list() {
        let (least, most) = pair(what, found, faults)?;
        return value(format!("{least} to {most}"), Lengths { least, most });
    }
    let text = found.text(what, faults)?;
    if let Some((word, lengths)) = LENGTHS.into_iter().find(|(word, _)| *word == text) {
        return value(word.into(), lengths);
    }
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        let fault = Diagnostic::new(format!("there are no lengths `{text}`")).at(found.span());
        faults.push(fault.help("write short, medium or long, one duration, or two in [ ]"));
        return None;
    }
    let length = positive(what, found, faults)?;
    value(length.to_string(), Lengths::exactly(length))
}

/// Reads periods: a word, or a table with a range.
fn read_periods(found: &Found<'_, '_>, faults: &mut Faults) -> Option<Value> {
    const HELP: &str = "write \"automotive\", { uniform = [\"10 ms\", \"100 ms\"] }, { log-uniform = [\"10 ms\", \"1 s\"] }, or { harmonic = \"5 ms\", doublings = 4 }";
    let value = |label: String, periods| Some(Value { label, meaning: Meaning::Periods(periods) });
    if !found.is_table() {
        let text = found.text("the distribution of periods", faults)?;
        if text != "automotive" {
            let fault = Diagnostic::new(format!("there is no distribution of periods `{text}`")).at(found.span());
            faults.push(fault.help(HELP));
            return None;
        }
        return value(text, Periods::Automotive);
    }
    let inner = found.fields("periods", &["uniform", "log-uniform", "harmonic", "doublings"], HELP, faults)?;
    let ranges = ["uniform", "log-uniform", "harmonic"];
    let given: Vec<(&str, Found<'_, '_>)> =
        ranges.into_iter().filter_map(|name| Some((name, inner.get(name)?))).collect();
    let [(kind, range)] = given.as_slice() else {
        let fault = Diagnostic::new(format!("periods have {} distributions", given.len()));
        faults.push(fault.at(found.span()).help(HELP));
        return None;
    };
    let what = "the period";
    let doublings = inner.get("doublings");
    if let Some(doublings) = doublings.as_ref().filter(|_| *kind != "harmonic") {
        let fault = Diagnostic::new("`doublings` has no meaning without `harmonic`");
        faults.push(fault.at(doublings.key_span()).help(HELP));
        return None;
    }
    if *kind == "harmonic" {
        let least = positive(what, range, faults)?;
        let doublings = inner.require("doublings", "periods", HELP, faults)?;
        let doublings = doublings.integer("the number of doublings", 0, 20, faults)?;
        let most = least.as_ns().checked_shl(doublings as u32).filter(|most| most >> doublings == least.as_ns());
        check_period(most.map(Duration::from_ns), found, faults)?;
        let periods = Periods::Harmonic { least, doublings: doublings as u32 };
        return value(format!("harmonic {least}, {doublings} doublings"), periods);
    }
    let (least, most) = pair(what, range, faults)?;
    check_period(Some(most), range, faults)?;
    let periods =
        if *kind == "uniform" { Periods::Uniform { least, most } } else { Periods::LogUniform { least, most } };
    value(format!("{kind} {least} to {most}"), periods)
}

/// Refuses a period that a system may not have.
fn check_period(most: Option<Duration>, found: &Found<'_, '_>, faults: &mut Faults) -> Option<()> {
    if most.is_some_and(|most| most <= lockwright_model::DURATION_MAX) {
        return Some(());
    }
    let fault = Diagnostic::new("the greatest period is too long").at(found.span());
    faults.push(fault.help(format!("at most {} is supported", lockwright_model::DURATION_MAX)));
    None
}
