//! The functions `lw_task_*`. The calling thread's membership in a task set is kept here.

use crate::argument::{self, Const};
use crate::fault::{self, Fault, told};
use crate::taskset::{self, lw_taskset_t};
use libc::{c_int, timespec};
use lockwright::tasks::{Member, TaskError};
use lockwright_model::{Mode, ResourceId, TaskId};
use std::cell::{Cell, RefCell};

/// The thread's membership. It ends with the thread.
type Joined = Option<Box<Member>>;

thread_local! {
    static JOINED: RefCell<Joined> = const { RefCell::new(None) };
    /// Whether the thread has ever joined. Until then nothing accesses JOINED, for thread-locals are destroyed in the
    /// reverse order of their first use. `join` uses the runtime's thread-locals first, so they are still there when
    /// the membership ends.
    static HAS_JOINED: Cell<bool> = const { Cell::new(false) };
}

const NOBODY: Fault = Fault::Plain(libc::EPERM, "the calling thread is not a task; call lw_task_join first");

const NO_TIME: Fault = Fault::Plain(
    libc::EINVAL,
    "the deadline is no time by CLOCK_MONOTONIC or CLOCK_REALTIME; tv_nsec is within 0 to 999,999,999",
);

/// Calls `body` with the membership. Fails in a signal handler that interrupts such a call, and at the end of the
/// thread.
fn with_joined(body: impl FnOnce(&mut Joined) -> Result<(), Fault>) -> Result<(), Fault> {
    if !HAS_JOINED.get() {
        return Err(NOBODY);
    }
    let busy = || {
        Fault::Plain(
            libc::EBUSY,
            "another call of this thread is in progress; a signal handler must not call this function",
        )
    };
    let done = JOINED.try_with(|joined| body(&mut *joined.try_borrow_mut().map_err(|_| busy())?));
    done.unwrap_or(Err(NOBODY))
}

fn with_member(body: impl FnOnce(&Member) -> Result<(), TaskError>) -> Result<(), Fault> {
    with_joined(|joined| Ok(body(joined.as_deref().ok_or(NOBODY)?)?))
}

/// Converts a number to an id. A number that does not fit becomes `u16::MAX`, which is the id of no task or resource.
fn id(number: u32) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

/// Makes the calling thread a task of the set, until `lw_task_leave` or the end of the thread.
///
/// The thread is then under SCHED_FIFO at a level for the task's priority, on the task's CPU. Nothing else may change
/// its policy, priority or CPUs in that time. A task has at most one thread, and a thread is at most one task. The call
/// allocates memory.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `set` is not a task set that is built, or it has no such task.
/// - EBUSY: another thread is that task, or the calling thread is already a task. In a child of `fork`, the thread that
///   forked stays one until it calls `lw_task_leave`.
/// - EPERM: no permission for SCHED_FIFO. The thread needs CAP_SYS_NICE or an rtprio limit of 99.
/// - Any other number is an error of the kernel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_task_join(set: Const<'_, lw_taskset_t>, task: u32) -> c_int {
    told(|| {
        let set = taskset::built(set.object())?;
        let member = Box::new(set.join(TaskId(id(task)))?);
        HAS_JOINED.set(true);
        // Creates the thread-local of the last fault before the first job: on the first use of a thread-local with a
        // destructor, the C library allocates memory.
        fault::forget();
        with_joined(|joined| {
            *joined = Some(member);
            Ok(())
        })
    })
}

/// Begins a job of the thread's task. Call it when the thread resumes after a sleep.
///
/// Under `srp`, under `omlp` in a cluster, and under the scheduler `p-edf`, the function returns when the job may
/// start. Under `p-edf` the deadline of the job counts from the call.
///
/// Returns:
/// - 0: success.
/// - EPERM: the thread is not a task.
/// - EBUSY: a job has begun and has not ended.
/// - Any other number is an error of the kernel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_task_begin() -> c_int {
    told(|| {
        with_member(Member::begin_job)?;
        fault::forget();
        Ok(())
    })
}

/// Begins a job as `lw_task_begin` does, with the absolute deadline `*due` by `clock`: the release of the job plus the
/// relative deadline of the task. A thread that begins a job late gives the job the deadline that it would have had in
/// time. The deadline has no effect under schedulers other than `p-edf`.
///
/// Returns the values of `lw_task_begin`, and:
/// - EINVAL: `clock` is neither CLOCK_MONOTONIC nor CLOCK_REALTIME, `due` is null, or `due->tv_nsec` is not within 0 to
///   999,999,999. No job has begun.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_task_begin_due(clock: c_int, due: Const<'_, timespec>) -> c_int {
    told(|| {
        let due = argument::deadline(clock, due).ok_or(NO_TIME)?;
        with_member(|member| member.begin_job_due(due))?;
        fault::forget();
        Ok(())
    })
}

/// Locks a resource under the protocol of the set. Waits until it can.
///
/// From `lw_task_begin` to `lw_task_end`, no `lw_task_…` function allocates memory.
///
/// Returns:
/// - 0: the job holds the resource.
/// - EPERM: the thread is not a task, or no job has begun.
/// - EACCES: the task was not declared to use the resource, or not in this mode.
/// - EDEADLK: the job already holds the resource, or would wait for itself.
/// - ENOTSUP: the job holds another resource, and the protocol has no nested requests.
/// - EAGAIN: the job already holds 8 resources.
/// - ESRCH: the owner of the resource ended without unlocking it.
/// - EINVAL: the task's priority is above a ceiling that the task-set file fixes.
/// - Any other number is an error of the kernel. After an error the job does not hold the resource.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_task_lock(resource: u32) -> c_int {
    told(|| with_member(|member| member.lock(ResourceId(id(resource)), Mode::Write).map(drop)))
}

/// Locks a resource to read it. Waits until it can. Under `phase_fair` and `task_fair`, other jobs may read it at the
/// same time; under every other protocol this is `lw_task_lock`. `lw_task_unlock` ends the section.
///
/// If the task set comes from a file, these two protocols allow a job only the modes that the file declares for its
/// task and the resource.
///
/// Returns the numbers of `lw_task_lock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_task_read(resource: u32) -> c_int {
    told(|| with_member(|member| member.lock(ResourceId(id(resource)), Mode::Read).map(drop)))
}

/// Unlocks a resource. Unlock resources in the reverse order of locking; the library does not check the order.
///
/// Returns:
/// - 0: success.
/// - EPERM: the thread is not a task, or its job does not hold the resource.
/// - Any other number is an error of the kernel. The resource is nevertheless unlocked.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_task_unlock(resource: u32) -> c_int {
    told(|| with_member(|member| member.unlock(ResourceId(id(resource)))))
}

/// Ends the job. Call it before the thread sleeps until its next job.
///
/// Resources that the job still holds are unlocked first, in the reverse order of locking.
///
/// Returns:
/// - 0: success.
/// - EPERM: the thread is not a task, or no job has begun.
/// - Any other number is an error of the kernel. The job has nevertheless ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_task_end() -> c_int {
    told(|| with_member(Member::end_job))
}

/// Ends the thread's time as a task. The thread has its previous policy, priority and CPUs again. A job that has begun
/// ends first. The end of the thread does all of this.
///
/// Returns:
/// - 0: success.
/// - EPERM: the thread is not a task. In a child of `fork`, the thread that forked may join a task set of the child
///   afterwards.
/// - Any other number: the end of the job failed with this number, or the kernel did not restore the policy or the
///   CPUs. The thread is nevertheless no longer a task.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_task_leave() -> c_int {
    told(|| with_joined(|joined| Ok(joined.take().ok_or(NOBODY)?.leave()?)))
}
