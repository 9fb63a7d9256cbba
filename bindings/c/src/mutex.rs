//! The functions `lw_mutex_*`.

use crate::argument::{self, CObject, Const, Mut};
use crate::errno::{of_acquired, of_done, of_error};
use crate::panic::guarded;
use libc::{c_int, timespec};
use lockwright::mutex::{AtOnce, Attributes, Limit, RawError, RawMutex, attributes};
use lockwright::statistics::{count_mutexes, own_counters};
use std::sync::atomic::{AtomicU32, Ordering};

/// Priority inheritance: the owner executes at the priority of its most urgent waiter, even along chains of owners.
/// This is the kernel's PI futex. Unlocking is always serial (`LW_UNLOCK_SERIAL`).
pub const LW_PROTOCOL_INHERIT: u32 = 0;
/// No protection against priority inversion: a thread of medium priority can delay an urgent waiter without bound.
pub const LW_PROTOCOL_NONE: u32 = 1;
/// Immediate priority ceiling: the owner executes at the ceiling's level of SCHED_FIFO, unless another ceiling already
/// raised it above that. A thread whose own level is above the ceiling cannot lock the mutex (EINVAL), nor can a thread
/// without permission to rise to the ceiling (EPERM).
///
/// A thread that `lw_section_lazy_open` manages does not rise, for up to 8 different ceilings of its CPU. Instead, the
/// other managed threads of the CPU that are not above the ceiling wait in `lw_section_lazy_look`.
pub const LW_PROTOCOL_PROTECT: u32 = 2;

/// Serial while a real-time thread waits, otherwise parallel.
pub const LW_UNLOCK_AUTO: u32 = 0;
/// Unlocking hands the mutex to the first waiter at once. No other thread can lock it in between.
pub const LW_UNLOCK_SERIAL: u32 = 1;
/// Unlocking frees the mutex and wakes the first waiter. A running thread may lock the mutex before the woken waiter
/// does.
pub const LW_UNLOCK_PARALLEL: u32 = 2;

/// A mutex: 64 bytes, aligned to 8.
///
/// It may be in static storage, on the stack, on the heap, or, if it is `shared`, in memory that several processes map.
/// Initialise it with one of the `LW_MUTEX_…INITIALIZER` macros or with `lw_mutex_init`. Never move or copy it, and
/// never free its memory while a thread holds it. Its fields are private.
#[repr(C)]
pub struct lw_mutex_t {
    lw_state: [u32; 4],
    lw_kind: u32,
    lw_urgent: u16,
    lw_ceiling: u8,
    lw_unused: u8,
    lw_links: [usize; 2],
    lw_check: u32,
    lw_spare: [u32; 5],
}

/// Check value of a mutex without attributes. Other mutexes mix in theirs, so that overwritten attributes are noticed.
/// The initialisers of the header contain this value.
const MUTEX_CHECK: u32 = 0x4c57_6d78;

/// The contents of a `lw_mutex_t`.
#[repr(C)]
pub struct Mutex {
    pub raw: RawMutex,
    check: AtomicU32,
    /// In place of padding: the whole object equals what the initialisers of the header make.
    spare: [u32; 5],
}

const _: () = assert!(std::mem::offset_of!(Mutex, check) == std::mem::offset_of!(lw_mutex_t, lw_check));

impl Mutex {
    fn new(raw: RawMutex) -> Self {
        let check = AtomicU32::new(MUTEX_CHECK ^ raw.attributes());
        Self { raw, check, spare: [0; 5] }
    }
}

// SAFETY: `raw` and `check` consist of atomics, and of integers that only `raw` uses.
unsafe impl CObject for lw_mutex_t {
    type Contents = Mutex;

    #[inline]
    fn is_made(mutex: &Mutex) -> bool {
        // ORDERING: Relaxed: the thread that made the mutex published it.
        mutex.check.load(Ordering::Relaxed) == MUTEX_CHECK ^ mutex.raw.attributes()
    }
}

/// Options of a mutex. The value 0 is the default of every field, so set only the fields that differ:
/// `lw_mutex_options_t options = { .protocol = LW_PROTOCOL_PROTECT, .ceiling = 80, .robust = 1 };`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct lw_mutex_options_t {
    /// One of `LW_PROTOCOL_INHERIT`, `LW_PROTOCOL_NONE` and `LW_PROTOCOL_PROTECT`.
    pub protocol: u32,
    /// The ceiling, a level of SCHED_FIFO: 1 to 99 with `LW_PROTOCOL_PROTECT`, otherwise 0.
    pub ceiling: u32,
    /// One of `LW_UNLOCK_AUTO`, `LW_UNLOCK_SERIAL` and `LW_UNLOCK_PARALLEL`.
    pub unlock: u32,
    /// 1: the mutex survives the end of its owner, whether thread or process. The next owner gets EOWNERDEAD. It holds
    /// the mutex, repairs the protected data, and calls `lw_mutex_make_consistent`. If it unlocks the mutex without
    /// that call, every later lock returns ENOTRECOVERABLE.
    pub robust: u32,
    /// 1: every lock and unlock goes through the kernel, so that the kernel can always find the owner. Effective only
    /// with `LW_PROTOCOL_INHERIT`.
    pub kernel_owned: u32,
    /// 1: threads of several processes use the mutex, in memory that these processes share.
    pub shared: u32,
    /// 1: the owner may lock the mutex again, and unlocks it once for each lock. 0: such a lock returns EDEADLK.
    pub recursive: u32,
    /// 1: a thread does not check for a deadlock before it waits. (If the mutexes inherit, the kernel still detects
    /// most deadlocks, but `lw_deadlock_cycle` reports no cycle.)
    pub unchecked: u32,
    /// 1: locks, waits and sections are counted, and `lw_mutex_statistics` reports them. Not together with `shared`. At
    /// most `LW_MUTEX_COUNTED_MAX` mutexes of a process are counted at a time.
    pub counted: u32,
    /// Must be 0.
    pub reserved: [u32; 3],
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
        counted: 0,
        reserved: [0; 3],
    };

    /// Returns a mutex with these options, or `None` if an option has an invalid value.
    fn build(self) -> Option<RawMutex> {
        let (protocol, ceiling) = match (self.protocol, self.ceiling) {
            (LW_PROTOCOL_INHERIT, 0) => (attributes::INHERIT, 0),
            (LW_PROTOCOL_NONE, 0) => (0, 0),
            (LW_PROTOCOL_PROTECT, ceiling @ 1..=99) => (attributes::PROTECT, ceiling as u8),
            _ => return None,
        };
        let unlock = match self.unlock {
            LW_UNLOCK_AUTO => attributes::AUTO,
            LW_UNLOCK_SERIAL => attributes::SERIAL,
            LW_UNLOCK_PARALLEL => 0,
            _ => return None,
        };
        let bits = protocol
            | unlock
            | choose(self.robust, 0, attributes::ROBUST)?
            | choose(self.kernel_owned, 0, attributes::KERNEL_OWNED)?
            | choose(self.shared, 0, attributes::SHARED)?
            | choose(self.recursive, attributes::ERROR_CHECK, attributes::RECURSIVE)?
            | choose(self.unchecked, attributes::CHECKED, 0)?
            | choose(self.counted, 0, attributes::COUNTED)?;
        if bits & attributes::COUNTED != 0 && bits & attributes::SHARED != 0 {
            return None;
        }
        // SAFETY: the header forbids moving or freeing a mutex while a thread holds it, and changing it other than by
        // this library.
        (self.reserved == [0; 3]).then(|| unsafe { RawMutex::new(Attributes::from_bits(bits), ceiling) })
    }
}

fn choose(option: u32, no: u32, yes: u32) -> Option<u32> {
    match option {
        0 => Some(no),
        1 => Some(yes),
        _ => None,
    }
}

/// Begins to count if the mutex is counted. Returns false if there is no place for it.
fn begin_counting(mutex: &RawMutex) -> bool {
    if mutex.attributes() & attributes::COUNTED == 0 {
        return true;
    }
    count_mutexes();
    // A child process counts nothing.
    own_counters().is_none_or(|counters| counters.start(std::ptr::from_ref(mutex).addr()))
}

/// Frees the place of a counted mutex.
fn end_counting(mutex: &RawMutex) {
    if mutex.attributes() & attributes::COUNTED != 0
        && let Some(counters) = own_counters()
    {
        counters.forget(std::ptr::from_ref(mutex).addr());
    }
}

/// Initialises `*mutex` as a free mutex, whatever the memory contained before.
///
/// `options` may be NULL, which stands for the defaults: priority inheritance, deadlock detection, and threads of one
/// process. No thread may use the mutex during the call. Initialise a shared mutex once, before other processes use it.
///
/// The first counted mutex of a process maps and locks 2 MB of memory for the counts, so initialise it before the
/// real-time threads start and before any `fork`.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `mutex` is NULL or misaligned, `options` is misaligned, an option has an invalid value, or the mutex is
///   both counted and shared.
/// - ENOSPC: too many mutexes are counted. The mutex is not initialised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mutex_init(mutex: Mut<'_, lw_mutex_t>, options: Const<'_, lw_mutex_options_t>) -> c_int {
    guarded(|| {
        let options = if options.is_null() { Some(lw_mutex_options_t::DEFAULT) } else { options.read() };
        let raw = options.and_then(lw_mutex_options_t::build);
        match raw.and_then(|raw| mutex.make(Mutex::new(raw))) {
            Some(made) if begin_counting(&made.raw) => 0,
            Some(made) => {
                // ORDERING: Relaxed: no other thread uses the mutex yet.
                made.check.store(0, Ordering::Relaxed);
                libc::ENOSPC
            }
            None => libc::EINVAL,
        }
    })
}

/// Destroys a mutex: every later use except `lw_mutex_init` returns EINVAL.
///
/// No other thread may use the mutex during the call. A mutex owns no memory and no other resource, so a mutex that is
/// never destroyed leaks nothing. A counted mutex that is not destroyed keeps its place among the counts.
///
/// Returns:
/// - 0: success.
/// - EBUSY: a thread holds the mutex. Unless the mutex is robust, also: a thread waits for the mutex, or will lock it
///   again after a wait for a condition.
/// - EINVAL: `mutex` is not an initialised mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mutex_destroy(mutex: Mut<'_, lw_mutex_t>) -> c_int {
    guarded(|| {
        match mutex.object() {
            None => libc::EINVAL,
            Some(mutex) if mutex.raw.is_in_use() => libc::EBUSY,
            Some(mutex) => {
                // ORDERING: Relaxed: the thread that destroys the mutex has made sure that no other thread uses it.
                mutex.check.store(0, Ordering::Relaxed);
                end_counting(&mutex.raw);
                0
            }
        }
    })
}

#[inline]
fn lock_until(mutex: Mut<'_, lw_mutex_t>, limit: impl FnOnce() -> Option<Limit>) -> c_int {
    guarded(|| {
        let (Some(mutex), Some(limit)) = (mutex.object(), limit()) else { return libc::EINVAL };
        of_acquired(&mutex.raw, mutex.raw.lock(limit))
    })
}

/// Locks the mutex, or calls `otherwise` as its last step. What precedes that call calls nothing, so this function
/// saves no registers before the exchange of the word (`RawMutex::lock_at_once`).
#[inline(always)]
fn lock(mutex: Mut<'_, lw_mutex_t>, otherwise: extern "C" fn(&Mutex, AtOnce) -> c_int) -> c_int {
    let Some(mutex) = mutex.object() else { return libc::EINVAL };
    match mutex.raw.lock_at_once() {
        AtOnce::Done => 0,
        came => otherwise(mutex, came),
    }
}

#[inline(never)]
extern "C" fn lock_otherwise(mutex: &Mutex, came: AtOnce) -> c_int {
    guarded(|| of_acquired(&mutex.raw, mutex.raw.finish_lock(came, Limit::Never)))
}

#[inline(never)]
extern "C" fn try_otherwise(mutex: &Mutex, came: AtOnce) -> c_int {
    guarded(|| of_acquired(&mutex.raw, mutex.raw.finish_lock(came, Limit::Now)))
}

#[inline(never)]
extern "C" fn unlock_otherwise(mutex: &Mutex, came: AtOnce) -> c_int {
    guarded(|| of_done(&mutex.raw, mutex.raw.finish_unlock(came)))
}

/// Locks the mutex. Suspends the calling thread until it can. Waiters get the mutex in the order of their priorities.
///
/// Makes no system call if the mutex is free, except for mutexes with a ceiling or with `kernel_owned`, and one at the
/// first lock of a counted mutex by a thread, which reads the name of the thread.
///
/// Returns:
/// - 0: the caller holds the mutex.
/// - EOWNERDEAD: the caller holds the mutex, and its previous owner ended while it held it. Repair the protected data,
///   then call `lw_mutex_make_consistent` if the mutex is robust. Other mutexes return this only if they inherit, and
///   only to a thread that waited when the owner ended; later locks succeed.
/// - ENOTRECOVERABLE: an owner ended, and a later owner unlocked the mutex without `lw_mutex_make_consistent`.
/// - EDEADLK: the caller would wait for itself, directly or through other threads. See `lw_deadlock_cycle`. A cycle in
///   which a thread waits until a deadline is no deadlock, nor one through a mutex that threads unlock for each other.
/// - EINVAL: `mutex` is not an initialised mutex, or the caller's own level is above the ceiling.
/// - EPERM: the caller has no permission to rise to the ceiling. It needs CAP_SYS_NICE or an rtprio limit.
/// - EAGAIN: the caller has locked a recursive mutex too often, or the kernel kept asking to try again.
/// - ESRCH: the owner had ended before the call, no thread waited then, and the mutex inherits and is not robust. It
///   will never be unlocked.
/// - ENOTSUP: the mutex is robust, and the C library keeps no list of robust mutexes.
/// - Any other number is an error of the kernel, such as ENOMEM.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mutex_lock(mutex: Mut<'_, lw_mutex_t>) -> c_int {
    lock(mutex, lock_otherwise)
}

/// Locks the mutex if it is free, without waiting for its owner.
///
/// Returns:
/// - EBUSY: another thread holds the mutex, or the caller holds it and it is not recursive.
/// - Otherwise the values of `lw_mutex_lock`, except ESRCH.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mutex_trylock(mutex: Mut<'_, lw_mutex_t>) -> c_int {
    lock(mutex, try_otherwise)
}

/// Locks the mutex as `lw_mutex_lock` does, but only waits until `clock` reads `*time`.
///
/// `clock` is CLOCK_MONOTONIC or CLOCK_REALTIME, and `*time` is an absolute time by that clock. A free mutex is locked
/// even if that time has passed.
///
/// Returns the values of `lw_mutex_lock`, and:
/// - ETIMEDOUT: the time passed before the caller could lock the mutex.
/// - EINVAL, also: `clock` is another clock, `time` is NULL or misaligned, or `time->tv_nsec` is not from 0 to
///   999999999.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mutex_lock_until(
    mutex: Mut<'_, lw_mutex_t>,
    clock: c_int,
    time: Const<'_, timespec>,
) -> c_int {
    lock_until(mutex, || argument::deadline(clock, time).map(Limit::At))
}

/// Locks the mutex as `lw_mutex_lock_until` does, but only waits for the duration `*time`, by CLOCK_MONOTONIC.
///
/// Returns the values of `lw_mutex_lock_until`, and:
/// - EINVAL, also: `*time` is negative.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mutex_lock_for(mutex: Mut<'_, lw_mutex_t>, time: Const<'_, timespec>) -> c_int {
    lock_until(mutex, || argument::deadline_after(time).map(Limit::At))
}

/// Unlocks the mutex. Which thread gets it next depends on the option `unlock`.
///
/// Returns:
/// - 0: success.
/// - EPERM: the caller does not hold the mutex.
/// - EINVAL: `mutex` is not an initialised mutex.
/// - Any other number is an error of the kernel. The caller still holds the mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mutex_unlock(mutex: Mut<'_, lw_mutex_t>) -> c_int {
    let Some(mutex) = mutex.object() else { return libc::EINVAL };
    match mutex.raw.unlock_at_once() {
        AtOnce::Done => 0,
        came => unlock_otherwise(mutex, came),
    }
}

/// Declares, after EOWNERDEAD, that the protected data is consistent again. The caller keeps the mutex, and unlocks it
/// as usual.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `mutex` is not an initialised robust mutex, or it is not inconsistent.
/// - EPERM: the caller does not hold the mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mutex_make_consistent(mutex: Mut<'_, lw_mutex_t>) -> c_int {
    guarded(|| {
        let Some(mutex) = mutex.object() else { return libc::EINVAL };
        of_done(&mutex.raw, mutex.raw.make_consistent())
    })
}

/// Writes the owner of the mutex to `*thread`: the thread's id in the kernel (`gettid`), or 0 if the mutex is free.
///
/// Unless the caller holds the mutex, the owner may have changed when the function returns.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `mutex` is not an initialised mutex, or `thread` is NULL or misaligned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mutex_owner(mutex: Const<'_, lw_mutex_t>, thread: Mut<'_, u32>) -> c_int {
    guarded(|| {
        let Some(mutex) = mutex.object() else { return libc::EINVAL };
        if thread.write(mutex.raw.owner()) { 0 } else { libc::EINVAL }
    })
}

/// Returns 1 if the calling thread holds the mutex, and 0 if it does not, or if `mutex` is not an initialised mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mutex_is_mine(mutex: Const<'_, lw_mutex_t>) -> c_int {
    guarded(|| c_int::from(mutex.object().is_some_and(|mutex| mutex.raw.is_mine())))
}

/// Writes the ceiling of the mutex, 1 to 99, to `*ceiling`.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `mutex` is not an initialised mutex or has no ceiling, or `ceiling` is NULL or misaligned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mutex_ceiling(mutex: Const<'_, lw_mutex_t>, ceiling: Mut<'_, c_int>) -> c_int {
    guarded(|| {
        let Some(mutex) = mutex.object() else { return libc::EINVAL };
        if mutex.raw.attributes() & attributes::PROTECT == 0 {
            return libc::EINVAL;
        }
        if ceiling.write(c_int::from(mutex.raw.ceiling())) { 0 } else { libc::EINVAL }
    })
}

/// Changes the ceiling of the mutex to `ceiling`, 1 to 99. Writes the previous ceiling to `*before`, unless `before` is
/// NULL.
///
/// An owner that calls this changes its level at once. Any other caller locks the mutex for the change, whatever its
/// own level is, and so may suspend. If that lock finds that the owner of a robust mutex ended, the next thread that
/// locks the mutex still gets EOWNERDEAD.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `mutex` is not an initialised mutex or has no ceiling, `ceiling` is not from 1 to 99, `before` is
///   misaligned, or the caller holds the mutex and its own level is above `ceiling`.
/// - EPERM: the caller holds the mutex and has no permission to rise to `ceiling`.
/// - Otherwise the errors of `lw_mutex_lock`. After an error the ceiling is unchanged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mutex_set_ceiling(
    mutex: Mut<'_, lw_mutex_t>,
    ceiling: c_int,
    before: Mut<'_, c_int>,
) -> c_int {
    guarded(|| {
        let Some(mutex) = mutex.object() else { return libc::EINVAL };
        if !before.is_null() && !before.is_there() {
            return libc::EINVAL;
        }
        match u8::try_from(ceiling)
            .map_err(|_| RawError::Inapplicable)
            .and_then(|ceiling| mutex.raw.set_ceiling(ceiling))
        {
            Ok(was) => {
                before.write(c_int::from(was));
                0
            }
            Err(error) => of_error(&mutex.raw, error),
        }
    })
}
