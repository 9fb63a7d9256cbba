//! `lockwright run`: the task set as real threads on this machine.

use crate::args::{Run, Subject};
use crate::audit;
use crate::bars;
use crate::charges::{self, Charges};
use crate::console::Console;
use crate::exit::Exit;
use crate::horizon;
use crate::html::{self, Account, Watched};
use crate::input::{self, Input};
use crate::interrupt;
use crate::json::{self, Output, ProtocolResult, WorstJob};
use crate::progress::Progress;
use crate::report::{Report, Row, Seen, Standard, interrupt_text};
use crate::responses::p999;
use crate::same::{self, Once, grouped};
use crate::schedule::ScheduleFiles;
use crate::scheduled;
use crate::table;
use crate::tame::line;
use crate::units;
use lockwright::tasks::MachineError;
use lockwright_engine::observe::{Timeline, timeline};
use lockwright_engine::{Audit, Control, Ended, Job, Outcome, RunConfig, RunError, Taker, TaskOutcome};
use lockwright_model::{Duration, Event, Instant, Overheads, Protocol, Record, Scheduler, System, TaskId};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Greatest number of occupants of a CPU that are listed; the others are summed up.
const TAKERS_SHOWN: usize = 4;
/// Time between two updates of the progress bar.
const GLANCE: std::time::Duration = std::time::Duration::from_millis(100);

/// One protocol's run.
pub(crate) struct Ran {
    protocol: Protocol,
    pub(crate) report: Report,
    pub(crate) outcome: Outcome,
    /// The worst job of each task that was above its bound or late.
    pub(crate) worst: Vec<Worst>,
}

/// A job that took longer than its bound, or missed its deadline.
pub(crate) struct Worst {
    pub(crate) task: TaskId,
    /// The bound, if it was exceeded.
    above: Option<Duration>,
    /// Whether the deadline is proved to hold.
    proved: bool,
    job: Job,
    timeline: Timeline,
    /// The occupants of the CPU while no task executed, if the kernel reports them.
    takers: Option<Vec<(Taker, Duration)>>,
    /// The part of the task's own execution that belongs to earlier jobs, which were late.
    earlier: Duration,
}

/// The run or the measurement that a signal stops: one control for each.
pub(crate) struct Stopper(Arc<Mutex<Control>>);

impl Stopper {
    /// Listens for signals.
    pub(crate) fn listen(console: &Console) -> Self {
        let current = Arc::new(Mutex::new(Control::new()));
        let stopped = Arc::clone(&current);
        interrupt::listen(move || stopped.lock().unwrap_or_else(PoisonError::into_inner).stop(), console);
        Self(current)
    }

    /// A control for the next run; `None` after a signal.
    pub(crate) fn control(&self) -> Option<Control> {
        let control = Control::new();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = control.clone();
        (!interrupt::requested()).then_some(control)
    }
}

/// The length of a run, and the reason for it.
pub(crate) struct Length {
    pub(crate) duration: Duration,
    /// In words; `None` if the user chose it.
    reason: Option<String>,
}

impl Length {
    /// The value of `--for`, or the default.
    pub(crate) fn of(option: Option<Duration>, system: &System) -> Self {
        match option {
            Some(duration) => Self { duration, reason: None },
            None => {
                let (duration, reason) = horizon::of_run(system);
                Self { duration, reason: Some(reason) }
            }
        }
    }
}

/// Executes `run`.
///
/// # Errors
/// The console has the message.
pub fn run(arguments: &Run, console: &Console) -> Result<Exit, Exit> {
    let known = [Scheduler::PFp, Scheduler::CFp, Scheduler::PEdf, Scheduler::GEdf];
    let input = input::read_scheduled(&arguments.execution.subject.file, &known, console)?;
    refuse_unsuitable(arguments, &input, console)?;
    let system = &input.system;
    let charges = Charges::of(arguments.execution.subject.overheads.as_deref(), console)?;
    let by_deadline = system.scheduler().is_by_deadline();
    let protocols = match by_deadline && (system.scheduler() == Scheduler::PEdf || !system.is_sharing()) {
        true => scheduled::executable(arguments.execution.subject.protocol, system, charges.is_some(), console)?,
        false => input::executable(&arguments.execution.subject, system, console)?,
    };
    let protocols = match arguments.sched_deadline {
        true => input::by_deadlines(protocols, system, "remove --sched-deadline", console)?,
        false => protocols,
    };
    let is_by_kernel = |&protocol: &Protocol| is_by_kernel(system, protocol, arguments.sched_deadline);
    if arguments.audit && protocols.iter().any(is_by_kernel) {
        let why = "no audit: under SCHED_DEADLINE the kernel decides, and the protocols order nothing";
        let help = match arguments.sched_deadline {
            true => "remove --audit or --sched-deadline",
            false => "remove --audit, or choose `fmlp_short` or `fmlp_long`, or another scheduler",
        };
        console.error(why, help);
        return Err(Exit::BadInput);
    }
    // Under EDF, tests say so if overheads leave no time.
    let protocols = match by_deadline {
        true => protocols,
        false => Charges::possible(charges.as_ref(), protocols, system, console)?,
    };
    let is_strict = arguments.strict || charges.is_some();
    let standard = if is_strict { Standard::WithinBound } else { Standard::InTime };
    let bounds = |&protocol: &Protocol| {
        let bounds = match by_deadline {
            true => scheduled::promised(&input, protocol, charges.as_ref(), console)?,
            false => {
                let charged = charges.as_ref().map(|charges| charges.charge(system, protocol, console)).transpose()?;
                charges::bounds(system, charged, protocol)
            }
        };
        Ok((protocol, bounds.judged_by(standard)))
    };
    let groups = grouped(system, protocols.iter().map(bounds).collect::<Result<_, Exit>>()?);
    let length = Length::of(arguments.execution.duration, system);
    let stopper = Stopper::listen(console);
    // Before anything is executed, so that a bad path costs no run.
    let html = html::open(&arguments.execution.subject, console)?;
    let files = |&(protocol, _): &(Protocol, Report)| {
        ScheduleFiles::create(system, &arguments.execution.schedules, protocol, groups.len(), console)
    };
    let files = groups.iter().map(files).collect::<Result<Vec<_>, Exit>>()?;
    let config = |protocol| RunConfig {
        audit: arguments.audit,
        sched_deadline: arguments.sched_deadline,
        ..RunConfig::new(protocol, length.duration)
    };
    let (runs, mut ended) = execute_all(&input, &groups, files, config, &stopper, console)?;
    warn(&runs, system, console);
    let charged = arguments.execution.subject.overheads.as_deref().map(json::Charged::given);
    let output = Output { overheads: charged, ..as_json(json::Verb::Run, &input, &length, &runs) };
    if let Some(file) = html {
        let overheads = charges.as_ref().map(|charges| &charges.overheads);
        let page = write_page(file, &input, &output, &runs, overheads, &arguments.execution.subject, console);
        ended = ended.and(page);
    }
    if arguments.execution.subject.json {
        console.print(&json::to_text(&output))?;
    } else {
        let charging = charges.as_ref().map(|charges| charges.name.as_str());
        let texts: Vec<String> = runs.iter().map(|ran| ran.text(&input, &length, charging, console)).collect();
        let compared = compared(&input, &runs, console);
        let note = charges::note(arguments.execution.subject.overheads.as_deref());
        console.print_text(&(compared + &texts.join("\n") + &note))?;
    }
    if interrupt::requested() {
        let missing: Vec<Protocol> = groups[runs.len()..].iter().map(|(protocol, _)| *protocol).collect();
        console.warn(interrupt_text(&missing));
        return Ok(Exit::Interrupted);
    }
    ended?;
    if let Some(lost) = runs.iter().find_map(|ran| audit::lost(ran.outcome.audit.as_ref()?)) {
        console.error(lost, "use a shorter --for");
        return Ok(Exit::Machine);
    }
    Ok(Exit::from_holds(runs.iter().all(Ran::holds)))
}

/// Refuses options that do not fit the scheduler of the system.
fn refuse_unsuitable(arguments: &Run, input: &Input, console: &Console) -> Result<(), Exit> {
    let scheduler = input.system.scheduler();
    if arguments.execution.subject.overheads.is_some() {
        let help = "use `lockwright check --overheads`, or remove --overheads";
        scheduled::refuse_charges("a run", input, help, console)?;
    }
    if arguments.sched_deadline && scheduler != Scheduler::PEdf {
        let message = format!("{}: --sched-deadline is for `p-edf`, not for `{scheduler}`", input.name);
        let help = match scheduler {
            Scheduler::GEdf => {
                "remove --sched-deadline: `g-edf` uses SCHED_DEADLINE where no resource is under fmlp_short or fmlp_long"
            }
            _ => "write `scheduler = \"p-edf\"` in [platform], or remove --sched-deadline",
        };
        console.error(message, help);
        return Err(Exit::BadInput);
    }
    Ok(())
}

/// Whether the kernel schedules the tasks (SCHED_DEADLINE), and no thread of ours.
fn is_by_kernel(system: &System, protocol: Protocol, sched_deadline: bool) -> bool {
    sched_deadline || system.scheduler() == Scheduler::GEdf && !system.has_global_locks(protocol)
}

/// Writes the page of `--html`.
///
/// # Errors
/// The file cannot be written; the console has the message.
pub(crate) fn write_page(
    sink: html::Sink,
    input: &Input,
    output: &Output,
    runs: &[Ran],
    overheads: Option<&Overheads>,
    subject: &Subject,
    console: &Console,
) -> Result<(), Exit> {
    let system = &input.system;
    let protocols: Vec<_> = runs.iter().map(|ran| (ran.protocol, &ran.report)).collect();
    let bounds = bars::of_best(system, &protocols);
    let watched = runs.iter().map(|ran| ran.watched(system)).collect();
    html::write(sink, &Account { bounds, watched, overheads, ..Account::new(input, output, subject) }, console)
}

/// One row for each protocol, if there are several.
pub(crate) fn compared(input: &Input, runs: &[Ran], console: &Console) -> String {
    if runs.len() < 2 {
        return String::new();
    }
    let reports: Vec<&Report> = runs.iter().map(|ran| &ran.report).collect();
    let table = console.layout.draw(&same::comparison(&input.system, &reports));
    let legend = same::legend(reports.into_iter());
    format!("{}\n{table}{legend}\n", table::system_line(&input.name, &input.system))
}

/// Prints the limits of the observations, each once for all protocols.
pub(crate) fn warn(runs: &[Ran], system: &System, console: &Console) {
    let mut warnings = Once::default();
    for ran in runs {
        let texts = ran.report.unseen_text(system).into_iter().chain(ran.warnings(system));
        texts.for_each(|text| warnings.add(&ran.report.protocol, text));
    }
    warnings.texts(runs.len()).for_each(|text| console.warn(text));
    for limit in runs.first().iter().flat_map(|ran| &ran.outcome.throttling) {
        console.note(format!("on this machine, {limit}"));
    }
}

/// Executes the tasks under each protocol until a signal or an error, and writes the files that show the schedules. An
/// error costs no earlier results: it is returned beside them.
///
/// # Errors
/// There is no outcome at all; the console has the message.
pub(crate) fn execute_all(
    input: &Input,
    groups: &[(Protocol, Report)],
    files: Vec<ScheduleFiles>,
    config: impl Fn(Protocol) -> RunConfig,
    stopper: &Stopper,
    console: &Console,
) -> Result<(Vec<Ran>, Result<(), Exit>), Exit> {
    let (mut runs, mut ended) = (Vec::new(), Ok(()));
    for ((protocol, bounds), files) in groups.iter().zip(files) {
        let Some(control) = stopper.control() else { break };
        let outcome = match execute(input, config(*protocol), &control, console) {
            Ok(outcome) => outcome,
            Err(exit) if runs.is_empty() => return Err(exit),
            Err(exit) => {
                let missing: Vec<&str> = groups[runs.len()..].iter().map(|(protocol, _)| protocol.name()).collect();
                console.warn(format!("no results under {}", missing.join(", ")));
                ended = Err(exit);
                break;
            }
        };
        let title = format!("{} under {protocol}, executed", input.name);
        let end = outcome.records.last().map_or(Instant::ZERO, |last| last.at).max(Instant::ZERO + outcome.elapsed);
        ended = ended.and(files.write(&input.system, &title, &outcome.records, end, console));
        runs.push(Ran::new(&input.system, *protocol, bounds.clone(), outcome));
    }
    Ok((runs, ended))
}

/// Executes the tasks with a progress bar.
///
/// # Errors
/// There is no outcome; the console has the message.
fn execute(input: &Input, config: RunConfig, control: &Control, console: &Console) -> Result<Outcome, Exit> {
    let config = RunConfig { watch: true, ..config };
    let (system, protocol) = (&input.system, config.protocol);
    console.note(format!("running {} under {protocol} for {}", input.name, units::text(config.duration)));
    if system.scheduler() == Scheduler::GEdf {
        console.note(match is_by_kernel(system, protocol, false) {
            true => "the kernel chooses the jobs that execute (SCHED_DEADLINE)",
            false => "the tasks choose the jobs that execute among themselves (SCHED_FIFO)",
        });
    }
    if config.sched_deadline {
        console
            .note("each CPU becomes a cpuset partition of its own, which takes some seconds before and after the run; if the kernel refuses SCHED_DEADLINE afterwards, see docs/edf.md");
    }
    watch(system, &config, control, console)
}

fn watch(system: &System, config: &RunConfig, control: &Control, console: &Console) -> Result<Outcome, Exit> {
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
        let result = lockwright_engine::run(system, config, control);
        over.store(true, Ordering::Relaxed);
        result
    });
    result.map_err(|error| refuse(system, &error, console))
}

/// Prints why there is no outcome, with the names in the file, and what to do.
pub(crate) fn refuse(system: &System, error: &RunError, console: &Console) -> Exit {
    let task = |id: TaskId| format!("`{}`", system.task(id).name);
    let doctor = "`lockwright doctor` prints what this machine lacks for real time, and how to fix it";
    let (message, help, exit) = match error {
        RunError::Machine(MachineError::NoPermission(_)) => (error.to_string(), doctor, Exit::Machine),
        RunError::NotAdmitted { task: id, .. } => {
            let name = system.task(*id).name.as_str();
            let message = error.to_string().replace(&format!("task {}", id.0), &format!("task `{name}`"));
            (message, "each task gets a tenth and 200 us beyond its execution time (docs/edf.md)", Exit::Machine)
        }
        RunError::NoTrace(_) => (error.to_string(), "run it as root, or without --audit", Exit::Machine),
        RunError::Cpusets(_) => {
            (error.to_string(), "without --sched-deadline, `run` needs no partitions", Exit::Machine)
        }
        RunError::CpuTaken { .. } => {
            (error.to_string(), "nothing of such a run is shown; leave its CPUs alone and run it again", Exit::Machine)
        }
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
    /// The observations with the bounds.
    pub(crate) fn new(system: &System, protocol: Protocol, bounds: Report, outcome: Outcome) -> Self {
        let seen =
            |task: &TaskOutcome| Seen { observation: task.observation, p999: p999(&task.observation, &task.responses) };
        let seen: Vec<Seen> = outcome.tasks.iter().map(seen).collect();
        let report = bounds.with_seen(&seen);
        let worst = report.rows.iter().filter_map(|row| Worst::of(system, row, &outcome)).collect();
        Self { protocol, report, outcome, worst }
    }

    /// The schedule and the response times, for a page.
    fn watched<'a>(&'a self, system: &'a System) -> Watched<'a> {
        Watched {
            protocol: self.protocol.name(),
            system,
            records: &self.outcome.records,
            responses: self.outcome.tasks.iter().map(|task| &task.responses).collect(),
        }
    }

    /// Whether the verdict is good.
    pub(crate) fn holds(&self) -> bool {
        let departs = |audit: &Audit| audit.departed + audit.lost > 0;
        self.report.holds()
            && self.outcome.ended != Ended::Watchdog
            && !self.outcome.audit.as_ref().is_some_and(departs)
    }

    /// The observed part of the requested length.
    pub(crate) fn observed(&self, asked: Duration) -> Duration {
        if self.outcome.ended == Ended::Interrupted { self.outcome.elapsed.min(asked) } else { asked }
    }

    fn warnings(&self, system: &System) -> Vec<String> {
        let outcome = &self.outcome;
        let mut warnings = Vec::new();
        if outcome.ended == Ended::Watchdog {
            let text = "the watchdog ended the run: jobs were still unfinished when all deadlines had passed";
            warnings.push(text.into());
        }
        if outcome.dropped > 0 {
            warnings.push(format!(
                "{} did not fit into the log: the trace and the observed blocking are incomplete; use a shorter --for",
                units::count(outcome.dropped, "record")
            ));
        }
        for (task, seen) in system.tasks().iter().zip(&outcome.tasks).filter(|(_, seen)| seen.throttled > 0) {
            warnings.push(format!(
                "{} of `{}` executed longer than the execution time and its margin; the kernel may have stopped each until \
                 its deadline (docs/edf.md)",
                units::count(seen.throttled, "job"),
                line(&task.name)
            ));
        }
        if !outcome.memory_locked {
            warnings.push("the memory could not be locked: a page fault may have delayed a job".into());
        }
        warnings
    }
}

impl Ran {
    /// The table, and the jobs that were late or above their bounds. `charging` names the overheads in the bounds.
    pub(crate) fn text(&self, input: &Input, length: &Length, charging: Option<&str>, console: &Console) -> String {
        let (system, report) = (&input.system, &self.report);
        let mut text = table::headline(&input.name, system, report);
        let cpus: Vec<String> = self.outcome.cpus.iter().map(ToString::to_string).collect();
        let observed = self.observed(length.duration);
        let part = if observed < length.duration { format!("{} of ", units::text(observed)) } else { String::new() };
        let duration = units::text(length.duration);
        let reason = length.reason.as_ref().map_or_else(String::new, |reason| format!(" ({reason})"));
        text.push_str(&format!("executed for {part}{duration}{reason} on CPU {} of this machine\n\n", cpus.join(", ")));
        text.push_str(&table::tasks(system, report, console));
        text.push_str(&table::reasons(system, report));
        text.extend(self.outcome.audit.as_ref().map(|audit| audit::text(audit, system)));
        let (above, late): (Vec<&Worst>, Vec<&Worst>) = self.worst.iter().partition(|worst| worst.above.is_some());
        // Under EDF, a deadline can be proved without a bound on the response.
        let (refuted, late): (Vec<&Worst>, Vec<&Worst>) = late.into_iter().partition(|worst| worst.proved);
        let charged = match charging {
            Some(charging) => format!("in which {charging} are charged:"),
            None => "which charge no overhead (context switches, lock operations, interrupts); --overheads charges \
                     them:"
                .into(),
        };
        let above_title = format!("Above their bounds, {charged}");
        let refuted_title = format!("Late, although their deadlines are proved by tests {charged}");
        for (title, worst) in [(above_title, above), (refuted_title, refuted), ("Late:".into(), late)] {
            if !worst.is_empty() {
                text.push_str(&format!("\n{title}\n"));
                text.extend(worst.iter().map(|worst| worst.describe(system, report.charged.as_ref())));
            }
        }
        text
    }
}

impl Worst {
    fn of(system: &System, row: &Row, outcome: &Outcome) -> Option<Self> {
        let above = row.bound.response.filter(|_| row.above_bound() == Some(true));
        let job = outcome.tasks.get(row.task.index())?.worst_job?;
        let is_late = job.finish.since(job.arrival) > system.task(row.task).deadline;
        if above.is_none() && !is_late {
            return None;
        }
        let records = &outcome.records;
        // Jobs of a task execute one after the other: execution up to the previous finish belongs to earlier jobs.
        let own_finish = |record: &&Record| record.task == row.task && record.event == Event::Finish;
        let before = records.iter().rev().filter(own_finish).map(|record| record.at).find(|&at| at < job.finish);
        let before = before.map_or(job.arrival, |at| at.max(job.arrival));
        let earlier = executed_by(row.task, &timeline(system, records, row.task, job.arrival, before));
        let timeline = timeline(system, records, row.task, job.arrival, job.finish);
        let takers = outcome.occupancy.as_ref().map(|occupancy| occupancy.takers(&timeline.gaps));
        Some(Self { task: row.task, above, proved: row.bound.proved, job, timeline, takers, earlier })
    }

    /// Time by which it exceeded its bound.
    pub(crate) fn excess(&self) -> Option<Duration> {
        Some(self.job.finish.since(self.job.arrival).saturating_sub(self.above?))
    }

    /// The job, the tasks that executed during it, and the rest of the time.
    fn describe(&self, system: &System, charged: Option<&System>) -> String {
        let response = self.job.finish.since(self.job.arrival);
        let executed: Vec<String> = self
            .timeline
            .executed
            .iter()
            .map(|&(task, time)| {
                let task_name = line(&system.task(task).name);
                if task != self.task {
                    return format!("`{task_name}` {}", units::text(time));
                }
                let worst = units::text(system.task(task).wcet);
                let worst = match charged {
                    Some(charged) => format!("{worst}, with overheads {}", units::text(charged.task(task).wcet)),
                    None => worst,
                };
                let this = units::text(time.saturating_sub(self.earlier));
                let earlier = if self.earlier == Duration::ZERO {
                    String::new()
                } else {
                    format!(" and its earlier, late jobs {}", units::text(self.earlier))
                };
                format!("this job of `{task_name}` {this} (worst case {worst}){earlier}")
            })
            .collect();
        let deadline = system.task(self.task).deadline;
        let mut faults = Vec::new();
        if let (Some(excess), Some(bound)) = (self.excess(), self.above) {
            faults.push(format!("{} above its bound of {}", units::text(excess), units::text(bound)));
        }
        if response > deadline {
            let late = units::text(response.saturating_sub(deadline));
            faults.push(format!("{late} after its deadline of {}", units::text(deadline)));
        }
        let is_alone = system.cpus_of(self.task).count() == 1;
        let (cpus, one_cpu) = if is_alone { ("its CPU", "it") } else { ("its CPUs", "one of them") };
        format!(
            "  {}: the job that arrived at {} took {}, {}.\n    {} executed {}; for {} {} executed no task ({})\n",
            line(&system.task(self.task).name),
            self.job.arrival,
            units::text(response),
            faults.join(", "),
            cpus,
            if executed.is_empty() { "none of the tasks".into() } else { executed.join(", ") },
            units::text(self.timeline.unaccounted()),
            one_cpu,
            line(&self.takers_text()),
        )
    }

    /// Names the occupants of the CPU meanwhile, longest first.
    fn takers_text(&self) -> String {
        let Some(takers) = &self.takers else {
            return "idle, other threads, the kernel, interrupts or the host: the kernel does not show this to the user"
                .into();
        };
        let (shown, rest) = takers.split_at(takers.len().min(TAKERS_SHOWN));
        let text = |(taker, time): &(Taker, Duration)| format!("{taker} {}", units::text(*time));
        let mut texts: Vec<String> = shown.iter().map(text).collect();
        if !rest.is_empty() {
            let time = rest.iter().map(|&(_, time)| time).sum();
            texts.push(format!("{} {}", units::count(rest.len() as u64, "other"), units::text(time)));
        }
        if texts.is_empty() { "at no time".into() } else { texts.join(", ") }
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
            unaccounted_ns: self.timeline.unaccounted().as_ns(),
            taken: self.takers.as_ref().map(|takers| takers.iter().map(as_taken).collect()),
        }
    }
}

fn as_taken((taker, time): &(Taker, Duration)) -> json::Taken {
    let (kind, thread) = match taker {
        Taker::Thread(name) => (json::TakenBy::Thread, Some(name.clone())),
        Taker::Others => (json::TakenBy::Others, None),
        Taker::Idle => (json::TakenBy::Idle, None),
        Taker::Host | Taker::Machine => (json::TakenBy::Machine, None),
        _ => (json::TakenBy::Unknown, None),
    };
    json::Taken { by: kind, thread, host: *taker == Taker::Host, taken_ns: time.as_ns() }
}

fn executed_by(task: TaskId, timeline: &Timeline) -> Duration {
    timeline.executed.iter().filter(|(known, _)| *known == task).map(|&(_, time)| time).sum()
}

pub(crate) fn as_json(verb: json::Verb, input: &Input, length: &Length, runs: &[Ran]) -> Output {
    let asked = length.duration;
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
        result.audit = ran.outcome.audit.as_ref().map(|audit| audit::as_json(audit, system));
        for worst in &ran.worst {
            let name = &system.task(worst.task).name;
            if let Some(task) = result.tasks.iter_mut().find(|task| task.name == *name) {
                task.worst_job = Some(worst.as_json(system));
            }
        }
        result
    };
    let results = |ran: &Ran| ProtocolResult::all(system, &ran.report, |result| with(ran, result));
    Output {
        // Only the last run can have been cut short.
        duration_ns: Some(runs.last().map_or(Duration::ZERO, |last| last.observed(asked)).as_ns()),
        interrupted: Some(interrupt::requested()),
        ..Output::new(verb, &input.name, runs.iter().flat_map(results).collect())
    }
}
