//! `lw_section_*`: the handles of the calling thread are kept here, one of each kind.

use crate::argument;
use crate::errno::{guarded, of_sys};
use libc::{c_int, c_uint, timespec};
use lockwright::section::{Eager, EagerSection, Lazy, LazySection, SectionError};
use std::cell::RefCell;
use std::thread::LocalKey;
use std::time::{Duration, Instant};

/// A handle, and the outermost section the thread is in.
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
        // It borrows the handle: it ends first.
        self.section = None;
        // SAFETY: leaked by `new`, and nobody else has it: sections are told above, and references to it last for one call.
        drop(unsafe { Box::from_raw(std::ptr::from_ref(self.handle).cast_mut()) });
    }
}

type Kept<H, S> = RefCell<Option<Open<H, S>>>;

thread_local! {
    static EAGER: Kept<Eager, EagerSection<'static>> = const { RefCell::new(None) };
    static LAZY: Kept<Lazy, LazySection<'static>> = const { RefCell::new(None) };
}

/// Lets `body` at what the thread keeps, if it is at hand: it is not in a signal handler that came in the middle, nor at the end of the thread.
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
        _ => libc::EIO,
    }
}

/// Makes eager sections possible for the calling thread: inside, it has this level of SCHED_FIFO (1 to 99; 0 stands for 98, above all tasks), and no
/// thread below it preempts it. Rises and falls back once, to see whether it may. The thread falls back to the scheduling it has now.
///
/// EPERM: no permission for the level. EINVAL: no level. EBUSY: open already. ENOTSUP: the thread is under SCHED_DEADLINE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_section_eager_open(level: c_int) -> c_int {
    open(&EAGER, || match u8::try_from(level) {
        Ok(0) => Eager::new(),
        Ok(level) => Eager::at(level),
        Err(_) => Err(SectionError::BadLevel { level: u8::MAX }),
    })
}

/// Enters an eager section, or goes one deeper. Two system calls a section, with its end.
///
/// EPERM: not open, or the permission was taken away. Otherwise the kernel's error. The thread is not inside, or no deeper, then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_section_eager_enter() -> c_int {
    enter(&EAGER, Eager::enter)
}

/// Leaves the eager section, or goes one less deep.
///
/// EPERM: not inside. Otherwise the kernel's error: the thread is still raised then, until the end of its next section.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_section_eager_leave() -> c_int {
    leave(&EAGER, EagerSection::leave)
}

/// Ends what `lw_section_eager_open` began, and the section the thread is in. So does the end of the thread. EPERM: not open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_section_eager_close() -> c_int {
    close(&EAGER)
}

/// Makes the calling thread a managed one of a processor (by its Linux number), and binds it there: inside a lazy section, no other managed thread of
/// the processor begins a job, or is inside. The thread should be under SCHED_FIFO. It stays bound when this is closed.
///
/// EINVAL: the thread cannot be bound there. EBUSY: open already. ENOTSUP: the thread is under SCHED_DEADLINE. Otherwise as `lw_section_lazy_enter`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_section_lazy_open(cpu: c_uint) -> c_int {
    open(&LAZY, || Lazy::manage(cpu as usize))
}

/// Enters a lazy section, or goes one deeper. One atomic operation, and another at its end. A thread that looked when it was last suspended finds nobody
/// inside; one that did not waits for the rest of one section.
///
/// EPERM: not open. EDEADLK: the thread inside waits for a lock of the caller's. EAGAIN: a thread ended inside, and its heir has yet to execute.
/// Otherwise the kernel's error. The thread is not inside, or no deeper, then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_section_lazy_enter() -> c_int {
    enter(&LAZY, Lazy::enter)
}

/// Leaves the lazy section, or goes one less deep.
///
/// EPERM: not inside. Otherwise the kernel's error: others still wait then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_section_lazy_leave() -> c_int {
    leave(&LAZY, LazySection::leave)
}

/// Waits while another managed thread of the processor is inside, and lends it the caller's priority. A managed thread calls it whenever it goes on
/// after it was suspended, by anything but `lw_section_lazy_sleep_until`.
///
/// As `lw_section_lazy_enter`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_section_lazy_look() -> c_int {
    with_kept(&LAZY, |kept| {
        let open = kept.as_ref().ok_or(libc::EPERM)?;
        open.handle.look().map(drop).map_err(of_section)
    })
}

/// Sleeps until CLOCK_MONOTONIC reads `*release`, the release of the next job, and looks.
///
/// EINVAL: no time. EDEADLK: inside a section. Otherwise as `lw_section_lazy_look`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_section_lazy_sleep_until(release: *const timespec) -> c_int {
    with_kept(&LAZY, |kept| {
        let open = kept.as_ref().ok_or(libc::EPERM)?;
        // SAFETY: the header's head asks for it.
        let until = unsafe { argument::deadline(libc::CLOCK_MONOTONIC, release) }.ok_or(libc::EINVAL)?;
        // BOUND: a round more for each time the thread was preempted between its two looks at the clock.
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

/// Ends what `lw_section_lazy_open` began, and the section the thread is in. So does the end of the thread. EPERM: not open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_section_lazy_close() -> c_int {
    close(&LAZY)
}

/// What CLOCK_MONOTONIC reads.
fn now_ns() -> u64 {
    let mut time = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing, and the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
