//! What the kernel does with deadlines, and why `run` refuses locks under SCHED_DEADLINE (docs/edf.md): a thread in a
//! section cannot be raised above the others, a job cannot be held back without losing its deadline, and the owner of a
//! lock does not get the deadline of a job that waits.
//!
//! A kernel in which one of these tests fails may allow more.

use crate::judge::tell;
use crate::machine::require_deadline;
use lockwright::mutex::FifoMutex;
use lockwright_sys::sched;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The absolute deadline of the calling thread, in nanoseconds; `None` if the kernel does not show it.
fn due() -> Option<i64> {
    due_of(sched::gettid())
}

fn due_of(tid: sched::Tid) -> Option<i64> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{}/sched", tid.0)).ok()?;
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

/// The owner of the lock of `fmlp_long` keeps its own deadline while a job with an earlier one waits for it in the
/// kernel.
#[test]
fn a_job_that_waits_does_not_lend_its_deadline() {
    let Some(_machine) = require_deadline() else { return };
    static LOCK: FifoMutex<()> = FifoMutex::new(());
    /// The thread that waits, from the moment at which the lock is locked.
    static OTHER: AtomicU32 = AtomicU32::new(0);
    static LOCKED: AtomicBool = AtomicBool::new(false);
    let waiter = std::thread::spawn(|| {
        sched::set_deadline(sched::gettid(), 1_000_000, 10_000_000).expect("is admitted");
        OTHER.store(sched::gettid().0, Ordering::Release);
        while !LOCKED.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1));
        }
        LOCKED.store(false, Ordering::Release);
        drop(LOCK.lock().expect("the owner unlocks it"));
        sched::leave_deadline(sched::gettid()).expect("always allowed");
    });
    while OTHER.load(Ordering::Acquire) == 0 && !waiter.is_finished() {
        std::thread::sleep(Duration::from_millis(1));
    }
    under_deadline(|| {
        let guard = LOCK.lock().expect("it is free");
        LOCKED.store(true, Ordering::Release);
        // The owner does not sleep, because that would move its deadline.
        let (before, begin) = (due()?, Instant::now());
        let other = sched::Tid(OTHER.load(Ordering::Acquire));
        let waits = || !LOCKED.load(Ordering::Acquire) && is_asleep(other);
        while begin.elapsed() < Duration::from_millis(15) && !waits() {}
        let seen = waits().then(|| (due(), due_of(other)));
        drop(guard);
        let Some((own, other)) = seen else {
            tell("not judged: the other thread did not wait within 15 ms");
            return Some(());
        };
        assert_eq!(own?, before);
        assert!(other? < before, "the job that waits is due at {other:?}, the owner at {before}");
        Some(())
    });
    LOCKED.store(true, Ordering::Release);
    waiter.join().expect("no panic");
}

/// Whether a thread of this process sleeps.
fn is_asleep(tid: sched::Tid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{}/stat", tid.0)).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, fields)| fields.trim_start().starts_with('S'))
}
