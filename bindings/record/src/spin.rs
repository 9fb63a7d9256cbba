//! The functions `pthread_spin_*`.

use crate::entry::entries;
use crate::next::{self, Opaque};
use crate::thread::current;
use libc::{EBUSY, c_int};
use lockwright_record::file::format::{DETAIL_SHIFT, TRIED, class, event};

fn place(site: usize) -> u64 {
    site as u64 | u64::from(class::SPINLOCK) << DETAIL_SHIFT
}

unsafe extern "C-unwind" fn lock(lock: Opaque, site: usize) -> c_int {
    let Some(ring) = current() else {
        // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
        return unsafe { next::pthread_spin_lock(lock) };
    };
    // SAFETY: the program passes an initialised lock to be locked, which stays valid during the call.
    let mut answer = unsafe { next::pthread_spin_trylock(lock) };
    if answer == EBUSY {
        ring.put(event::REQUEST_WRITE, [lock.addr() as u64, place(site)]);
        // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
        answer = unsafe { next::pthread_spin_lock(lock) };
    }
    // A spinlock is never refused once it was busy.
    if answer == 0 {
        ring.put(event::LOCKED_WRITE, [lock.addr() as u64, place(site)]);
    }
    answer
}

unsafe extern "C-unwind" fn trylock(lock: Opaque, site: usize) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    let answer = unsafe { next::pthread_spin_trylock(lock) };
    if answer == 0
        && let Some(ring) = current()
    {
        ring.put(event::LOCKED_WRITE, [lock.addr() as u64, place(site) | TRIED]);
    }
    answer
}

/// As in the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_spin_unlock(lock: Opaque) -> c_int {
    if let Some(ring) = current() {
        ring.put(event::UNLOCK, [lock.addr() as u64]);
    }
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    unsafe { next::pthread_spin_unlock(lock) }
}

unsafe extern "C-unwind" fn init(lock: Opaque, shared: c_int, site: usize) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    let answer = unsafe { next::pthread_spin_init(lock, shared) };
    if answer == 0
        && let Some(ring) = current()
    {
        ring.put(event::INIT, [lock.addr() as u64, place(site), 0]);
    }
    answer
}

entries! {
    "rdx" pthread_spin_init = init;
    "rsi" pthread_spin_lock = lock;
    "rsi" pthread_spin_trylock = trylock;
}
