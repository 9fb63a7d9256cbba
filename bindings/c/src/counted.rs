//! The functions `lw_mutex_*` that report what threads did with counted mutexes.

use crate::argument::{Const, Mut};
use crate::mutex::lw_mutex_t;
use crate::panic::guarded;
use libc::{c_char, c_int, size_t};
use lockwright::model::Duration;
use lockwright::mutex::{RawMutex, attributes};
use lockwright::statistics::{COUNTED_MAX, SeenThread};

/// The number of mutexes of a process that can be counted at a time.
pub const LW_MUTEX_COUNTED_MAX: u32 = 256;
const _: () = assert!(LW_MUTEX_COUNTED_MAX as usize == COUNTED_MAX);

/// What threads did with a counted mutex since its initialisation. Times are in nanoseconds of CLOCK_MONOTONIC.
///
/// A thread is its id in the kernel (`gettid`), or 0 if there is none, and its name as it was when the thread last
/// waited, or first locked a counted mutex. A name ends with a 0, and is empty if it is not known.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct lw_mutex_statistics_t {
    /// The number of locks. A further lock by the owner of a recursive mutex is none.
    pub sections: u64,
    /// The number of locks that found the mutex locked and waited. A wait that ended without the mutex is not counted.
    pub waits: u64,
    /// The sum of the waits.
    pub total_wait_ns: u64,
    /// The longest wait.
    pub longest_wait_ns: u64,
    /// The longest time from a lock to its unlock, preemption included. A wait for a condition ends a section.
    pub longest_section_ns: u64,
    /// The number of threads that wait now.
    pub waiting: u64,
    /// The thread of the longest wait.
    pub waiter: u32,
    /// The thread that held the mutex when the longest wait began.
    pub holder: u32,
    /// The thread of the longest section.
    pub longest_by: u32,
    /// 0.
    pub reserved: u32,
    /// The name of `waiter`.
    pub waiter_name: [c_char; 16],
    /// The name of `holder`.
    pub holder_name: [c_char; 16],
    /// The name of `longest_by`.
    pub longest_by_name: [c_char; 16],
}

/// A part of the distribution of waits.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct lw_wait_bin_t {
    /// The longest wait of this part, in nanoseconds, at most a sixteenth above the shortest.
    pub up_to_ns: u64,
    /// The number of waits.
    pub waits: u64,
}

/// Writes what threads did with a counted mutex to `*statistics`. All values are 0 if no thread has locked it. Threads
/// may use the mutex meanwhile; then one value may be of another moment than the next one.
///
/// A counted mutex always takes the slow path, and reads the clock after a lock, before an unlock and before a wait:
/// see docs/c.md for the cost. A signal moves a thread that waits for a condition to the mutex; the time until it has
/// the mutex is part of its wait for the condition. A child process of `fork` counts nothing. Children of `_Fork`,
/// `vfork` and a plain `clone` are not noticed, and must not use counted mutexes.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `mutex` is not an initialised mutex with the option `counted`, or `statistics` is NULL or misaligned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mutex_statistics(
    mutex: Const<'_, lw_mutex_t>,
    statistics: Mut<'_, lw_mutex_statistics_t>,
) -> c_int {
    guarded(|| {
        let Some(mutex) = counted(mutex) else { return libc::EINVAL };
        let seen = mutex.statistics().map_or_else(lw_mutex_statistics_t::default, |seen| {
            let id = |thread: Option<SeenThread>| thread.map_or(0, |thread| thread.id);
            let name = |thread: Option<SeenThread>| {
                let bytes = thread.map_or([0; 16], |thread| thread.name_bytes());
                bytes.map(|byte| c_char::from_ne_bytes([byte]))
            };
            lw_mutex_statistics_t {
                sections: seen.sections,
                waits: seen.waits,
                total_wait_ns: seen.total_wait.as_ns(),
                longest_wait_ns: seen.longest_wait.as_ns(),
                longest_section_ns: seen.longest_section.as_ns(),
                waiting: seen.waiting,
                waiter: id(seen.waiter),
                holder: id(seen.holder),
                longest_by: id(seen.longest_by),
                reserved: 0,
                waiter_name: name(seen.waiter),
                holder_name: name(seen.holder),
                longest_by_name: name(seen.longest_by),
            }
        });
        if statistics.write(seen) { 0 } else { libc::EINVAL }
    })
}

/// Writes the distribution of the waits for a counted mutex: the first `capacity` parts with waits to `bins`, the
/// shortest waits first, and the number of all such parts to `*length`. `bins` may be NULL if `capacity` is 0. There
/// are at most 976 parts.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `mutex` is not an initialised mutex with the option `counted`, `length` is NULL or misaligned, or
///   `capacity` is not 0 and `bins` is NULL or misaligned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_mutex_histogram(
    mutex: Const<'_, lw_mutex_t>,
    bins: Mut<'_, lw_wait_bin_t>,
    capacity: size_t,
    length: Mut<'_, size_t>,
) -> c_int {
    guarded(|| {
        let Some(mutex) = counted(mutex) else { return libc::EINVAL };
        if (capacity > 0 && !bins.is_there()) || !length.is_there() {
            return libc::EINVAL;
        }
        // Parts may come while this counts them, but at most as many as are counted first are written.
        let parts = mutex.wait_histogram().count();
        // SAFETY: the header requires room for `capacity` parts, and at most as many are asked for.
        let room = unsafe { bins.room(capacity.min(parts)) }.unwrap_or_default();
        for (place, (up_to, waits)) in room.iter_mut().zip(mutex.wait_histogram()) {
            place.write(lw_wait_bin_t { up_to_ns: Duration::as_ns(up_to), waits });
        }
        length.write(parts);
        0
    })
}

fn counted(mutex: Const<'_, lw_mutex_t>) -> Option<&RawMutex> {
    mutex.object().map(|mutex| &mutex.raw).filter(|raw| raw.attributes() & attributes::COUNTED != 0)
}
