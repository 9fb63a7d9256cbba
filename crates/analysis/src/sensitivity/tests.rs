//! What is found from one fixed point to the next is what each form by itself gives.

use super::*;
use fastrand::Rng;
use lockwright_model::{CpuId, Priority, Resource};

/// A small system with short times, so that a few nanoseconds decide.
fn drawn(random: &mut Rng) -> System {
    let cpus = random.usize(1..=3);
    let count = random.usize(cpus..=7);
    let resources = random.usize(1..=3);
    let locks = [Protocol::None, Protocol::Pip, Protocol::Icpp, Protocol::Mpcp];
    let list: Vec<Resource> = (0..resources)
        .map(|index| Resource {
            name: format!("r{index}"),
            protocol: (random.u8(0..10) == 0).then(|| locks[random.usize(0..locks.len())]),
            ceiling: (random.u8(0..20) == 0).then(|| Priority::base(20)),
            ..Resource::default()
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
}

/// Compares so many systems. Says what differs first.
fn compare(systems: u32, seed: u64) -> Result<Seen, String> {
    let protocols = [
        Protocol::None,
        Protocol::Pip,
        Protocol::Icpp,
        Protocol::Pcp,
        Protocol::Srp,
        Protocol::Mpcp,
        Protocol::Mpcp,
        Protocol::Mpcp,
    ];
    let mut random = Rng::with_seed(seed);
    let mut seen = Seen::default();
    for number in 0..systems {
        let system = drawn(&mut random);
        let protocol = protocols[random.usize(0..protocols.len())];
        let none = Overheads::default();
        let whole = 1 + 2 * system.tasks().len() + system.resources().len();
        let progress = Progress { found: Cell::new(0), whole, go_on: RefCell::new(|_, _| true) };
        if has_hazard(&system, protocol) {
            continue;
        }
        let Some(tables) = joint_tables(&system, &none, protocol) else { continue };
        let known = plain(&system, &none, protocol, &progress).ok_or("it was stopped")?;
        let found = forms::find(&tables, protocol, &progress).ok_or("it was stopped")?;
        if known != found {
            return Err(format!("{number}: {protocol}: {known:?} is found as {found:?} in {system:?}"));
        }
        seen.coupled += u32::from(tables.suspensions.iter().any(|&count| count > 0));
        for growth in found.tasks.iter().map(|(_, growth)| growth).chain(found.resources.iter().map(|(_, g)| g)) {
            match growth {
                Growth::Permille(1001..) => seen.grows += 1,
                Growth::Permille(..1000) => seen.shrinks += 1,
                Growth::Broken => seen.broken += 1,
                Growth::Permille(1000) | Growth::Unlimited => {}
            }
        }
        seen.tolerates +=
            found.tolerated.iter().filter(|(_, most)| most.is_some_and(|most| most.as_ns() > 0)).count() as u32;
    }
    Ok(seen)
}

#[test]
fn from_point_to_point_is_as_from_the_beginning() {
    let seen = compare(600, 11).unwrap_or_else(|difference| panic!("{difference}"));
    assert!(seen.grows > 200 && seen.shrinks > 20 && seen.broken > 20, "{seen:?}");
    assert!(seen.tolerates > 200 && seen.coupled > 60, "{seen:?}");
}

#[test]
#[ignore = "a minute"]
fn from_point_to_point_is_as_from_the_beginning_of_many() {
    println!("{:?}", compare(50_000, 12).unwrap_or_else(|difference| panic!("{difference}")));
}
