//! Functions that a child process calls after `fork`, to forget the state of its parent.
//!
//! A constructor registers the handler of `fork`, before the program's threads exist. So no lock has to register it,
//! and no thread waits for another one that does: the handler runs in every child, and an urgent thread's first lock
//! does not depend on a less urgent thread.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

/// The most functions that [`in_child`] accepts.
const HANDLERS_MAX: usize = 8;

/// The functions that a child calls, without gaps.
static HANDLERS: [AtomicPtr<()>; HANDLERS_MAX] = [const { AtomicPtr::new(ptr::null_mut()) }; HANDLERS_MAX];

/// How many forks lie between this process and the first one that used this library. A fork may count twice.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Returns a number that is another one in each child of a `fork`, however many forks came before.
#[must_use]
pub fn generation() -> u32 {
    // ORDERING: Relaxed: it changes only while the process has one thread.
    GENERATION.load(Ordering::Relaxed)
}

/// Calls `handler` in every child of a `fork` from now on, in the only thread that the child has. A handler that is
/// passed again is called once. Children made by other system calls (`clone`, `vfork`) call nothing.
///
/// # Panics
/// If more than 8 different handlers are passed.
///
/// # Bound
/// 8 atomic operations. No thread waits.
pub fn in_child(handler: extern "C" fn()) {
    register();
    let handler = handler as *mut ();
    // ORDERING: Relaxed: a slot is filled once.
    if HANDLERS.iter().any(|slot| slot.load(Ordering::Relaxed) == handler) {
        return;
    }
    let is_in = |slot: &AtomicPtr<()>| {
        // ORDERING: Release pairs with the Acquire in `forget`.
        match slot.compare_exchange(ptr::null_mut(), handler, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => true,
            Err(other) => other == handler,
        }
    };
    assert!(HANDLERS.iter().any(is_in), "there are more than {HANDLERS_MAX} handlers of fork");
}

/// Calls the handlers in a child process.
extern "C" fn forget() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    for slot in &HANDLERS {
        // ORDERING: as in `in_child`.
        let handler = slot.load(Ordering::Acquire);
        if handler.is_null() {
            return;
        }
        // SAFETY: only `in_child` stores here, and it stores functions of this type.
        unsafe { std::mem::transmute::<*mut (), extern "C" fn()>(handler)() };
    }
}

/// Registers [`forget`] with the C library. Two threads may both do so if no constructor was called; the handlers then
/// execute twice, and change nothing the second time.
///
/// If the C library has no memory for it, children call nothing.
extern "C" fn register() {
    static DONE: AtomicBool = AtomicBool::new(false);
    // ORDERING: Relaxed: a second registration is harmless.
    if !DONE.load(Ordering::Relaxed) {
        // SAFETY: the handler takes nothing, cannot unwind out of `extern "C"`, and lives as long as the process.
        unsafe { libc::pthread_atfork(None, None, Some(forget)) };
        DONE.store(true, Ordering::Relaxed);
    }
}

// SAFETY: the loader calls the functions of this section, with arguments that `register` ignores.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = register;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::holds_in_child;
    use std::sync::atomic::AtomicU32;

    static CALLED: AtomicU32 = AtomicU32::new(0);

    extern "C" fn count() {
        CALLED.fetch_add(1, Ordering::Relaxed);
    }

    #[test]
    fn a_child_calls_each_handler_once() {
        in_child(count);
        in_child(count);
        let before = generation();
        assert!(holds_in_child(|| CALLED.load(Ordering::Relaxed) == 1 && generation() != before));
        assert_eq!(generation(), before);
        assert_eq!(CALLED.load(Ordering::Relaxed), 0, "the parent calls none");
    }
}
