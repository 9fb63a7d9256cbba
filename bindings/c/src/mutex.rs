//! `lw_mutex_*`.

use crate::argument::{self, Mutex};
use crate::errno::{guarded, of_acquired, of_done, of_error};
use libc::{c_int, timespec};
use lockwright::mutex::{Limit, RawError, RawMutex, kind};

/// The owner has the priority of the most urgent waiter, along chains of owners: the kernel's PI futex. Its unlocking is always serial.
pub const LW_PROTOCOL_INHERIT: u32 = 0;
/// Nothing is done against priority inversion: a thread of medium priority can delay an urgent one for ever.
pub const LW_PROTOCOL_NONE: u32 = 1;
/// The owner has the ceiling's level of SCHED_FIFO, if its own is lower: immediate priority ceiling. Threads above the ceiling are refused
/// (EINVAL), and so are those without permission to rise to it (EPERM).
pub const LW_PROTOCOL_PROTECT: u32 = 2;

/// Serial where a real-time thread waits, else parallel.
pub const LW_UNLOCK_AUTO: u32 = 0;
/// The mutex is the first waiter's from the unlock on: nobody comes between.
pub const LW_UNLOCK_SERIAL: u32 = 1;
/// The mutex is nobody's until somebody takes it: a running thread may be faster than the waiter that was woken. Robust ones are serial all the same.
pub const LW_UNLOCK_PARALLEL: u32 = 2;

/// A mutex: 64 bytes, aligned to 8, in static storage, on the stack or the heap, or in memory that processes share. Initialise it by one of the
/// `LW_MUTEX_…INITIALIZER`s or `lw_mutex_init`, and never move or copy it. Its fields are nobody's business.
#[repr(C)]
pub struct lw_mutex_t {
    lw_state: [u32; 4],
    lw_kind: u32,
    lw_urgent: u16,
    lw_ceiling: u8,
    lw_unused: u8,
    lw_links: [usize; 2],
    pub(crate) lw_check: u32,
    lw_spare: [u32; 5],
}

/// What a mutex shall be. All zeros are the defaults, so name what shall differ:
/// `lw_mutex_options_t options = { .protocol = LW_PROTOCOL_PROTECT, .ceiling = 80, .robust = 1 };`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct lw_mutex_options_t {
    /// `LW_PROTOCOL_…`.
    pub protocol: u32,
    /// 1 to 99 with `LW_PROTOCOL_PROTECT`, otherwise 0.
    pub ceiling: u32,
    /// `LW_UNLOCK_…`.
    pub unlock: u32,
    /// 1: it survives the end of its owner, thread or process. The next one gets EOWNERDEAD and the mutex, mends what it protects, and calls
    /// `lw_mutex_make_consistent`; if it unlocks without, everybody gets ENOTRECOVERABLE from then on.
    pub robust: u32,
    /// 1: each lock and unlock goes through the kernel, so that it knows every owner. Only for those that inherit; otherwise it changes nothing.
    pub kernel_owned: u32,
    /// 1: threads of several processes meet at it, in memory they share.
    pub shared: u32,
    /// 1: its owner may take it again, and gives it back as often.
    pub recursive: u32,
    /// 1: a thread does not look for a deadlock before it waits. (The kernel still finds most among mutexes that inherit, but names no cycle.)
    pub unchecked: u32,
    /// 0.
    pub reserved: [u32; 4],
}

impl lw_mutex_options_t {
    const DEFAULT: Self = Self {
        protocol: LW_PROTOCOL_INHERIT,
        ceiling: 0,
        unlock: LW_UNLOCK_AUTO,
        robust: 0,
        kernel_owned: 0,
        shared: 0,
        recursive: 0,
        unchecked: 0,
        reserved: [0; 4],
    };

    /// The mutex, where the options are some.
    fn build(self) -> Option<RawMutex> {
        let (protocol, ceiling) = match (self.protocol, self.ceiling) {
            (LW_PROTOCOL_INHERIT, 0) => (kind::INHERIT, 0),
            (LW_PROTOCOL_NONE, 0) => (0, 0),
            (LW_PROTOCOL_PROTECT, ceiling @ 1..=99) => (kind::PROTECT, ceiling as u8),
            _ => return None,
        };
        let unlock = match self.unlock {
            LW_UNLOCK_AUTO => kind::AUTO,
            LW_UNLOCK_SERIAL => kind::SERIAL,
            LW_UNLOCK_PARALLEL => 0,
            _ => return None,
        };
        let kind = protocol
            | unlock
            | choose(self.robust, 0, kind::ROBUST)?
            | choose(self.kernel_owned, 0, kind::KERNEL_OWNED)?
            | choose(self.shared, 0, kind::SHARED)?
            | choose(self.recursive, kind::ERROR_CHECK, kind::RECURSIVE)?
            | choose(self.unchecked, kind::CHECKED, 0)?;
        // SAFETY: the header asks that it stays where it is while anybody uses it.
        (self.reserved == [0; 4]).then(|| unsafe { RawMutex::new(kind, ceiling) })
    }
}

fn choose(option: u32, no: u32, yes: u32) -> Option<u32> {
    match option {
        0 => Some(no),
        1 => Some(yes),
        _ => None,
    }
}

/// Makes a free mutex in `*mutex`, whatever was there. NULL for the options stands for the defaults: priority inheritance, looking for deadlocks,
/// for the threads of this process.
///
/// EINVAL: an argument is not one; options that do not exist.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mutex_init(mutex: *mut lw_mutex_t, options: *const lw_mutex_options_t) -> c_int {
    guarded(|| {
        let options = if options.is_null() {
            Some(lw_mutex_options_t::DEFAULT)
        } else {
            // SAFETY: the header's head asks for it.
            unsafe { argument::read(options) }
        };
        match options.and_then(lw_mutex_options_t::build) {
            Some(raw) if !mutex.is_null() && mutex.is_aligned() => {
                // SAFETY: looked at just now; the header's head asks for the rest.
                unsafe { Mutex::make(mutex, raw) };
                0
            }
            _ => libc::EINVAL,
        }
    })
}

/// Ends a mutex: every use of it but `lw_mutex_init` is refused (EINVAL) from then on. It owns nothing, so a mutex may also just be forgotten.
///
/// EBUSY: somebody has it. EINVAL: it is not a mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mutex_destroy(mutex: *mut lw_mutex_t) -> c_int {
    guarded(|| {
        // SAFETY: the header's head asks for it.
        match unsafe { Mutex::at(mutex) } {
            None => libc::EINVAL,
            // A robust one may be waited for by nobody but the dead.
            Some(mutex) if mutex.raw.owner() != 0 || !mutex.raw.is_robust() && mutex.raw.is_in_use() => libc::EBUSY,
            Some(mutex) => {
                mutex.unmake();
                0
            }
        }
    })
}

#[inline]
unsafe fn lock(mutex: *mut lw_mutex_t, limit: impl FnOnce() -> Option<Limit>) -> c_int {
    guarded(|| {
        // SAFETY: promised by the caller.
        let Some(mutex) = (unsafe { Mutex::at(mutex) }) else { return libc::EINVAL };
        let Some(limit) = limit() else { return libc::EINVAL };
        of_acquired(&mutex.raw, mutex.raw.lock(limit))
    })
}

/// Takes the mutex, and suspends until it can. Without contention no system call, but for ceilings and `kernel_owned`.
///
/// 0: the caller has it. EOWNERDEAD: the caller has it, and its owner before ended while it had it, see `robust`. ENOTRECOVERABLE: see there.
/// EDEADLK: the caller would wait for itself, see `lw_deadlock_cycle`. EINVAL: it is not a mutex, or the caller is more urgent than its ceiling.
/// EPERM: no permission to rise to the ceiling. EAGAIN: taken too often (recursive), or the kernel lacks memory. ESRCH: its owner has ended, and it inherits
/// and is not robust: it never comes. ENOTSUP: robust, and the C library has no list of such.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mutex_lock(mutex: *mut lw_mutex_t) -> c_int {
    // SAFETY: the header's head asks for it.
    unsafe { lock(mutex, || Some(Limit::Never)) }
}

/// Takes the mutex if nobody has it. EBUSY: somebody has, the caller too unless it is recursive. Otherwise as `lw_mutex_lock`, without EDEADLK and ESRCH.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mutex_trylock(mutex: *mut lw_mutex_t) -> c_int {
    // SAFETY: the header's head asks for it.
    unsafe { lock(mutex, || Some(Limit::Now)) }
}

/// As `lw_mutex_lock`, until `clock` (CLOCK_MONOTONIC or CLOCK_REALTIME) reads `*time`. A time that has passed still takes a mutex that is free.
///
/// ETIMEDOUT: the time has come. EINVAL also: another clock, no time, or its nanoseconds are not below a second.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mutex_lock_until(mutex: *mut lw_mutex_t, clock: c_int, time: *const timespec) -> c_int {
    // SAFETY: the header's head asks for it.
    unsafe { lock(mutex, || argument::deadline(clock, time).map(Limit::At)) }
}

/// As `lw_mutex_lock_until`, so long from now by CLOCK_MONOTONIC. EINVAL also: a negative time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mutex_lock_for(mutex: *mut lw_mutex_t, time: *const timespec) -> c_int {
    // SAFETY: the header's head asks for it.
    unsafe { lock(mutex, || argument::deadline_after(time).map(Limit::At)) }
}

/// Gives the mutex back.
///
/// EPERM: the caller does not have it. EINVAL: it is not a mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mutex_unlock(mutex: *mut lw_mutex_t) -> c_int {
    guarded(|| {
        // SAFETY: the header's head asks for it.
        let Some(mutex) = (unsafe { Mutex::at(mutex) }) else { return libc::EINVAL };
        of_done(&mutex.raw, mutex.raw.unlock())
    })
}

/// After EOWNERDEAD: what the mutex protects is whole again. The caller still has it, and unlocks it as ever.
///
/// EINVAL: it is not a robust mutex, or nothing was to be mended. EPERM: the caller does not have it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mutex_make_consistent(mutex: *mut lw_mutex_t) -> c_int {
    guarded(|| {
        // SAFETY: the header's head asks for it.
        let Some(mutex) = (unsafe { Mutex::at(mutex) }) else { return libc::EINVAL };
        of_done(&mutex.raw, mutex.raw.make_consistent())
    })
}

/// Who has the mutex, into `*thread`: the thread as the kernel numbers it (`gettid`), 0 for nobody. Unless it is the caller, that may have changed.
///
/// EINVAL: an argument is not one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mutex_owner(mutex: *const lw_mutex_t, thread: *mut u32) -> c_int {
    guarded(|| {
        // SAFETY: the header's head asks for it.
        let Some(mutex) = (unsafe { Mutex::at(mutex) }) else { return libc::EINVAL };
        // SAFETY: as above.
        if unsafe { argument::write(thread, mutex.raw.owner()) } { 0 } else { libc::EINVAL }
    })
}

/// 1 where the caller has the mutex, 0 where not, or it is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mutex_is_mine(mutex: *const lw_mutex_t) -> c_int {
    guarded(|| {
        // SAFETY: the header's head asks for it.
        let mutex = unsafe { Mutex::at(mutex) };
        c_int::from(mutex.is_some_and(|mutex| mutex.raw.is_mine()))
    })
}

/// The ceiling, into `*ceiling`.
///
/// EINVAL: an argument is not one, or the mutex has no ceiling.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mutex_ceiling(mutex: *const lw_mutex_t, ceiling: *mut c_int) -> c_int {
    guarded(|| {
        // SAFETY: the header's head asks for it.
        let Some(mutex) = (unsafe { Mutex::at(mutex) }) else { return libc::EINVAL };
        if mutex.raw.kind() & kind::PROTECT == 0 {
            return libc::EINVAL;
        }
        // SAFETY: as above.
        if unsafe { argument::write(ceiling, c_int::from(mutex.raw.ceiling())) } { 0 } else { libc::EINVAL }
    })
}

/// Another ceiling, 1 to 99; the one before into `*before`, unless that is NULL. A caller that does not have the mutex takes it for that, whatever its
/// own level is, and so may suspend; of a robust one whose owner ended, the next who locks it is told so.
///
/// EINVAL: an argument is not one, the mutex has no ceiling, or the caller has it and is more urgent than the new one. EPERM: no permission to rise to the new one.
/// Otherwise as `lw_mutex_lock`. The ceiling is as it was then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mutex_set_ceiling(mutex: *mut lw_mutex_t, ceiling: c_int, before: *mut c_int) -> c_int {
    guarded(|| {
        // SAFETY: the header's head asks for it.
        let Some(mutex) = (unsafe { Mutex::at(mutex) }) else { return libc::EINVAL };
        if !before.is_aligned() {
            return libc::EINVAL;
        }
        match u8::try_from(ceiling).map_err(|_| RawError::BadKind).and_then(|ceiling| mutex.raw.set_ceiling(ceiling)) {
            Ok(was) => {
                // SAFETY: as above. Null where the caller does not want to know.
                unsafe { argument::write(before, c_int::from(was)) };
                0
            }
            Err(error) => of_error(&mutex.raw, error),
        }
    })
}
