//! The page of `study bpl`: what the batched order promises, checked in all cells, the results and the figures.

use super::figures;
use crate::console::Console;
use crate::exit::Exit;
use crate::export::ResultFile;
use crate::html::{self, facts};
use crate::json::{BplLock, BplResult};
use crate::units;
use lockwright_report::page::{Cell, Column, Page, Part, Picture, Section, Table, Tone, Verdict};
use std::ffi::OsString;

/// The contents of the page.
pub(super) struct Account<'a> {
    /// Three for each cell, in the order of the locks.
    pub(super) results: &'a [BplResult],
    /// Whether all cells were simulated.
    pub(super) complete: bool,
    /// The length of the simulation, in words.
    pub(super) length: String,
    /// The command.
    pub(super) command: &'a [OsString],
    /// The seed, unless the command gives it.
    pub(super) options: Vec<String>,
}

/// Writes the page.
///
/// # Errors
/// A figure cannot be drawn, or the file cannot be written; the console has the message.
pub(super) fn write(file: ResultFile, account: &Account<'_>, console: &Console) -> Result<(), Exit> {
    let checks: Vec<Check> = CLAIMS.iter().map(|claim| check(claim, account.results)).collect();
    let figure = |(_, figure): (String, crate::figure::Figure)| {
        let svg = figure.to_svg()?;
        let draw = Box::new(move |_: lockwright_report::Place<'_>| svg.clone());
        Ok(Part::Picture(Picture { caption: figure.title, task: None, draw }))
    };
    let figures = figures::figures(account.results).into_iter().map(figure);
    let figures = figures.collect::<Result<Vec<_>, Box<dyn std::error::Error>>>().map_err(|error| {
        console.error(format!("a figure cannot be drawn: {error}"), "");
        Exit::Machine
    })?;
    let mut facts = facts::machine();
    facts.extend([
        ("Simulated", account.length.clone()),
        ("Command", facts::command(account.command, &account.options)),
    ]);
    if !account.complete {
        facts.push(("Incomplete", "the study was interrupted; these are the cells that were finished".into()));
    }
    let page = Page {
        title: "bpl, studied".into(),
        verdicts: vec![verdict(&checks, account)],
        sections: vec![
            Section { title: "What the batched order promises", parts: vec![Part::Table(table(&checks))] },
            Section { title: "Curves", parts: figures },
            Section { title: "Results", parts: vec![Part::Table(results(account.results)), Part::List(legend())] },
            Section { title: "How to repeat this", parts: vec![Part::Facts(facts)] },
        ],
    };
    html::write_file(file, &page, console)
}

/// What is expected of the results under FIFO and under the batched order.
struct Claim {
    statement: &'static str,
    /// Whether it is about each cell. Otherwise it is about the mean of all cells: in one cell, chance can decide.
    of_each: bool,
    /// What is compared, and its unit.
    value: &'static str,
    /// The value, and the one that it must not exceed; `None` if nobody waited.
    of: fn(&BplResult, &BplResult) -> Option<(f64, f64)>,
}

const CLAIMS: [Claim; 3] = [
    Claim {
        statement: "In each cell, a request waits for at most m − 1 sections, with m cores",
        of_each: true,
        value: "sections",
        of: |_, batched| Some((batched.max_sections_waited as f64, f64::from(batched.cores.saturating_sub(1)))),
    },
    Claim {
        statement: "On average over the cells, no more requests have an inversion than under fifo",
        of_each: false,
        value: "% of the requests",
        of: |fifo, batched| Some((batched.inversions_pct, fifo.inversions_pct)),
    },
    Claim {
        statement: "On average over the cells, the weighted mean delay is at most that under fifo",
        of_each: false,
        value: "of the delay under fifo",
        of: |_, batched| Some((batched.weighted_delay_over_fifo?, 1.0)),
    },
];

/// A claim that was checked.
struct Check {
    statement: &'static str,
    holds: Option<bool>,
    evidence: String,
}

fn check(claim: &Claim, results: &[BplResult]) -> Check {
    let cells = results.chunk_by(|one, other| {
        (one.cores, one.burst, one.rate.to_bits()) == (other.cores, other.burst, other.rate.to_bits())
    });
    let of = |cell: &[BplResult]| {
        let of_lock = |lock| cell.iter().find(|result| result.lock == lock);
        let batched = of_lock(BplLock::Batched)?;
        let (value, most) = (claim.of)(of_lock(BplLock::Fifo)?, batched)?;
        Some((value, most, (batched.cores, batched.burst, batched.rate)))
    };
    let found: Vec<_> = cells.filter_map(of).collect();
    let nearest = found.iter().max_by(|one, other| (one.0 - one.1).total_cmp(&(other.0 - other.1)));
    let Some(&(value, most, (cores, burst, rate))) = nearest else {
        return Check { statement: claim.statement, holds: None, evidence: "no request waited".into() };
    };
    let mean = |of: fn(&(f64, f64, _)) -> f64| found.iter().map(of).sum::<f64>() / found.len() as f64;
    let (value, most, place) = match claim.of_each {
        true => (value, most, format!("at {cores} cores, burst {burst} and rate {rate}, nearest to the limit")),
        false => (mean(|cell| cell.0), mean(|cell| cell.1), "the mean of the cells".to_owned()),
    };
    let evidence = format!("{} {}, with the limit {} ({place})", shown(value), claim.value, shown(most));
    Check { statement: claim.statement, holds: Some(value <= most), evidence }
}

fn shown(value: f64) -> String {
    ((value * 1e3).round() / 1e3).to_string()
}

fn verdict(checks: &[Check], account: &Account<'_>) -> Verdict {
    let count = |holds| checks.iter().filter(|check| check.holds == holds).count();
    let cells = account.results.len() / figures::LOCKS.len();
    let (good, bad) = (count(Some(true)), count(Some(false)));
    let text = format!(
        "Of {} promises of the batched order, {good} hold, and {bad} do not ({}{}).",
        checks.len(),
        units::count(cells as u64, "cell"),
        if account.complete { "" } else { "; the study was interrupted" }
    );
    Verdict { holds: bad == 0 && good > 0 && account.complete, text }
}

fn table(checks: &[Check]) -> Table {
    let row = |check: &Check| {
        let verdict = match check.holds {
            Some(true) => Cell::text("✓ holds").with(Tone::Good),
            Some(false) => Cell::text("✗ does not hold").with(Tone::Bad),
            None => Cell::text("not shown"),
        };
        vec![Cell::text(check.statement), verdict, Cell::text(&check.evidence)]
    };
    Table {
        caption: "The batched order beside FIFO".into(),
        columns: vec![
            Column::prose("promise", "statement"),
            Column::words("verdict", "verdict"),
            Column::prose("in these results", "evidence"),
        ],
        rows: checks.iter().map(row).collect(),
    }
}

/// All numbers of `--json`.
fn results(results: &[BplResult]) -> Table {
    let number =
        |value: f64, decimals: usize| Cell::number(format!("{value:.decimals$}"), (value * 1e6).round() as i64);
    let optional =
        |value: Option<f64>, decimals: usize| value.map_or_else(Cell::absent, |value| number(value, decimals));
    let count = |value: u64| Cell::number(value.to_string(), value);
    let row = |result: &BplResult| {
        vec![
            count(result.cores.into()),
            count(result.burst.into()),
            Cell::number(result.rate.to_string(), (result.rate * 1e6).round() as i64),
            Cell::text(result.lock.name()),
            number(result.inversions_pct, 1),
            number(result.weighted_delay, 1),
            optional(result.weighted_delay_over_fifo, 3),
            number(result.mean_wait, 1),
            optional(result.top_mean_wait, 1),
            count(result.max_sections_waited),
            count(result.unserved as u64),
        ]
    };
    let columns = [
        ("cores", "cores"),
        ("burst", "burst"),
        ("rate", "rate"),
        ("lock", "lock"),
        ("inversions (%)", "inversions_pct"),
        ("delay", "weighted_delay"),
        ("over fifo", "weighted_delay_over_fifo"),
        ("wait", "mean_wait"),
        ("top wait", "top_mean_wait"),
        ("sections", "max_sections_waited"),
        ("unserved", "unserved"),
    ];
    let column = |(title, key)| if key == "lock" { Column::words(title, key) } else { Column::numbers(title, key) };
    Table {
        caption: "Three orders of a lock under bursts of requests".into(),
        columns: columns.map(column).into(),
        rows: results.iter().map(row).collect(),
    }
}

/// The columns, and what they mean.
pub(super) const LEGEND: [(&str, &str); 5] = [
    ("rate", "bursts per mean section"),
    ("inversions", "requests that waited while a less important one held the lock"),
    (
        "delay",
        "mean of the cores' mean waits, weighted by importance, without those that never got the lock (unserved)",
    ),
    ("wait", "of all granted requests, and of the most important core's"),
    ("sections", "the most one request waited for"),
];

/// The meanings of the columns.
fn legend() -> Vec<String> {
    LEGEND.map(|(name, meaning)| format!("{name}: {meaning}")).into()
}
