//! The object of the verbs that are about deadlines: `check`, `simulate`, `run` and `verify`.

use super::check::{BesideLock, BlockedBy, Explain, SensitivityResult, TestResult};
use super::run::{AuditResult, WorstJob};
use crate::report::{Report, Row};
use lockwright_model::{Duration, System};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The object that `check`, `simulate`, `run` and `verify` print with `--json`. Each prints exactly one. Times are
/// integer nanoseconds. A value that does not exist (no bound, not observed) is null. Later versions may add keys;
/// they keep the required ones.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Output {
    /// The verb that printed this object.
    pub verb: Verb,
    /// The version of this format. It changes when a key is removed or gets another meaning. Outputs of 0.1.0 lack it.
    #[serde(default = "first_format")]
    pub format: u32,
    /// The name of the system, or of its file if the system has no name.
    pub system: String,
    /// One result for each protocol; `check` sorts them best first.
    pub results: Vec<ProtocolResult>,
    /// How the first releases were chosen; `simulate` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offsets: Option<String>,
    /// The overheads that are charged; absent if none are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overheads: Option<Charged>,
    /// The seed that repeats the simulation; absent if nothing in it was random.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Number of schedules simulated for each protocol. If a signal ended the simulation, the number for the last
    /// protocol in `results`, including its incomplete last schedule. `simulate` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<u64>,
    /// Observed time of each run or schedule. If a signal ended the only schedule, or the run, of the last protocol in
    /// `results`, the observed time of that one. `simulate`, `run` and `verify`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ns: Option<u64>,
    /// Whether a signal ended the verb early; protocols that were not reached have no result then. `simulate`, `run`
    /// and `verify`; `check` only if protocols were not reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<bool>,
}

/// The version of the format.
pub const FORMAT: u32 = 1;

fn first_format() -> u32 {
    1
}

/// A verb with one result for each protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// Bounds.
    Check,
    /// Schedules in virtual time.
    Simulate,
    /// An execution by real threads.
    Run,
    /// Bounds that include this machine's overheads, and an execution by real threads.
    Verify,
}

/// The overheads that are charged.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Charged {
    /// The overheads file; null if the overheads were measured and could not be stored.
    pub file: Option<String>,
    /// Where the overheads come from.
    pub origin: Origin,
}

/// Where overheads come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// From the file that `--overheads` names.
    Given,
    /// Measured by an earlier invocation less than a day ago; `verify` only.
    Kept,
    /// Measured by this invocation; `verify` only.
    Measured,
}

impl Charged {
    /// The overheads of a file that `--overheads` names.
    #[must_use]
    pub fn given(file: &Path) -> Self {
        Self { file: Some(file.display().to_string()), origin: Origin::Given }
    }
}

/// All tasks under one protocol.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ProtocolResult {
    /// The scheduler: p-fp, p-edf, c-fp, g-fp or g-edf.
    pub scheduler: String,
    /// The protocol of resources that name none, spelled as in task-set files; msrp under p-edf.
    pub protocol: String,
    /// Another protocol that has the same rules and bounds on this system; the observations were made under that one.
    /// With `--protocol all`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_rules_as: Option<String>,
    /// The verdict of the verb, which its exit status follows. `check`: every deadline is proved to hold. `simulate`
    /// and `run`: no job was seen to miss its deadline. This includes tasks of which no job finished (`jobs` is 0); a
    /// warning names them. `run` with `--overheads` or `--strict`: in addition, no response was above its bound.
    /// `verify`: all of these. `run` with `--audit`: in addition, the kernel's trace is whole and has only what was
    /// ordered.
    pub schedulable: bool,
    /// Whether every deadline is proved to hold, whatever the verb.
    pub proved: bool,
    /// The least `slack_ns` of the tasks; null if a task has no bound.
    pub worst_slack_ns: Option<i64>,
    /// The tasks by CPU, and on each CPU by decreasing priority.
    pub tasks: Vec<TaskResult>,
    /// Number of schedules begun; `simulate` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<u64>,
    /// Observed time of all schedules together; `simulate`, `run` and `verify`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_ns: Option<u64>,
    /// How the run ended: "completed", "interrupted" or "watchdog"; `run` and `verify`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// The kernel's trace beside the orders of the protocol; with `run --audit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditResult>,
    /// The verdict in one sentence; `verify` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// The terms of one task's bound; with `check --explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<Explain>,
    /// The comparison of interruptible sections with the best lock; for `ics` and `ics_lock` with `check --protocol
    /// all`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<BesideLock>,
    /// The result of each schedulability test; `check` under schedulers other than p-fp and c-fp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tests: Option<Vec<TestResult>>,
    /// How far execution times can grow; with `check --sensitivity`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sensitivity: Option<SensitivityResult>,
}

/// One task: its parameters, its bounds and its observations.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct TaskResult {
    /// Name of the task, unique in its system.
    pub name: String,
    /// The CPU of the task, from 0; null under a global scheduler, and in a cluster of several CPUs.
    pub cpu: Option<u16>,
    /// The CPUs of the task's cluster; present only if the cluster has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Vec<u16>>,
    /// Priority; a greater number is more urgent.
    pub priority: u32,
    /// Worst-case execution time of one job, as in the task-set file.
    pub cost_ns: u64,
    /// Worst-case execution time of one job with overheads, on which the bounds are based; absent if no overheads are
    /// charged to single jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub charged_cost_ns: Option<u64>,
    /// Bound on the time for which less urgent tasks and other CPUs delay one job.
    pub blocking_ns: Option<u64>,
    /// Bound on the response time: the time from arrival to finish.
    pub response_ns: Option<u64>,
    /// Deadline, relative to the arrival.
    pub deadline_ns: u64,
    /// `deadline_ns` minus `response_ns`; negative if the bound is beyond the deadline.
    pub slack_ns: Option<i64>,
    /// The verdict of the verb on this task. If `jobs` is 0, nothing was observed of the task.
    pub schedulable: bool,
    /// The verdict in the words of the table: "ok", "late", "no bound", "above bound", "not proved" or "not seen".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// Longest observed response time.
    pub observed_response_ns: Option<u64>,
    /// Longest observed blocking of one job: the time during which the job was pending and its CPU executed neither the
    /// job nor a task of at least its priority.
    pub observed_blocking_ns: Option<u64>,
    /// Number of jobs that finished.
    pub jobs: Option<u64>,
    /// Number of jobs that finished after their deadline, or were unfinished at the end and past it.
    pub misses: Option<u64>,
    /// Whether the deadline is proved to hold, whatever the verb.
    pub proved: bool,
    /// The method that proves `response_ns`, or the deadline under p-edf: "classic", the equations on the protocol's
    /// page or the processor demand, or "lp", a linear program. Absent if nothing is proved, and under global
    /// schedulers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
    /// Why there is no bound.
    pub reason: Option<String>,
    /// The parts of `blocking_ns`.
    pub blocking: Option<BlockingParts>,
    /// The critical section that can delay an arriving job the longest; under p-edf.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<BlockedBy>,
    /// Whether an observed response was longer than `response_ns`; null without a bound or an observation.
    pub above_bound: Option<bool>,
    /// The response time that 99.9 % of the jobs did not exceed; null with fewer than 1,000 jobs.
    pub observed_p999_ns: Option<u64>,
    /// Longest time that one job spent between its requests and their grants.
    pub lock_wait_ns: Option<u64>,
    /// Number of times that interruptible sections were restarted; absent if none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restarts: Option<u64>,
    /// The job with the longest response, if that was late or above its bound; `run` and `verify`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worst_job: Option<WorstJob>,
}

/// Blocking by cause.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct BlockingParts {
    /// Critical sections of less urgent tasks on the same CPU.
    pub local_ns: u64,
    /// Boosted critical sections of less urgent tasks on the same CPU.
    pub boosted_ns: u64,
    /// Waiting for resources that several CPUs share.
    pub remote_ns: u64,
}

impl Output {
    /// The keys that every verb has.
    #[must_use]
    pub fn new(verb: Verb, system: &str, results: Vec<ProtocolResult>) -> Self {
        Self {
            verb,
            format: FORMAT,
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
            audit: None,
            verdict: None,
            beside: None,
            tests: None,
            explain: None,
            sensitivity: None,
        }
    }

    /// The JSON views of a report, completed by `with`: one for its protocol and one for each protocol with the same
    /// rules.
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
            cpus: (!is_alone && !system.scheduler().is_global()).then_some(cluster),
            priority: task.priority.level(),
            cost_ns: task.wcet.as_ns(),
            charged_cost_ns: report.charged.as_ref().map(|charged| charged.task(row.task).wcet.as_ns()),
            blocking_ns: ns(row.bound.blocking.and_then(|blocking| blocking.total())),
            response_ns: ns(row.bound.response),
            deadline_ns: task.deadline.as_ns(),
            slack_ns: row.slack(system),
            schedulable: row.holds(),
            verdict: Some(row.verdict().word().to_owned()),
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
