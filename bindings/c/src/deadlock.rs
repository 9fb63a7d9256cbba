//! The last deadlock of each thread.

use crate::argument::Mut;
use crate::panic::guarded;
use libc::{c_char, c_int, c_void, size_t};
use lockwright::mutex::{Cycle, Link, RawMutex, thread_name};
use std::cell::Cell;

/// A thread that waits, and the mutex that it waits for. The thread of the next link holds that mutex; after the last
/// link comes the first.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct lw_deadlock_link_t {
    /// The address of the mutex: a `lw_mutex_t`, or another mutex of Lockwright in this process.
    pub mutex: *const c_void,
    /// The thread's id in the kernel (`gettid`).
    pub thread: u32,
    /// Always 0.
    pub reserved: u32,
    /// The thread's name (`pthread_getname_np`), which ends with a 0; empty if the thread has ended.
    pub name: [c_char; 16],
}

/// The cause of the thread's last EDEADLK.
#[derive(Default)]
enum Last {
    /// There was none, or its cycle is unknown.
    #[default]
    Unknown,
    /// The caller requested a mutex that it held.
    Own(Link),
    Cycle(Box<Cycle>),
}

impl Last {
    fn links(&self) -> &[Link] {
        match self {
            Self::Unknown => &[],
            Self::Own(link) => std::slice::from_ref(link),
            Self::Cycle(cycle) => cycle.links(),
        }
    }
}

thread_local! {
    static LAST: Cell<Last> = const { Cell::new(Last::Unknown) };
}

/// Keeps the cycle for the calling thread.
pub fn note(mutex: &RawMutex, cycle: Option<Box<Cycle>>) {
    let last = match cycle {
        Some(cycle) => Last::Cycle(cycle),
        None if mutex.is_mine() => Last::Own(Link { thread: mutex.owner(), mutex: std::ptr::from_ref(mutex).addr() }),
        None => Last::Unknown,
    };
    // If the thread's thread-locals are gone, the thread is about to end.
    let _ = LAST.try_with(|kept| kept.set(last));
}

/// Reports the cycle of the calling thread's last EDEADLK from a mutex.
///
/// Writes the first `capacity` links of the cycle to `links`, beginning with the calling thread, and the number of all
/// links to `*length`. `links` may be NULL if `capacity` is 0. A cycle has at most 64 links.
///
/// `*length` is 0 if there was no EDEADLK, or if the cycle is unknown because it passes through another process or
/// through an `unchecked` mutex.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `length` is NULL or misaligned, or `capacity` is not 0 and `links` is NULL or misaligned. Nothing is
///   written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_deadlock_cycle(
    links: Mut<'_, lw_deadlock_link_t>,
    capacity: size_t,
    length: Mut<'_, size_t>,
) -> c_int {
    guarded(|| {
        if (capacity > 0 && !links.is_there()) || !length.is_there() {
            return libc::EINVAL;
        }
        let last = LAST.try_with(Cell::take).unwrap_or_default();
        length.write(last.links().len());
        // SAFETY: the header requires room for `capacity` links, and at most as many are asked for.
        let room = unsafe { links.room(capacity.min(last.links().len())) }.unwrap_or_default();
        for (place, link) in room.iter_mut().zip(last.links()) {
            let mutex = std::ptr::with_exposed_provenance(link.mutex);
            let name = thread_name(link.thread).map(|byte| c_char::from_ne_bytes([byte]));
            place.write(lw_deadlock_link_t { mutex, thread: link.thread, reserved: 0, name });
        }
        let _ = LAST.try_with(|kept| kept.set(last));
        0
    })
}
