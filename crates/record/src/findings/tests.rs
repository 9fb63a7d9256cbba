//! Scripted runs of three threads.

use super::{Findings, INVERSION_MIN_NS};
use crate::event::{Event, EventKind, Policy, Stop};
use crate::recording::{MutexProtocol, Object, ObjectKind, Recording, Site, Thread};
use lockwright_model::Mode;

const CAMERA: u32 = 0;
const PLANNER: u32 = 1;
const LOGGER: u32 = 2;
const US: u64 = 1_000;

fn recording(priorities: [u8; 3], script: &[(u64, u32, EventKind)]) -> Recording {
    let threads = ["camera", "planner", "logger"];
    let begin =
        (0..).zip(priorities).map(|(thread, priority)| (0, thread, EventKind::Scheduling(Policy::Fifo(priority))));
    let events = begin.chain(script.iter().copied());
    let mutex = ObjectKind::Mutex { protocol: MutexProtocol::None, recursive: false };
    let object = |symbol: &str| Object { address: 0, kind: mutex, site: None, symbol: Some(symbol.into()) };
    Recording {
        length_ns: script.last().map_or(0, |(at_ns, ..)| *at_ns),
        threads: threads.map(|name| Thread { name: name.into(), ..Thread::default() }).into(),
        objects: ["bus", "log", "gate"].map(object).into(),
        sites: vec![Site { address: 1, name: Some("fetch (camera.c:41)".into()) }],
        events: events.map(|(at_ns, thread, kind)| Event { at_ns, thread, kind }).collect(),
        complete: true,
        switches: true,
        ..Recording::default()
    }
}

fn lock(object: u32) -> EventKind {
    EventKind::Locked { object, mode: Mode::Write, site: 0, tried: false }
}

fn request(object: u32) -> EventKind {
    EventKind::Request { object, mode: Mode::Write, site: 0 }
}

fn unlock(object: u32) -> EventKind {
    EventKind::Unlock { object }
}

const OUT: EventKind = EventKind::SwitchOut(Stop::Suspended);
const PREEMPTED: EventKind = EventKind::SwitchOut(Stop::Preempted);

fn on(cpu: u32) -> EventKind {
    EventKind::SwitchIn { cpu }
}

/// The logger holds the bus; the camera waits for it; the planner executes for 2,700 us on the CPU `planners`.
fn inversion(priorities: [u8; 3], planners: u32) -> Recording {
    recording(
        priorities,
        &[
            (0, LOGGER, on(0)),
            (10 * US, LOGGER, lock(0)),
            (100 * US, LOGGER, PREEMPTED),
            (100 * US, CAMERA, on(0)),
            (110 * US, CAMERA, request(0)),
            (110 * US, CAMERA, OUT),
            (110 * US, PLANNER, on(planners)),
            (2_810 * US, PLANNER, OUT),
            (2_810 * US, LOGGER, on(0)),
            (3_210 * US, LOGGER, unlock(0)),
            (3_210 * US, LOGGER, PREEMPTED),
            (3_210 * US, CAMERA, on(0)),
            (3_210 * US, CAMERA, lock(0)),
            (3_300 * US, CAMERA, unlock(0)),
        ],
    )
}

#[test]
fn an_inversion_is_told_with_its_three_parties() {
    let recording = inversion([30, 20, 10], 0);
    let findings = Findings::of(&recording, Some(399 * US));
    assert_eq!(
        findings.sentences(&recording),
        [
            "inversion: once, worst 3.1 ms: `camera` waited for `logger` while `planner` ran; inheritance would have \
             bounded it to 400 us",
            "longest wait: `camera` waited 3.1 ms for `bus` at fetch (camera.c:41), held by `logger`, which locked it \
             at fetch (camera.c:41)",
            "long section: `logger` held `bus`, locked at fetch (camera.c:41), once, up to 490 us of CPU time and 3.2 \
             ms of time",
        ]
    );
    let found = &findings.inversions[0];
    assert_eq!((found.waiter, found.holder, &found.between[..]), (CAMERA, LOGGER, &[PLANNER][..]));
    assert_eq!((found.worst_ns, found.worst_at_ns, found.inherited_ns), (3_100 * US, 110 * US, 400 * US));
}

#[test]
fn other_waits_are_no_inversions() {
    let told = |recording: &Recording| !Findings::of(recording, None).inversions.is_empty();
    assert!(told(&inversion([30, 20, 10], 0)));
    // The planner is as urgent as the camera, or less urgent than the logger, or executes elsewhere.
    assert!(!told(&inversion([30, 30, 10], 0)));
    assert!(!told(&inversion([30, 9, 10], 0)));
    assert!(!told(&inversion([30, 20, 10], 1)));
    // The logger is as urgent as the camera.
    assert!(!told(&inversion([30, 20, 30], 0)));
    // The logger executes on its CPU as soon as the camera waits, or nearly so.
    let mut short = inversion([30, 20, 10], 0);
    for event in &mut short.events {
        if event.at_ns == 2_810 * US {
            event.at_ns = 110 * US + INVERSION_MIN_NS - 1;
        }
    }
    assert!(!told(&short));
}

#[test]
fn a_holder_that_sleeps_is_not_displaced() {
    // The logger suspends inside its section, and the planner uses its CPU.
    let mut asleep = inversion([30, 20, 10], 0);
    for event in asleep.events.iter_mut().filter(|event| event.at_ns == 100 * US && event.thread == LOGGER) {
        event.kind = OUT;
    }
    assert_eq!(Findings::of(&asleep, None).inversions, []);
    // It wakes up 1,000 us before the planner stops.
    let before = asleep.events.iter().position(|event| event.at_ns == 2_810 * US).unwrap();
    let woken = EventKind::Wakeup { by: None };
    asleep.events.insert(before, Event { at_ns: 1_810 * US, thread: LOGGER, kind: woken });
    assert_eq!(Findings::of(&asleep, None).inversions[0].inherited_ns, 2_100 * US);
}

#[test]
fn a_lost_unlock_does_not_keep_a_lock_held() {
    let holder = |first, second, recursive| {
        let script = [
            (0, first, lock(0)),
            (10, second, lock(0)),
            (20, second, unlock(0)),
            (30, PLANNER, request(0)),
            (40, PLANNER, OUT),
        ];
        let mut recording = recording([3, 2, 1], &script);
        recording.objects[0].kind = ObjectKind::Mutex { protocol: MutexProtocol::None, recursive };
        Findings::of(&recording, None).waits[0].holder
    };
    // The first unlock of the logger is lost.
    assert_eq!(holder(LOGGER, CAMERA, false), None);
    assert_eq!(holder(LOGGER, LOGGER, false), None);
    assert_eq!(holder(LOGGER, CAMERA, true), None);
    // It locked twice and unlocked once.
    assert_eq!(holder(LOGGER, LOGGER, true), Some((LOGGER, 0)));
}

#[test]
fn an_inversion_is_found_through_a_chain() {
    // The camera waits for the planner, which waits for the logger: thread 3 executes in its place.
    let mut chain = recording(
        [30, 25, 10],
        &[
            (0, LOGGER, on(0)),
            (0, LOGGER, lock(1)),
            (10 * US, LOGGER, PREEMPTED),
            (10 * US, PLANNER, on(0)),
            (10 * US, PLANNER, lock(0)),
            (20 * US, PLANNER, request(1)),
            (20 * US, PLANNER, OUT),
            (20 * US, CAMERA, on(0)),
            (30 * US, CAMERA, request(0)),
            (30 * US, CAMERA, OUT),
            (30 * US, 3, on(0)),
            (530 * US, 3, OUT),
            (530 * US, LOGGER, on(0)),
            (600 * US, LOGGER, unlock(1)),
        ],
    );
    chain.threads.push(Thread { name: "other".into(), ..Thread::default() });
    chain.events.insert(0, Event { at_ns: 0, thread: 3, kind: EventKind::Scheduling(Policy::Fifo(20)) });
    let inversions = Findings::of(&chain, None).inversions;
    let parties: Vec<_> = inversions.iter().map(|found| (found.waiter, found.holder, found.between[0])).collect();
    assert_eq!(parties, [(PLANNER, LOGGER, 3), (CAMERA, LOGGER, 3)]);
}

/// Two threads that lock two locks in these orders, one after the other, inside a third one if it is given.
fn orders(threads: [u32; 2], orders: [[u32; 2]; 2], gate: Option<u32>, mode: Mode) -> Recording {
    let mut script = Vec::new();
    for (turn, (thread, order)) in (0..).zip(threads.into_iter().zip(orders)) {
        script.push((turn * 100, thread, on(0)));
        script.extend(gate.map(|gate| (turn * 100, thread, lock(gate))));
        for object in order {
            script.push((turn * 100 + 10, thread, EventKind::Locked { object, mode, site: 0, tried: false }));
        }
        script.extend(order.map(|object| (turn * 100 + 20, thread, unlock(object))));
        script.extend(gate.map(|gate| (turn * 100 + 20, thread, unlock(gate))));
        script.push((turn * 100 + 30, thread, OUT));
    }
    recording([3, 2, 1], &script)
}

#[test]
fn only_cycles_that_can_deadlock_are_told() {
    let cycles = |threads, of, gate, mode| Findings::of(&orders(threads, of, gate, mode), None).cycles.len();
    let (apart, circle) = ([CAMERA, LOGGER], [[0, 1], [1, 0]]);
    assert_eq!(cycles(apart, circle, None, Mode::Write), 1);
    // One order; one thread; a lock around both; readers.
    assert_eq!(cycles(apart, [[0, 1], [0, 1]], None, Mode::Write), 0);
    assert_eq!(cycles([CAMERA, CAMERA], circle, None, Mode::Write), 0);
    assert_eq!(cycles(apart, circle, Some(2), Mode::Write), 0);
    assert_eq!(cycles(apart, circle, None, Mode::Read), 0);
    let recording = orders(apart, circle, None, Mode::Write);
    let sentences = Findings::of(&recording, None).sentences(&recording);
    assert_eq!(
        sentences,
        [
            "possible deadlock: `camera` holds `bus` and locks `log` at fetch (camera.c:41); `logger` holds `log` and \
             locks `bus` at fetch (camera.c:41)",
            "uncontended: 2 of 2 locks were never waited for",
        ]
    );
}

#[test]
fn readers_wait_for_writers_only() {
    use Mode::{Read, Write};
    // Each of two threads locks these objects in this order; the number of cycles.
    let cycles = |of: [&[(u32, Mode)]; 2]| {
        let mut script = Vec::new();
        for (at_ns, (thread, locks)) in (0..).step_by(100).zip([CAMERA, LOGGER].into_iter().zip(of)) {
            script.extend(
                locks
                    .iter()
                    .map(|&(object, mode)| (at_ns, thread, EventKind::Locked { object, mode, site: 0, tried: false })),
            );
            script.extend(locks.iter().rev().map(|&(object, _)| (at_ns + 10, thread, unlock(object))));
        }
        Findings::of(&recording([3, 2, 1], &script), None).cycles.len()
    };
    // Both only read one of the locks, where the chain continues and where the circle closes.
    assert_eq!(cycles([&[(0, Write), (1, Read)], &[(1, Read), (0, Write)]]), 0);
    assert_eq!(cycles([&[(0, Read), (1, Write)], &[(1, Write), (0, Read)]]), 0);
    // A reader of both against a writer of both.
    assert_eq!(cycles([&[(0, Read), (1, Read)], &[(1, Write), (0, Write)]]), 1);
    assert_eq!(cycles([&[(0, Write), (1, Write)], &[(1, Read), (0, Read)]]), 1);
    // A lock around both keeps them apart, unless both only read it.
    let behind = |one, other| cycles([&[(2, one), (0, Write), (1, Write)], &[(2, other), (1, Write), (0, Write)]]);
    assert_eq!((behind(Read, Write), behind(Write, Read), behind(Write, Write), behind(Read, Read)), (0, 0, 0, 1));
}

#[test]
fn an_attempt_waits_for_nobody() {
    // Both threads lock one object and try the other, as `std::lock` does; or only one of them tries.
    let cycles = |attempts: [bool; 2]| {
        let mut script = Vec::new();
        for (at_ns, (thread, (order, tried))) in
            (0..).step_by(100).zip([CAMERA, LOGGER].into_iter().zip([[0, 1], [1, 0]].into_iter().zip(attempts)))
        {
            script.push((at_ns, thread, lock(order[0])));
            script.push((at_ns, thread, EventKind::Locked { object: order[1], mode: Mode::Write, site: 0, tried }));
            script.extend(order.map(|object| (at_ns + 10, thread, unlock(object))));
        }
        Findings::of(&recording([3, 2, 1], &script), None).cycles.len()
    };
    assert_eq!([[true, true], [true, false], [false, true], [false, false]].map(cycles), [0, 0, 0, 1]);
}

#[test]
fn three_threads_can_deadlock_on_three_locks() {
    let turn = |at_ns, thread, [outer, inner]: [u32; 2]| {
        [(at_ns, thread, lock(outer)), (at_ns + 1, thread, lock(inner))]
            .into_iter()
            .chain([(at_ns + 2, thread, unlock(inner)), (at_ns + 3, thread, unlock(outer))])
    };
    let script: Vec<_> = turn(0, 0, [0, 1]).chain(turn(10, 1, [1, 2])).chain(turn(20, 2, [2, 0])).collect();
    let findings = Findings::of(&recording([3, 2, 1], &script), None);
    assert_eq!(findings.cycles.len(), 1);
    assert_eq!(findings.cycles[0].steps.iter().map(|step| step.thread).collect::<Vec<_>>(), [0, 1, 2]);
}

/// A thread that locks 3,000 mutexes, each inside those before, and another one that locks the first two in the other
/// order.
#[test]
fn many_locks_inside_one_another_take_little_memory() {
    let script = (0..3_000).map(|object| (0, CAMERA, lock(object)));
    let script = script.chain((0..3_000).rev().map(|object| (10, CAMERA, unlock(object))));
    let behind = [(20, LOGGER, lock(1)), (20, LOGGER, lock(0)), (30, LOGGER, unlock(0)), (30, LOGGER, unlock(1))];
    let mut recording = recording([3, 2, 1], &script.chain(behind).collect::<Vec<_>>());
    recording.objects.resize(3_000, recording.objects[0].clone());
    let findings = Findings::of(&recording, None);
    assert_eq!((findings.cycles.len(), findings.left_out), (1, 2_935));
    let sentence = "possible deadlocks are not known for locks inside more than 64 others (2935 times)";
    assert!(findings.sentences(&recording).iter().any(|found| found == sentence));
}
