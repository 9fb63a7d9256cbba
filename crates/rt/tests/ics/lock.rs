//! Interruptible locks: which threads lock and which do not, and that each lock is unlocked.

use crate::support::{Gate, Stage, level, tid};
use lockwright::ics::{InterruptibleLock, InterruptibleLockError, Stop, Var, Word};
use lockwright::locks::{SpinLock, Ticket};
use lockwright::mutex::{Mutex, MutexProtocol};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const COUNT: Var<u64> = Var::new(0);
type Shared<L = Mutex<()>> = InterruptibleLock<[Word; 1], 3, 1, L>;

fn count<L: lockwright::ics::Gate>(shared: &Shared<L>) -> u64 {
    shared.query(|view| view.read(COUNT)).expect("the section does not stop")
}

/// An urgent thread enters during a section of a thread below the cutoff, which has the ceiling. It does not wait.
#[test]
fn urgent_threads_interrupt_sections() {
    let Some(stage) = Stage::set() else { return };
    let shared: Arc<Shared> = Arc::new(InterruptibleLock::builder(50).build([Word::new(0)]));
    let (inside, goes_on) = (Gate::default(), Gate::default());
    let low = {
        let (shared, inside, goes_on) = (Arc::clone(&shared), inside.clone(), goes_on.clone());
        stage.thread(10, move || {
            let mut thread = shared.thread().expect("the shared slot is available");
            assert!(thread.takes_lock());
            let attempts = AtomicU64::new(0);
            thread
                .update(|section| {
                    let value = section.read(COUNT)?;
                    if attempts.fetch_add(1, Ordering::Relaxed) == 0 {
                        assert_eq!(level(tid()), 49, "the level is the ceiling");
                        inside.open();
                        goes_on.pass();
                    }
                    section.write(COUNT, value + 1)
                })
                .expect("the section does not stop");
            assert_eq!(level(tid()), 10);
            attempts.into_inner()
        })
    };
    inside.pass();
    let high = {
        let shared = Arc::clone(&shared);
        stage.thread(60, move || {
            let mut thread = shared.thread().expect("a slot is free");
            assert!(!thread.takes_lock());
            thread
                .update(|section| {
                    let value = section.read(COUNT)?;
                    section.write(COUNT, value + 1)
                })
                .expect("the section does not stop");
            thread.stats()
        })
    };
    let stats = high.end();
    assert_eq!((stats.entries, stats.commits), (1, 1), "the urgent section commits at its first attempt");
    goes_on.open();
    assert_eq!(low.end(), 2);
    assert_eq!(count(&shared), 2);
}

fn gives_back<L: lockwright::ics::Gate + Sync>(shared: &Shared<L>) {
    let mut thread = shared.thread_at(0).expect("the shared slot is available");
    let cancelled: Result<(), _> = thread.update(|section| {
        section.write(COUNT, 9)?;
        Err(Stop::Cancelled)
    });
    assert_eq!(cancelled, Err(InterruptibleLockError::Stop(Stop::Cancelled)));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        thread.update(|section| -> Result<(), Stop> {
            section.write(COUNT, 9)?;
            panic!("a deliberate panic inside a section")
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(count(shared), 0);
    // The urgent thread executes its section here.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut thread = shared.thread_at(0).expect("the shared slot is available");
            thread.update(|section| section.write(COUNT, 1)).expect("the lock is free");
        });
    });
    assert_eq!(count(shared), 1);
}

#[test]
fn the_lock_is_unlocked_in_any_case() {
    let inherits = Mutex::builder().protocol(MutexProtocol::Inherit).build(());
    gives_back(&InterruptibleLock::builder(50).lock(inherits).build([Word::new(0)]));
    gives_back(&InterruptibleLock::builder(50).lock(SpinLock::<Ticket, ()>::new(())).build([Word::new(0)]));
    let Some(_stage) = Stage::set() else { return };
    gives_back(&InterruptibleLock::builder(50).build([Word::new(0)]));
}

/// The threads below share a slot, so that two of three are left.
#[test]
fn threads_below_the_cutoff_share_a_slot() {
    let shared: Shared = InterruptibleLock::builder(50).build([Word::new(0)]);
    let below: Vec<_> = (0..10).map(|_| shared.thread_at(49).expect("the shared slot is available")).collect();
    assert!(below.iter().all(lockwright::ics::Thread::takes_lock));
    let above = [shared.thread_at(50), shared.thread_at(99)];
    assert!(above.iter().all(|thread| thread.as_ref().is_some_and(|thread| !thread.takes_lock())));
    assert!(shared.thread_at(50).is_none());
}

/// For a cutoff above all levels, the ceiling is the highest level.
#[test]
fn a_cutoff_above_all_levels_has_the_highest_ceiling() {
    let Some(stage) = Stage::set() else { return };
    for cutoff in [100, 101, u8::MAX] {
        let shared: Shared = InterruptibleLock::builder(cutoff).build([Word::new(0)]);
        let inside = stage.thread(10, move || {
            let mut thread = shared.thread().expect("the shared slot is available");
            assert!(thread.takes_lock());
            thread.update(|_| Ok(level(tid()))).expect("the section does not stop")
        });
        assert_eq!(inside.end(), 99, "cutoff {cutoff}");
    }
}

/// A thread of SCHED_DEADLINE is above all levels, and could not lock a mutex with a ceiling.
#[test]
fn a_deadline_thread_does_not_lock() {
    let Some(_stage) = Stage::set() else { return };
    let shared: Shared = InterruptibleLock::builder(50).build([Word::new(0)]);
    let done = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if !lives_by_deadline() {
                let _ = writeln!(std::io::stderr(), "skipped: no SCHED_DEADLINE for this thread here");
                return None;
            }
            let mut thread = shared.thread().expect("a slot is free");
            Some((thread.takes_lock(), thread.update(|section| section.write(COUNT, 1))))
        });
        thread.join().expect("the thread does not panic")
    });
    assert!(matches!(done, None | Some((false, Ok(())))), "{done:?}");
    assert_eq!(count(&shared), u64::from(done.is_some()));
}

/// Puts the calling thread under SCHED_DEADLINE. Returns whether the system allows it.
fn lives_by_deadline() -> bool {
    // `struct sched_attr`: size, policy, flags (64 bits), nice, priority, runtime, deadline, period (64 bits each).
    let (size, policy) = (48, libc::SCHED_DEADLINE as u32);
    let words: [u32; 12] = [size, policy, 0, 0, 0, 0, 5_000_000, 0, 50_000_000, 0, 50_000_000, 0];
    // SAFETY: the kernel reads the number of bytes in the first word.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, words.as_ptr(), 0) == 0 }
}
