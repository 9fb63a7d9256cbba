//! The object of `record`.

use super::tasks::ProtocolResult;
use lockwright_record::{
    Boundary, Cycle, Findings, Inferred, InferredTask, Inversion, LockUse, LockWait, LongSection, Policy, Recording,
    Regularity, SHORT_NS, ThreadUse, Trends,
};
use schemars::JsonSchema;
use serde::Serialize;

/// The greatest number of waits in the object.
const WAITS_MAX: usize = 100;

/// The object that `lockwright record` prints with `--json`, and writes as `report.json`. Times are integer
/// nanoseconds; instants count from the start of the recording.
#[derive(Serialize, JsonSchema)]
pub struct RecordOutput {
    /// Always "record".
    #[schemars(extend("const" = Self::VERB))]
    pub verb: &'static str,
    /// The program and its arguments.
    pub program: Vec<String>,
    /// Length of the recording.
    pub length_ns: u64,
    /// Number of recorded events.
    pub events: u64,
    /// Number of events that were lost.
    pub lost: u64,
    /// Number of threads whose locks and waits are missing, for lack of memory or because there were too many.
    pub unrecorded_threads: u32,
    /// Whether the program ended and everything was written.
    pub complete: bool,
    /// The task-set file with its comments; null if no task set follows.
    pub system: Option<String>,
    /// Why there is no task set; null if there is one.
    pub reason: Option<String>,
    /// Observations that the task set does not express.
    pub warnings: Vec<String>,
    /// All threads.
    pub threads: Vec<RecordedThread>,
    /// The findings as sentences.
    pub sentences: Vec<String>,
    /// Priority inversions, the longest first.
    pub inversions: Vec<RecordedInversion>,
    /// The longest waits for locks, at most 100.
    pub waits: Vec<RecordedWait>,
    /// Orders of locking that can deadlock.
    pub cycles: Vec<RecordedCycle>,
    /// How many times a thread locked while it held so many locks that no cycles through this lock were looked for.
    pub orders_left_out: u64,
    /// All locks.
    pub locks: Vec<RecordedLock>,
    /// Long sections; empty without --sections-longer.
    pub long_sections: Vec<RecordedLongSection>,
    /// The use of locks.
    pub trends: RecordedTrends,
    /// The bounds of the task set: under the protocol of the program, with the observed responses, and under the best
    /// one.
    pub check: Vec<ProtocolResult>,
}

/// A thread.
#[derive(Serialize, JsonSchema)]
pub struct RecordedThread {
    /// Its name.
    pub name: String,
    /// The number that the kernel gave it.
    pub id: u32,
    /// Its policies in the order of their first use, such as "fifo 50".
    pub policies: Vec<String>,
    /// The CPUs on which it executed.
    pub cpus: Vec<u32>,
    /// Its CPU time.
    pub cpu_ns: u64,
    /// The task; null if the thread is none.
    pub task: Option<RecordedTask>,
    /// Why it is not a task; null if it is one.
    pub reason: Option<String>,
}

/// A task.
#[derive(Serialize, JsonSchema)]
pub struct RecordedTask {
    /// Its name in the task set.
    pub name: Option<String>,
    /// The wait that separates its jobs.
    pub boundary: RecordedBoundary,
    /// The second-best guess.
    pub second: Option<RecordedBoundary>,
    /// How regular its releases are: "exact", "periodic" or "sporadic".
    pub regularity: &'static str,
    /// The least distance of releases.
    pub period_ns: u64,
    /// The greatest distance of releases.
    pub most_ns: u64,
    /// Quantiles of the execution times of its jobs: 50 %, 90 %, 99 %, 99.9 % and 100 %.
    pub cpu_quantiles_ns: Vec<u64>,
    /// The longest response.
    pub response_ns: u64,
}

/// A wait that separates jobs.
#[derive(Serialize, JsonSchema)]
pub struct RecordedBoundary {
    /// The wait.
    pub text: String,
    /// Number of complete jobs.
    pub jobs: u64,
    /// Standard deviation of their execution times, in thousandths of the mean.
    pub deviation_permille: Option<u64>,
}

/// The inversions of one waiter behind one holder.
#[derive(Serialize, JsonSchema)]
pub struct RecordedInversion {
    /// The waiting thread.
    pub waiter: String,
    /// The less urgent holder.
    pub holder: String,
    /// The threads that executed instead.
    pub between: Vec<String>,
    /// The lock in the worst case.
    pub lock: String,
    /// How often it happened.
    pub times: u64,
    /// The longest wait.
    pub worst_ns: u64,
    /// When it began.
    pub worst_at_ns: u64,
    /// The part of it that would remain with priority inheritance.
    pub inherited_ns: u64,
}

/// A wait for a lock.
#[derive(Serialize, JsonSchema)]
pub struct RecordedWait {
    /// The waiting thread.
    pub waiter: String,
    /// The lock.
    pub lock: String,
    /// The place of the request.
    pub site: String,
    /// When it began.
    pub at_ns: u64,
    /// Its length.
    pub length_ns: u64,
    /// Whether the waiter got the lock.
    pub locked: bool,
    /// The thread that held the lock; null if that is not known.
    pub holder: Option<String>,
    /// The place where the holder locked it.
    pub holder_site: Option<String>,
}

/// An order of locking that can deadlock. The lists have one entry for each thread.
#[derive(Serialize, JsonSchema)]
pub struct RecordedCycle {
    /// The threads.
    pub threads: Vec<String>,
    /// The lock that each holds; it requests the one of the next thread.
    pub holds: Vec<String>,
    /// The place of each request.
    pub sites: Vec<String>,
}

/// A lock.
#[derive(Serialize, JsonSchema)]
pub struct RecordedLock {
    /// Its name.
    pub name: String,
    /// Number of sections.
    pub sections: u64,
    /// Number of threads that lock it.
    pub threads: u64,
    /// Number of waits for it.
    pub contended: u64,
    /// The longest wait.
    pub longest_wait_ns: u64,
    /// The longest time from lock to unlock.
    pub longest_held_ns: u64,
    /// The longest CPU time from lock to unlock.
    pub longest_cpu_ns: u64,
}

/// Sections that are longer than --sections-longer.
#[derive(Serialize, JsonSchema)]
pub struct RecordedLongSection {
    /// The thread.
    pub thread: String,
    /// The lock.
    pub lock: String,
    /// The place of the lock.
    pub site: String,
    /// Number of such sections.
    pub times: u64,
    /// The longest CPU time.
    pub longest_cpu_ns: u64,
    /// The longest time from lock to unlock.
    pub longest_held_ns: u64,
}

/// The use of locks.
#[derive(Serialize, JsonSchema)]
pub struct RecordedTrends {
    /// Number of sections.
    pub sections: u64,
    /// Number of sections by the number of sections around them.
    pub by_depth: Vec<u64>,
    /// Number of outermost sections by the depth of nesting inside.
    pub by_nesting: Vec<u64>,
    /// Number of outermost sections below 5, 10 and 13 us.
    pub below_5_10_13_us: [u64; 3],
    /// Quantiles of the lengths of outermost sections: 50 %, 90 %, 99 %, 99.9 % and 100 %; empty without sections.
    pub quantiles_ns: Vec<u64>,
    /// Mean length of outermost sections; null without sections.
    pub mean_ns: Option<u64>,
}

/// The thousandths of the quantiles.
const QUANTILES: [u64; 5] = [500, 900, 990, 999, 1000];

impl RecordOutput {
    /// The value of `verb`.
    pub const VERB: &str = "record";

    /// Everything that was found.
    #[must_use]
    pub fn new(recording: &Recording, inferred: &Inferred, findings: &Findings, trends: &Trends) -> Self {
        let threads = (0..).zip(&findings.threads);
        Self {
            verb: Self::VERB,
            program: recording.program.clone(),
            length_ns: recording.length_ns,
            events: recording.events.len() as u64,
            lost: recording.lost,
            unrecorded_threads: recording.unrecorded_threads,
            complete: recording.complete,
            system: inferred.file(recording),
            reason: inferred.system.as_ref().err().cloned(),
            warnings: inferred.warnings.clone(),
            threads: threads.map(|(index, found)| RecordedThread::new(recording, inferred, index, found)).collect(),
            sentences: findings.sentences(recording),
            inversions: findings.inversions.iter().map(|found| RecordedInversion::new(recording, found)).collect(),
            waits: findings.waits.iter().take(WAITS_MAX).map(|found| RecordedWait::new(recording, found)).collect(),
            cycles: findings.cycles.iter().map(|found| RecordedCycle::new(recording, found)).collect(),
            orders_left_out: findings.left_out,
            locks: findings.locks.iter().map(|found| RecordedLock::new(recording, found)).collect(),
            long_sections: findings
                .long_sections
                .iter()
                .map(|found| RecordedLongSection::new(recording, found))
                .collect(),
            trends: RecordedTrends::new(trends),
            check: Vec::new(),
        }
    }
}

impl RecordedThread {
    fn new(recording: &Recording, inferred: &Inferred, index: u32, found: &ThreadUse) -> Self {
        let task = inferred.tasks.iter().position(|task| task.thread == index);
        let reason = inferred.left_out.iter().find(|out| out.thread == index).map(|out| out.reason.clone());
        let name = |task: usize| Some(inferred.system.as_ref().ok()?.tasks().get(task)?.name.clone());
        Self {
            name: recording.thread_name(index),
            id: recording.threads.get(index as usize).map_or(0, |thread| thread.id),
            policies: found.policies.iter().map(|&policy| policy_text(policy)).collect(),
            cpus: found.cpus.clone(),
            cpu_ns: found.cpu_ns,
            task: task.map(|task| RecordedTask::new(&inferred.tasks[task], name(task))),
            reason,
        }
    }
}

/// A policy in short: "fifo 50".
pub fn policy_text(policy: Policy) -> String {
    match policy {
        Policy::Fair { nice: 0 } => "other".into(),
        Policy::Fair { nice } => format!("other, nice {nice}"),
        Policy::Fifo(priority) => format!("fifo {priority}"),
        Policy::RoundRobin(priority) => format!("rr {priority}"),
        Policy::Deadline { .. } => "deadline".into(),
    }
}

impl RecordedTask {
    fn new(task: &InferredTask, name: Option<String>) -> Self {
        Self {
            name,
            boundary: RecordedBoundary::new(&task.boundary),
            second: task.second.as_ref().map(RecordedBoundary::new),
            regularity: match task.regularity {
                Regularity::Exact => "exact",
                Regularity::Periodic => "periodic",
                Regularity::Sporadic => "sporadic",
            },
            period_ns: task.period_ns,
            most_ns: task.most_ns,
            cpu_quantiles_ns: QUANTILES.iter().filter_map(|&permille| task.cpu_quantile(permille)).collect(),
            response_ns: task.jobs.iter().map(lockwright_record::Job::response_ns).max().unwrap_or(0),
        }
    }
}

impl RecordedBoundary {
    fn new(boundary: &Boundary) -> Self {
        Self { text: boundary.text.clone(), jobs: boundary.jobs, deviation_permille: boundary.deviation_permille }
    }
}

impl RecordedInversion {
    fn new(recording: &Recording, found: &Inversion) -> Self {
        Self {
            waiter: recording.thread_name(found.waiter),
            holder: recording.thread_name(found.holder),
            between: found.between.iter().map(|&thread| recording.thread_name(thread)).collect(),
            lock: recording.object_name(found.object),
            times: found.times,
            worst_ns: found.worst_ns,
            worst_at_ns: found.worst_at_ns,
            inherited_ns: found.inherited_ns,
        }
    }
}

impl RecordedWait {
    fn new(recording: &Recording, found: &LockWait) -> Self {
        Self {
            waiter: recording.thread_name(found.waiter),
            lock: recording.object_name(found.object),
            site: recording.site_name(found.site),
            at_ns: found.from_ns,
            length_ns: found.length_ns(),
            locked: found.locked,
            holder: found.holder.map(|(holder, _)| recording.thread_name(holder)),
            holder_site: found.holder.map(|(_, site)| recording.site_name(site)),
        }
    }
}

impl RecordedCycle {
    fn new(recording: &Recording, found: &Cycle) -> Self {
        let steps = &found.steps;
        Self {
            threads: steps.iter().map(|step| recording.thread_name(step.thread)).collect(),
            holds: steps.iter().map(|step| recording.object_name(step.holds)).collect(),
            sites: steps.iter().map(|step| recording.site_name(step.site)).collect(),
        }
    }
}

impl RecordedLock {
    fn new(recording: &Recording, found: &LockUse) -> Self {
        Self {
            name: recording.object_name(found.object),
            sections: found.sections,
            threads: found.threads.len() as u64,
            contended: found.contended,
            longest_wait_ns: found.longest_wait_ns,
            longest_held_ns: found.longest_held_ns,
            longest_cpu_ns: found.longest_cpu_ns,
        }
    }
}

impl RecordedLongSection {
    fn new(recording: &Recording, found: &LongSection) -> Self {
        Self {
            thread: recording.thread_name(found.thread),
            lock: recording.object_name(found.object),
            site: recording.site_name(found.site),
            times: found.times,
            longest_cpu_ns: found.longest_cpu_ns,
            longest_held_ns: found.longest_held_ns,
        }
    }
}

impl RecordedTrends {
    fn new(trends: &Trends) -> Self {
        Self {
            sections: trends.sections,
            by_depth: trends.by_depth.clone(),
            by_nesting: trends.by_nesting.clone(),
            below_5_10_13_us: SHORT_NS.map(|ns| trends.below(ns)),
            quantiles_ns: QUANTILES.iter().filter_map(|&permille| trends.quantile(permille)).collect(),
            mean_ns: trends.mean_ns(),
        }
    }
}
