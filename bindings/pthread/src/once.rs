//! The functions `pthread_once` and `call_once`.
//!
//! Under the policy `inherit`, a thread that waits for another thread's initialiser lends it its priority; otherwise
//! they are the C library's. Both have the same values for "not begun" and "done".
//!
//! An initialiser may unwind: by an exception, as `std::call_once` of the GNU C++ library permits, or because its
//! thread is cancelled or ends. `once.c` then lets the next caller execute its own. Unwinding passes through the
//! functions here, and nothing in them needs to be dropped.

use crate::mutex::STAY_NAP_NS;
use crate::next::{self, Routine};
use crate::policy::Policy;
use libc::{c_int, c_void};
use lockwright::mutex::{Limit, attributes, nap};
use lockwright::once::{Once, Run};

const _: () = assert!(size_of::<Once>() == size_of::<c_int>() && align_of::<Once>() == align_of::<c_int>());

/// An initialiser that executes.
struct Trial<'a>(&'a Once, Run);

unsafe extern "C-unwind" {
    /// Calls `routine`. If it unwinds, calls `undo` with `trial`.
    fn lockwright_initialise(routine: Routine, undo: unsafe extern "C" fn(*mut c_void), trial: *mut c_void);
}

unsafe extern "C" fn undo(trial: *mut c_void) {
    // SAFETY: `lockwright_initialise` passes the `Trial` of `pthread_once`, whose frame is below it on the stack and
    // not yet unwound.
    let Trial(once, run) = unsafe { &*trial.cast::<Trial<'_>>() };
    once.abandon(*run);
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_once(once: *mut Once, routine: Routine) -> c_int {
    // SAFETY: the program passes a `pthread_once_t` that stays valid during the call; it is one word, which threads
    // share by atomic operations.
    let known = unsafe { &*once };
    if known.is_done() {
        return 0;
    }
    if Policy::get().bits() & attributes::INHERIT == 0 {
        // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
        return unsafe { next::pthread_once(once, routine) };
    }
    // BOUND: until the initialiser that executes has ended. The C library waits for ever in a deadlock; where the
    // kernel refuses to wait with inheritance, and where too many initialisers execute, the caller asks again.
    let run = loop {
        match known.begin() {
            Ok(None) => return 0,
            Ok(Some(run)) => break run,
            Err(_) => _ = nap(STAY_NAP_NS, Limit::Never),
        }
    };
    let mut trial = Trial(known, run);
    // SAFETY: the program passes a function of this type, and `trial` lives in this frame, which outlives the call.
    unsafe { lockwright_initialise(routine, undo, (&raw mut trial).cast::<c_void>()) };
    known.end(run);
    0
}

/// The function of C11.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn call_once(once: *mut Once, routine: Routine) {
    // SAFETY: `call_once` and `pthread_once` have the same type and contract in the C library, so these arguments are
    // valid.
    unsafe { pthread_once(once, routine) };
}

/// The name that older programs use.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __pthread_once(once: *mut Once, routine: Routine) -> c_int {
    // SAFETY: both names denote one function, so arguments that are valid for one are valid for the other.
    unsafe { pthread_once(once, routine) }
}
