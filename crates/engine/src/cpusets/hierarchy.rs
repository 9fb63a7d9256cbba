//! The mounted hierarchy that has cpusets, and how its two versions make a CPU a partition of its own.
//!
//! | | version 1 | version 2 |
//! |---|---|---|
//! | a partition | a child of the root with one CPU, exclusive | a threaded child of the root with one CPU, of the type `root` |
//! | the switch at the root | `sched_load_balance` = 0, so that the CPUs are apart | `+cpuset` in `cgroup.subtree_control` |
//! | the other CPUs | one more child, which balances among them | stay with the root, which keeps at least one |
//! | a thread enters by | `tasks` | `cgroup.threads`; its process must be in the root |

use super::error::CpusetError;
use super::files::Files;
use lockwright_sys::sched;
use std::path::{Path, PathBuf};

const MOUNTS: &str = "/proc/self/mountinfo";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Version {
    One,
    Two,
}

/// A mounted hierarchy with cpusets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Hierarchy {
    pub(super) version: Version,
    /// Where its root is mounted.
    pub(super) root: PathBuf,
}

impl Hierarchy {
    /// Finds the hierarchy that has the cpusets of this machine: only one can have them.
    pub(super) fn find(files: &impl Files) -> Result<Self, CpusetError> {
        let mounts = files.read(Path::new(MOUNTS)).unwrap_or_default();
        mounts.lines().find_map(|line| Self::of_mount(files, line)).ok_or(CpusetError::NotMounted)
    }

    /// A line is `36 35 0:31 / /sys/fs/cgroup rw,... shared:9 - cgroup2 cgroup2 rw,...`.
    fn of_mount(files: &impl Files, line: &str) -> Option<Self> {
        let (place, kind) = line.split_once(" - ")?;
        let root = PathBuf::from(place.split(' ').nth(4)?);
        let mut kind = kind.split(' ');
        let version = match kind.next()? {
            "cgroup" if kind.nth(1)?.split(',').any(|option| option == "cpuset") => Version::One,
            "cgroup2" if has_word(files, &root.join("cgroup.controllers")) => Version::Two,
            _ => return None,
        };
        Some(Self { version, root })
    }

    /// The setting of the root that partitions need: the file, the text that it needs, and the one it had before.
    pub(super) fn switch(&self) -> (PathBuf, &'static str, &'static str) {
        match self.version {
            Version::One => (self.root.join("cpuset.sched_load_balance"), "0", "1"),
            Version::Two => (self.root.join("cgroup.subtree_control"), "+cpuset", "-cpuset"),
        }
    }

    /// Whether the switch is as partitions need it.
    pub(super) fn is_switched(&self, files: &impl Files) -> Result<bool, CpusetError> {
        let (path, ..) = self.switch();
        let text = files.read(&path).map_err(|error| CpusetError::file(&path, &error))?;
        Ok(match self.version {
            Version::One => text.trim() == "0",
            Version::Two => text.split_whitespace().any(|controller| controller == "cpuset"),
        })
    }

    /// The file of a group that names its threads, and takes those that enter.
    pub(super) fn threads(&self, group: &Path) -> PathBuf {
        group.join(match self.version {
            Version::One => "tasks",
            Version::Two => "cgroup.threads",
        })
    }

    /// The CPUs that the root has.
    pub(super) fn cpus(&self, files: &impl Files) -> Result<Vec<usize>, CpusetError> {
        let path = self.root.join(match self.version {
            Version::One => "cpuset.cpus",
            Version::Two => "cpuset.cpus.effective",
        });
        let text = files.read(&path).map_err(|error| CpusetError::file(&path, &error))?;
        sched::parse_cpus(&text).ok_or_else(|| CpusetError::Refused { path, found: text.trim().into() })
    }

    /// The settings of a group with these CPUs, in order. Version 1 has no group without memory nodes.
    pub(super) fn settings(&self, files: &impl Files, cpus: &str, alone: bool) -> Result<Settings, CpusetError> {
        let text = |text: &str| text.to_owned();
        match self.version {
            Version::One => {
                let path = self.root.join("cpuset.mems");
                let mems = files.read(&path).map_err(|error| CpusetError::file(&path, &error))?;
                let exclusive = alone.then(|| ("cpuset.cpu_exclusive", text("1")));
                let all = [("cpuset.mems", text(mems.trim())), ("cpuset.cpus", text(cpus))];
                Ok(all.into_iter().chain(exclusive).collect())
            }
            Version::Two => Ok(vec![
                ("cgroup.type", text("threaded")),
                ("cpuset.cpus", text(cpus)),
                ("cpuset.cpus.partition", text("root")),
            ]),
        }
    }

    /// Checks that a group has become a partition: version 2 tells only afterwards.
    pub(super) fn confirm(&self, files: &impl Files, group: &Path) -> Result<(), CpusetError> {
        if self.version == Version::One {
            return Ok(());
        }
        let path = group.join("cpuset.cpus.partition");
        let found = files.read(&path).map_err(|error| CpusetError::file(&path, &error))?;
        if found.trim() == "root" { Ok(()) } else { Err(CpusetError::Refused { path, found: found.trim().into() }) }
    }
}

/// File names and texts.
pub(super) type Settings = Vec<(&'static str, String)>;

fn has_word(files: &impl Files, path: &Path) -> bool {
    files.read(path).is_ok_and(|text| text.split_whitespace().any(|controller| controller == "cpuset"))
}
