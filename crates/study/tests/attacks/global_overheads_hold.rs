//! Overheads under global schedulers: if the simulated machine takes the times of an overheads file, no job of a random
//! system with resources is above its bound or misses a deadline that is proved with these overheads charged. Under the
//! FMLP, each cost shows if nothing is charged, and so does each charge that is omitted, except the interrupts in
//! sections under global EDF and `fmlp_short`.

use crate::overheads_hold::{
    HORIZON, HUNTED, RUNS, also, config, draw_overheads, executed, only, sets, with_working_sets,
};
use fastrand::Rng;
use lockwright_analysis::{ChargeMutant, Scheduled, scheduled, scheduled_without};
use lockwright_model::format::{write_overheads, write_system};
use lockwright_model::{Cost, Duration, Instant, Overhead, Overheads, Protocol, Scheduler, System};
use lockwright_sim::Simulation;
use lockwright_study::{Shape, generate};

/// The attacked combination: a scheduler, and the protocol of all resources.
type Subject = (Scheduler, Protocol);

const SUBJECTS: [Subject; 8] = [
    (Scheduler::GEdf, Protocol::FmlpShort),
    (Scheduler::GEdf, Protocol::FmlpLong),
    (Scheduler::GEdf, Protocol::LockFree),
    (Scheduler::GEdf, Protocol::WaitFree),
    (Scheduler::GFp, Protocol::FmlpShort),
    (Scheduler::GFp, Protocol::FmlpLong),
    (Scheduler::GFp, Protocol::LockFree),
    (Scheduler::GFp, Protocol::WaitFree),
];

fn drawn(subject: Subject, seed: u64) -> (System, Overheads, Rng) {
    draw(subject, seed, shape())
}

fn shape() -> Shape {
    Shape {
        cpus: (1, 3),
        tasks: (2, 8),
        resources: (1, 3),
        period: (150, 1_500),
        utilization: (15, 70),
        sections: (0, 3),
        section: 25,
        nested: 0,
        jitter: 0,
        shuffled: 0,
        own_ceiling: 0,
        own_protocol: (0, vec![]),
        ..Shape::small()
    }
}

fn draw((scheduler, protocol): Subject, seed: u64, shape: Shape) -> (System, Overheads, Rng) {
    let mut random = Rng::with_seed(seed);
    let system = generate(&mut random, &shape).under(scheduler).with_protocol(protocol);
    let overheads = draw_overheads(&mut random);
    (with_working_sets(system, &mut random), overheads, random)
}

/// Executes several schedules of a machine with these overheads. Returns the first task that is above its bound, or
/// late although its deadlines are proved, and whether any job waited or made a further attempt.
fn exceeded(
    system: &System,
    found: &Scheduled,
    protocol: Protocol,
    overheads: &Overheads,
    random: &mut Rng,
) -> (Option<usize>, bool) {
    let longest = system.tasks().iter().map(|task| task.period.as_ns()).max().unwrap_or(1);
    let mut has_waited = false;
    for run in 0..RUNS {
        let real = executed(system, overheads, |_| protocol, run.is_multiple_of(2));
        let config = config(&real, protocol, overheads, random, run);
        let mut simulation = Simulation::new(&real, &config, ());
        simulation.run_until(Instant::from_ns(longest * HORIZON));
        let (seen, ages) = (simulation.observations(), simulation.ages());
        has_waited |= seen.iter().any(|seen| seen.restarts > 0 || seen.lock_wait > Some(Duration::ZERO));
        let exceeds = |&task: &usize| {
            let response = seen[task].response.max(Some(ages[task]));
            found.proved[task] && (seen[task].misses > 0 || response > Some(system.tasks()[task].deadline))
                || found.responses[task].is_some_and(|bound| response > Some(bound))
        };
        if let Some(task) = (0..seen.len()).find(exceeds) {
            return (Some(task), has_waited);
        }
    }
    (None, has_waited)
}

#[test]
fn no_schedule_with_overheads_exceeds_a_bound() {
    for subject in SUBJECTS {
        let (mut bounded, mut waited, mut decisive) = (0, 0, 0);
        for seed in 0..sets() {
            let (system, overheads, mut random) = drawn(subject, seed);
            let Ok(found) = scheduled(&system, &overheads) else { continue };
            decisive += u64::from(
                !found.schedulable && scheduled(&system, &Overheads::default()).is_ok_and(|free| free.schedulable),
            );
            if !found.schedulable && found.responses.iter().all(Option::is_none) {
                continue;
            }
            bounded += 1;
            let (task, has_waited) = exceeded(&system, &found, subject.1, &overheads, &mut random);
            waited += u64::from(has_waited);
            let text = || format!("{found:?}\n{}\n{}", write_overheads(&overheads), write_system(&system));
            assert_eq!(task, None, "{subject:?}, seed {seed}: {}", text());
        }
        let all = sets();
        println!("{subject:?}: {bounded} of {all} bounded, {waited} waited; of {decisive} the overheads are decisive");
        assert!(bounded > all / 4 && decisive > all / 40, "{subject:?}: {bounded}, {decisive}");
        assert!(subject.1 == Protocol::WaitFree || waited > all / 20, "{subject:?}: {waited}");
    }
}

/// The mutants: one cost is not charged, and with that cost alone some job is late or above its bound.
#[test]
fn every_overhead_that_is_not_charged_is_noticed() {
    let mut missed = Vec::new();
    for subject in [SUBJECTS[0], SUBJECTS[1], SUBJECTS[4], SUBJECTS[5]] {
        for of in Overhead::ALL {
            let caught = (0..HUNTED).find(|&seed| {
                let (system, overheads, mut random) = drawn(subject, seed);
                let mut alone = only(&overheads, &[of]);
                // Large enough to show beside the slack that other charges leave.
                alone.set(of, Cost::constant(Duration::from_ns(8)));
                let Ok(free) = scheduled(&system, &Overheads::default()) else { return false };
                free.schedulable && exceeded(&system, &free, subject.1, &alone, &mut random).0.is_some()
            });
            println!("{subject:?}, {of:?}: noticed at set {caught:?}");
            missed.extend(caught.is_none().then_some((subject, of)));
        }
    }
    assert!(missed.is_empty(), "{missed:?} omitted, and no schedule shows it");
}

/// Returns the only costs with which a mutant is hunted, beside those of [`also`]. Returns `None` if it omits nothing
/// under these schedulers.
fn hunting_ground(mutant: ChargeMutant, subject: Subject) -> Option<&'static [Overhead]> {
    let suspends = subject.1 == Protocol::FmlpLong;
    Some(match mutant {
        // No schedule is known that shows these: the job that is not preempted at an arrival is charged as well.
        ChargeMutant::SectionInterrupts if subject == SUBJECTS[0] => return None,
        ChargeMutant::JobSwitches => &[Overhead::Schedule, Overhead::ContextSwitch],
        ChargeMutant::JobRefill => &[Overhead::CacheRefill],
        ChargeMutant::Lateness => &[Overhead::ReleaseLatency],
        ChargeMutant::Ticks => &[Overhead::Tick],
        ChargeMutant::Releases => &[Overhead::Release],
        ChargeMutant::Operations => &[Overhead::Lock, Overhead::Unlock, Overhead::SyscallIn, Overhead::SyscallOut],
        ChargeMutant::SectionSwitches if suspends => &[Overhead::Schedule, Overhead::ContextSwitch],
        ChargeMutant::SectionRefills if suspends => &[Overhead::CacheRefill],
        ChargeMutant::SectionInterrupts => &[Overhead::Tick],
        ChargeMutant::CacheDelay | ChargeMutant::ReleaseIpi | ChargeMutant::QueuedReleases => &[],
        ChargeMutant::SectionIpi if suspends => &[],
        // A spinning job does not switch. All costs of a request are in its section, no owner moves, sections contain
        // the interrupts of the processor that spins, there are no homes, and no section is inside another one.
        ChargeMutant::SectionSwitches
        | ChargeMutant::SectionRefills
        | ChargeMutant::SectionIpi
        | ChargeMutant::Before
        | ChargeMutant::Helped
        | ChargeMutant::BetweenSpins
        | ChargeMutant::Hosts
        | ChargeMutant::Guests
        | ChargeMutant::InnerSections => return None,
    })
}

#[test]
fn every_charge_that_is_omitted_is_noticed() {
    let mut missed = Vec::new();
    for subject in [SUBJECTS[0], SUBJECTS[1], SUBJECTS[4], SUBJECTS[5]] {
        for mutant in ChargeMutant::ALL {
            let Some(kept) = hunting_ground(mutant, subject) else { continue };
            let caught = (0..HUNTED).find(|&seed| {
                // Ticks in the sections of others show if a job waits for many long sections.
                let is_rare = mutant == ChargeMutant::SectionInterrupts;
                let shape = match is_rare {
                    true => Shape { resources: (1, 1), sections: (2, 3), section: u64::MAX, ..shape() },
                    false => shape(),
                };
                let (system, drawn, mut random) = draw(subject, seed, shape);
                let mut overheads = only(&drawn, kept);
                also(mutant, &mut overheads);
                let cost = Duration::from_ns(if is_rare { 20 } else { 8 });
                kept.iter().for_each(|&of| overheads.set(of, Cost::constant(cost)));
                let Ok(broken) = scheduled_without(&system, &overheads, mutant) else { return false };
                (broken.schedulable || broken.responses.iter().any(Option::is_some))
                    && exceeded(&system, &broken, subject.1, &overheads, &mut random).0.is_some()
            });
            println!("{subject:?} without {mutant:?}: noticed at set {caught:?}");
            missed.extend(caught.is_none().then_some((subject, mutant)));
        }
    }
    assert!(missed.is_empty(), "{missed:?} omitted, and no schedule shows it");
}
