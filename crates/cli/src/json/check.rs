//! The keys that `check` adds to the object of all tasks: terms, tests, sensitivity and a comparison with locks.

use crate::beside::{Beside, Changed};
use lockwright_analysis::{Blocker, Growth, Proof, Sensitivity, Term};
use lockwright_model::{Duration, System, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The response bounds under one protocol compared with those under another. Tasks with equal bounds are left out.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct BesideLock {
    /// The other protocol: the best of those that are locks.
    pub lock: String,
    /// Tasks whose bound is lower under this protocol, or that have a bound only under this one.
    pub better: Vec<ChangedBound>,
    /// Tasks whose bound is higher under this protocol, or that have none under this one.
    pub worse: Vec<ChangedBound>,
}

/// A task's response bound under two protocols.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ChangedBound {
    /// Name of the task.
    pub task: String,
    /// The bound under this protocol; null if there is none.
    pub response_ns: Option<u64>,
    /// The bound under the other protocol; null if there is none.
    pub lock_response_ns: Option<u64>,
    /// The critical sections that can delay the task under the other protocol; only for tasks that are better off.
    pub sections: Vec<WaitedSection>,
}

/// A critical section that can delay a more urgent task.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct WaitedSection {
    /// The task that executes the section.
    pub task: String,
    /// The resource it holds.
    pub resource: String,
}

/// The result of one schedulability test.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct TestResult {
    /// Usual name of the test.
    pub test: String,
    /// The CPU it covers; null if it covers all.
    pub cpu: Option<u16>,
    /// Whether it proves every deadline.
    pub accepts: bool,
    /// Why it does not.
    pub reason: Option<String>,
    /// The interval whose demand exceeds its length; null if the test fails for another reason.
    pub point: Option<PointResult>,
}

/// An interval whose demand exceeds its length: `due_ns` plus `blocking_ns` is more than `interval_ns`.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct PointResult {
    /// Length of the interval.
    pub interval_ns: u64,
    /// The work of all jobs that arrive and are due in the interval, including their spinning.
    pub due_ns: u64,
    /// Blocking of that work; 0 if there is none.
    pub blocking_ns: u64,
    /// The critical section that causes the blocking; null if several do.
    pub blocked_by: Option<BlockedBy>,
}

/// A critical section that delays tasks with shorter deadlines.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct BlockedBy {
    /// The task that executes the section.
    pub task: String,
    /// The resource it holds.
    pub resource: String,
    /// Length of the section.
    pub length_ns: u64,
    /// How long the task spins before the section.
    pub spin_ns: u64,
}

/// The bound of one task, term by term.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Explain {
    /// Name of the task.
    pub task: String,
    /// Under p-edf, the length of the interval whose demand is explained: the interval that is too short, or else the
    /// task's deadline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_ns: Option<u64>,
    /// The terms. Their sum is `response_ns` if there is a bound; under p-edf it is the demand in the interval plus its
    /// blocking, and under global schedulers the execution time that the tests count for a job.
    pub terms: Vec<TermResult>,
}

/// One term of a bound: `count` times `each_ns` is `total_ns`.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct TermResult {
    /// The kind of delay, such as "interference".
    pub cause: String,
    /// The task that causes it; null for the job itself.
    pub by: Option<String>,
    /// The resource that is involved.
    pub resource: Option<String>,
    /// Number of occurrences.
    pub count: u64,
    /// Length of one occurrence.
    pub each_ns: u64,
    /// Length of all occurrences together.
    pub total_ns: u64,
    /// The explanation, in words.
    pub why: String,
}

/// The largest factors under which every deadline is still proved.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct SensitivityResult {
    /// The bounds or the test that hold under these factors: "classic", although `tasks` may have tighter ones. Absent
    /// under global schedulers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
    /// The factor of all execution times together.
    pub all: GrowthResult,
    /// For each task, the factor of its execution time alone.
    pub tasks: Vec<TaskGrowth>,
    /// For each resource, the factor of its critical sections alone.
    pub resources: Vec<ResourceGrowth>,
}

/// How far the execution time of one task can grow.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct TaskGrowth {
    /// Name of the task.
    pub task: String,
    /// The factor.
    #[serde(flatten)]
    pub growth: GrowthResult,
    /// Additional blocking that each of its jobs tolerates; null if a deadline is missed even without it.
    pub tolerated_blocking_ns: Option<u64>,
}

/// How far the critical sections on one resource can grow.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ResourceGrowth {
    /// Name of the resource.
    pub resource: String,
    /// The factor.
    #[serde(flatten)]
    pub growth: GrowthResult,
}

/// A largest factor.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct GrowthResult {
    /// Whether there is a largest factor.
    pub state: GrowthState,
    /// The factor in thousandths: 1000 is the system as it is. Null unless the state is "limited".
    pub permille: Option<u64>,
}

/// Whether there is a largest factor.
#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GrowthState {
    /// There is one.
    Limited,
    /// Every deadline holds under any factor.
    Unlimited,
    /// Not every deadline can be proved under any factor, however small.
    Broken,
}

impl BesideLock {
    /// The JSON view of a comparison.
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

impl Explain {
    /// The JSON view of the terms of a bound.
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
    /// The JSON view of a critical section that blocks.
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
    /// The JSON view of a sensitivity. `proof` names the bounds that decide, if bounds do.
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
