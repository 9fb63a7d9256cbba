//! Three requests of different priorities wait for one lock. `Batched` serves the most urgent request of the batch
//! first.
//!
//! `cargo run -p lockwright-locks --example priorities`

use lockwright_locks::{Batched, Priority, Relax, Slot, SpinLock};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

static WAITING: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static HAS_CHECKED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Counts the thread at its first unsuccessful check, and yields. A real-time program uses `Spin`.
#[derive(Default)]
struct CountWaiters;

impl Relax for CountWaiters {
    fn relax(&mut self) {
        if !HAS_CHECKED.replace(true) {
            WAITING.fetch_add(1, Ordering::Relaxed);
        }
        thread::yield_now();
    }
}

static SERVED: SpinLock<Batched<4, usize, CountWaiters>, Vec<u32>> = SpinLock::new(Vec::new());

fn main() {
    let slot = Slot::claim().expect("a free slot");
    thread::scope(|scope| {
        let held = SERVED.lock_with((&slot, Priority::new(0)));
        for priority in [1, 3, 2] {
            scope.spawn(move || {
                let slot = Slot::claim().expect("a free slot");
                SERVED.lock_with((&slot, Priority::new(priority))).push(priority);
            });
        }
        while WAITING.load(Ordering::Relaxed) < 3 {
            thread::yield_now();
        }
        drop(held);
    });
    let served = SERVED.lock_with((&slot, Priority::new(0)));
    println!("served in the order {served:?}");
    assert_eq!(*served, [3, 2, 1]);
}
