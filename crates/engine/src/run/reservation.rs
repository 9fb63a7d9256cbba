//! Threads under SCHED_DEADLINE, which the kernel schedules by EDF: on all CPUs under `g-edf` without locks, and on
//! each CPU by itself under `p-edf` in partitions.
//!
//! The kernel gives each thread a *reservation*: a runtime in each period. A thread that wakes up for a job has the
//! deadline of that job. A job that executes for longer than the runtime may be *throttled* until its deadline; the
//! kernel checks this at its ticks. So the runtime is the execution time of the task and a margin for the work of the
//! kernel and of the run itself.
//!
//! The period of a reservation is the relative deadline of the task, even if the task's period is longer. With a longer
//! period, the kernel would keep a job from executing until a period after the last wake-up, so one late wake-up would
//! delay all later jobs; and it would shorten the runtime of a job that waits.

use crate::error::RunError;
use crate::throttling::{Limiter, Throttling};
use lockwright_model::{Duration, Scheduler, System, Task};
use lockwright_sys::{SysError, clock, memory, sched};

/// The margin of a reservation: this part of the execution time, and [`MARGIN`].
const MARGIN_PART: u64 = 10;
/// The constant part of the margin.
const MARGIN: Duration = Duration::from_us(200);
/// A whole CPU in the kernel's units of shares.
const WHOLE: u128 = 1 << 20;
/// How long a thread waits for the kernel to admit it. The kernel keeps the reservation of a thread that has ended
/// until its deadline, which may be that of an earlier run; a deadline is at most 4.2 s by default.
const ADMISSION_NS: u64 = 5_000_000_000;
/// The time between two attempts.
const ATTEMPT_NS: u64 = 20_000_000;

/// The reservation of one thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reservation {
    runtime: Duration,
    deadline: Duration,
}

impl Reservation {
    /// The reservation of a task: its execution time and the margin, but no more than its deadline.
    fn of(task: &Task) -> Self {
        let part = Duration::from_ns(task.wcet.as_ns() / MARGIN_PART);
        let whole = task.wcet.checked_add(part).and_then(|time| time.checked_add(MARGIN));
        let runtime = whole.map_or(task.deadline, |whole| whole.min(task.deadline));
        Self { runtime, deadline: task.deadline }
    }

    /// How long a job may execute before the kernel throttles it.
    pub(super) fn runtime(self) -> Duration {
        self.runtime
    }

    /// The share of a CPU that it reserves, in units of 1 / [`WHOLE`], as the kernel computes it.
    fn share(self) -> u128 {
        u128::from(self.runtime.as_ns()) * WHOLE / u128::from(self.deadline.as_ns().max(1))
    }

    /// Puts the calling thread under SCHED_DEADLINE. The kernel may count more than there is, so it counts again before
    /// the last attempt.
    ///
    /// BOUND: ADMISSION_NS.
    pub(super) fn begin(self) -> Result<(), SysError> {
        memory::prefault_stack::<{ crate::team::STACK_TOUCHED }>();
        sched::exact_timers();
        let (runtime, deadline) = (self.runtime.as_ns(), self.deadline.as_ns());
        let until_ns = clock::now_ns() + ADMISSION_NS;
        let set = || sched::set_deadline(sched::gettid(), runtime, deadline);
        loop {
            match set() {
                Err(error) if error.errno == libc::EBUSY && clock::now_ns() < until_ns => {
                    clock::sleep_until(clock::now_ns() + ATTEMPT_NS)?;
                }
                Err(error) if error.errno == libc::EBUSY => {
                    sched::recount_deadlines();
                    return set();
                }
                answer => return answer,
            }
        }
    }
}

/// Checks that SCHED_DEADLINE can execute the system on a process that may use `have` CPUs. Returns the reservation of
/// each task, by id.
pub(super) fn of_all(system: &System, have: usize, limits: &[Throttling]) -> Result<Vec<Reservation>, RunError> {
    let is_global = system.scheduler() == Scheduler::GEdf;
    if is_global && system.cpus() != have {
        return Err(RunError::NotAllCpus { needed: system.cpus(), have });
    }
    let all: Vec<Reservation> = system.tasks().iter().map(Reservation::of).collect();
    let usual = WHOLE * 95 / 100;
    // Threads under SCHED_DEADLINE belong to no group.
    let limits = limits.iter().filter(|limit| limit.by != Limiter::Group);
    let share = |it: &Throttling| u128::from(it.runtime.as_ns()) * WHOLE / u128::from(it.period.as_ns().max(1));
    let limited = limits.map(share).min();
    // Also without a limit of the kernel, the watchdog gets a share.
    let limit = limited.map_or(usual, |limited| limited.min(usual));
    let limit = if is_global { limit * system.cpus() as u128 } else { limit };
    let mut sums = vec![0; system.cpus()];
    for (task, reservation) in system.task_ids().zip(&all) {
        // All CPUs under `g-edf`, and one in a partition.
        let sum = &mut sums[if is_global { 0 } else { system.task(task).cpu.index() }];
        *sum += reservation.share();
        if *sum > limit {
            // As the kernel, but without the wait for other threads to end.
            let error = SysError { call: "sched_setattr", errno: libc::EBUSY };
            return Err(RunError::NotAdmitted { task, error });
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockwright_model::{CpuId, Priority, Step};

    #[test]
    fn a_reservation_is_the_execution_time_and_a_margin_within_the_deadline() {
        let us = Duration::from_us;
        let task = |run| Task {
            name: "t".into(),
            cpu: CpuId(0),
            priority: Priority::base(1),
            period: us(10_000),
            deadline: us(8_000),
            jitter: Duration::ZERO,
            offset: Duration::ZERO,
            wcet: us(run),
            body: vec![Step::Run(us(run))],
        };
        let deadline = us(8_000);
        assert_eq!(Reservation::of(&task(2_000)), Reservation { runtime: us(2_400), deadline });
        assert_eq!(Reservation::of(&task(7_950)), Reservation { runtime: us(8_000), deadline });
    }
}
