//! Changes of policies, priorities and CPUs, and `sched_yield`.
//!
//! After a change that succeeded, the kernel is asked what holds now.

use crate::entry::entries;
use crate::kernel;
use crate::next;
use crate::thread::current;
use crate::wait::waits;
use libc::{c_int, c_uint, c_void, cpu_set_t, pid_t, pthread_t, sched_param, size_t};
use lockwright_record::file::format::event;

/// The number of a thread in the kernel, from the number of its clock, which contains it.
///
/// # Safety
/// The thread exists, or has yet to be joined.
unsafe fn id_of(thread: pthread_t) -> Option<u32> {
    let mut clock = 0;
    // SAFETY: the caller passes a thread of which the C library still knows; `clock` is valid for writing.
    let answer = unsafe { libc::pthread_getcpuclockid(thread, &raw mut clock) };
    (answer == 0).then_some(!(clock >> 3) as u32)
}

/// The part of the scheduling that a call may have changed.
#[derive(Clone, Copy)]
enum Changed {
    Policy,
    Cpus,
}

/// Records what the call changed for a thread, if it succeeded. Keeps the error number.
fn changed(answer: c_int, what: Changed, id: impl FnOnce() -> Option<u32>) -> c_int {
    if answer == 0
        && let Some(ring) = current()
        && let Some(id) = id()
    {
        // The kernel takes 0 for the calling thread.
        let id = if id == 0 { crate::thread::id() } else { id };
        match what {
            Changed::Policy => kernel::put_policy(ring, id),
            Changed::Cpus => kernel::put_cpus(ring, id),
        }
    }
    answer
}

/// Records a system call that was made without the C library's function.
pub(crate) fn changed_by(number: i64, id: i64) {
    let what = if number == libc::SYS_sched_setaffinity { Changed::Cpus } else { Changed::Policy };
    changed(0, what, || u32::try_from(id).ok());
}

/// As in the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_setschedparam(thread: pthread_t, policy: c_int, param: *const sched_param) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    let answer = unsafe { next::pthread_setschedparam(thread, policy, param) };
    // SAFETY: this is called only after a success, so the thread exists.
    changed(answer, Changed::Policy, || unsafe { id_of(thread) })
}

/// As in the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_setschedprio(thread: pthread_t, level: c_int) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    let answer = unsafe { next::pthread_setschedprio(thread, level) };
    // SAFETY: this is called only after a success, so the thread exists.
    changed(answer, Changed::Policy, || unsafe { id_of(thread) })
}

/// As in the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_setaffinity_np(thread: pthread_t, bytes: size_t, cpus: *const cpu_set_t) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    let answer = unsafe { next::pthread_setaffinity_np(thread, bytes, cpus) };
    // SAFETY: this is called only after a success, so the thread exists.
    changed(answer, Changed::Cpus, || unsafe { id_of(thread) })
}

/// As in the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sched_setscheduler(process: pid_t, policy: c_int, param: *const sched_param) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    let answer = unsafe { next::sched_setscheduler(process, policy, param) };
    changed(answer, Changed::Policy, || Some(process as u32))
}

/// As in the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sched_setparam(process: pid_t, param: *const sched_param) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    let answer = unsafe { next::sched_setparam(process, param) };
    changed(answer, Changed::Policy, || Some(process as u32))
}

/// As in the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sched_setattr(process: pid_t, attributes: *mut c_void, flags: c_uint) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    let answer = unsafe { next::sched_setattr(process, attributes, flags) };
    changed(answer, Changed::Policy, || Some(process as u32))
}

/// As in the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sched_setaffinity(process: pid_t, bytes: size_t, cpus: *const cpu_set_t) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    let answer = unsafe { next::sched_setaffinity(process, bytes, cpus) };
    changed(answer, Changed::Cpus, || Some(process as u32))
}

/// As in the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setpriority(which: c_uint, who: c_uint, value: c_int) -> c_int {
    // SAFETY: the call takes integers.
    let answer = unsafe { next::setpriority(which, who, value) };
    changed(answer, Changed::Policy, || (which == libc::PRIO_PROCESS as c_uint).then_some(who))
}

unsafe extern "C-unwind" fn yield_cpu(site: usize) -> c_int {
    // SAFETY: the call takes no arguments.
    waits(event::YIELD, 0, site as u64, || unsafe { next::sched_yield() })
}

unsafe extern "C-unwind" fn yield11(site: usize) {
    // SAFETY: the call takes no arguments.
    waits(event::YIELD, 0, site as u64, || unsafe { next::thrd_yield() });
}

entries! {
    "rdi" sched_yield = yield_cpu;
    "rdi" thrd_yield = yield11;
}
