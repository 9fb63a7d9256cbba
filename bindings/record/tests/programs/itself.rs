//! Programs that record themselves (`itself.c`, `records_itself.rs`).

use super::support::{build, library, options, steps, thread};
use lockwright_record::{EventKind, Recording};
use std::process::Command;

#[test]
fn a_program_records_the_part_that_it_asks_for() {
    let library = library();
    let folder = library.parent().and_then(|folder| folder.to_str()).expect("a folder");
    let search = format!("-Wl,-rpath,{folder}");
    // Without the version of the file, the linker needs its name.
    let Some(program) = build("itself.c", &[library.to_str().expect("a path in UTF-8"), &search]) else { return };
    let recorded = options().folder;
    let status = Command::new(&program).arg(&recorded).status().expect("a process");
    assert!(status.success(), "{status}");
    let recording = Recording::read(&recorded).expect("a recording");
    assert!(recording.complete && recording.lost == 0);
    let named = |name: &str| recording.objects.iter().any(|object| object.symbol.as_deref() == Some(name));
    assert_eq!(["before", "during", "after"].map(named), [false, true, false], "{:?}", recording.objects);
    assert_eq!(steps(&recording, "worker"), ["start", "lock during", "unlock during", "end"]);
    // Threads that begin afterwards are seen when they execute.
    let worker = thread(&recording, "worker");
    let is_switch = |event: &&lockwright_record::Event| matches!(event.kind, EventKind::SwitchIn { .. });
    let own = recording.events.iter().filter(|event| event.thread == worker);
    assert!(!recording.switches || own.filter(is_switch).count() > 0);
}

#[test]
fn a_program_that_ends_beside_a_stop_is_recorded_to_the_end() {
    let library = library();
    let folder = library.parent().and_then(|folder| folder.to_str()).expect("a folder");
    let search = format!("-Wl,-rpath,{folder}");
    let Some(program) = build("itself.c", &[library.to_str().expect("a path in UTF-8"), &search]) else { return };
    for round in 0..20 {
        let recorded = options().folder;
        let status = Command::new(&program).arg(&recorded).arg("beside").status().expect("a process");
        assert!(status.success(), "{status}");
        let recording = Recording::read(&recorded).expect("a recording");
        assert!(recording.complete, "round {round}");
        assert_eq!(steps(&recording, "worker"), ["start", "lock during", "unlock during", "end"], "round {round}");
    }
}

#[test]
fn a_program_in_rust_records_itself() {
    let recorded = options().folder;
    let status = Command::new(env!("CARGO_BIN_EXE_records_itself")).arg(&recorded).status().expect("a process");
    assert!(status.success(), "{status}");
    let recording = Recording::read(&recorded).expect("a recording");
    assert!(recording.complete);
    let slept = steps(&recording, "periodic").iter().filter(|step| step.starts_with("sleep")).count();
    assert_eq!(slept, 5, "{:?}", steps(&recording, "periodic"));
}
