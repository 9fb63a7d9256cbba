//! The checks that every object passes, and mutants that must fail them.
//!
//! Each check records histories of operations. A history must be linearizable with respect to a sequential object, and
//! no operation may take more steps than its bound.
//!
//! | file | histories |
//! |---|---|
//! | `history` | the record, and the search for a linearization |
//! | `interrupted` | operations interrupted before each of their steps, or killed there |
//! | `order` | those that only weak memory allows, under Miri |
//! | `threads` | real threads, loom (all interleavings of two threads) and shuttle (samples of those of four) |
//! | `subjects` | the objects |

#![allow(unused)] // No way to run the checks uses everything.

mod history;
#[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
mod interrupted;
#[cfg(miri)]
mod order;
mod subjects;
mod threads;

/// Whether a check finds a history that is not linearizable, or an operation above its bound.
pub(crate) fn fails(check: impl FnOnce()) -> bool {
    let Err(why) = std::panic::catch_unwind(core::panic::AssertUnwindSafe(check)) else { return false };
    let text = why.downcast_ref::<std::string::String>().map(std::string::String::as_str);
    let text = text.or_else(|| why.downcast_ref::<&str>().copied()).unwrap_or_default();
    let expected = ["not linearizable", "steps", "an operation never ends", "others have performed"];
    assert!(expected.iter().any(|reason| text.contains(reason)), "the check fails for another reason: {text}");
    true
}

/// A slot for a test.
pub(crate) fn slot(index: usize) -> lockwright_locks::Slot {
    // SAFETY: no other participant of the test's object has this number at the same time.
    #[allow(unsafe_code)]
    unsafe {
        lockwright_locks::Slot::new(index)
    }
}
