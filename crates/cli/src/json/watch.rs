//! The object of `watch`.

use schemars::JsonSchema;
use serde::Serialize;

/// The object that `lockwright watch` prints with `--json`. Times are integer nanoseconds.
#[derive(Serialize, JsonSchema)]
pub struct WatchOutput {
    /// Always "watch".
    #[schemars(extend("const" = Self::VERB))]
    pub verb: &'static str,
    /// The process.
    pub process: u32,
    /// Its name.
    pub program: String,
    /// Its task sets that are counted.
    pub sets: Vec<WatchedSet>,
    /// Its mutexes, if they are counted; the longest total wait first.
    pub mutexes: Vec<WatchedMutex>,
    /// Number of locks of mutexes that found no place in the table of the process.
    pub mutexes_left_out: u64,
}

impl WatchOutput {
    /// The value of `verb`.
    pub const VERB: &str = "watch";
}

/// A task set.
#[derive(Serialize, JsonSchema)]
pub struct WatchedSet {
    /// Its name.
    pub name: String,
    /// How long its jobs have been counted.
    pub counted_ns: u64,
    /// Its tasks.
    pub tasks: Vec<WatchedTask>,
}

/// A task.
#[derive(Serialize, JsonSchema)]
pub struct WatchedTask {
    /// Its name.
    pub name: String,
    /// The number of its thread in the kernel; null before its first job.
    pub thread: Option<u32>,
    /// Number of jobs that have ended.
    pub jobs: u64,
    /// Number of jobs that missed their deadlines.
    pub misses: u64,
    /// Relative deadline; null if there is none.
    pub deadline_ns: Option<u64>,
    /// Bound that the program set; null if there is none.
    pub bound_ns: Option<u64>,
    /// Number of jobs above the bound.
    pub above_bound: u64,
    /// Mean response time.
    pub mean_ns: u64,
    /// A response time that 99.9 % of the jobs do not exceed; null if no job has ended.
    pub p999_ns: Option<u64>,
    /// Longest response time.
    pub worst_ns: u64,
    /// Number of the first job with that response time, from 1.
    pub worst_job: u64,
    /// Time since the release of the present job; null between two jobs.
    pub present_ns: Option<u64>,
    /// What the present job waits for or is about to lock; null if it requests nothing.
    pub request: Option<WatchedRequest>,
    /// Response times: parts with jobs, the shortest first.
    pub histogram: Vec<WatchedBin>,
    /// The resources that the task has locked.
    pub resources: Vec<WatchedResource>,
}

/// A request.
#[derive(Serialize, JsonSchema)]
pub struct WatchedRequest {
    /// The resource.
    pub resource: String,
    /// Time since the request.
    pub since_ns: u64,
    /// The tasks that hold the resource.
    pub holders: Vec<String>,
}

/// A part of the distribution of response times.
#[derive(Serialize, JsonSchema)]
pub struct WatchedBin {
    /// The longest response time of this part.
    pub up_to_ns: u64,
    /// Number of jobs.
    pub jobs: u64,
}

/// A resource that a task has locked.
#[derive(Serialize, JsonSchema)]
pub struct WatchedResource {
    /// Its name.
    pub name: String,
    /// Number of locks.
    pub sections: u64,
    /// Number of locks that waited.
    pub waits: u64,
    /// Sum of the waits.
    pub total_wait_ns: u64,
    /// Longest wait.
    pub longest_wait_ns: u64,
    /// The task that held the resource at the request of the longest wait; null if none was seen.
    pub behind: Option<String>,
    /// Longest section.
    pub longest_section_ns: u64,
    /// Time since the task locked it; null if it does not hold it.
    pub held_ns: Option<u64>,
}

/// A mutex that is counted: of a preloaded program, or one that the program itself counts.
#[derive(Serialize, JsonSchema)]
pub struct WatchedMutex {
    /// Its file and its place there, or its address.
    pub name: String,
    /// Number of locks.
    pub sections: u64,
    /// Number of locks that waited.
    pub waits: u64,
    /// Sum of the waits.
    pub total_wait_ns: u64,
    /// Longest wait.
    pub longest_wait_ns: u64,
    /// The thread of the longest wait; null if none waited.
    pub waiter: Option<WatchedThread>,
    /// The thread that held the mutex at the request of the longest wait.
    pub holder: Option<WatchedThread>,
    /// Longest section.
    pub longest_section_ns: u64,
    /// The thread of the longest section; null if none has ended.
    pub longest_by: Option<WatchedThread>,
    /// The thread that holds the mutex; null if none does.
    pub owner: Option<WatchedThread>,
    /// Time since that thread locked it; null if none holds it.
    pub held_ns: Option<u64>,
    /// Number of threads that wait.
    pub waiting: u64,
}

/// A thread.
#[derive(Serialize, JsonSchema)]
pub struct WatchedThread {
    /// Its number in the kernel.
    pub id: u32,
    /// Its name.
    pub name: String,
}
