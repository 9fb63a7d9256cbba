//! A scripted wait (`holder.c`): its holder is named, and its length is right.

use super::support::{build, library, options};
use lockwright_record::{EventKind, Findings, LockWait, Recording};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

/// The largest difference in nanoseconds, where no other work came between the clocks.
const EXACT_NS: u64 = 20_000;

/// The waits for the mutex, in order of time.
fn waits(recording: &Recording) -> Vec<LockWait> {
    let mut waits = Findings::of(recording, None).waits;
    waits.retain(|wait| recording.objects[wait.object as usize].symbol.as_deref() == Some("bus"));
    waits.sort_by_key(|wait| wait.from_ns);
    waits
}

/// How many of the waits have the length that the program measured.
fn exact(waits: &[LockWait], measured: &[u64]) -> usize {
    waits.iter().zip(measured).filter(|(wait, ns)| wait.length_ns().abs_diff(**ns) <= EXACT_NS).count()
}

/// Records the program. Returns the lengths that it measured and the recording, or `None` without the right to
/// real-time priorities.
fn recorded(program: &Path, arguments: &[&str]) -> Option<(Vec<u64>, Recording)> {
    let folder = options().folder;
    std::fs::create_dir_all(&folder).expect("a folder");
    let output = Command::new(program)
        .args(arguments)
        .env("LD_PRELOAD", library())
        .env("LOCKWRIGHT_RECORD", &folder)
        .output()
        .expect("a process");
    if output.status.code() == Some(77) {
        let _ = writeln!(std::io::stderr(), "skipped: no permission for real-time priorities");
        return None;
    }
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("numbers");
    let measured = text.lines().map(|line| line.parse().expect("a number")).collect();
    Some((measured, Recording::read(&folder).expect("a recording")))
}

/// Whether this user may trace the scheduler.
fn traces() -> bool {
    let may = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"]
        .iter()
        .any(|folder| std::fs::read(format!("{folder}/events/sched/sched_waking/id")).is_ok());
    if !may {
        let _ = writeln!(std::io::stderr(), "skipped: this user may not trace the scheduler");
    }
    may
}

#[test]
fn wake_ups_and_boosts_are_recorded_for_root() {
    let Some(program) = build("holder.c", &[]) else { return };
    let Some((_, recording)) = traces().then(|| recorded(&program, &["inherit"])).flatten() else { return };
    let thread = |name: &str| {
        let place = recording.threads.iter().position(|thread| thread.name == name).expect("the thread is there");
        u32::try_from(place).expect("a few threads")
    };
    let (waiter, holder) = (thread("waiter"), thread("holder"));
    let count = |thread: u32, is_it: &dyn Fn(EventKind) -> bool| {
        recording.events.iter().filter(|event| event.thread == thread && is_it(event.kind)).count()
    };
    // The holder wakes the waiter, and has its priority meanwhile.
    let woken = count(waiter, &|kind| kind == EventKind::Wakeup { by: Some(holder) });
    assert!(woken >= 8, "{woken}");
    let boosted = count(holder, &|kind| kind == EventKind::Boost { priority: 10 });
    let ended = count(holder, &|kind| kind == EventKind::Boost { priority: 0 });
    assert!(boosted >= 8 && ended >= 8, "{boosted} {ended}");
    // Without inheritance, nothing is boosted.
    let (_, plain) = recorded(&program, &[]).expect("it needs no permission");
    assert!(!plain.events.iter().any(|event| matches!(event.kind, EventKind::Boost { .. })));
}

#[test]
fn the_holder_of_a_wait_is_named_and_its_length_is_right() {
    let Some(program) = build("holder.c", &[]) else { return };
    let (measured, recording) = recorded(&program, &[]).expect("it needs no permission");
    let waits = waits(&recording);
    assert_eq!((waits.len(), measured.len()), (10, 10), "{waits:?}");
    for wait in &waits {
        let name = |thread: u32| recording.threads[thread as usize].name.as_str();
        assert_eq!((name(wait.waiter), wait.holder.map(|(holder, _)| name(holder))), ("waiter", Some("holder")));
    }
    // On a busy machine the thread is preempted between its own clock and the recorder's, in some waits.
    assert!(exact(&waits, &measured) >= 5, "{waits:?} {measured:?}");
    // The mutant: lengths that are 20 us longer.
    let longer: Vec<u64> = measured.iter().map(|ns| ns + 2 * EXACT_NS + 1).collect();
    assert!(exact(&waits, &longer) < 5, "{waits:?} {measured:?}");
}
