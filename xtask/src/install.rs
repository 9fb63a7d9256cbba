//! Installing what others are linked with, or load: the C library with its headers, and the library to be preloaded.

use crate::tool;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

const HEADERS: [&str; 2] = ["lockwright.h", "lockwright.hpp"];
/// What the static library needs of the system. `rustc --print native-static-libs` says it.
pub const SYSTEM: &str = "-lutil -lrt -lpthread -lm -ldl";

/// The library to be preloaded. Nothing is linked with it, so it has no version in its name: what preloads it goes on with the next one.
pub const PRELOADED: &str = "liblockwright_pthread.so";

/// Where it goes.
pub struct Places {
    pub prefix: PathBuf,
    pub libdir: PathBuf,
    /// Before all of them, where they are packed and not used.
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

/// Builds everything and puts it where it belongs.
pub fn put(places: &Places) -> Result<(), String> {
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
    copy(&built.join(PRELOADED), &lib.join(PRELOADED))?;
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

/// Builds the libraries as they are installed, and says in which folder they are.
fn build() -> Result<PathBuf, String> {
    tool::cargo(&["build", "--release", "--package", "lockwright-c", "--package", "lockwright-pthread", "--lib"])?;
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
