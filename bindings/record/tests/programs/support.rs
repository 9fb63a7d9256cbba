//! Compiles and records programs, and tells what they did in short lines.

use lockwright_record::{EventKind, Mode, ObjectId, Options, Recording, Run, StartError, ThreadIndex, Wait, start};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Returns the library, which cargo has built beside this program.
pub fn library() -> PathBuf {
    let me = std::env::current_exe().expect("this program has a path");
    let library = me.with_file_name("liblockwright_recorder.so");
    assert!(library.is_file(), "cargo has built {}", library.display());
    library
}

fn folder() -> &'static Path {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    FOLDER.get_or_init(|| tempfile::tempdir().expect("a folder for programs")).path()
}

/// A name that no other test has.
fn fresh(name: &str) -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    folder().join(format!("{}-{}", name.replace('.', "-"), COUNT.fetch_add(1, Ordering::Relaxed)))
}

/// Compiles a program. Returns `None` if there is no compiler.
pub fn build(source: &str, flags: &[&str]) -> Option<PathBuf> {
    let program = fresh(source);
    let compiled = Command::new("cc")
        .args(["-std=gnu11", "-g", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread"])
        .arg("-o")
        .arg(&program)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source))
        .args(flags)
        .output();
    match compiled {
        Ok(output) => {
            assert!(output.status.success(), "{source}: {}", String::from_utf8_lossy(&output.stderr));
            Some(program)
        }
        Err(error) => {
            assert!(std::env::var_os("LOCKWRIGHT_REQUIRE_CC").is_none_or(|value| value != "1"), "cc: {error}");
            let _ = writeln!(std::io::stderr(), "skipped: there is no cc ({error})");
            None
        }
    }
}

/// The usual options, with a folder and the library of this build.
pub fn options() -> Options {
    let mut options = Options::new(fresh("recording"));
    options.library = Some(library());
    options
}

/// Records a program.
pub fn try_record(program: &Path, arguments: &[&str]) -> Result<Run, StartError> {
    let command: Vec<OsString> = [program.into()].into_iter().chain(arguments.iter().map(OsString::from)).collect();
    start(&command, &options())
}

/// The same for a program that succeeds. On a busy machine the thread that writes the recording may execute too late,
/// and events are lost; such a recording shows nothing, and is repeated.
pub fn record(program: &Path, arguments: &[&str]) -> Recording {
    for _attempt in 0..10 {
        let run = try_record(program, arguments).unwrap_or_else(|error| panic!("{error}"));
        assert!(run.status.success(), "{}: {}", program.display(), run.status);
        assert!(run.recording.complete);
        if run.recording.lost == 0 {
            return run.recording;
        }
        eprintln!("{}: not judged, {} events were lost", program.display(), run.recording.lost);
    }
    panic!("{}: events were lost ten times", program.display());
}

/// Returns the only thread of this name.
pub fn thread(recording: &Recording, name: &str) -> ThreadIndex {
    let named = recording.threads.iter().enumerate().filter(|(_, thread)| thread.name == name);
    let indices: Vec<usize> = named.map(|(index, _)| index).collect();
    assert_eq!(indices.len(), 1, "threads named {name} among {:?}", recording.threads);
    indices[0] as ThreadIndex
}

pub fn object(recording: &Recording, id: ObjectId) -> &str {
    recording.objects[id as usize].symbol.as_deref().unwrap_or("?")
}

/// The calls of a thread, without the actions of the kernel: `lock plain`, `wait condition ready`, `end`.
pub fn steps(recording: &Recording, name: &str) -> Vec<String> {
    let index = thread(recording, name);
    let own = recording.events.iter().filter(|event| event.thread == index);
    own.filter_map(|event| step(recording, event.kind)).collect()
}

fn step(recording: &Recording, kind: EventKind) -> Option<String> {
    let object = |id| object(recording, id);
    let how = |mode| if mode == Mode::Read { " for reading" } else { "" };
    Some(match kind {
        EventKind::Start => "start".to_owned(),
        EventKind::End => "end".to_owned(),
        EventKind::Request { object: id, mode, .. } => format!("request {}{}", object(id), how(mode)),
        EventKind::Locked { object: id, mode, tried, .. } => {
            let call = if tried { "try" } else { "lock" };
            format!("{call} {}{}", object(id), how(mode))
        }
        EventKind::Refused { object: id } => format!("refused {}", object(id)),
        EventKind::Unlock { object: id } => format!("unlock {}", object(id)),
        EventKind::Signal { object: id } => format!("signal {}", object(id)),
        EventKind::Resumed => "resumed".to_owned(),
        EventKind::Expired { count } => format!("expired {count}"),
        EventKind::TimerSet { interval_ns, .. } => format!("set timer {interval_ns}"),
        EventKind::Initialised { object: id, value } => format!("initialise {} {value}", object(id)),
        EventKind::Wait { wait, .. } => match wait {
            Wait::SleepUntil { .. } => "sleep until".to_owned(),
            Wait::SleepFor { ns } => format!("sleep {ns}"),
            Wait::Timer { .. } => "wait timer".to_owned(),
            Wait::Condition { object: id } => format!("wait condition {}", object(id)),
            Wait::Semaphore { object: id } => format!("wait semaphore {}", object(id)),
            Wait::Barrier { object: id } => format!("wait barrier {}", object(id)),
            Wait::Join => "join".to_owned(),
            Wait::Input { descriptor } => format!("input {descriptor}"),
            Wait::Poll { descriptor } => format!("poll {descriptor}"),
            Wait::Yield => "yield".to_owned(),
            Wait::Futex { object: id } => format!("futex {}", object(id)),
            other => format!("{other:?}"),
        },
        _ => return None,
    })
}

/// Checks that `part` is in `whole` without gaps.
pub fn assert_within(whole: &[String], part: &[&str]) {
    assert!(whole.windows(part.len()).any(|window| window == part), "{part:#?} in {whole:#?}");
}
