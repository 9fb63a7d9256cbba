//! Resources under global EDF and global fixed priorities, and non-blocking objects under partitioned EDF as well: no
//! simulated job of a random system is above its bound or misses a deadline that is proved. A bound without one of its
//! terms is exceeded.

use fastrand::Rng;
use lockwright_analysis::{Mutant, Scheduled, Untested, scheduled, scheduled_mutant};
use lockwright_model::format::{parse_system, write_system};
use lockwright_model::{Cost, Duration, Instant, Observation, Overhead, Overheads, Protocol, Scheduler, System};
use lockwright_sim::{Arrivals, Config, Execution, Offsets, Simulation, Taken};
use lockwright_study::{Shape, generate};

const RUNS: usize = 8;
/// The length of a schedule, in longest periods.
const HORIZON: u64 = 8;

/// The attacked combination: a scheduler, and the protocol of resources that name none.
type Subject = (Scheduler, Protocol);

const SUBJECTS: [Subject; 9] = [
    (Scheduler::GEdf, Protocol::FmlpShort),
    (Scheduler::GEdf, Protocol::FmlpLong),
    (Scheduler::GEdf, Protocol::LockFree),
    (Scheduler::GFp, Protocol::FmlpShort),
    (Scheduler::GFp, Protocol::FmlpLong),
    (Scheduler::GFp, Protocol::LockFree),
    (Scheduler::GEdf, Protocol::WaitFree),
    (Scheduler::PEdf, Protocol::LockFree),
    (Scheduler::PEdf, Protocol::WaitFree),
];

/// Returns a system of the subject. Some resources of partitioned systems are locks, those of one processor.
fn drawn((scheduler, protocol): Subject, seed: u64) -> (System, Rng) {
    let mut random = Rng::with_seed(seed);
    let locks = if scheduler == Scheduler::PEdf { (20, vec![Protocol::Srp, Protocol::WaitFree]) } else { (0, vec![]) };
    let shape = Shape {
        cpus: (1, 3),
        tasks: (2, 8),
        resources: (1, 3),
        nested: 0,
        jitter: 0,
        shuffled: 0,
        own_ceiling: 0,
        own_protocol: locks,
        utilization: (15, 75),
        sections: (0, 3),
        section: [4, 12, u64::MAX][random.usize(..3)],
        ..Shape::small()
    };
    (generate(&mut random, &shape).under(scheduler).with_protocol(protocol), random)
}

/// Overheads that only delay releases, up to `latency`.
fn late(latency: Duration) -> Overheads {
    let mut overheads = Overheads::default();
    overheads.set(Overhead::ReleaseLatency, Cost::constant(latency));
    overheads
}

/// The configuration of a machine that delays releases, up to `latency`.
fn released_late(config: Config, latency: Duration) -> Config {
    let mut taken = Taken::default();
    taken.latency = latency;
    config.with_taken(taken)
}

/// Executes the first 2 us with the offsets of the file, and returns the observation of the first task.
fn first(system: &System, config: &Config) -> Observation {
    let mut simulation = Simulation::new(system, &config.clone().with_offsets(Offsets::File), ());
    simulation.run_until(Instant::from_ns(2_000));
    simulation.observations()[0]
}

/// The verdict of a bound, and whether a schedule exceeds it.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Shown {
    /// Whether a job waited, spun or made a further attempt.
    pub(crate) has_waited: bool,
    /// The task that is above its bound, or late although its deadlines are proved.
    pub(crate) exceeds: Option<usize>,
}

/// Executes several schedules with releases that are late by up to `latency`, up to the first one that exceeds a bound.
pub(crate) fn show(system: &System, found: &Scheduled, latency: Duration, random: &mut Rng) -> Shown {
    let longest = system.tasks().iter().map(|task| task.period.as_ns()).max().unwrap_or(1);
    let mut shown = Shown::default();
    for run in 0..RUNS {
        let config = Config::default()
            .with_offsets(match run % 4 {
                0 => Offsets::Synchronous,
                1 | 2 => Offsets::Fixed(system.task_ids().map(|_| Duration::from_ns(random.u64(0..30))).collect()),
                _ => Offsets::Random,
            })
            .with_arrivals(if run % 3 == 2 { Arrivals::Sporadic } else { Arrivals::Periodic })
            .with_execution(if run % 5 == 4 { Execution::Random } else { Execution::Worst })
            .with_seed(random.u64(..))
            .with_shuffle(run % 2 == 1);
        let config = if latency > Duration::ZERO { released_late(config, latency) } else { config };
        let mut simulation = Simulation::new(system, &config, ());
        simulation.run_until(Instant::from_ns(longest * HORIZON));
        let (seen, ages) = (simulation.observations(), simulation.ages());
        shown.has_waited |= seen.iter().any(|seen| seen.restarts > 0 || seen.lock_wait > Some(Duration::ZERO));
        let exceeds = |&task: &usize| {
            let response = seen[task].response.max(Some(ages[task]));
            // A job that has not finished can be late as well.
            found.proved[task] && (seen[task].misses > 0 || response > Some(system.tasks()[task].deadline))
                || found.responses[task].is_some_and(|bound| response > Some(bound))
        };
        shown.exceeds = (0..seen.len()).find(exceeds);
        if shown.exceeds.is_some() {
            break;
        }
    }
    shown
}

#[test]
fn no_schedule_exceeds_a_bound() {
    for subject in SUBJECTS {
        let sets = crate::attacked::sets(20_000);
        let (mut bounded, mut proved, mut waited, mut mixed) = (0, 0, 0, 0);
        for seed in 0..sets {
            let (system, mut random) = drawn(subject, seed);
            let latency = Duration::from_ns(if seed % 3 == 0 { random.u64(1..8) } else { 0 });
            let found = match scheduled(&system, &late(latency)) {
                Err(Untested::Mixed(..)) => {
                    mixed += 1;
                    continue;
                }
                found => found.unwrap_or_else(|why| panic!("seed {seed}: {}", why.describe(&system))),
            };
            if !found.proved.contains(&true) && found.responses.iter().all(Option::is_none) {
                continue;
            }
            let shown = show(&system, &found, latency, &mut random);
            bounded += 1;
            proved += u64::from(found.schedulable);
            waited += u64::from(shown.has_waited);
            let what = format!("{subject:?}, seed {seed}: {shown:?}, {found:?}\n{}", write_system(&system));
            assert_eq!(shown.exceeds, None, "{what}");
        }
        println!("{subject:?}: {bounded} of {sets} bounded, {proved} proved, {waited} with waits; {mixed} mixed");
        let waits = subject.1 != Protocol::WaitFree;
        assert!(proved > sets / 20 && (!waits || waited > sets / 20), "{subject:?}: {proved}, {waited}");
    }
}

/// The mutants that random systems refute.
#[test]
fn a_bound_without_a_term_is_exceeded() {
    let (waits, arrival) = (Mutant::Waiting, Mutant::Boosted);
    for (subject, mutants) in [
        (SUBJECTS[0], &[waits, arrival, Mutant::RemoteCarryIn][..]),
        (SUBJECTS[1], &[waits]),
        (SUBJECTS[2], &[Mutant::RemoteCommits]),
        (SUBJECTS[3], &[waits, arrival]),
        (SUBJECTS[4], &[waits]),
        (SUBJECTS[5], &[Mutant::RemoteCommits]),
        (SUBJECTS[7], &[Mutant::RemoteCommits, Mutant::Again]),
    ] {
        for &mutant in mutants {
            let refuted = (0..60_000).find(|&seed| {
                let (system, mut random) = drawn(subject, seed);
                let broken = scheduled_mutant(&system, &Overheads::default(), mutant);
                let Ok(broken) = broken else { return false };
                Ok(&broken) != scheduled(&system, &Overheads::default()).as_ref()
                    && show(&system, &broken, Duration::ZERO, &mut random).exceeds.is_some()
            });
            println!("{subject:?} without {mutant:?}: refuted at set {refuted:?}");
            assert!(refuted.is_some(), "{subject:?}: {mutant:?} was omitted, and no schedule shows it");
        }
    }
}

/// A job that is not preempted delays one more urgent job at a time: `mid` goes on when `urgent` arrives, as `low` is
/// linked to no processor and `urgent` waits for it.
#[test]
fn a_job_waits_once_for_one_that_is_not_preempted() {
    let text = r#"
        protocol = "fmlp_short"
        [platform]
        cpus = 2
        scheduler = "g-edf"
        [[resource]]
        name = "r"
        [[task]]
        name = "low"
        period = "1 us"
        body = [{ lock = "r" }, { run = "100 ns" }, { unlock = "r" }]
        [[task]]
        name = "mid"
        period = "500 ns"
        wcet = "50 ns"
        [[task]]
        name = "urgent"
        period = "300 ns"
        offset = "10 ns"
        wcet = "20 ns"
        [[task]]
        name = "next"
        period = "310 ns"
        offset = "20 ns"
        wcet = "20 ns"
    "#;
    let system = parse_system(text).expect("a valid system");
    let mut simulation = Simulation::new(&system, &Config::default(), ());
    simulation.run_until(Instant::from_ns(290));
    let response: Vec<_> = simulation.observations().iter().map(|seen| seen.response.unwrap().as_ns()).collect();
    // `mid` loses 20 to `next`. It ends at 70, and `low` is linked again: to its own processor, and `urgent` changes to
    // that of `mid`.
    assert_eq!(response, [100, 70, 80, 20]);
}

/// Two loops of `i` fail, although the period of `x` is longer than `i` is pending: the first job of `x` is late.
const CARRY_IN: &str = r#"
    protocol = "lock_free"
    [platform]
    cpus = 2
    scheduler = "g-fp"
    priorities = "explicit"
    [[resource]]
    name = "r"
    [[task]]
    name = "i"
    priority = 4
    period = "1 us"
    deadline = "71 ns"
    offset = "40 ns"
    body = [
        { run = "1 ns" }, { lock = "r" }, { run = "7 ns" }, { unlock = "r" },
        { run = "43 ns" }, { lock = "r" }, { run = "7 ns" }, { unlock = "r" },
    ]
    [[task]]
    name = "y"
    priority = 3
    period = "1 us"
    wcet = "40 ns"
    [[task]]
    name = "z"
    priority = 2
    period = "1 us"
    wcet = "40 ns"
    [[task]]
    name = "x"
    priority = 1
    period = "100 ns"
    body = [{ lock = "r" }, { run = "4 ns" }, { unlock = "r" }]
"#;

/// `i` waits for two jobs of `x`, although the period of `x` is longer than `i` is pending: the first one is late.
const LATE_HOLDER: &str = r#"
    protocol = "fmlp_long"
    [platform]
    cpus = 2
    scheduler = "g-fp"
    priorities = "explicit"
    [[resource]]
    name = "r"
    [[task]]
    name = "i"
    priority = 4
    period = "1 us"
    deadline = "80 ns"
    offset = "40 ns"
    body = [
        { run = "1 ns" }, { lock = "r" }, { run = "5 ns" }, { unlock = "r" },
        { run = "46 ns" }, { lock = "r" }, { run = "5 ns" }, { unlock = "r" },
    ]
    [[task]]
    name = "y"
    priority = 3
    period = "1 us"
    wcet = "40 ns"
    [[task]]
    name = "z"
    priority = 2
    period = "1 us"
    wcet = "40 ns"
    [[task]]
    name = "x"
    priority = 1
    period = "100 ns"
    body = [{ lock = "r" }, { run = "10 ns" }, { unlock = "r" }]
"#;

/// The operation of `i` fails twice, because `h` keeps it from its end until `x` commits again.
const PREEMPTED: &str = r#"
    protocol = "lock_free"
    [platform]
    cpus = 1
    scheduler = "g-fp"
    priorities = "explicit"
    [[resource]]
    name = "r"
    [[task]]
    name = "i"
    priority = 1
    period = "1 us"
    deadline = "40 ns"
    offset = "19 ns"
    body = [{ lock = "r" }, { run = "3 ns" }, { unlock = "r" }]
    [[task]]
    name = "h"
    priority = 2
    period = "1 us"
    offset = "22 ns"
    wcet = "15 ns"
    [[task]]
    name = "x"
    priority = 3
    period = "20 ns"
    deadline = "4 ns"
    body = [{ run = "1 ns" }, { lock = "r" }, { run = "1 ns" }, { unlock = "r" }]
"#;

/// The same on the processor of `i` and `h`, while `x` commits on another.
const PREEMPTED_AWAY: &str = r#"
    protocol = "lock_free"
    [platform]
    cpus = 2
    scheduler = "p-edf"
    priorities = "rate-monotonic"
    [[resource]]
    name = "r"
    [[task]]
    name = "i"
    cpu = 0
    period = "1 us"
    deadline = "29 ns"
    offset = "18 ns"
    body = [{ lock = "r" }, { run = "5 ns" }, { unlock = "r" }]
    [[task]]
    name = "h"
    cpu = 0
    period = "1 us"
    deadline = "20 ns"
    offset = "21 ns"
    wcet = "15 ns"
    [[task]]
    name = "x"
    cpu = 1
    period = "20 ns"
    deadline = "3 ns"
    body = [{ lock = "r" }, { run = "1 ns" }, { unlock = "r" }]
"#;

/// The loops of `i` fail when `x` commits at 70 and at 110. `late` makes another task of the processor of `x` late.
fn away(late: bool) -> String {
    let cost = if late { 91 } else { 60 };
    format!(
        r#"
        protocol = "lock_free"
        [platform]
        cpus = 2
        scheduler = "p-edf"
        priorities = "rate-monotonic"
        [[resource]]
        name = "r"
        [[task]]
        name = "i"
        cpu = 0
        period = "1 us"
        deadline = "57 ns"
        offset = "60 ns"
        body = [
            {{ run = "4 ns" }}, {{ lock = "r" }}, {{ run = "7 ns" }}, {{ unlock = "r" }},
            {{ run = "26 ns" }}, {{ lock = "r" }}, {{ run = "7 ns" }}, {{ unlock = "r" }},
        ]
        [[task]]
        name = "y"
        cpu = 1
        period = "1 us"
        deadline = "92 ns"
        wcet = "{cost} ns"
        [[task]]
        name = "x"
        cpu = 1
        period = "100 ns"
        body = [{{ lock = "r" }}, {{ run = "10 ns" }}, {{ unlock = "r" }}]
        "#
    )
}

/// The mutants that random systems hardly refute, each with a schedule of its file.
#[test]
fn a_bound_that_counts_too_few_requests_is_exceeded() {
    let cases = [
        (Mutant::RemoteCarryIn, CARRY_IN.to_owned(), 72),
        (Mutant::RemoteCarryIn, LATE_HOLDER.to_owned(), 75),
        (Mutant::RemoteCarryIn, away(false), 58),
        (Mutant::Preempted, PREEMPTED.to_owned(), 28),
        (Mutant::Preempted, PREEMPTED_AWAY.to_owned(), 30),
    ];
    for (mutant, text, response) in cases {
        let system = parse_system(&text).expect("a valid system");
        let seen = first(&system, &Config::default());
        assert_eq!(seen.response, Some(Duration::from_ns(response)), "{mutant:?}: {text}");
        let is_exceeded = |found: &Scheduled| {
            found.proved[0] && seen.misses > 0 || found.responses[0].is_some_and(|bound| seen.response > Some(bound))
        };
        let found = scheduled(&system, &Overheads::default()).expect("covered");
        let broken = scheduled_mutant(&system, &Overheads::default(), mutant).expect("covered");
        assert!(!is_exceeded(&found) && is_exceeded(&broken), "{mutant:?}: {found:?}\n{broken:?}\n{text}");
    }
}

/// A processor is not proved if the commits on it are counted by the deadlines of tasks that are not proved.
#[test]
fn proofs_depend_on_those_who_share_objects() {
    let system = parse_system(&away(true).replace("\"57 ns\"", "\"58 ns\"")).expect("a valid system");
    let found = scheduled(&system, &Overheads::default()).expect("covered");
    let broken = scheduled_mutant(&system, &Overheads::default(), Mutant::Partners).expect("covered");
    assert_eq!((found.proved, broken.proved), (vec![false; 3], vec![true, false, false]));
}

/// The costs of `i` do not depend on `late`, which shares nothing and misses its deadline elsewhere.
#[test]
fn late_tasks_elsewhere_change_no_cost() {
    let text = include_str!("counterexamples/edf-late-elsewhere.toml");
    let proved = |text: &str| {
        let system = parse_system(text).expect("a valid system");
        scheduled(&system, &Overheads::default()).expect("covered").proved
    };
    let in_time = text.replace("wcet = \"20 ns\"", "wcet = \"10 ns\"");
    assert_eq!((proved(text)[0], proved(&in_time)[0]), (false, false));
    let system = parse_system(text).expect("a valid system");
    // The deadline is 44.
    assert_eq!(first(&system, &Config::default()).response, Some(Duration::from_ns(45)));
}

/// Two jobs of `k` commit while `i` is pending, as the first is late and the second is not. The mutant counts from
/// deadlines that are shorter by the latency, and proves `i`.
#[test]
fn late_releases_do_not_hide_commits() {
    let text = include_str!("counterexamples/edf-late-commits.toml");
    let (system, latency) = (parse_system(text).expect("a valid system"), Duration::from_ns(10));
    let found = scheduled(&system, &late(latency)).expect("covered");
    let broken = scheduled_mutant(&system, &late(latency), Mutant::ReleaseJitter).expect("covered");
    assert!(!found.proved[0] && broken.proved[0], "{found:?}\n{broken:?}");
    let config = released_late(Config::default(), latency);
    let misses = |&seed: &u64| first(&system, &config.clone().with_seed(seed)).misses > 0;
    let missed = (0..20_000).find(misses);
    println!("late in schedule {missed:?}");
    assert!(missed.is_some(), "no schedule shows the miss");
}
