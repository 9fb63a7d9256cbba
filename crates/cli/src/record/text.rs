//! The results of `record` as text.

use super::bounds::Bounds;
use crate::console::Console;
use crate::json::{RecordOutput, RecordedLock, RecordedThread};
use crate::layout::Column;
use crate::table;
use crate::tame::line;
use crate::units;
use lockwright_model::Duration;

/// The greatest number of locks in the table.
const LOCKS_MAX: usize = 20;

/// Everything.
pub(super) fn text(output: &RecordOutput, bounds: Option<&Bounds>, console: &Console) -> String {
    let mut text = format!(
        "{}: {} in {}, {}\n",
        line(&output.program.join(" ")),
        units::count(output.threads.len() as u64, "thread"),
        time(output.length_ns),
        units::count(output.events, "event")
    );
    text.push('\n');
    for sentence in &output.sentences {
        text.push_str(&format!("{}\n", line(sentence)));
    }
    if output.inversions.is_empty() {
        text.push_str("no priority inversion was seen\n");
    }
    text.push_str(&format!("\n{}", threads(output, console)));
    if !output.locks.is_empty() {
        text.push_str(&format!("\n{}\n{}", locks(output, console), trends(output)));
    }
    if let Some(bounds) = bounds {
        text.push_str(&format!("\n{}", checked(bounds, console)));
    }
    text
}

fn time(ns: u64) -> String {
    units::text(Duration::from_ns(ns))
}

fn threads(output: &RecordOutput, console: &Console) -> String {
    let threads = &output.threads;
    let each = |of: &dyn Fn(&RecordedThread) -> String| threads.iter().map(of).collect::<Vec<_>>();
    let cpus = |thread: &RecordedThread| thread.cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let jobs = |thread: &RecordedThread| match &thread.task {
        Some(task) => task.boundary.jobs.to_string(),
        None => "–".into(),
    };
    let period = |thread: &RecordedThread| match &thread.task {
        Some(task) => format!("{} ({})", time(task.period_ns), task.regularity),
        None => "–".into(),
    };
    let job = |thread: &RecordedThread| match (&thread.task, &thread.reason) {
        (Some(task), _) => format!("behind {}", task.boundary.text),
        (None, reason) => format!("none: {}", reason.clone().unwrap_or_default()),
    };
    console.layout.draw(&[
        Column::words("thread", each(&|thread| thread.name.clone())),
        Column::words("priority", each(&|thread| thread.policies.join(", "))),
        Column::numbers("cpu", each(&cpus)).gives_way(3),
        Column::numbers("CPU time", each(&|thread| time(thread.cpu_ns))).gives_way(4),
        Column::numbers("jobs", each(&jobs)).gives_way(2),
        Column::numbers("period", each(&period)),
        Column::prose("job", each(&job)).gives_way(1),
    ])
}

/// The locks with the most waits, and then those with the most sections.
fn locks(output: &RecordOutput, console: &Console) -> String {
    let mut locks: Vec<&RecordedLock> = output.locks.iter().collect();
    locks.sort_by_key(|lock| std::cmp::Reverse((lock.contended, lock.sections)));
    let more = locks.len().saturating_sub(LOCKS_MAX);
    locks.truncate(LOCKS_MAX);
    let each = |of: &dyn Fn(&RecordedLock) -> String| locks.iter().map(|lock| of(lock)).collect::<Vec<_>>();
    let mut text = console.layout.draw(&[
        Column::prose("lock", each(&|lock| lock.name.clone())),
        Column::numbers("sections", each(&|lock| lock.sections.to_string())),
        Column::numbers("threads", each(&|lock| lock.threads.to_string())).gives_way(2),
        Column::numbers("waits", each(&|lock| lock.contended.to_string())),
        Column::numbers("longest wait", each(&|lock| time(lock.longest_wait_ns))),
        Column::numbers("longest held", each(&|lock| time(lock.longest_held_ns))),
        Column::numbers("CPU held", each(&|lock| time(lock.longest_cpu_ns))).gives_way(1),
    ]);
    if more > 0 {
        text.push_str(&format!("and {}; report.json has all\n", units::count(more as u64, "other lock")));
    }
    text
}

/// The use of locks in two lines.
fn trends(output: &RecordOutput) -> String {
    let trends = &output.trends;
    let outermost: u64 = trends.by_nesting.iter().sum();
    let share = |count: u64, of: u64| units::percent(count as f64 / of.max(1) as f64);
    let depth = |(depth, &count): (usize, &u64)| format!("{depth}: {}", share(count, trends.sections));
    let depths: Vec<String> = trends.by_depth.iter().enumerate().map(depth).collect();
    let [short, middle, long] = trends.below_5_10_13_us.map(|count| share(count, outermost));
    let quantiles: Vec<String> = trends.quantiles_ns.iter().map(|&ns| time(ns)).collect();
    format!(
        "{}; locks held around them: {}\n{}, {short} below 5 us, {middle} below 10 us, {long} below 13 us; 50, 90, \
         99, 99.9 and 100 % up to {}\n",
        units::count(trends.sections, "section"),
        depths.join(", "),
        units::count(outermost, "outermost section"),
        quantiles.join(", ")
    )
}

/// The bounds beside the observations, and those under the best protocol.
fn checked(bounds: &Bounds, console: &Console) -> String {
    let system = bounds.system;
    let mut text = table::headline("the task set", system, &bounds.seen);
    text.push('\n');
    text.push_str(&table::tasks(system, &bounds.seen, console));
    text.push_str(&table::reasons(system, &bounds.seen));
    if let Some(best) = &bounds.best {
        text.push_str(&format!("\nThe best protocol is {}:\n\n", best.protocol));
        text.push_str(&table::tasks(system, best, console));
        text.push_str(&table::reasons(system, best));
    }
    text
}
