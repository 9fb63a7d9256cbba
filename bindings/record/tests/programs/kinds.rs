//! One thing of each kind (`kinds.c`).

use super::support::{assert_within, build, object, record, steps, thread};
use lockwright_record::{
    Clock, Event, EventKind, MutexProtocol, ObjectId, ObjectKind, Policy, Recording, SiteId, Stop, ThreadIndex, Wait,
};
use std::io::Write;

fn recorded() -> Option<Recording> {
    Some(record(&build("kinds.c", &[])?, &[]))
}

/// Checks that what happens to an object is possible: a lock belongs to one writer, or to readers.
///
/// Panics with the event that is not.
fn assert_exclusive(recording: &Recording) {
    let mut holders: Vec<Vec<ThreadIndex>> = vec![Vec::new(); recording.objects.len()];
    for event in &recording.events {
        match event.kind {
            EventKind::Locked { object, mode, .. } => {
                let held = &mut holders[object as usize];
                let is_free = held.iter().all(|&holder| holder == event.thread);
                assert!(is_free || mode == lockwright_record::Mode::Read, "{held:?} hold the object: {event:?}");
                held.push(event.thread);
            }
            EventKind::Unlock { object } => {
                let held = &mut holders[object as usize];
                let own = held.iter().rposition(|&holder| holder == event.thread);
                held.remove(own.unwrap_or_else(|| panic!("{held:?} hold the object: {event:?}")));
            }
            // The owner of the robust mutex ends with it.
            EventKind::End => holders.iter_mut().for_each(|held| held.retain(|&holder| holder != event.thread)),
            _ => {}
        }
    }
}

#[test]
fn each_kind_of_lock_is_recorded() {
    let Some(recording) = recorded() else { return };
    let first = steps(&recording, "first");
    let locks = [
        "lock recursive",
        "lock recursive",
        "lock inherits",
        "unlock inherits",
        "unlock recursive",
        "unlock recursive",
        "lock spin",
        "unlock spin",
        "lock table",
        "unlock table",
        "join",
        "resumed",
        "lock robust",
        "unlock robust",
    ];
    assert_eq!(first[..locks.len() + 1][1..], locks);
    assert_eq!(steps(&recording, "dies"), ["start", "lock robust", "end"]);
    let other = ["start", "request plain", "lock plain", "unlock plain", "request table for reading"];
    let invalid = ["request table for reading", "refused table", "request table", "refused table"];
    let tried = ["try plain", "try table", "unlock table", "unlock plain"];
    let other = [&other[..], &["lock table for reading", "unlock table"], &invalid, &tried, &["end"]].concat();
    assert_eq!(steps(&recording, "contender"), other);
    assert_eq!(steps(&recording, "refused"), ["start", "request plain", "refused plain", "end"]);
    assert_eq!(steps(&recording, "eleven"), ["start", "lock eleven", "unlock eleven", "end"]);
    assert_exclusive(&recording);
}

#[test]
fn each_kind_of_wait_is_recorded() {
    let Some(recording) = recorded() else { return };
    let waiter = ["start", "lock plain", "unlock plain", "wait condition ready", "resumed", "lock plain"];
    let then = ["unlock plain", "wait semaphore posted", "resumed", "wait barrier meeting", "resumed", "end"];
    assert_eq!(steps(&recording, "waiter"), [waiter, then].concat());
    let first = steps(&recording, "first");
    assert_within(
        &first,
        &["lock plain", "signal ready", "unlock plain", "sleep 20000000", "resumed", "signal posted"],
    );
    let sleeps = ["sleep until", "resumed", "sleep until", "resumed", "sleep 1234567", "resumed", "sleep 1500000"];
    let timer = ["resumed", "yield", "resumed", "set timer 0", "wait timer", "expired 1", "resumed"];
    assert_within(&first, &[&sleeps[..], &timer].concat());
    assert_within(&first, &["initialise posted 0"]);
    // read, recv, recvfrom and poll have the number that the timer had; a poll that must not wait is no wait.
    let descriptor = |wait| if let Wait::Timer { descriptor } = wait { Some(descriptor) } else { None };
    let timer = waits(&recording).find_map(|(_, wait)| descriptor(wait)).expect("a timer");
    let input = format!("input {timer}");
    let repeated = [input.as_str(), "resumed"].repeat(3);
    let polls = [timer, timer + 2, -1].map(|descriptor| format!("poll {descriptor}"));
    let polls: Vec<&str> = polls.iter().flat_map(|poll| [poll.as_str(), "resumed"]).collect();
    assert_within(&first, &[&repeated[..], &polls, &["join"]].concat());
}

fn waits(recording: &Recording) -> impl Iterator<Item = (&Event, Wait)> {
    recording.events.iter().filter_map(|event| match event.kind {
        EventKind::Wait { wait, .. } => Some((event, wait)),
        _ => None,
    })
}

#[test]
fn absolute_sleeps_tell_the_instant() {
    let Some(recording) = recorded() else { return };
    for clock in [Clock::Monotonic, Clock::Realtime] {
        let until = |wait| match wait {
            Wait::SleepUntil { at_ns, clock: its } if its == clock => Some(at_ns),
            _ => None,
        };
        let (event, at_ns) = waits(&recording).find_map(|(event, wait)| Some((event, until(wait)?))).expect("a sleep");
        // The program adds 3 ms to the time, and then calls. A preemption in between shortens the sleep.
        let length_ns = at_ns - event.at_ns as i64;
        assert!((-1_000_000_000..=3_000_000).contains(&length_ns), "{clock:?}: {length_ns}");
        let is_end = |end: &&Event| end.thread == event.thread && end.at_ns > event.at_ns;
        let end = recording.events.iter().filter(is_end).find(|end| end.kind == EventKind::Resumed).expect("an end");
        assert!(end.at_ns as i64 >= at_ns - 20_000, "{clock:?}: resumed at {} before {at_ns}", end.at_ns);
    }
}

#[test]
fn objects_have_names_kinds_and_places() {
    let Some(recording) = recorded() else { return };
    let known: Vec<_> = recording.objects.iter().map(|object| (object.symbol.as_deref(), object.kind)).collect();
    let mutex = |protocol, recursive| ObjectKind::Mutex { protocol, recursive };
    for expected in [
        (Some("plain"), mutex(MutexProtocol::None, false)),
        (Some("recursive"), mutex(MutexProtocol::None, true)),
        (Some("inherits"), mutex(MutexProtocol::Inherit, false)),
        (Some("ceiling"), mutex(MutexProtocol::Protect(30), false)),
        (Some("table"), ObjectKind::RwLock),
        (Some("spin"), ObjectKind::Spinlock),
        (Some("ready"), ObjectKind::Condition),
        (Some("posted"), ObjectKind::Semaphore),
        (Some("meeting"), ObjectKind::Barrier),
    ] {
        assert!(known.contains(&expected), "{expected:?} among {known:?}");
    }
    assert_eq!(known.len(), 11, "one object for each variable: {known:?}");
    let place = |site: SiteId| recording.sites[site as usize].name.as_deref().unwrap_or("?");
    let of = |name: &str| (0..).zip(&known).find(|(_, known)| known.0 == Some(name)).map(|(id, _)| id as ObjectId);
    let site = |name: &str| place(recording.objects[of(name).expect("an object") as usize].site.expect("a site"));
    assert!(site("ceiling").starts_with("make (check.h:"), "{}", site("ceiling"));
    assert!(site("ready").starts_with("waiter (kinds.c:"), "{}", site("ready"));
    let is_request = |event: &Event| matches!(event.kind, EventKind::Request { .. });
    let request = recording.events.iter().find(|event| is_request(event)).expect("a request");
    let EventKind::Request { object: id, site, .. } = request.kind else { unreachable!() };
    assert_eq!(object(&recording, id), "plain");
    assert!(place(site).starts_with("contender (kinds.c:"), "{}", place(site));
}

#[test]
fn scheduling_is_recorded_at_the_start_and_at_each_change() {
    let Some(recording) = recorded() else { return };
    let of = |name: &str| {
        let index = thread(&recording, name);
        let own = recording.events.iter().filter(move |event| event.thread == index);
        own.filter(|event| matches!(event.kind, EventKind::Scheduling(_) | EventKind::Affinity(_)))
    };
    let kinds = |name| of(name).map(|event| event.kind).collect::<Vec<_>>();
    let [policy, EventKind::Affinity(all), EventKind::Affinity(one), other] = kinds("first")[..] else {
        panic!("{:?}", kinds("first"))
    };
    // The tests may have been started by `nice`.
    assert!(policy == other && matches!(policy, EventKind::Scheduling(Policy::Fair { .. })), "{policy:?} {other:?}");
    assert!(one.count_ones() == 1 && all & one == one, "{all:#x} {one:#x}");
    assert_eq!(kinds("eleven"), [policy, EventKind::Affinity(one)]);
}

#[test]
fn switches_agree_with_the_waits() {
    let Some(recording) = recorded() else { return };
    if !recording.switches {
        return drop(writeln!(std::io::stderr(), "skipped: the kernel does not permit to record switches"));
    }
    // A thread that waits for 20 ms suspends in between, and is dispatched again before it resumes.
    let first = thread(&recording, "first");
    let own: Vec<&Event> = recording.events.iter().filter(|event| event.thread == first).collect();
    let sleeps = own
        .iter()
        .enumerate()
        .filter(|(_, event)| matches!(event.kind, EventKind::Wait { wait: Wait::SleepFor { ns: 20_000_000 }, .. }));
    let mut seen = 0;
    for (at, _) in sleeps {
        let until = own[at..].iter().position(|event| event.kind == EventKind::Resumed).expect("an end");
        let within = &own[at..at + until];
        let out = within.iter().position(|event| event.kind == EventKind::SwitchOut(Stop::Suspended));
        let back = within.iter().rposition(|event| matches!(event.kind, EventKind::SwitchIn { .. }));
        assert!(out.is_some() && out < back, "{within:?}");
        seen += 1;
    }
    assert_eq!(seen, 5);
}

/// The mutant: a recording in which an unlock is missing.
#[test]
#[should_panic(expected = "hold the object")]
fn a_missing_unlock_is_noticed() {
    let Some(mut recording) = recorded() else { panic!("hold the object: skipped without a compiler") };
    let contended = recording.events.iter().position(|event| matches!(event.kind, EventKind::Request { .. }));
    let contended = contended.expect("a request");
    let EventKind::Request { object, .. } = recording.events[contended].kind else { unreachable!() };
    let unlock = recording.events[contended..].iter().position(|event| event.kind == EventKind::Unlock { object });
    recording.events.remove(contended + unlock.expect("an unlock"));
    assert_exclusive(&recording);
}
