//! P-EDF with SRP for resources of one processor and MSRP for the others: no job of a random system is late whose
//! deadline is proved, by the processor demand, by the linear programs that `check` adds to it, or by the linear
//! program of the library alone. A proof without the blocking or a part of it is refuted.

use fastrand::Rng;
use lockwright_analysis::linear::{Edf, p_edf};
use lockwright_analysis::{
    Demand, Mutant, Proof, Scheduled, Sharer, Sharing, best_scheduled, best_scheduled_mutant, scheduled,
};
use lockwright_model::format::write_system;
use lockwright_model::{
    Cost, Duration, Instant, Overhead, Overheads, Request, ResourceId, Scheduler, Step, System, TaskId,
};
use lockwright_sim::{Arrivals, Config, Execution, Offsets, Simulation, Taken};
use lockwright_study::{Shape, generate};

fn sets() -> u64 {
    crate::attacked::sets(10_000)
}
const RUNS: usize = 6;

fn shape() -> Shape {
    Shape {
        cpus: (1, 3),
        nested: 0,
        jitter: 0,
        own_ceiling: 0,
        utilization: (40, 95),
        sections: (0, 3),
        ..Shape::small()
    }
}

/// Returns the number of late jobs in the worst of several schedules.
fn misses(system: &System, random: &mut Rng) -> u64 {
    misses_of(system, &vec![true; system.tasks().len()], random)
}

/// Like [`misses`], of the tasks that `counts` selects, by task id.
fn misses_of(system: &System, counts: &[bool], random: &mut Rng) -> u64 {
    let longest = system.tasks().iter().map(|task| task.period.as_ns()).max().unwrap_or(1);
    let schedule = |run: usize| {
        let config = Config::default()
            .with_offsets(match run % 3 {
                0 => Offsets::Synchronous,
                1 => Offsets::Fixed(system.task_ids().map(|_| Duration::from_ns(random.u64(0..30))).collect()),
                _ => Offsets::Random,
            })
            .with_arrivals(if run % 4 == 3 { Arrivals::Sporadic } else { Arrivals::Periodic })
            .with_execution(if run % 5 == 4 { Execution::Random } else { Execution::Worst })
            .with_seed(random.u64(..))
            .with_shuffle(run % 2 == 1);
        let mut simulation = Simulation::new(system, &config, ());
        simulation.run_until(Instant::from_ns(longest * 8));
        let seen = simulation.observations();
        seen.iter().zip(counts).filter(|(_, counts)| **counts).map(|(seen, _)| seen.misses).sum::<u64>()
    };
    (0..RUNS).map(schedule).max().unwrap_or(0)
}

fn is_proved(system: &System) -> bool {
    scheduled(system, &Overheads::default()).is_ok_and(|found| found.schedulable)
}

fn drawn(seed: u64) -> (System, Rng) {
    let mut random = Rng::with_seed(seed);
    (generate(&mut random, &shape()).under(Scheduler::PEdf), random)
}

#[test]
fn proved_systems_are_not_late() {
    let (mut proved, mut sharing) = (0, 0);
    let mut seed = 0;
    // BOUND: about every other set is proved.
    while proved < sets() {
        let (system, mut random) = drawn(seed);
        if is_proved(&system) {
            proved += 1;
            sharing += u64::from(system.resource_ids().any(|resource| system.users(resource).len() > 1));
            assert_eq!(misses(&system, &mut random), 0, "seed {seed}\n{}", write_system(&system));
        }
        seed += 1;
    }
    println!("{proved} of {seed} proved, {sharing} with a shared resource");
    assert!(sharing > sets() / 4, "{sharing}");
}

/// The mutant: the same tasks without their locks are proved, and with the locks some job is late.
#[test]
fn a_proof_without_blocking_is_refuted() {
    let refuted = (0..100_000).find(|&seed| {
        let (system, mut random) = drawn(seed);
        let mut tasks = system.tasks().to_vec();
        tasks.iter_mut().for_each(|task| task.body.retain(|step| matches!(step, Step::Run(_))));
        is_proved(&system.with_tasks(tasks).expect("as valid as before")) && misses(&system, &mut random) > 0
    });
    println!("refuted at set {refuted:?}");
    assert!(refuted.is_some());
}

/// The section of `holder` keeps `held` from starting. Meanwhile a job of `quick` arrives whose deadline is later than
/// that of `held`, although its relative deadline is shorter. It must not start before the section, or `held` would
/// wait for more than one section.
#[test]
fn no_job_of_a_later_deadline_passes_one_that_is_held() {
    let text = r#"
        [platform]
        cpus = 1
        scheduler = "p-edf"
        priorities = "explicit"
        [[resource]]
        name = "r"
        [[task]]
        name = "quick"
        cpu = 0
        priority = 3
        period = "11 ns"
        offset = "1 ns"
        wcet = "2 ns"
        [[task]]
        name = "held"
        cpu = 0
        priority = 2
        period = "60 ns"
        deadline = "19 ns"
        offset = "1 ns"
        body = [{ lock = "r" }, { run = "4 ns" }, { unlock = "r" }]
        [[task]]
        name = "holder"
        cpu = 0
        priority = 1
        period = "60 ns"
        body = [{ lock = "r" }, { run = "13 ns" }, { unlock = "r" }]
    "#;
    let system = lockwright_model::format::parse_system(text).expect("a valid system");
    assert!(is_proved(&system));
    let mut simulation = Simulation::new(&system, &Config::default().with_offsets(Offsets::File), ());
    simulation.run_until(Instant::from_ns(60));
    let held = simulation.observations()[1];
    // From 1 on: 2 of `quick`, 12 that remain of the section, and 4 of its own.
    assert_eq!((held.response, held.misses), (Some(Duration::from_ns(18)), 0));
}

/// Returns the system in the form of the linear program, with the requests that `is_seen` selects.
pub fn sharing(system: &System, is_seen: impl Fn(ResourceId) -> bool) -> Sharing {
    let demand = |request: &Request| Demand {
        resource: request.resource.0,
        count: request.count,
        length: request.length.as_ns(),
    };
    let sharer = |id: TaskId| {
        let task = system.task(id);
        Sharer {
            cost: task.wcet.as_ns(),
            period: task.period.as_ns(),
            deadline: task.deadline.as_ns(),
            cluster: task.cpu.0,
            requests: system.requests(id).iter().filter(|request| is_seen(request.resource)).map(demand).collect(),
            ..Sharer::default()
        }
    };
    Sharing { tasks: system.task_ids().map(sharer).collect() }
}

#[test]
fn systems_proved_by_a_program_are_not_late() {
    let (mut proved, mut shared, mut alone) = (0, 0, 0);
    let mut seed = 1 << 32;
    // BOUND: about every other set is proved.
    while proved < sets() {
        let (system, mut random) = drawn(seed);
        if p_edf(&sharing(&system, |_| true), Edf::Msrp).is_ok() {
            proved += 1;
            shared += u64::from(system.resource_ids().any(|resource| system.is_global(resource)));
            alone += u64::from(!is_proved(&system));
            assert_eq!(misses(&system, &mut random), 0, "seed {seed}\n{}", write_system(&system));
        }
        seed += 1;
    }
    println!("{proved} proved, {shared} with resources of several processors, {alone} by the program alone");
    assert!(shared > sets() / 10 && alone > 0, "{shared}, {alone}");
}

/// The mutants: without resources of several processors nothing spins,
/// and without those of one processor their sections block nothing.
#[test]
fn a_program_without_a_part_of_the_blocking_is_refuted() {
    for sees_global in [true, false] {
        let refuted = (0..100_000).find(|&seed| {
            let (system, mut random) = drawn(seed);
            let broken = sharing(&system, |resource| system.is_global(resource) == sees_global);
            p_edf(&broken, Edf::Msrp).is_ok() && misses(&system, &mut random) > 0
        });
        println!("resources of {} only: refuted at set {refuted:?}", if sees_global { "several" } else { "one" });
        assert!(refuted.is_some());
    }
}

/// Systems of two or three processors whose tasks wait often.
fn drawn_crowded(seed: u64) -> (System, Rng) {
    let mut random = Rng::with_seed(seed);
    let shape = Shape { cpus: (2, 3), tasks: (3, 8), resources: (1, 3), section: 8, utilization: (25, 90), ..shape() };
    (generate(&mut random, &shape).under(Scheduler::PEdf), random)
}

/// Whether a program proves a task.
fn has_program(found: &Scheduled) -> bool {
    found.proved.iter().zip(&found.proof).any(|(&proved, &proof)| proved && proof == Proof::Program)
}

/// As `check` proves them: each processor by the processor demand or by a program. Other tasks of the same system may
/// be late.
#[test]
fn tasks_proved_by_either_test_are_not_late() {
    let (mut proved, mut partly, mut seed) = (0, 0, 2 << 32);
    // BOUND: a program proves tasks of about every tenth set.
    while proved < sets() {
        let (system, mut random) = drawn_crowded(seed);
        let (found, _) = best_scheduled(&system, &Overheads::default()).expect("P-EDF is covered");
        let classic = scheduled(&system, &Overheads::default()).expect("P-EDF is covered");
        // In no interval does the program count more than the processor demand.
        assert!(!classic.schedulable || p_edf(&sharing(&system, |_| true), Edf::Msrp).is_ok(), "seed {seed}");
        if has_program(&found) {
            proved += 1;
            partly += u64::from(!found.schedulable);
            let late = misses_of(&system, &found.proved, &mut random);
            assert_eq!(late, 0, "seed {seed}, {found:?}\n{}", write_system(&system));
        }
        seed += 1;
    }
    println!("{proved} of {} with tasks proved by a program, {partly} of them not all", seed - (2 << 32));
    assert!(partly > 0);
}

/// The mutants: a program without spinning, and without the section at the start, on resources of several processors or
/// of one.
#[test]
fn a_program_without_a_term_is_refuted() {
    for mutant in [Mutant::Waiting, Mutant::Boosted, Mutant::LocalIcpp] {
        let refuted = (0..100_000).find(|&seed| {
            let (system, mut random) = drawn_crowded(seed);
            let broken = best_scheduled_mutant(&system, &Overheads::default(), mutant).expect("P-EDF is covered");
            has_program(&broken) && misses_of(&system, &broken.proved, &mut random) > 0
        });
        println!("{mutant:?}: refuted at set {refuted:?}");
        assert!(refuted.is_some(), "{mutant:?} was omitted, and no schedule shows it");
    }
}

/// The mutants that random schedules hardly find: a program without the jobs that arrived before the interval, and one
/// that counts on late tasks of another processor. With offsets, `i` is late, and only the mutant proves it.
#[test]
fn a_program_that_counts_too_few_jobs_is_refuted() {
    for (mutant, text, response) in [
        (Mutant::RemoteCarryIn, include_str!("counterexamples/edf-carry-in.toml"), 31),
        (Mutant::Partners, include_str!("counterexamples/edf-late-partner.toml"), 23),
    ] {
        let system = lockwright_model::format::parse_system(text).expect("a valid system");
        let place = system.task_ids().find(|&id| system.task(id).name == "i").expect("it is there").index();
        let (found, _) = best_scheduled(&system, &Overheads::default()).expect("P-EDF is covered");
        let broken = best_scheduled_mutant(&system, &Overheads::default(), mutant).expect("P-EDF is covered");
        assert_eq!((found.proved[place], broken.proved[place]), (false, true), "{mutant:?}: {found:?}");
        let mut simulation = Simulation::new(&system, &Config::default().with_offsets(Offsets::File), ());
        simulation.run_until(Instant::from_ns(900));
        let seen = simulation.observations()[place];
        assert_eq!((seen.response, seen.misses), (Some(Duration::from_ns(response)), 1), "{mutant:?}");
    }
}

/// The mutant: a program that takes releases for punctual. Only it proves `k`. In about one of a thousand schedules,
/// those releases are late that make `k` late.
#[test]
fn a_program_without_late_releases_is_refuted() {
    let system = lockwright_model::format::parse_system(include_str!("counterexamples/edf-late-release.toml"));
    let system = system.expect("a valid system");
    let latency = Duration::from_ns(30);
    let mut overheads = Overheads::default();
    overheads.set(Overhead::ReleaseLatency, Cost::constant(latency));
    let place = system.task_ids().find(|&id| system.task(id).name == "k").expect("it is there").index();
    let (found, _) = best_scheduled(&system, &overheads).expect("P-EDF is covered");
    let broken = best_scheduled_mutant(&system, &overheads, Mutant::ReleaseJitter).expect("P-EDF is covered");
    assert!(!found.proved[place] && broken.schedulable, "{found:?}\n{broken:?}");
    let mut taken = Taken::default();
    taken.latency = latency;
    let responses = |seed| {
        let config = Config::default().with_offsets(Offsets::File).with_seed(seed).with_taken(taken.clone());
        let mut simulation = Simulation::new(&system, &config, ());
        simulation.run_until(Instant::from_ns(900));
        simulation.observations()[place]
    };
    let late = (0..20_000).find(|&seed| responses(seed).misses > 0);
    println!("late in schedule {late:?}");
    let response = late.and_then(|seed| responses(seed).response);
    // 64 of `h`, 2 of `i`, 8 in which `i` spins, 209 of its own, and 30 of a late release.
    assert_eq!(response, Some(Duration::from_ns(313)));
}
