//! The failure of the Mars Pathfinder in 1997: a task of high priority misses its deadline because a task of medium
//! priority keeps a third one from releasing a resource. `pip` and `icpp` prevent it.

use crate::judge::{Beats, Lost};
use crate::support::{R, expect, require_realtime, run_ms, run_us, scale, system, task};
use lockwright_engine::{Control, Outcome, RunConfig};
use lockwright_model::{Duration, Event, Instant, Observation, Protocol, Step, System, TaskId};
use std::io::Write;

const BUS: TaskId = TaskId(1);

fn pathfinder() -> System {
    let rows = [
        ("scheduler", 7, 50, 10, false),
        ("distribution", 6, 50, 10, true),
        ("control", 5, 100, 10, true),
        ("radio", 4, 100, 10, false),
        ("camera", 3, 100, 10, false),
        ("measure", 2, 2000, 20, true),
        ("meteo", 1, 2000, 23, true),
    ];
    let tasks = rows.map(|(name, priority, period_ms, wcet_ms, locks)| {
        let run = Step::Run(Duration::from_ms(wcet_ms));
        let body = if locks { vec![Step::Lock(R), run, Step::Unlock(R)] } else { vec![run] };
        task(name, 0, priority, period_ms * 1_000, body)
    });
    system(1, 1, tasks.into())
}

/// The number of deadline misses of each task. The tasks' own observations must equal those derived from the records.
fn misses(system: &System, outcome: &Outcome) -> Vec<u64> {
    assert_eq!(outcome.dropped, 0);
    let seen: Vec<Observation> = outcome.tasks.iter().map(|task| task.observation).collect();
    assert_eq!(lockwright_engine::observe::observe(system, &outcome.records), seen);
    seen.iter().map(|seen| seen.misses).collect()
}

/// The tightest response time leaves 15 ms to its deadline.
fn meets_every_deadline(protocol: Protocol) {
    let system = pathfinder();
    let config = RunConfig::new(protocol, Duration::from_ms(400));
    expect(protocol.name(), &system, &config, Duration::from_ms(10), |outcome| {
        let misses = misses(&system, outcome);
        (misses != [0; 7]).then(|| format!("misses {misses:?}"))
    });
}

#[test]
fn a_plain_mutex_misses() {
    let Some(_machine) = require_realtime() else { return };
    let system = pathfinder();
    assert!(misses(&system, &run_ms(&system, Protocol::None, 400))[BUS.index()] > 0);
}

#[test]
fn inheritance_meets_every_deadline() {
    let Some(_machine) = require_realtime() else { return };
    meets_every_deadline(Protocol::Pip);
}

#[test]
fn a_ceiling_meets_every_deadline() {
    let Some(_machine) = require_realtime() else { return };
    meets_every_deadline(Protocol::Icpp);
}

/// Negative control: a job that is never woken leaves its CPU to others, which is not a disturbance. A CPU without
/// beats may have stood still.
#[test]
fn a_job_that_is_never_woken_is_no_disturbance() {
    let Some(_machine) = require_realtime() else { return };
    // Longer than a thread may sleep unnoticed.
    let period_ms = 150 * scale();
    let system = system(1, 0, vec![task("t", 0, 1, period_ms * 1_000, vec![run_us(1_000)])]);
    let config = RunConfig { watch: true, ..RunConfig::new(Protocol::None, Duration::from_ms(3 * period_ms)) };
    let forgotten = |outcome: &mut Outcome| {
        // As if the second job had slept until the third one arrived.
        let [second, third] = [1, 2].map(|job| Instant::from_ns(job * period_ms * 1_000_000));
        outcome.records.retain(|record| !(second..third).contains(&record.at) || record.event == Event::Arrive);
        Lost::of(&system, outcome).forgotten()
    };
    let run = || lockwright_engine::run(&system, &config, &Control::new()).expect("a run");
    let mut outcome = run();
    if outcome.occupancy.is_none() {
        return drop(writeln!(
            std::io::stderr(),
            "skipped: the kernel does not disclose to this user which threads had the CPUs"
        ));
    }
    assert_eq!(forgotten(&mut outcome), None, "nothing shows that the CPU did not stand still");
    let _beats = Beats::start();
    let is_found = || {
        let mut outcome = run();
        assert_eq!(Lost::of(&system, &outcome).forgotten(), None);
        forgotten(&mut outcome).is_some()
    };
    // The CPU can stand still during an attempt.
    assert!((0..10).any(|_| is_found()));
}
