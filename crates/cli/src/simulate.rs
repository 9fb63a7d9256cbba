//! `lockwright simulate`: schedules in virtual time.

use crate::args::{OffsetsChoice, Simulate};
use crate::bars;
use crate::charges::{self, Charges};
use crate::console::Console;
use crate::exit::Exit;
use crate::horizon::{Horizon, JOBS_BUDGET};
use crate::html::{self, Account, Watched};
use crate::input::{self, Input};
use crate::interrupt;
use crate::json::{self, Output, ProtocolResult};
use crate::placed::{Assigned, placed};
use crate::progress::Progress;
use crate::report::{Report, Row, Seen, interrupt_text};
use crate::responses::{P999_JOBS, Responses, p999};
use crate::same::{self, Once, grouped};
use crate::schedule::{ScheduleFiles, refuse_beyond};
use crate::scheduled;
use crate::seed;
use crate::table;
use crate::units;
use hdrhistogram::Histogram;
use lockwright_model::{DURATION_MAX, Duration, Instant, Observation, Protocol, Record, Scheduler, System, Task};
use lockwright_sim::{Config, Execution, Offsets, Simulation, Tracer};
use std::time;

/// Default number of schedules with random offsets.
const RANDOM_RUNS: u32 = 100;
/// Default number of offsets of each task in a sweep.
const SWEEP_STEPS: u32 = 16;
/// Greatest number of records in a trace: about a gigabyte.
const RECORDS_MAX: usize = 20_000_000;
/// Time between two checks for signals.
const SLICE: time::Duration = time::Duration::from_millis(30);

/// The schedules of one invocation: their number, their length and their parameters.
struct Plan<'a> {
    /// The system in the file. The simulated system may differ for each protocol: with overheads, it has the same tasks
    /// followed by interrupts.
    system: &'a System,
    has_jitter: bool,
    offsets: OffsetsChoice,
    execution: Execution,
    /// `Some` if anything is random.
    seed: Option<u64>,
    schedules: u64,
    duration: Duration,
    /// Reason for the length, in words; `None` if the user chose it.
    reason: Option<String>,
}

impl<'a> Plan<'a> {
    /// The plan for `executed`, and for other systems with the same periods and jitters.
    fn new(arguments: &Simulate, system: &'a System, executed: &System, console: &Console) -> Self {
        let offsets = arguments.offsets;
        let has_jitter = has_jitter(executed);
        let is_random = offsets == OffsetsChoice::Random || arguments.random_execution || has_jitter;
        let mut schedules = match offsets {
            OffsetsChoice::Random => u64::from(arguments.runs.unwrap_or(RANDOM_RUNS)),
            OffsetsChoice::Sweep => {
                1 + system.tasks().len() as u64 * (u64::from(arguments.runs.unwrap_or(SWEEP_STEPS)) - 1)
            }
            _ if is_random => u64::from(arguments.runs.unwrap_or(1)),
            _ => {
                if arguments.runs.is_some() {
                    console.note("--runs has no effect here: with these offsets all schedules are the same");
                }
                1
            }
        };
        let (duration, reason) = match arguments.duration {
            Some(duration) => (duration, None),
            None => {
                let horizon = Horizon::of_simulation(executed, offsets, schedules);
                if horizon.schedules < schedules {
                    console.note(format!(
                        "simulating {} instead of {schedules}, to stay below {JOBS_BUDGET} jobs in all; --for lifts this limit",
                        units::count(horizon.schedules, "schedule")
                    ));
                }
                schedules = horizon.schedules;
                (horizon.duration, Some(horizon.reason))
            }
        };
        if arguments.seed.is_some() && !is_random {
            console.note("--seed has no effect here: nothing in this simulation is random");
        }
        Self {
            system,
            has_jitter,
            offsets,
            execution: if arguments.random_execution { Execution::Random } else { Execution::Worst },
            seed: is_random.then(|| arguments.seed.unwrap_or_else(seed::draw)),
            schedules,
            duration,
            reason,
        }
    }

    /// The system and the configuration of schedule `number`. In a random series, the first schedule has the seed
    /// itself and each next one a seed greater by one, so that each can be repeated alone.
    fn schedule(&self, number: u64, protocol: Protocol, executed: &System) -> (System, Config) {
        let (offsets, system) = match self.offsets {
            OffsetsChoice::File => (Offsets::File, executed.clone()),
            OffsetsChoice::Synchronous => (Offsets::Synchronous, executed.clone()),
            OffsetsChoice::Random => (Offsets::Random, executed.clone()),
            OffsetsChoice::Sweep => (Offsets::File, self.swept(number, executed)),
        };
        let seed = self.seed.unwrap_or(0).wrapping_add(if self.offsets == OffsetsChoice::Sweep { 0 } else { number });
        let config = Config::default()
            .with_protocol(protocol)
            .with_offsets(offsets)
            .with_execution(self.execution)
            .with_seed(seed);
        (system, config)
    }

    /// Schedule 0 is synchronous. The others shift one task each, step by step and task by task. Interrupts are not
    /// shifted.
    fn swept(&self, number: u64, executed: &System) -> System {
        let tasks = self.system.tasks().len() as u64;
        let steps = (self.schedules - 1) / tasks + 1;
        let late = number.checked_sub(1).map(|place| ((place / (steps - 1)) as usize, place % (steps - 1) + 1));
        let mut moved = executed.tasks().to_vec();
        for (index, task) in moved.iter_mut().enumerate() {
            let step = late.filter(|(late, _)| *late == index).map_or(0, |(_, step)| step);
            let offset = u128::from(task.period.as_ns()) * u128::from(step) / u128::from(steps);
            task.offset = Duration::from_ns(u64::try_from(offset).unwrap_or(0));
        }
        executed.with_tasks(moved).unwrap_or_else(|_| executed.clone())
    }

    /// Whether a task of the file has enough jobs for a 99.9th percentile.
    fn has_quantile(&self) -> bool {
        let shortest = self.system.tasks().iter().map(|task| task.period).min().unwrap_or(DURATION_MAX);
        // One job at the start, and one that jitter delays from before it.
        let jobs = self.duration.as_ns() / shortest.as_ns().max(1) + 2;
        jobs.saturating_mul(self.schedules) >= P999_JOBS
    }

    fn describe(&self, played: &Played) -> String {
        let each = match (self.schedules, played.cut) {
            (1, None) => String::new(),
            (1, Some(cut)) => format!("{} of ", units::text(cut)),
            (all, None) if played.schedules == all => format!("{all} schedules of "),
            (all, _) => format!("{} of {all} schedules of ", played.schedules),
        };
        let reason = self.reason.as_ref().map_or_else(String::new, |reason| format!(" ({reason})"));
        let seed = self.seed.map_or_else(String::new, |seed| format!(", seed {seed}"));
        let jitter = if self.has_jitter { ", release jitter is random" } else { "" };
        let cut = match played.cut {
            Some(cut) if self.schedules > 1 => format!("; the last of them only {}", units::text(cut)),
            _ => String::new(),
        };
        format!("{each}{}{reason}, offsets {}{jitter}{seed}{cut}", units::text(self.duration), self.offsets.name())
    }
}

/// How much of a plan was simulated under one protocol: a signal ends it early.
#[derive(Clone, Copy)]
struct Played {
    /// Schedules begun.
    schedules: u64,
    /// Length of the last schedule, if it is incomplete.
    cut: Option<Duration>,
}

impl Played {
    /// Virtual time of all schedules together.
    fn time(&self, plan: &Plan<'_>) -> Duration {
        let whole = self.schedules - u64::from(self.cut.is_some() && self.schedules > 0);
        let ns = plan.duration.as_ns().saturating_mul(whole);
        Duration::from_ns(ns.saturating_add(self.cut.unwrap_or_default().as_ns()))
    }
}

fn has_jitter(system: &System) -> bool {
    system.tasks().iter().any(|task| task.jitter > Duration::ZERO)
}

/// Executes `simulate`.
///
/// # Errors
/// The console has the message.
pub fn simulate(arguments: &Simulate, console: &Console) -> Result<Exit, Exit> {
    let input = placed(&arguments.subject.file, arguments.scheduler, Assigned::InFile, console)?;
    input::executes(&input, &Scheduler::ALL, console)?;
    let system = &input.system;
    let charges = Charges::of(arguments.subject.overheads.as_deref(), console)?;
    let protocols = match is_tested(system) {
        true => scheduled::executable(arguments.subject.protocol, system, charges.is_some(), console)?,
        false => input::executable(&arguments.subject, system, console)?,
    };
    let protocols = Charges::possible(charges.as_ref(), protocols, system, console)?;
    let bounds = |&protocol: &Protocol| Ok((protocol, bounds(&input, protocol, charges.as_ref(), console)?));
    let groups = grouped(system, protocols.iter().map(bounds).collect::<Result<_, Exit>>()?);
    let first = groups.first().map_or(system, |(_, bounds)| bounds.analysed(system));
    let plan = Plan::new(arguments, system, first, console);
    refuse_beyond(arguments.schedules.window, Instant::ZERO + plan.duration, console)?;
    interrupt::listen(|| {}, console);
    if let (Some(seed), None) = (plan.seed, arguments.seed) {
        console.note(format!("the seed is {seed}; `--seed {seed}` repeats this simulation"));
    }
    let html = html::open(&arguments.subject, console)?;
    let (mut reports, mut watched) = (Vec::new(), Vec::new());
    // A file that cannot be written costs no results: its status comes after them.
    let mut written = Ok(());
    for (protocol, bounds) in &groups {
        let files = ScheduleFiles::create(system, &arguments.schedules, *protocol, groups.len(), console)?;
        let executed = bounds.analysed(system);
        let wants = Wants { records: files.need_records() || html.is_some(), responses: html.is_some() };
        let mut found = play_all(&plan, executed, *protocol, wants, console);
        if found.records.len() == RECORDS_MAX {
            console.warn(format!("the recorded schedule ends after {RECORDS_MAX} records"));
        }
        if files.need_records() {
            let title = format!("{} under {protocol}, simulated", input.name);
            written = written.and(files.write(executed, &title, &found.records, found.end, console));
        }
        reports.push((bounds.clone().with_seen(&found.seen), found.played));
        if html.is_some() {
            // All protocols together keep as many records as one may have.
            found.records.truncate(RECORDS_MAX / groups.len());
            watched.push((found.records, found.responses));
        }
        if interrupt::requested() {
            break;
        }
    }
    let mut unseen = Once::default();
    for (report, _) in &reports {
        if let Some(text) = report.unseen_text(system) {
            unseen.add(&report.protocol, text);
        }
        warn_above(system, report, console);
    }
    unseen.texts(reports.len()).for_each(|text| console.warn(text));
    let charged = arguments.subject.overheads.as_deref().map(json::Charged::given);
    let output = Output { overheads: charged, ..as_json(&input, &plan, &reports) };
    if let Some(file) = html {
        let protocols: Vec<_> = groups.iter().zip(&reports).map(|(group, (report, _))| (group.0, report)).collect();
        let mut account = Account {
            bounds: bars::of_best(system, &protocols),
            overheads: charges.as_ref().map(|charges| &charges.overheads),
            ..Account::new(&input, &output, &arguments.subject)
        };
        for ((report, _), (records, responses)) in reports.iter().zip(&watched) {
            let (protocol, responses) = (report.protocol.as_str(), responses.iter().collect());
            account.watched.push(Watched { protocol, system: report.analysed(system), records, responses });
        }
        if let (Some(seed), None) = (plan.seed, arguments.seed) {
            account.options.push(format!("--seed={seed}"));
        }
        written = written.and(html::write(file, &account, console));
    }
    if arguments.subject.json {
        console.print(&json::to_text(&output))?;
    } else {
        let note = charges::note(arguments.subject.overheads.as_deref());
        console.print_text(&(as_text(&input, &plan, &reports, console) + &note))?;
    }
    if interrupt::requested() {
        let missing: Vec<Protocol> = groups[reports.len()..].iter().map(|(protocol, _)| *protocol).collect();
        console.warn(interrupt_text(&missing));
        return Ok(Exit::Interrupted);
    }
    written?;
    Ok(Exit::from_holds(reports.iter().all(|(report, _)| report.holds())))
}

/// Whether tests of the scheduler bound responses, and not the equations of a protocol.
fn is_tested(system: &System) -> bool {
    system.scheduler().is_by_deadline() || system.scheduler().is_global()
}

/// The bounds, with the system that is executed if overheads are charged.
fn bounds(input: &Input, protocol: Protocol, charges: Option<&Charges>, console: &Console) -> Result<Report, Exit> {
    let system = &input.system;
    if !is_tested(system) {
        let charged = charges.map(|charges| charges.charge(system, protocol, console)).transpose()?;
        return Ok(charges::bounds(system, charged, protocol));
    }
    let bounds = scheduled::promised(input, protocol, charges, console)?;
    if let (Some(charges), None) = (charges, &bounds.charged) {
        // There are no charged jobs to execute.
        charges.charge(system, protocol, console)?;
    }
    Ok(bounds)
}

/// The simulation and the analysis charge the same: no response may be above its bound, and no proved deadline missed.
fn warn_above(system: &System, report: &Report, console: &Console) {
    let is_late = |row: &Row| row.bound.proved && row.seen.is_some_and(|seen| seen.observation.misses > 0);
    for row in report.rows.iter().filter(|row| row.above_bound() == Some(true) || is_late(row)) {
        console.warn(format!(
            "under {} a simulated job of `{}` is above its bound or misses a proved deadline: this is a bug in lockwright, \
             please report it",
            report.protocol,
            system.task(row.task).name
        ));
    }
}

fn as_text(input: &Input, plan: &Plan<'_>, reports: &[(Report, Played)], console: &Console) -> String {
    let mut text = String::new();
    if reports.len() > 1 {
        let compared: Vec<&Report> = reports.iter().map(|(report, _)| report).collect();
        text.push_str(&table::system_line(&input.name, plan.system));
        text.push('\n');
        text.push_str(&console.layout.draw(&same::comparison(plan.system, &compared)));
        text.push_str(&same::legend(compared.into_iter()));
    }
    for (report, played) in reports {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&table::headline(&input.name, plan.system, report));
        text.push_str(&format!("simulated {}\n\n", plan.describe(played)));
        text.push_str(&table::tasks(plan.system, report, console));
        text.push_str(&table::reasons(plan.system, report));
    }
    text
}

fn as_json(input: &Input, plan: &Plan<'_>, reports: &[(Report, Played)]) -> Output {
    let result = |(report, played): &(Report, Played)| {
        ProtocolResult::all(plan.system, report, |result| ProtocolResult {
            runs: Some(played.schedules),
            observed_ns: Some(played.time(plan).as_ns()),
            ..result
        })
    };
    // Only the last protocol can have been cut short.
    let last = reports.last().map(|(_, played)| *played);
    let cut = last.filter(|last| last.schedules <= 1).and_then(|last| last.cut);
    Output {
        offsets: Some(plan.offsets.name().to_owned()),
        seed: plan.seed,
        runs: Some(last.map_or(0, |last| last.schedules)),
        duration_ns: Some(cut.unwrap_or(plan.duration).as_ns()),
        interrupted: Some(interrupt::requested()),
        ..Output::new(json::Verb::Simulate, &input.name, reports.iter().flat_map(result).collect())
    }
}

/// The observations of all schedules under one protocol.
struct Found {
    seen: Vec<Seen>,
    played: Played,
    /// The records of the worst schedule, if they are wanted.
    records: Vec<Record>,
    /// They are complete up to this time.
    end: Instant,
    /// The response times of the tasks of the file, if they are wanted or tell a 99.9th percentile.
    responses: Vec<Histogram<u64>>,
}

/// The records of schedules that are kept besides the observations.
#[derive(Clone, Copy)]
struct Wants {
    /// The records of the worst one.
    records: bool,
    /// The response times in all of them, of however few jobs.
    responses: bool,
}

fn play_all(plan: &Plan<'_>, executed: &System, protocol: Protocol, wants: Wants, console: &Console) -> Found {
    let progress = Progress::new(console, &format!("simulating {protocol}"));
    let mut seen = vec![Observation::default(); executed.tasks().len()];
    let mut worst: Option<Worst> = None;
    let mut recorder = Recorder {
        records: (wants.records && plan.schedules == 1).then(Vec::new),
        responses: (wants.responses || plan.has_quantile()).then(|| Responses::new(plan.system.tasks().len())),
    };
    let mut played = Played { schedules: 0, cut: None };
    for number in 0..plan.schedules {
        let (system, config) = plan.schedule(number, protocol, executed);
        let done = |part: Instant| {
            let share = u128::from(part.as_ns()) * 1000 / u128::from(plan.duration.as_ns().max(1));
            progress.set(number * 1000 + u64::try_from(share).unwrap_or(1000), plan.schedules * 1000);
            !interrupt::requested()
        };
        let (one, reached) = if recorder.is_needed() {
            recorder.begin();
            let (one, reached, back) = play(&system, &config, plan.duration, recorder, done);
            recorder = back;
            (one, reached)
        } else {
            let (one, reached, ()) = play(&system, &config, plan.duration, (), done);
            (one, reached)
        };
        played = Played { schedules: number + 1, cut: (reached < plan.duration).then_some(reached) };
        let badness = Badness::of(plan.system, &one);
        if worst.as_ref().is_none_or(|worst| badness > worst.badness) {
            worst = Some(Worst { badness, number, reached });
        }
        for (all, one) in seen.iter_mut().zip(&one) {
            merge(all, one);
        }
        if interrupt::requested() {
            break;
        }
    }
    let mut end = Instant::ZERO + played.cut.unwrap_or(plan.duration);
    if wants.records && interrupt::requested() {
        console.note("interrupted; the schedule is still written (a second Ctrl-C ends the command at once)");
    }
    if let Some(worst) = worst.filter(|_| wants.records && plan.schedules > 1) {
        // The same seed gives the same schedule: simulate the worst one again, as far as it went, now with a recorder.
        let (system, config) = plan.schedule(worst.number, protocol, executed);
        let again = Recorder { records: Some(Vec::new()), responses: None };
        let (_, reached, again) = play(&system, &config, worst.reached, again, |_| true);
        (end, recorder.records) = (Instant::ZERO + reached, again.records);
    }
    let responses = recorder.responses.map_or_else(Vec::new, Responses::histograms);
    let one = |(index, observation): (usize, Observation)| Seen {
        observation,
        p999: responses.get(index).and_then(|responses| p999(&observation, responses)),
    };
    let seen = seen.into_iter().enumerate().map(one).collect();
    let records = recorder.records.unwrap_or_default();
    if let Some(last) = records.last().filter(|_| records.len() == RECORDS_MAX) {
        end = last.at;
    }
    Found { seen, played, records, end, responses }
}

/// Simulates one schedule while `goes_on` holds, which gets the simulated time: the observations, and how far it went.
fn play<T: Tracer>(
    system: &System,
    config: &Config,
    duration: Duration,
    tracer: T,
    goes_on: impl Fn(Instant) -> bool,
) -> (Vec<Observation>, Duration, T) {
    let mut simulation = Simulation::new(system, config, tracer);
    let end = Instant::ZERO + duration;
    let mut slice = (duration.as_ns() / 1000).max(1);
    // BOUND: every slice is at least a nanosecond, and slices grow while they are quick.
    while simulation.now() < end && goes_on(simulation.now()) {
        let started = time::Instant::now();
        let next = simulation.now().checked_add(Duration::from_ns(slice)).unwrap_or(end);
        simulation.run_until(next.min(end));
        let took = started.elapsed();
        if took < SLICE / 2 {
            slice = slice.saturating_mul(2);
        } else if took > SLICE * 2 {
            slice = (slice / 2).max(1);
        }
    }
    (simulation.observations(), simulation.now().since(Instant::ZERO), simulation.into_tracer())
}

fn merge(all: &mut Observation, one: &Observation) {
    all.jobs = all.jobs.saturating_add(one.jobs);
    all.misses = all.misses.saturating_add(one.misses);
    all.response = all.response.max(one.response);
    all.blocking = all.blocking.max(one.blocking);
    all.lock_wait = all.lock_wait.max(one.lock_wait);
    all.restarts = all.restarts.saturating_add(one.restarts);
}

/// The worst schedule of a series.
struct Worst {
    badness: Badness,
    number: u64,
    /// It was simulated up to this time.
    reached: Duration,
}

/// Orders schedules: more misses, then the response nearest to (or furthest beyond) its deadline.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Badness {
    misses: u64,
    /// In millionths of the deadline.
    response: u128,
}

impl Badness {
    /// Of the tasks in the file, without the interrupts that follow them.
    fn of(system: &System, seen: &[Observation]) -> Self {
        let seen = &seen[..seen.len().min(system.tasks().len())];
        let share = |(seen, task): (&Observation, &Task)| {
            let response = seen.response.unwrap_or_default();
            u128::from(response.as_ns()) * 1_000_000 / u128::from(task.deadline.as_ns())
        };
        Self {
            misses: seen.iter().map(|seen| seen.misses).fold(0, u64::saturating_add),
            response: seen.iter().zip(system.tasks()).map(share).max().unwrap_or(0),
        }
    }
}

/// Keeps records, up to a limit, and response times.
struct Recorder {
    records: Option<Vec<Record>>,
    responses: Option<Responses>,
}

impl Recorder {
    fn is_needed(&self) -> bool {
        self.records.is_some() || self.responses.is_some()
    }

    /// Prepares for another schedule.
    fn begin(&mut self) {
        self.responses.iter_mut().for_each(Responses::begin);
    }
}

impl Tracer for Recorder {
    fn record(&mut self, record: Record) {
        if let Some(responses) = &mut self.responses {
            responses.note(&record);
        }
        if let Some(records) = self.records.as_mut().filter(|records| records.len() < RECORDS_MAX) {
            records.push(record);
        }
    }
}
