//! Uses the installed files as other projects do: builds examples with the C library, and runs programs that preload
//! the other library.

use crate::install::{self, COMPLETIONS, MAN, PRELOADED, Places, SYSTEM};
use crate::tool;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The exit status of a program that needs real-time priorities and has no permission for them.
const NO_RIGHT: i32 = 77;

/// Installs into a directory under target/. Builds and runs the examples with only these files and with both libraries.
/// Also runs programs that do not refer to Lockwright.
pub fn run() -> Result<(), String> {
    let Some(compilers) = compilers()? else { return Ok(()) };
    let prefix = tool::root().join("target/installed");
    let _ = std::fs::remove_dir_all(&prefix);
    let places = Places { libdir: prefix.join("lib"), prefix, destdir: None };
    install::put(&places)?;
    sizes(&places)?;
    command_line(&places.prefix)?;
    let folder = tool::root().join("bindings/c/examples");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect())
        .map_err(|error| format!("cannot list {}: {error}", folder.display()))?;
    files.sort();
    for file in &files {
        for is_static in [false, true] {
            example(file, &places, &compilers, is_static)?;
        }
    }
    by_cmake(&places, &folder)?;
    preloaded(&places, &compilers)
}

/// Checks that no debug information or code for measurements got into what is installed.
fn sizes(places: &Places) -> Result<(), String> {
    const MEGABYTE: u64 = 1 << 20;
    let library = places.libdir.join("liblockwright.so");
    for (file, megabytes) in
        [(places.prefix.join("bin/lockwright"), 10), (library, 2), (places.libdir.join(PRELOADED), 2)]
    {
        let size = file.metadata().map_err(|error| format!("{}: {error}", file.display()))?.len();
        if size > megabytes * MEGABYTE {
            return Err(format!("{} has {size} bytes, more than {megabytes} MiB", file.display()));
        }
    }
    Ok(())
}

/// Checks that a CMake project finds the package and that another version is refused. Skips with a message if there is
/// no CMake.
fn by_cmake(places: &Places, examples: &Path) -> Result<(), String> {
    if Command::new("cmake").arg("--version").output().is_err() {
        eprintln!("xtask: skipped: cmake does not start; install it (Debian: cmake) to test find_package(lockwright)");
        return Ok(());
    }
    for (version, is_found) in [("0.1", true), ("99.0", false)] {
        let project = places.prefix.join("cmake-project");
        let _ = std::fs::remove_dir_all(&project);
        std::fs::create_dir_all(&project).map_err(|error| format!("cannot create {}: {error}", project.display()))?;
        let lists = format!(
            "cmake_minimum_required(VERSION 3.13)\nproject(example C)\nfind_package(lockwright {version} REQUIRED)\n\
             add_executable(shared {example})\ntarget_link_libraries(shared lockwright::lockwright)\n\
             add_executable(static {example})\ntarget_link_libraries(static lockwright::static)\n",
            example = examples.join("condvar.c").display()
        );
        let path = project.join("CMakeLists.txt");
        std::fs::write(&path, lists).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        let mut configure = Command::new("cmake");
        configure.arg("-S").arg(&project).arg("-B").arg(project.join("build"));
        configure.arg(format!("-DCMAKE_PREFIX_PATH={}", places.prefix.display()));
        if !is_found {
            let output = configure.output().map_err(|error| format!("cmake does not start: {error}"))?;
            if output.status.success() {
                return Err(format!("find_package(lockwright {version}) accepts {}", env!("CARGO_PKG_VERSION")));
            }
            continue;
        }
        tool::run(&mut configure)?;
        tool::run(Command::new("cmake").arg("--build").arg(project.join("build")))?;
        for program in ["shared", "static"] {
            let program = project.join("build").join(program);
            let status = Command::new(&program).status().map_err(|error| format!("{}: {error}", program.display()))?;
            match status.code() {
                Some(0) => {}
                Some(NO_RIGHT) => without_right(&program.display().to_string())?,
                code => return Err(format!("{} ended with {code:?}", program.display())),
            }
        }
    }
    Ok(())
}

/// Checks that the binary works, that its commands have manual pages, and that each completion script has the commands.
fn command_line(prefix: &Path) -> Result<(), String> {
    let pathfinder = tool::root().join("examples/pathfinder.toml");
    tool::run(Command::new(prefix.join("bin/lockwright")).arg("check").arg(pathfinder))?;
    // The server is there, and refuses standard input.
    let served = Command::new(prefix.join("bin/lockwright")).args(["serve", "-"]).output();
    let served = served.map_err(|error| format!("lockwright does not start: {error}"))?;
    let told = String::from_utf8_lossy(&served.stderr);
    if !told.contains("`serve` needs a file") {
        return Err(format!("`lockwright serve` says: {told}"));
    }
    for page in ["lockwright", "lockwright-check", "lockwright-measure-locks"] {
        mentions(&prefix.join(MAN).join(format!("{page}.1")), "lockwright")?;
    }
    COMPLETIONS.iter().try_for_each(|(_, script)| mentions(&prefix.join(script), "simulate"))
}

fn mentions(path: &Path, word: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    if text.contains(word) { Ok(()) } else { Err(format!("{} does not mention {word}", path.display())) }
}

/// The compilers for C and C++. Returns `None` with a message if there are none; with LOCKWRIGHT_REQUIRE_CC=1, that is
/// an error.
fn compilers() -> Result<Option<[String; 2]>, String> {
    let compilers = [("CC", "cc"), ("CXX", "c++")]
        .map(|(variable, name)| std::env::var(variable).unwrap_or_else(|_| name.to_owned()));
    for program in compilers.iter().chain([&"pkg-config".to_owned()]) {
        let Err(error) = Command::new(program).arg("--version").output() else { continue };
        let why = format!(
            "{program} does not start ({error}); install compilers and pkg-config (Debian: gcc g++ pkg-config), or \
             set CC and CXX"
        );
        if std::env::var_os("LOCKWRIGHT_REQUIRE_CC").is_some() {
            return Err(why);
        }
        eprintln!("xtask: skipped: {why}");
        return Ok(None);
    }
    Ok(Some(compilers))
}

fn example(file: &Path, places: &Places, [cc, cxx]: &[String; 2], is_static: bool) -> Result<(), String> {
    let mut flags = Command::new("pkg-config");
    flags.args(["--cflags", "--libs"]).env("PKG_CONFIG_PATH", places.libdir.join("pkgconfig"));
    if is_static {
        flags.arg("--static");
    }
    let flags = flags.arg("lockwright").output().map_err(|error| format!("pkg-config does not start: {error}"))?;
    if !flags.status.success() {
        return Err(format!("pkg-config: {}", String::from_utf8_lossy(&flags.stderr)));
    }
    let flags = String::from_utf8_lossy(&flags.stdout).into_owned();
    let program = places.prefix.join("example");
    let mut compile = Command::new(if file.extension().is_some_and(|extension| extension == "cpp") { cxx } else { cc });
    compile.arg(file).arg("-pthread").arg("-o").arg(&program);
    if is_static {
        // The static library of Lockwright only, not a static C library.
        let archive = places.libdir.join("liblockwright.a");
        compile
            .args(flags.split_whitespace().filter(|flag| *flag != "-llockwright"))
            .arg(archive)
            .args(SYSTEM.split(' '));
    } else {
        compile.args(flags.split_whitespace());
    }
    tool::run(&mut compile)?;
    let mut command = Command::new(&program);
    eprintln!("xtask: {}", tool::shown(&command));
    let status = command.env("LD_LIBRARY_PATH", &places.libdir).status();
    match status.map_err(|error| format!("{} does not start: {error}", program.display()))?.code() {
        Some(0) => Ok(()),
        Some(NO_RIGHT) => without_right(&format!("{}", file.display())),
        code => Err(format!("{} ended with {code:?}", file.display())),
    }
}

/// Skips with a message a program that has no permission for real-time priorities; with LOCKWRIGHT_REQUIRE_RT set, that
/// is an error.
fn without_right(program: &str) -> Result<(), String> {
    let why = format!("{program}: no permission for real-time priorities");
    if std::env::var_os("LOCKWRIGHT_REQUIRE_RT").is_some() {
        return Err(why);
    }
    eprintln!("xtask: skipped: {why}");
    Ok(())
}

/// A program that uses the C library's mutexes and is built without Lockwright.
struct Unaware {
    program: PathBuf,
    library: PathBuf,
}

impl Unaware {
    fn build(source: &str, places: &Places, [cc, _]: &[String; 2]) -> Result<Self, String> {
        let program = places.prefix.join("unaware");
        let mut compile = Command::new(cc);
        compile.arg(tool::root().join("bindings/pthread/tests/programs").join(source));
        tool::run(compile.args(["-std=gnu11", "-O2", "-pthread", "-o"]).arg(&program))?;
        Ok(Self { program, library: places.libdir.join(PRELOADED) })
    }

    fn run(&self, arguments: &[&str], (name, value): (&str, &str), is_preloaded: bool) -> Result<Output, String> {
        let mut command = Command::new(&self.program);
        for name in ["LD_PRELOAD", "LOCKWRIGHT_PROTOCOL", "LOCKWRIGHT_UNLOCK", "LOCKWRIGHT_DEADLOCK"] {
            command.env_remove(name);
        }
        command.args(arguments).env(name, value);
        if is_preloaded {
            command.env("LD_PRELOAD", &self.library);
        }
        let said = if is_preloaded { format!("LD_PRELOAD={} ", self.library.display()) } else { String::new() };
        eprintln!("xtask: {said}{name}={value} {}", tool::shown(&command));
        command.output().map_err(|error| format!("{} does not start: {error}", self.program.display()))
    }
}

/// Checks that the library is in effect if it is preloaded and, as a negative control, only in that case.
fn preloaded(places: &Places, compilers: &[String; 2]) -> Result<(), String> {
    let program = Unaware::build("deadlock.c", places, compilers)?;
    for is_preloaded in [true, false] {
        let output = program.run(&["plain", "waits"], ("LOCKWRIGHT_DEADLOCK", "report"), is_preloaded)?;
        let is_told = String::from_utf8_lossy(&output.stderr).starts_with("lockwright: deadlock in process ");
        hold("a deadlock is reported", output.status.success() && is_told == is_preloaded, &output)?;
    }
    let program = Unaware::build("order.c", places, compilers)?;
    for is_preloaded in [true, false] {
        let output = program.run(&["inherits"], ("LOCKWRIGHT_PROTOCOL", "inherit"), is_preloaded)?;
        if output.status.code() == Some(NO_RIGHT) {
            return without_right("order.c");
        }
        let expected = if is_preloaded { 0 } else { 1 };
        hold("a plain mutex inherits", output.status.code() == Some(expected), &output)?;
    }
    Ok(())
}

fn hold(what: &str, holds: bool, output: &Output) -> Result<(), String> {
    let said = String::from_utf8_lossy(&output.stderr);
    if holds { Ok(()) } else { Err(format!("true only if preloaded: {what}: {}\n{said}", output.status)) }
}
