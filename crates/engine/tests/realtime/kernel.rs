//! What the kernel does with deadlines, and why `run` refuses locks under SCHED_DEADLINE (docs/edf.md): a thread in a
//! section cannot be raised above the others, and a job cannot be held back without losing its deadline.
//!
//! A kernel in which one of these tests fails may allow more.

use crate::judge::tell;
use crate::machine::require_deadline;
use lockwright_sys::sched;
use std::time::Duration;

/// The absolute deadline of the calling thread, in nanoseconds; `None` if the kernel does not show it.
fn due() -> Option<i64> {
    let text = std::fs::read_to_string("/proc/thread-self/sched").ok()?;
    let line = text.lines().find(|line| line.starts_with("dl.deadline"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}

/// Executes `body` on a thread with 20 ms in each 100 ms.
fn under_deadline(body: fn() -> Option<()>) {
    let thread = std::thread::spawn(move || {
        sched::set_deadline(sched::gettid(), 20_000_000, 100_000_000).expect("is admitted");
        let done = body();
        sched::leave_deadline(sched::gettid()).expect("always allowed");
        done
    });
    if thread.join().expect("no panic").is_none() {
        tell("skipped: this kernel does not show deadlines in /proc");
    }
}

/// A section that began with a very short deadline would be preempted as before.
#[test]
fn a_new_deadline_does_not_hold_for_the_job_that_executes() {
    let Some(_machine) = require_deadline() else { return };
    under_deadline(|| {
        let before = due()?;
        sched::set_deadline(sched::gettid(), 200_000, 1_000_000).expect("is admitted");
        assert_eq!(due()?, before);
        Some(())
    });
}

/// A job that waits for the end of another one's section, before it has executed, is then due later.
#[test]
fn a_job_that_waits_gets_a_later_deadline() {
    let Some(_machine) = require_deadline() else { return };
    under_deadline(|| {
        // The first job of a thread is the one that changed its policy.
        std::thread::sleep(Duration::from_millis(150));
        let before = due()?;
        std::thread::sleep(Duration::from_millis(30));
        let moved = due()? - before;
        assert!(moved >= 30_000_000, "moved by {moved} ns");
        Some(())
    });
}
