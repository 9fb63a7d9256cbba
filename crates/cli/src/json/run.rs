//! The keys that `run` and `verify` add to the object of all tasks: one job, and the use of its CPU meanwhile.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One job, and what its CPU did from its arrival to its finish.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct WorstJob {
    /// Arrival, since the common start.
    pub arrival_ns: u64,
    /// Finish, since the common start.
    pub finish_ns: u64,
    /// The tasks that executed meanwhile, longest first.
    pub executed: Vec<Executed>,
    /// The part of the task's own execution that belongs to earlier jobs, which were late.
    pub earlier_jobs_ns: u64,
    /// Time in which no task executed: idle, other threads, the kernel, interrupts or the hypervisor.
    pub unaccounted_ns: u64,
    /// The occupants of the CPU in that time, longest first; null if this user may not read the kernel's records.
    pub taken: Option<Vec<Taken>>,
}

/// A stretch of time in which a CPU executed no task.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Taken {
    /// The occupant of the CPU.
    pub by: TakenBy,
    /// The name of the thread, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// Of `machine`: whether it was the hypervisor, by the steal time of the CPU, which has steps of 10 ms.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub host: bool,
    /// Length of the stretch.
    pub taken_ns: u64,
}

/// An occupant of a CPU.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TakenBy {
    /// A thread that is not a task.
    Thread,
    /// A thread that is not a task, or no thread at all.
    Others,
    /// No thread: the CPU was idle.
    Idle,
    /// The kernel, interrupts or the hypervisor: a task was scheduled and did not execute.
    Machine,
    /// Not known.
    Unknown,
}

/// How long a task executed during a job.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Executed {
    /// Name of the task.
    pub task: String,
    /// Execution time.
    pub executed_ns: u64,
}

/// The kernel's trace of a run beside the orders of the protocol.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct AuditResult {
    /// Number of switches to or from a task that were judged.
    pub switches: u64,
    /// Number of changes of an inherited priority that were judged.
    pub boosts: u64,
    /// Number of wake-ups of waiting tasks that were judged.
    pub wake_ups: u64,
    /// Number of orders.
    pub orders: u64,
    /// Number of records that were lost; unless it is 0, nothing was judged.
    pub lost: u64,
    /// Number of departures from the orders.
    pub departed: u64,
    /// The first departures, at most 100.
    pub departures: Vec<DepartureResult>,
}

/// Something in the kernel's trace that was not ordered.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct DepartureResult {
    /// Name of the task.
    pub task: String,
    /// The time since the common start.
    pub at_ns: u64,
    /// What was seen, in words.
    pub what: String,
}
