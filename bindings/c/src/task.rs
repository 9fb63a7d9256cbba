//! `lw_task_*`: what the calling thread is of a task set is kept here.

use crate::fault::{self, Fault, told};
use crate::taskset::{self, lw_taskset_t};
use libc::c_int;
use lockwright::tasks::{Member, TaskError};
use lockwright_model::{ResourceId, TaskId};
use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;

/// The thread's membership; it ends with the thread.
struct Joined(Option<ManuallyDrop<Box<Member>>>);

impl Joined {
    /// Nobody's, if there is none or it is a copy of another thread's, in a child process.
    fn member(&self) -> Option<&Member> {
        self.0.as_deref().map(|member| &**member).filter(|member| member.is_here())
    }

    fn end(&mut self) -> Result<(), Fault> {
        self.member().ok_or(NOBODY)?;
        self.0.take().map(ManuallyDrop::into_inner).map(drop).ok_or(NOBODY)
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        // A copy stays where it is: what it was made of goes on in the other process.
        let _ = self.end();
    }
}

thread_local! {
    static JOINED: RefCell<Joined> = const { RefCell::new(Joined(None)) };
    /// Whether the thread has ever joined. Before, nobody looks at JOINED: what is used last at first ends first, and the runtime's own, which a member's
    /// end still needs, is used at first in `join`.
    static HAS_JOINED: Cell<bool> = const { Cell::new(false) };
}

const NOBODY: Fault = Fault::Plain(libc::EPERM, "this thread is no task: lw_task_join makes it one");

/// Lets `body` at the membership, if it is at hand: not in a signal handler that came in the middle, nor at the end of the thread.
fn with_joined(body: impl FnOnce(&mut Joined) -> Result<(), Fault>) -> Result<(), Fault> {
    if !HAS_JOINED.get() {
        return Err(NOBODY);
    }
    let busy =
        || Fault::Plain(libc::EBUSY, "another call of the thread is in the middle: no signal handler may call this");
    let done = JOINED.try_with(|joined| body(&mut *joined.try_borrow_mut().map_err(|_| busy())?));
    done.unwrap_or(Err(NOBODY))
}

fn with_member(body: impl FnOnce(&Member) -> Result<(), TaskError>) -> Result<(), Fault> {
    with_joined(|joined| Ok(body(joined.member().ok_or(NOBODY)?)?))
}

/// No task or resource has the number where it does not fit: `MAX` is none.
fn id(number: u32) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

/// The calling thread becomes a task of the set: under SCHED_FIFO, on the task's CPU, until `lw_task_leave` or its end. One thread a task, and one task a
/// thread. Nothing else changes the thread's policy, priority or CPUs meanwhile.
///
/// EINVAL: it is not a task set that is built, or has no such task. EBUSY: another thread is that task, or this thread is one already. EPERM: no
/// permission for SCHED_FIFO (CAP_SYS_NICE, or an rtprio limit of 99). Otherwise the kernel's error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_task_join(set: *const lw_taskset_t, task: u32) -> c_int {
    told(|| {
        // SAFETY: the header's head asks for it.
        let set = unsafe { taskset::built(set) }?;
        let member = Box::new(set.join(TaskId(id(task)))?);
        HAS_JOINED.set(true);
        // What is kept of faults is there before the first job: the C library allocates where a thread-local is used at first that ends with its thread.
        fault::forget();
        with_joined(|joined| {
            joined.0 = Some(ManuallyDrop::new(member));
            Ok(())
        })
    })
}

/// A job of the thread's task begins: when the thread goes on after a sleep. Under `srp` it returns when the job may start.
///
/// EPERM: the thread is no task. EBUSY: a job has begun, and not ended. Otherwise the kernel's error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_task_begin() -> c_int {
    told(|| {
        with_member(Member::begin_job)?;
        fault::forget();
        Ok(())
    })
}

/// Takes a resource, under the protocol of the set; waits until it can. From `lw_task_begin` on until `lw_task_end` nothing allocates memory.
///
/// EPERM: the thread is no task, or no job has begun. EACCES: the task was not said to use the resource. EDEADLK: the job holds it, or would wait for
/// itself. ENOTSUP: the job holds another one, and the protocol has no nested requests. EAGAIN: it holds 8 already. ESRCH: its owner has ended. EINVAL:
/// the task is more urgent than a ceiling fixed by hand. Otherwise the kernel's error. The job does not hold it then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_task_lock(resource: u32) -> c_int {
    told(|| with_member(|member| member.lock(ResourceId(id(resource))).map(drop)))
}

/// Gives a resource back. Sections are nested: what was taken last goes first. Nothing looks at that.
///
/// EPERM: the thread is no task, or its job does not hold the resource. Otherwise the kernel's error: it is given back all the same.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_task_unlock(resource: u32) -> c_int {
    told(|| with_member(|member| member.unlock(ResourceId(id(resource)))))
}

/// The job ends: before the thread sleeps until the next. What it still holds is given back before, the last one first.
///
/// EPERM: the thread is no task, or no job has begun. Otherwise the kernel's error: the job has ended all the same.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_task_end() -> c_int {
    told(|| with_member(Member::end_job))
}

/// The thread is no task any more, and has the policy, priority and CPUs of before. A job that has begun ends first. So does all this the end of the thread.
///
/// EPERM: the thread is no task.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_task_leave() -> c_int {
    told(|| with_joined(Joined::end))
}
