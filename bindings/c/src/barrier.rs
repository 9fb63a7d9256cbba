//! The functions `lw_barrier_*`.

use crate::argument::{CObject, Mut};
use crate::errno::of_sys;
use crate::panic::guarded;
use libc::{c_int, c_uint};
use lockwright::barrier::Barrier as Waits;
use lockwright::mutex::Destroyed;
use std::sync::atomic::{AtomicU32, Ordering};

/// A barrier: 32 bytes, aligned to 8.
///
/// Each of a number of threads waits until all have arrived; then the next round begins. The last one to arrive wakes
/// the others, the most urgent first.
///
/// It may be wherever a mutex may be. Initialise it with `LW_BARRIER_INITIALIZER(count)` or `lw_barrier_init`. Never
/// move or copy it. Its fields are private.
#[repr(C)]
pub struct lw_barrier_t {
    lw_state: u64,
    lw_words: [u32; 4],
    lw_check: u32,
    lw_spare: u32,
}

/// Check value of a barrier. The initialiser of the header contains this value.
const BARRIER_CHECK: u32 = 0x4c57_6272;

/// The contents of a `lw_barrier_t`.
#[repr(C)]
pub struct Barrier {
    barrier: Waits,
    check: AtomicU32,
    /// As for a mutex.
    spare: u32,
}

const _: () = assert!(std::mem::offset_of!(Barrier, check) == std::mem::offset_of!(lw_barrier_t, lw_check));

// SAFETY: `barrier` and `check` consist of atomics, and nothing uses `spare`.
unsafe impl CObject for lw_barrier_t {
    type Contents = Barrier;

    #[inline]
    fn is_made(barrier: &Barrier) -> bool {
        // ORDERING: Relaxed: the thread that made the barrier published it.
        barrier.check.load(Ordering::Relaxed) == BARRIER_CHECK
    }
}

/// Initialises `*barrier` for `count` threads, whatever the memory contained before.
///
/// `shared` is 0 for threads of this process, and 1 for threads of all processes that map the memory.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `barrier` is NULL or misaligned, `shared` is neither 0 nor 1, or `count` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_barrier_init(barrier: Mut<'_, lw_barrier_t>, shared: c_int, count: c_uint) -> c_int {
    guarded(|| {
        let waits = match shared {
            _ if count == 0 => return libc::EINVAL,
            0 => Waits::new(count),
            1 => Waits::shared(count),
            _ => return libc::EINVAL,
        };
        let contents = Barrier { barrier: waits, check: AtomicU32::new(BARRIER_CHECK), spare: 0 };
        if barrier.make(contents).is_some() { 0 } else { libc::EINVAL }
    })
}

/// Waits until all threads have left `lw_barrier_wait`, and destroys the barrier: every later use except
/// `lw_barrier_init` returns EINVAL. A thread may call this as soon as its own wait has returned.
///
/// Returns:
/// - 0: success.
/// - EBUSY: a thread waits for the others, or a woken thread has not executed for 1 s.
/// - EINVAL: `barrier` is not an initialised barrier.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_barrier_destroy(barrier: Mut<'_, lw_barrier_t>) -> c_int {
    guarded(|| {
        let Some(barrier) = barrier.object() else { return libc::EINVAL };
        if barrier.barrier.destroy() == Destroyed::InUse {
            return libc::EBUSY;
        }
        // ORDERING: Relaxed: all other threads have left.
        barrier.check.store(0, Ordering::Relaxed);
        0
    })
}

/// Arrives, and suspends the calling thread until all threads of the round have arrived.
///
/// Stores 1 in `*is_leader` for one thread of each round, and 0 for the others. `is_leader` may be NULL.
///
/// Returns:
/// - 0: all have arrived.
/// - EINVAL: `barrier` is not an initialised barrier, or `is_leader` is misaligned. The caller has not arrived.
/// - Any other number is an error of the kernel. The caller has not arrived.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_barrier_wait(barrier: Mut<'_, lw_barrier_t>, is_leader: Mut<'_, c_int>) -> c_int {
    guarded(|| {
        let Some(barrier) = barrier.object() else { return libc::EINVAL };
        let is_wanted = !is_leader.is_null();
        if is_wanted && !is_leader.is_there() {
            return libc::EINVAL;
        }
        match barrier.barrier.wait() {
            Ok(leads) => {
                if is_wanted {
                    is_leader.write(leads.into());
                }
                0
            }
            Err(error) => of_sys(error),
        }
    })
}
