//! `lockwright run`: the task set as real threads on this machine.

use crate::args::Run;
use crate::console::{Console, tame};
use crate::exit::Exit;
use crate::input::{self, Input};
use crate::interrupt;
use crate::json::{self, Output, ProtocolResult, WorstJob};
use crate::progress::Progress;
use crate::report::{Report, Row, Seen, interrupt_text};
use crate::same::{self, Once, grouped};
use crate::table;
use crate::trace_file::TraceFile;
use crate::units;
use lockwright::observe::{Timeline, timeline};
use lockwright::{Control, Ended, Job, Outcome, RunConfig, RunError, TaskOutcome};
use lockwright_analysis::analyse;
use lockwright_model::{Duration, Event, Protocol, Record, Scheduler, System, TaskId};
use lockwright_sim::default_horizon;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Shortest run unless `--for` says otherwise.
const SHORTEST: Duration = Duration::from_ms(1_000);
/// Longest run unless `--for` says otherwise.
const LONGEST: Duration = Duration::from_ms(10_000);
/// Between two looks at the progress of a run.
const GLANCE: std::time::Duration = std::time::Duration::from_millis(100);

/// One protocol's run.
struct Ran {
    report: Report,
    outcome: Outcome,
    /// What happened during the worst job of each task that was above its bound.
    above: Vec<Above>,
}

/// A job that took longer than its bound.
struct Above {
    task: TaskId,
    bound: Duration,
    job: Job,
    timeline: Timeline,
    /// Of what the task itself executed: by earlier jobs of it, which were late.
    earlier: Duration,
}

/// Does `run`.
///
/// # Errors
/// What was wrong has been said on the console.
pub fn run(arguments: &Run, console: &Console) -> Result<Exit, Exit> {
    let input = input::read_scheduled(&arguments.subject.file, &[Scheduler::PFp, Scheduler::CFp], console)?;
    let system = &input.system;
    let protocols = input::executable(&arguments.subject, system, console)?;
    let duration = arguments.duration.unwrap_or_else(|| default_duration(system));
    // One control serves one run; a signal stops the run that goes on.
    let current = Arc::new(Mutex::new(Control::new()));
    let stopped = Arc::clone(&current);
    interrupt::listen(move || stopped.lock().unwrap_or_else(PoisonError::into_inner).stop(), console);
    let bounds = |protocol| (protocol, Report::of_bounds(system, &analyse(system, protocol)));
    let groups = grouped(system, protocols.into_iter().map(bounds).collect());
    let mut runs: Vec<Ran> = Vec::new();
    for (protocol, bounds) in &groups {
        let protocol = *protocol;
        let control = Control::new();
        *current.lock().unwrap_or_else(PoisonError::into_inner) = control.clone();
        if interrupt::requested() {
            break;
        }
        let trace = TraceFile::create(arguments.trace.as_deref(), protocol, groups.len(), console)?;
        console.note(format!("running {} under {protocol} for {}", input.name, units::text(duration)));
        let outcome = execute(system, &RunConfig::new(protocol, duration), &control, console)?;
        if let Some(trace) = trace {
            let title = format!("{} under {protocol}, executed", input.name);
            trace.write(system, &title, &outcome.records, console)?;
        }
        runs.push(Ran::new(system, bounds.clone(), outcome));
    }
    let mut warnings = Once::default();
    for ran in &runs {
        ran.report.unseen_text(system).into_iter().chain(ran.warnings()).for_each(|text| warnings.add(&ran.report.protocol, text));
    }
    warnings.texts(runs.len()).for_each(|text| console.warn(text));
    if let Some(throttling) = runs.iter().find_map(|ran| ran.outcome.throttling) {
        console.note(format!(
            "this kernel gives real-time threads at most {} of every {}",
            units::text(throttling.runtime),
            units::text(throttling.period)
        ));
    }
    if arguments.subject.json {
        console.print(&json::to_text(&as_json(&input, duration, &runs)))?;
    } else {
        let reason = if arguments.duration.is_some() { "" } else { " (two hyperperiods, at least 1 s, at most 10 s)" };
        console.print_text(&as_text(&input, duration, reason, &runs, console))?;
    }
    if interrupt::requested() {
        let missing: Vec<Protocol> = groups[runs.len()..].iter().map(|(protocol, _)| *protocol).collect();
        console.warn(interrupt_text(&missing));
        return Ok(Exit::Interrupted);
    }
    Ok(Exit::from_holds(runs.iter().all(Ran::holds)))
}

/// Two hyperperiods, at least a second, at most ten.
fn default_duration(system: &System) -> Duration {
    default_horizon(system).duration.clamp(SHORTEST, LONGEST)
}

/// Runs, with a bar for who watches.
fn execute(system: &System, config: &RunConfig, control: &Control, console: &Console) -> Result<Outcome, Exit> {
    let over = AtomicBool::new(false);
    let result = std::thread::scope(|scope| {
        if console.watched {
            scope.spawn(|| {
                let progress = Progress::new(console, &format!("running {}", config.protocol));
                // ORDERING: a flag alone, it publishes nothing: relaxed.
                // BOUND: until the run is over, which its watchdog sees to.
                while !over.load(Ordering::Relaxed) {
                    let elapsed = control.elapsed().unwrap_or_default();
                    progress.set(elapsed.as_ns(), config.duration.as_ns());
                    std::thread::sleep(GLANCE);
                }
            });
        }
        let result = lockwright::run(system, config, control);
        over.store(true, Ordering::Relaxed);
        result
    });
    result.map_err(|error| refuse(system, &error, console))
}

/// Says why there is no outcome, in the names of the file, and what to do.
fn refuse(system: &System, error: &RunError, console: &Console) -> Exit {
    let task = |id: TaskId| format!("`{}`", system.task(id).name);
    let doctor = "`lockwright doctor` says what this machine lacks for real time, and how to mend it";
    let (message, help, exit) = match error {
        RunError::NoPermission(_) => (error.to_string(), doctor, Exit::Machine),
        RunError::TooLong => (error.to_string(), "give a shorter --for", Exit::BadInput),
        RunError::Lock { task: id, resource, error } => {
            let resource = &system.resource(*resource).name;
            (format!("task {} failed at resource `{resource}`: {error}", task(*id)), doctor, Exit::Machine)
        }
        RunError::Panicked(id) => (
            format!("the thread of task {} panicked: this is a bug in lockwright", task(*id)),
            "please report it",
            Exit::Machine,
        ),
        RunError::Stuck { tasks } => {
            let names: Vec<String> = tasks.iter().map(|&id| task(id)).collect();
            (format!("the run did not end; still executing or waiting: {}", names.join(", ")), doctor, Exit::Machine)
        }
        _ => (error.to_string(), doctor, Exit::Machine),
    };
    console.error(format!("cannot run: {message}"), help);
    exit
}

impl Ran {
    fn new(system: &System, bounds: Report, outcome: Outcome) -> Self {
        let seen: Vec<Seen> =
            outcome.tasks.iter().map(|task| Seen { observation: task.observation, p999: p999(task) }).collect();
        let report = bounds.with_seen(&seen);
        let above = report.rows.iter().filter_map(|row| Above::of(system, row, &outcome)).collect();
        Self { report, outcome, above }
    }

    fn holds(&self) -> bool {
        self.report.holds() && self.outcome.ended != Ended::Watchdog
    }

    /// How long it was observed, of what was asked for.
    fn observed(&self, asked: Duration) -> Duration {
        if self.outcome.ended == Ended::Interrupted { self.outcome.elapsed.min(asked) } else { asked }
    }

    /// What makes the numbers less telling than they seem.
    fn warnings(&self) -> Vec<String> {
        let outcome = &self.outcome;
        let mut warnings = Vec::new();
        if outcome.ended == Ended::Watchdog {
            warnings.push("the watchdog ended the run: jobs were still unfinished when all deadlines had passed".into());
        }
        if outcome.dropped > 0 {
            warnings.push(format!(
                "{} found the log full: the trace and the observed blocking are not complete; a shorter --for helps",
                units::count(outcome.dropped, "record")
            ));
        }
        if !outcome.memory_locked {
            warnings.push("the memory could not be locked: a page fault may have delayed a job".into());
        }
        warnings
    }
}

/// The histogram rounds up to its resolution; the maximum is exact.
fn p999(task: &TaskOutcome) -> Option<Duration> {
    let longest = task.observation.response?;
    Some(Duration::from_ns(task.responses.value_at_quantile(0.999)).min(longest))
}

impl Above {
    fn of(system: &System, row: &Row, outcome: &Outcome) -> Option<Self> {
        row.above_bound().filter(|&above| above)?;
        let (bound, job) = (row.bound.response?, outcome.tasks.get(row.task.index())?.worst_job?);
        let records = &outcome.records;
        // Jobs of a task execute one after the other: what it executed until the last finish before this one was not this job.
        let own_finish = |record: &&Record| record.task == row.task && record.event == Event::Finish;
        let before = records.iter().rev().filter(own_finish).map(|record| record.at).find(|&at| at < job.finish);
        let before = before.map_or(job.arrival, |at| at.max(job.arrival));
        let earlier = executed_by(row.task, &timeline(system, records, row.task, job.arrival, before));
        let timeline = timeline(system, records, row.task, job.arrival, job.finish);
        Some(Self { task: row.task, bound, job, timeline, earlier })
    }

    /// Which job, what ran during it, what nobody answers for.
    fn describe(&self, system: &System) -> String {
        let response = self.job.finish.since(self.job.arrival);
        let executed: Vec<String> = self
            .timeline
            .executed
            .iter()
            .map(|&(task, time)| {
                let task_name = &system.task(task).name;
                if task != self.task {
                    return format!("`{task_name}` {}", units::text(time));
                }
                let worst = units::text(system.task(task).wcet);
                let this = units::text(time.saturating_sub(self.earlier));
                let earlier = if self.earlier == Duration::ZERO {
                    String::new()
                } else {
                    format!(" and its earlier, late jobs {}", units::text(self.earlier))
                };
                format!("this job of `{task_name}` {this} (worst case {worst}){earlier}")
            })
            .collect();
        format!(
            "  {}: the job that arrived at {} took {}, {} above its bound of {}.\n    its CPU executed {}; {} unaccounted (wake-up, kernel, interrupts, host)\n",
            system.task(self.task).name,
            self.job.arrival,
            units::text(response),
            units::text(response.saturating_sub(self.bound)),
            units::text(self.bound),
            if executed.is_empty() { "none of the tasks".into() } else { executed.join(", ") },
            units::text(self.timeline.unaccounted),
        )
    }

    fn as_json(&self, system: &System) -> WorstJob {
        let executed = self.timeline.executed.iter();
        WorstJob {
            arrival_ns: self.job.arrival.as_ns(),
            finish_ns: self.job.finish.as_ns(),
            executed: executed
                .map(|&(task, time)| json::Executed { task: system.task(task).name.clone(), executed_ns: time.as_ns() })
                .collect(),
            earlier_jobs_ns: self.earlier.as_ns(),
            unaccounted_ns: self.timeline.unaccounted.as_ns(),
        }
    }
}

fn executed_by(task: TaskId, timeline: &Timeline) -> Duration {
    timeline.executed.iter().filter(|(known, _)| *known == task).map(|&(_, time)| time).sum()
}

fn as_text(input: &Input, asked: Duration, reason: &str, runs: &[Ran], console: &Console) -> String {
    let system = &input.system;
    let mut text = String::new();
    if runs.len() > 1 {
        let compared: Vec<&Report> = runs.iter().map(|ran| &ran.report).collect();
        text.push_str(&table::system_line(&input.name, system));
        text.push('\n');
        text.push_str(&console.layout.draw(&same::comparison(system, &compared)));
        text.push_str(&same::legend(compared.into_iter()));
    }
    for ran in runs {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&table::headline(&input.name, system, &ran.report));
        let cpus: Vec<String> = ran.outcome.cpus.iter().map(ToString::to_string).collect();
        let observed = ran.observed(asked);
        let part = if observed < asked { format!("{} of ", units::text(observed)) } else { String::new() };
        let duration = units::text(asked);
        text.push_str(&format!("executed for {part}{duration}{reason} on CPU {} of this machine\n\n", cpus.join(", ")));
        text.push_str(&table::tasks(system, &ran.report, console));
        text.push_str(&table::reasons(system, &ran.report));
        if !ran.above.is_empty() {
            text.push_str(
                "\nAbove their bounds, which charge no overhead (context switches, lock operations, interrupts):\n",
            );
            ran.above.iter().for_each(|above| text.push_str(&tame(&above.describe(system))));
        }
    }
    text
}

fn as_json(input: &Input, asked: Duration, runs: &[Ran]) -> Output {
    let system = &input.system;
    let with = |ran: &Ran, mut result: ProtocolResult| {
        result.schedulable = ran.holds();
        result.observed_ns = Some(ran.observed(asked).as_ns());
        let ended = match ran.outcome.ended {
            Ended::Completed => "completed",
            Ended::Interrupted => "interrupted",
            _ => "watchdog",
        };
        result.ended = Some(ended.to_owned());
        for above in &ran.above {
            let name = &system.task(above.task).name;
            if let Some(task) = result.tasks.iter_mut().find(|task| task.name == *name) {
                task.worst_job = Some(above.as_json(system));
            }
        }
        result
    };
    let results = |ran: &Ran| ProtocolResult::all(system, &ran.report, |result| with(ran, result));
    Output {
        // Only the last run can have been cut short.
        duration_ns: Some(runs.last().map_or(Duration::ZERO, |last| last.observed(asked)).as_ns()),
        interrupted: Some(interrupt::requested()),
        ..Output::new(json::Verb::Run, &input.name, runs.iter().flat_map(results).collect())
    }
}
