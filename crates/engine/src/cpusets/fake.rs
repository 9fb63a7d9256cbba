//! An imitation of the kernel's hierarchies with one process in it.

use super::files::Files;
use super::hierarchy::Version;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

pub(super) const ROOT: &str = "/cg";

/// The number of another process: greater than the kernel gives.
pub(super) const OTHER: u32 = 1 << 23;

/// What an operation does from a given number on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// That one is refused with this error.
    Refusal(i32),
    /// The process was killed before it: none does anything any more.
    Kill,
}

/// The files of a machine, by path. Folders have no text.
#[derive(Debug)]
pub(super) struct Machine {
    version: Version,
    files: RefCell<BTreeMap<PathBuf, Option<String>>>,
    operations: Cell<u32>,
    /// The time that the process has waited.
    pub(super) waited: Cell<Duration>,
    pub(super) fault: Cell<Option<(u32, Fault)>>,
    /// Whether another process makes its first group while this one waits.
    pub(super) is_joined: Cell<bool>,
    /// Whether another process ends, and sets the switch back, just before this one makes its first group.
    pub(super) is_left: Cell<bool>,
}

pub(super) type Shared = Rc<Machine>;

pub(super) fn stat() -> PathBuf {
    format!("/proc/{}/stat", std::process::id()).into()
}

impl Machine {
    /// A machine with CPUs 0 to 3, whose process is in the group `home`.
    pub(super) fn new(version: Version, switched: bool) -> Shared {
        let machine = Self {
            version,
            files: RefCell::default(),
            operations: Cell::new(0),
            waited: Cell::default(),
            fault: Cell::new(None),
            is_joined: Cell::new(false),
            is_left: Cell::new(false),
        };
        let kind = if version == Version::One { "cgroup cgroup rw,cpuset" } else { "cgroup2 cgroup2 rw" };
        let mounts = format!("21 20 0:1 / /proc rw - proc proc rw\n30 20 0:2 / {ROOT} rw - {kind}\n");
        let process = std::process::id();
        machine.set("/proc/self/mountinfo", &mounts);
        machine.set(stat(), &format!("{process} (a) b) S {} 77", "0 ".repeat(18).trim()));
        machine.set("/proc/self/cgroup", "3:memory:/m\n0::/home\n");
        machine.folder(ROOT);
        machine.folder(&format!("{ROOT}/home"));
        if version == Version::One {
            machine.set(format!("{ROOT}/cpuset.sched_load_balance"), if switched { "0" } else { "1" });
            machine.set(format!("{ROOT}/cpuset.cpus"), "0-3\n");
            machine.set(format!("{ROOT}/cpuset.mems"), "0\n");
        } else {
            machine.set(format!("{ROOT}/cgroup.controllers"), "cpu cpuset io\n");
            machine.set(format!("{ROOT}/cgroup.subtree_control"), if switched { "cpu cpuset" } else { "cpu" });
            machine.set(format!("{ROOT}/cpuset.cpus.effective"), "0-3\n");
        }
        machine.set(format!("{ROOT}/home/cgroup.procs"), &process.to_string());
        Rc::new(machine)
    }

    pub(super) fn set(&self, path: impl Into<PathBuf>, text: &str) {
        self.files.borrow_mut().insert(path.into(), Some(text.into()));
    }

    /// The first group of another process, which executes, has this part.
    pub(super) fn other(&self, part: &str) {
        self.set(format!("/proc/{OTHER}/stat"), &format!("{OTHER} (o) S {} 55", "0 ".repeat(18).trim()));
        self.folder(&format!("{ROOT}/lockwright.{OTHER}.55.{part}"));
    }

    pub(super) fn forget(&self, path: &Path) {
        self.files.borrow_mut().remove(path);
    }

    /// All files and folders of the hierarchy.
    pub(super) fn all(&self) -> BTreeMap<PathBuf, Option<String>> {
        let files = self.files.borrow();
        files
            .iter()
            .filter(|(path, _)| path.starts_with(ROOT))
            .map(|(path, text)| (path.clone(), text.clone()))
            .collect()
    }

    pub(super) fn operations(&self) -> u32 {
        self.operations.replace(0)
    }

    pub(super) fn folder(&self, path: &str) {
        self.files.borrow_mut().insert(path.into(), None);
        let names: &[&str] = match self.version {
            Version::One => &["cpuset.cpus", "cpuset.mems", "cpuset.cpu_exclusive", "tasks", "cgroup.procs"],
            Version::Two => &["cpuset.cpus", "cpuset.cpus.partition", "cgroup.type", "cgroup.threads", "cgroup.procs"],
        };
        names.iter().for_each(|name| self.set(format!("{path}/{name}"), ""));
    }

    fn step(&self) -> io::Result<()> {
        let now = self.operations.get();
        self.operations.set(now + 1);
        match self.fault.get() {
            Some((at, Fault::Refusal(errno))) if at == now => Err(io::Error::from_raw_os_error(errno)),
            Some((at, Fault::Kill)) if at <= now => Err(io::Error::from_raw_os_error(libc::EINTR)),
            _ => Ok(()),
        }
    }

    /// What the kernel makes of a text.
    fn kept(&self, path: &Path, text: &str) -> io::Result<Option<String>> {
        let refused = |errno| Err(io::Error::from_raw_os_error(errno));
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let group = path.parent().unwrap_or(Path::new(""));
        let read = |name: &str| self.files.borrow().get(&group.join(name)).cloned().flatten().unwrap_or_default();
        Ok(Some(match name.as_str() {
            "cgroup.procs" => {
                let mut files = self.files.borrow_mut();
                files.iter_mut().filter(|(path, _)| path.ends_with("cgroup.procs")).for_each(|(_, text)| {
                    *text = Some(String::new());
                });
                text.into()
            }
            "cgroup.subtree_control" if text == "+cpuset" => "cpu cpuset".into(),
            "cgroup.subtree_control" => "cpu".into(),
            "cpuset.cpus" if self.version == Version::One && read("cpuset.mems").is_empty() => {
                return refused(libc::ENOSPC);
            }
            "cpuset.cpus.partition" if read("cgroup.type") != "threaded" => return refused(libc::EOPNOTSUPP),
            "cpuset.cpus.partition" if read("cpuset.cpus") == "3" => "root invalid (Cpu list in cpuset.cpus)".into(),
            _ => text.into(),
        }))
    }
}

impl Files for Shared {
    fn read(&self, path: &Path) -> io::Result<String> {
        self.step()?;
        let found = self.files.borrow().get(path).cloned().flatten();
        found.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
    }

    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        self.step()?;
        if !self.files.borrow().contains_key(path) {
            return Err(io::Error::from_raw_os_error(libc::ENOENT));
        }
        let kept = self.kept(path, text)?;
        self.files.borrow_mut().insert(path.into(), kept);
        Ok(())
    }

    fn make(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        if self.is_left.take() {
            self.set(format!("{ROOT}/cgroup.subtree_control"), "cpu");
        }
        self.folder(&path.to_string_lossy());
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        self.files.borrow_mut().retain(|known, _| !known.starts_with(path));
        Ok(())
    }

    fn wait(&self, time: Duration) {
        self.waited.set(self.waited.get() + time);
        if self.is_joined.take() {
            self.other("root");
        }
    }

    fn names(&self, path: &Path) -> io::Result<Vec<String>> {
        self.step()?;
        let files = self.files.borrow();
        let inside = files.keys().filter(|known| known.parent() == Some(path));
        Ok(inside.filter_map(|known| Some(known.file_name()?.to_string_lossy().into_owned())).collect())
    }
}
