//! One thread as a task.

use super::body::{Body, Part};
use super::choices::Choices;
use super::jobs::{Boundary, Cut, JOBS_MIN, cuts, waited};
use super::period::{Distances, Regularity, Release, signed};
use super::release::head;
use super::taken::Taken;
use crate::event::{EventKind, Policy, Stop, Wait};
use crate::held::{Held, held};
use crate::history::{Entry, History};
use crate::recording::{Recording, ThreadIndex};
use crate::trends::quantile;
use lockwright_model::STEPS_MAX;

/// One job of a recorded thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Job {
    /// Its release, in nanoseconds since the start of the recording. It is negative where a program sleeps until an
    /// instant that had passed before.
    pub release_ns: i64,
    /// Whether the release is known. Otherwise the thread did not wait for it: the job was released before it began,
    /// and its beginning stands for the release.
    pub is_release_known: bool,
    /// How many times it was released: a read of a timer returns all expirations since the read before. Its release is
    /// the first of them.
    pub releases: u64,
    /// The time at which it waits for the next release.
    pub finish_ns: u64,
    /// Its CPU time.
    pub cpu_ns: u64,
}

impl Job {
    /// The time from its release to its end.
    #[must_use]
    pub fn response_ns(&self) -> u64 {
        let finish = i64::try_from(self.finish_ns).unwrap_or(i64::MAX);
        u64::try_from(finish.saturating_sub(self.release_ns)).unwrap_or(0)
    }
}

/// The evidence for one task.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InferredTask {
    /// The thread.
    pub thread: ThreadIndex,
    /// The wait that separates its jobs.
    pub boundary: Boundary,
    /// The wait that would separate them next best.
    pub second: Option<Boundary>,
    /// Its jobs from the first release on; a job that the end of the recording cuts off is not among them.
    pub jobs: Vec<Job>,
    /// The least distance of two releases, in nanoseconds.
    pub period_ns: u64,
    /// The median of the distances.
    pub median_ns: u64,
    /// The greatest distance.
    pub most_ns: u64,
    /// How regular the releases are.
    pub regularity: Regularity,
    /// The policy under which most jobs were released.
    pub policy: Policy,
    /// The CPU, and whether the thread may execute on this one only.
    pub cpu: (u32, bool),
    /// The execution times of the jobs in nanoseconds, ascending.
    pub cpu_ns: Vec<u64>,
    /// The number of waits inside jobs, for something else than a lock, and the longest sum of them in one job. Calls
    /// that are not recorded count where the thread suspends.
    pub suspensions: (u64, u64),
    /// The number of sections that began in one job and ended in another, or not at all.
    pub across: u64,
    /// The CPU time before its first job and behind its last one. The thread may begin and end inside a job, so that up
    /// to the longest one is left out at both ends.
    pub outside_ns: u64,
    /// Whether the thread yields under `SCHED_DEADLINE` at the end of each job: the kernel keeps its jobs apart.
    pub(super) yields: bool,
    pub(super) body: Body,
}

impl InferredTask {
    /// The period of the task: the least distance of its releases, or that of `SCHED_DEADLINE` if it is less. The
    /// releases behind yields are as far apart as the kernel says; they only seem closer behind a late dispatch.
    pub(super) fn period(&self) -> u64 {
        match self.policy {
            Policy::Deadline { period_ns, .. } if period_ns > 0 && self.yields => period_ns,
            Policy::Deadline { period_ns, .. } if period_ns > 0 => period_ns.min(self.period_ns),
            _ => self.period_ns,
        }
    }

    /// The least execution time that is not exceeded by this many thousandths of the jobs.
    #[must_use]
    pub fn cpu_quantile(&self, permille: u64) -> Option<u64> {
        quantile(&self.cpu_ns, permille)
    }
}

/// Why a thread is not a task.
pub(super) struct Refusal {
    pub(super) reason: String,
    /// Whether it has jobs, and only their period is unknown.
    pub(super) has_jobs: bool,
}

impl<T: Into<String>> From<T> for Refusal {
    fn from(reason: T) -> Self {
        Self { reason: reason.into(), has_jobs: false }
    }
}

/// Infers the task of a thread, or returns why its jobs cannot be recognised.
pub(super) fn task_of(
    recording: &Recording,
    thread: ThreadIndex,
    history: &History,
    taken: &Taken,
    choices: &Choices,
) -> Result<InferredTask, Refusal> {
    if !recording.switches {
        return Err("its execution times are unknown".into());
    }
    let entries = &history.entries;
    let cuts = cuts(recording, thread, history, taken, &choices.job_at);
    let [cut, others @ ..] = cuts.as_slice() else { return Err(nothing_cuts(entries).into()) };
    if !cut.has_releases() {
        let (all, text) = (cut.releases.len(), cut.boundary(recording).text);
        let at_once = all - cut.known();
        let reason = format!(
            "{at_once} of its {all} jobs did not wait for their release, so its period is unknown; a job begins behind \
             {text}"
        );
        return Err(Refusal { reason, has_jobs: true });
    }
    let distances = Distances::of(&cut.releases).ok_or("all its releases are at one instant")?;
    let span = |pair: &[usize]| {
        let until = head(entries, pair[1]);
        // What the thread executes between a poll and the read behind it is a part of the job.
        (begin(entries, head(entries, pair[0])).min(until), until)
    };
    let spans: Vec<(usize, usize)> = cut.waits.windows(2).map(span).collect();
    let job = |(&(from, until), release): (&(usize, usize), &Release)| Job {
        release_ns: release.at_ns.unwrap_or(signed(entries[from].at_ns)),
        is_release_known: release.at_ns.is_some(),
        releases: release.count,
        finish_ns: entries[until].at_ns,
        cpu_ns: entries[until].cpu_ns.saturating_sub(entries[from].cpu_ns),
    };
    let jobs: Vec<Job> = spans.iter().zip(&cut.releases).map(job).collect();
    let mut cpu_ns: Vec<u64> = jobs.iter().map(|job| job.cpu_ns).collect();
    cpu_ns.sort_unstable();
    let Some(most_ns) = cpu_ns.last().copied().filter(|&most| most > 0) else {
        return Err("its jobs execute nothing".into());
    };
    let cpu_at = |wait: Option<&usize>| wait.map_or(0, |&wait| entries[wait].cpu_ns);
    let (first_ns, last_ns) = (cpu_at(cut.waits.first()), cpu_at(cut.waits.last()));
    let outside = [first_ns, history.executed_ns.saturating_sub(last_ns)].map(|ns| ns.saturating_sub(most_ns));
    let sections = held(history);
    let begun = |&(from, until): &(usize, usize)| {
        let begin = sections.partition_point(|section| section.first < from);
        sections.partition_point(|section| section.first < until) - begin
    };
    // Each section needs three steps.
    if let Some(many) = spans.iter().map(begun).max().filter(|&many| many > STEPS_MAX / 3) {
        let most = STEPS_MAX / 3;
        return Err(format!("one of its jobs has {many} critical sections, and a task at most {most}").into());
    }
    let parts = spans.iter().map(|&(from, until)| Part::of_job(entries, &sections, from, until));
    let body = Body::of(parts).ok_or("it has no complete job")?;
    Ok(InferredTask {
        thread,
        boundary: cut.boundary(recording),
        second: others.first().map(|cut| cut.boundary(recording)),
        jobs,
        period_ns: distances.least,
        median_ns: distances.median,
        most_ns: distances.most,
        regularity: distances.regularity,
        policy: policy(entries, cut),
        cpu: cpu(history).ok_or("the CPU on which it executes is unknown")?,
        cpu_ns,
        suspensions: suspensions(entries, &spans, &cut.waits),
        across: across(&sections, &spans),
        outside_ns: outside[0].saturating_add(outside[1]),
        yields: cut.is_yield(),
        body,
    })
}

/// The end of the wait at this index: the job behind it begins there, so that the cost of the sleep in the kernel is
/// not part of the job.
fn begin(entries: &[Entry], wait: usize) -> usize {
    let behind = entries[wait + 1..].iter().position(|entry| entry.kind == EventKind::Resumed);
    behind.map_or(wait, |place| wait + 1 + place)
}

/// Why no wait separates jobs.
fn nothing_cuts(entries: &[Entry]) -> String {
    let waits = entries.iter().filter(|entry| matches!(entry.kind, EventKind::Wait { .. })).count();
    match waits {
        0 => "it never waits for an activation".into(),
        _ => format!("none of its waits separates at least {JOBS_MIN} jobs that execute most of its CPU time"),
    }
}

/// The most frequent policy at releases.
fn policy(entries: &[Entry], cut: &Cut) -> Policy {
    let mut policies: Vec<(Policy, usize)> = Vec::new();
    let mut now = Policy::Fair { nice: 0 };
    let mut waits = cut.waits.iter().peekable();
    for (index, entry) in entries.iter().enumerate() {
        if let EventKind::Scheduling(policy) = entry.kind {
            now = policy;
        }
        if waits.next_if_eq(&&index).is_some() {
            match policies.iter_mut().find(|(policy, _)| *policy == now) {
                Some((_, releases)) => *releases += 1,
                None => policies.push((now, 1)),
            }
        }
    }
    policies.into_iter().max_by_key(|&(_, releases)| releases).map_or(now, |(policy, _)| policy)
}

/// The CPU to which the thread is bound, or else the one on which it executed longest.
fn cpu(history: &History) -> Option<(u32, bool)> {
    let of = |entry: &Entry| match entry.kind {
        EventKind::Affinity(cpus) => Some(cpus),
        _ => None,
    };
    let bound = history.entries.iter().rev().find_map(of).filter(|cpus| cpus.count_ones() == 1);
    let most = || history.cpus.iter().max_by_key(|(_, ns)| *ns).map(|&(cpu, _)| (cpu, false));
    bound.map(|cpus| (cpus.trailing_zeros(), true)).or_else(most)
}

/// The number of waits inside jobs, except for those at which jobs begin, and the longest sum of them in one job. A
/// thread that suspends waits, also in a call that is not recorded.
fn suspensions(entries: &[Entry], spans: &[(usize, usize)], begins: &[usize]) -> (u64, u64) {
    let mut found = (0, 0);
    for &(from, until) in spans {
        let mut sum = 0_u64;
        let mut waits = matches!(entries[from].kind, EventKind::Wait { .. });
        let mut requests = false;
        for index in from + 1..until {
            let mut length = None;
            match entries[index].kind {
                EventKind::Wait { wait, .. } => {
                    waits = true;
                    let is_inside = wait != Wait::Yield && begins.binary_search(&index).is_err();
                    length = is_inside.then(|| waited(entries, index));
                }
                EventKind::Resumed => waits = false,
                EventKind::Request { .. } => requests = true,
                EventKind::Locked { .. } | EventKind::Refused { .. } => requests = false,
                EventKind::SwitchOut(Stop::Suspended) if !waits && !requests => length = stopped(entries, index),
                _ => {}
            }
            found.0 += u64::from(length.is_some());
            sum = sum.saturating_add(length.unwrap_or(0));
        }
        found.1 = found.1.max(sum);
    }
    found
}

/// How long the thread stopped at this index. `None` if it stopped in a wait or for a lock that begins directly behind:
/// the clock of the switches may differ by less than a microsecond.
fn stopped(entries: &[Entry], index: usize) -> Option<u64> {
    const SKEW_NS: u64 = 1_000;
    let begin_ns = entries[index].at_ns;
    for entry in &entries[index + 1..] {
        let ns = entry.at_ns.saturating_sub(begin_ns);
        match entry.kind {
            EventKind::SwitchIn { .. } => return Some(ns),
            EventKind::Wait { .. } | EventKind::Request { .. } if ns <= SKEW_NS => return None,
            _ => {}
        }
    }
    None
}

/// The number of sections that begin in a job and do not end in it.
fn across(sections: &[Held], spans: &[(usize, usize)]) -> u64 {
    let crosses = |section: &&Held| {
        let job = spans.partition_point(|&(_, until)| until <= section.first);
        spans
            .get(job)
            .is_some_and(|&(from, until)| from < section.first && section.last.is_none_or(|last| last > until))
    };
    sections.iter().filter(crosses).count() as u64
}
