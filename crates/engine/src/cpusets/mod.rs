//! A cpuset partition for each CPU of a run, so that SCHED_DEADLINE schedules each CPU by itself.
//!
//! The kernel lets a thread under SCHED_DEADLINE execute only where its whole *root domain* is, usually all CPUs. A CPU
//! in a partition of its own is a root domain of its own.
//!
//! ```text
//!   absent --make--> made: a group for each CPU, then the switch of the root
//!                      |  Drop: the switch back, then the groups
//!                      |  killed: `sweep` does the same for a process that has ended
//!                      v
//!                    absent
//! ```
//!
//! When domains are rebuilt, the kernel (seen on Linux 6.18) forgets the reservations of threads that have ended, but
//! still takes them back at their deadlines. It then admits no thread under SCHED_DEADLINE until the next rebuild. So
//! before the groups are made, and again before they are removed, the kernel's account must show that it keeps none:
//! threads of any program may have ended just now. Where the account shows some, or cannot be read, the longest
//! deadline that the kernel admits is waited for.
//!
//! Everything that is made has a name of its own, `lockwright.PROCESS.START.PART`, with the time at which the process
//! started, because ids return. The group `root` exists while the switch of the root is not as it was.
//!
//! | file | about |
//! |---|---|
//! | `files` | the file system, real or imitated |
//! | `hierarchy` | the two versions of control groups |
//! | `sweep` | the removal of groups, and what is left of processes that have ended |

mod error;
#[cfg(test)]
mod fake;
mod files;
mod hierarchy;
mod sweep;

pub use error::CpusetError;
pub(crate) use files::Kernel;
pub(crate) use sweep::{Left, is_settled, sweep};

use files::Files;
use hierarchy::{Hierarchy, Version};
use std::path::{Path, PathBuf};
use sweep::{Group, PREFIX, SWITCH, remove, settle, started, stat};

/// The partitions of a run. They are removed when this value is dropped.
#[derive(Debug)]
pub(crate) struct Partitions<F: Files = Kernel> {
    files: F,
    hierarchy: Hierarchy,
    /// What was made, in order.
    made: Vec<PathBuf>,
    /// The way into each partition, by its Linux number. A CPU that stays with the root has none.
    entries: Vec<(usize, Entry)>,
    /// The CPUs on which threads of the root may execute.
    root_cpus: Vec<usize>,
    /// The group from which version 2 took the process.
    home: Option<PathBuf>,
}

/// The way into a partition.
#[derive(Clone, Debug)]
pub(crate) struct Entry(PathBuf);

impl Entry {
    /// Moves the calling thread into the partition.
    pub(crate) fn enter(&self) -> Result<(), CpusetError> {
        let tid = lockwright_sys::sched::gettid().0.to_string();
        Kernel.write(&self.0, &tid).map_err(|error| CpusetError::file(&self.0, &error))
    }
}

impl Partitions {
    /// Makes a partition of each of these CPUs of the machine. Waits for reservations of threads that have ended, at
    /// most for the longest deadline that the kernel admits, usually 4.2 s.
    ///
    /// # Errors
    /// [`CpusetError`]; then everything is as it was.
    pub(crate) fn make(cpus: &[usize]) -> Result<Self, CpusetError> {
        Self::make_in(Kernel, cpus)
    }
}

impl<F: Files> Partitions<F> {
    fn make_in(files: F, cpus: &[usize]) -> Result<Self, CpusetError> {
        let left = sweep(&files)?;
        if let Some(process) = left.used_by {
            return Err(CpusetError::InUse { process });
        }
        let hierarchy = Hierarchy::find(&files)?;
        settle(&files, &[]);
        // From here on, dropping it undoes what was done.
        let mut partitions =
            Self { files, hierarchy, made: Vec::new(), entries: Vec::new(), root_cpus: Vec::new(), home: None };
        partitions.build(cpus)?;
        Ok(partitions)
    }

    /// The way into the partition of a CPU; `None` if the CPU stays with the root, which has no other.
    pub(crate) fn entry(&self, cpu: usize) -> Option<Entry> {
        self.entries.iter().find(|(known, _)| *known == cpu).map(|(_, entry)| entry.clone())
    }

    /// The CPUs on which threads outside all partitions may execute.
    pub(crate) fn root_cpus(&self) -> &[usize] {
        &self.root_cpus
    }

    fn build(&mut self, cpus: &[usize]) -> Result<(), CpusetError> {
        let all = self.hierarchy.cpus(&self.files)?;
        let rest: Vec<usize> = all.iter().copied().filter(|cpu| !cpus.contains(cpu)).collect();
        // Version 2 leaves at least one CPU to the root: the last one, which is then alone there.
        let kept = usize::from(self.hierarchy.version == Version::Two && rest.is_empty());
        let apart = &cpus[..cpus.len().saturating_sub(kept)];
        // In version 1, the root has the CPUs of its groups as well.
        let is_left = |cpu: &usize| self.hierarchy.version == Version::One || !apart.contains(cpu);
        self.root_cpus = all.into_iter().filter(is_left).collect();
        let part = |cpu: &usize| format!("cpu{cpu}");
        if self.hierarchy.version == Version::Two {
            // Before the look at the switch: a process that ends meanwhile would set it back.
            apart.first().map(|first| self.mark(&part(first))).transpose()?;
            self.switch_root()?;
        }
        for cpu in apart {
            let group = self.group(&part(cpu), &cpu.to_string(), true)?;
            self.entries.push((*cpu, Entry(self.hierarchy.threads(&group))));
        }
        match self.hierarchy.version {
            Version::Two => self.come_to_root(),
            Version::One => {
                if !rest.is_empty() {
                    let rest: Vec<String> = rest.iter().map(ToString::to_string).collect();
                    self.group("rest", &rest.join(","), false)?;
                }
                self.switch_root()
            }
        }
    }

    fn group(&mut self, part: &str, cpus: &str, alone: bool) -> Result<PathBuf, CpusetError> {
        let group = self.mark(part)?;
        for (name, text) in self.hierarchy.settings(&self.files, cpus, alone)? {
            self.write(&group.join(name), &text)?;
        }
        self.hierarchy.confirm(&self.files, &group)?;
        Ok(group)
    }

    /// Makes a group without settings, unless it is made already. The first one fails if another process has one by
    /// now: of two processes that make their first groups at the same time, at least one sees that of the other.
    fn mark(&mut self, part: &str) -> Result<PathBuf, CpusetError> {
        let process = std::process::id();
        let unknown = || CpusetError::File { path: stat(process), errno: libc::ESRCH };
        let started = started(&self.files, process).ok_or_else(unknown)?;
        let group = self.hierarchy.root.join(format!("{PREFIX}.{process}.{started}.{part}"));
        if self.made.contains(&group) {
            return Ok(group);
        }
        self.files.make(&group).map_err(|error| CpusetError::file(&group, &error))?;
        self.made.push(group.clone());
        if self.made.len() > 1 {
            return Ok(group);
        }
        let names = self.files.names(&self.hierarchy.root).map_err(|error| CpusetError::file(&group, &error))?;
        let is_of_others = |group: &Group| group.process != process && group.is_used(&self.files);
        match names.iter().filter_map(|name| Group::parse(name)).find(is_of_others) {
            Some(other) => Err(CpusetError::InUse { process: other.process }),
            None => Ok(group),
        }
    }

    /// Sets the switch of the root, and first marks that this is to be undone.
    fn switch_root(&mut self) -> Result<(), CpusetError> {
        if self.hierarchy.is_switched(&self.files)? {
            return Ok(());
        }
        self.mark(SWITCH)?;
        if self.hierarchy.version == Version::Two {
            // It is removed last, when no group needs the switch.
            self.made.rotate_right(1);
        }
        let (path, needed, _) = self.hierarchy.switch();
        self.write(&path, needed)
    }

    /// Version 2: moves this process into the root, because its threads can enter only groups below its own.
    fn come_to_root(&mut self) -> Result<(), CpusetError> {
        let own = self.files.read(Path::new("/proc/self/cgroup")).unwrap_or_default();
        let own = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
        if own.is_empty() {
            return Ok(());
        }
        self.home = Some(self.hierarchy.root.join(own));
        self.write(&self.hierarchy.root.join("cgroup.procs"), &std::process::id().to_string())
    }

    fn write(&self, path: &Path, text: &str) -> Result<(), CpusetError> {
        self.files.write(path, text).map_err(|error| CpusetError::file(path, &error))
    }
}

impl<F: Files> Drop for Partitions<F> {
    /// What cannot be removed is left for [`sweep`].
    ///
    /// BOUND: the longest deadline that the kernel admits, and the bound of each removal.
    fn drop(&mut self) {
        let apart: Vec<usize> = self.entries.iter().map(|(cpu, _)| *cpu).collect();
        settle(&self.files, &apart);
        if let Some(home) = &self.home {
            let _ = self.files.write(&home.join("cgroup.procs"), &std::process::id().to_string());
        }
        let outside = self.hierarchy.threads(&self.hierarchy.root);
        for group in self.made.iter().rev() {
            let threads = self.files.read(&self.hierarchy.threads(group)).unwrap_or_default();
            // A thread that did not end at the end of the run goes on outside.
            threads.lines().for_each(|thread| drop(self.files.write(&outside, thread)));
            let _ = remove(&self.files, &self.hierarchy, group);
        }
    }
}

#[cfg(test)]
mod tests;
