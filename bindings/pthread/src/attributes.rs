//! Attributes of mutexes and condition variables: the bits of one integer each, as in the C library.

use crate::policy::Policy;
use libc::{EINVAL, c_int};
use lockwright::mutex::attributes;

/// The attributes of a mutex.
///
/// ```text
///   0 .. 11   type      12 .. 23   ceiling, 0: not set      28, 29   protocol      30   robust      31   shared
/// ```
const TYPE: u32 = 0xfff;
const CEILING_SHIFT: u32 = 12;
const CEILING: u32 = 0xfff << CEILING_SHIFT;
const PROTOCOL_SHIFT: u32 = 28;
const PROTOCOL: u32 = 3 << PROTOCOL_SHIFT;
const ROBUST: u32 = 1 << 30;
const SHARED: u32 = 1 << 31;

/// The attributes of a condition variable: bit 0 is `shared`, bit 1 the number of the clock.
pub(crate) const COND_SHARED: u32 = 1;
const COND_CLOCK_SHIFT: u32 = 1;
const COND_CLOCK: u32 = 1 << COND_CLOCK_SHIFT;

/// The attributes of a reader-writer lock, which the C library's functions set.
#[repr(C)]
pub struct RwLockAttributes {
    pub(crate) kind: c_int,
    pub(crate) shared: c_int,
}

/// The levels of SCHED_FIFO, which are the valid ceilings.
pub(crate) const LEVELS: std::ops::RangeInclusive<c_int> = 1..=99;

/// Returns the attributes of a mutex as bits, and its ceiling, or 0 if it has none.
pub(crate) fn attributes_and_ceiling(attributes: u32) -> (u32, u8) {
    let mut bits = attributes & TYPE & attributes::TYPE;
    if attributes & ROBUST != 0 {
        bits |= attributes::ROBUST;
    }
    if attributes & SHARED != 0 {
        bits |= attributes::SHARED;
    }
    match (attributes & PROTOCOL) >> PROTOCOL_SHIFT {
        1 => bits |= attributes::INHERIT,
        2 => return (bits | attributes::PROTECT, ceiling(attributes) as u8),
        _ => {}
    }
    (bits, 0)
}

/// Returns the attributes of a shared mutex under the policy: with inheritance, if the policy adds it and the program
/// requested no protocol.
pub(crate) fn with_policy(attributes: u32) -> u32 {
    let inherits = Policy::get().bits() & attributes::INHERIT != 0 && attributes & PROTOCOL == 0;
    if inherits { attributes | 1 << PROTOCOL_SHIFT } else { attributes }
}

/// Returns the ceiling of the attributes, or the lowest one if none was set.
fn ceiling(attributes: u32) -> c_int {
    match ((attributes & CEILING) >> CEILING_SHIFT) as c_int {
        0 => *LEVELS.start(),
        ceiling => ceiling,
    }
}

/// Returns whether a condition variable with these attributes is shared, and the number of its clock.
pub(crate) fn shared_and_clock(attributes: u32) -> (bool, c_int) {
    (attributes & COND_SHARED != 0, ((attributes & COND_CLOCK) >> COND_CLOCK_SHIFT) as c_int)
}

/// Stores `value` in the bits of `mask`, if it is valid.
unsafe fn put(attributes: *mut u32, mask: u32, shift: u32, value: c_int, valid: bool) -> c_int {
    if !valid {
        return EINVAL;
    }
    // SAFETY: the program passes attributes, which no other thread uses during the call.
    unsafe { *attributes = *attributes & !mask | (value as u32) << shift };
    0
}

unsafe fn get(attributes: *const u32, mask: u32, shift: u32, value: *mut c_int) -> c_int {
    // SAFETY: the program passes initialised attributes, and a place for the value; no other thread writes them during
    // the call.
    unsafe { *value = ((*attributes & mask) >> shift) as c_int };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutexattr_init(attributes: *mut u32) -> c_int {
    // SAFETY: the program passes memory for attributes, which has this size.
    unsafe { *attributes = 0 };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutexattr_destroy(_attributes: *mut u32) -> c_int {
    0
}

/// Defines a function that sets an attribute to a valid value, and one that gets it.
macro_rules! attributes {
    ($($set:ident, $get:ident: $mask:expr, $shift:expr, $is_valid:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $set(attributes: *mut u32, value: c_int) -> c_int {
            let is_valid: fn(c_int) -> bool = $is_valid;
            // SAFETY: the program passes initialised attributes, which no other thread uses during the call.
            unsafe { put(attributes, $mask, $shift, value, is_valid(value)) }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $get(attributes: *const u32, value: *mut c_int) -> c_int {
            // SAFETY: the program passes initialised attributes, and a place for the value, which stay valid during the
            // call.
            unsafe { get(attributes, $mask, $shift, value) }
        }
    )*};
}

attributes! {
    pthread_mutexattr_settype, pthread_mutexattr_gettype: TYPE, 0, |value| (0..=3).contains(&value);
    pthread_mutexattr_setpshared, pthread_mutexattr_getpshared: SHARED, 31, |value| matches!(value, 0 | 1);
    pthread_mutexattr_setprotocol, pthread_mutexattr_getprotocol: PROTOCOL, PROTOCOL_SHIFT, |value| (0..=2).contains(&value);
    pthread_mutexattr_setrobust, pthread_mutexattr_getrobust: ROBUST, 30, |value| matches!(value, 0 | 1);
    pthread_condattr_setpshared, pthread_condattr_getpshared: COND_SHARED, 0, |value| matches!(value, 0 | 1);
    pthread_condattr_setclock, pthread_condattr_getclock: COND_CLOCK, COND_CLOCK_SHIFT, |value| crate::clock(value).is_some();
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutexattr_setprioceiling(attributes: *mut u32, value: c_int) -> c_int {
    // SAFETY: the program passes initialised attributes, which no other thread uses during the call.
    unsafe { put(attributes, CEILING, CEILING_SHIFT, value, LEVELS.contains(&value)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutexattr_getprioceiling(attributes: *const u32, value: *mut c_int) -> c_int {
    // SAFETY: the program passes initialised attributes, and a place for the value; no other thread writes them during
    // the call.
    unsafe { *value = ceiling(*attributes) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_condattr_init(attributes: *mut u32) -> c_int {
    // SAFETY: the program passes memory for attributes, which has this size.
    unsafe { *attributes = 0 };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_condattr_destroy(_attributes: *mut u32) -> c_int {
    0
}

other_names! {
    pthread_mutexattr_setkind_np(attributes: *mut u32, value: c_int) = pthread_mutexattr_settype;
    pthread_mutexattr_getkind_np(attributes: *const u32, value: *mut c_int) = pthread_mutexattr_gettype;
    pthread_mutexattr_setrobust_np(attributes: *mut u32, value: c_int) = pthread_mutexattr_setrobust;
    pthread_mutexattr_getrobust_np(attributes: *const u32, value: *mut c_int) = pthread_mutexattr_getrobust;
    __pthread_mutexattr_init(attributes: *mut u32) = pthread_mutexattr_init;
    __pthread_mutexattr_destroy(attributes: *mut u32) = pthread_mutexattr_destroy;
    __pthread_mutexattr_settype(attributes: *mut u32, value: c_int) = pthread_mutexattr_settype;
}
