//! P-EDF with long resources: no simulated job of a random system misses a deadline that is proved. A proof without one
//! of its terms is refuted.

use crate::global_resources_hold::show;
use fastrand::Rng;
use lockwright_analysis::{Mutant, Untested, scheduled, scheduled_mutant};
use lockwright_model::format::{parse_system, write_system};
use lockwright_model::{Cost, Duration, Instant, Overhead, Overheads, Protocol, Scheduler, System};
use lockwright_sim::{Config, Offsets, Simulation};
use lockwright_study::{Shape, generate};

/// Resources of one processor are under SRP, and the others are long; this share, in percent, is wait-free.
fn drawn(seed: u64, wait_free: u8) -> (System, Rng) {
    let mut random = Rng::with_seed(seed);
    let shape = Shape {
        cpus: (1, 3),
        tasks: (2, 8),
        resources: (1, 4),
        nested: 0,
        jitter: 0,
        shuffled: 0,
        own_ceiling: 0,
        own_protocol: (wait_free, vec![Protocol::WaitFree]),
        utilization: (15, 85),
        sections: (0, 3),
        section: [4, 12, u64::MAX][random.usize(..3)],
        ..Shape::small()
    };
    (generate(&mut random, &shape).under(Scheduler::PEdf).with_protocol(Protocol::FmlpLong), random)
}

fn is_long(system: &System) -> bool {
    system.has_global_locks(Protocol::FmlpLong)
}

#[test]
fn no_proved_deadline_is_missed() {
    let sets = crate::attacked::sets(100_000);
    // About two fifths of them have long resources.
    let (mut long, mut proved, mut waited) = (0, 0, 0);
    for seed in 0..sets {
        let (system, mut random) = drawn(seed, if seed % 2 == 0 { 0 } else { 30 });
        if !is_long(&system) {
            continue;
        }
        let found = scheduled(&system, &Overheads::default()).expect("covered");
        long += 1;
        if !found.proved.contains(&true) {
            continue;
        }
        let shown = show(&system, &found, Duration::ZERO, &mut random);
        proved += 1;
        waited += u64::from(shown.has_waited);
        assert_eq!(shown.exceeds, None, "seed {seed}: {found:?}\n{}", write_system(&system));
    }
    println!("{proved} of {long} systems with proved tasks, {waited} with waits");
    assert!(proved > sets / 20 && waited > sets / 40, "{proved}, {waited}");
}

/// The mutants that random systems refute.
#[test]
fn a_proof_without_a_term_is_refuted() {
    for mutant in [Mutant::Waiting, Mutant::Stretch, Mutant::Repeats, Mutant::Boosted, Mutant::LocalIcpp] {
        let refuted = (0..400_000).find(|&seed| {
            let (system, mut random) = drawn(seed, 0);
            if !is_long(&system) {
                return false;
            }
            let found = scheduled(&system, &Overheads::default()).expect("covered");
            let broken = scheduled_mutant(&system, &Overheads::default(), mutant).expect("covered");
            found.proved != broken.proved && show(&system, &broken, Duration::ZERO, &mut random).exceeds.is_some()
        });
        println!("without {mutant:?}: refuted at set {refuted:?}");
        assert!(refuted.is_some(), "{mutant:?} was omitted, and no schedule shows it");
    }
}

/// `a` resumes while `c` is in a section whose ceiling holds it up, although the deadline of `c` is relatively shorter.
const RESUMES: &str = r#"
    protocol = "fmlp_long"
    [platform]
    cpus = 2
    scheduler = "p-edf"
    priorities = "rate-monotonic"
    [[resource]]
    name = "long"
    [[resource]]
    name = "own"
    [[task]]
    name = "a"
    cpu = 0
    period = "1 us"
    deadline = "DUE ns"
    offset = "1 ns"
    body = [{ lock = "long" }, { run = "2 ns" }, { unlock = "long" }, { run = "5 ns" }]
    [[task]]
    name = "c"
    cpu = 0
    period = "1 us"
    deadline = "200 ns"
    offset = "2 ns"
    body = [{ lock = "own" }, { run = "40 ns" }, { unlock = "own" }]
    [[task]]
    name = "d"
    cpu = 0
    period = "10 us"
    deadline = "100 ns"
    offset = "5 us"
    body = [{ lock = "own" }, { run = "1 ns" }, { unlock = "own" }]
    [[task]]
    name = "b"
    cpu = 1
    period = "1 us"
    body = [{ lock = "long" }, { run = "20 ns" }, { unlock = "long" }]
"#;

/// The mutant that random systems hardly refute.
#[test]
fn a_job_that_resumes_meets_a_section_of_its_processor() {
    // The wait until 20, the section until 22, the rest of that of `c` until 44, and the end at 49.
    let of = |due: u64| parse_system(&RESUMES.replace("DUE", &due.to_string())).expect("a valid system");
    let system = of(150);
    let mut simulation = Simulation::new(&system, &Config::default().with_offsets(Offsets::File), ());
    simulation.run_until(Instant::from_ns(900));
    assert_eq!(simulation.observations()[0].response, Some(Duration::from_ns(48)));
    let proves = |mutant: Option<Mutant>, due: u64| match mutant {
        Some(mutant) => scheduled_mutant(&of(due), &Overheads::default(), mutant).expect("covered").proved[0],
        None => scheduled(&of(due), &Overheads::default()).expect("covered").proved[0],
    };
    let refuted = (30..48).find(|&due| proves(Some(Mutant::Resumption), due));
    println!("without the section: proved with a deadline of {refuted:?}");
    assert!(refuted.is_some() && (30..48).all(|due| !proves(None, due)));
}

/// What is not covered is said.
#[test]
fn mixes_and_overheads_are_refused() {
    let system = parse_system(&RESUMES.replace("DUE", "150")).expect("a valid system");
    let mut overheads = Overheads::default();
    overheads.set(Overhead::ReleaseLatency, Cost::constant(Duration::from_ns(1)));
    let refused = scheduled(&system, &overheads).expect_err("not covered");
    assert!(matches!(refused, Untested::Uncharged(_)), "{refused:?}");
    let mixed = RESUMES.replace("DUE", "150").replace("name = \"own\"", "name = \"own\"\nprotocol = \"msrp\"");
    let other = "{ unlock = \"long\" }, { lock = \"own\" }, { run = \"1 ns\" }, { unlock = \"own\" }]";
    let mixed = mixed.replace("{ unlock = \"long\" }]", other);
    let refused = scheduled(&parse_system(&mixed).expect("a valid system"), &Overheads::default());
    assert!(matches!(refused, Err(Untested::Mixed(..))), "{refused:?}");
}
