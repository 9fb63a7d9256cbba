//! Unmodified programs in C and C++, each a process with this library preloaded, under every policy.
//!
//! Without a compiler they are skipped with a message; LOCKWRIGHT_REQUIRE_CC=1 makes that a failure. So are the
//! programs that need real-time priorities, if these are not permitted (LOCKWRIGHT_REQUIRE_RT=1).
//!
//! LOCKWRIGHT_LIBC=DIR executes the programs with the C library and the loader in that folder (x86-64).

#[allow(dead_code)] // Not all of it has a use here.
#[path = "../../../crates/sys/tests/support/machine.rs"]
mod machine;

use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

/// A program that takes longer than this hangs.
const TIME_MAX: Duration = Duration::from_secs(240);
/// The exit status of a program that has no permission for real-time priorities.
const NO_RIGHT: i32 = 77;

const POLICIES: [&[(&str, &str)]; 6] = [
    &[],
    &[("LOCKWRIGHT_PROTOCOL", "inherit")],
    &[("LOCKWRIGHT_UNLOCK", "serial")],
    &[("LOCKWRIGHT_UNLOCK", "auto"), ("LOCKWRIGHT_DEADLOCK", "error")],
    &[("LOCKWRIGHT_DEADLOCK", "report")],
    &[("LOCKWRIGHT_PROTOCOL", "inherit"), ("LOCKWRIGHT_DEADLOCK", "report")],
];

/// Returns the library, which cargo has built beside this program.
fn library() -> &'static Path {
    static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
        let me = std::env::current_exe().expect("this program has a path");
        let library = me.with_file_name("liblockwright_pthread.so");
        assert!(library.is_file(), "cargo has built {}", library.display());
        library
    });
    &LIBRARY
}

fn is_required(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| value == "1")
}

/// The machine: a program with real-time priorities has it alone, and other programs of this file share it.
static MACHINE: RwLock<()> = RwLock::new(());

/// Waits for the machine, also for the tests of other crates.
fn alone() -> (RwLockWriteGuard<'static, ()>, machine::Machine) {
    (MACHINE.write().unwrap_or_else(PoisonError::into_inner), machine::alone())
}

fn shared() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}

struct Program(PathBuf);

impl Program {
    /// Compiles a program. Returns `None` if there is no compiler.
    fn build(source: &str) -> Option<Self> {
        Self::build_with(source, &[])
    }

    /// The same with more arguments for the compiler.
    fn build_with(source: &str, flags: &[&str]) -> Option<Self> {
        Self::build_by(if source.ends_with(".cpp") { "c++" } else { "cc" }, source, flags)
    }

    /// The same with another compiler.
    fn build_by(compiler: &str, source: &str, flags: &[&str]) -> Option<Self> {
        // Tests compile at the same time, each for itself.
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
        let folder = FOLDER.get_or_init(|| tempfile::tempdir().expect("a folder for programs"));
        let standard = if source.ends_with(".cpp") { "-std=c++17" } else { "-std=gnu11" };
        let name = format!("{}-{}", source.replace('.', "-"), COUNT.fetch_add(1, Ordering::Relaxed));
        let program = folder.path().join(name);
        let compiled = Command::new(compiler)
            .args([standard, "-O2", "-Wall", "-Wextra", "-Werror", "-pthread"])
            .args(flags)
            .arg("-o")
            .arg(&program)
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source))
            .output();
        match compiled {
            Ok(output) => {
                assert!(output.status.success(), "{source}: {}", String::from_utf8_lossy(&output.stderr));
                Some(Self(program))
            }
            Err(error) => {
                assert!(!is_required("LOCKWRIGHT_REQUIRE_CC"), "{compiler}: {error}");
                let _ = writeln!(std::io::stderr(), "skipped: there is no {compiler} ({error})");
                None
            }
        }
    }

    fn run(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
        let mut command = match std::env::var_os("LOCKWRIGHT_LIBC") {
            Some(folder) => {
                let mut loader = Command::new(Path::new(&folder).join("ld-linux-x86-64.so.2"));
                // The C library comes from there, and other libraries from where the loader of this machine finds them.
                let path = [folder.as_os_str(), "/lib/x86_64-linux-gnu".as_ref()].join(":".as_ref());
                loader.arg("--library-path").arg(path).arg(&self.0);
                loader
            }
            None => Command::new(&self.0),
        };
        let mut child = command
            .args(arguments)
            .env_remove("LOCKWRIGHT_LIBC")
            .env_remove("LOCKWRIGHT_PROTOCOL")
            .env_remove("LOCKWRIGHT_UNLOCK")
            .env_remove("LOCKWRIGHT_DEADLOCK")
            .env_remove("LOCKWRIGHT_STATS")
            .env("LD_PRELOAD", library())
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a process");
        let start = Instant::now();
        while child.try_wait().expect("the child is ours").is_none() {
            if start.elapsed() > TIME_MAX {
                child.kill().expect("the child is ours");
                panic!("{} {arguments:?} with {environment:?} hangs", self.0.display());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        child.wait_with_output().expect("the child is ours")
    }

    /// Checks that the program succeeds. Returns what it wrote on stderr, or `None` if it has no permission for
    /// real-time priorities.
    fn holds(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Option<String> {
        let output = self.run(arguments, environment);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.code() == Some(NO_RIGHT) {
            assert!(!is_required("LOCKWRIGHT_REQUIRE_RT"), "no permission for real-time priorities");
            let _ = writeln!(std::io::stderr(), "skipped: no permission for real-time priorities");
            return None;
        }
        let name = self.0.display();
        assert!(output.status.success(), "{name} {arguments:?} with {environment:?}: {}\n{said}", output.status);
        Some(said)
    }
}

/// Checks that the program succeeds under a policy, and writes nothing on stderr.
fn holds_under(program: &Program, arguments: &[&str], policy: &[(&str, &str)]) {
    if let Some(said) = program.holds(arguments, policy) {
        assert_eq!(said, "", "{} with {policy:?}", program.0.display());
    }
}

/// The same under every policy. The processes mostly wait, so they execute at the same time.
fn holds_always(source: &str) {
    let Some(program) = Program::build(source) else { return };
    let _machine = shared();
    std::thread::scope(|scope| {
        for policy in POLICIES {
            scope.spawn(|| holds_under(&program, &[], policy));
        }
    });
}

/// The same, alone on the machine.
fn holds_always_in_real_time(source: &str, arguments: &[&str]) {
    let Some(program) = Program::build(source) else { return };
    let _machine = alone();
    for policy in POLICIES {
        holds_under(&program, arguments, policy);
    }
}

macro_rules! hold_always {
    ($($test:ident: $source:literal;)*) => {$(
        #[test]
        fn $test() {
            holds_always($source);
        }
    )*};
}

hold_always! {
    attributes_are_kept_and_checked: "attributes.c";
    the_end_of_an_owner_is_reported: "death.c";
    condition_variables_lose_no_signal: "condvar.c";
    child_processes_continue: "fork.c";
    the_functions_of_c11_work: "threads_h.c";
    the_cpp_library_works: "standard.cpp";
    the_owner_is_where_the_c_library_has_it: "owner.c";
    shared_and_private_objects_combine: "combined.c";
    reader_writer_locks_follow_posix: "rwlock.c";
    semaphores_follow_posix: "sem.c";
    each_initialiser_executes_once: "once.c";
}

#[test]
fn ceilings_hold_and_follow_changes() {
    holds_always_in_real_time("ceilings.c", &[]);
}

#[test]
fn the_most_urgent_waiter_is_served_first() {
    holds_always_in_real_time("order.c", &["order"]);
}

/// The program contains threads that wait for themselves. Policies that detect these report or refuse them, so they are
/// left out.
#[test]
fn every_kind_of_mutex_follows_posix() {
    let Some(program) = Program::build("mutex.c") else { return };
    let machine = shared();
    std::thread::scope(|scope| {
        for policy in &POLICIES[..3] {
            scope.spawn(|| program.holds(&[], policy));
        }
    });
    drop(machine);
    let _machine = alone();
    program.holds(&["ceilings"], &[]);
}

#[test]
fn static_mutexes_inherit_only_if_requested() {
    let Some(program) = Program::build("order.c") else { return };
    let _machine = alone();
    program.holds(&["inherits-not"], &[]);
    program.holds(&["inherits"], &[("LOCKWRIGHT_PROTOCOL", "inherit")]);
}

#[test]
fn an_heir_succeeds_in_c11() {
    let Some(program) = Program::build("threads_h.c") else { return };
    let _machine = shared();
    program.holds(&["inherits"], &[("LOCKWRIGHT_PROTOCOL", "inherit")]);
}

#[test]
fn reader_writer_locks_alternate_if_requested() {
    let Some(program) = Program::build("rwlock.c") else { return };
    let _machine = alone();
    let inherit = [("LOCKWRIGHT_PROTOCOL", "inherit")];
    for arguments in [["inherits"], ["order"]] {
        program.holds(&arguments, &inherit);
    }
    // The mutant: the C library's locks prefer readers, so a writer starves until the alarm.
    assert!(!program.run(&["order"], &[]).status.success());
}

#[test]
fn semaphores_are_handed_over_if_requested() {
    let Some(program) = Program::build("sem.c") else { return };
    let _machine = alone();
    for policy in [("LOCKWRIGHT_PROTOCOL", "inherit"), ("LOCKWRIGHT_UNLOCK", "serial")] {
        program.holds(&["order"], &[policy]);
        program.holds(&["cancel"], &[policy]);
    }
    // The mutant: whoever comes first takes a unit of the C library's semaphores.
    assert!(!program.run(&["order"], &[]).status.success());
}

#[test]
fn initialisers_inherit_if_requested() {
    let Some(program) = Program::build("once.c") else { return };
    let _machine = alone();
    program.holds(&["inherits"], &[("LOCKWRIGHT_PROTOCOL", "inherit")]);
    assert!(!program.run(&["inherits"], &[]).status.success(), "the C library's do not");
}

#[test]
fn deadlocks_are_refused_reported_or_waited_for() {
    let Some(program) = Program::build("deadlock.c") else { return };
    let _machine = shared();
    let (protocol, deadlock) = ("LOCKWRIGHT_PROTOCOL", "LOCKWRIGHT_DEADLOCK");
    let holds = |arguments: &[&str], policy: &[(&str, &str)]| program.holds(arguments, policy).unwrap_or_default();
    // If the program requested inheritance, the kernel checks for deadlocks. Otherwise a thread waits, unless the
    // policy says otherwise.
    assert_eq!(holds(&["inherit", "refused"], &[]), "");
    assert_eq!(holds(&["inherit", "refused"], &[(deadlock, "error")]), "");
    assert_eq!(holds(&["plain", "waits"], &[]), "");
    assert_eq!(holds(&["plain", "waits"], &[(protocol, "inherit")]), "");
    assert_eq!(holds(&["recursive", "waits"], &[]), "");
    assert_eq!(holds(&["recursive", "refused"], &[(deadlock, "error")]), "");
    assert_eq!(holds(&["inherit", "ended"], &[]), "");
    assert_eq!(holds(&["inherit", "again"], &[]), "");
    // Another thread may unlock a plain mutex.
    assert_eq!(holds(&["plain", "waits"], &[(deadlock, "error")]), "");
    assert_eq!(holds(&["plain", "refused"], &[(deadlock, "error"), (protocol, "inherit")]), "");
    for policy in POLICIES {
        holds(&["plain", "passes"], policy);
    }
    for policy in [&[(deadlock, "report")][..], &[(deadlock, "report"), (protocol, "inherit")]] {
        let said = holds(&["plain", "waits"], policy);
        assert_eq!(said.lines().count(), 1, "reported once: {said}");
        assert!(said.starts_with("lockwright: deadlock in process "), "{said}");
        assert_eq!(said.matches("waits for the mutex at 0x").count(), 2, "{said}");
        // Each of the two waits for the other, by name.
        assert_eq!(["(crosses 0)", "(crosses 1)"].map(|name| said.matches(name).count()), [2, 2], "{said}");
    }
}

/// The numbers of the row for a mutex of the program: sections, waits; total wait, longest wait, longest section in us.
fn row(report: &str, mutex: &str) -> Vec<f64> {
    let row = report.lines().find(|line| line.contains(mutex)).unwrap_or_else(|| panic!("{mutex}: {report}"));
    let numbers = row.trim_start_matches("lockwright:").split_whitespace().take(5);
    numbers.map(|number| number.parse().unwrap_or_else(|_| panic!("{number}: {report}"))).collect()
}

#[test]
fn statistics_name_who_waited_for_whom() {
    // The program starts itself again by its file, which would be that of the loader.
    if std::env::var_os("LOCKWRIGHT_LIBC").is_some() {
        let _ = writeln!(std::io::stderr(), "skipped: the program would start the loader again");
        return;
    }
    let Some(program) = Program::build("stats.c") else { return };
    let _machine = shared();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("stats-%p");
    let to_file = file.to_str().expect("a path in UTF-8");
    for policy in [&[][..], &[("LOCKWRIGHT_PROTOCOL", "inherit")], &[("LOCKWRIGHT_UNLOCK", "serial")]] {
        assert_eq!(
            program.holds(&[], &[policy, &[("LOCKWRIGHT_STATS", "0")]].concat()).expect("it needs no permission"),
            ""
        );
        let on = [policy, &[("LOCKWRIGHT_STATS", "1")]].concat();
        let said = program.holds(&[], &on).expect("it needs no permission");
        assert!(said.contains("2 mutexes of process ") && said.contains("waited for 1 of them"), "{said}");
        let bus = row(&said, "control (");
        // The wait lasts as long as the section of the other thread, and both the time that it sleeps.
        assert!(bus[0] >= 3.0 && (1.0..=2.0).contains(&bus[1]), "{said}");
        assert!(bus[3] > 5_000.0 && bus[2] >= bus[3] && bus[4] >= 20_000.0, "{said}");
        assert!(said.contains(" waited for logging ("), "{said}");
        // The recursive mutex counts as one section.
        let others = said.lines().filter(|line| line.contains("+0x") && !line.contains("control ("));
        let others: Vec<Vec<f64>> = others.map(|line| row(line, "+0x")).collect();
        assert!(others.len() == 1 && others[0][..2] == [1.0, 0.0], "{said}");
        // Its section ends with the last unlock of its owner.
        assert!(others[0][4] >= 20_000.0, "{said}");
        // While the mutex is held, and then at the end.
        let said = program.holds(&["signal"], &on).expect("it needs no permission");
        assert_eq!(said.matches("mutexes of process ").count(), 2, "{said}");
    }
    let said = program.holds(&[], &[("LOCKWRIGHT_STATS", to_file)]).expect("it needs no permission");
    assert_eq!(said, "");
    let written: Vec<PathBuf> =
        std::fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    assert_eq!(written.len(), 1, "{written:?}");
    let name = written[0].file_name().expect("a name").to_string_lossy().into_owned();
    let id = name.strip_prefix("stats-").expect("the name with the process");
    let report = std::fs::read_to_string(&written[0]).expect("text");
    assert!(id.parse::<u32>().is_ok() && report.contains(&format!("of process {id}, ")), "{report}");
    // The path is any bytes, from the folder in which the program starts.
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["in", folder.path().to_str().expect("a path in UTF-8")];
    assert_eq!(program.holds(&arguments, &[]).expect("it needs no permission"), "");
    let written: Vec<_> =
        std::fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").file_name()).collect();
    assert_eq!(written.len(), 1, "{written:?}");
    let id = written[0].as_bytes().strip_prefix(b"\xff-").and_then(|id| std::str::from_utf8(id).ok());
    assert!(id.is_some_and(|id| id.parse::<u32>().is_ok()), "{written:?}");
    let said = program.holds(&[], &[("LOCKWRIGHT_STATS", "/no/such/folder/stats")]).expect("it needs no permission");
    assert_eq!(said, "lockwright: /no/such/folder/stats: the statistics cannot be written there\n");
    // A device is written, not replaced.
    let sink = folder.path().join("sink");
    std::os::unix::fs::symlink("/dev/null", &sink).expect("a link");
    let said = program.holds(&[], &[("LOCKWRIGHT_STATS", sink.to_str().expect("UTF-8"))]);
    assert_eq!(said.expect("it needs no permission"), "");
    assert!(std::fs::metadata(&sink).expect("the link is still there").file_type().is_char_device());
    // A pipe without a reader does not delay the end of the program.
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo starts").success());
    let said = program.holds(&[], &[("LOCKWRIGHT_STATS", pipe.to_str().expect("UTF-8"))]);
    let told = format!("lockwright: {}: the statistics cannot be written there\n", pipe.display());
    assert_eq!(said.expect("it needs no permission"), told);
}

/// A thread that suspended for the mutex has waited for it, also if the mutex was free when it came.
#[test]
fn no_lock_that_suspends_is_missed_in_statistics() {
    let Some(program) = Program::build("suspends.c") else { return };
    let _machine = alone();
    for policy in [&[][..], &[("LOCKWRIGHT_PROTOCOL", "inherit")], &[("LOCKWRIGHT_UNLOCK", "serial")]] {
        let on = [policy, &[("LOCKWRIGHT_STATS", "1")]].concat();
        // Whether threads suspend in a run depends on the machine, so a run in which none does is repeated.
        let has_suspended = (0..10).any(|_attempt| {
            let Some(said) = program.holds(&[], &on) else { return true };
            let suspended = said.lines().find_map(|line| line.strip_prefix("suspended ")?.parse::<f64>().ok());
            let (suspended, bus) = (suspended.expect("it counts"), row(&said, "suspends"));
            assert!(bus[0] == 40_000.0 && suspended <= bus[1], "{said}");
            suspended > 0.0
        });
        assert!(has_suspended, "no thread has suspended in ten runs");
    }
}

/// A normal mutex may be a semaphore, so a cycle through it is no deadlock. `report` cannot know that at first.
#[test]
fn mutexes_that_are_semaphores_are_not_refused() {
    let Some(program) = Program::build("semaphore.c") else { return };
    let _machine = shared();
    for policy in [&[][..], &[("LOCKWRIGHT_UNLOCK", "serial")], &[("LOCKWRIGHT_DEADLOCK", "error")]] {
        assert_eq!(program.holds(&[], policy).expect("it needs no permission"), "");
    }
    let said = program.holds(&[], &[("LOCKWRIGHT_DEADLOCK", "report")]).expect("it needs no permission");
    assert!(said.lines().count() <= 2, "not once they were unlocked by others: {said}");
}

#[test]
fn condition_variables_work_where_the_kernel_refuses_inheritance() {
    let Some(program) = Program::build("filter.c") else { return };
    let _machine = shared();
    for error in [libc::EPERM, libc::ENOSYS] {
        program.holds(&[&error.to_string()], &[]);
    }
}

/// Each of the two processes uses this library, or does not.
#[test]
fn processes_with_and_without_the_library_share_objects() {
    let Some(program) = Program::build("processes.c") else { return };
    let _machine = shared();
    let folder = tempfile::tempdir().expect("a folder for the shared memory");
    let all_share = |kind: &str| {
        for preloaded in [[true, true], [true, false], [false, true]] {
            for policy in [None, Some(("LOCKWRIGHT_PROTOCOL", "inherit"))] {
                let file = folder.path().join(format!("{kind}-{preloaded:?}-{policy:?}"));
                let mut children = ["first", "second"].into_iter().zip(preloaded).map(|(role, is_preloaded)| {
                    let mut command = Command::new(&program.0);
                    command.arg(&file).args([role, kind]).envs(policy).stderr(Stdio::piped());
                    if is_preloaded {
                        command.env("LD_PRELOAD", library());
                    }
                    command.spawn().expect("a process")
                });
                let children = [children.next(), children.next()].map(|child| child.expect("two"));
                for child in children {
                    let output = child.wait_with_output().expect("the child is ours");
                    let said = String::from_utf8_lossy(&output.stderr);
                    assert!(output.status.success(), "{kind}, {preloaded:?}, {policy:?}: {}\n{said}", output.status);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for kind in ["plain", "recursive", "robust", "inherit"] {
            scope.spawn(move || all_share(kind));
        }
    });
}

/// Under each policy; the rounds are those without and with LOCKWRIGHT_DEEP.
fn storm(name: &str, [short, full]: [u32; 2]) {
    let Some(program) = Program::build("storm.c") else { return };
    let _machine = alone();
    let rounds = if std::env::var_os("LOCKWRIGHT_DEEP").is_some() { full } else { short };
    for policy in POLICIES {
        program.holds(&[name, &rounds.to_string()], policy);
    }
}

#[test]
fn each_signal_wakes_a_waiter_beside_cancellation_time_outs_and_signals() {
    storm("cancel", [300, 5_000]);
    storm("timed", [5_000, 50_000]);
}

#[test]
fn each_signal_wakes_a_waiter_while_levels_change() {
    storm("levels", [5_000, 50_000]);
}

#[test]
fn children_of_busy_threads_lock_and_wait() {
    storm("fork", [100, 1_000]);
}

/// The names of the functions that the library defines.
#[cfg(target_arch = "x86_64")]
fn names_defined() -> Vec<String> {
    let listed = Command::new("nm").args(["-D", "--defined-only"]).arg(library()).output().expect("nm executes");
    let listed = String::from_utf8(listed.stdout).expect("names in UTF-8");
    let names = listed.lines().filter_map(|line| line.split_whitespace().nth(2));
    let names: Vec<String> = names.filter(|name| !matches!(*name, "dlopen" | "dlvsym")).map(str::to_owned).collect();
    assert!(names.iter().any(|name| name == "pthread_mutex_lock"), "{names:?}");
    names
}

#[test]
#[cfg(target_arch = "x86_64")]
fn nothing_leads_past_the_library_unseen() {
    let _machine = shared();
    let Some(program) = Program::build_with("past.c", &["-ldl"]) else { return };
    let Some(opened) = Program::build_with("past.c", &["-shared", "-fPIC", "-DLIBRARY"]) else { return };
    let path = opened.0.to_str().expect("a path in UTF-8");
    let names = names_defined();
    let arguments: Vec<&str> = std::iter::once(path).chain(names.iter().map(String::as_str)).collect();
    let said = program.holds(&arguments, &[]).expect("it needs no permission");
    assert_eq!(
        said,
        format!(
            "lockwright: {path} is opened without RTLD_DEEPBIND, with which it would miss this library's mutexes\n"
        )
    );
}

/// The runtime of a sanitizer of gcc, or `None` if there is none.
fn runtime_of_gcc(name: &str) -> Option<String> {
    let found = Command::new("cc").arg(format!("-print-file-name={name}")).output();
    let path = found.map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    let runtime = path.ok().and_then(|path| path.canonicalize().ok());
    if runtime.is_none() {
        assert!(!is_required("LOCKWRIGHT_REQUIRE_CC"), "the compiler has no {name}");
        let _ = writeln!(std::io::stderr(), "skipped: the compiler has no {name}");
    }
    runtime.map(|runtime| format!("{}:{}", runtime.display(), library().display()))
}

/// ThreadSanitizer's library is loaded first, and calls the functions of this one.
#[test]
fn thread_sanitizer_sees_what_mutexes_order() {
    let _machine = shared();
    let Some(preload) = runtime_of_gcc("libtsan.so") else { return };
    let Some(program) = Program::build_with("race.c", &["-g", "-fsanitize=thread"]) else { return };
    only_races_are_reported(&program, &[("LD_PRELOAD", preload.as_str())]);
}

/// AddressSanitizer's library is loaded first, and refuses to start otherwise.
#[test]
fn address_sanitizer_starts() {
    let _machine = shared();
    let Some(preload) = runtime_of_gcc("libasan.so") else { return };
    let Some(program) = Program::build_with("race.c", &["-g", "-fsanitize=address"]) else { return };
    assert_eq!(program.holds(&[], &[("LD_PRELOAD", preload.as_str())]).expect("it needs no permission"), "");
    let other_order = program.run(&[], &[]);
    assert!(!other_order.status.success(), "the order does not matter any more");
}

fn only_races_are_reported(program: &Program, environment: &[(&str, &str)]) {
    for policy in [&[][..], &[("LOCKWRIGHT_PROTOCOL", "inherit")], &[("LOCKWRIGHT_UNLOCK", "serial")]] {
        let environment = [policy, environment].concat();
        assert_eq!(program.holds(&[], &environment).expect("it needs no permission"), "", "{policy:?}");
        // On a busy machine the threads may execute so far apart that a race is missed.
        let is_noticed = || {
            let said = program.run(&["races"], &environment).stderr;
            String::from_utf8_lossy(&said).contains("ThreadSanitizer: data race")
        };
        assert!((0..10).any(|_| is_noticed()), "{policy:?}: no race is reported");
    }
}

/// clang links the runtimes of its sanitizers into the program, so the loader finds them before this library.
#[test]
fn the_sanitizers_of_clang_need_no_order() {
    let names = std::iter::once("clang".to_owned()).chain((14..30).map(|version| format!("clang-{version}")));
    let is_there = |name: &String| Command::new(name).arg("--version").output().is_ok_and(|it| it.status.success());
    let Some(clang) = names.into_iter().find(is_there) else {
        let _ = writeln!(std::io::stderr(), "skipped: there is no clang");
        return;
    };
    let _machine = shared();
    let built = |flags| Program::build_by(&clang, "race.c", flags).expect("the compiler exists");
    only_races_are_reported(&built(&["-g", "-fsanitize=thread"]), &[]);
    let checked = built(&["-g", "-fsanitize=address"]);
    assert_eq!(checked.holds(&[], &[]).expect("it needs no permission"), "");
}

#[test]
fn unknown_variables_are_reported() {
    let Some(program) = Program::build("attributes.c") else { return };
    let _machine = shared();
    let said = program.holds(&[], &[("LOCKWRIGHT_UNLOK", "serial")]).expect("it needs no permission");
    assert_eq!(
        said,
        "lockwright: LOCKWRIGHT_UNLOK=serial: unknown variable (known: LOCKWRIGHT_PROTOCOL, LOCKWRIGHT_UNLOCK, \
         LOCKWRIGHT_DEADLOCK, LOCKWRIGHT_STATS); ignored\n"
    );
}

#[test]
fn unknown_values_are_reported_and_ignored() {
    let Some(program) = Program::build("attributes.c") else { return };
    let _machine = shared();
    let policy = [("LOCKWRIGHT_PROTOCOL", "Inherit"), ("LOCKWRIGHT_UNLOCK", ""), ("LOCKWRIGHT_DEADLOCK", "a\nb")];
    let said = program.holds(&[], &policy).expect("it needs no permission");
    assert_eq!(
        said,
        "lockwright: LOCKWRIGHT_PROTOCOL=Inherit: unknown value (known: none, inherit); using none\n\
         lockwright: LOCKWRIGHT_UNLOCK=: unknown value (known: parallel, serial, auto); using parallel\n\
         lockwright: LOCKWRIGHT_DEADLOCK=a?b: unknown value (known: off, report, error); using off\n"
    );
}

#[test]
#[ignore = "a measurement: --release -- --ignored --nocapture"]
fn uncontended() {
    let Some(program) = Program::build("speed.c") else { return };
    let _machine = alone();
    println!("{}", String::from_utf8_lossy(&program.run(&[], &[]).stdout));
}
