//! Installs the command line with its manual pages and completions, the C library with its headers, and the libraries
//! for `LD_PRELOAD`.

use crate::tool;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

const HEADERS: [&str; 4] = [
    "c/include/lockwright.h",
    "c/include/lockwright_inline.h",
    "c/include/lockwright.hpp",
    "record/include/lockwright_record.h",
];
/// The system libraries that the static library needs: the output of `rustc --print native-static-libs`.
pub const SYSTEM: &str = "-lutil -lrt -lpthread -lm -ldl";

/// The library for `LD_PRELOAD`. Programs are not linked with it, so its name has no version. Scripts that name it work
/// with all versions.
pub const PRELOADED: &str = "liblockwright_pthread.so";

/// The library that `lockwright record` preloads. The command finds it below its own prefix.
pub const RECORDER: &str = "liblockwright_recorder.so";

/// The completion scripts below the prefix, each in the directory that its shell searches.
pub const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/lockwright"),
    ("zsh", "share/zsh/site-functions/_lockwright"),
    ("fish", "share/fish/vendor_completions.d/lockwright.fish"),
];

/// The directory of the manual pages, below the prefix.
pub const MAN: &str = "share/man/man1";

/// The target directories.
pub struct Places {
    pub prefix: PathBuf,
    pub libdir: PathBuf,
    /// The staging directory. All files are written below it, and none of them contains its path.
    pub destdir: Option<PathBuf>,
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
            let value = PathBuf::from(value.ok_or(format!("{name} needs a directory"))?);
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
        let prefix = prefix.ok_or("give --prefix DIR, for example --prefix /usr/local")?;
        let libdir = libdir.unwrap_or_else(|| prefix.join("lib"));
        Ok(Self { prefix, libdir, destdir })
    }

    /// The place of `path` below the staging directory.
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

/// Builds everything and copies it to the target directories.
pub fn put(places: &Places) -> Result<(), String> {
    let built = build()?;
    let version = env!("CARGO_PKG_VERSION");
    let full = format!("liblockwright.so.{version}");
    // bindings/c/build.rs sets the same name.
    let soname = format!("liblockwright.so.{}.{}", env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"));

    let include = places.staged(&places.prefix.join("include"));
    let lib = places.staged(&places.libdir);
    let pkgconfig = lib.join("pkgconfig");
    let cmake = lib.join("cmake/lockwright");
    for folder in [&include, &pkgconfig, &cmake] {
        std::fs::create_dir_all(folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    }
    for header in HEADERS {
        let from = tool::root().join("bindings").join(header);
        copy(&from, &include.join(from.file_name().unwrap_or_default()))?;
    }
    copy(&built.join("liblockwright_c.a"), &lib.join("liblockwright.a"))?;
    strip(&lib.join("liblockwright.a"));
    copy(&built.join("liblockwright_c.so"), &lib.join(&full))?;
    link(&full, &lib.join(&soname))?;
    link(&soname, &lib.join("liblockwright.so"))?;
    for library in [PRELOADED, RECORDER] {
        copy(&built.join(library), &lib.join(library))?;
    }
    write(&pkgconfig.join("lockwright.pc"), &pkg_config(places, version))?;
    write(&cmake.join("lockwright-config.cmake"), &filled(CMAKE_CONFIG, places, version, &soname))?;
    write(&cmake.join("lockwright-config-version.cmake"), &filled(CMAKE_VERSION, places, version, &soname))?;
    command_line(&built.join("lockwright"), &places.staged(&places.prefix))
}

/// Installs the binary, its manual pages and its completion scripts.
fn command_line(built: &Path, prefix: &Path) -> Result<(), String> {
    let binary = prefix.join("bin/lockwright");
    make_parent(&binary)?;
    copy(built, &binary)?;
    let man = prefix.join(MAN);
    tool::run(Command::new(&binary).arg("man").arg(&man))?;
    eprintln!("xtask: {}/lockwright*.1", man.display());
    for (shell, place) in COMPLETIONS {
        let output = Command::new(&binary).args(["completions", shell]).output();
        let output = output.map_err(|error| format!("{} does not start: {error}", binary.display()))?;
        if !output.status.success() {
            return Err(format!("{} prints no completions for {shell}", binary.display()));
        }
        let script = prefix.join(place);
        make_parent(&script)?;
        write(&script, &String::from_utf8_lossy(&output.stdout))?;
    }
    Ok(())
}

fn make_parent(path: &Path) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))
}

fn pkg_config(places: &Places, version: &str) -> String {
    let (prefix, libdir) = (places.prefix.display(), &places.libdir);
    let libdir = match libdir.strip_prefix(&places.prefix) {
        Ok(below) => format!("${{prefix}}/{}", below.display()),
        Err(_) => libdir.display().to_string(),
    };
    let template = include_str!("../../bindings/c/lockwright.pc.in");
    replaced(
        template,
        &[("prefix", &prefix.to_string()), ("libdir", &libdir), ("version", version), ("system", SYSTEM)],
    )
}

const CMAKE_CONFIG: &str = include_str!("../../bindings/c/lockwright-config.cmake.in");
const CMAKE_VERSION: &str = include_str!("../../bindings/c/lockwright-config-version.cmake.in");

/// Fills in a template for CMake.
fn filled(template: &str, places: &Places, version: &str, soname: &str) -> String {
    let (prefix, libdir) = (places.prefix.display().to_string(), places.libdir.display().to_string());
    let (major, minor) = (env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"));
    let values = [("prefix", &*prefix), ("libdir", &*libdir), ("version", version), ("soname", soname)];
    replaced(template, &[&values[..], &[("major", major), ("minor", minor)]].concat())
}

/// The template with `@name@` replaced by its value, for each name.
fn replaced(template: &str, values: &[(&str, &str)]) -> String {
    values.iter().fold(template.to_owned(), |text, (name, value)| text.replace(&format!("@{name}@"), value))
}

/// Builds the libraries and the binary as they are installed, and returns their directory.
fn build() -> Result<PathBuf, String> {
    let program = ["rustc", "--profile", "dist", "--package", "lockwright-cli", "--bin", "lockwright"];
    // Cargo forgets the `strip` of the profile for a package that has settings of its own there.
    tool::cargo(&[&program[..], &["--features", "full", "--", "-C", "strip=symbols"]].concat())?;
    let libraries =
        [("lockwright-c", "staticlib,cdylib"), ("lockwright-pthread", "cdylib"), ("lockwright-recorder", "cdylib")];
    for (package, types) in libraries {
        tool::cargo(&["rustc", "--profile", "dist", "--package", package, "--lib", "--crate-type", types])?;
    }
    // Cargo has built this program into a sibling of that directory.
    let me = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let folder = me.parent().and_then(Path::parent).ok_or("cannot find the target directory of cargo")?;
    Ok(folder.join("dist"))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    // A process that uses the previous file keeps it.
    let _ = std::fs::remove_file(to);
    std::fs::copy(from, to).map_err(|error| format!("cannot copy {} to {}: {error}", from.display(), to.display()))?;
    eprintln!("xtask: {}", to.display());
    Ok(())
}

/// Removes the debug information of the standard library, which cargo strips only from shared libraries. Without
/// binutils, the file stays larger.
fn strip(archive: &Path) {
    let status = Command::new("strip").arg("--strip-debug").arg(archive).status();
    if !status.is_ok_and(|status| status.success()) {
        eprintln!("xtask: strip does not work; {} contains debug information", archive.display());
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Places, String> {
        Places::parse(&arguments.iter().map(|argument| (*argument).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn target_directories_follow_the_makefile_conventions() {
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
    fn invalid_target_directories_are_refused() {
        for arguments in [&[][..], &["--prefix"], &["--prefix", "usr"], &["--prefx", "/usr"], &["--destdir", "/x"]] {
            assert!(parse(arguments).is_err(), "{arguments:?}");
        }
    }
}
