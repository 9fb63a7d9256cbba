//! The C library: installing it, and the examples with what was installed.

use crate::tool;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

const HEADERS: [&str; 2] = ["lockwright.h", "lockwright.hpp"];
/// What the static library needs of the system. `rustc --print native-static-libs` says it.
const SYSTEM: &str = "-lutil -lrt -lpthread -lm -ldl";

/// Where it goes.
struct Places {
    prefix: PathBuf,
    libdir: PathBuf,
    /// Before all of them, where they are packed and not used.
    destdir: Option<PathBuf>,
}

impl Places {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let (mut prefix, mut libdir, mut destdir) = (None, None, None);
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let (name, value) = match argument.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (argument.as_str(), arguments.next().cloned()),
            };
            let value = PathBuf::from(value.ok_or(format!("{name} needs a folder"))?);
            let place = match name {
                "--prefix" => &mut prefix,
                "--libdir" => &mut libdir,
                "--destdir" => &mut destdir,
                _ => return Err(format!("{name} is not among --prefix DIR, --libdir DIR, --destdir DIR")),
            };
            if !value.is_absolute() {
                return Err(format!("{name} {} is not an absolute path", value.display()));
            }
            *place = Some(value);
        }
        let prefix = prefix.ok_or("say where: --prefix DIR (/usr/local, say)")?;
        let libdir = libdir.unwrap_or_else(|| prefix.join("lib"));
        Ok(Self { prefix, libdir, destdir })
    }

    /// Where `path` is now.
    fn staged(&self, path: &Path) -> PathBuf {
        match &self.destdir {
            Some(destdir) => destdir.join(path.strip_prefix("/").unwrap_or(path)),
            None => path.to_owned(),
        }
    }
}

pub fn install(arguments: &[String]) -> Result<(), String> {
    put(&Places::parse(arguments)?)
}

fn put(places: &Places) -> Result<(), String> {
    let built = build()?;
    let version = env!("CARGO_PKG_VERSION");
    let full = format!("liblockwright.so.{version}");
    // As bindings/c/build.rs has it.
    let soname = format!("liblockwright.so.{}.{}", env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"));

    let include = places.staged(&places.prefix.join("include"));
    let lib = places.staged(&places.libdir);
    let pkgconfig = lib.join("pkgconfig");
    for folder in [&include, &pkgconfig] {
        std::fs::create_dir_all(folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    }
    for header in HEADERS {
        copy(&tool::root().join("bindings/c/include").join(header), &include.join(header))?;
    }
    copy(&built.join("liblockwright_c.a"), &lib.join("liblockwright.a"))?;
    copy(&built.join("liblockwright_c.so"), &lib.join(&full))?;
    link(&full, &lib.join(&soname))?;
    link(&soname, &lib.join("liblockwright.so"))?;
    write(&pkgconfig.join("lockwright.pc"), &pkg_config(places, version))
}

fn pkg_config(places: &Places, version: &str) -> String {
    let (prefix, libdir) = (places.prefix.display(), &places.libdir);
    let libdir = match libdir.strip_prefix(&places.prefix) {
        Ok(below) => format!("${{prefix}}/{}", below.display()),
        Err(_) => libdir.display().to_string(),
    };
    let template = include_str!("../../bindings/c/lockwright.pc.in");
    [("@prefix@", prefix.to_string().as_str()), ("@libdir@", &libdir), ("@version@", version), ("@system@", SYSTEM)]
        .iter()
        .fold(template.to_owned(), |text, (name, value)| text.replace(name, value))
}

/// Builds the library as it is installed, and says in which folder it is.
fn build() -> Result<PathBuf, String> {
    tool::cargo(&["build", "--release", "--package", "lockwright-c", "--lib"])?;
    // This chore was built into a folder beside that.
    let me = std::env::current_exe().map_err(|error| format!("cannot find my own place: {error}"))?;
    let folder = me.parent().and_then(Path::parent).ok_or("cannot find the folder that cargo builds into")?;
    Ok(folder.join("release"))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    // A program that executes with the one before keeps it.
    let _ = std::fs::remove_file(to);
    std::fs::copy(from, to).map_err(|error| format!("cannot copy {} to {}: {error}", from.display(), to.display()))?;
    eprintln!("xtask: {}", to.display());
    Ok(())
}

fn link(to: &str, at: &Path) -> Result<(), String> {
    let _ = std::fs::remove_file(at);
    symlink(to, at).map_err(|error| format!("cannot link {}: {error}", at.display()))?;
    eprintln!("xtask: {} -> {to}", at.display());
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    eprintln!("xtask: {}", path.display());
    Ok(())
}

/// Installs into a folder under target/, and builds and runs the examples with nothing but that, by both libraries.
pub fn installed() -> Result<(), String> {
    let Some(compilers) = compilers()? else { return Ok(()) };
    let prefix = tool::root().join("target/installed");
    let _ = std::fs::remove_dir_all(&prefix);
    let places = Places { libdir: prefix.join("lib"), prefix, destdir: None };
    put(&places)?;
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
    Ok(())
}

/// For C and for C++; none where there are none, with a word. LOCKWRIGHT_REQUIRE_CC=1 makes that a failure.
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
        // The library alone, not the C library.
        let archive = places.libdir.join("liblockwright.a");
        compile
            .args(flags.split_whitespace().filter(|flag| *flag != "-llockwright"))
            .arg(archive)
            .args(SYSTEM.split(' '));
    } else {
        compile.args(flags.split_whitespace());
    }
    tool::run(&mut compile)?;
    tool::run(Command::new(&program).env("LD_LIBRARY_PATH", &places.libdir))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Places, String> {
        Places::parse(&arguments.iter().map(|argument| (*argument).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn places_are_as_makefiles_have_them() {
        let places = parse(&["--prefix", "/usr", "--destdir=/tmp/packed"]).unwrap();
        assert_eq!(places.libdir, Path::new("/usr/lib"));
        assert_eq!(places.staged(&places.libdir), Path::new("/tmp/packed/usr/lib"));
        let text = pkg_config(&places, "1.2.3");
        assert!(text.contains("prefix=/usr\n") && text.contains("libdir=${prefix}/lib\n"), "{text}");
        assert!(text.contains("Version: 1.2.3\n") && !text.contains('@') && !text.contains("packed"), "{text}");
        let places = parse(&["--prefix=/opt/lw", "--libdir", "/usr/lib/x"]).unwrap();
        assert_eq!(places.staged(&places.libdir), Path::new("/usr/lib/x"));
        assert!(pkg_config(&places, "1").contains("libdir=/usr/lib/x\n"));
    }

    #[test]
    fn what_is_no_place_is_refused() {
        for arguments in [&[][..], &["--prefix"], &["--prefix", "usr"], &["--prefx", "/usr"], &["--destdir", "/x"]] {
            assert!(parse(arguments).is_err(), "{arguments:?}");
        }
    }
}
