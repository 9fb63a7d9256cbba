//! The machine of a system: the costs that both charges to systems use, and its interrupts.

use super::body::sum;
use crate::rows::mutant::{ChargeMutant, Omission};
use lockwright_model::{
    CpuId, Duration, Invalid, Overhead, Overheads, Priority, Protocol, Step, Subject, System, Task, TaskId,
};

/// The most rounds in the iteration that counts the interrupts of a section.
const ROUNDS_MAX: u32 = 1_000;

/// A system with the overheads of its machine.
#[derive(Clone, Copy)]
pub(crate) struct Machine<'a> {
    pub(crate) system: &'a System,
    pub(crate) overheads: &'a Overheads,
}

impl Machine<'_> {
    /// Returns a cost for the number of tasks of the system.
    pub(crate) fn cost(self, of: Overhead) -> Duration {
        self.overheads.cost(of).with(self.system.tasks().len())
    }

    /// Returns a cost under a protocol.
    pub(crate) fn cost_under(self, of: Overhead, protocol: Protocol) -> Duration {
        self.overheads.cost_under(of, protocol).with(self.system.tasks().len())
    }

    /// Returns the time of a switch to another job: a scheduling decision and a context switch.
    pub(crate) fn switch(self) -> Option<Duration> {
        sum(&[self.cost(Overhead::Schedule), self.cost(Overhead::ContextSwitch)])
    }

    /// Returns the time of a system call under a protocol: entering the kernel and leaving it.
    pub(crate) fn system_call(self, protocol: Protocol) -> Option<Duration> {
        sum(&[Overhead::SyscallIn, Overhead::SyscallOut].map(|of| self.cost_under(of, protocol)))
    }

    /// Returns the working set for which the cache delay of a task counts, in KiB: its own, or that of the last
    /// measured point.
    pub(crate) fn working_set(self, task: TaskId) -> u32 {
        let largest = || self.overheads.cache_delay.points().last().map_or(0, |&(kib, _)| kib);
        self.system.working_set(task).unwrap_or_else(largest)
    }

    /// Returns a task whose working set is larger than all those for which the cache delay was measured.
    pub(crate) fn unmeasured(self) -> Option<TaskId> {
        self.system.task_ids().find(|&id| !self.overheads.cache_delay.covers(self.working_set(id)))
    }

    /// Refuses releases that are so late that they use up a deadline.
    ///
    /// # Errors
    /// Returns the first task whose job may be released at its deadline or later.
    pub(crate) fn refuse_late(self, late: Duration) -> Result<(), Invalid> {
        let is_late = |&id: &TaskId| {
            let task = self.system.task(id);
            late > Duration::ZERO && task.jitter.checked_add(late).is_none_or(|latest| latest >= task.deadline)
        };
        let Some(id) = self.system.task_ids().find(is_late) else { return Ok(()) };
        let task = self.system.task(id);
        let jitter = match task.jitter {
            Duration::ZERO => String::new(),
            jitter => format!(" and its jitter of {jitter}"),
        };
        let message = format!(
            "late releases (up to {late}){jitter} use up the deadline of task `{}`, {}",
            task.name, task.deadline
        );
        let help = "check the units of `release_latency`, `release` and `ipi_latency` in the overheads";
        Err(Invalid::new(Subject::Task(id), None, message, help))
    }

    /// Returns the time in which one processor handles the releases of all tasks, one after the other. It is the
    /// longest time of that processor without a pause: a charged task whose next release comes within it does not fit,
    /// as its jobs would be late by its period.
    pub(crate) fn queued_releases(self, omission: Omission<ChargeMutant>) -> Option<Duration> {
        let queued = if omission.is(ChargeMutant::QueuedReleases) { 1 } else { self.system.tasks().len() as u64 };
        let ns = self.cost(Overhead::Release).as_ns().checked_mul(queued)?;
        Duration::ZERO.checked_add(Duration::from_ns(ns))
    }

    /// Returns the interrupts as tasks above all others. An interrupt that takes no time is omitted.
    pub(crate) fn interrupts(self) -> Vec<(ChargeMutant, Task)> {
        let Self { system, overheads } = self;
        let of = |overhead| self.cost(overhead);
        let jitter = of(Overhead::ReleaseLatency);
        let interrupt = |name: String, cpu: CpuId, period: Duration, wcet: Duration, jitter: Duration| Task {
            name,
            cpu,
            priority: Priority::BASE_MAX,
            period,
            deadline: period,
            jitter,
            offset: Duration::ZERO,
            wcet,
            body: vec![Step::Run(wcet)],
        };
        let mut tasks = Vec::new();
        if of(Overhead::Tick) != Duration::ZERO {
            for cpu in (0..system.cpus()).filter_map(|cpu| u16::try_from(cpu).ok()) {
                let name = unused(system, format!("the tick of CPU {cpu}"));
                // A tick that is later than this coincides with the next one, and the kernel merges the two.
                let late = jitter.min(overheads.tick_period.saturating_sub(of(Overhead::Tick)));
                let tick = interrupt(name, CpuId(cpu), overheads.tick_period, of(Overhead::Tick), late);
                tasks.push((ChargeMutant::Ticks, tick));
            }
        }
        if of(Overhead::Release) != Duration::ZERO && !overheads.dedicated_interrupts {
            for task in system.tasks() {
                let name = unused(system, format!("the release of {}", task.name));
                // If the jobs of a task are released late, so are their interrupts.
                let jitter = task.jitter.checked_add(jitter).unwrap_or(task.jitter);
                let release = interrupt(name, task.cpu, task.period, of(Overhead::Release), jitter);
                tasks.push((ChargeMutant::Releases, release));
            }
        }
        tasks
    }
}

/// Returns the name, changed if necessary so that no task of the system has it.
fn unused(system: &System, mut name: String) -> String {
    // BOUND: one more round than there are tasks.
    while system.tasks().iter().any(|task| task.name == name) {
        name.push('\'');
    }
    name
}

/// Returns the time that `length` of execution takes with interrupts in between. Interrupts that came up to `carried`
/// before it may still be pending. For an execution of no length, it is the longest time that interrupts alone may
/// last.
///
/// Returns `None` if the interrupts leave no time.
pub(crate) fn stretched(length: Duration, interrupts: &[&Task], carried: Duration) -> Option<Duration> {
    let all = || interrupts.iter().try_fold(0_u64, |sum, interrupt| sum.checked_add(interrupt.wcet.as_ns()));
    let mut whole = if length == Duration::ZERO { all()? } else { length.as_ns() };
    for _ in 0..ROUNDS_MAX {
        let next = interrupts.iter().try_fold(length.as_ns(), |sum, interrupt| {
            let window = whole.checked_add(interrupt.jitter.as_ns())?.checked_add(carried.as_ns())?;
            let times = window.div_ceil(interrupt.period.as_ns().max(1));
            sum.checked_add(times.checked_mul(interrupt.wcet.as_ns())?)
        })?;
        if next == whole {
            return Some(Duration::from_ns(whole));
        }
        whole = next;
    }
    None
}
