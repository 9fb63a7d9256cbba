//! Under `mpcp`, a job waits for an owner on its own processor that a less urgent task preempts there. Random systems
//! hardly ever show it: owners must stand before the job in the queue more than once.

use fastrand::Rng;
use lockwright_analysis::{Analysis, Mutant, analyse, tighten, tighten_mutant};
use lockwright_model::format::{parse_system, write_system};
use lockwright_model::{Duration, Instant, Priority, Protocol, Step, System};
use lockwright_sim::{Config, Simulation};
use lockwright_study::{Excess, hold};

/// The number of schedules of each system.
const RUNS: usize = 8;

fn system() -> System {
    parse_system(include_str!("counterexamples/mpcp-own-owners.toml")).expect("a valid system")
}

fn tightened(system: &System) -> Analysis {
    let mut analysis = analyse(system, Protocol::Mpcp);
    tighten(system, &mut analysis).expect("programs cover these systems");
    analysis
}

fn broken(system: &System) -> Analysis {
    let mut analysis = analyse(system, Protocol::Mpcp);
    tighten_mutant(system, &mut analysis, Mutant::OwnOwners).expect("programs cover these systems");
    analysis
}

/// Returns the system with other sections, priorities and copies of tasks.
fn varied(random: &mut Rng, system: &System) -> System {
    let mut tasks = system.tasks().to_vec();
    for _ in 0..random.usize(0..=2) {
        let copied = random.usize(1..tasks.len());
        let mut copy = tasks[copied].clone();
        copy.name = format!("{}-{}", copy.name, tasks.len());
        tasks.push(copy);
    }
    for task in &mut tasks {
        let sections = task.body.iter().filter(|step| matches!(step, Step::Lock(_))).count();
        if sections > 1 {
            task.body.truncate(3 * random.usize(1..=sections));
        }
        let is_less_urgent = task.name.starts_with('l');
        let mut wcet = Duration::ZERO;
        for step in &mut task.body {
            if let Step::Run(time) = step {
                *time = Duration::from_ns(random.u64(1..=if is_less_urgent { 60 } else { 8 }));
                wcet += *time;
            }
        }
        let period = Duration::from_ns(random.u64(1_000..4_000));
        (task.wcet, task.period, task.deadline) = (wcet, period, period);
        task.offset = Duration::from_ns(if task.name.starts_with('z') { 900 } else { random.u64(0..10) });
        // Neighbours can become equal, and copies differ.
        let level = 3 * task.priority.level() + random.u32(0..5);
        task.priority = Priority::base(level.max(1));
    }
    System::new("varied".into(), system.cpus(), None, system.resources().to_vec(), tasks).expect("a valid system")
}

fn attack(system: &System, analysis: &Analysis, random: &mut Rng) -> Option<Excess> {
    (0..RUNS).find_map(|_| {
        let config = Config::default().with_protocol(Protocol::Mpcp).with_seed(random.u64(..)).with_shuffle(true);
        let mut simulation = Simulation::new(system, &config, ());
        simulation.run_until(Instant::from_ns(4_000));
        hold(analysis, &simulation.observations(), &simulation.ages())
    })
}

#[test]
fn a_section_that_preempts_an_owner_of_the_own_processor_is_counted() {
    let system = system();
    let mut simulation = Simulation::new(&system, &Config::default(), ());
    simulation.run_until(Instant::from_ns(9_999));
    let seen = simulation.observations();
    assert_eq!(seen[0].response, Some(Duration::from_ns(506)));
    let of_hold = |analysis: &Analysis| hold(analysis, &seen, &simulation.ages());
    assert_eq!(of_hold(&analyse(&system, Protocol::Mpcp)), None);
    assert_eq!(of_hold(&tightened(&system)), None);
    let bound = broken(&system).tasks[0].response;
    assert_eq!(bound, Some(Duration::from_ns(225)), "as in the published program");
    assert!(of_hold(&broken(&system)).is_some());
}

#[test]
fn bounds_of_such_systems_hold() {
    let system = system();
    let mut lowered = 0;
    for seed in 0..crate::attacked::sets(20_000) {
        let mut random = Rng::with_seed(seed);
        let varied = varied(&mut random, &system);
        let analysis = tightened(&varied);
        lowered += u64::from(analysis.tasks[0].response < analyse(&varied, Protocol::Mpcp).tasks[0].response);
        if let Some(excess) = attack(&varied, &analysis, &mut random) {
            panic!("seed {seed}: {excess:?}\n{analysis:#?}\n{}", write_system(&varied));
        }
    }
    println!("{lowered} bounds are below the classic one");
    assert!(lowered > 100, "{lowered}");
    let mut caught = (0..1_000).filter(|&seed| {
        let mut random = Rng::with_seed(seed);
        let varied = varied(&mut random, &system);
        attack(&varied, &broken(&varied), &mut random).is_some()
    });
    let first = caught.next();
    println!("without the term: caught at set {first:?}, and {} times more", caught.count());
    assert!(first.is_some(), "the term was omitted, and no schedule shows it");
}
