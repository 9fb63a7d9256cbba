//! Interruptible locks: who takes the lock, who does not, and that it is given back.

use crate::support::{Gate, Stage, level, tid};
use lockwright::ics::{InterruptibleLock, InterruptibleLockError, Stop, Var, Word};
use lockwright::locks::{SpinLock, Ticket};
use lockwright::mutex::{Mutex, Protocol};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const COUNT: Var<u64> = Var::new(0);
type Shared<L = Mutex<()>> = InterruptibleLock<[Word; 1], 3, 1, L>;

fn count<L: lockwright::ics::Gate>(shared: &Shared<L>) -> u64 {
    shared.query(|view| view.read(COUNT)).expect("nothing stops it")
}

/// An urgent thread comes into a section of one below the cutoff, which has the ceiling; it does not wait.
#[test]
fn urgent_threads_interrupt() {
    let Some(stage) = Stage::set() else { return };
    let shared: Arc<Shared> = Arc::new(InterruptibleLock::builder(50).build([Word::new(0)]));
    let (inside, goes_on) = (Gate::default(), Gate::default());
    let low = {
        let (shared, inside, goes_on) = (Arc::clone(&shared), inside.clone(), goes_on.clone());
        stage.thread(10, move || {
            let mut thread = shared.thread().expect("the shared slot");
            assert!(thread.takes_lock());
            let attempts = AtomicU64::new(0);
            thread
                .update(|section| {
                    let value = section.read(COUNT)?;
                    if attempts.fetch_add(1, Ordering::Relaxed) == 0 {
                        assert_eq!(level(tid()), 49, "the ceiling");
                        inside.open();
                        goes_on.pass();
                    }
                    section.write(COUNT, value + 1)
                })
                .expect("nothing stops it");
            assert_eq!(level(tid()), 10);
            attempts.into_inner()
        })
    };
    inside.pass();
    let high = {
        let shared = Arc::clone(&shared);
        stage.thread(60, move || {
            let mut thread = shared.thread().expect("a slot");
            assert!(!thread.takes_lock());
            thread
                .update(|section| {
                    let value = section.read(COUNT)?;
                    section.write(COUNT, value + 1)
                })
                .expect("nothing stops it");
            thread.stats()
        })
    };
    let stats = high.end();
    assert_eq!((stats.entries, stats.commits), (1, 1), "at the first attempt");
    goes_on.open();
    assert_eq!(low.end(), 2);
    assert_eq!(count(&shared), 2);
}

fn gives_back<L: lockwright::ics::Gate + Sync>(shared: &Shared<L>) {
    let mut thread = shared.thread_at(0).expect("the shared slot");
    let cancelled: Result<(), _> = thread.update(|section| {
        section.write(COUNT, 9)?;
        Err(Stop::Cancelled)
    });
    assert_eq!(cancelled, Err(InterruptibleLockError::Stop(Stop::Cancelled)));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        thread.update(|section| -> Result<(), Stop> {
            section.write(COUNT, 9)?;
            panic!("in the middle")
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(count(shared), 0);
    // Another thread gets in.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut thread = shared.thread_at(0).expect("the shared slot");
            thread.update(|section| section.write(COUNT, 1)).expect("the lock is free");
        });
    });
    assert_eq!(count(shared), 1);
}

#[test]
fn the_lock_is_given_back_whatever_happens() {
    let inherits = Mutex::builder().protocol(Protocol::Inherit).build(());
    gives_back(&InterruptibleLock::builder(50).lock(inherits).build([Word::new(0)]));
    gives_back(&InterruptibleLock::builder(50).lock(SpinLock::<Ticket, ()>::new(())).build([Word::new(0)]));
    let Some(_stage) = Stage::set() else { return };
    gives_back(&InterruptibleLock::builder(50).build([Word::new(0)]));
}

/// Those below share a slot: of three, two are left.
#[test]
fn those_below_share_a_slot() {
    let shared: Shared = InterruptibleLock::builder(50).build([Word::new(0)]);
    let below: Vec<_> = (0..10).map(|_| shared.thread_at(49).expect("the shared slot")).collect();
    assert!(below.iter().all(lockwright::ics::Thread::takes_lock));
    let above = [shared.thread_at(50), shared.thread_at(99)];
    assert!(above.iter().all(|thread| thread.as_ref().is_some_and(|thread| !thread.takes_lock())));
    assert!(shared.thread_at(50).is_none());
}

/// A cutoff above all levels: the ceiling is the highest one.
#[test]
fn above_all_levels_the_ceiling_is_the_highest() {
    let Some(stage) = Stage::set() else { return };
    for cutoff in [100, 101, u8::MAX] {
        let shared: Shared = InterruptibleLock::builder(cutoff).build([Word::new(0)]);
        let inside = stage.thread(10, move || {
            let mut thread = shared.thread().expect("the shared slot");
            assert!(thread.takes_lock());
            thread.update(|_| Ok(level(tid()))).expect("nothing stops it")
        });
        assert_eq!(inside.end(), 99, "cutoff {cutoff}");
    }
}

/// A thread of SCHED_DEADLINE is more urgent than all levels, and could not take a mutex with a ceiling.
#[test]
fn a_deadline_thread_takes_no_lock() {
    let Some(_stage) = Stage::set() else { return };
    let shared: Shared = InterruptibleLock::builder(50).build([Word::new(0)]);
    let done = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if !lives_by_deadline() {
                println!("skipped: no SCHED_DEADLINE for this thread here");
                return None;
            }
            let mut thread = shared.thread().expect("a slot");
            Some((thread.takes_lock(), thread.update(|section| section.write(COUNT, 1))))
        });
        thread.join().expect("it ends")
    });
    assert!(matches!(done, None | Some((false, Ok(())))), "{done:?}");
    assert_eq!(count(&shared), u64::from(done.is_some()));
}

/// Makes the calling thread one of SCHED_DEADLINE, if the system lets it.
fn lives_by_deadline() -> bool {
    // `struct sched_attr`: size, policy, flags (64 bits), nice, priority, runtime, deadline, period (64 bits each).
    let (size, policy) = (48, libc::SCHED_DEADLINE as u32);
    let words: [u32; 12] = [size, policy, 0, 0, 0, 0, 5_000_000, 0, 50_000_000, 0, 50_000_000, 0];
    // SAFETY: the kernel reads as many bytes as the first word says.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, words.as_ptr(), 0) == 0 }
}
