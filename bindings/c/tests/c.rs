//! Compiles the tests and examples in C and C++ (tests/*.c, tests/*.cpp, examples) with the machine's compiler, links
//! them with the library in each way, and runs them. Each test is also compiled with MUTANT, and must then fail.
//!
//! Every test is linked with the static library, and runs under sanitizers. With LOCKWRIGHT_DEEP, as in CI, every test
//! also runs without them, linked with the static and the shared library, and those that repeat something do so more
//! often. Otherwise a few tests and the examples do.
//!
//! Without a compiler the tests are skipped with a message; LOCKWRIGHT_REQUIRE_CC=1 makes that a failure, and
//! LOCKWRIGHT_REQUIRE_CLANG=1 that there is no clang.

#[path = "../../../crates/sys/tests/support/machine.rs"]
mod machine;

use lockwright_report::perfetto::proto::{Data, Trace};
use prost::Message;
use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The exit status of a test in C that the machine does not allow.
const SKIPPED: i32 = 77;
/// The tests that run without sanitizers even without LOCKWRIGHT_DEEP: together they call most functions.
const CHOSEN: [&str; 7] = ["arguments.c", "deadlock.c", "ics.c", "raii.cpp", "robust.c", "steps.c", "taskset.c"];
const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];
const SANITIZERS: [&str; 3] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"];
/// The system libraries that the static library needs. lockwright.pc lists the same ones.
const SYSTEM: [&str; 5] = ["-lutil", "-lrt", "-lpthread", "-lm", "-ldl"];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Linking {
    Static,
    Shared,
    Sanitized,
}

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns a folder with the library under the names by which it is installed.
fn library() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        // Cargo has built the library beside this program.
        let me = std::env::current_exe().expect("this program has a path");
        let built = me.parent().expect("a file is in a folder");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        let shared = "liblockwright_c.so";
        for (file, name) in [
            ("liblockwright_c.a", "liblockwright.a".to_owned()),
            (shared, "liblockwright.so".to_owned()),
            (shared, soname()),
        ] {
            let file = built.join(file).canonicalize().expect("cargo has built the library");
            std::os::unix::fs::symlink(file, folder.join(name)).expect("a link");
        }
        folder
    })
}

fn soname() -> String {
    format!("liblockwright.so.{}.{}", env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"))
}

fn run(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"))
}

fn said(output: &Output) -> String {
    format!("{}\n{}{}", output.status, String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn compiler(file: &Path) -> String {
    let (variable, name) =
        if file.extension().is_some_and(|extension| extension == "cpp") { ("CXX", "c++") } else { ("CC", "cc") };
    std::env::var(variable).unwrap_or_else(|_| name.to_owned())
}

/// Returns whether there are compilers, with sanitizers if `linking` needs them.
fn require_compilers(linking: Linking) -> bool {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for name in ["probe.c", "probe.cpp"] {
        let file = folder.join(format!("{}-{linking:?}-{name}", std::process::id()));
        std::fs::write(&file, "int main(void) { return 0; }\n").expect("can be written");
        let mut command = Command::new(compiler(&file));
        command.arg(&file).arg("-o").arg(file.with_extension("out"));
        if linking == Linking::Sanitized {
            command.args(SANITIZERS);
        }
        let why = match command.output() {
            Ok(output) if output.status.success() => continue,
            Ok(output) => said(&output),
            Err(error) => error.to_string(),
        };
        let why = format!("{command:?}: {why}\ninstall a C and a C++ compiler (Debian: gcc g++), or set CC and CXX");
        assert!(std::env::var_os("LOCKWRIGHT_REQUIRE_CC").is_none(), "{why}");
        let _ = writeln!(std::io::stderr(), "skipped: {why}");
        return false;
    }
    true
}

fn compile(file: &Path, linking: Linking, options: &[&str]) -> PathBuf {
    compile_with(&compiler(file), file, linking, options)
}

fn compile_with(compiler: &str, file: &Path, linking: Linking, options: &[&str]) -> PathBuf {
    let library = library();
    let name = file.file_name().expect("a name").to_string_lossy().into_owned();
    let chosen = format!("{compiler}{}", options.concat()).replace('/', "-");
    let program = library.join(format!("{name}-{linking:?}-{chosen}"));
    let mut command = Command::new(compiler);
    command.args(WARNINGS).args(["-O1", "-g", "-pthread"]).args(options).arg("-I").arg(here().join("include"));
    command.arg(if name.ends_with(".cpp") { "-std=c++17" } else { "-std=c11" }).arg(file).arg("-o").arg(&program);
    // The library reports some mistakes only if it was built for debugging, as this test was.
    if cfg!(debug_assertions) {
        command.arg("-DTELLS");
    }
    match linking {
        Linking::Static => command.arg(library.join("liblockwright.a")).args(SYSTEM),
        Linking::Sanitized => command.args(SANITIZERS).arg(library.join("liblockwright.a")).args(SYSTEM),
        Linking::Shared => {
            let rpath = format!("-Wl,-rpath,{}", library.display());
            command.arg("-L").arg(library).args(["-llockwright", &rpath])
        }
    };
    let compiled = run(&mut command);
    assert!(compiled.status.success(), "{command:?}: {}", said(&compiled));
    program
}

fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let folder = std::fs::read_dir(here().join(folder)).expect("a folder");
    let mut files: Vec<_> = folder.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|file| file.extension().is_some_and(|found| found == extension));
    files.sort();
    assert!(!files.is_empty(), "no test was found");
    files
}

fn programs() -> Vec<PathBuf> {
    [files("tests", "c"), files("tests", "cpp")].concat()
}

/// Runs a test or an example, alone on the machine if it needs real-time priorities. Returns `None` if the machine does
/// not allow it.
fn perform(file: &Path, linking: Linking, options: &[&str]) -> Option<Output> {
    let is_realtime = file.file_stem().is_some_and(|name| name == "realtime" || name == "tasks" || name == "cut");
    let program = compile(file, linking, options);
    let _machine = if is_realtime { Some(machine::require_realtime()?) } else { None };
    let output = run(&mut Command::new(program));
    assert!(output.status.code() != Some(SKIPPED), "skipped, although the machine allows it: {}", said(&output));
    Some(output)
}

fn all_hold(linking: Linking) {
    if !require_compilers(linking) {
        return;
    }
    let is_chosen = |file: &Path| CHOSEN.iter().any(|name| file.ends_with(name));
    let is_deep = std::env::var_os("LOCKWRIGHT_DEEP").is_some();
    // All programs pass with sanitizers, where the compiler has them.
    let is_partial = linking != Linking::Sanitized && !is_deep && require_compilers(Linking::Sanitized);
    for file in programs().into_iter().filter(|file| !is_partial || is_chosen(file)) {
        if let Some(output) = perform(&file, linking, &[]) {
            assert!(output.status.success(), "{}, {linking:?}: {}", file.display(), said(&output));
        }
    }
}

#[test]
fn programs_pass_with_the_static_library() {
    all_hold(Linking::Static);
}

#[test]
fn programs_pass_with_the_shared_library() {
    all_hold(Linking::Shared);
}

#[test]
fn programs_pass_under_sanitizers() {
    all_hold(Linking::Sanitized);
}

#[test]
fn every_mutant_fails() {
    if !require_compilers(Linking::Static) {
        return;
    }
    for file in programs() {
        if let Some(output) = perform(&file, Linking::Shared, &["-DMUTANT"]) {
            // By a check, not by a crash or the alarm.
            assert_eq!(output.status.code(), Some(1), "the mutant of {}: {}", file.display(), said(&output));
        }
    }
}

/// Programs in which no function of the header is compiled with its caller.
#[test]
fn sections_pass_when_they_are_called() {
    if !require_compilers(Linking::Shared) {
        return;
    }
    for name in ["ics.c", "steps.c", "cut.c"] {
        if let Some(output) = perform(&here().join("tests").join(name), Linking::Shared, &["-fno-inline"]) {
            assert!(output.status.success(), "{name}: {}", said(&output));
        }
    }
}

/// Programs in which clang has compiled the functions of the header with their caller.
#[test]
fn sections_pass_with_clang() {
    if let Err(error) = Command::new("clang").arg("--version").output() {
        assert!(std::env::var_os("LOCKWRIGHT_REQUIRE_CLANG").is_none(), "clang: {error}");
        let _ = writeln!(std::io::stderr(), "skipped: clang: {error}");
        return;
    }
    for name in ["ics.c", "steps.c"] {
        for (options, status) in [(&[][..], 0), (&["-DMUTANT"], 1)] {
            let program = compile_with("clang", &here().join("tests").join(name), Linking::Shared, options);
            let output = run(&mut Command::new(program));
            assert_eq!(output.status.code(), Some(status), "{name} with {options:?}: {}", said(&output));
        }
    }
}

/// The header contains an instruction, and programs may choose the other syntax of the assembler.
#[test]
#[cfg(target_arch = "x86_64")]
fn sections_pass_in_the_syntax_of_intel() {
    if !require_compilers(Linking::Shared) {
        return;
    }
    if let Some(output) = perform(&here().join("tests/ics.c"), Linking::Shared, &["-masm=intel"]) {
        assert!(output.status.success(), "{}", said(&output));
    }
}

/// A program that was compiled with the header of another layout calls the library. Without other check values it would
/// follow wrong pointers.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_program_of_another_layout_calls_the_library() {
    if !require_compilers(Linking::Shared) {
        return;
    }
    for (changes, passes) in [
        (&[("uint64_t lw_locator;", "uint64_t lw_place;")][..], false),
        (
            &[
                ("uint64_t lw_locator;", "uint64_t lw_place;"),
                ("#define LW_PRIVATE_ICS_SLOT_ ", "#define LW_PRIVATE_ICS_SLOT_ 1 // "),
                ("#define LW_PRIVATE_ICS_WRITES_ ", "#define LW_PRIVATE_ICS_WRITES_ 2 // "),
            ],
            true,
        ),
    ] {
        let folder = library().join(format!("layout-{passes}"));
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut header = std::fs::read_to_string(here().join("include/lockwright.h")).expect("the header");
        for (before, after) in changes {
            // Two fields exchange their places, and a number gets another value: the former one becomes a comment.
            let (first, rest) = header.split_once(before).expect("the header has it");
            header = match rest.split_once(after) {
                Some((between, rest)) => format!("{first}{after}{between}{before}{rest}"),
                None => format!("{first}{after}{rest}"),
            };
        }
        std::fs::write(folder.join("lockwright.h"), header).expect("can be written");
        let inline = "lockwright_inline.h";
        std::fs::copy(here().join("include").join(inline), folder.join(inline)).expect("a copy");
        let include = format!("-I{}", folder.display());
        let program = compile(&here().join("tests/ics.c"), Linking::Shared, &[&include]);
        let output = run(&mut Command::new(program));
        assert_eq!(output.status.success(), passes, "{}", said(&output));
    }
}

/// The mutant for the sanitizers: a program writes past the end of a mutex, and they detect it.
#[test]
fn the_sanitizer_detects_a_write_past_a_mutex() {
    if !require_compilers(Linking::Sanitized) {
        return;
    }
    let file = library().join("behind.c");
    let text = "#include <lockwright.h>\n#include <stdlib.h>\n#include <string.h>\nint main(void) {\n    \
                lw_mutex_t *mutex = malloc(sizeof *mutex);\n    if (!mutex || lw_mutex_init(mutex, NULL)) return 0;\n    \
                volatile size_t size = sizeof *mutex;\n    memset(mutex, 0, size + 1);\n    \
                return lw_mutex_lock(mutex) == 0;\n}\n";
    std::fs::write(&file, text).expect("can be written");
    let output = run(&mut Command::new(compile(&file, Linking::Sanitized, &[])));
    assert!(!output.status.success() && said(&output).contains("heap-buffer-overflow"), "{}", said(&output));
}

/// The trace of the example has every job and section that its report counts.
#[test]
fn a_trace_has_what_the_report_counts() {
    if !require_compilers(Linking::Shared) {
        return;
    }
    let path = library().join("jobs.pftrace");
    let program = compile(&here().join("examples/tasks.c"), Linking::Shared, &["-DTRACED"]);
    let Some(_machine) = machine::require_realtime() else { return };
    let output = run(Command::new(program).arg(&path));
    assert!(output.status.success(), "{}", said(&output));
    let report = String::from_utf8_lossy(&output.stdout);
    let counts = |task: &str| -> Vec<u64> {
        let row = |columns: usize| {
            let mut rows = report.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
            rows.find(|row| {
                row.first() == Some(&task) && row.get(1).is_some_and(|cell| (cell == &"bus") == (columns == 2))
            })
        };
        // Jobs; sections and waits.
        let number = |row: &[&str], at: usize| row[at].parse().expect("a number");
        let (jobs, bus) = (row(1).expect("a row"), row(2).expect("a row"));
        vec![number(&jobs, 1), number(&jobs, 1), number(&bus, 2), number(&bus, 3)]
    };
    let trace = Trace::decode(&*std::fs::read(&path).expect("there is a trace")).expect("it is one");
    let mut tracks: HashMap<u64, (String, u64)> = HashMap::new();
    let mut seen: HashMap<(String, String), u64> = HashMap::new();
    for packet in trace.packet {
        match packet.data.expect("a packet has contents") {
            Data::Track(track) => {
                let parent = track.parent_uuid.unwrap_or(0);
                tracks.insert(track.uuid.expect("an id"), (track.name.expect("a name"), parent));
            }
            Data::Event(event) => {
                let (name, parent) = &tracks[&event.track_uuid.expect("a track")];
                let task = if name == "locks" { &tracks[parent].0 } else { name };
                *seen.entry((task.clone(), event.name.unwrap_or_default())).or_default() += 1;
            }
        }
    }
    for task in ["control", "logging"] {
        let of = |what: &str| seen.get(&(task.to_owned(), what.to_owned())).copied().unwrap_or(0);
        let traced = ["arrival", "finish", "holding bus", "waiting for bus"].map(of);
        assert_eq!(counts(task), traced, "{task}: {report}");
        assert_eq!(of("arrival"), 1_000, "{task}: {report}");
    }
}

#[test]
fn the_examples_succeed() {
    if !require_compilers(Linking::Static) {
        return;
    }
    for file in [files("examples", "c"), files("examples", "cpp")].concat() {
        if let Some(output) = perform(&file, Linking::Shared, &[]) {
            assert!(output.status.success(), "{}: {}", file.display(), said(&output));
        }
    }
}

/// Each header compiles in every language version that it supports, included twice, without a warning.
#[test]
fn each_header_compiles_alone() {
    if !require_compilers(Linking::Static) {
        return;
    }
    let c = ("lockwright.h", "c", &["-std=c11", "-std=c17", "-std=gnu11"][..]);
    let cpp = ("lockwright.h", "cpp", &["-std=c++11", "-std=c++20"][..]);
    let hpp = ("lockwright.hpp", "cpp", &["-std=c++11", "-std=c++14", "-std=c++17", "-std=c++20"][..]);
    for (header, extension, languages) in [c, cpp, hpp] {
        let file = library().join(format!("alone-{header}.{extension}"));
        let text = format!(
            "#include \"{header}\"\n#include \"{header}\"\nlw_mutex_t m[] = {{LW_MUTEX_INITIALIZER, \
             LW_MUTEX_PROTECT_INITIALIZER(7)}};\nlw_cond_t c = LW_COND_INITIALIZER;\nlw_taskset_t t;\n"
        );
        std::fs::write(&file, text).expect("can be written");
        for (language, level) in languages.iter().flat_map(|language| [(language, "-O0"), (language, "-O1")]) {
            let mut command = Command::new(compiler(&file));
            command.args(WARNINGS).args([language, level, "-Wconversion", "-fsyntax-only", "-I"]);
            command.arg(here().join("include")).arg(&file);
            let compiled = run(&mut command);
            assert!(compiled.status.success(), "{command:?}: {}", said(&compiled));
        }
    }
}

/// The shared library exports only functions of the header, and its name contains the version.
#[test]
fn the_shared_library_exports_only_the_header() {
    if !require_compilers(Linking::Shared) {
        return;
    }
    let file = library().join("liblockwright.so");
    let symbols = run(Command::new("nm").args(["-D", "--defined-only"]).arg(&file));
    assert!(symbols.status.success(), "{}", said(&symbols));
    let header = std::fs::read_to_string(here().join("include/lockwright.h")).expect("the header");
    let text = String::from_utf8_lossy(&symbols.stdout).into_owned();
    let names: Vec<_> = text.lines().filter_map(|line| line.split_whitespace().last()).collect();
    assert!(names.len() >= 25, "{names:?}");
    for name in names {
        assert!(header.contains(&format!("{name}(")), "{name} is exported");
    }
    let dynamic = run(Command::new("readelf").arg("-d").arg(&file));
    let text = String::from_utf8_lossy(&dynamic.stdout).into_owned();
    assert!(text.contains(&format!("[{}]", soname())) && text.contains("NODELETE"), "{text}");
}

/// Programs may load two copies of the shared library late. The loader has little memory for the static TLS of such
/// libraries. With too many copies, the load must fail.
#[test]
fn two_copies_load_late() {
    const FITS: usize = 2;
    const TOO_MANY: usize = 6;
    if !require_compilers(Linking::Shared) {
        return;
    }
    let file = library().join("late.c");
    let text = "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdio.h>\nint main(int count, char **paths) {\n    \
                for (int i = 1; i < count; i++)\n        if (!dlopen(paths[i], RTLD_NOW | RTLD_LOCAL)) {\n            \
                fprintf(stderr, \"%s\\n\", dlerror());\n            return 1;\n        }\n    return 0;\n}\n";
    std::fs::write(&file, text).expect("can be written");
    let program = file.with_extension("out");
    let compiled = run(Command::new(compiler(&file)).arg(&file).arg("-o").arg(&program).arg("-ldl"));
    assert!(compiled.status.success(), "{}", said(&compiled));
    let copies: Vec<_> = (0..TOO_MANY).map(|copy| library().join(format!("late{copy}.so"))).collect();
    for copy in &copies {
        std::fs::copy(library().join("liblockwright.so"), copy).expect("a copy");
    }
    let load = |count| run(Command::new(&program).args(&copies[..count]));
    let (fits, too_many) = (load(FITS), load(TOO_MANY));
    copies.iter().for_each(|copy| _ = std::fs::remove_file(copy));
    assert!(fits.status.success(), "{}", said(&fits));
    assert!(said(&too_many).contains("static TLS"), "{}", said(&too_many));
}

/// Measures lock and unlock next to the C library's. Checks nothing.
#[test]
#[ignore = "a measurement: cargo test --release -p lockwright-c --test c -- --ignored --nocapture uncontended"]
fn uncontended() {
    if !require_compilers(Linking::Static) {
        return;
    }
    for linking in [Linking::Static, Linking::Shared] {
        let output = run(&mut Command::new(compile(&here().join("benches/uncontended.c"), linking, &["-O2"])));
        println!("{linking:?}: {}", said(&output));
    }
}
