//! The tables and sentences of a page, from the object that `--json` prints.

use crate::json::{BesideLock, ChangedBound, GrowthResult, GrowthState, Output, ProtocolResult, TaskResult, Verb};
use crate::units::{self, Round, Unit};
use lockwright_model::Duration;
use lockwright_report::page::{Cell, Column, Table, Tone, Verdict};

/// Greatest number of names in a sentence.
const NAMES_SHOWN: usize = 4;

/// A column of times of tasks.
pub struct Times {
    /// The title, as in the tables on the terminal.
    pub title: &'static str,
    /// The key in JSON.
    pub key: &'static str,
    /// The value.
    pub of: fn(&TaskResult) -> Option<i128>,
    /// Omitted if all its values are 0 or absent.
    optional: bool,
}

const fn times(title: &'static str, key: &'static str, of: fn(&TaskResult) -> Option<i128>, optional: bool) -> Times {
    Times { title, key, of, optional }
}

/// All columns of times, in their order.
pub const TIMES: [Times; 13] = [
    times("C", "cost_ns", |task| Some(task.cost_ns.into()), false),
    times("C charged", "charged_cost_ns", |task| task.charged_cost_ns.map(Into::into), true),
    times("B", "blocking_ns", |task| task.blocking_ns.map(Into::into), false),
    times("B local", "local_ns", |task| task.blocking.as_ref().map(|parts| parts.local_ns.into()), true),
    times("B boosted", "boosted_ns", |task| task.blocking.as_ref().map(|parts| parts.boosted_ns.into()), true),
    times("B remote", "remote_ns", |task| task.blocking.as_ref().map(|parts| parts.remote_ns.into()), true),
    times("B seen", "observed_blocking_ns", |task| task.observed_blocking_ns.map(Into::into), true),
    times("R bound", "response_ns", |task| task.response_ns.map(Into::into), false),
    times("R seen", "observed_response_ns", |task| task.observed_response_ns.map(Into::into), true),
    times("p99.9", "observed_p999_ns", |task| task.observed_p999_ns.map(Into::into), true),
    times("D", "deadline_ns", |task| Some(task.deadline_ns.into()), false),
    times("slack", "slack_ns", |task| task.slack_ns.map(Into::into), false),
    times("lock wait", "lock_wait_ns", |task| task.lock_wait_ns.map(Into::into), true),
];

/// A time in nanoseconds in this unit, rounded to the pessimistic side.
fn time(ns: i128, unit: Unit, key: &str) -> Cell {
    let round = if key == "slack_ns" { Round::Down } else { Round::Up };
    let short = i64::try_from(ns).unwrap_or(i64::MAX);
    Cell::number(unit.format(short, unit.decimals(short), round), ns)
}

/// The unit of the times of a system.
fn unit(result: &ProtocolResult) -> Unit {
    Unit::fitting(result.tasks.iter().map(|task| Duration::from_ns(task.cost_ns)))
}

/// The verdict on a task, in words.
fn word(task: &TaskResult) -> String {
    let otherwise = if task.schedulable { "ok" } else { "does not hold" };
    task.verdict.clone().unwrap_or_else(|| otherwise.into())
}

/// The verdict cell of a task.
pub fn verdict_cell(task: &TaskResult) -> Cell {
    let (tone, mark) = if task.schedulable { (Tone::Good, "✓") } else { (Tone::Bad, "✗") };
    Cell::text(format!("{mark} {}", word(task))).with(tone)
}

/// All tasks under one protocol.
pub fn tasks(result: &ProtocolResult) -> Table {
    let unit = unit(result);
    let all = &result.tasks;
    let mut columns = vec![
        Column::words("task", "name"),
        Column::words("verdict", "verdict"),
        Column::words("CPU", "cpu"),
        Column::numbers("priority", "priority"),
    ];
    let shown: Vec<&Times> = TIMES
        .iter()
        .filter(|times| !times.optional || all.iter().any(|task| (times.of)(task).unwrap_or(0) != 0))
        .collect();
    columns.extend(shown.iter().map(|times| Column::numbers(format!("{} ({})", times.title, unit.name()), times.key)));
    type Count = (&'static str, &'static str, fn(&TaskResult) -> Option<u64>);
    let counts: [Count; 3] = [
        ("jobs", "jobs", |task| task.jobs),
        ("restarts", "restarts", |task| task.restarts),
        ("misses", "misses", |task| task.misses),
    ];
    let counts: Vec<_> = counts.into_iter().filter(|(.., of)| all.iter().any(|task| of(task).is_some())).collect();
    columns.extend(counts.iter().map(|(title, key, _)| Column::numbers(*title, key)));
    let row = |task: &TaskResult| {
        let mut cells = vec![
            Cell::text(&task.name),
            verdict_cell(task),
            Cell::text(cpus(task).unwrap_or_else(|| "any".into())),
            Cell::number(task.priority.to_string(), task.priority),
        ];
        let ns = |times: &&Times| (times.of)(task).map_or_else(Cell::absent, |ns| time(ns, unit, times.key));
        cells.extend(shown.iter().map(ns));
        cells.extend(counts.iter().map(|(.., of)| match of(task) {
            Some(count) => Cell::number(count.to_string(), count),
            None => Cell::absent(),
        }));
        cells
    };
    Table { caption: format!("The tasks under {}", named(result)), columns, rows: all.iter().map(row).collect() }
}

/// The CPUs of a task; `None` if a global scheduler chooses them.
pub fn cpus(task: &TaskResult) -> Option<String> {
    let cpus = task.cpus.clone().or_else(|| Some(vec![task.cpu?]))?;
    Some(list(cpus.iter().map(u16::to_string)))
}

/// The protocol and the scheduler of a result.
pub fn named(result: &ProtocolResult) -> String {
    let scheduler = if result.scheduler == "p-fp" { String::new() } else { format!(" and {}", result.scheduler) };
    format!("{}{scheduler}", result.protocol)
}

fn list(words: impl Iterator<Item = String>) -> String {
    words.collect::<Vec<_>>().join(", ")
}

/// At most four names, and the number of the others.
fn names<'a>(all: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<&str> = all.collect();
    match all.len() {
        more if more > NAMES_SHOWN => format!("{} and {} more", all[..NAMES_SHOWN].join(", "), more - NAMES_SHOWN),
        _ => all.join(", "),
    }
}

/// Why tasks have no bound; tasks with the same reason share a line.
pub fn reasons(result: &ProtocolResult) -> Vec<String> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for task in &result.tasks {
        let Some(reason) = &task.reason else { continue };
        match groups.iter_mut().find(|(known, _)| known == reason) {
            Some((_, names)) => names.push(&task.name),
            None => groups.push((reason, vec![&task.name])),
        }
    }
    groups.into_iter().map(|(reason, names)| format!("No bound for {}: {reason}", names.join(", "))).collect()
}

/// The verdict on one protocol.
fn verdict(verb: Verb, result: &ProtocolResult) -> Verdict {
    let under = named(result);
    let of = |is_meant: fn(&TaskResult) -> bool| {
        names(result.tasks.iter().filter(|task| is_meant(task)).map(|task| task.name.as_str()))
    };
    let proof = match result.worst_slack_ns.filter(|_| result.proved) {
        Some(slack) => {
            let worst = of_slack(result, slack);
            format!("every deadline is proved to hold, with a slack of at least {}{worst}", units::slack(slack))
        }
        None if result.proved => "every deadline is proved to hold".into(),
        None => format!("not every deadline is proved to hold ({})", of(|task| !task.proved)),
    };
    let text = match (&result.verdict, verb) {
        (Some(verdict), _) => format!("Under {under}: {verdict}."),
        (None, Verb::Check) => format!("Under {under}, {proof}."),
        (None, _) => {
            let total =
                |of: fn(&TaskResult) -> Option<u64>| result.tasks.iter().filter_map(of).fold(0, u64::saturating_add);
            let (jobs, misses) = (total(|task| task.jobs), total(|task| task.misses));
            let late = of(|task| task.misses.unwrap_or(0) > 0);
            let seen = match misses {
                0 => format!("no deadline was missed in {}", units::count(jobs, "job")),
                1 => format!("1 deadline was missed ({late})"),
                _ => format!("{misses} deadlines were missed ({late})"),
            };
            let above = of(|task| task.above_bound == Some(true));
            let above = if above.is_empty() { above } else { format!("; responses were above their bounds ({above})") };
            let audited = match result.audit.as_ref().filter(|audit| audit.departed + audit.lost > 0) {
                Some(audit) if audit.lost > 0 => "; there is no audit, because records were lost".to_owned(),
                Some(audit) => {
                    format!("; the audit found {} from the orders", units::count(audit.departed, "departure"))
                }
                None => String::new(),
            };
            format!("Under {under}, {seen}{above}{audited}; {proof}.")
        }
    };
    Verdict { holds: result.schedulable, text }
}

/// The task with the least slack, in parentheses.
fn of_slack(result: &ProtocolResult, slack: i64) -> String {
    let task = result.tasks.iter().find(|task| task.slack_ns == Some(slack));
    task.map_or_else(String::new, |task| format!(" ({})", task.name))
}

/// The verdict on all protocols together, if there are several.
pub fn verdicts(output: &Output) -> Vec<Verdict> {
    let results = &output.results;
    if let [result] = results.as_slice() {
        return vec![verdict(output.verb, result)];
    }
    let good: Vec<&ProtocolResult> = results.iter().filter(|result| result.schedulable).collect();
    let text = match good.as_slice() {
        [] if results.is_empty() => "There are no results.".to_owned(),
        [] => format!("The verdict is good under none of {} protocols.", results.len()),
        good => format!(
            "The verdict is good under {} of {} protocols: {}.",
            good.len(),
            results.len(),
            list(good.iter().map(|result| result.protocol.clone()))
        ),
    };
    let holds = !results.is_empty() && good.len() == results.len();
    let best = good.first().map(|result| verdict(output.verb, result));
    std::iter::once(Verdict { holds, text }).chain(best).collect()
}

/// One row for each protocol.
pub fn compared(output: &Output) -> Table {
    let has_seen = output.results.iter().flat_map(|result| &result.tasks).any(|task| task.jobs.is_some());
    let mut columns = vec![Column::words("protocol", "protocol"), Column::words("verdict", "schedulable")];
    if has_seen {
        columns.push(Column::numbers("misses", "misses"));
        columns.push(Column::numbers("least slack seen", "observed_response_ns"));
    }
    columns.push(Column::numbers("least slack proved", "worst_slack_ns"));
    columns.push(Column::words("not proved", "proved"));
    columns.push(Column::words("same rules as", "same_rules_as"));
    let slack = |ns: Option<i64>| ns.map_or_else(Cell::absent, |ns| Cell::number(units::slack(ns), ns));
    let row = |result: &ProtocolResult| {
        let (tone, word) =
            if result.schedulable { (Tone::Good, "✓ holds") } else { (Tone::Bad, "✗ does not hold") };
        let mut cells = vec![Cell::text(&result.protocol), Cell::text(word).with(tone)];
        if has_seen {
            let misses = result.tasks.iter().filter_map(|task| task.misses).fold(0, u64::saturating_add);
            cells.push(Cell::number(misses.to_string(), misses));
            cells.push(slack(result.tasks.iter().filter_map(slack_seen).min()));
        }
        cells.push(slack(result.worst_slack_ns));
        cells.push(Cell::text(names(result.tasks.iter().filter(|task| !task.proved).map(|task| task.name.as_str()))));
        cells.push(Cell::text(result.same_rules_as.clone().unwrap_or_default()));
        cells
    };
    Table { caption: "The protocols".into(), columns, rows: output.results.iter().map(row).collect() }
}

fn slack_seen(task: &TaskResult) -> Option<i64> {
    i64::try_from(i128::from(task.deadline_ns) - i128::from(task.observed_response_ns?)).ok()
}

/// The results of the schedulability tests.
pub fn tests(result: &ProtocolResult) -> Option<Table> {
    let tests = result.tests.as_ref()?;
    let columns =
        vec![Column::words("test", "test"), Column::words("accepts", "accepts"), Column::prose("why not", "reason")];
    let row = |test: &crate::json::TestResult| {
        let name = test.cpu.map_or_else(|| test.test.clone(), |cpu| format!("{} on CPU {cpu}", test.test));
        let (tone, word) = if test.accepts { (Tone::Good, "✓ yes") } else { (Tone::Plain, "no") };
        let reason = test.reason.clone().unwrap_or_default();
        vec![Cell::text(name), Cell::text(word).with(tone), Cell::text(reason)]
    };
    Some(Table { caption: "The schedulability tests".into(), columns, rows: tests.iter().map(row).collect() })
}

/// How far execution times can grow.
pub fn sensitivity(result: &ProtocolResult) -> Option<Table> {
    let found = result.sensitivity.as_ref()?;
    let columns = vec![
        Column::words("what grows", "task"),
        Column::numbers("factor", "permille"),
        Column::numbers("more blocking it tolerates", "tolerated_blocking_ns"),
    ];
    let factor = |growth: &GrowthResult| match (growth.state, growth.permille) {
        (GrowthState::Limited, Some(permille)) => {
            Cell::number(format!("× {}.{:03}", permille / 1000, permille % 1000), permille)
        }
        (GrowthState::Unlimited, _) => Cell::text("without limit"),
        _ => Cell::text("no factor helps"),
    };
    let mut rows = vec![vec![Cell::text("all execution times"), factor(&found.all), Cell::absent()]];
    rows.extend(found.resources.iter().map(|resource| {
        vec![Cell::text(format!("sections on {}", resource.resource)), factor(&resource.growth), Cell::absent()]
    }));
    rows.extend(found.tasks.iter().map(|task| {
        let tolerated = task.tolerated_blocking_ns.map(Duration::from_ns);
        let tolerated = tolerated.map_or_else(Cell::absent, |ns| Cell::number(units::text(ns), ns.as_ns()));
        vec![Cell::text(&task.task), factor(&task.growth), tolerated]
    }));
    Some(Table { caption: "How far execution times can grow before a deadline is not proved".into(), columns, rows })
}

/// Tasks whose bounds under interruptible sections differ from those under the best lock.
pub fn beside(beside: &BesideLock, protocol: &str) -> Table {
    let columns = vec![
        Column::words("task", "task"),
        Column::numbers(format!("R under {protocol}"), "response_ns"),
        Column::numbers(format!("R under {}", beside.lock), "lock_response_ns"),
    ];
    let time =
        |ns: Option<u64>| ns.map_or_else(Cell::absent, |ns| Cell::number(units::text(Duration::from_ns(ns)), ns));
    let row = |(changed, tone): (&ChangedBound, Tone)| {
        vec![Cell::text(&changed.task), time(changed.response_ns).with(tone), time(changed.lock_response_ns)]
    };
    let better = beside.better.iter().map(|changed| (changed, Tone::Good));
    let rows = better.chain(beside.worse.iter().map(|changed| (changed, Tone::Bad))).map(row).collect();
    Table { caption: format!("{protocol} beside {}, the best lock", beside.lock), columns, rows }
}
