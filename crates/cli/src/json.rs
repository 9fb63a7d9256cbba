//! The object that `--json` prints. Its schema is generated from these types into `docs/output.schema.json`.

use crate::beside::{Beside, Changed};
use crate::fault::Fault;
use crate::report::{Report, Row};
use lockwright_analysis::{Blocker, Growth, Proof, Sensitivity, Term};
use lockwright_model::{Duration, System, TaskId};
use schemars::{JsonSchema, Schema, generate::SchemaSettings};
use serde::Serialize;
use std::path::Path;

/// What `lockwright check`, `simulate`, `run` and `verify` print with `--json`: exactly one such object. Times are integer
/// nanoseconds. What does not exist (no bound, not observed) is null. More keys may be added; the required ones stay.
#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Which verb printed this.
    pub verb: Verb,
    /// The name of the system, or of its file where it has none.
    pub system: String,
    /// One for each protocol looked at; of `check` the best first.
    pub results: Vec<ProtocolResult>,
    /// Where the first releases came from; `simulate` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offsets: Option<String>,
    /// The overheads that are charged; left out where none are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overheads: Option<Charged>,
    /// The seed that repeats the simulation, where anything in it was random.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// How many schedules were simulated for each protocol; where it was ended early, for the last one in `results`, its
    /// last schedule not to the end. `simulate` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<u64>,
    /// How much time was observed for each protocol (for each schedule of it); where it was ended early in the only schedule
    /// or the run of the last one in `results`, for that one. `simulate`, `run` and `verify`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ns: Option<u64>,
    /// Whether it was ended early by a signal; protocols that were not reached have no result then. `simulate`, `run` and `verify`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<bool>,
}

/// Verbs with a result per protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// Bounds.
    Check,
    /// A schedule in virtual time.
    Simulate,
    /// Real threads.
    Run,
    /// Bounds with what the machine takes, and real threads.
    Verify,
}

/// Overheads that are charged.
#[derive(Serialize, JsonSchema)]
pub struct Charged {
    /// Which file they are in; null where they were measured and could not be kept.
    pub file: Option<String>,
    /// Where they are from.
    pub origin: Origin,
}

/// Where overheads are from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// `--overheads` names the file.
    Given,
    /// Measured before, less than a day ago; `verify` only.
    Kept,
    /// Measured just now; `verify` only.
    Measured,
}

impl Charged {
    /// Those of a file that an option names.
    #[must_use]
    pub fn given(file: &Path) -> Self {
        Self { file: Some(file.display().to_string()), origin: Origin::Given }
    }
}

/// All tasks under one protocol.
#[derive(Serialize, JsonSchema)]
pub struct ProtocolResult {
    /// How processors are given to jobs: p-fp, p-edf, g-fp or g-edf.
    pub scheduler: String,
    /// The protocol of resources that name none, as task-set files spell it; msrp under p-edf.
    pub protocol: String,
    /// Another protocol whose rules are the same on this system: what was observed is that one's. `simulate`, `run`
    /// and `verify` with `--protocol all`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_rules_as: Option<String>,
    /// The verdict of the verb, which its exit status follows. `check`: every deadline is proved to hold. `simulate` and `run`: no
    /// job was seen to miss its deadline, which says nothing about tasks that finished no job (`jobs` is 0): they are warned of;
    /// `run` with overheads or with `--strict`: and no response was above its bound. `verify`: all of these.
    pub schedulable: bool,
    /// Whether every deadline is proved to hold, whichever the verb.
    pub proved: bool,
    /// The least of the tasks' `slack_ns`; null where a task has no bound.
    pub worst_slack_ns: Option<i64>,
    /// By CPU, then the most urgent first.
    pub tasks: Vec<TaskResult>,
    /// How many schedules were begun; `simulate` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<u64>,
    /// How much time was observed, of all schedules together; `simulate`, `run` and `verify`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_ns: Option<u64>,
    /// How the run ended: "completed", "interrupted" or "watchdog"; `run` and `verify`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// The verdict in a sentence; `verify` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// Every term of one task's bound; with `check --explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<Explain>,
    /// What interruptible sections win beside the best lock; `ics` and `ics_lock` with `check --protocol all`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<BesideLock>,
    /// What each test says; `check` under schedulers other than p-fp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tests: Option<Vec<TestResult>>,
    /// How far execution times can grow; with `check --sensitivity`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sensitivity: Option<SensitivityResult>,
}

/// Response bounds of one protocol beside those of another; tasks with the same are left out.
#[derive(Serialize, JsonSchema)]
pub struct BesideLock {
    /// The other: the best of those that are locks.
    pub lock: String,
    /// Tasks with a lower bound than there, or the only one.
    pub better: Vec<ChangedBound>,
    /// Tasks with a higher one, or none.
    pub worse: Vec<ChangedBound>,
}

/// A task's response bound under two protocols.
#[derive(Serialize, JsonSchema)]
pub struct ChangedBound {
    /// Whose.
    pub task: String,
    /// Under this one; null where there is none.
    pub response_ns: Option<u64>,
    /// Under the other.
    pub lock_response_ns: Option<u64>,
    /// What it waits for there; of tasks that are better off.
    pub sections: Vec<WaitedSection>,
}

/// A section that can delay a more urgent task.
#[derive(Serialize, JsonSchema)]
pub struct WaitedSection {
    /// Whose.
    pub task: String,
    /// On what.
    pub resource: String,
}

/// One schedulability test.
#[derive(Serialize, JsonSchema)]
pub struct TestResult {
    /// Its usual name.
    pub test: String,
    /// Which processor it is about; null where it is about all.
    pub cpu: Option<u16>,
    /// Whether it proves every deadline.
    pub accepts: bool,
    /// Why it does not.
    pub reason: Option<String>,
    /// Where the demand is more than fits; null where that is not why.
    pub point: Option<PointResult>,
}

/// An interval in which more is due than fits: `due_ns` and `blocking_ns` together exceed `interval_ns`.
#[derive(Serialize, JsonSchema)]
pub struct PointResult {
    /// Its length.
    pub interval_ns: u64,
    /// The work whose deadlines lie in it, with its spinning.
    pub due_ns: u64,
    /// What blocks that; 0 where nothing does.
    pub blocking_ns: u64,
    /// Which section that is.
    pub blocked_by: Option<BlockedBy>,
}

/// A section that keeps tasks with shorter deadlines waiting.
#[derive(Serialize, JsonSchema)]
pub struct BlockedBy {
    /// Whose it is.
    pub task: String,
    /// On which resource.
    pub resource: String,
    /// How long it is.
    pub length_ns: u64,
    /// How long its task spins before it.
    pub spin_ns: u64,
}

/// One task: what it is, what is promised, what was seen.
#[derive(Serialize, JsonSchema)]
pub struct TaskResult {
    /// Unique in its system.
    pub name: String,
    /// Where it executes, from 0; null under a global scheduler, and in a cluster of several.
    pub cpu: Option<u16>,
    /// In a cluster of several: where it may execute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Vec<u16>>,
    /// Greater is more urgent.
    pub priority: u32,
    /// Worst-case execution time of one job, as the file has it.
    pub cost_ns: u64,
    /// The same with overheads, which the bounds are about; left out where none are charged to jobs one by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub charged_cost_ns: Option<u64>,
    /// Bound on the time less urgent tasks and other CPUs delay one job.
    pub blocking_ns: Option<u64>,
    /// Bound on the time from arrival to finish.
    pub response_ns: Option<u64>,
    /// Relative to the arrival.
    pub deadline_ns: u64,
    /// `deadline_ns` minus `response_ns`; below zero where the bound is beyond the deadline.
    pub slack_ns: Option<i64>,
    /// The verdict of the verb, as of all tasks together. Where `jobs` is 0, what was seen says nothing about it.
    pub schedulable: bool,
    /// Longest time from arrival to finish seen.
    pub observed_response_ns: Option<u64>,
    /// Longest time of one job during which it was released and unfinished, and its CPU executed neither it nor a task at
    /// least as urgent.
    pub observed_blocking_ns: Option<u64>,
    /// Jobs that finished.
    pub jobs: Option<u64>,
    /// Jobs that finished, or were unfinished at the end, later than their deadline.
    pub misses: Option<u64>,
    /// Whether its deadline is proved to hold, whichever the verb.
    pub proved: bool,
    /// What proves `response_ns`: "classic", the terms of the protocol's page, or "lp", a linear program. Left out where there is no bound, and under
    /// other schedulers than p-fp and c-fp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
    /// Why there is no bound.
    pub reason: Option<String>,
    /// The parts of `blocking_ns`.
    pub blocking: Option<BlockingParts>,
    /// Under p-edf, the section that can keep a job waiting longest when it arrives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<BlockedBy>,
    /// Whether a response was longer than `response_ns`; null where nothing was promised or seen.
    pub above_bound: Option<bool>,
    /// The response that 99.9 % of the jobs did not exceed; `run` and `verify`.
    pub observed_p999_ns: Option<u64>,
    /// Longest time one job spent between its requests and their grants.
    pub lock_wait_ns: Option<u64>,
    /// How often interruptible sections were executed again; left out where none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restarts: Option<u64>,
    /// The job with the longest response, where that was above the bound or late; `run` and `verify`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worst_job: Option<WorstJob>,
}

/// One job, and what its CPU did from its arrival to its finish.
#[derive(Serialize, JsonSchema)]
pub struct WorstJob {
    /// Since the common start.
    pub arrival_ns: u64,
    /// Since the common start.
    pub finish_ns: u64,
    /// Which tasks executed, the longest first.
    pub executed: Vec<Executed>,
    /// Of what the task itself executed: by earlier jobs of it, which were late.
    pub earlier_jobs_ns: u64,
    /// For how long no task executed: idle, other threads, the kernel, interrupts, the host.
    pub unaccounted_ns: u64,
    /// Who had the CPU meanwhile, the longest first; null where the kernel does not tell this user.
    pub taken: Option<Vec<Taken>>,
}

/// Time in which a CPU executed no task.
#[derive(Serialize, JsonSchema)]
pub struct Taken {
    /// Who had it.
    pub by: TakenBy,
    /// The name of the thread, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// For how long.
    pub taken_ns: u64,
}

/// Who had a CPU.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TakenBy {
    /// A thread that is no task.
    Thread,
    /// A thread that is no task, or none.
    Others,
    /// No thread.
    Idle,
    /// The kernel, interrupts or the host: a task had it and did not execute.
    Machine,
    /// Nobody knows.
    Unknown,
}

/// How long a task executed during a job.
#[derive(Serialize, JsonSchema)]
pub struct Executed {
    /// Its name.
    pub task: String,
    /// How long.
    pub executed_ns: u64,
}

/// Blocking by where it comes from.
#[derive(Serialize, JsonSchema)]
pub struct BlockingParts {
    /// Sections of less urgent tasks of the same CPU.
    pub local_ns: u64,
    /// Boosted sections of less urgent tasks of the same CPU.
    pub boosted_ns: u64,
    /// Waiting for resources shared across CPUs.
    pub remote_ns: u64,
}

/// One task's bound, taken apart.
#[derive(Serialize, JsonSchema)]
pub struct Explain {
    /// Whose bound.
    pub task: String,
    /// Under p-edf: the length of the interval whose demand is taken apart, that which is too short or else the task's deadline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_ns: Option<u64>,
    /// They sum to `response_ns` where there is a bound; under p-edf to what is due in the interval and what blocks it.
    pub terms: Vec<TermResult>,
}

/// `count` times `each_ns` is `total_ns`.
#[derive(Serialize, JsonSchema)]
pub struct TermResult {
    /// What it is charged for, such as "interference".
    pub cause: String,
    /// The task that causes it; null for the job itself.
    pub by: Option<String>,
    /// On which resource.
    pub resource: Option<String>,
    /// How often.
    pub count: u64,
    /// How long each time.
    pub each_ns: u64,
    /// All of it.
    pub total_ns: u64,
    /// Why, in words.
    pub why: String,
}

/// The largest factors under which every deadline is still proved.
#[derive(Serialize, JsonSchema)]
pub struct SensitivityResult {
    /// Which bounds hold under these factors: "classic", though `tasks` may have tighter ones; absent under the schedulers whose
    /// tests decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
    /// Of all execution times together.
    pub all: GrowthResult,
    /// Of all execution times of one task each.
    pub tasks: Vec<TaskGrowth>,
    /// Of the sections on one resource each.
    pub resources: Vec<ResourceGrowth>,
}

/// Of one task.
#[derive(Serialize, JsonSchema)]
pub struct TaskGrowth {
    /// Its name.
    pub task: String,
    /// The factor.
    #[serde(flatten)]
    pub growth: GrowthResult,
    /// The most time each of its jobs may be blocked from outside, beside what blocks it now; null where a deadline breaks without it.
    pub tolerated_blocking_ns: Option<u64>,
}

/// Of the sections on one resource.
#[derive(Serialize, JsonSchema)]
pub struct ResourceGrowth {
    /// Its name.
    pub resource: String,
    /// The factor.
    #[serde(flatten)]
    pub growth: GrowthResult,
}

/// A largest factor.
#[derive(Serialize, JsonSchema)]
pub struct GrowthResult {
    /// Whether there is a largest factor.
    pub state: GrowthState,
    /// In thousandths, 1000 is as it is; null unless the state is "limited".
    pub permille: Option<u64>,
}

/// Whether there is a largest factor.
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GrowthState {
    /// There is.
    Limited,
    /// No factor breaks a deadline.
    Unlimited,
    /// No factor helps: not every deadline can be proved, however short the times.
    Broken,
}

impl Output {
    /// The keys that every verb has.
    #[must_use]
    pub fn new(verb: Verb, system: &str, results: Vec<ProtocolResult>) -> Self {
        Self {
            verb,
            system: system.to_owned(),
            results,
            offsets: None,
            overheads: None,
            seed: None,
            runs: None,
            duration_ns: None,
            interrupted: None,
        }
    }
}

impl BesideLock {
    /// With the names of the file.
    #[must_use]
    pub fn new(system: &System, found: &Beside) -> Self {
        let bound = |changed: &Changed| ChangedBound {
            task: system.task(changed.task).name.clone(),
            response_ns: changed.response.map(Duration::as_ns),
            lock_response_ns: changed.under_lock.map(Duration::as_ns),
            sections: changed
                .sections
                .iter()
                .map(|&(task, resource)| WaitedSection {
                    task: system.task(task).name.clone(),
                    resource: system.resource(resource).name.clone(),
                })
                .collect(),
        };
        Self {
            lock: found.lock.clone(),
            better: found.better.iter().map(bound).collect(),
            worse: found.worse.iter().map(bound).collect(),
        }
    }
}

impl ProtocolResult {
    /// The JSON view of a report.
    #[must_use]
    pub fn new(system: &System, report: &Report) -> Self {
        Self {
            scheduler: system.scheduler().to_string(),
            protocol: report.protocol.clone(),
            same_rules_as: None,
            schedulable: report.holds(),
            proved: report.rows.iter().all(|row| row.bound.proved),
            worst_slack_ns: report.worst_slack(system).map(|(slack, _)| slack),
            tasks: report.rows.iter().map(|row| TaskResult::new(system, report, row)).collect(),
            runs: None,
            observed_ns: None,
            ended: None,
            verdict: None,
            beside: None,
            tests: None,
            explain: None,
            sensitivity: None,
        }
    }

    /// The JSON views of a report, `with` more in them: its own, and those of the protocols that have the same rules.
    pub fn all(system: &System, report: &Report, with: impl Fn(Self) -> Self) -> Vec<Self> {
        let same = |name: &String| Self {
            protocol: name.clone(),
            same_rules_as: Some(report.protocol.clone()),
            ..Self::new(system, report)
        };
        std::iter::once(Self::new(system, report)).chain(report.same.iter().map(same)).map(with).collect()
    }
}

impl TaskResult {
    fn new(system: &System, report: &Report, row: &Row) -> Self {
        let task = system.task(row.task);
        let observation = row.seen.map(|seen| seen.observation);
        let ns = |time: Option<Duration>| time.map(Duration::as_ns);
        let cluster: Vec<u16> = system.cpus_of(row.task).map(|cpu| cpu.0).collect();
        let is_alone = cluster.len() == 1;
        Self {
            name: task.name.clone(),
            cpu: (is_alone && !system.scheduler().is_global()).then_some(task.cpu.0),
            cpus: (!is_alone).then_some(cluster),
            priority: task.priority.level(),
            cost_ns: task.wcet.as_ns(),
            charged_cost_ns: report.charged.as_ref().map(|charged| charged.task(row.task).wcet.as_ns()),
            blocking_ns: ns(row.bound.blocking.and_then(|blocking| blocking.total())),
            response_ns: ns(row.bound.response),
            deadline_ns: task.deadline.as_ns(),
            slack_ns: row.slack(system),
            schedulable: row.holds(),
            observed_response_ns: ns(observation.and_then(|seen| seen.response)),
            observed_blocking_ns: ns(observation.and_then(|seen| seen.blocking)),
            jobs: observation.map(|seen| seen.jobs),
            misses: observation.map(|seen| seen.misses),
            proved: row.bound.proved,
            proof: row.bound.proof.map(|proof| proof.to_string()),
            reason: row.bound.reason.clone(),
            blocking: row.bound.blocking.map(|blocking| BlockingParts {
                local_ns: blocking.local.as_ns(),
                boosted_ns: blocking.boosted.as_ns(),
                remote_ns: blocking.remote.as_ns(),
            }),
            blocked_by: row.bound.blocker.map(|blocker| BlockedBy::new(system, &blocker)),
            above_bound: row.above_bound(),
            observed_p999_ns: ns(row.seen.and_then(|seen| seen.p999)),
            lock_wait_ns: ns(observation.and_then(|seen| seen.lock_wait)),
            restarts: observation.map(|seen| seen.restarts).filter(|&restarts| restarts > 0),
            worst_job: None,
        }
    }
}

impl Explain {
    /// The JSON view of a bound taken apart.
    #[must_use]
    pub fn new(system: &System, task: TaskId, terms: &[Term]) -> Self {
        let term = |term: &Term| TermResult {
            cause: term.cause.to_string(),
            by: term.by.map(|task| system.task(task).name.clone()),
            resource: term.resource.map(|resource| system.resource(resource).name.clone()),
            count: term.count,
            each_ns: term.each.as_ns(),
            total_ns: term.total.as_ns(),
            why: term.why.clone(),
        };
        Self { task: system.task(task).name.clone(), interval_ns: None, terms: terms.iter().map(term).collect() }
    }
}

impl BlockedBy {
    /// The JSON view of a section that blocks.
    #[must_use]
    pub fn new(system: &System, blocker: &Blocker) -> Self {
        Self {
            task: system.task(blocker.task).name.clone(),
            resource: system.resource(blocker.resource).name.clone(),
            length_ns: blocker.length.as_ns(),
            spin_ns: blocker.spin.as_ns(),
        }
    }
}

impl SensitivityResult {
    /// The JSON view of a sensitivity; `proof` says of which bounds, where bounds decide.
    #[must_use]
    pub fn new(system: &System, sensitivity: &Sensitivity, proof: Option<Proof>) -> Self {
        let resource = |(resource, growth): &(_, Growth)| ResourceGrowth {
            resource: system.resource(*resource).name.clone(),
            growth: GrowthResult::new(*growth),
        };
        let tasks =
            sensitivity.tasks.iter().zip(&sensitivity.tolerated).map(|((task, growth), (_, tolerated))| TaskGrowth {
                task: system.task(*task).name.clone(),
                growth: GrowthResult::new(*growth),
                tolerated_blocking_ns: tolerated.map(Duration::as_ns),
            });
        Self {
            proof: proof.map(|proof| proof.to_string()),
            all: GrowthResult::new(sensitivity.all),
            tasks: tasks.collect(),
            resources: sensitivity.resources.iter().map(resource).collect(),
        }
    }
}

impl GrowthResult {
    fn new(growth: Growth) -> Self {
        match growth {
            Growth::Permille(permille) => Self { state: GrowthState::Limited, permille: Some(permille) },
            Growth::Unlimited => Self { state: GrowthState::Unlimited, permille: None },
            Growth::Broken => Self { state: GrowthState::Broken, permille: None },
        }
    }
}

/// What `lockwright study bpl` prints with `--json`: exactly one such object. Times are in units of which the mean critical
/// section has 100. More keys may be added beside `results`.
#[derive(Serialize, JsonSchema)]
pub struct BplOutput {
    /// "study".
    pub verb: StudyVerb,
    /// "bpl".
    pub study: BplStudy,
    /// The seed, from which the seed of each run is drawn.
    pub seed: u64,
    /// How many runs there are behind each result.
    pub runs: u32,
    /// How many requests were asked for in each run; it ends a few requests later, between two batches.
    pub requests: u64,
    /// Who gets a lock that is free when a burst comes.
    pub free_lock: BplFreeLock,
    /// Whether it was ended early by a signal; what was not simulated to its end has no result then.
    pub interrupted: bool,
    /// Three for each number of cores, mean burst and rate: one for each lock.
    pub results: Vec<BplResult>,
}

/// The verb of [`BplOutput`].
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StudyVerb {
    /// A published simulation.
    Study,
}

/// The study of [`BplOutput`].
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BplStudy {
    /// Three orders of a lock under bursts.
    Bpl,
}

/// Who gets a lock that is free when a burst comes.
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BplFreeLock {
    /// Any member of the burst, at random.
    Random,
    /// The most important member of the burst.
    Best,
}

/// One lock under one traffic. Requests that were granted count, and no others.
#[derive(Clone, Default, Serialize, JsonSchema)]
pub struct BplResult {
    /// Sources of traffic, each with a priority of its own and at most one request at a time.
    pub cores: u32,
    /// Mean size of a burst.
    pub burst: u32,
    /// Bursts per mean critical section: λ/μ.
    pub rate: f64,
    /// In which order those that wait are granted the lock.
    pub lock: BplLock,
    /// Requests that waited at some instant while a less important one held the lock, in percent.
    pub inversions_pct: f64,
    /// Mean of the mean waits of the cores, weighted 1 for the least important up to `cores` for the most important one. A
    /// core that never got the lock is left out, weight and all.
    pub weighted_delay: f64,
    /// `weighted_delay` divided by that of fifo; null where nobody waits under that.
    pub weighted_delay_over_fifo: Option<f64>,
    /// Mean wait of all granted requests. Waits are censored: one that still waits at the end does not count, however long it has
    /// waited. Where cores are `unserved`, this is far below what a request has to expect.
    pub mean_wait: f64,
    /// Mean wait of the requests of the most important core; null where it never got the lock.
    pub top_mean_wait: Option<f64>,
    /// The most critical sections one request waited for, the one during which it came among them.
    pub max_sections_waited: u64,
    /// Cores that never got the lock.
    pub unserved: usize,
}

/// An order.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BplLock {
    /// First come, first served.
    #[default]
    Fifo,
    /// The most important first.
    Priority,
    /// What requested during one critical section is a batch: first batches first, in one the most important first.
    Batched,
}

/// What `measure locks` prints.
#[derive(Serialize, JsonSchema)]
pub struct LocksOutput {
    /// "measure".
    pub verb: MeasureVerb,
    /// "locks".
    pub subject: LocksSubject,
    /// Cycles of the time-stamp counter in a nanosecond.
    pub cycles_per_ns: f64,
    /// Median cycles of a reading of nothing with warm caches; subtracted from the warm readings.
    pub harness_cycles: u64,
    /// The same with cold caches, for the cold readings; 0 where there are none.
    pub cold_harness_cycles: u64,
    /// Whether the costs were measured under SCHED_FIFO.
    pub realtime: bool,
    /// Readings of each lock.
    pub readings: usize,
    /// Length of a critical section under contention.
    pub section_ns: u64,
    /// The seed of the arrivals.
    pub seed: u64,
    /// Whether it was ended early by a signal.
    pub interrupted: bool,
    /// Lock and unlock without contention: each lock warm, then each cold.
    pub costs: Vec<LockCost>,
    /// Each lock under each rate and kind of arrivals; empty with `--alone`.
    pub contention: Vec<LockContention>,
}

/// The verb of [`LocksOutput`].
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MeasureVerb {
    /// This machine, measured.
    Measure,
}

/// The subject of [`LocksOutput`].
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LocksSubject {
    /// Every spinlock.
    Locks,
}

/// What `measure mutex` prints.
#[derive(Serialize, JsonSchema)]
pub struct MutexOutput {
    /// "measure".
    pub verb: MeasureVerb,
    /// "mutex".
    pub subject: MutexSubject,
    /// Cycles of the time-stamp counter in a nanosecond.
    pub cycles_per_ns: f64,
    /// Median cycles of a reading of nothing with warm caches; subtracted from the warm readings.
    pub harness_cycles: u64,
    /// The same with cold caches, for the cold readings; 0 where there are none.
    pub cold_harness_cycles: u64,
    /// Whether the costs were measured under SCHED_FIFO; those of ceilings are left out otherwise.
    pub realtime: bool,
    /// Readings of each mutex.
    pub readings: usize,
    /// Whether it was ended early by a signal.
    pub interrupted: bool,
    /// Lock and unlock without contention: each mutex warm, then each cold.
    pub costs: Vec<LockCost>,
    /// From an unlock until the first waiter executes: each mutex with warm and with cold caches; empty with `--alone`.
    pub hand_over: Vec<MutexHandOver>,
}

/// The subject of [`MutexOutput`].
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MutexSubject {
    /// Mutexes.
    Mutex,
}

/// From one owner of a mutex to the next, on one CPU.
#[derive(Default, Serialize, JsonSchema)]
pub struct MutexHandOver {
    /// Its name.
    pub lock: String,
    /// How many waited.
    pub waiters: usize,
    /// Whether all caches were emptied before each unlock; where not, many waiters drive each other out of them.
    pub cold: bool,
    /// Readings.
    pub rounds: usize,
    /// The least, from before the unlock until the first waiter executes.
    pub min_ns: u64,
    /// The median.
    pub median_ns: u64,
    /// What one in ten exceeds.
    pub p90_ns: u64,
    /// The greatest.
    pub max_ns: u64,
}

/// What `measure protocols` prints. All times are nanoseconds.
#[derive(Serialize, JsonSchema)]
pub struct ProtocolsOutput {
    /// "measure".
    pub verb: MeasureVerb,
    /// "protocols".
    pub subject: ProtocolsSubject,
    /// CPUs of the load's tasks.
    pub application_cpus: usize,
    /// Whether synchronisation had a CPU of its own; else it was the last of those.
    pub synchronisation_cpu: bool,
    /// Whether it was ended early by a signal.
    pub interrupted: bool,
    /// From one tick of the kernel to the next, where any were seen.
    pub tick_period_ns: Option<u64>,
    /// What the machine and its kernel do.
    pub machine: Vec<MachineCost>,
    /// Every protocol.
    pub protocols: Vec<ProtocolTimes>,
}

/// The subject of [`ProtocolsOutput`].
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProtocolsSubject {
    /// Protocols for several processors.
    Protocols,
}

/// Something the machine and its kernel do.
#[derive(Default, Serialize, JsonSchema)]
pub struct MachineCost {
    /// What.
    pub work: String,
    /// How many readings.
    pub readings: usize,
    /// The least.
    pub min_ns: u64,
    /// The median.
    pub median_ns: u64,
    /// The mean of all but the top 1 %.
    pub average_ns: u64,
    /// The greatest of all but the top 1 %.
    pub worst_ns: u64,
    /// The greatest of all.
    pub max_ns: u64,
}

/// Lock and unlock under one protocol. What was not measured is null.
#[derive(Default, Serialize, JsonSchema)]
pub struct ProtocolTimes {
    /// Its name, and how where there are two ways.
    pub protocol: String,
    /// Lock and unlock together that nobody else wants: the median.
    pub alone_median_ns: u64,
    /// What one in a hundred exceeds.
    pub alone_p99_ns: u64,
    /// What the median should not exceed, by the machine's costs in the same run.
    pub target_ns: Option<u64>,
    /// Readings of each under load.
    pub loaded_readings: usize,
    /// Lock under load: the least.
    pub lock_min_ns: Option<u64>,
    /// The mean.
    pub lock_mean_ns: Option<u64>,
    /// What one in a hundred exceeds.
    pub lock_p99_ns: Option<u64>,
    /// The greatest.
    pub lock_max_ns: Option<u64>,
    /// Unlock under load: the least.
    pub unlock_min_ns: Option<u64>,
    /// The mean.
    pub unlock_mean_ns: Option<u64>,
    /// What one in a hundred exceeds.
    pub unlock_p99_ns: Option<u64>,
    /// The greatest.
    pub unlock_max_ns: Option<u64>,
}

/// What `measure ics` prints. All times are nanoseconds.
#[derive(Serialize, JsonSchema)]
pub struct IcsOutput {
    /// "measure".
    pub verb: MeasureVerb,
    /// "ics".
    pub subject: IcsSubject,
    /// What threads of one CPU commit by on this machine.
    pub strategy: IcsStrategy,
    /// Whether the costs were measured under SCHED_FIFO; those of switches are left out otherwise.
    pub realtime: bool,
    /// The experiment's unit of time.
    pub tick_ns: u64,
    /// How many times something was to be enqueued, with each mechanism in each setting.
    pub operations: usize,
    /// Whether it was ended early by a signal.
    pub interrupted: bool,
    /// Sections that nobody else wants, locks of the C library beside them, and switches between threads.
    pub costs: Vec<IcsCost>,
    /// The experiment: each mechanism in each setting; empty with `--alone`.
    pub responses: Vec<IcsResponses>,
    /// How often response times were how long; empty with `--alone`.
    pub histogram: Vec<IcsBin>,
}

/// The subject of [`IcsOutput`].
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IcsSubject {
    /// Interruptible sections.
    Ics,
}

/// How a section commits.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IcsStrategy {
    /// By compare-and-swap.
    Locked,
    /// By compare-and-swap without the LOCK prefix.
    Plain,
    /// In a restartable sequence.
    Rseq,
}

impl IcsStrategy {
    /// As in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Locked => "locked",
            Self::Plain => "plain",
            Self::Rseq => "rseq",
        }
    }
}

/// What one section, lock and unlock, or switch costs.
#[derive(Default, Serialize, JsonSchema)]
pub struct IcsCost {
    /// What.
    pub what: String,
    /// How it commits; null where nothing does.
    pub strategy: Option<IcsStrategy>,
    /// How many readings.
    pub readings: usize,
    /// How many were executed for each; the times are of one.
    pub count: u64,
    /// The least.
    pub min_ns: f64,
    /// The median.
    pub median_ns: f64,
    /// What one reading in a hundred exceeds.
    pub p99_ns: f64,
    /// The greatest.
    pub max_ns: f64,
    /// The median over that of the C library's mutex with priority inheritance in this run; null where there is none.
    pub over_pi_mutex: Option<f64>,
}

/// Response times, from a request to the end of its section, with one mechanism in one setting. Null where nothing was done.
#[derive(Default, Serialize, JsonSchema)]
pub struct IcsResponses {
    /// What protects the queue.
    pub mechanism: String,
    /// How many ticks those that enqueue execute outside.
    pub outside_ticks: u64,
    /// How many inside.
    pub inside_ticks: u64,
    /// How many the one that dequeues sleeps; inside it executes for one.
    pub sleep_ticks: u64,
    /// Median response of dequeuing with nobody else.
    pub alone_ns: u64,
    /// How many times something was dequeued.
    pub dequeued: u64,
    /// Median response of dequeuing.
    pub dequeue_median_ns: Option<u64>,
    /// What one in a hundred exceeds.
    pub dequeue_p99_ns: Option<u64>,
    /// The greatest.
    pub dequeue_max_ns: Option<u64>,
    /// How many times something was enqueued.
    pub enqueued: u64,
    /// Median response of enqueuing.
    pub enqueue_median_ns: Option<u64>,
    /// What one in a hundred exceeds.
    pub enqueue_p99_ns: Option<u64>,
    /// The greatest.
    pub enqueue_max_ns: Option<u64>,
    /// How many sections were executed again.
    pub repeated: u64,
}

/// How many responses were so long.
#[derive(Default, Serialize, JsonSchema)]
pub struct IcsBin {
    /// What protects the queue.
    pub mechanism: String,
    /// How many ticks those that enqueue execute outside.
    pub outside_ticks: u64,
    /// How many inside.
    pub inside_ticks: u64,
    /// What was done.
    pub operation: IcsOperation,
    /// The response time, to the nearest tick.
    pub response_ticks: u64,
    /// How many times.
    pub times: u64,
}

/// What is done with the queue.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IcsOperation {
    /// By one of the three less urgent tasks.
    #[default]
    Enqueue,
    /// By the urgent one.
    Dequeue,
}

/// Lock and unlock of one lock that nobody else wants.
#[derive(Default, Serialize, JsonSchema)]
pub struct LockCost {
    /// Its name.
    pub lock: String,
    /// Whether the lock came from memory each time.
    pub cold: bool,
    /// The least reading, in cycles, as the others are.
    pub min_cycles: u64,
    /// The median.
    pub median_cycles: u64,
    /// What one in a thousand exceeds.
    pub p999_cycles: u64,
    /// The greatest.
    pub max_cycles: u64,
}

/// One lock under contention.
#[derive(Default, Serialize, JsonSchema)]
pub struct LockContention {
    /// Its name.
    pub lock: String,
    /// How often each task asks.
    pub arrivals: LockArrivals,
    /// Arrivals of all tasks over the service rate.
    pub rate: f64,
    /// Tasks, one a CPU.
    pub tasks: usize,
    /// Requests that were served.
    pub requests: u64,
    /// Those of them that met more than sections (interrupts, the host, the share of a CPU that the kernel keeps for others); in no mean.
    pub disturbed: u64,
    /// Mean of the tasks' mean waits, weighted by importance; tasks without requests are left out, weight and all.
    pub weighted_delay_ns: f64,
    /// The same over that of the ticket lock in this run: the median of ten turns; null where there was no such delay.
    pub weighted_delay_over_fifo: Option<f64>,
    /// A quarter of the turns is below.
    pub weighted_delay_over_fifo_low: Option<f64>,
    /// A quarter of the turns is above.
    pub weighted_delay_over_fifo_high: Option<f64>,
    /// Mean wait of the most important task; null where it never asked.
    pub top_delay_ns: Option<f64>,
    /// The same over that of the ticket lock in this run: the median of ten turns.
    pub top_delay_over_fifo: Option<f64>,
    /// A quarter of the turns is below.
    pub top_delay_over_fifo_low: Option<f64>,
    /// A quarter of the turns is above.
    pub top_delay_over_fifo_high: Option<f64>,
    /// Mean number of sections that ended between a request and its section.
    pub mean_sections_waited: f64,
    /// The greatest such number.
    pub max_sections_waited: u64,
}

/// How often each task asks.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LockArrivals {
    /// All equally often.
    #[default]
    Equal,
    /// The less important, the more often.
    Rising,
}

impl LockArrivals {
    /// As in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Rising => "rising",
        }
    }
}

/// What `lockwright doctor` prints with `--json`.
#[derive(Serialize, JsonSchema)]
pub struct DoctorOutput {
    /// "doctor".
    pub verb: DoctorVerb,
    /// What `run` needs, one after another.
    pub findings: Vec<DoctorFinding>,
}

/// The verb of [`DoctorOutput`].
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DoctorVerb {
    /// What this machine lacks.
    Doctor,
}

/// One thing that `run` needs.
#[derive(Serialize, JsonSchema)]
pub struct DoctorFinding {
    /// What was looked at.
    pub name: String,
    /// Whether it will do.
    pub state: DoctorState,
    /// What was found.
    pub found: String,
    /// What to do about it; null where nothing is to be done.
    pub fix: Option<String>,
}

/// Whether something will do.
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DoctorState {
    /// As it should be.
    Ok,
    /// `run` works, not as well as it could.
    Warn,
    /// `run` does not work without it.
    Missing,
}

/// What `lockwright` prints with `--json`; `verb` tells which.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(title = "Output of lockwright --json")]
pub enum AnyOutput {
    /// `check`, `simulate`, `run` and `verify`.
    Tasks(Output),
    /// `study bpl`.
    Bpl(BplOutput),
    /// `measure locks`.
    Locks(LocksOutput),
    /// `measure mutex`.
    Mutex(MutexOutput),
    /// `measure protocols`.
    Protocols(ProtocolsOutput),
    /// `measure ics`.
    Ics(IcsOutput),
    /// `doctor`.
    Doctor(DoctorOutput),
    /// Any verb that gave up, in place of its result; the exit status is 2 or 3.
    Error(ErrorOutput),
}

/// Why a verb gave up. People read the same on standard error.
#[derive(Serialize, JsonSchema)]
pub struct ErrorOutput {
    /// The first fault.
    pub error: Fault,
    /// Further ones, such as those of a file with several.
    pub more: Vec<Fault>,
}

/// One object as text, ending in a newline.
#[must_use]
pub fn to_text(output: &impl Serialize) -> String {
    // Strings, numbers and lists: there is nothing in these types that JSON cannot write.
    let mut text = serde_json::to_string_pretty(output).unwrap_or_else(|error| format!("{{\"error\": \"{error}\"}}"));
    text.push('\n');
    text
}

/// The schema of [`AnyOutput`].
#[must_use]
pub fn schema() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<AnyOutput>()
}
