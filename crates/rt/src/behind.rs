//! Searches beside tests on real threads: they use only what these leave of the processors.

use lockwright_sys::sched::{self, Scheduling, Tid};

/// The calling thread, and those that it starts, execute where no other thread wants the processor, until this value is
/// dropped.
pub(crate) struct Behind {
    thread: Tid,
    before: Scheduling,
}

/// Puts the calling thread behind all others.
pub(crate) fn behind() -> Behind {
    let thread = sched::gettid();
    let before = sched::scheduling(thread).expect("the thread exists");
    sched::set_scheduling(thread, before.under(libc::SCHED_IDLE, 0)).expect("every thread may use SCHED_IDLE");
    Behind { thread, before }
}

impl Drop for Behind {
    fn drop(&mut self) {
        // Without permission to return, the tests that follow on this thread are slower.
        let _ = sched::set_scheduling(self.thread, self.before);
    }
}

#[test]
fn a_search_is_behind_until_it_ends() {
    let policy = || sched::scheduling(sched::gettid()).expect("the thread exists").policy();
    let before = policy();
    let search = behind();
    assert_eq!(policy(), libc::SCHED_IDLE);
    drop(search);
    assert_eq!(policy(), before);
}
