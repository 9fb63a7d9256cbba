//! An event looks at the tasks that it concerns alone. After it a pass over all of them must find nothing to do.

extern crate std;

use crate::{FmlpLong, Machine, MpcpVs, Mrsp, Omlp, Pcp, Srp};
use lockwright_model::{CPUS_MAX, CpuId, MpcpCeiling, Priority, ResourceId, TaskId};
use std::vec::Vec;

const TASKS: usize = 9;
const RESOURCES: usize = 4;

/// Under Miri, which only looks for undefined behaviour, there are fewer.
const SEEDS: u64 = if cfg!(miri) { 1 } else { 400 };
const EVENTS: usize = if cfg!(miri) { 30 } else { 300 };

/// Tasks on three processors, each with a priority of its own.
fn draw(random: &mut fastrand::Rng) -> Vec<(Priority, CpuId)> {
    let mut levels: Vec<u32> = (1..=TASKS as u32).collect();
    random.shuffle(&mut levels);
    levels.into_iter().map(|level| (Priority::base(level), CpuId(random.u16(0..3)))).collect()
}

/// How many events of random ones were not refused, and how many actions there were besides grants.
fn drive<M: Machine + Clone>(
    random: &mut fastrand::Rng,
    machine: &mut M,
    changes: bool,
    mut settle_all: impl FnMut(&mut M) -> usize,
) -> (u32, u32) {
    let (mut events, mut actions) = (0, 0);
    for _ in 0..EVENTS {
        let (task, on) = (TaskId::new(random.usize(0..TASKS)), ResourceId::new(random.usize(0..RESOURCES)));
        let act = &mut |action| actions += u32::from(!matches!(action, crate::Action::Grant { .. }));
        let done = match random.u8(0..16) {
            0..4 => machine.request(task, on, act),
            4..9 => machine.release(task, on, act),
            9..11 => machine.arrive(task, act),
            11 => machine.finish(task, act),
            12..14 => machine.woken(task, act),
            14 => machine.cancel(task, act),
            _ if changes => machine.set_base(task, Priority::base(random.u32(1..=TASKS as u32)), act),
            _ => Ok(()),
        };
        events += u32::from(done.is_ok());
        assert_eq!(settle_all(&mut machine.clone()), 0, "something is left to do");
    }
    (events, actions)
}

macro_rules! settled {
    ($($name:ident: $changes:literal, |$tasks:ident, $random:ident| $machine:expr;)*) => {$(
        #[test]
        fn $name() {
            let (mut events, mut actions) = (0, 0);
            for seed in 0..SEEDS {
                let mut random = fastrand::Rng::with_seed(seed);
                let ($tasks, $random) = (draw(&mut random), &mut random);
                let mut machine = $machine;
                let (more_events, more_actions) = drive($random, &mut machine, $changes, |machine| {
                    let mut found = 0;
                    machine.settle_all(&mut |_| found += 1);
                    found
                });
                (events, actions) = (events + more_events, actions + more_actions);
            }
            assert!(cfg!(miri) || events > 20_000 && actions > 4_000, "{events} events, {actions} actions");
        }
    )*};
}

settled! {
    mrsp: false, |tasks, random| {
        let mut users: Vec<Vec<TaskId>> = Vec::new();
        for _ in 0..RESOURCES {
            users.push((0..TASKS).filter(|_| random.u8(0..4) > 0).map(TaskId::new).collect());
        }
        Mrsp::<TASKS, RESOURCES>::new(&tasks, users.iter().map(|users| &users[..]))
    };
    pcp: false, |tasks, random| {
        let ceilings: Vec<_> = (0..RESOURCES).map(|_| Priority::base(random.u32(5..=9))).collect();
        Pcp::<TASKS, RESOURCES>::new(&tasks, &ceilings)
    };
    srp: false, |tasks, random| {
        let ceilings: Vec<_> = (0..RESOURCES).map(|_| Priority::base(random.u32(5..=9))).collect();
        Srp::<TASKS, RESOURCES>::new(&tasks, &ceilings)
    };
    fmlp_long: true, |tasks, _random| FmlpLong::<TASKS, RESOURCES>::new(&tasks, RESOURCES);
    mpcp_vs: true, |tasks, _random| {
        let ceiling = Priority::BASE_MAX.boosted();
        MpcpVs::<TASKS, RESOURCES>::new(&tasks, &[MpcpCeiling { home: CpuId(0), on_home: ceiling, elsewhere: ceiling }; RESOURCES])
    };
    omlp_on_single_processors: true, |tasks, _random| Omlp::<TASKS, RESOURCES>::new(&tasks, RESOURCES);
    omlp_in_clusters: true, |tasks, random| {
        let mut sizes = [1; CPUS_MAX];
        sizes[..3].fill_with(|| random.u8(1..=2));
        Omlp::<TASKS, RESOURCES>::new(&tasks, RESOURCES).with_clusters(sizes)
    };
}
