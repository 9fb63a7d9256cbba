//! The ring of the calling thread, and where threads begin and end.

use crate::kernel;
use crate::ring::{self, Ring};
use crate::stage::{self, Stage};
use libc::c_void;
use lockwright_record::file::format::event;
use std::arch::{asm, global_asm};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Stands in place of a ring in a thread that is not recorded.
const OFF: usize = 1;

// A variable of each thread at a fixed distance from its pointer. Rust's own have to be looked up by a call, which may
// allocate.
global_asm!(
    ".section .tbss.lockwright_ring, \"awT\", @nobits",
    ".hidden lockwright_ring",
    ".globl lockwright_ring",
    ".type lockwright_ring, @object",
    ".size lockwright_ring, 8",
    ".balign 8",
    "lockwright_ring:",
    ".zero 8",
    ".text",
);

#[inline(always)]
fn get() -> usize {
    let ring;
    // SAFETY: the variable is the thread's own, exists as long as the thread, and is only read.
    unsafe {
        asm!(
            "mov {ring}, qword ptr [rip + lockwright_ring@GOTTPOFF]",
            "mov {ring}, qword ptr fs:[{ring}]",
            ring = out(reg) ring,
            options(nostack, preserves_flags, readonly),
        );
    }
    ring
}

fn set(ring: usize) {
    // SAFETY: the variable is the thread's own, and exists as long as the thread.
    unsafe {
        asm!(
            "mov {at}, qword ptr [rip + lockwright_ring@GOTTPOFF]",
            "mov qword ptr fs:[{at}], {ring}",
            at = out(reg) _,
            ring = in(reg) ring,
            options(nostack, preserves_flags),
        );
    }
}

/// Returns the ring of the calling thread, or `None` if it is not recorded.
#[inline(always)]
pub(crate) fn current() -> Option<&'static Ring> {
    match get() {
        0 => begin(),
        OFF => None,
        // SAFETY: `begin` stored the address of this thread's ring, and rings that were stored are never unmapped.
        ring => Some(unsafe { &*(ring as *const Ring) }),
    }
}

/// The calling thread is not recorded from now on.
pub(crate) fn ignore() {
    set(OFF);
}

/// The calling thread may be recorded again.
pub(crate) fn heed() {
    set(0);
}

/// The number of the calling thread in the kernel.
pub(crate) fn id() -> u32 {
    // SAFETY: the call takes nothing and cannot fail. Thread ids are positive.
    unsafe { libc::gettid() as u32 }
}

/// The first event of a thread. Keeps the error number.
#[cold]
fn begin() -> Option<&'static Ring> {
    let bytes = match stage::get() {
        Stage::Before => return None,
        Stage::Records { ring_bytes } => ring_bytes,
        Stage::Ended => {
            ignore();
            return None;
        }
    };
    // SAFETY: the C library returns the address of the calling thread's own error number, and no other reference to it
    // exists.
    let error = unsafe { &mut *libc::__errno_location() };
    let before = *error;
    // A signal handler that comes here is not recorded.
    ignore();
    let ring = ring::claim(bytes);
    match ring {
        None => {
            // ORDERING: Relaxed: a counter.
            ring::WITHOUT_RING.fetch_add(1, Ordering::Relaxed);
        }
        Some(ring) => {
            let id = id();
            // ORDERING: Relaxed: the first event releases it.
            ring.id.store(id, Ordering::Relaxed);
            ring.put(event::START, [u64::from(id)]);
            kernel::put_policy(ring, id);
            kernel::put_cpus(ring, id);
            let key = KEY.load(Ordering::Relaxed);
            // SAFETY: `warm_up` made the key before the recording began, and no code follows the value as a pointer.
            unsafe { libc::pthread_setspecific(key, std::ptr::without_provenance(FIRST_ROUND)) };
            set(std::ptr::from_ref(ring) as usize);
        }
    }
    *error = before;
    ring
}

/// The key whose destructor ends a thread.
static KEY: AtomicU32 = AtomicU32::new(0);
static HAS_KEY: AtomicBool = AtomicBool::new(false);

/// The value of the key when the thread has not begun to end.
const FIRST_ROUND: usize = 1;

/// Makes the key. Early, because the C library allocates memory for the values of later keys, in the first event of
/// each thread, and the allocator may hold a mutex then.
pub(crate) fn warm_up() {
    let mut key = 0;
    // SAFETY: `key` is valid for writing, and the destructor is a function of this library, which is never unloaded.
    let made = unsafe { libc::pthread_key_create(&raw mut key, Some(end)) } == 0;
    // ORDERING: Relaxed: the library is loaded by one thread, before others use it.
    KEY.store(key, Ordering::Relaxed);
    HAS_KEY.store(made, Ordering::Relaxed);
}

/// Whether threads can be recorded.
pub(crate) fn has_key() -> bool {
    HAS_KEY.load(Ordering::Relaxed)
}

/// Ends the calling thread in the last round of destructors, because others may lock. `round` is that round.
extern "C" fn end(round: *mut c_void) {
    /// `PTHREAD_DESTRUCTOR_ITERATIONS`.
    const ROUNDS: usize = 4;
    let round = round.addr();
    if round < ROUNDS {
        // SAFETY: the destructor of the key is called, so the key exists, and no code follows the value as a pointer.
        unsafe { libc::pthread_setspecific(KEY.load(Ordering::Relaxed), std::ptr::without_provenance(round + 1)) };
        return;
    }
    let ring = get();
    if ring <= OFF {
        return;
    }
    // SAFETY: `begin` stored the address of this thread's ring, and rings that were stored are never unmapped.
    let ring = unsafe { &*(ring as *const Ring) };
    ignore();
    let mut name = [0_u8; 16];
    // SAFETY: `name` has the 16 bytes that the kernel writes.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    for (half, bytes) in ring.name.iter().zip(name.chunks_exact(8)) {
        half.store(u64::from_le_bytes(bytes.try_into().unwrap_or_default()), Ordering::Relaxed);
    }
    ring.put(event::END, []);
    ring.end();
}
