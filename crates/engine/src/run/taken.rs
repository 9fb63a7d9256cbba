//! Whether a CPU was taken from a run: unplugged, or by `taskset` or a cpuset.

use crate::team::spawn;
use lockwright_sys::sched;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What tells that a CPU was taken from the run, although it may be back. It is read before and after the run, so that
/// nothing executes for it during the run.
///
/// Known afterwards: a CPU that was unplugged at any time; and a task whose CPUs at its end are not those of its start.
/// Not known: CPUs that `taskset` or a cpuset took and gave back before the end; that a task was moved between CPUs of
/// the system under protocols that move tasks, and in a run with an audit, which reports this itself; and, where the
/// process does not see the kernel's `/sys`, a CPU that was unplugged and came back, if the tasks there had other CPUs
/// or there were none.
#[derive(Debug)]
pub(super) struct Taken {
    cpus: Vec<usize>,
    /// The mark of each CPU before the run.
    marks: Vec<Option<u64>>,
    /// Whether a task that is on another CPU of the run at its end has not lost its own.
    moves: bool,
    /// A CPU, by its Linux number, whose task was moved to others; `usize::MAX` without one.
    displaced: AtomicUsize,
}

impl Taken {
    /// `cpus` are the CPUs of the run, by their Linux numbers.
    pub(super) fn new(cpus: &[usize], moves: bool) -> Self {
        let marks = marks(cpus);
        Self { cpus: cpus.to_vec(), marks, moves, displaced: AtomicUsize::new(usize::MAX) }
    }

    /// At the end of a task: `own` are the CPUs that it began with, and `now` those that it may use.
    pub(super) fn ends(&self, own: &[usize], now: &[usize]) {
        let may_be_on: &[usize] = if self.moves { &self.cpus } else { &[] };
        if let Some(cpu) = left(own, now, may_be_on) {
            // ORDERING: Relaxed: the thread's end orders it.
            self.displaced.store(cpu, Ordering::Relaxed);
        }
    }

    /// After all tasks: a CPU that was taken.
    pub(super) fn cpu(&self) -> Option<usize> {
        // ORDERING: Relaxed: the ends of the threads order it.
        let displaced = self.displaced.load(Ordering::Relaxed);
        let was_away = || Some(displaced).filter(|&cpu| cpu != usize::MAX);
        changed(&self.cpus, &self.marks, &marks(&self.cpus)).or_else(was_away)
    }

    /// After the kernel has refused to move a task: the CPU that was taken. One that is just going takes no threads,
    /// and has its mark still.
    pub(super) fn refusing(&self) -> Option<usize> {
        let cpus = self.cpus.clone();
        let refuses = |&cpu: &usize| sched::set_affinity(sched::gettid(), &[cpu]).is_err();
        let thread = spawn("lockwright-probe", move || cpus.into_iter().find(refuses));
        // One that takes threads again has another mark.
        thread.ok().and_then(|thread| thread.join().ok().flatten()).or_else(|| self.cpu())
    }
}

/// A CPU that the kernel, or another program, took from a task that began with `own` and may now use `now`. A protocol
/// may have moved a task of one CPU to one of `may_be_on`.
fn left(own: &[usize], now: &[usize], may_be_on: &[usize]) -> Option<usize> {
    let is_moved = own.len() == 1 && now.len() == 1 && may_be_on.contains(&now[0]);
    if own == now || is_moved {
        return None;
    }
    // If none of its CPUs is missing, the kernel gave it others because all of them were away.
    own.iter().find(|cpu| !now.contains(cpu)).or(own.first()).copied()
}

/// The first CPU whose mark has changed.
fn changed(cpus: &[usize], before: &[Option<u64>], after: &[Option<u64>]) -> Option<usize> {
    let marks = before.iter().zip(after);
    cpus.iter().zip(marks).find(|(_, (before, after))| before != after).map(|(&cpu, _)| cpu)
}

/// For each CPU a number that is another one whenever the CPU has come back; `None` while it is away.
///
/// The kernel removes a CPU's folder `topology` when the CPU goes, and makes it when the CPU comes (seen on Linux
/// 6.18). Each folder of its file system has a number of its own. Other file systems, which containers may have there,
/// number as they like.
fn marks(cpus: &[usize]) -> Vec<Option<u64>> {
    let kernels = std::fs::metadata("/sys").ok().map(|folder| folder.dev());
    let mark = |cpu: &usize| {
        let folder = std::fs::metadata(format!("/sys/devices/system/cpu/cpu{cpu}/topology")).ok()?;
        (Some(folder.dev()) == kernels).then(|| folder.ino())
    };
    cpus.iter().map(mark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_with_other_cpus_than_before_has_lost_one() {
        // One CPU: kept, replaced by the others, back among all, and on another one.
        assert_eq!(left(&[3], &[3], &[]), None);
        assert_eq!(left(&[3], &[0, 1, 2], &[]), Some(3));
        assert_eq!(left(&[3], &[0, 1, 2, 3], &[]), Some(3));
        assert_eq!(left(&[3], &[0], &[]), Some(3));
        // A cluster: kept, without one, and with others.
        assert_eq!(left(&[2, 3], &[2, 3], &[]), None);
        assert_eq!(left(&[2, 3], &[2], &[]), Some(3));
        assert_eq!(left(&[2, 3], &[0, 1, 3], &[]), Some(2));
        assert_eq!(left(&[2, 3], &[0, 1, 2, 3], &[]), Some(2));
    }

    #[test]
    fn a_task_that_a_protocol_moved_has_lost_none() {
        let cpus = [2, 3];
        assert_eq!(left(&[3], &[2], &cpus), None);
        // Not by a protocol.
        assert_eq!(left(&[3], &[0], &cpus), Some(3));
        assert_eq!(left(&[3], &[2, 3], &cpus), Some(3));
        assert_eq!(left(&[2, 3], &[2], &cpus), Some(3));
    }

    #[test]
    fn a_cpu_with_another_mark_was_away() {
        let before = [Some(7), Some(8), None];
        assert_eq!(changed(&[1, 3, 5], &before, &before), None);
        assert_eq!(changed(&[1, 3, 5], &before, &[Some(7), None, None]), Some(3));
        assert_eq!(changed(&[1, 3, 5], &before, &[Some(7), Some(9), None]), Some(3));
        assert_eq!(changed(&[1, 3, 5], &before, &[Some(7), Some(8), Some(9)]), Some(5));
    }

    #[test]
    fn a_cpu_keeps_its_mark() {
        let cpus = sched::affinity().expect("a set of CPUs");
        let taken = Taken::new(&cpus, false);
        assert_eq!((taken.cpu(), taken.refusing()), (None, None));
    }
}
