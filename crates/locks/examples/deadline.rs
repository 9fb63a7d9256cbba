//! A waiter gives up at a deadline, and gets the lock later.
//!
//! `cargo run -p lockwright-locks --example deadline --features std`

use lockwright_locks::{Batched, Priority, Slot, SpinLock};
use std::time::{Duration, Instant};

static STATE: SpinLock<Batched<2>, &str> = SpinLock::new("initial");

fn main() {
    let (holder, waiter) = (Slot::claim().expect("a free slot"), Slot::claim().expect("a free slot"));
    let request = (&waiter, Priority::new(1));
    let mut held = STATE.lock_with((&holder, Priority::new(0)));
    let deadline = Instant::now() + Duration::from_millis(10);
    let is_too_late = STATE.lock_until(request, deadline).is_none();
    println!("gave up: {is_too_late}");
    assert!(is_too_late);
    *held = "written";
    drop(held);
    let state = STATE.lock_with(request);
    println!("the state is {:?}", *state);
    assert_eq!(*state, "written");
}
