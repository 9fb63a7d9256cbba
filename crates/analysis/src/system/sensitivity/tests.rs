//! The fast searches find what bisection over whole analyses finds.

use super::bisection::{self, Subject, growth, tolerance};
use super::scale::{Part, halve, lengthened, scaled};
use super::*;
use fastrand::Rng;
use lockwright_model::format::parse_system;
use lockwright_model::{
    Cost, CpuId, Duration, ObjectKind, Overhead, Priority, Progress as OfObject, Resource, ResourceId, Step, Task,
    TaskId,
};

/// A small system with short times, so that a few nanoseconds decide.
fn drawn(random: &mut Rng) -> System {
    let cpus = random.usize(1..=3);
    let count = random.usize(cpus..=7);
    let resources = random.usize(1..=3);
    let locks = [Protocol::None, Protocol::Pip, Protocol::Icpp, Protocol::Mpcp];
    let list: Vec<Resource> = (0..resources)
        .map(|index| {
            let mut resource = Resource::new(format!("r{index}"));
            resource.protocol = (random.u8(0..10) == 0).then(|| locks[random.usize(0..locks.len())]);
            resource.ceiling = (random.u8(0..20) == 0).then(|| Priority::base(20));
            resource.object = random.bool().then_some(ObjectKind::Queue);
            resource
        })
        .collect();
    let tasks = (0..count)
        .map(|index| {
            let period = random.u64(20..200);
            let mut body = vec![Step::Run(Duration::from_ns(random.u64(1..6)))];
            for _ in 0..random.usize(0..=2) {
                let resource = ResourceId::new(random.usize(0..resources));
                let inner = ResourceId::new(resource.index() + 1);
                body.extend([Step::Lock(resource), Step::Run(Duration::from_ns(random.u64(1..6)))]);
                if random.u8(0..8) == 0 && inner.index() < resources {
                    body.extend([Step::Lock(inner), Step::Run(Duration::from_ns(1)), Step::Unlock(inner)]);
                }
                body.push(Step::Unlock(resource));
                if random.bool() {
                    body.push(Step::Run(Duration::from_ns(random.u64(1..4))));
                }
            }
            let runs = body.iter().filter_map(|step| if let Step::Run(time) = step { Some(*time) } else { None });
            let deadline = random.u64(period / 2..=period);
            Task {
                name: format!("t{index}"),
                cpu: CpuId::new(random.usize(0..cpus)),
                priority: Priority::base(random.u32(1..8)),
                period: Duration::from_ns(period),
                deadline: Duration::from_ns(deadline),
                jitter: Duration::from_ns(if random.u8(0..4) == 0 { random.u64(0..deadline / 4) } else { 0 }),
                offset: Duration::ZERO,
                wcet: runs.sum(),
                body,
            }
        })
        .collect();
    System::new("drawn".into(), cpus, None, list, tasks).expect("a valid system")
}

/// How often each kind of answer came.
#[derive(Default, Debug)]
struct Seen {
    grows: u32,
    shrinks: u32,
    broken: u32,
    tolerates: u32,
    coupled: u32,
    wide: u32,
    charged: u32,
}

impl Seen {
    fn count(&mut self, found: &Sensitivity) {
        for growth in found.tasks.iter().map(|(_, growth)| growth).chain(found.resources.iter().map(|(_, g)| g)) {
            match growth {
                Growth::Permille(1001..) => self.grows += 1,
                Growth::Permille(..1000) => self.shrinks += 1,
                Growth::Broken => self.broken += 1,
                Growth::Permille(1000) | Growth::Unlimited => {}
            }
        }
        self.tolerates +=
            found.tolerated.iter().filter(|(_, most)| most.is_some_and(|most| most.as_ns() > 0)).count() as u32;
    }
}

/// Those of `response.rs`; where resources are shared across processors only the last has bounds.
const JOINT: [Protocol; 8] = [
    Protocol::None,
    Protocol::Pip,
    Protocol::Icpp,
    Protocol::Pcp,
    Protocol::Srp,
    Protocol::Mpcp,
    Protocol::Mpcp,
    Protocol::Mpcp,
];

/// Those of `across.rs`.
const WIDE: [Protocol; 13] = [
    Protocol::FmlpLong,
    Protocol::FmlpPlus,
    Protocol::Omlp,
    Protocol::MpcpVs,
    Protocol::Dpcp,
    Protocol::Dflp,
    Protocol::FmlpShort,
    Protocol::Msrp,
    Protocol::Mrsp,
    Protocol::LockFree,
    Protocol::WaitFree,
    Protocol::PhaseFair,
    Protocol::TaskFair,
];

/// Overheads of a few nanoseconds.
fn drawn_overheads(random: &mut Rng) -> Overheads {
    let mut overheads = Overheads::default();
    for overhead in Overhead::ALL {
        if random.u8(0..4) == 0 {
            overheads.set(overhead, Cost::constant(Duration::from_ns(1)));
        }
    }
    for progress in [OfObject::LockFree, OfObject::WaitFree] {
        if random.bool() {
            overheads.set_object(ObjectKind::Queue, progress, Cost::constant(Duration::from_ns(random.u64(1..4))));
        }
    }
    overheads.tick_period = Duration::from_ns(random.u64(20..200));
    overheads.dedicated_interrupts = random.u8(0..8) == 0;
    overheads
}

/// Compares this number of systems under some of `protocols`, also with overheads. Returns the first difference as an
/// error.
fn compare(systems: u32, seed: u64, protocols: &[Protocol]) -> Result<Seen, String> {
    let mut random = Rng::with_seed(seed);
    let mut seen = Seen::default();
    for number in 0..systems {
        let system = drawn(&mut random).with_homes();
        let protocol = protocols[random.usize(0..protocols.len())];
        let overheads = &if number % 3 == 0 { drawn_overheads(&mut random) } else { Overheads::default() };
        let whole = 1 + 2 * system.tasks().len() + system.resources().len();
        let progress = Progress::new(whole, |_, _| true);
        if has_hazard(&system, protocol) {
            continue;
        }
        let Some(scale) = Scale::new(&system, overheads, protocol) else { continue };
        let Some(tables) = joint_tables(&scale) else { continue };
        let known = bisection::find(&system, overheads, protocol, &progress).ok_or("it was stopped")?;
        let found = match across::ruling(&tables) {
            Some(ruling) => {
                wide::find(&tables, &scale, ruling, &progress).ok_or("it was stopped")?.ok_or("it does not fit")?
            }
            None => forms::find(&tables, &scale, &progress).ok_or("it was stopped")?,
        };
        if known != found {
            return Err(format!("{number}: {protocol}: {known:?} is found as {found:?} in {system:?}, {overheads:?}"));
        }
        seen.charged += u32::from(!overheads.charges_nothing());
        seen.coupled += u32::from(tables.suspensions.iter().any(|&count| count > 0));
        seen.wide += u32::from(across::ruling(&tables).is_some());
        seen.count(&found);
    }
    Ok(seen)
}

/// Compares the search by intervals under partitioned EDF with bisection. Returns how often a task had room, how often
/// with overheads, and how often sections could grow.
fn compare_demands(systems: u32, seed: u64) -> Result<(u32, u32, u32), String> {
    let mut random = Rng::with_seed(seed);
    let (mut seen, mut with_sections, mut charged) = (0, 0, 0);
    let plain = |system: &System, overheads: &Overheads, part: Part| {
        let holds = |permille| {
            let form = scaled(system, part, permille);
            Some(form.is_some_and(|form| crate::scheduled(&form, overheads).is_ok_and(|found| found.schedulable)))
        };
        if holds(FACTOR_MAX) == Some(true) {
            return Growth::Unlimited;
        }
        Growth::Permille(halve((1000, FACTOR_MAX), holds).expect("not interrupted"))
    };
    let go_on = || true;
    for number in 0..systems {
        let system = drawn(&mut random).under(Scheduler::PEdf);
        let overheads = &if number % 4 == 1 { drawn_overheads(&mut random) } else { Overheads::default() };
        let subject = Subject::new(&system, overheads, Protocol::None);
        if has_hazard(&system, Protocol::None) || subject.holds_unchanged(&go_on) != Some(true) {
            continue;
        }
        let processors = demands::Processors::new(&system, overheads).ok_or("it is not covered")?;
        let mut rooms = Vec::new();
        for task in system.task_ids() {
            let (known, found) = (tolerance(&subject, task, &go_on).flatten(), processors.room(task, &go_on));
            if known != found {
                return Err(format!(
                    "{number}: room of {task:?}: {known:?} is found as {found:?} in {system:?}, {overheads:?}"
                ));
            }
            seen += u32::from(found > Some(0));
            charged += u32::from(found > Some(0) && !overheads.charges_nothing());
            rooms.extend(found);
        }
        let mut expected = Vec::new();
        let parts = [Part::All].into_iter().chain(system.task_ids().map(Part::Task));
        for part in parts.chain(system.resource_ids().map(Part::Sections)) {
            let (known, found) = (plain(&system, overheads, part), processors.growth(part, &rooms, &go_on));
            if Some(known) != found || (number % 4 < 2 && found != growth(&subject, part, &go_on)) {
                return Err(format!(
                    "{number}: growth of {part:?}: {known:?} is found as {found:?} in {system:?}, {overheads:?}"
                ));
            }
            let is_shared = |&resource: &ResourceId| system.is_global(resource);
            with_sections += u32::from(matches!(part, Part::Sections(resource) if is_shared(&resource)));
            expected.extend(found);
        }
        // The threads that share the search find the same.
        let all =
            demands::find(&system, overheads, &Progress::new(0, |_, _| true)).flatten().ok_or("it was stopped")?;
        let growths = [all.all].into_iter().chain(all.tasks.iter().map(|&(_, growth)| growth));
        let growths: Vec<Growth> = growths.chain(all.resources.iter().map(|&(_, growth)| growth)).collect();
        let tolerated: Vec<u64> = all.tolerated.iter().filter_map(|(_, most)| Some(most.as_ref()?.as_ns())).collect();
        if (&growths, &tolerated) != (&expected, &rooms) {
            return Err(format!("{number}: {expected:?}, {rooms:?} are found as {all:?} in {system:?}"));
        }
    }
    Ok((seen, charged, with_sections))
}

#[test]
fn room_in_intervals_is_as_each_form_by_itself_has_it() {
    let (seen, charged, with_sections) = compare_demands(3_000, 13).unwrap_or_else(|difference| panic!("{difference}"));
    assert!(seen > 500 && charged > 100 && with_sections > 100, "{seen}, {charged}, {with_sections}");
}

/// Blocking of forms that differ in one task is told from what is known of the system, whether its sections grow or
/// shrink.
#[test]
fn blocking_beside_a_task_is_that_of_its_form() {
    let mut random = Rng::with_seed(14);
    let (mut grown, mut shrunk, none) = (0, 0, Overheads::default());
    for number in 0..2_000 {
        let system = drawn(&mut random);
        let protocol = [Protocol::None, Protocol::Pip, Protocol::Icpp, Protocol::Mpcp][number % 4];
        if has_hazard(&system, protocol) {
            continue;
        }
        let Some(scale) = Scale::new(&system, &none, protocol) else { continue };
        let Some(tables) = joint_tables(&scale) else { continue };
        let shape = shape::Shape::new(&tables);
        let known = shape.locals();
        for task in system.task_ids() {
            let permille = random.u64(1..3_000);
            let Some(form) = scaled(&system, Part::Task(task), permille) else { continue };
            let all = locals::Locals::new(&shape, &tables, &form).blocking().expect("short sections");
            let before = known.blocking().expect("short sections");
            let place = shape.place(task);
            for above in 0..place {
                if shape.urgent(above).0 != shape.urgent(place).0 || shape.urgent(above).1 > place {
                    continue;
                }
                let found = known.beside(&shape, &tables, &form, place, above);
                assert_eq!(found, Some(all[above]), "{number}: {task:?} times {permille} in {system:?}");
                grown += u32::from(all[above] > before[above]);
                shrunk += u32::from(all[above] < before[above]);
            }
        }
    }
    assert!(grown > 100 && shrunk > 100, "{grown}, {shrunk}");
}

#[test]
fn from_point_to_point_is_as_from_the_beginning() {
    let seen = compare(600, 11, &JOINT).unwrap_or_else(|difference| panic!("{difference}"));
    assert!(seen.grows > 200 && seen.shrinks > 20 && seen.broken > 20, "{seen:?}");
    assert!(seen.tolerates > 200 && seen.coupled > 60 && seen.charged > 100, "{seen:?}");
}

#[test]
#[ignore = "a minute"]
fn from_point_to_point_is_as_from_the_beginning_of_many() {
    for protocols in [&JOINT[..], &WIDE] {
        println!("{:?}", compare(50_000, 12, protocols).unwrap_or_else(|difference| panic!("{difference}")));
    }
}

#[test]
fn across_processors_from_point_to_point_is_as_from_the_beginning() {
    let seen = compare(900, 15, &WIDE).unwrap_or_else(|difference| panic!("{difference}"));
    assert!(seen.grows > 200 && seen.shrinks > 20 && seen.broken > 20, "{seen:?}");
    assert!(seen.tolerates > 200 && seen.wide > 200 && seen.charged > 100, "{seen:?}");
}

/// Compares this number of systems whose processors share nothing, under interruptible sections. Returns how many have
/// no late processor, one, and several, and how many showed the progress within a processor.
fn compare_apart(systems: u32, seed: u64) -> Result<[u32; 4], String> {
    let mut random = Rng::with_seed(seed);
    let mut seen = [0; 4];
    for number in 0..systems {
        // Some processors miss deadlines.
        let load = random.u64(500..5_000);
        let Some(system) = scaled(&drawn(&mut random), Part::All, load) else { continue };
        let protocol = [Protocol::Ics, Protocol::IcsLock][number as usize % 2];
        let Some(processors) = apart::processors(&system, protocol) else { continue };
        if has_hazard(&system, protocol) {
            continue;
        }
        let known = bisection::find(&system, &Overheads::default(), protocol, &Progress::new(0, |_, _| true));
        let mut counts = Vec::new();
        let found = sensitivity(&system, &Overheads::default(), protocol, |count, whole| {
            counts.push((count, whole));
            true
        });
        if known != found {
            return Err(format!("{number}: {protocol}: {known:?} is found as {found:?} in {system:?}"));
        }
        let is_sorted = counts.is_sorted();
        counts.dedup();
        if !is_sorted {
            return Err(format!("{number}: {protocol}: the progress is {counts:?}"));
        }
        // It does not advance by whole processors.
        seen[3] += u32::from(counts.len() > processors.len() + 2);
        let bounds = analyse(&system, protocol);
        let is_late = |task: &TaskId| !bounds.tasks[task.index()].schedulable;
        let late = processors.iter().filter(|tasks| tasks.iter().any(is_late)).count();
        seen[late.min(2)] += 1;
    }
    Ok(seen)
}

#[test]
fn processors_that_share_nothing_are_searched_one_by_one() {
    let seen = compare_apart(2_000, 16).unwrap_or_else(|difference| panic!("{difference}"));
    assert!(seen.iter().all(|&count| count > 10), "{seen:?}");
}

#[test]
#[ignore = "a minute"]
fn processors_that_share_nothing_are_searched_one_by_one_in_many() {
    println!("{:?}", compare_apart(50_000, 17).unwrap_or_else(|difference| panic!("{difference}")));
}

/// Execution on another processor is jitter for less urgent tasks: that of `t3` at the home of `r`.
#[test]
fn growing_execution_elsewhere_delays_others() {
    let system = parse_system(
        r#"
        [platform]
        cpus = 2

        [[resource]]
        name = "r"
        home = 0

        [[task]]
        name = "t0"
        cpu = 0
        priority = 3
        period = "41 ns"
        deadline = "28 ns"
        body = [
            { run = "6 ns" }, { lock = "r" }, { run = "3 ns" }, { unlock = "r" },
            { lock = "r" }, { run = "1 ns" }, { unlock = "r" }, { run = "3 ns" },
        ]

        [[task]]
        name = "t1"
        cpu = 1
        priority = 4
        period = "18 ns"
        deadline = "9 ns"
        body = [{ run = "8 ns" }]

        [[task]]
        name = "t2"
        cpu = 1
        priority = 1
        period = "86 ns"
        deadline = "53 ns"
        body = [{ run = "20 ns" }]

        [[task]]
        name = "t3"
        cpu = 1
        priority = 2
        period = "78 ns"
        body = [{ lock = "r" }, { run = "22 ns" }, { unlock = "r" }, { run = "14 ns" }]
        "#,
    )
    .expect("a valid task set");
    let found = sensitivity(&system, &Overheads::default(), Protocol::Dflp, |_, _| true).expect("not interrupted");
    let late = |permille| {
        let longer = scaled(&system, Part::Task(TaskId(3)), permille).expect("a valid system");
        analyse(&longer, Protocol::Dflp).tasks.iter().any(|task| !task.schedulable)
    };
    assert_eq!(found.tasks[3].1, Growth::Permille(409));
    assert!(!late(409) && late(410));
}

/// Compares this number of systems with clusters, also with overheads. Returns the first difference as an error.
fn compare_clusters(systems: u32, seed: u64) -> Result<Seen, String> {
    let mut random = Rng::with_seed(seed);
    let mut seen = Seen::default();
    for number in 0..systems {
        let Some(system) = drawn_clusters(&mut random) else { continue };
        let overheads = &if number % 3 == 0 { drawn_overheads(&mut random) } else { Overheads::default() };
        if has_hazard(&system, Protocol::Omlp) {
            continue;
        }
        let progress = Progress::new(0, |_, _| true);
        let Some(scale) = Scale::new(&system, overheads, Protocol::Omlp) else { continue };
        let known = bisection::find(&system, overheads, Protocol::Omlp, &progress).ok_or("it was stopped")?;
        let Some(found) = clusters::find(&scale, &progress).ok_or("it was stopped")? else { continue };
        if known != found {
            return Err(format!("{number}: {known:?} is found as {found:?} in {system:?}, {overheads:?}"));
        }
        seen.count(&found);
        seen.charged += u32::from(!overheads.charges_nothing());
        seen.wide += u32::from(system.resource_ids().any(|resource| system.is_global(resource)));
    }
    Ok(seen)
}

/// A small system whose processors are in clusters.
fn drawn_clusters(random: &mut Rng) -> Option<System> {
    let sizes: &[usize] = [&[2][..], &[3], &[2, 2], &[2, 1], &[1, 3]][random.usize(0..5)];
    let firsts: Vec<usize> = sizes.iter().scan(0, |next, size| Some(std::mem::replace(next, *next + size))).collect();
    let system = drawn(random);
    let mut tasks = system.tasks().to_vec();
    // Some clusters have more tasks than are summed up, or tried first, at once.
    if random.u8(0..10) == 0 {
        tasks.extend((0..20).map(|index| {
            let (wcet, period) = (Duration::from_ns(random.u64(1..6)), Duration::from_ns(random.u64(200..2_000)));
            Task {
                name: format!("other{index}"),
                cpu: CpuId::new(random.usize(0..3)),
                priority: Priority::base(random.u32(1..8)),
                period,
                deadline: period,
                wcet,
                body: vec![Step::Run(wcet)],
                ..system.tasks()[0].clone()
            }
        }));
    }
    let mut clusters = Vec::new();
    // Some windows are too long for the divisions of short numbers.
    let unit = if random.u8(0..5) == 0 { 1_000_000_007 } else { 1 };
    for task in &mut tasks {
        let cluster = task.cpu.index() % sizes.len();
        task.cpu = CpuId::new(firsts[cluster]);
        for time in [&mut task.period, &mut task.deadline, &mut task.jitter, &mut task.wcet] {
            *time = Duration::from_ns(time.as_ns() * unit);
        }
        for step in &mut task.body {
            if let Step::Run(time) = step {
                *time = Duration::from_ns(time.as_ns() * unit);
            }
        }
        clusters.push(((1 << sizes[cluster]) - 1) << firsts[cluster]);
    }
    let resources = system.resources().iter().map(|resource| Resource::new(resource.name.clone()));
    let system = System::new("drawn".into(), sizes.iter().sum(), None, resources.collect(), tasks).ok()?;
    // Some miss deadlines.
    let load = random.u64(800..3_000);
    scaled(&system, Part::All, load)?.in_clusters(&clusters).ok().filter(System::has_clusters)
}

#[test]
fn in_clusters_from_point_to_point_is_as_from_the_beginning() {
    let seen = compare_clusters(3_000, 18).unwrap_or_else(|difference| panic!("{difference}"));
    assert!(seen.grows > 1_000 && seen.shrinks > 20 && seen.broken > 20, "{seen:?}");
    assert!(seen.tolerates > 1_000 && seen.wide > 500 && seen.charged > 100, "{seen:?}");
}

/// Equal priorities raise each other's lags by a few nanoseconds in each round, over seconds.
#[test]
fn a_search_that_creeps_gives_up() {
    let task = |name: &str, priority: u32, period: u64, body: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\ncpus = [0, 1]\npriority = {priority}\nperiod = \"{period} ns\"\n\
             body = [{body}]\n"
        )
    };
    let run = |ns: u64| format!("{{ run = \"{ns} ns\" }}, ");
    let section = |of: &str, ns: u64| format!("{{ lock = \"{of}\" }}, {} {{ unlock = \"{of}\" }}, ", run(ns));
    let (first, second) = (section("r0", 1_700_000_011), section("r0", 1_000_000_007));
    let own = run(3_200_000_022);
    let body = format!("{own}{first}{own}{}{own}{second}{}", section("r2", 3_000_000_021), run(4_000_000_028));
    let text = "[platform]\ncpus = 2\nscheduler = \"c-fp\"\n".to_owned()
        + &["r0", "r2"].map(|name| format!("[[resource]]\nname = \"{name}\"\n")).concat()
        + &task(
            "t0",
            1,
            310_000_002_170,
            &(run(10_800_000_075) + &section("r0", 2_800_000_017) + &run(13_500_000_094)),
        )
        + "jitter = \"29959544061 ns\"\n"
        + &task(
            "t1",
            6,
            360_000_002_520,
            &(run(17_600_000_123) + &section("r2", 8_000_000_056) + &run(22_000_000_154)),
        )
        + &task("t2", 1, 130_000_000_910, &run(23_000_000_161))
        + &task("t3", 1, 190_000_001_330, &body);
    let system = parse_system(&text).expect("a valid task set");
    let progress = Progress::new(0, |_, _| true);
    let overheads = Overheads::default();
    let scale = Scale::new(&system, &overheads, Protocol::Omlp).expect("clusters");
    let found = clusters::find(&scale, &progress).expect("not interrupted").expect("covered");
    let Growth::Permille(all) = found.all else { panic!("{found:?}") };
    assert!(all > 1_000, "{found:?}");
    for (task, most) in &found.tolerated {
        let longer = lengthened(&system, *task, most.expect("it holds").as_ns()).expect("a valid system");
        assert!(analyse(&longer, Protocol::Omlp).schedulable(), "{task:?} {most:?}");
    }
}

#[test]
#[ignore = "a minute"]
fn in_clusters_from_point_to_point_is_as_from_the_beginning_of_many() {
    println!("{:?}", compare_clusters(50_000, 19).unwrap_or_else(|difference| panic!("{difference}")));
}
