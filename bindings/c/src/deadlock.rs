//! The last deadlock of each thread.

use crate::argument;
use crate::errno::guarded;
use libc::{c_int, c_void, size_t};
use lockwright::mutex::{Cycle, Link, RawMutex};
use std::cell::Cell;

/// A thread that waits, and the mutex it waits for, which the next thread of the cycle has; the last one waits for the first.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct lw_deadlock_link_t {
    /// The mutex: the address of a `lw_mutex_t`, or of another one of Lockwright's in this process.
    pub mutex: *const c_void,
    /// The thread, as the kernel numbers it (`gettid`).
    pub thread: u32,
    /// 0.
    pub reserved: u32,
}

/// What EDEADLK was last about.
#[derive(Default)]
enum Last {
    /// Nothing, or not known.
    #[default]
    Unknown,
    /// The caller asked for what it had.
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

/// Keeps it for the calling thread.
pub fn note(mutex: &RawMutex, cycle: Option<Box<Cycle>>) {
    let last = match cycle {
        Some(cycle) => Last::Cycle(cycle),
        None if mutex.is_mine() => Last::Own(Link { thread: mutex.owner(), mutex: std::ptr::from_ref(mutex).addr() }),
        None => Last::Unknown,
    };
    // A thread whose thread-locals are gone is about to end.
    let _ = LAST.try_with(|kept| kept.set(last));
}

/// Says along which cycle the calling thread would have waited for itself when it last got EDEADLK from a mutex: from the caller on, at most
/// `capacity` links into `links` (NULL where `capacity` is 0), and how many there are in all into `*length`. 64 links are always enough. There
/// are none where the cycle is not known: it passes through another process, or through a mutex that does not look for deadlocks.
///
/// EINVAL: `length` is NULL, or `links` is although there is room in it; or one of them is misaligned. Then nothing is written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_deadlock_cycle(
    links: *mut lw_deadlock_link_t,
    capacity: size_t,
    length: *mut size_t,
) -> c_int {
    guarded(|| {
        if capacity > 0 && (links.is_null() || !links.is_aligned()) {
            return libc::EINVAL;
        }
        let last = LAST.try_with(Cell::take).unwrap_or_default();
        // SAFETY: the header's head asks for it.
        let is_told = unsafe { argument::write(length, last.links().len()) };
        if is_told {
            for (index, link) in last.links().iter().take(capacity).enumerate() {
                let mutex = std::ptr::with_exposed_provenance(link.mutex);
                // SAFETY: within `capacity`, which the header's head asks to be there.
                unsafe { links.add(index).write(lw_deadlock_link_t { mutex, thread: link.thread, reserved: 0 }) };
            }
        }
        let _ = LAST.try_with(|kept| kept.set(last));
        if is_told { 0 } else { libc::EINVAL }
    })
}
