//! Scripts with an expected schedule, executed by the simulator and by real threads. See the README of this crate.
#![forbid(unsafe_code)]

use fastrand::Rng;
use lockwright_engine::observe::Gap;
use lockwright_model::format::parse_system;
use lockwright_model::{
    CpuId, Duration, Event, Instant, Observation, Priority, Protocol, Record, Step, System, TaskId,
};
use lockwright_sim::{Stall, Taken, Unlock};
use serde::Deserialize;
use std::path::Path;

/// A system, and the observations that its run must yield.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The system to execute.
    pub system: System,
    script: Script,
    /// All times of the script are multiplied by this, and so are those of the system.
    stretch: u64,
    /// The protocol of the script, under which its expectations hold.
    own: Protocol,
}

#[derive(Clone, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct Script {
    #[allow(dead_code)] // Only for readers of the script.
    shows: String,
    run_for: String,
    protocol: String,
    fulock: Option<String>,
    #[serde(default)]
    change: Vec<Change>,
    #[serde(default)]
    acquires: Vec<String>,
    #[serde(default)]
    executes: Vec<Executes>,
    #[serde(default)]
    unchanged: Vec<String>,
    misses: Option<Vec<String>>,
}

#[derive(Clone, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct Change {
    at: String,
    task: String,
    priority: u32,
}

#[derive(Clone, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct Executes {
    task: String,
    cpu: Option<u16>,
    from: String,
    until: String,
    at_least: Option<String>,
    at_most: Option<String>,
}

const UNLOCKS: [(&str, Unlock); 3] =
    [("serial", Unlock::Serial), ("parallel", Unlock::Parallel), ("auto", Unlock::Auto)];

/// The observations of one run of a scenario.
#[derive(Debug)]
pub struct Seen {
    /// The records, in order of time.
    pub records: Vec<Record>,
    /// The measurements, by task id.
    pub observations: Vec<Observation>,
}

/// One expectation of a script.
#[derive(Clone, Copy, Debug)]
enum Expectation<'a> {
    Acquires(&'a [String]),
    Executes(&'a Executes),
    Unchanged(&'a str),
    Misses(&'a [String]),
}

/// The observation that belongs to an expectation.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Shown {
    /// The first acquisitions, as many as are expected.
    Acquired(Vec<String>),
    Executed(Duration),
    Changed(bool),
    /// The tasks that missed a deadline.
    Missed(Vec<String>),
}

impl Shown {
    /// Returns whether both are equal, except that execution times may differ by at most `lost`.
    fn is_like(&self, other: &Self, lost: Duration) -> bool {
        match (self, other) {
            (&Self::Executed(one), &Self::Executed(other)) => one.max(other).saturating_sub(one.min(other)) <= lost,
            _ => self == other,
        }
    }
}

/// The maximum cost of locks, switches and the clock in a run. This time does not count as lost, and the simulator does
/// not model it.
const COSTS: Duration = Duration::from_ms(1);
/// The number of simulated schedules that lose the same time in different places.
const DISTURBED: u64 = 1_000;
/// The number of pieces into which the lost time is split.
const PIECES: u32 = 8;

impl Scenario {
    /// Reads `scripts/<name>`.
    ///
    /// # Panics
    /// Panics if the files are missing or wrong, because scenarios are part of the tests.
    #[must_use]
    pub fn read(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").join(name);
        let text = |file: &str| {
            std::fs::read_to_string(folder.join(file)).unwrap_or_else(|error| panic!("{name}/{file}: {error}"))
        };
        let system = parse_system(&text("system.toml")).unwrap_or_else(|faults| panic!("{name}: {faults:#?}"));
        let script: Script = toml::from_str(&text("script.toml")).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        let own = Protocol::from_name(&script.protocol).expect("a script names a protocol");
        Self { system, script, stretch: 1, own }
    }

    /// Returns the same scenario under another protocol, where its expectations should fail.
    #[must_use]
    pub fn under(mut self, protocol: Protocol) -> Self {
        self.script.protocol = protocol.name().into();
        self
    }

    /// Returns the same scenario with all times multiplied by `factor`, for slow processors.
    ///
    /// # Panics
    /// Panics if a time exceeds the range of the clock.
    #[must_use]
    pub fn stretched(mut self, factor: u64) -> Self {
        let mut tasks = self.system.tasks().to_vec();
        for task in &mut tasks {
            let runs =
                task.body.iter_mut().filter_map(|step| if let Step::Run(time) = step { Some(time) } else { None });
            let times = [&mut task.period, &mut task.deadline, &mut task.jitter, &mut task.offset, &mut task.wcet];
            times.into_iter().chain(runs).for_each(|time| *time = multiplied(*time, factor));
        }
        self.system = self.system.with_tasks(tasks).expect("the system stays valid");
        self.stretch *= factor;
        self
    }

    /// Returns the same scenario without expectations of execution times and deadlines: what is left holds however slow
    /// a processor is.
    #[must_use]
    pub fn by_order_alone(mut self) -> Self {
        self.script.executes.clear();
        self.script.misses = None;
        self
    }

    /// Returns a time of the script.
    fn time(&self, text: &str) -> Duration {
        let time = Duration::parse(text).unwrap_or_else(|error| panic!("{text:?} in a script: {error}"));
        multiplied(time, self.stretch)
    }

    /// Returns the protocol of the resources that name none.
    ///
    /// # Panics
    /// Panics if the script names no protocol.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        Protocol::from_name(&self.script.protocol).expect("a script names a protocol")
    }

    /// Returns the same scenario with the resources of one `fulock`.
    #[must_use]
    pub fn by_fulock(mut self, unlock: Unlock) -> Self {
        let name = UNLOCKS.into_iter().find(|&(_, other)| other == unlock).map(|(name, _)| name.into());
        self.script.fulock = name;
        self
    }

    /// Returns how the locks of a `fulock` are unlocked, if the script is about a `fulock`. Only the simulator executes
    /// such a script.
    ///
    /// # Panics
    /// Panics if the script names no known way to unlock.
    #[must_use]
    pub fn fulock(&self) -> Option<Unlock> {
        let name = self.script.fulock.as_deref()?;
        Some(UNLOCKS.into_iter().find(|unlock| unlock.0 == name).expect("a script names a way to unlock").1)
    }

    /// Returns the time during which jobs arrive.
    #[must_use]
    pub fn run_for(&self) -> Duration {
        self.time(&self.script.run_for)
    }

    /// Returns the changes of base priorities: the time, the task and its new priority.
    pub fn changes(&self) -> impl Iterator<Item = (Instant, TaskId, Priority)> {
        self.script.change.iter().map(|change| {
            (Instant::ZERO + self.time(&change.at), self.task(&change.task), Priority::base(change.priority))
        })
    }

    fn task(&self, name: &str) -> TaskId {
        self.system
            .task_ids()
            .find(|&id| self.system.task(id).name == name)
            .unwrap_or_else(|| panic!("a script names `{name}`, which is no task"))
    }

    /// Returns the expectations that fail, in words. The list is empty if everything is as expected.
    #[must_use]
    pub fn faults(&self, seen: &Seen) -> Vec<String> {
        let faults = self.expectations().filter(|expected| !self.fits(expected, &self.shown(expected, seen)));
        faults.map(|expected| self.fault(&expected, seen)).collect()
    }

    /// Returns the expectations that fail and that no disturbance explains. A disturbance explains a failure if the
    /// simulator finds a schedule that shows the same, in which the tasks run under the script's own protocol, and
    /// their CPUs stall in `gaps`, or they lose `lost` of their time somewhere.
    #[must_use]
    pub fn unexplained(&self, seen: &Seen, gaps: &[Gap], lost: Duration) -> Vec<String> {
        let lost = lost + COSTS;
        let mut faults: Vec<(Expectation<'_>, Shown)> =
            self.expectations().map(|expected| (expected, self.shown(&expected, seen))).collect();
        faults.retain(|(expected, shown)| !self.fits(expected, shown));
        // One schedule must match all the failed expectations.
        let mut least: Vec<Expectation<'_>> = faults.iter().map(|&(expected, _)| expected).collect();
        let stalled = std::iter::once_with(|| simulate_stalled(&self.clone().under(self.own), gaps));
        let random = (0..DISTURBED).map(|seed| simulate(&self.disturbed(&mut Rng::with_seed(seed), lost)));
        for disturbed in stalled.chain(random) {
            if least.is_empty() {
                break;
            }
            let differs =
                |(expected, shown): &&(Expectation<'_>, Shown)| !shown.is_like(&self.shown(expected, &disturbed), lost);
            let left: Vec<Expectation<'_>> = faults.iter().filter(differs).map(|&(expected, _)| expected).collect();
            if left.len() < least.len() {
                least = left;
            }
        }
        least.iter().map(|expected| self.fault(expected, seen)).collect()
    }

    /// Returns the same scenario with execution times and offsets increased by `lost` in total, in random places. A
    /// task that loses its processor executes for longer or begins later.
    fn disturbed(&self, rng: &mut Rng, lost: Duration) -> Self {
        let mut tasks = self.system.tasks().to_vec();
        let mut left = lost.as_ns();
        for piece in (0..PIECES).rev() {
            let take = if piece == 0 { left } else { rng.u64(0..=left) };
            left -= take;
            let task = &mut tasks[rng.usize(0..self.system.tasks().len())];
            let mut steps: Vec<&mut Duration> = task
                .body
                .iter_mut()
                .filter_map(|step| if let Step::Run(time) = step { Some(time) } else { None })
                .collect();
            match rng.usize(0..=steps.len()) {
                0 => task.offset += Duration::from_ns(take),
                step => {
                    *steps[step - 1] += Duration::from_ns(take);
                    task.wcet += Duration::from_ns(take);
                }
            }
        }
        let system = self.system.with_tasks(tasks).expect("the system stays valid");
        Self { system, ..self.clone() }.under(self.own)
    }

    fn expectations(&self) -> impl Iterator<Item = Expectation<'_>> {
        let script = &self.script;
        let acquires = (!script.acquires.is_empty()).then_some(Expectation::Acquires(&script.acquires));
        let unchanged = script.unchanged.iter().map(|name| Expectation::Unchanged(name));
        let misses = script.misses.as_deref().map(Expectation::Misses);
        acquires.into_iter().chain(script.executes.iter().map(Expectation::Executes)).chain(unchanged).chain(misses)
    }

    fn shown(&self, expected: &Expectation<'_>, seen: &Seen) -> Shown {
        match *expected {
            Expectation::Acquires(expected) => {
                let mut acquired = self.acquired(&seen.records);
                acquired.truncate(expected.len());
                Shown::Acquired(acquired)
            }
            Expectation::Executes(expected) => Shown::Executed(self.executed(&seen.records, expected)),
            Expectation::Unchanged(name) => {
                let task = self.task(name);
                let changes = |record: &Record| record.task == task && matches!(record.event, Event::Priority(_));
                Shown::Changed(seen.records.iter().any(changes))
            }
            Expectation::Misses(_) => {
                let tasks = self.system.tasks().iter().zip(&seen.observations);
                Shown::Missed(tasks.filter(|(_, seen)| seen.misses > 0).map(|(task, _)| task.name.clone()).collect())
            }
        }
    }

    fn fits(&self, expected: &Expectation<'_>, shown: &Shown) -> bool {
        match (*expected, shown) {
            (Expectation::Acquires(expected), Shown::Acquired(acquired)) => expected == acquired,
            (Expectation::Executes(expected), Shown::Executed(executed)) => {
                let least = expected.at_least.as_deref().map_or(Duration::ZERO, |text| self.time(text));
                let most = self.time(expected.at_most.as_deref().unwrap_or(&expected.until));
                (least..=most).contains(executed)
            }
            (Expectation::Unchanged(_), Shown::Changed(changed)) => !changed,
            (Expectation::Misses(expected), Shown::Missed(missed)) => {
                missed.len() == expected.len() && missed.iter().all(|name| expected.contains(name))
            }
            _ => unreachable!("an observation is of the kind of its expectation"),
        }
    }

    fn fault(&self, expected: &Expectation<'_>, seen: &Seen) -> String {
        match (*expected, self.shown(expected, seen)) {
            (Expectation::Acquires(expected), Shown::Acquired(acquired)) => {
                format!("acquired {acquired:?}, expected {expected:?}")
            }
            (Expectation::Executes(expected), Shown::Executed(executed)) => {
                format!("`{}` executed for {executed} in {expected:?}", expected.task)
            }
            (Expectation::Unchanged(name), _) => format!("the priority of `{name}` changed"),
            (expected, shown) => format!("{shown:?}, expected {expected:?}"),
        }
    }

    fn acquired(&self, records: &[Record]) -> Vec<String> {
        let name = |record: &Record| match record.event {
            Event::Acquire(resource) => {
                Some(format!("{}:{}", self.system.task(record.task).name, self.system.resource(resource).name))
            }
            _ => None,
        };
        records.iter().filter_map(name).collect()
    }

    /// Returns how long the task executes in the expected interval, on the expected CPU if there is one.
    fn executed(&self, records: &[Record], expected: &Executes) -> Duration {
        let (from, until) = (Instant::ZERO + self.time(&expected.from), Instant::ZERO + self.time(&expected.until));
        let task = self.task(&expected.task);
        let counts = |cpu: CpuId| expected.cpu.is_none_or(|wanted| wanted == cpu.0);
        let mut cpu = self.system.task(task).cpu;
        let mut total = Duration::ZERO;
        let mut since: Option<Instant> = None;
        let mut end = |began: Instant, ends: Instant, cpu: CpuId| {
            if counts(cpu) {
                total += ends.min(until).since(began.max(from));
            }
        };
        for record in records.iter().filter(|record| record.task == task) {
            match record.event {
                Event::Run => since = Some(record.at),
                Event::Stop => {
                    if let Some(began) = since.take() {
                        end(began, record.at, cpu);
                    }
                }
                Event::Migrate(to) => {
                    // A thread may continue on another CPU. A simulated task has stopped before.
                    if let Some(began) = since.as_mut() {
                        end(std::mem::replace(began, record.at), record.at, cpu);
                    }
                    cpu = to;
                }
                _ => {}
            }
        }
        // The task still executes when the records end.
        if let Some(began) = since {
            end(began, until, cpu);
        }
        total
    }
}

fn multiplied(time: Duration, factor: u64) -> Duration {
    time.checked_mul(factor).expect("a scenario takes seconds")
}

/// Executes a scenario in virtual time.
#[must_use]
pub fn simulate(scenario: &Scenario) -> Seen {
    simulate_stalled(scenario, &[])
}

/// Executes a scenario in virtual time, where CPUs execute no task in these gaps.
#[must_use]
pub fn simulate_stalled(scenario: &Scenario, gaps: &[Gap]) -> Seen {
    let changes = scenario.changes().map(|(at, task, priority)| lockwright_sim::Change { at, task, priority });
    let config = lockwright_sim::Config::default().with_protocol(scenario.protocol()).with_changes(changes.collect());
    let stall = |gap: &Gap| Stall { at: gap.from, cpu: gap.cpu, length: gap.length() };
    let mut taken = Taken::default();
    taken.stalls.extend(gaps.iter().map(stall));
    let config = if gaps.is_empty() { config } else { config.with_taken(taken) };
    let mut simulation = match scenario.fulock() {
        Some(unlock) => lockwright_sim::Simulation::with_fulock(&scenario.system, &config, unlock, Vec::new()),
        None => lockwright_sim::Simulation::new(&scenario.system, &config, Vec::new()),
    };
    simulation.run_until(Instant::ZERO + scenario.run_for());
    let observations = simulation.observations();
    Seen { records: simulation.into_tracer(), observations }
}

/// Returns the configuration to execute a scenario with real threads.
#[must_use]
pub fn run_config(scenario: &Scenario) -> lockwright_engine::RunConfig {
    let changes = scenario
        .changes()
        .map(|(at, task, priority)| lockwright_engine::PriorityChange { at, task, priority })
        .collect();
    lockwright_engine::RunConfig {
        changes,
        watch: true,
        ..lockwright_engine::RunConfig::new(scenario.protocol(), scenario.run_for())
    }
}

impl From<&lockwright_engine::Outcome> for Seen {
    fn from(outcome: &lockwright_engine::Outcome) -> Self {
        let observations = outcome.tasks.iter().map(|task| task.observation).collect();
        Self { records: outcome.records.clone(), observations }
    }
}
