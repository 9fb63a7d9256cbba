//! The removal of groups, and what runs left that were killed.

use super::error::CpusetError;
use super::files::Files;
use super::hierarchy::{Hierarchy, Version};
use lockwright_sys::sched;
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
/// The time between two looks at the kernel's account.
const LOOK: Duration = Duration::from_millis(20);

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
    let (used, unused): (Vec<Group>, Vec<Group>) = groups.into_iter().partition(|group| group.is_used(files));
    left.used_by = used.first().map(|group| group.process);
    if !unused.is_empty() {
        // The threads may have ended just now.
        let apart: Vec<usize> = unused.iter().chain(&used).filter_map(|group| group.cpu).collect();
        settle(files, &apart);
    }
    for group in unused {
        let path: PathBuf = hierarchy.root.join(group.name);
        remove(files, &hierarchy, &path).map_err(|error| CpusetError::file(&path, &error))?;
        left.removed += 1;
    }
    Ok(left)
}

/// The longest deadline that the kernel admits. Its default is 4.194304 s.
fn longest_deadline(files: &impl Files) -> Duration {
    let text = files.read(Path::new("/proc/sys/kernel/sched_deadline_period_max_us"));
    let us = text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(1 << 22);
    Duration::from_micros(us)
}

/// Waits until the kernel keeps no reservation of a thread that has ended, by its account, and at most for the longest
/// deadline. `apart` are the CPUs in partitions of their own.
///
/// BOUND: the longest deadline that the kernel admits.
pub(super) fn settle(files: &impl Files, apart: &[usize]) {
    let mut left = longest_deadline(files);
    while left > Duration::ZERO {
        let step = match is_settled(files, apart) {
            Some(true) => return,
            Some(false) => LOOK.min(left),
            None => left,
        };
        files.wait(step);
        left -= step;
    }
}

/// Whether threads reserve nothing of note; `None` if the kernel does not show its account. The kernel's own server for
/// ordinary threads reserves a part of each CPU. Half of such a part counts as nothing: if the kernel takes that back
/// twice, its sum stays positive. Threads that shrink their reservations before they end, as those of runs do, keep
/// less.
///
/// All CPUs of a domain show its sum, so those with the same sum count as one domain. Two domains with the same sum, to
/// the unit, are taken for one.
pub(crate) fn is_settled(files: &impl Files, apart: &[usize]) -> Option<bool> {
    let sums = sched::reservations(&files.read(Path::new(sched::ACCOUNT)).ok()?);
    files.names(Path::new(SERVERS)).ok()?;
    let shown: Vec<Shown> = sums.iter().map(|&(cpu, sum)| Shown { cpu, sum, server: server(files, cpu) }).collect();
    let is_apart = |shown: &Shown| apart.contains(&shown.cpu);
    let is_low = |one: &Shown| {
        let is_with =
            |other: &&Shown| other.cpu == one.cpu || !is_apart(one) && !is_apart(other) && other.sum == one.sum;
        let domain = shown.iter().filter(is_with).map(|other| other.server);
        one.sum <= domain.clone().sum::<i64>() + domain.min().unwrap_or(0) / 2
    };
    (!shown.is_empty()).then(|| shown.iter().all(is_low))
}

/// What the kernel shows of a CPU: the sum of its domain, and the part of its own server.
struct Shown {
    cpu: usize,
    sum: i64,
    server: i64,
}

/// The kernel's servers for ordinary threads, since Linux 6.12.
const SERVERS: &str = "/sys/kernel/debug/sched/fair_server";

/// The part of a CPU that the kernel's server for ordinary threads reserves, in units of 1 / 2^20. Some kernels show
/// the folder but not the numbers; these are the default then.
fn server(files: &impl Files, cpu: usize) -> i64 {
    let number = |name, default| {
        let text = files.read(&Path::new(SERVERS).join(format!("cpu{cpu}")).join(name));
        text.ok().and_then(|text| text.trim().parse::<i64>().ok()).unwrap_or(default)
    };
    let (runtime, period) = (number("runtime", 50_000_000), number("period", 1_000_000_000));
    (runtime << 20) / period.max(1)
}

/// A name of ours.
pub(super) struct Group<'a> {
    name: &'a str,
    pub(super) process: u32,
    started: u64,
    is_switch: bool,
    /// The CPU that it has for itself.
    cpu: Option<usize>,
}

impl<'a> Group<'a> {
    pub(super) fn parse(name: &'a str) -> Option<Self> {
        let mut parts = name.strip_prefix(PREFIX)?.strip_prefix('.')?.split('.');
        let (process, started) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let part = parts.next()?;
        let cpu = part.strip_prefix("cpu").and_then(|cpu| cpu.parse().ok());
        Some(Self { name, process, started, is_switch: part == SWITCH, cpu })
    }

    /// Whether the process that made it has not ended.
    pub(super) fn is_used(&self, files: &impl Files) -> bool {
        started(files, self.process) == Some(self.started)
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

/// Whether another process than that of `own` needs the switch of the root: a process of ours that has not ended, or,
/// in version 2, another program that has put CPUs into a group of the root since.
fn is_used_by_others(files: &impl Files, hierarchy: &Hierarchy, own: u32) -> bool {
    let has_cpus = |name: &str| {
        let text = files.read(&hierarchy.root.join(name).join("cpuset.cpus")).unwrap_or_default();
        !text.trim().is_empty()
    };
    let needs = |name: &String| match Group::parse(name) {
        // A process may have to remove a group without CPUs again: another one was first.
        Some(group) => group.process != own && (group.is_switch || has_cpus(name)) && group.is_used(files),
        None => hierarchy.version == Version::Two && has_cpus(name),
    };
    files.names(&hierarchy.root).unwrap_or_default().iter().any(needs)
}

/// Removes a group. If it marks that the switch of the root was set, the switch is set back first, unless another
/// program needs it meanwhile.
///
/// BOUND: ATTEMPTS.
pub(super) fn remove(files: &impl Files, hierarchy: &Hierarchy, group: &Path) -> io::Result<()> {
    let name = group.file_name().and_then(|name| name.to_str());
    let own = name.and_then(Group::parse).filter(|own| own.is_switch);
    if own.is_some_and(|own| !is_used_by_others(files, hierarchy, own.process)) {
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
