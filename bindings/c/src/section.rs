//! The functions `lw_section_*`. The calling thread's handles are kept here, one of each kind.

use crate::argument::{self, Const};
use crate::errno::of_sys;
use crate::panic::guarded;
use libc::{c_int, c_uint, timespec};
use lockwright::section::{
    Eager, EagerSection, Extended, ExtendedSection, Lazy, LazySection, NoExtension, SectionError,
};
use std::cell::RefCell;
use std::thread::LocalKey;
use std::time::{Duration, Instant};

/// A handle, and the outermost section that the thread is in.
struct Open<H: 'static, S> {
    handle: &'static H,
    section: Option<S>,
    depth: u64,
}

impl<H, S> Open<H, S> {
    fn new(handle: H) -> Self {
        Self { handle: Box::leak(Box::new(handle)), section: None, depth: 0 }
    }
}

impl<H, S> Drop for Open<H, S> {
    fn drop(&mut self) {
        // The section borrows the handle, so it ends first.
        self.section = None;
        // SAFETY: `new` leaked the handle and nothing else refers to it: the section ended above, and other references
        // to it last for one call.
        drop(unsafe { Box::from_raw(std::ptr::from_ref(self.handle).cast_mut()) });
    }
}

type Kept<H, S> = RefCell<Option<Open<H, S>>>;

thread_local! {
    static EAGER: Kept<Eager, EagerSection<'static>> = const { RefCell::new(None) };
    static LAZY: Kept<Lazy, LazySection<'static>> = const { RefCell::new(None) };
    static EXTENDED: Kept<Extended, ExtendedSection<'static>> = const { RefCell::new(None) };
}

/// Calls `body` with what the thread keeps. Fails in a signal handler that interrupts such a call (EBUSY), and at the
/// end of the thread (EPERM).
fn with_kept<H, S>(
    key: &'static LocalKey<Kept<H, S>>,
    body: impl FnOnce(&mut Option<Open<H, S>>) -> Result<(), c_int>,
) -> c_int {
    guarded(|| {
        let done = key.try_with(|kept| match kept.try_borrow_mut() {
            Ok(mut kept) => body(&mut kept),
            Err(_) => Err(libc::EBUSY),
        });
        match done {
            Ok(Ok(())) => 0,
            Ok(Err(errno)) => errno,
            Err(_) => libc::EPERM,
        }
    })
}

fn open<H, S>(key: &'static LocalKey<Kept<H, S>>, make: impl FnOnce() -> Result<H, SectionError>) -> c_int {
    with_kept(key, |kept| {
        if kept.is_some() {
            return Err(libc::EBUSY);
        }
        *kept = Some(Open::new(make().map_err(of_section)?));
        Ok(())
    })
}

fn close<H, S>(key: &'static LocalKey<Kept<H, S>>) -> c_int {
    with_kept(key, |kept| kept.take().map(drop).ok_or(libc::EPERM))
}

#[inline]
fn enter<H, S>(key: &'static LocalKey<Kept<H, S>>, enter: impl FnOnce(&'static H) -> Result<S, SectionError>) -> c_int {
    with_kept(key, |kept| {
        let open = kept.as_mut().ok_or(libc::EPERM)?;
        if open.depth == 0 {
            open.section = Some(enter(open.handle).map_err(of_section)?);
        }
        open.depth += 1;
        Ok(())
    })
}

#[inline]
fn leave<H, S>(key: &'static LocalKey<Kept<H, S>>, leave: impl FnOnce(S) -> Result<(), SectionError>) -> c_int {
    with_kept(key, |kept| {
        let open = kept.as_mut().filter(|open| open.depth > 0).ok_or(libc::EPERM)?;
        open.depth -= 1;
        match open.section.take() {
            Some(section) if open.depth == 0 => leave(section).map_err(of_section),
            section => {
                open.section = section;
                Ok(())
            }
        }
    })
}

fn of_section(error: SectionError) -> c_int {
    match error {
        SectionError::NoPermission { .. } => libc::EPERM,
        SectionError::BadLevel { .. } => libc::EINVAL,
        SectionError::Deadline => libc::ENOTSUP,
        SectionError::SecondHandle => libc::EBUSY,
        SectionError::Inside | SectionError::Deadlock => libc::EDEADLK,
        SectionError::OwnerDied => libc::EAGAIN,
        SectionError::NoCpu { error, .. } | SectionError::Sys(error) => of_sys(error),
        SectionError::NoExtension(NoExtension::Sys(error)) => of_sys(error),
        SectionError::NoExtension(NoExtension::Library | NoExtension::Elsewhere) => libc::ENXIO,
        SectionError::NoExtension(_) => libc::ENOTSUP,
        _ => libc::EIO,
    }
}

/// Prepares the calling thread for eager sections, inside which it executes at `level` of SCHED_FIFO.
///
/// `level` is 1 to 99, or 0 for 98, which is above all tasks. Inside a section no thread below that level preempts the
/// calling thread. Afterwards the thread has the scheduling again that it has now. The call rises to the level and
/// falls back once, to check the permission. It allocates memory.
///
/// Returns:
/// - 0: success.
/// - EPERM: no permission for the level. The thread needs CAP_SYS_NICE or an rtprio limit.
/// - EINVAL: `level` is not from 0 to 99.
/// - EBUSY: the thread has called this before, without `lw_section_eager_close`.
/// - ENOTSUP: the thread is under SCHED_DEADLINE.
/// - Any other number is an error of the kernel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_section_eager_open(level: c_int) -> c_int {
    open(&EAGER, || match u8::try_from(level) {
        Ok(0) => Eager::new(),
        Ok(level) => Eager::at(level),
        Err(_) => Err(SectionError::BadLevel { level: u8::MAX }),
    })
}

/// Enters an eager section. Sections may be nested.
///
/// An outermost section makes at most two system calls: one to enter and one to leave. A nested section makes none.
///
/// Returns:
/// - 0: success.
/// - EPERM: `lw_section_eager_open` was not called, or the thread has lost the permission for the level.
/// - EBUSY: the caller is a signal handler that interrupted another call of `lw_section_eager_*`.
/// - Any other number is an error of the kernel. After an error the thread has not entered.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_section_eager_enter() -> c_int {
    enter(&EAGER, Eager::enter)
}

/// Leaves the innermost eager section.
///
/// Returns:
/// - 0: success.
/// - EPERM: the thread is not inside an eager section.
/// - EBUSY: the caller is a signal handler that interrupted another call of `lw_section_eager_*`.
/// - Any other number is an error of the kernel. The thread has left the section, but keeps the level until the end of
///   its next section.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_section_eager_leave() -> c_int {
    leave(&EAGER, EagerSection::leave)
}

/// Undoes `lw_section_eager_open`, and ends the section that the thread is in. The end of the thread does the same.
///
/// Returns:
/// - 0: success.
/// - EPERM: `lw_section_eager_open` was not called.
/// - EBUSY: the caller is a signal handler that interrupted another call of `lw_section_eager_*`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_section_eager_close() -> c_int {
    close(&EAGER)
}

/// Makes the calling thread a managed thread of a CPU, and binds it to that CPU.
///
/// `cpu` is the Linux number of the CPU. While a managed thread is inside a lazy section, no other managed thread of
/// the CPU begins a job or enters a lazy section. The thread should be under SCHED_FIFO, and must call
/// `lw_section_lazy_look` whenever it resumes after a suspension. It stays bound to the CPU after
/// `lw_section_lazy_close`. The call allocates memory.
///
/// Returns:
/// - 0: success.
/// - EINVAL: the thread cannot be bound to the CPU.
/// - EBUSY: the thread has called this before, without `lw_section_lazy_close`.
/// - ENOTSUP: the thread is under SCHED_DEADLINE.
/// - Otherwise the errors of `lw_section_lazy_enter`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_section_lazy_open(cpu: c_uint) -> c_int {
    open(&LAZY, || Lazy::manage(cpu as usize))
}

/// Enters a lazy section. Sections may be nested.
///
/// Entering is one atomic operation if no other thread is inside, and leaving is another. A thread that called
/// `lw_section_lazy_look` when it last resumed finds no other thread inside. Any other thread waits for the rest of one
/// section.
///
/// Returns:
/// - 0: success.
/// - EPERM: `lw_section_lazy_open` was not called.
/// - EBUSY: the caller is a signal handler that interrupted another call of `lw_section_lazy_*`.
/// - EDEADLK: the thread inside waits for a lock that the caller holds.
/// - EAGAIN: a thread ended inside a section, and the waiter that inherited the section has not executed yet.
/// - Any other number is an error of the kernel. After an error the thread has not entered.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_section_lazy_enter() -> c_int {
    enter(&LAZY, Lazy::enter)
}

/// Leaves the innermost lazy section.
///
/// Returns:
/// - 0: success.
/// - EPERM: the thread is not inside a lazy section.
/// - EBUSY: the caller is a signal handler that interrupted another call of `lw_section_lazy_*`.
/// - Any other number is an error of the kernel. The thread has left the section, but other threads still wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_section_lazy_leave() -> c_int {
    leave(&LAZY, LazySection::leave)
}

/// Waits while another managed thread of the CPU is inside a lazy section, or holds a mutex whose ceiling is not below
/// the caller's level. Lends that thread the caller's priority.
///
/// A managed thread must call this whenever it resumes after a suspension, except after `lw_section_lazy_sleep_until`.
///
/// Returns the values of `lw_section_lazy_enter`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_section_lazy_look() -> c_int {
    with_kept(&LAZY, |kept| {
        let open = kept.as_ref().ok_or(libc::EPERM)?;
        open.handle.look().map(drop).map_err(of_section)
    })
}

/// Sleeps until CLOCK_MONOTONIC reads `*release`, the release of the next job. Then does what `lw_section_lazy_look`
/// does.
///
/// Returns the values of `lw_section_lazy_look`, and:
/// - EINVAL: `release` is NULL or misaligned, or not a valid time.
/// - EDEADLK, also: the thread is inside a lazy section.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_section_lazy_sleep_until(release: Const<'_, timespec>) -> c_int {
    with_kept(&LAZY, |kept| {
        let open = kept.as_ref().ok_or(libc::EPERM)?;
        let until = argument::deadline(libc::CLOCK_MONOTONIC, release).ok_or(libc::EINVAL)?;
        // BOUND: one more round for each time that the thread was preempted between its two readings of the clock.
        loop {
            // In this order the sleep ends early, not late, if the thread is preempted in between.
            let now = Instant::now();
            let left = Duration::from_nanos(until.at_ns.saturating_sub(now_ns()));
            let Some(release) = now.checked_add(left) else { return Err(libc::EINVAL) };
            open.handle.sleep_until(release).map_err(of_section)?;
            if now_ns() >= until.at_ns {
                return Ok(());
            }
        }
    })
}

/// Undoes `lw_section_lazy_open`, and ends the section that the thread is in. The thread stays bound to the CPU. The
/// end of the thread does the same.
///
/// Returns:
/// - 0: success.
/// - EPERM: `lw_section_lazy_open` was not called.
/// - EBUSY: the caller is a signal handler that interrupted another call of `lw_section_lazy_*`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_section_lazy_close() -> c_int {
    close(&LAZY)
}

/// Prepares the calling thread for extended sections, inside which it asks the kernel for an extension of its time
/// slice (Linux 7.0).
///
/// If an interrupt would preempt the thread inside a section, the kernel may let it continue for a few microseconds
/// first: at most 5, unless `/sys/kernel/debug/rseq/slice_ext_nsec` says otherwise. This is a hint: it excludes no
/// other thread, and no bound may count on it. Under PREEMPT_RT, it seldom helps, because real-time threads, also those
/// of the kernel, preempt in spite of it. A system call inside a section ends the extension. The call allocates memory.
///
/// Returns:
/// - 0: success.
/// - ENOTSUP: the kernel was built or booted without this, the processor is not an x86-64, or the C library is not
///   glibc.
/// - ENXIO: the thread's area for restartable sequences has the original size, or is another library's. The thread
///   needs glibc 2.41 or later, or the environment variable `GLIBC_TUNABLES=glibc.pthread.rseq=0` at the start of the
///   program.
/// - EBUSY: the thread has called this before, without `lw_section_extended_close`.
/// - Any other number is an error of the kernel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_section_extended_open() -> c_int {
    open(&EXTENDED, Extended::new)
}

/// Enters an extended section. Sections may be nested. Makes no system call.
///
/// Returns:
/// - 0: success.
/// - EPERM: `lw_section_extended_open` was not called.
/// - EBUSY: the caller is a signal handler that interrupted another call of `lw_section_extended_*`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_section_extended_enter() -> c_int {
    enter(&EXTENDED, |handle| Ok(handle.enter()))
}

/// Leaves the innermost extended section. At the end of the outermost one, gives the processor to the thread for which
/// the kernel wants it, if there is one.
///
/// Returns:
/// - 0: success.
/// - EPERM: the thread is not inside an extended section.
/// - EBUSY: the caller is a signal handler that interrupted another call of `lw_section_extended_*`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_section_extended_leave() -> c_int {
    leave(&EXTENDED, |section| {
        drop(section);
        Ok(())
    })
}

/// Undoes `lw_section_extended_open`, and ends the section that the thread is in. The end of the thread does the same.
///
/// Returns:
/// - 0: success.
/// - EPERM: `lw_section_extended_open` was not called.
/// - EBUSY: the caller is a signal handler that interrupted another call of `lw_section_extended_*`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_section_extended_close() -> c_int {
    close(&EXTENDED)
}

/// Returns the time that CLOCK_MONOTONIC reads, in nanoseconds.
fn now_ns() -> u64 {
    let mut time = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing, and the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
