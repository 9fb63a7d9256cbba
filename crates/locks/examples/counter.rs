//! Threads increment a counter behind a FIFO lock that needs no arguments.
//!
//! `cargo run -p lockwright-locks --example counter`

use lockwright_locks::{SpinLock, Ticket};
use std::thread;

static COUNT: SpinLock<Ticket, u64> = SpinLock::new(0);

fn main() {
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..1_000 {
                    *COUNT.lock() += 1;
                }
            });
        }
    });
    let count = *COUNT.lock();
    println!("{count} increments");
    assert_eq!(count, 2_000);
}
