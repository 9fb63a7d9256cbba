//! No lock, unlock, wait or signal allocates, with contention or without. This is a binary of its own because it counts
//! all allocations.

#[path = "../../sys/tests/support/machine.rs"]
mod machine;
#[path = "mutex/support.rs"]
#[allow(dead_code, reason = "for the other tests of mutexes")]
mod support;

use lockwright::mutex::{Builder, Condvar, FifoMutex, Guard, LockError};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use support::*;

struct Counting;

static ALLOCATED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Whether the thread's allocations count.
    static COUNTS: Cell<bool> = const { Cell::new(false) };
}

// SAFETY: all calls are passed to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if COUNTS.get() {
            // ORDERING: Relaxed: a count.
            ALLOCATED.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the caller meets the contract of `GlobalAlloc::alloc`, which is that of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        if COUNTS.get() {
            ALLOCATED.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the caller meets the contract of `GlobalAlloc::dealloc`, and the place came from the system's
        // allocator.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

unsafe extern "C" {
    fn __libc_calloc(count: usize, size: usize) -> *mut libc::c_void;
}

/// Counts the C library's own allocations, for destructors of thread-locals among others: the library calls this
/// function.
#[unsafe(no_mangle)]
extern "C" fn calloc(count: usize, size: usize) -> *mut libc::c_void {
    if COUNTS.get() {
        ALLOCATED.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: the caller meets the contract of `calloc`, which this function replaces.
    unsafe { __libc_calloc(count, size) }
}

/// Returns the number of allocations of this thread in `body`, including those of first calls.
fn counted<T>(body: impl FnOnce() -> T) -> T {
    COUNTS.set(true);
    let result = body();
    COUNTS.set(false);
    result
}

#[test]
fn no_path_allocates() {
    const ROUNDS: u64 = 150;
    let Some(_stage) = Stage::set() else { return };
    lockwright::statistics::count_mutexes();
    // Mutexes that processes share are not counted.
    let is_private = |kind: &Builder| format!("{kind:?}").contains("shared: false");
    let with_counts = kinds().into_iter().filter(is_private).map(|kind| kind.counted(true));
    for kind in kinds().into_iter().chain(with_counts) {
        for condvar in [Condvar::new(), Condvar::shared()] {
            let mutex = kind.build(0_u64);
            std::thread::scope(|scope| {
                for seed in 1..4 {
                    let (mutex, condvar) = (&mutex, &condvar);
                    scope.spawn(move || {
                        counted(|| {
                            let mut chance = Chance::new(seed);
                            for round in 0..ROUNDS {
                                let mut guard = match chance.below(4) {
                                    0 => match mutex.lock_for(Duration::from_micros(chance.below(50))) {
                                        Ok(guard) => guard,
                                        Err(_) => continue,
                                    },
                                    1 => match mutex.try_lock() {
                                        Ok(guard) => guard,
                                        Err(_) => continue,
                                    },
                                    _ => mutex.lock().expect("the lock succeeds"),
                                };
                                *guard += 1;
                                match round % 5 {
                                    0 => {
                                        let waited = condvar.wait_for(guard, Duration::from_micros(chance.below(200)));
                                        guard = waited.expect("the wait succeeds").0;
                                    }
                                    1 => condvar.signal(),
                                    2 => condvar.broadcast(),
                                    _ => {}
                                }
                                drop(guard);
                                if round % 7 == 0 {
                                    condvar.signal();
                                }
                            }
                        });
                    });
                }
            });
            assert_eq!(ALLOCATED.load(Ordering::Relaxed), 0, "{kind:?}");
        }
        if format!("{kind:?}").contains("robust: true") {
            let mutex = std::sync::Arc::new(kind.build(()));
            for heals in [true, false] {
                let ours = std::sync::Arc::clone(&mutex);
                Player::enter(None, move || std::mem::forget(ours.lock())).end();
                counted(|| match mutex.lock() {
                    Err(LockError::OwnerDied(guard)) if heals => Guard::make_consistent(&guard),
                    Err(LockError::OwnerDied(_)) => {}
                    _ => panic!("an unexpected error"),
                });
            }
            counted(|| assert!(matches!(mutex.lock(), Err(LockError::NotRecoverable))));
            assert_eq!(ALLOCATED.load(Ordering::Relaxed), 0, "{kind:?}");
        }
    }
    let fifo = FifoMutex::<u64>::new(0);
    std::thread::scope(|scope| {
        for seed in 1..4 {
            let fifo = &fifo;
            scope.spawn(move || {
                counted(|| {
                    let mut chance = Chance::new(seed);
                    for _ in 0..ROUNDS {
                        let locked = match chance.below(3) {
                            0 => fifo.lock_for(Duration::from_micros(chance.below(50))),
                            1 => fifo.try_lock(),
                            _ => fifo.lock(),
                        };
                        if let Ok(mut count) = locked {
                            *count += 1;
                        }
                    }
                });
            });
        }
    });
    assert_eq!(ALLOCATED.load(Ordering::Relaxed), 0);
    // The mutant: the report of a deadlock allocates its list.
    let mutex = lockwright::mutex::Mutex::new(());
    let _guard = mutex.lock().expect("the mutex is free");
    counted(|| assert!(matches!(mutex.lock(), Err(LockError::Deadlock { cycle: Some(_) }))));
    assert!(ALLOCATED.load(Ordering::Relaxed) > 0);
}
