//! Ways in which programs end, and programs that cannot be recorded (`ends.c`).

use super::support::{build, options, record, steps, try_record};
use lockwright_record::{EventKind, Recording, StartError, start};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;

/// How often a variable was locked.
fn locks(recording: &Recording, name: &str) -> usize {
    let is_it = |event: &&lockwright_record::Event| match event.kind {
        EventKind::Locked { object, .. } => recording.objects[object as usize].symbol.as_deref() == Some(name),
        _ => false,
    };
    recording.events.iter().filter(is_it).count()
}

#[test]
fn programs_that_end_are_recorded_to_their_last_lock() {
    let Some(program) = build("ends.c", &[]) else { return };
    for way in ["_exit", "vfork", "close", "exec", "real-time", "pthread_exit"] {
        let recording = record(&program, &[way]);
        assert_eq!((locks(&recording, "before"), locks(&recording, "last")), (1, 1), "{way}");
    }
    // The other thread locks faster than a busy machine may write.
    let recording = try_record(&program, &["exit"]).expect("a recording").recording;
    assert!(recording.complete && locks(&recording, "last") > 1000, "{}", locks(&recording, "last"));
    // The program that was executed last.
    assert_eq!(record(&program, &["exec"]).program[1..], ["_exit"]);
}

#[test]
fn children_are_not_recorded() {
    let Some(program) = build("ends.c", &[]) else { return };
    let recording = record(&program, &["fork"]);
    assert_eq!((locks(&recording, "before"), locks(&recording, "last")), (1, 0));
    assert_eq!(recording.threads.len(), 1, "{:?}", recording.threads);
}

#[test]
fn a_killed_program_is_read_up_to_there() {
    let Some(program) = build("ends.c", &[]) else { return };
    for (way, signal) in [("kill", libc_signal::KILL), ("abort", libc_signal::ABORT)] {
        let run = try_record(&program, &[way]).expect("a recording");
        assert_eq!(run.status.signal(), Some(signal));
        assert!(!run.recording.complete, "{way}");
        assert_eq!(locks(&run.recording, "before"), 1, "{way}");
        assert!(run.recording.length_ns < 10_000_000_000, "{way}: {}", run.recording.length_ns);
    }
}

/// The numbers of signals in Linux.
mod libc_signal {
    pub const ABORT: i32 = 6;
    pub const KILL: i32 = 9;
}

#[test]
fn threads_without_memory_for_their_events_are_counted() {
    let Some(program) = build("ends.c", &[]) else { return };
    let recording = record(&program, &["memory"]);
    assert_eq!((locks(&recording, "before"), locks(&recording, "last")), (1, 0));
    assert_eq!(recording.unrecorded_threads, 2);
    assert_eq!(record(&program, &["_exit"]).unrecorded_threads, 0);
}

/// Every prefix of a recording is a recording, or is told to be none.
#[test]
fn a_file_may_break_off_anywhere() {
    let Some(program) = build("kinds.c", &[]) else { return };
    let options = options();
    let run = start(&[program.into()], &options).expect("a recording");
    let bytes = std::fs::read(options.folder.join("events.lwr")).expect("a file");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("events.lwr");
    let (mut most, mut read) = (0, 0);
    for length in (0..bytes.len()).step_by(7) {
        std::fs::write(&path, &bytes[..length]).expect("a file");
        match Recording::read(folder.path()) {
            Ok(cut) => {
                assert!(!cut.complete, "{length}");
                most = most.max(cut.events.len());
                read += 1;
            }
            Err(error) => assert!(length < 4096, "{length}: {error}"),
        }
    }
    assert!(read > 100 && most > run.recording.events.len() / 2, "{read} {most}");
}

#[test]
fn garbage_is_refused_with_its_place() {
    let Some(program) = build("ends.c", &[]) else { return };
    let options = options();
    start(&[program.into(), "_exit".into()], &options).expect("a recording");
    let path = options.folder.join("events.lwr");
    let bytes = std::fs::read(&path).expect("a file");
    let error_of = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut changed = bytes.clone();
        change(&mut changed);
        std::fs::write(&path, changed).expect("a file");
        Recording::read(&options.folder).expect_err("garbage").to_string()
    };
    let said = error_of(&|bytes| bytes[0] = b'X');
    assert!(said.contains("byte 0: this is not a recording"), "{said}");
    let said = error_of(&|bytes| bytes[8] = 9);
    assert!(said.contains("byte 8: the recording has version 9"), "{said}");
    let said = error_of(&|bytes| bytes[40] = 0);
    assert!(said.contains("byte 40: a chunk is missing here"), "{said}");
    let said = error_of(&|bytes| bytes[44] = 99);
    assert!(said.contains("byte 56: there is no chunk of kind 99"), "{said}");
    let events = bytes.windows(8).position(|window| window == b"LWCH\x05\0\0\0").expect("events") + 16;
    let said = error_of(&|bytes| bytes[events] = 0xEE);
    assert!(said.contains(&format!("byte {events}: there is no event of kind 238")), "{said}");
    let said = Recording::read(Path::new("/nonexistent")).expect_err("no file").to_string();
    assert!(said.contains("/nonexistent/events.lwr: No such file"), "{said}");
}

#[test]
fn programs_that_cannot_be_recorded_are_refused() {
    let Some(program) = build("ends.c", &[]) else { return };
    let refused = |path: &Path| match try_record(path, &["_exit"]) {
        Err(StartError::Unsuitable(reason) | StartError::Program(reason)) => reason,
        other => panic!("{other:?}"),
    };
    if let Some(fixed) = build("ends.c", &["-static"]) {
        assert!(refused(&fixed).contains("linked statically"), "{}", refused(&fixed));
    }
    let copy = program.with_extension("setuid");
    std::fs::copy(&program, &copy).expect("a copy");
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o4755)).expect("a mode");
    assert!(refused(&copy).contains("setuid"), "{}", refused(&copy));
    let text = program.with_extension("text");
    std::fs::write(&text, "nothing").expect("a file");
    assert!(refused(&text).contains("no executable file"), "{}", refused(&text));
    std::fs::set_permissions(&text, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    assert!(refused(&text).contains("64-bit ELF"), "{}", refused(&text));
    assert!(refused(Path::new("no-such-program")).contains("PATH"));
}

/// The interpreter of a script is the program.
#[test]
fn the_interpreter_of_a_script_is_recorded() {
    let Some(program) = build("ends.c", &[]) else { return };
    let script = program.with_extension("script");
    std::fs::write(&script, format!("#!/bin/sh\nexec {} _exit\n", program.display())).expect("a file");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    let recording = record(&script, &[]);
    assert_eq!(locks(&recording, "last"), 1);
    assert!(steps(&recording, &recording.threads[0].name.clone()).contains(&"lock last".to_owned()));
}
