//! Objects that several processes share: those are the C library's.
//!
//! Another process may use the same object without this library, so both must follow one protocol on its memory. The
//! functions here decide which library serves an object, and serve the combinations of a shared object with a private
//! one.
//!
//! | condition variable | mutex | a wait |
//! |---|---|---|
//! | private | private | this library's |
//! | shared | shared | the C library's |
//! | private | shared | at this library's condition variable; the C library unlocks and locks the mutex |
//! | shared | private | at a condition variable of this process that stands for the shared one (`stand_in`) |

use crate::attributes::COND_SHARED;
use crate::{next, report};
use libc::c_int;
use lockwright::mutex::{Clock, RawCondvar, RawMutex, attributes};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// The bit of a mutex whose attributes contain the policy.
pub(crate) const PREPARED: u32 = 1 << 24;
/// The attributes of a destroyed mutex, which no function accepts. They contain the bit of a shared mutex, although a
/// destroyed mutex is not a shared one.
pub(crate) const DESTROYED: u32 = !PREPARED;

/// Returns whether the mutex is the C library's.
#[inline]
pub(crate) fn is_shared(mutex: &RawMutex) -> bool {
    let own = mutex.attributes();
    own & attributes::SHARED != 0 && own != DESTROYED
}

/// Initialises a mutex with the attributes of a shared one. The policy may add inheritance.
pub(crate) unsafe fn init(mutex: *mut RawMutex, attributes: *const u32) -> c_int {
    // SAFETY: the attributes marked the mutex as shared, so they are not null, and no other thread writes them during
    // the call.
    let attributes = crate::attributes::with_policy(unsafe { *attributes });
    // SAFETY: the program passes memory for a mutex, and `attributes` lives in this frame.
    unsafe { next::pthread_mutex_init(mutex, &raw const attributes) }
}

/// Returns the clock's number.
pub(crate) fn number(clock: Clock) -> c_int {
    match clock {
        Clock::Realtime => libc::CLOCK_REALTIME,
        Clock::Monotonic => libc::CLOCK_MONOTONIC,
    }
}

/// Where the C library keeps whether a condition variable is shared (bit 0) and its clock (bit 1), in bytes. Versions
/// of the C library differ in this. This library leaves all these words 0, so its own are never taken for shared ones.
static COND_FLAGS_AT: AtomicUsize = AtomicUsize::new(NOT_FOUND);
const NOT_FOUND: usize = 0;
const _: () = assert!(RawCondvar::UNMARKED_AT[0] != NOT_FOUND && RawCondvar::UNMARKED_AT[1] != NOT_FOUND);
const COND_MONOTONIC: u32 = 2;

/// Finds where this version of the C library keeps them: it initialises a shared condition variable.
///
/// That happens when this library is loaded, or before, if the constructor of another library uses a condition
/// variable.
#[cold]
pub(crate) fn find_flags() -> usize {
    let mut cond = RawCondvar::new(false);
    let at = |cond: &RawCondvar, offset: usize| {
        // SAFETY: the word lies inside the condition variable, is aligned, and no other thread knows it.
        unsafe { std::ptr::from_ref(cond).byte_add(offset).cast::<u32>().read() }
    };
    // SAFETY: the C library's condition variables have this size, and both arguments stay valid during the call.
    let answer = unsafe { next::pthread_cond_init(&raw mut cond, &COND_SHARED) };
    let found = RawCondvar::UNMARKED_AT.into_iter().find(|&offset| answer == 0 && at(&cond, offset) == COND_SHARED);
    let offset = found.unwrap_or_else(|| {
        report::unknown_layout();
        RawCondvar::UNMARKED_AT[0]
    });
    // ORDERING: Relaxed: a number that is the same for all threads.
    COND_FLAGS_AT.store(offset, Ordering::Relaxed);
    offset
}

/// Returns the word in which the C library keeps the attributes.
///
/// # Safety
/// `cond` points to a condition variable, of this library or of the C library, that stays valid during the call.
unsafe fn flags(cond: *const RawCondvar) -> u32 {
    // ORDERING: Relaxed: as in `find_flags`.
    let offset = match COND_FLAGS_AT.load(Ordering::Relaxed) {
        NOT_FOUND => find_flags(),
        found => found,
    };
    // SAFETY: the caller passes a valid condition variable. The word lies inside it, is aligned, and is changed by
    // atomic operations only.
    let word = unsafe { &*cond.byte_add(offset).cast::<AtomicU32>() };
    // ORDERING: Relaxed: set before other threads know the object.
    word.load(Ordering::Relaxed)
}

/// Returns whether the condition variable is the C library's.
///
/// # Safety
/// That of [`flags`].
#[inline]
pub(crate) unsafe fn is_shared_cond(cond: *const RawCondvar) -> bool {
    // SAFETY: the caller passes a valid condition variable.
    unsafe { flags(cond) & COND_SHARED != 0 }
}

/// Returns the clock of a condition variable.
pub(crate) unsafe fn clock_of(cond: *const RawCondvar) -> Clock {
    // SAFETY: the program passes a condition variable that stays valid during the call.
    match unsafe { flags(cond) } {
        // SAFETY: the program passes a condition variable that stays valid during the call; its flags show that this
        // library initialised it, and threads may share it.
        flags if flags & COND_SHARED == 0 => unsafe { &*cond }.clock(),
        flags if flags & COND_MONOTONIC == 0 => Clock::Realtime,
        _ => Clock::Monotonic,
    }
}

/// The most shared condition variables that are waited for with private mutexes.
const STAND_INS_MAX: usize = 32;
const FREE: usize = 0;

/// The addresses of the shared condition variables, and what stands for each.
static ADDRESSES: [AtomicUsize; STAND_INS_MAX] = [const { AtomicUsize::new(FREE) }; STAND_INS_MAX];
static STAND_INS: [RawCondvar; STAND_INS_MAX] = [const { RawCondvar::new(false) }; STAND_INS_MAX];

/// Where a thread waits.
pub(crate) enum Place {
    /// At this condition variable of this library.
    Ours(*const RawCondvar),
    /// At the C library's.
    Theirs,
}

/// Returns where a thread waits that passes these objects. The error is ENOMEM if nothing can stand for the condition
/// variable.
pub(crate) unsafe fn place(cond: *const RawCondvar, mutex: *const RawMutex) -> Result<Place, c_int> {
    // SAFETY: the program passes a condition variable that stays valid during the call.
    if !unsafe { is_shared_cond(cond) } {
        return Ok(Place::Ours(cond));
    }
    // SAFETY: the program passes a mutex that stays valid during the call, and threads may share a `RawMutex`.
    if is_shared(unsafe { &*mutex }) {
        return Ok(Place::Theirs);
    }
    make_stand_in(cond).map(|own| Place::Ours(std::ptr::from_ref(own))).ok_or(libc::ENOMEM)
}

/// Returns the condition variable of this process that stands for a shared one, if there is one.
///
/// # Bound
/// STAND_INS_MAX loads.
pub(crate) fn stand_in(cond: *const RawCondvar) -> Option<&'static RawCondvar> {
    // ORDERING: Acquire pairs with the Release in `make_stand_in`: a signal comes after a wait that it is meant for.
    let place = ADDRESSES.iter().position(|address| address.load(Ordering::Acquire) == cond.addr())?;
    Some(&STAND_INS[place])
}

/// The same, and makes one. Returns `None` if there are too many.
fn make_stand_in(cond: *const RawCondvar) -> Option<&'static RawCondvar> {
    let is_it = |address: &AtomicUsize| {
        // ORDERING: Release: see `stand_in`.
        match address.compare_exchange(FREE, cond.addr(), Ordering::Release, Ordering::Relaxed) {
            Ok(_) => true,
            Err(other) => other == cond.addr(),
        }
    };
    stand_in(cond).or_else(|| ADDRESSES.iter().position(is_it).map(|place| &STAND_INS[place]))
}

/// Frees what stands for a shared condition variable that is destroyed.
pub(crate) fn free_stand_in(cond: *const RawCondvar) {
    for address in &ADDRESSES {
        // ORDERING: Relaxed: POSIX requires that no other thread uses the condition variable.
        let _ = address.compare_exchange(cond.addr(), FREE, Ordering::Relaxed, Ordering::Relaxed);
    }
}
