//! The function `lw_once_call`.

use crate::argument::{CObject, Mut};
use crate::errno::of_sys;
use crate::panic::guarded;
use libc::{c_int, c_void};
use lockwright::once::{Once as State, OnceError, Run};
use std::sync::atomic::{AtomicU32, Ordering};

/// Records whether an initialisation has been performed: 8 bytes, aligned to 4.
///
/// It must belong to one process. Initialise it with `LW_ONCE_INITIALIZER`. Never move or copy it. Its fields are
/// private.
#[repr(C)]
pub struct lw_once_t {
    lw_state: u32,
    lw_check: u32,
}

/// Check value of a once. The initialiser of the header contains this value.
const ONCE_CHECK: u32 = 0x4c57_6f6e;

/// The contents of a `lw_once_t`.
#[repr(C)]
pub struct Once {
    state: State,
    check: AtomicU32,
}

// SAFETY: both consist of atomics.
unsafe impl CObject for lw_once_t {
    type Contents = Once;

    #[inline]
    fn is_made(once: &Once) -> bool {
        // ORDERING: Relaxed: the thread that made it published it.
        once.check.load(Ordering::Relaxed) == ONCE_CHECK
    }
}

/// The task of a caller.
#[derive(Clone, Copy)]
enum Begun<'a> {
    Runs(&'a State, Run),
    Answers(c_int),
}

fn begin(once: Mut<'_, lw_once_t>) -> Begun<'_> {
    let Some(once) = once.object() else { return Begun::Answers(libc::EINVAL) };
    if once.state.is_done() {
        return Begun::Answers(0);
    }
    match once.state.begin() {
        Ok(Some(run)) => Begun::Runs(&once.state, run),
        Ok(None) => Begun::Answers(0),
        Err(OnceError::Deadlock) => Begun::Answers(libc::EDEADLK),
        Err(OnceError::Sys(error)) => Begun::Answers(of_sys(error)),
        Err(_) => Begun::Answers(libc::EAGAIN),
    }
}

/// Calls `routine(argument)`, unless a routine has succeeded with this `once` already. While a thread executes its
/// routine, other callers wait, and lend their priority to that thread.
///
/// A routine fails if it does not return 0; the next caller then calls its own. The same holds if the thread ends
/// inside the routine or is cancelled there. A C++ exception must not leave it; `lockwright::call_once` permits that.
///
/// Makes no system call once a routine has succeeded.
///
/// Returns:
/// - 0: a routine has succeeded.
/// - ECANCELED: the caller's routine failed.
/// - EDEADLK: the caller would wait for its own routine.
/// - EAGAIN: 64 other routines of the process are executing, or the kernel kept asking to try again.
/// - EINVAL: `once` is not initialised, or `routine` is NULL.
/// - Any other number is an error of the kernel.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn lw_once_call(
    once: Mut<'_, lw_once_t>,
    routine: Option<unsafe extern "C-unwind" fn(argument: *mut c_void) -> c_int>,
    argument: *mut c_void,
) -> c_int {
    let Some(routine) = routine else { return libc::EINVAL };
    let mut begun = Begun::Answers(libc::EIO);
    let failed = guarded(|| {
        begun = begin(once);
        0
    });
    let (state, run) = match begun {
        Begun::Answers(number) => return number,
        Begun::Runs(..) if failed != 0 => return failed,
        Begun::Runs(state, run) => (state, run),
    };
    // A cancelled thread is unwound from here, and nothing in this frame needs to be dropped.
    // SAFETY: the header requires a function that may be called with `argument`, which is passed on unchanged.
    let answer = unsafe { routine(argument) };
    guarded(|| {
        if answer == 0 {
            state.end(run);
            0
        } else {
            state.abandon(run);
            libc::ECANCELED
        }
    })
}
