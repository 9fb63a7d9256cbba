//! Boundaries of jobs: the wait at which a thread waits for its next activation.

use super::period::Release;
use super::release::release;
use super::taken::Taken;
use crate::event::{Clock, Event, EventKind, Policy, Wait};
use crate::history::{Entry, History};
use crate::recording::{ObjectId, Recording, SiteId, ThreadIndex};
use std::collections::{BTreeMap, BTreeSet};

/// The least number of complete jobs from which a task is inferred.
pub(super) const JOBS_MIN: usize = 3;

/// A kind of wait at one place of the code, which may separate the jobs of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Point {
    kind: Kind,
    object: Option<ObjectId>,
    site: SiteId,
}

/// The kinds of waits, in the order in which they are preferred: an absolute sleep names the release of a job, an
/// expiration of a timer follows it closely, and so does the yield of a thread under `SCHED_DEADLINE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    SleepUntil,
    Timer(i32),
    Call,
    Yield,
    SleepFor,
    Condition,
    Semaphore,
    Barrier,
    Input(i32),
    Poll(i32),
    Futex,
}

impl Kind {
    /// Kinds of a lower class are preferred; within a class the evenness of the jobs decides.
    fn class(self) -> u8 {
        match self {
            Self::SleepUntil => 0,
            Self::Timer(_) | Self::Call => 1,
            Self::Yield => 2,
            _ => 3,
        }
    }
}

impl Point {
    fn of(wait: Wait, site: SiteId, is_deadline: bool) -> Option<Self> {
        let (kind, object) = match wait {
            Wait::SleepUntil { clock: Clock::Other(_), .. } => (Kind::SleepFor, None),
            Wait::SleepUntil { .. } => (Kind::SleepUntil, None),
            Wait::SleepFor { .. } => (Kind::SleepFor, None),
            Wait::Timer { descriptor } => (Kind::Timer(descriptor), None),
            Wait::Condition { object } => (Kind::Condition, Some(object)),
            Wait::Semaphore { object } => (Kind::Semaphore, Some(object)),
            Wait::Barrier { object } => (Kind::Barrier, Some(object)),
            Wait::Input { descriptor } => (Kind::Input(descriptor), None),
            Wait::Poll { descriptor } => (Kind::Poll(descriptor), None),
            Wait::Futex { object } => (Kind::Futex, Some(object)),
            Wait::Call => (Kind::Call, None),
            Wait::Yield if is_deadline => (Kind::Yield, None),
            // Nobody waits for an activation by a yield, or for the end of a thread more than once.
            Wait::Yield | Wait::Join => return None,
        };
        Some(Self { kind, object, site })
    }

    /// The wait as a text: "the absolute sleep at loop (camera.c:41)".
    fn text(self, recording: &Recording) -> String {
        let name = || self.object.map_or_else(String::new, |object| recording.object_name(object));
        let what = match self.kind {
            Kind::SleepUntil => "the absolute sleep".into(),
            Kind::SleepFor => "the sleep".into(),
            Kind::Timer(descriptor) => format!("the timer of descriptor {descriptor}"),
            Kind::Call => "the call of the callback".into(),
            Kind::Yield => "the yield".into(),
            Kind::Condition => format!("the wait for the condition variable `{}`", name()),
            Kind::Semaphore => format!("the wait for the semaphore `{}`", name()),
            Kind::Barrier => format!("the wait for the barrier `{}`", name()),
            Kind::Input(descriptor) | Kind::Poll(descriptor) => {
                format!("the wait for input of descriptor {descriptor}")
            }
            Kind::Futex => format!("the wait for the futex `{}`", name()),
        };
        format!("{what} at {}", recording.site_name(self.site))
    }

    /// Whether `--job-at` with this value means the wait: a part of the name of its place, its address, or the name of
    /// its object.
    fn is_at(self, recording: &Recording, value: &str) -> bool {
        let address = recording.sites.get(self.site as usize).map(|site| format!("{:#x}", site.address));
        recording.site_name(self.site).contains(value)
            || address.as_deref() == Some(value)
            || self.object.is_some_and(|object| recording.object_name(object) == value)
    }
}

/// Whether `--job-at` with this value means a wait of the recording: whether the value is a part of the name of the
/// wait's place, its address, or the name of its object.
#[must_use]
pub fn has_wait_at(recording: &Recording, value: &str) -> bool {
    let point = |event: &Event| match event.kind {
        EventKind::Wait { wait, site } => Point::of(wait, site, true),
        _ => None,
    };
    let points: BTreeSet<Point> = recording.events.iter().filter_map(point).collect();
    points.into_iter().any(|point| point.is_at(recording, value))
}

/// A wait that may separate the jobs of a thread, and how well it does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Boundary {
    /// The wait, as a text.
    pub text: String,
    /// The number of complete jobs between such waits.
    pub jobs: u64,
    /// The standard deviation of their execution times, in thousandths of the mean; `None` if nothing was executed.
    pub deviation_permille: Option<u64>,
}

/// The jobs of a thread between waits of one kind.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    pub(super) point: Point,
    /// The indices of the waits in [`History::entries`].
    pub(super) waits: Vec<usize>,
    /// The releases of the jobs behind them; that behind the last wait is missing if it has no end.
    pub(super) releases: Vec<Release>,
    /// The square of the coefficient of variation of the execution times, in millionths.
    variation: Option<u128>,
    /// The time that the thread spent in the waits.
    waited_ns: u64,
    /// The CPU time between the first wait and the last one.
    covered_ns: u64,
}

impl Cut {
    fn new(point: Point, waits: Vec<usize>, releases: Vec<Release>, entries: &[Entry]) -> Self {
        let cpu: Vec<u128> = waits
            .windows(2)
            .map(|pair| u128::from(entries[pair[1]].cpu_ns.saturating_sub(entries[pair[0]].cpu_ns)))
            .collect();
        let (sum, squares) = cpu.iter().fold((0, 0), |(sum, squares), &ns| (sum + ns, squares + ns * ns));
        // The sum is at most the length of the recording, so its square has 128 bits. The products may have more, and
        // then the jobs are not compared.
        let variation = (cpu.len() as u128)
            .checked_mul(squares)
            .and_then(|mean| mean.checked_mul(1_000_000)?.checked_div(sum * sum))
            .map(|ratio| ratio.saturating_sub(1_000_000));
        let waited_ns = waits.iter().fold(0_u64, |sum, &wait| sum.saturating_add(waited(entries, wait)));
        let covered_ns = u64::try_from(sum).unwrap_or(u64::MAX);
        Self { point, waits, releases, variation, waited_ns, covered_ns }
    }

    pub(super) fn jobs(&self) -> usize {
        self.waits.len().saturating_sub(1)
    }

    pub(super) fn is_yield(&self) -> bool {
        self.point.kind == Kind::Yield
    }

    /// How many releases are known.
    pub(super) fn known(&self) -> usize {
        self.releases.iter().filter(|release| release.at_ns.is_some()).count()
    }

    /// Whether so many releases are known that a period follows: some waits may suspend for another reason than the
    /// release.
    pub(super) fn has_releases(&self) -> bool {
        self.known() >= JOBS_MIN.max(self.releases.len().div_ceil(2))
    }

    pub(super) fn boundary(&self, recording: &Recording) -> Boundary {
        Boundary {
            text: self.point.text(recording),
            jobs: self.jobs() as u64,
            deviation_permille: self.variation.and_then(|variation| u64::try_from(variation.isqrt()).ok()),
        }
    }
}

/// How long the wait at this index lasted.
pub(super) fn waited(entries: &[Entry], wait: usize) -> u64 {
    let end = entries[wait..].iter().find(|entry| entry.kind == EventKind::Resumed);
    end.map_or(0, |end| end.at_ns.saturating_sub(entries[wait].at_ns))
}

/// Whether the wait at this index is a read of a timer that returned no expiration.
fn has_failed(entries: &[Entry], wait: usize) -> bool {
    let EventKind::Wait { wait: Wait::Timer { .. }, .. } = entries[wait].kind else { return false };
    let is_end = |entry: &&Entry| matches!(entry.kind, EventKind::Expired { .. } | EventKind::Resumed);
    entries[wait..].iter().find(is_end).is_some_and(|entry| entry.kind == EventKind::Resumed)
}

/// Returns the ways to cut the execution of a thread into jobs, the best one first. `wanted` are the values of
/// `--job-at`; where some of them mean waits of this thread, only these remain.
///
/// Absolute sleeps are preferred, then timers, then yields under `SCHED_DEADLINE`. Of the others, the waits are best
/// that cut the execution most evenly, and among equal ones those in which the thread waits longest; those with known
/// releases go first. Waits that belong to a phase of the program only, such as its start, go behind all others.
pub(super) fn cuts(
    recording: &Recording,
    thread: ThreadIndex,
    history: &History,
    taken: &Taken,
    wanted: &[String],
) -> Vec<Cut> {
    let entries = &history.entries;
    let is_deadline = entries.iter().any(|entry| matches!(entry.kind, EventKind::Scheduling(Policy::Deadline { .. })));
    let mut points: BTreeMap<Point, Vec<usize>> = BTreeMap::new();
    for (index, entry) in entries.iter().enumerate() {
        if let EventKind::Wait { wait, site } = entry.kind
            && let Some(point) = Point::of(wait, site, is_deadline)
            && !has_failed(entries, index)
        {
            points.entry(point).or_default().push(index);
        }
    }
    let is_wanted = |point: Point| wanted.iter().any(|value| point.is_at(recording, value));
    let restricted = points.keys().any(|&point| is_wanted(point));
    let used_ns = history.executed_ns;
    let mut cuts: Vec<Cut> = points
        .into_iter()
        .filter(|&(point, _)| !restricted || is_wanted(point))
        .map(|(point, waits)| {
            let releases = waits.iter().filter_map(|&wait| release(recording, thread, entries, wait, taken)).collect();
            Cut::new(point, waits, releases, entries)
        })
        .filter(|cut| cut.jobs() >= JOBS_MIN)
        // A wait inside a phase of the program, such as its start, does not separate jobs.
        .filter(|cut| restricted || cut.point.kind.class() < 3 || cut.covered_ns >= used_ns / 2)
        .collect();
    let most_ns = cuts.iter().map(|cut| cut.covered_ns).max().unwrap_or(0);
    cuts.sort_by_key(|cut| {
        let is_phase = cut.covered_ns < most_ns / 2;
        let variation = cut.variation.unwrap_or(u128::MAX);
        (is_phase, cut.point.kind.class(), !cut.has_releases(), variation, std::cmp::Reverse(cut.waited_ns), cut.point)
    });
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::histories;
    use crate::infer::testing::{Script, ms};

    /// Each job receives three messages, and then waits for a semaphore.
    fn receiver() -> Script {
        let mut script = Script::new();
        let (inner, outer) = (script.site("receive"), script.site("wait_frame"));
        let frames = script.semaphore("frames");
        for frame in 0..20 {
            script.wait(Wait::Semaphore { object: frames }, outer, script.until(ms(10 * frame)));
            for _ in 0..3 {
                script.run(ms(1) / 10);
                script.wait(Wait::Input { descriptor: 5 }, inner, 1_000);
            }
            script.run(ms(1));
        }
        script
    }

    #[test]
    fn the_wait_that_cuts_most_evenly_separates_jobs() {
        let recording = receiver().recording();
        let history = &histories(&recording)[0];
        let texts = |wanted: &[&str]| {
            let wanted: Vec<String> = wanted.iter().map(|&value| value.to_owned()).collect();
            let cuts = cuts(&recording, 0, history, &Taken::of(&recording), &wanted);
            cuts.iter().map(|cut| cut.boundary(&recording)).collect::<Vec<_>>()
        };
        let best = texts(&[]);
        assert_eq!(best[0].text, "the wait for the semaphore `frames` at wait_frame");
        assert_eq!((best[0].jobs, best[0].deviation_permille), (19, Some(0)));
        assert_eq!(best[1].text, "the wait for input of descriptor 5 at receive");
        for value in ["receive", "0x1"] {
            assert_eq!(texts(&[value])[0].text, "the wait for input of descriptor 5 at receive", "{value}");
        }
        assert_eq!(texts(&["frames"]).len(), 1);
        assert_eq!(texts(&["nowhere"]), best);
    }

    #[test]
    fn an_absolute_sleep_goes_before_any_other_wait() {
        let mut script = receiver();
        let tick = script.site("tick");
        for job in 0..4 {
            script.run(ms(1) << job);
            let at_ns = i64::try_from(ms(300 + 10 * job)).expect("is small");
            script.wait(Wait::SleepUntil { at_ns, clock: Clock::Monotonic }, tick, 1_000);
        }
        let recording = script.recording();
        let cuts = cuts(&recording, 0, &histories(&recording)[0], &Taken::of(&recording), &[]);
        assert_eq!(cuts[0].boundary(&recording).text, "the absolute sleep at tick");
    }

    #[test]
    fn absolute_sleeps_at_the_start_separate_no_jobs() {
        let mut script = Script::new();
        let (start, site) = (script.site("start"), script.site("wait_frame"));
        let frames = script.semaphore("frames");
        for sleep in 1..=5 {
            script.run(10_000);
            let at_ns = i64::try_from(ms(sleep)).expect("is small");
            script.wait(Wait::SleepUntil { at_ns, clock: Clock::Monotonic }, start, script.until(ms(sleep)));
        }
        for frame in 1..50 {
            script.wait(Wait::Semaphore { object: frames }, site, script.until(ms(10 * frame)));
            script.run(ms(5));
        }
        let recording = script.recording();
        let cuts = cuts(&recording, 0, &histories(&recording)[0], &Taken::of(&recording), &[]);
        assert_eq!(cuts[0].boundary(&recording).text, "the wait for the semaphore `frames` at wait_frame");
        assert_eq!(cuts[1].boundary(&recording).text, "the absolute sleep at start");
    }
}
