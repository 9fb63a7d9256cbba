//! Scripts with an expected schedule, executed by the simulator and by real threads. See the README beside this crate.
#![forbid(unsafe_code)]

use lockwright_model::format::parse_system;
use lockwright_model::{CpuId, Duration, Event, Instant, Observation, Priority, Protocol, Record, System, TaskId};
use lockwright_sim::Unlock;
use serde::Deserialize;
use std::path::Path;

/// A system and what must be seen of it.
#[derive(Debug)]
pub struct Scenario {
    /// Executed by whoever.
    pub system: System,
    script: Script,
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct Script {
    #[allow(dead_code)]
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

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct Change {
    at: String,
    task: String,
    priority: u32,
}

#[derive(Deserialize, Debug)]
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

/// What somebody saw who executed a scenario.
#[derive(Debug)]
pub struct Seen {
    /// In order of time.
    pub records: Vec<Record>,
    /// By task id.
    pub observations: Vec<Observation>,
}

fn time(text: &str) -> Duration {
    Duration::parse(text).unwrap_or_else(|error| panic!("{text:?} in a script: {error}"))
}

impl Scenario {
    /// Reads `scripts/<name>`.
    ///
    /// # Panics
    /// When the files are missing or wrong: scenarios are part of the tests.
    #[must_use]
    pub fn read(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").join(name);
        let text = |file: &str| {
            std::fs::read_to_string(folder.join(file)).unwrap_or_else(|error| panic!("{name}/{file}: {error}"))
        };
        let system = parse_system(&text("system.toml")).unwrap_or_else(|faults| panic!("{name}: {faults:#?}"));
        let script = toml::from_str(&text("script.toml")).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        Self { system, script }
    }

    /// The same under another protocol: what it expects should not come.
    #[must_use]
    pub fn under(mut self, protocol: Protocol) -> Self {
        self.script.protocol = protocol.name().into();
        self
    }

    /// Of the resources that name none.
    ///
    /// # Panics
    /// When the script names no protocol.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        Protocol::from_name(&self.script.protocol).expect("a script names a protocol")
    }

    /// The same with the resources of one `fulock`.
    #[must_use]
    pub fn by_fulock(mut self, unlock: Unlock) -> Self {
        let name = UNLOCKS.into_iter().find(|&(_, other)| other == unlock).map(|(name, _)| name.into());
        self.script.fulock = name;
        self
    }

    /// How the locks of a `fulock` are unlocked, where the script is about that: only the simulator executes it.
    ///
    /// # Panics
    /// When the script names no way to unlock.
    #[must_use]
    pub fn fulock(&self) -> Option<Unlock> {
        let name = self.script.fulock.as_deref()?;
        Some(UNLOCKS.into_iter().find(|unlock| unlock.0 == name).expect("a script names a way to unlock").1)
    }

    /// For how long jobs arrive.
    #[must_use]
    pub fn run_for(&self) -> Duration {
        time(&self.script.run_for)
    }

    /// When the base priority of which task becomes what.
    pub fn changes(&self) -> impl Iterator<Item = (Instant, TaskId, Priority)> {
        self.script
            .change
            .iter()
            .map(|change| (Instant::ZERO + time(&change.at), self.task(&change.task), Priority::base(change.priority)))
    }

    fn task(&self, name: &str) -> TaskId {
        self.system
            .task_ids()
            .find(|&id| self.system.task(id).name == name)
            .unwrap_or_else(|| panic!("a script names `{name}`, which is no task"))
    }

    /// What does not fit, in words; empty where all is as expected.
    #[must_use]
    pub fn faults(&self, seen: &Seen) -> Vec<String> {
        let mut faults = Vec::new();
        let acquired = self.acquired(&seen.records);
        let expected = &self.script.acquires;
        if acquired.iter().take(expected.len()).ne(expected) {
            faults.push(format!("acquired {acquired:?}, expected {expected:?}"));
        }
        for expected in &self.script.executes {
            let (from, until) = (Instant::ZERO + time(&expected.from), Instant::ZERO + time(&expected.until));
            let executed = self.executed(&seen.records, expected, from, until);
            let least = expected.at_least.as_deref().map_or(Duration::ZERO, time);
            let most = expected.at_most.as_deref().map_or(until.since(from), time);
            if executed < least || executed > most {
                faults.push(format!("`{}` executed for {executed} in {expected:?}", expected.task));
            }
        }
        for name in &self.script.unchanged {
            let task = self.task(name);
            let change = seen.records.iter().find(|r| r.task == task && matches!(r.event, Event::Priority(_)));
            if let Some(change) = change {
                faults.push(format!("the priority of `{name}` changes: {change:?}"));
            }
        }
        if let Some(misses) = &self.script.misses {
            for (task, seen) in self.system.tasks().iter().zip(&seen.observations) {
                if (seen.misses > 0) != misses.contains(&task.name) {
                    faults
                        .push(format!("`{}` missed {} deadlines; expected misses: {misses:?}", task.name, seen.misses));
                }
            }
        }
        faults
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

    /// How long the task executes in [`from`, `until`), on the CPU in question.
    fn executed(&self, records: &[Record], expected: &Executes, from: Instant, until: Instant) -> Duration {
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
                    // A thread may execute on; a simulated task was stopped before.
                    if let Some(began) = since.as_mut() {
                        end(std::mem::replace(began, record.at), record.at, cpu);
                    }
                    cpu = to;
                }
                _ => {}
            }
        }
        // Still executing when the records end.
        if let Some(began) = since {
            end(began, until, cpu);
        }
        total
    }
}

/// Executes a scenario in virtual time.
#[must_use]
pub fn simulate(scenario: &Scenario) -> Seen {
    let changes = scenario.changes().map(|(at, task, priority)| lockwright_sim::Change { at, task, priority });
    let config = lockwright_sim::Config {
        protocol: Some(scenario.protocol()),
        changes: changes.collect(),
        ..lockwright_sim::Config::default()
    };
    let mut simulation = match scenario.fulock() {
        Some(unlock) => lockwright_sim::Simulation::with_fulock(&scenario.system, &config, unlock, Vec::new()),
        None => lockwright_sim::Simulation::new(&scenario.system, &config, Vec::new()),
    };
    simulation.run_until(Instant::ZERO + scenario.run_for());
    let observations = simulation.observations();
    Seen { records: simulation.into_tracer(), observations }
}

/// Executes a scenario with real threads.
///
/// # Errors
/// Where the machine refuses.
pub fn run(scenario: &Scenario) -> Result<Seen, lockwright::RunError> {
    let changes =
        scenario.changes().map(|(at, task, priority)| lockwright::PriorityChange { at, task, priority }).collect();
    let config =
        lockwright::RunConfig { changes, ..lockwright::RunConfig::new(scenario.protocol(), scenario.run_for()) };
    let outcome = lockwright::run(&scenario.system, &config, &lockwright::Control::new())?;
    let observations = outcome.tasks.iter().map(|task| task.observation).collect();
    Ok(Seen { records: outcome.records, observations })
}
