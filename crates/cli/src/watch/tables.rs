//! What was seen, as tables: tasks, waits, and mutexes.

use crate::console::Console;
use crate::json::{WatchOutput, WatchedMutex, WatchedResource, WatchedSet, WatchedTask, WatchedThread};
use crate::layout::Column;
use crate::tame::line;
use crate::units;
use lockwright_model::Duration;

/// The most rows of the tables of waits and mutexes.
const ROWS_MAX: usize = 20;
/// The width of a bar in characters.
const BAR: usize = 16;

fn time(ns: u64) -> String {
    units::text(Duration::from_ns(ns))
}

fn optional(ns: Option<u64>) -> String {
    ns.map_or_else(|| "–".into(), time)
}

/// What the task does now.
fn present(task: &WatchedTask) -> String {
    let held = task.resources.iter().filter(|one| one.held_ns.is_some()).map(|one| line(&one.name));
    let held: Vec<String> = held.collect();
    match (&task.request, task.present_ns) {
        (Some(request), _) => {
            let behind = match request.holders.as_slice() {
                [] => String::new(),
                holders => format!(", held by {}", line(&holders.join(", "))),
            };
            format!("waits {} for {}{behind}", time(request.since_ns), line(&request.resource))
        }
        (None, Some(since)) if held.is_empty() => format!("in a job for {}", time(since)),
        (None, Some(since)) => format!("in a job for {}, holds {}", time(since), held.join(", ")),
        (None, None) => "between jobs".into(),
    }
}

/// The longest response as a share of the deadline, or of the bound where there is no deadline: `█` up to the response,
/// `|` at the bound.
fn bar(task: &WatchedTask) -> String {
    let Some(whole) = task.deadline_ns.or(task.bound_ns).filter(|&whole| whole > 0) else { return "–".into() };
    let place = |ns: u64| (u128::from(ns) * BAR as u128 / u128::from(whole)).min(BAR as u128) as usize;
    let (filled, bound) = (place(task.worst_ns), task.bound_ns.map(|bound| place(bound).min(BAR - 1)));
    let character = |at| match at {
        at if Some(at) == bound => '|',
        at if at < filled => '█',
        _ => '·',
    };
    let bar: String = (0..BAR).map(character).collect();
    if task.worst_ns > whole { format!("{bar}!") } else { bar }
}

/// The tasks of one set.
pub(super) fn tasks(tasks: &[WatchedTask]) -> Vec<Column> {
    let each = |of: &dyn Fn(&WatchedTask) -> String| tasks.iter().map(of).collect::<Vec<_>>();
    let some = |task: &WatchedTask, ns| optional((task.jobs > 0).then_some(ns));
    let above = |task: &WatchedTask| task.bound_ns.map_or_else(|| "–".into(), |_| task.above_bound.to_string());
    vec![
        Column::words("task", each(&|task| line(&task.name))),
        Column::prose("now", each(&present)),
        Column::numbers("jobs", each(&|task| task.jobs.to_string())).gives_way(3),
        Column::numbers("misses", each(&|task| task.misses.to_string())),
        Column::numbers("mean", each(&|task| some(task, task.mean_ns))).gives_way(6),
        Column::numbers("p99.9", each(&|task| optional(task.p999_ns))).gives_way(7),
        Column::numbers("worst", each(&|task| some(task, task.worst_ns))),
        Column::numbers("in job", each(&|task| task.worst_job.to_string())).gives_way(8),
        Column::words("of deadline", each(&bar)).gives_way(4),
        Column::numbers("bound", each(&|task| optional(task.bound_ns))).gives_way(2),
        Column::numbers("above", each(&above)).gives_way(5),
        Column::numbers("deadline", each(&|task| optional(task.deadline_ns))).gives_way(1),
    ]
}

/// The longest waits of the tasks, the longest first. `None` if no task has locked anything.
pub(super) fn waits(tasks: &[WatchedTask]) -> Option<Vec<Column>> {
    let mut all: Vec<_> =
        tasks.iter().flat_map(|task| task.resources.iter().map(move |resource| (task, resource))).collect();
    all.sort_by_key(|(_, one)| std::cmp::Reverse((one.longest_wait_ns, one.longest_section_ns)));
    all.truncate(ROWS_MAX);
    let waited = |ns, waits: u64| optional((waits > 0).then_some(ns));
    let column = |of: &dyn Fn(&WatchedTask, &WatchedResource) -> String| {
        all.iter().map(|(task, one)| of(task, one)).collect::<Vec<_>>()
    };
    let behind = |one: &WatchedResource| {
        one.behind.as_ref().filter(|_| one.waits > 0).map_or_else(|| "–".into(), |name| line(name))
    };
    (!all.is_empty()).then(|| {
        vec![
            Column::words("task", column(&|task, _| line(&task.name))),
            Column::words("resource", column(&|_, one| line(&one.name))),
            Column::numbers("sections", column(&|_, one| one.sections.to_string())).gives_way(5),
            Column::numbers("waits", column(&|_, one| one.waits.to_string())).gives_way(3),
            Column::numbers("longest wait", column(&|_, one| waited(one.longest_wait_ns, one.waits))),
            Column::words("behind", column(&|_, one| behind(one))).gives_way(1),
            Column::numbers("longest section", column(&|_, one| time(one.longest_section_ns))).gives_way(4),
            Column::numbers("held for", column(&|_, one| optional(one.held_ns))).gives_way(2),
        ]
    })
}

/// The mutexes with the longest total waits. `None` if none is counted.
pub(super) fn mutexes(output: &WatchOutput) -> Option<Vec<Column>> {
    let shown = &output.mutexes[..output.mutexes.len().min(ROWS_MAX)];
    let each = |of: &dyn Fn(&WatchedMutex) -> String| shown.iter().map(of).collect::<Vec<_>>();
    let waited = |one: &WatchedMutex, ns| optional((one.waits > 0).then_some(ns));
    let name = |thread: &Option<WatchedThread>| match thread {
        Some(thread) if thread.name.is_empty() => thread.id.to_string(),
        Some(thread) => line(&thread.name),
        None => "–".into(),
    };
    let now = |one: &WatchedMutex| match (&one.owner, one.waiting) {
        (None, 0) => "free".into(),
        (None, waiting) => format!("free, {} waiting", waiting),
        (owner, 0) => format!("held by {} for {}", name(owner), optional(one.held_ns)),
        (owner, waiting) => format!("held by {} for {}, {waiting} waiting", name(owner), optional(one.held_ns)),
    };
    (!shown.is_empty()).then(|| {
        vec![
            Column::words("mutex", each(&|one| line(&one.name))),
            Column::prose("now", each(&now)),
            Column::numbers("sections", each(&|one| one.sections.to_string())).gives_way(4),
            Column::numbers("waits", each(&|one| one.waits.to_string())).gives_way(3),
            Column::numbers("total wait", each(&|one| waited(one, one.total_wait_ns))).gives_way(5),
            Column::numbers("longest wait", each(&|one| waited(one, one.longest_wait_ns))),
            Column::words("of", each(&|one| name(&one.waiter))).gives_way(2),
            Column::words("behind", each(&|one| name(&one.holder))).gives_way(1),
            Column::numbers("longest section", each(&|one| time(one.longest_section_ns))).gives_way(6),
        ]
    })
}

/// The line above everything.
pub(super) fn title(output: &WatchOutput) -> String {
    format!("process {} ({})", output.process, line(&output.program))
}

/// The line above a task set.
pub(super) fn of_set(set: &WatchedSet) -> String {
    format!("task set {}, counted for {}", line(&set.name), time(set.counted_ns))
}

/// The line above the mutexes.
pub(super) fn of_mutexes(output: &WatchOutput) -> String {
    let (all, shown) = (output.mutexes.len(), output.mutexes.len().min(ROWS_MAX));
    if shown < all { format!("{shown} of {all} mutexes, the longest total wait first") } else { "mutexes".into() }
}

/// Everything as text.
pub(super) fn text(output: &WatchOutput, console: &Console) -> String {
    let mut text = format!("{}\n", title(output));
    for set in &output.sets {
        text.push_str(&format!("\n{}\n\n{}", of_set(set), console.layout.draw(&tasks(&set.tasks))));
        if let Some(waits) = waits(&set.tasks) {
            text.push_str(&format!("\n{}", console.layout.draw(&waits)));
        }
    }
    if let Some(mutexes) = mutexes(output) {
        text.push_str(&format!("\n{}\n\n{}", of_mutexes(output), console.layout.draw(&mutexes)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;

    fn task(worst_ns: u64, bound_ns: Option<u64>, deadline_ns: Option<u64>) -> WatchedTask {
        WatchedTask {
            name: "control".into(),
            thread: None,
            jobs: 1,
            misses: 0,
            deadline_ns,
            bound_ns,
            above_bound: 0,
            mean_ns: worst_ns,
            p999_ns: Some(worst_ns),
            worst_ns,
            worst_job: 1,
            present_ns: None,
            request: None,
            histogram: Vec::new(),
            resources: Vec::new(),
        }
    }

    /// On the narrowest screen, columns give way before names fall apart.
    #[test]
    fn names_stay_whole_on_narrow_screens() {
        let thread = |name: &str| Some(WatchedThread { id: 1, name: name.into() });
        let resource = WatchedResource {
            name: "distribution_of_data".into(),
            sections: 1_234,
            waits: 123,
            total_wait_ns: 12_345_678,
            longest_wait_ns: 1_234_567,
            behind: Some("weather".into()),
            longest_section_ns: 1_234_567,
            held_ns: Some(123_456_789),
        };
        let mutex = WatchedMutex {
            name: "distribution_of_data".into(),
            sections: 1_234,
            waits: 123,
            total_wait_ns: 12_345_678,
            longest_wait_ns: 1_234_567,
            waiter: thread("motor_control"),
            holder: thread("weather"),
            longest_section_ns: 1_234_567,
            longest_by: thread("weather"),
            owner: thread("weather"),
            held_ns: Some(123_456_789),
            waiting: 2,
        };
        let task = WatchedTask {
            name: "motor_control".into(),
            resources: vec![resource],
            ..task(12_345_678, Some(20_000_000), Some(1_000_000_000))
        };
        let output = WatchOutput {
            verb: WatchOutput::VERB,
            process: 1,
            program: "robot".into(),
            sets: Vec::new(),
            mutexes: vec![mutex],
            mutexes_left_out: 0,
        };
        let tables = [
            (tasks(std::slice::from_ref(&task)), "motor_control"),
            (waits(std::slice::from_ref(&task)).expect("a table"), "motor_control"),
            (waits(&[task]).expect("a table"), "distribution_of_data"),
            (mutexes(&output).expect("a table"), "distribution_of_data"),
        ];
        for (columns, name) in tables {
            let drawn = Layout::new(60, false).draw(&columns);
            assert!(drawn.contains(name), "{drawn}");
            assert!(drawn.lines().nth(1).is_some_and(|rule| rule.starts_with('─')), "{drawn}");
            assert!(drawn.lines().all(|line| line.chars().count() <= 60), "{drawn}");
        }
    }

    #[test]
    fn a_bar_shows_response_bound_and_deadline() {
        assert_eq!(bar(&task(500, None, None)), "–");
        assert_eq!(bar(&task(500, Some(750), Some(1_000))), "████████····|···");
        assert_eq!(bar(&task(900, Some(750), Some(1_000))), "████████████|█··");
        assert_eq!(bar(&task(1_001, None, Some(1_000))), "████████████████!");
        assert_eq!(bar(&task(500, Some(1_000), None)), "████████·······|");
    }
}
