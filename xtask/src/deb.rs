//! The Debian package: the files that `cargo xtask install` writes, packed by cargo-deb.

use crate::install::{self, Places};
use crate::tool;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The directory of everything that is built here.
fn folder() -> PathBuf {
    tool::root().join("target/deb")
}

/// Builds target/deb/lockwright.deb.
pub fn build_package() -> Result<(), String> {
    build().map(drop)
}

/// Returns the package and the directory with the files from which it was built.
fn build() -> Result<(PathBuf, PathBuf), String> {
    tool::install("cargo-deb", "deb")?;
    let (staged, package) = (folder().join("staged"), folder().join("lockwright.deb"));
    let _ = std::fs::remove_dir_all(&staged);
    // Debian's loader, pkg-config and CMake search /usr/lib on every architecture.
    let places = Places { prefix: "/usr".into(), libdir: "/usr/lib".into(), destdir: Some(staged.clone()) };
    install::put(&places)?;
    let mut command = tool::cargo_command(&["deb", "--no-build", "--no-strip", "--package", "lockwright-cli"]);
    tool::run(command.arg("--output").arg(&package))?;
    eprintln!("xtask: {}", package.display());
    Ok((package, staged))
}

/// Builds the package, installs it into its own root directory, uses it there, and checks that its removal leaves no
/// file.
pub fn check() -> Result<(), String> {
    let (package, staged) = build()?;
    let root = Root::create(folder().join("root"))?;
    root.dpkg(&["--install"], package.as_os_str().as_ref())?;
    // cargo-deb compresses the manual pages.
    let installed: BTreeSet<PathBuf> = files(&root.0)?.into_iter().map(uncompressed).collect();
    let expected = files(&staged)?;
    if let Some(missing) = expected.difference(&installed).next() {
        return Err(format!("the package lacks {}", missing.display()));
    }
    let others: Vec<&PathBuf> = installed.difference(&expected).collect();
    if let Some(other) = others.iter().find(|other| !other.starts_with("usr/share/doc/lockwright")) {
        return Err(format!("the package contains {}, which `cargo xtask install` does not write", other.display()));
    }
    if !others.iter().any(|other| other.ends_with("copyright")) {
        return Err("the package contains no copyright".into());
    }
    root.use_it()?;

    // The mutant: the removal must keep a file that the package does not own.
    let stray = root.0.join("usr/lib/liblockwright.so.stray");
    std::fs::write(&stray, "").map_err(|error| format!("cannot write {}: {error}", stray.display()))?;
    root.dpkg(&["--purge"], Path::new("lockwright"))?;
    if files(&root.0)? != BTreeSet::from(["usr/lib/liblockwright.so.stray".into()]) {
        return Err("the removal does not leave exactly the file that the package does not own".into());
    }
    let _ = std::fs::remove_file(&stray);
    root.dpkg(&["--install"], package.as_os_str().as_ref())?;
    root.dpkg(&["--purge"], Path::new("lockwright"))?;
    let left = files(&root.0)?.into_iter().next().or_else(|| root.0.join("usr").exists().then(|| "usr".into()));
    left.map_or(Ok(()), |left| Err(format!("the removal leaves {}", left.display())))
}

/// A root directory for dpkg, with its own database.
struct Root(PathBuf);

impl Root {
    fn create(root: PathBuf) -> Result<Self, String> {
        let _ = std::fs::remove_dir_all(&root);
        let database = root.join("var/lib/dpkg");
        for folder in ["info", "updates", "triggers"] {
            let folder = database.join(folder);
            std::fs::create_dir_all(&folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
        }
        let status = database.join("status");
        std::fs::write(&status, "").map_err(|error| format!("cannot write {}: {error}", status.display()))?;
        Ok(Self(root))
    }

    /// Runs dpkg. The dependencies of the package are installed on the machine, but not in this database.
    fn dpkg(&self, action: &[&str], object: &Path) -> Result<(), String> {
        let mut command = Command::new("dpkg");
        command.arg("--root").arg(&self.0).args(["--force-not-root", "--force-depends"]);
        // dpkg requires the administrators' directories in the path.
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{path}:/usr/sbin:/sbin")).args(action).arg(object);
        tool::run(&mut command)
    }

    /// Runs the binary, and builds and runs a program in C with the installed files.
    fn use_it(&self) -> Result<(), String> {
        let usr = self.0.join("usr");
        tool::run(
            Command::new(usr.join("bin/lockwright")).arg("check").arg(tool::root().join("examples/pathfinder.toml")),
        )?;
        let mut flags = Command::new("pkg-config");
        flags.args(["--cflags", "--libs", "lockwright"]).env("PKG_CONFIG_SYSROOT_DIR", &self.0);
        flags.env("PKG_CONFIG_LIBDIR", usr.join("lib/pkgconfig"));
        // Otherwise pkg-config omits the directories that a compiler searches: here they are below another root.
        flags.envs(["PKG_CONFIG_ALLOW_SYSTEM_CFLAGS", "PKG_CONFIG_ALLOW_SYSTEM_LIBS"].map(|name| (name, "1")));
        let flags = flags.output().map_err(|error| format!("pkg-config does not start: {error}"))?;
        let flags = String::from_utf8_lossy(&flags.stdout).into_owned();
        let program = folder().join("condvar");
        let mut compile = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".to_owned()));
        compile.arg(tool::root().join("bindings/c/examples/condvar.c")).arg("-pthread").arg("-o").arg(&program);
        tool::run(compile.args(flags.split_whitespace()))?;
        tool::run(Command::new(&program).env("LD_LIBRARY_PATH", usr.join("lib")))
    }
}

/// The name of a manual page without the suffix of a compressed file.
fn uncompressed(path: PathBuf) -> PathBuf {
    if path.starts_with("usr/share/man") { path.with_extension("") } else { path }
}

/// The files and links below a directory, without the database of dpkg.
fn files(root: &Path) -> Result<BTreeSet<PathBuf>, String> {
    let (mut found, mut todo) = (BTreeSet::new(), vec![root.to_owned()]);
    // BOUND: each directory is visited once; links are not followed.
    while let Some(folder) = todo.pop() {
        let entries =
            std::fs::read_dir(&folder).map_err(|error| format!("cannot list {}: {error}", folder.display()))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            let relative = path.strip_prefix(root).unwrap_or(&path).to_owned();
            if relative == Path::new("var") {
                continue;
            }
            if path.is_dir() && !path.is_symlink() {
                todo.push(path);
            } else {
                found.insert(relative);
            }
        }
    }
    Ok(found)
}
