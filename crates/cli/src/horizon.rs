//! The default lengths of simulations and runs, with their reasons.

use crate::args::OffsetsChoice;
use lockwright_model::{DURATION_MAX, Duration, System, Task};
use lockwright_sim::{HorizonReason, default_horizon};

/// Greatest number of jobs in all schedules of one protocol together, without `--for`.
pub const JOBS_BUDGET: u64 = 20_000_000;
/// Shortest run without `--for`.
const RUN_MIN: Duration = Duration::from_ms(1_000);
/// Longest run without `--for`.
const RUN_MAX: Duration = Duration::from_ms(10_000);

/// Defaults for the length and the number of schedules.
pub struct Horizon {
    /// Of each schedule.
    pub duration: Duration,
    /// Reason for the length, in words.
    pub reason: String,
    /// Number of schedules.
    pub schedules: u64,
}

impl Horizon {
    /// The default length of each schedule, and the number of schedules of that length within the budget.
    pub fn of_simulation(system: &System, offsets: OffsetsChoice, schedules: u64) -> Self {
        let is_series = matches!(offsets, OffsetsChoice::Random | OffsetsChoice::Sweep);
        let longest = |of: &dyn Fn(&Task) -> Duration| system.tasks().iter().map(of).max().unwrap_or_default();
        let (mut duration, name, why) = hyperperiods(system, is_series);
        let reason = name + why;
        if is_series {
            duration = duration.checked_add(longest(&|task| task.period)).unwrap_or(DURATION_MAX);
        }
        let duration = duration.min(DURATION_MAX);
        let share = with_jobs(system, offsets, JOBS_BUDGET / schedules.max(1));
        if share >= duration {
            return Self { duration, reason, schedules };
        }
        // A shorter schedule may end before a task finishes its first job: simulate fewer schedules instead.
        let floor = longest(&|task| task.period.max(first(task, offsets))) + longest(&|task| task.deadline);
        let all = with_jobs(system, offsets, JOBS_BUDGET);
        let as_allowed = "as long as twenty million jobs in all allow";
        let (duration, reason) = match floor.min(duration) {
            least if share >= least => return Self { duration: share, reason: as_allowed.into(), schedules },
            least if all < least => (all, as_allowed.into()),
            least if least == duration => (duration, reason),
            _ if longest(&|task| first(task, offsets)) > longest(&|task| task.period) => {
                (floor, "the longest offset and the longest deadline".into())
            }
            _ => (floor, "the longest period and the longest deadline".into()),
        };
        let most = (JOBS_BUDGET / jobs(system, offsets, duration).max(1)).max(1);
        let schedules = match (offsets, system.tasks().len() as u64) {
            // The same number of steps for each task.
            (OffsetsChoice::Sweep, tasks) => 1 + (most - 1) / tasks.max(1) * tasks,
            _ => most.min(schedules),
        };
        Self { duration, reason, schedules }
    }
}

/// The default length of a run, and the reason for it.
pub fn of_run(system: &System) -> (Duration, String) {
    let (duration, name, why) = hyperperiods(system, false);
    match duration {
        _ if duration < RUN_MIN => (RUN_MIN, format!("{name} are shorter{why}")),
        _ if duration > RUN_MAX => (RUN_MAX, "the longest run without --for".into()),
        _ => (duration, format!("{name}{why}")),
    }
}

/// The longest offset and two hyperperiods, or the time of a million jobs if that is less, with the name of this time
/// and an addition that says why. In a series, the name includes the longest period.
fn hyperperiods(system: &System, is_series: bool) -> (Duration, String, &'static str) {
    let horizon = default_horizon(system);
    let mut parts = Vec::new();
    if system.tasks().iter().any(|task| task.offset > Duration::ZERO) {
        parts.push("the longest offset");
    }
    let (part, why) = match horizon.reason {
        HorizonReason::Hyperperiods => ("two hyperperiods", ""),
        HorizonReason::Jobs => ("a million jobs", "; two hyperperiods are longer"),
    };
    parts.push(part);
    if is_series {
        parts.push("the longest period");
    }
    let last = parts.pop().unwrap_or_default();
    let before = if parts.is_empty() { String::new() } else { format!("{} and ", parts.join(", ")) };
    (horizon.duration, format!("{before}{last}"), why)
}

/// The first arrival of a task, as far as it is known: random offsets and those of a sweep are shorter than its period.
fn first(task: &Task, offsets: OffsetsChoice) -> Duration {
    if offsets == OffsetsChoice::File { task.offset } else { Duration::ZERO }
}

/// The number of jobs in a schedule of this length.
fn jobs(system: &System, offsets: OffsetsChoice, duration: Duration) -> u64 {
    let of = |task: &Task| {
        let rest = duration.as_ns().checked_sub(first(task, offsets).as_ns());
        rest.map_or(0, |rest| rest / task.period.as_ns().max(1) + 1)
    };
    system.tasks().iter().map(of).fold(0, u64::saturating_add)
}

/// The longest schedule with at most this number of jobs, at least a nanosecond.
fn with_jobs(system: &System, offsets: OffsetsChoice, most: u64) -> Duration {
    let (mut within, mut beyond) = (1, DURATION_MAX.as_ns() + 1);
    // BOUND: each turn halves the distance: 64 turns.
    while beyond - within > 1 {
        let middle = within + (beyond - within) / 2;
        if jobs(system, offsets, Duration::from_ns(middle)) <= most { within = middle } else { beyond = middle }
    }
    Duration::from_ns(within)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockwright_model::format::parse_system_bytes;

    /// Tasks with these periods, and keys of the last one.
    fn system(periods: &[&str], keys: &str) -> System {
        let task = |(index, period): (usize, &&str)| {
            format!("[[task]]\nname = \"t{index}\"\nperiod = \"{period}\"\nwcet = \"1 ns\"\n")
        };
        let tasks: String = periods.iter().enumerate().map(task).collect();
        let text = format!("[platform]\ncpus = 1\npriorities = \"rate-monotonic\"\n{tasks}{keys}");
        parse_system_bytes(text.as_bytes()).expect("valid")
    }

    #[test]
    fn schedules_are_long_enough_for_every_task() {
        let system = system(&["1 ms", "100 ms"], "");
        let floor = Duration::from_ms(200);
        let (sweep, random) = (OffsetsChoice::Sweep, OffsetsChoice::Random);
        for (offsets, schedules) in [(sweep, 31), (sweep, 2_000_001), (random, 100), (random, 1_000_000)] {
            let horizon = Horizon::of_simulation(&system, offsets, schedules);
            assert!(horizon.duration >= floor && horizon.schedules <= schedules, "{offsets:?}");
            let jobs =
                horizon.schedules * (horizon.duration.as_ns() / 1_000_000 + horizon.duration.as_ns() / 100_000_000);
            assert!(jobs <= JOBS_BUDGET, "{offsets:?}: {jobs}");
            assert!(offsets != sweep || horizon.schedules % 2 == 1, "as many steps for each task");
            assert_eq!(horizon.schedules < schedules, schedules > 1_000, "{offsets:?}");
        }
    }

    #[test]
    fn very_different_periods_end() {
        let horizon = Horizon::of_simulation(&system(&["10 us", "60 min"], ""), OffsetsChoice::Sweep, 31);
        assert_eq!(horizon.schedules, 1);
        assert!(horizon.duration.as_ns() / 10_000 <= JOBS_BUDGET);
    }

    #[test]
    fn reasons_name_what_decided() {
        let (file, random) = (OffsetsChoice::File, OffsetsChoice::Random);
        let cases = [
            (&["10 ms"][..], "", file, 1, "two hyperperiods"),
            (&["10 ms"], "offset = \"7 ms\"", file, 1, "the longest offset and two hyperperiods"),
            (&["10 ms"], "", random, 100, "two hyperperiods and the longest period"),
            (
                &["10 ms", "10 ms"],
                "offset = \"100000 s\"",
                file,
                1,
                "the longest offset and a million jobs; two hyperperiods are longer",
            ),
            (&["1 ms", "100 ms"], "", random, 1_000_000, "the longest period and the longest deadline"),
            (&["2 ns", "1000000 s"], "", random, 100, "as long as twenty million jobs in all allow"),
        ];
        for (periods, keys, offsets, schedules, reason) in cases {
            let system = system(periods, keys);
            let horizon = Horizon::of_simulation(&system, offsets, schedules);
            assert_eq!(horizon.reason, reason, "{periods:?}");
            let latest = system.tasks().iter().map(|task| first(task, offsets)).max().unwrap_or_default();
            assert!(horizon.duration > latest, "{periods:?}: the last task has a job");
        }
    }

    #[test]
    fn reasons_of_runs_name_what_decided() {
        let cases = [
            ("10 ms", "", 1_000, "two hyperperiods are shorter"),
            ("10 ms", "offset = \"7 ms\"", 1_000, "the longest offset and two hyperperiods are shorter"),
            ("2 s", "", 4_000, "two hyperperiods"),
            ("20 s", "", 10_000, "the longest run without --for"),
        ];
        for (period, keys, ms, reason) in cases {
            assert_eq!(of_run(&system(&[period], keys)), (Duration::from_ms(ms), reason.to_owned()));
        }
        // A million jobs take 4.99 s.
        let (duration, reason) = of_run(&system(&["10 us", "9999999989 ns", "9999999967 ns"], ""));
        assert!((RUN_MIN..RUN_MAX).contains(&duration), "{duration}");
        assert_eq!(reason, "a million jobs; two hyperperiods are longer");
        // And 0.9 s.
        let periods: Vec<String> = (0..11).map(|task| format!("{} ns", 9_901 + 2 * task)).collect();
        let periods: Vec<&str> = periods.iter().map(String::as_str).collect();
        let expected = "a million jobs are shorter; two hyperperiods are longer";
        assert_eq!(of_run(&system(&periods, "")), (RUN_MIN, expected.to_owned()));
    }
}
