//! Programs that lock often, and what recording costs (`load.c`).

use super::support::{build, options, try_record};
use lockwright_record::{EventKind, Recording, start};
use std::path::Path;

/// Every lock and unlock of a million events a second is there, in the order of each thread and of each mutex.
#[test]
fn stress_loses_nothing() {
    /// More events than a ring has room for.
    const PAIRS: usize = 400_000;
    let Some(program) = build("load.c", &[]) else { return };
    let recording = lossless(&program, &["stress", "2", &PAIRS.to_string(), "250000"]);
    let mut locks = vec![0; recording.objects.len()];
    let mut holders = vec![None; recording.objects.len()];
    for event in &recording.events {
        match event.kind {
            EventKind::Locked { object, .. } => {
                let object = object as usize;
                assert_eq!(holders[object], None, "{event:?} while another thread holds it");
                holders[object] = Some(event.thread);
                locks[object] += 1;
            }
            EventKind::Unlock { object } => {
                assert_eq!(holders[object as usize].take(), Some(event.thread), "{event:?} by another thread");
            }
            _ => {}
        }
    }
    locks.sort_unstable();
    // The mutexes of the other six threads are never locked.
    assert_eq!(locks[locks.len() - 3..], [PAIRS.div_ceil(64) * 2, PAIRS, PAIRS]);
}

/// Records a program of two threads with a quarter of a million pairs a second each. If other programs keep the
/// library's thread from its processor, events are lost; then the attempt does not count.
fn lossless(program: &Path, arguments: &[&str]) -> Recording {
    const ATTEMPTS: u32 = 5;
    for _ in 0..ATTEMPTS {
        let run = try_record(program, arguments).unwrap_or_else(|error| panic!("{error}"));
        assert!(run.status.success() && run.recording.complete, "{}", run.status);
        if run.recording.lost == 0 {
            return run.recording;
        }
        eprintln!("{} events lost", run.recording.lost);
    }
    panic!("events were lost in {ATTEMPTS} attempts");
}

/// The mutant: with a ring that is too small events are lost, and counted.
#[test]
fn lost_events_are_counted() {
    const PAIRS: u64 = 1_000_000;
    let Some(program) = build("load.c", &[]) else { return };
    let mut options = options();
    options.ring_bytes = 1 << 16;
    let command = [program.into(), "stress".into(), "1".into(), PAIRS.to_string().into(), "0".into()];
    let recording = start(&command, &options).expect("a recording").recording;
    assert!(recording.complete && recording.lost > 0, "{}", recording.lost);
    let is_lock = |kind: &EventKind| matches!(kind, EventKind::Locked { .. } | EventKind::Unlock { .. });
    let seen = recording.events.iter().filter(|event| is_lock(&event.kind)).count() as u64;
    let lost: u64 = recording.threads.iter().map(|thread| thread.lost).sum();
    // The last event of the thread may be lost as well.
    let all = 2 * (PAIRS + PAIRS.div_ceil(64));
    assert!((all..=all + 2).contains(&(seen + lost)), "{seen} and {lost} of {all}");
}

/// The program ends although a thread appends events faster than they are written.
#[test]
fn a_program_ends_while_events_are_lost() {
    let Some(program) = build("load.c", &[]) else { return };
    let run = try_record(&program, &["exit"]).expect("a recording");
    assert!(run.status.success() && run.recording.complete, "{}", run.status);
    assert!(run.recording.lost > 0);
}

#[test]
#[ignore = "a measurement: --release -- --ignored --nocapture"]
fn cost() {
    let Some(program) = build("load.c", &[]) else { return };
    for _ in 0..3 {
        try_record(&program, &["speed"]).expect("a recording");
        try_record(&program, &["stress", "1", "3000000", "0"]).expect("a recording");
    }
}
