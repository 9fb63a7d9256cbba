//! The removal of groups, and what runs left that were killed.

use super::error::CpusetError;
use super::files::Files;
use super::hierarchy::{Hierarchy, Version};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What all names begin with.
pub(super) const PREFIX: &str = "lockwright";
/// The part of the name of the group that tells that the switch of the root is not as it was.
pub(super) const SWITCH: &str = "root";
/// How often the removal of a group is tried: a thread leaves its group some time after it was joined.
const ATTEMPTS: u32 = 100;
const ATTEMPT: Duration = Duration::from_millis(10);

/// What [`sweep`] found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Left {
    /// The number of groups of processes that have ended. All were removed.
    pub(crate) removed: usize,
    /// A process that has partitions now.
    pub(crate) used_by: Option<u32>,
}

/// Removes the partitions of processes that have ended, and sets the switch of the root back as they found it.
///
/// # Errors
/// A group could not be removed. [`CpusetError::NotMounted`] if there are no cpusets.
pub(crate) fn sweep(files: &impl Files) -> Result<Left, CpusetError> {
    let hierarchy = Hierarchy::find(files)?;
    let names = files.names(&hierarchy.root).map_err(|error| CpusetError::file(&hierarchy.root, &error))?;
    let mut left = Left::default();
    let mut groups: Vec<Group> = names.iter().filter_map(|name| Group::parse(name)).collect();
    // The switch last: its group tells what is still to be done.
    groups.sort_by_key(|group| group.is_switch);
    let is_used = |group: &Group| started(files, group.process) == Some(group.started);
    let (used, unused): (Vec<Group>, Vec<Group>) = groups.into_iter().partition(is_used);
    left.used_by = used.first().map(|group| group.process);
    if !unused.is_empty() {
        // The threads may have ended just now.
        files.wait(longest_deadline(files));
    }
    for group in unused {
        let path: PathBuf = hierarchy.root.join(group.name);
        remove(files, &hierarchy, &path).map_err(|error| CpusetError::file(&path, &error))?;
        left.removed += 1;
    }
    Ok(left)
}

/// The longest deadline that the kernel admits. Its default is 4.194304 s.
pub(super) fn longest_deadline(files: &impl Files) -> Duration {
    let text = files.read(Path::new("/proc/sys/kernel/sched_deadline_period_max_us"));
    let us = text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(1 << 22);
    Duration::from_micros(us)
}

/// A name of ours.
struct Group<'a> {
    name: &'a str,
    process: u32,
    started: u64,
    is_switch: bool,
}

impl<'a> Group<'a> {
    fn parse(name: &'a str) -> Option<Self> {
        let mut parts = name.strip_prefix(PREFIX)?.strip_prefix('.')?.split('.');
        let (process, started) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Self { name, process, started, is_switch: parts.next()? == SWITCH })
    }
}

/// The file of the kernel about a process.
pub(super) fn stat(process: u32) -> PathBuf {
    format!("/proc/{process}/stat").into()
}

/// When a process started, in the kernel's ticks; `None` if there is no such process.
pub(super) fn started(files: &impl Files, process: u32) -> Option<u64> {
    let text = files.read(&stat(process)).ok()?;
    // `71 (name) S ...`: the name may contain anything; the start is field 22.
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?;
    let start = fields.nth(18)?.parse().ok()?;
    (state != "Z").then_some(start)
}

/// Whether another program has put CPUs into a group of the root since, which the switch would take away. For version
/// 2.
fn is_used_by_others(files: &impl Files, hierarchy: &Hierarchy) -> bool {
    let has_cpus = |name: &String| {
        let text = files.read(&hierarchy.root.join(name).join("cpuset.cpus")).unwrap_or_default();
        !name.starts_with(PREFIX) && !text.trim().is_empty()
    };
    hierarchy.version == Version::Two && files.names(&hierarchy.root).unwrap_or_default().iter().any(has_cpus)
}

/// Removes a group. If it marks that the switch of the root was set, the switch is set back first, unless another
/// program needs it meanwhile.
///
/// BOUND: ATTEMPTS.
pub(super) fn remove(files: &impl Files, hierarchy: &Hierarchy, group: &Path) -> io::Result<()> {
    if group.extension().is_some_and(|part| part == SWITCH) && !is_used_by_others(files, hierarchy) {
        let (path, _, before) = hierarchy.switch();
        match files.write(&path, before) {
            // Another program uses cpusets meanwhile, and switches them off itself.
            Err(error) if hierarchy.version == Version::One || error.raw_os_error() != Some(libc::EBUSY) => {
                return Err(error);
            }
            _ => {}
        }
    }
    // BOUND: see above; a thread that has ended leaves its group.
    for _ in 1..ATTEMPTS {
        match files.remove(group) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => files.wait(ATTEMPT),
            answer => return answer,
        }
    }
    files.remove(group)
}
