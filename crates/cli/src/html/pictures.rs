//! The pictures of a page, and the tables beside them.

use crate::json::{ProtocolResult, TaskResult};
use crate::responses;
use crate::units;
use hdrhistogram::Histogram;
use lockwright_model::{Duration, Instant, Record, System, TaskId};
use lockwright_report::bounds;
use lockwright_report::page::{Cell, Column, Part, Picture, Table};
use lockwright_report::strip::{self, Strip};
use lockwright_report::svg::{self, Form, Level};
use lockwright_report::{By, Place, Schedule, State, Window, worst_jobs};
use std::collections::BTreeSet;

/// Greatest number of terms of all bounds that are drawn one by one. With more, those of one cause are one term.
const TERMS_MAX: usize = 500;
/// Greatest number of intervals, marks and steps in the pictures of all jobs, for each job. With more, short neighbours
/// are merged, on one level in all pictures. It bounds the size of the page on a machine that interrupts jobs often.
const PARTS_EACH: usize = 39;
/// Number of them for each row of a picture, where one level for all pictures would merge too much. Pictures that then
/// still would have more, as far as there is room for them; those of the last jobs are omitted.
const PARTS_PER_ROW: usize = 12;
/// Greatest number of intervals that are read for the picture of one job.
const INTERVALS_MAX: usize = 10_000;
/// Greatest number of intervals that are read for the pictures of all jobs.
const ALL_INTERVALS_MAX: usize = 200_000;
/// Greatest number of records that are read for the pictures of all jobs.
const RECORDS_MAX: usize = 100_000_000;
/// Number of jobs that are shown unfolded.
const OPEN: usize = 8;
/// The margin of the picture of a job: this part of its response time, before and after it.
const MARGIN: u64 = 10;

/// The schedule and the response times that were observed under one protocol.
pub struct Watched<'a> {
    /// The protocol.
    pub protocol: &'a str,
    /// The system that was executed or simulated. The tasks of the file come first.
    pub system: &'a System,
    /// The records of one schedule.
    pub records: &'a [Record],
    /// The response times of the tasks of the file.
    pub responses: Vec<&'a Histogram<u64>>,
}

/// The bounds as bars, and their terms as a table.
pub fn bounds<'a>(rows: &[bounds::Row]) -> Vec<Part<'a>> {
    let bars = || rows.iter().flat_map(|row| row.bars.iter().map(move |bar| (row, bar)));
    if bars().next().is_none() {
        return Vec::new();
    }
    let is_comparison = rows.iter().any(|row| row.bars.len() > 1);
    let are_many = bars().map(|(_, bar)| bar.terms.len()).sum::<usize>() > TERMS_MAX;
    let drawn = if are_many { bounds::by_cause(rows) } else { rows.to_vec() };
    let mut columns: Vec<Column> = vec![Column::words("task", "task")];
    columns.extend(is_comparison.then(|| Column::words("protocol", "protocol")));
    columns.extend(["cause", "by", "resource"].map(|key| Column::words(key, key)));
    columns.push(Column::numbers("time", "total_ns"));
    let mut cells = Vec::new();
    for (row, bar, protocols) in drawn.iter().flat_map(|row| alike(row).map(move |(bar, names)| (row, bar, names))) {
        for term in bar.terms.iter().filter(|term| term.total > Duration::ZERO) {
            let name = |name: &Option<String>| Cell::text(name.clone().unwrap_or_default());
            let mut line = vec![Cell::text(&row.task)];
            line.extend(is_comparison.then(|| Cell::text(&protocols)));
            line.extend([Cell::text(term.cause.meaning()), name(&term.by), name(&term.resource)]);
            line.push(Cell::number(units::text(term.total), term.total.as_ns()));
            cells.push(line);
        }
    }
    let title = if is_comparison { "Bounds under each protocol" } else { "Bounds" };
    let picture = Picture {
        caption: "Each bound as a bar of its terms, as a share of the deadline".into(),
        task: None,
        draw: Box::new(move |place| bounds::draw(&drawn, title, place)),
    };
    let mut parts = vec![Part::Picture(picture)];
    if cells.len() <= TERMS_MAX {
        let table = Table { caption: "The terms of the bounds".into(), columns, rows: cells };
        parts.push(Part::Folded("The terms as a table".into(), false, vec![Part::Table(table)]));
    }
    parts
}

/// The bars of a task with different terms, each with the names of the protocols that have them.
fn alike(row: &bounds::Row) -> impl Iterator<Item = (&bounds::Bar, String)> {
    let is_first = |place: usize, bar: &bounds::Bar| row.bars[..place].iter().all(|other| other.terms != bar.terms);
    let first = row.bars.iter().enumerate().filter(move |(place, bar)| is_first(*place, bar));
    first.map(|(_, bar)| {
        let names = row.bars.iter().filter(|other| other.terms == bar.terms).map(|other| other.protocol.as_str());
        (bar, names.collect::<Vec<_>>().join(", "))
    })
}

/// A strip for each task: the observed response times beside the bound and the deadline.
pub fn strips<'a>(result: &ProtocolResult, watched: Option<&Watched<'_>>) -> Vec<Part<'a>> {
    let strip = |task: &TaskResult| {
        let mut strip = Strip {
            task: task.name.clone(),
            deadline: Duration::from_ns(task.deadline_ns),
            bound: task.response_ns.map(Duration::from_ns),
            seen: task.observed_response_ns.map(Duration::from_ns),
            bins: Vec::new(),
        };
        let place =
            watched.and_then(|watched| watched.system.task_ids().find(|&id| watched.system.task(id).name == task.name));
        if let (Some(watched), Some(id)) = (watched, place)
            && let Some(responses) = watched.responses.get(id.index()).filter(|_| strip.seen.is_some())
        {
            strip.bins = responses::bins(responses, strip.end());
        }
        Part::Picture(Picture {
            caption: format!("Response times of {} under {}", task.name, result.protocol),
            task: Some(task.name.clone()),
            draw: Box::new(move |place| strip::draw(&strip, place)),
        })
    };
    let seen = result.tasks.iter().filter(|task| task.jobs.is_some());
    seen.map(strip).collect()
}

/// The worst job of each of the first `tasks` tasks, those with the least slack first. `how` tells how they were
/// executed, such as "under pip".
pub fn jobs<'a>(how: &str, system: &'a System, records: &[Record], tasks: usize) -> Vec<Part<'a>> {
    let mut worst: Vec<(i128, TaskId, Window)> = worst_jobs(system, records)
        .into_iter()
        .take(tasks)
        .enumerate()
        .filter_map(|(index, job)| {
            let (id, job) = (TaskId::new(index), job?);
            Some((i128::from(system.task(id).deadline.as_ns()) - i128::from(job.length().as_ns()), id, job))
        })
        .collect();
    worst.sort_unstable_by_key(|&(slack, id, _)| (slack, id));
    let all = worst.len();
    worst.truncate(RECORDS_MAX / records.len().max(1));
    let (mut shown, mut left) = (Vec::new(), ALL_INTERVALS_MAX);
    for (_, id, job) in worst {
        // Nothing is known after the last record.
        let window = job.with_margin(MARGIN).before(Window::of(records).until).unwrap_or(job);
        let mut schedule = Schedule::read(system, records, window);
        let own = involved(&schedule, id);
        schedule.rows.retain(|row| own.contains(&row.task) && !row.spans.is_empty());
        let table = account(system, &schedule, id, job);
        let intervals: usize = schedule.rows.iter().map(|row| row.spans.len()).sum();
        let drawn = if intervals <= INTERVALS_MAX.min(left) { Ok(schedule) } else { Err(intervals) };
        left -= drawn.as_ref().map_or(0, |_| intervals);
        shown.push((id, job, table, drawn));
    }
    let most = PARTS_EACH * shown.len();
    let levels = levels(system, shown.iter().map(|(.., drawn)| drawn.as_ref().ok()).collect(), most);
    let mut parts = Vec::new();
    for (place, ((id, job, table, drawn), level)) in shown.into_iter().zip(levels).enumerate() {
        let task = system.task(id);
        let title = format!("{} {how}: its worst job", task.name);
        let mut inner = vec![Part::Table(table)];
        match (drawn, level) {
            (Ok(schedule), Some(level)) => {
                let caption = format!("{title}, and the tasks that had to do with it");
                let draw = Box::new(move |place: Place<'_>| {
                    let form = Form { title: &title, by: By::Task, place, width: svg::WIDTH, level };
                    svg::draw(system, &schedule, form)
                });
                inner.insert(0, Part::Picture(Picture { caption, task: Some(task.name.clone()), draw }));
            }
            (Ok(_), None) => inner.push(Part::Text(format!(
                "The pictures of this page have together at most {most} intervals, marks and steps, which leaves no room \
                 for one of this job; --svg with --job draws it."
            ))),
            (Err(intervals), _) => inner.push(Part::Text(format!(
                "The pictures of this page are made of at most {INTERVALS_MAX} intervals each and {ALL_INTERVALS_MAX} \
                 together, which leaves no room for the {intervals} of this job; --trace writes them."
            ))),
        }
        let deadline = units::text(task.deadline);
        let summary = format!("{}: {} of {deadline}", task.name, units::text(job.length()));
        parts.push(Part::Folded(summary, place < OPEN, inner));
    }
    if parts.len() < all {
        let rest = units::count((all - parts.len()) as u64, "task");
        parts.push(Part::Text(format!("The schedule is too long to show the worst jobs of {rest} more.")));
    }
    parts
}

/// The level of the picture of each schedule, if there is one and it has room, where all pictures have together at most
/// `most` parts. The first schedules have the first choice.
fn levels(system: &System, schedules: Vec<Option<&Schedule>>, most: usize) -> Vec<Option<Level>> {
    let level = |schedules: &[&Schedule], most| svg::level(system, schedules, By::Task, svg::WIDTH, most);
    let all: Vec<&Schedule> = schedules.iter().flatten().copied().collect();
    let common = Some(level(&all, most)).filter(|&level| level <= Level::FINE);
    let mut left = most;
    let mut choose = |schedule: &Schedule| {
        let own = common.unwrap_or_else(|| level(&[schedule], PARTS_PER_ROW * schedule.rows.len()));
        let room = |level| left.checked_sub(svg::parts(system, schedule, By::Task, svg::WIDTH, level));
        let (level, rest) =
            [own.min(Level::FINE), Level::FINE].into_iter().find_map(|level| Some((level, room(level)?)))?;
        left = rest;
        Some(level)
    };
    schedules.into_iter().map(|schedule| choose(schedule?)).collect()
}

/// The task, those for which it waits in the schedule, and those for which these wait.
fn involved(schedule: &Schedule, task: TaskId) -> BTreeSet<TaskId> {
    let mut known = BTreeSet::new();
    let mut open = vec![task];
    // BOUND: each task is examined once.
    while let Some(task) = open.pop() {
        if known.insert(task) {
            let rows = schedule.rows.iter().filter(|row| row.task == task);
            open.extend(rows.flat_map(|row| &row.spans).filter_map(|span| other(&span.state)));
        }
    }
    known
}

/// The task for which a task in this state waits.
fn other(state: &State) -> Option<TaskId> {
    match state {
        State::Executes(_) | State::Undone(_) => None,
        State::Spins(_, by) | State::Waits(_, by) | State::Ready(by) => *by,
        State::Blocked(by) => Some(*by),
    }
}

/// The states of a task during one of its jobs, and the tasks for which it waited: the longest times first.
fn account(system: &System, schedule: &Schedule, task: TaskId, job: Window) -> Table {
    let mut states: Vec<(&State, Duration)> = Vec::new();
    for span in schedule.rows.iter().filter(|row| row.task == task).flat_map(|row| &row.spans) {
        let (from, until) = (span.from.max(job.from), span.until.min(job.until));
        if from >= until {
            continue;
        }
        let time = until.since(from);
        match states.iter_mut().find(|(state, _)| *state == &span.state) {
            Some((_, total)) => *total = Duration::from_ns(total.as_ns() + time.as_ns()),
            None => states.push((&span.state, time)),
        }
    }
    states.sort_by_key(|&(_, time)| std::cmp::Reverse(time));
    let name = |task: TaskId| system.task(task).name.clone();
    let row = |(state, time): &(&State, Duration)| {
        let (what, resources) = match state {
            State::Executes(held) => ("executes", held.clone()),
            State::Undone(held) => ("executes a section that restarts", held.clone()),
            State::Spins(resource, _) => ("spins", vec![*resource]),
            State::Waits(resource, _) => ("waits", vec![*resource]),
            State::Ready(_) => ("is ready", Vec::new()),
            State::Blocked(_) => ("is ready while a less urgent task executes", Vec::new()),
        };
        let resources: Vec<String> = resources.iter().map(|&id| system.resource(id).name.clone()).collect();
        vec![
            Cell::text(what),
            Cell::text(other(state).map_or_else(String::new, name)),
            Cell::text(resources.join(", ")),
            Cell::number(units::text(*time), time.as_ns()),
        ]
    };
    let at = |at: Instant| units::text(at.since(Instant::ZERO));
    Table {
        caption: format!("{} from its arrival at {} to its finish at {}", name(task), at(job.from), at(job.until)),
        columns: vec![
            Column::words("it", "state"),
            Column::words("because of", "by"),
            Column::words("resource", "resource"),
            Column::numbers("time", "total_ns"),
        ],
        rows: states.iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockwright_model::format::parse_system;
    use lockwright_model::{Event, Protocol};
    use lockwright_report::page::{Page, Section};
    use lockwright_sim::{Config, Simulation};

    /// Records of jobs that other work interrupts every millisecond, for up to this time.
    fn interrupted(records: &[Record], most_ns: u64) -> Vec<Record> {
        let (mut all, mut executing, mut place) = (Vec::new(), None, 0);
        let mut last = 0;
        for at_once in records.chunk_by(|one, other| one.at == other.at) {
            let end = at_once[0].at.as_ns();
            // BOUND: time passes.
            while let Some(task) = executing.filter(|_| last + 1_000_000 < end) {
                place += 1;
                let (from, length) = (last + 50_000 + place * 7_919 % 150_000, 1_000 + place * 104_729 % most_ns);
                for (ns, event) in [(from, Event::Stop), (from + length, Event::Run)] {
                    all.push(Record { at: Instant::from_ns(ns), task, event });
                }
                last += 1_000_000;
            }
            for record in at_once {
                match record.event {
                    Event::Run => executing = Some(record.task),
                    Event::Stop if executing == Some(record.task) => executing = None,
                    _ => {}
                }
            }
            all.extend_from_slice(at_once);
            last = end;
        }
        all
    }

    /// However often jobs are interrupted, the pictures of all jobs leave room for the rest of the page.
    #[test]
    fn pictures_of_interrupted_jobs_stay_small() {
        let system = parse_system(include_str!("../../../../examples/pathfinder.toml")).expect("valid");
        let mut simulation = Simulation::new(&system, &Config::default().with_protocol(Protocol::Pip), Vec::new());
        simulation.run_until(Instant::from_ns(4_000_000_000));
        let records = simulation.into_tracer();
        let page = |records: &[Record]| {
            let parts = jobs("under pip", &system, records, system.tasks().len());
            let sections = vec![Section { title: "The worst job of each task", parts }];
            Page { title: "interrupted".into(), verdicts: Vec::new(), sections }.to_html()
        };
        for (most_us, is_merged, are_drawn) in [(0, false, true), (100, true, true), (700, true, false)] {
            let records = if most_us == 0 { records.clone() } else { interrupted(&records, 1_000 * most_us) };
            let html = page(&records);
            // A page has 150,000; the other sections of that of `verify` take about 50,000.
            assert!(html.len() < 94_000, "up to {most_us} us: {} bytes", html.len());
            assert_eq!(html.contains("merged with intervals"), is_merged, "{most_us}");
            let drawn = html.matches("class=\"picture schedule\"").count();
            assert_eq!(drawn == system.tasks().len(), are_drawn, "up to {most_us} us: {drawn} pictures");
        }
    }

    /// The job with the least slack keeps its picture, although it has the most intervals.
    #[test]
    fn the_worst_late_job_keeps_its_picture() {
        let task = |name: &str, cpu: u8, [period, deadline, wcet]: [u64; 3]| {
            format!(
                "[[task]]\nname = \"{name}\"\ncpu = {cpu}\nperiod = \"{period} ms\"\ndeadline = \"{deadline} ms\"\n\
                 wcet = \"{wcet} ms\"\n"
            )
        };
        let mut text = "[platform]\ncpus = 2\npriorities = \"rate-monotonic\"\n".to_owned();
        text += &(0..5).map(|n| task(&format!("short{n}"), 0, [60 + 2 * n, 60 + 2 * n, 4])).collect::<String>();
        text += &(0..3).map(|n| task(&format!("late{n}"), 0, [3_500 + n, 100, 400])).collect::<String>();
        text += &(0..6).map(|n| task(&format!("quiet{n}"), 1, [50, 50, 1])).collect::<String>();
        let system = parse_system(&text).expect("valid");
        let mut simulation = Simulation::new(&system, &Config::default(), Vec::new());
        simulation.run_until(Instant::from_ns(4_000_000_000));
        let records = simulation.into_tracer();
        let parts = jobs("alone", &system, &records, system.tasks().len());
        let Some(Part::Folded(title, _, inner)) = parts.first() else { panic!("no job is shown") };
        assert!(title.starts_with("late2"), "{title}");
        assert!(matches!(inner.first(), Some(Part::Picture(_))), "{title} has no picture");
        let sections = vec![Section { title: "The worst job of each task", parts }];
        let html = Page { title: "late".into(), verdicts: Vec::new(), sections }.to_html();
        assert!(html.contains("which leaves no room for one of this job"), "other jobs have none: {html}");
    }
}
