//! Non-blocking objects between processes, through the public interface.

#[path = "../../sys/tests/support/machine.rs"]
#[allow(dead_code, reason = "for the tests of mutexes")]
mod machine;
#[path = "mutex/support.rs"]
#[allow(dead_code, reason = "for the tests of mutexes")]
mod support;

use lockwright::locks::Slot;
use lockwright::objects::{Buffer, LockFreeBuffer, LockFreeQueue, Queue, WaitFreeBuffer, WaitFreeHeap, WaitFreeQueue};
use lockwright::objects::{LockFreeHeap, PriorityQueue};
use std::time::Duration;
use support::{Child, Shared};

const SLOTS: usize = 8;
const COUNT: u64 = 20_000;

/// The slot of a process of a test.
fn slot(number: usize) -> Slot {
    // SAFETY: each process has its own number, and no other object is used.
    unsafe { Slot::new(number) }
}

fn until<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(value) = attempt() {
            return value;
        }
        std::thread::yield_now();
    }
}

/// The values of two children arrive once each, and those of each child in their order.
fn values_arrive_in_order(queue: impl Queue<u64> + Sync + 'static) {
    let queue = Shared::new(queue);
    let children = [1, 2].map(|child| {
        Child::start(|| {
            let slot = slot(child);
            (0..COUNT).for_each(|value| until(|| queue.0.push(&slot, (child as u64) << 32 | value).ok()));
            true
        })
    });
    let (slot, mut next) = (slot(0), [0; 3]);
    for _ in 0..2 * COUNT {
        let value = until(|| queue.0.pop(&slot));
        let next = &mut next[(value >> 32) as usize];
        assert_eq!(value & 0xffff_ffff, *next);
        *next += 1;
    }
    assert_eq!((queue.0.pop(&slot), next), (None, [0, COUNT, COUNT]));
    assert!(children.iter().all(Child::end));
}

#[test]
fn queues_between_processes_lose_nothing() {
    values_arrive_in_order(LockFreeQueue::<u64, 100, SLOTS>::new());
    values_arrive_in_order(WaitFreeQueue::<u64, 8, SLOTS>::new());
}

/// A process that is killed in any operation harms nobody. Each child has a slot of its own.
fn survives_kills(buffer: impl Buffer<u64, 10> + Sync + 'static, heap: impl PriorityQueue<u64> + Sync + 'static) {
    let objects = Shared::new((buffer, heap));
    let (buffer, heap) = objects.0;
    let mine = slot(0);
    for number in 1..SLOTS {
        let child = Child::start(|| {
            let slot = slot(number);
            loop {
                buffer.write(&slot, [number as u64; 10]);
                let _ = heap.insert(&slot, number as u64);
                heap.extract_max(&slot);
            }
        });
        std::thread::sleep(Duration::from_millis(5));
        child.kill();
        assert_ne!(child.status(), 0);
        let seen = buffer.read(&mine);
        assert!(seen.iter().all(|word| *word == seen[0] && *word <= number as u64), "{seen:?}");
        while let Some(value) = heap.extract_max(&mine) {
            assert!((1..=number as u64).contains(&value));
        }
        // An extraction or insertion that a child has announced may be performed now.
        let arrives = (0..2 * SLOTS).any(|_| heap.insert(&mine, 1).is_ok() && heap.extract_max(&mine) == Some(1));
        assert!(arrives);
    }
}

#[test]
fn killed_processes_harm_nobody() {
    survives_kills(LockFreeBuffer::<u64, 10, SLOTS>::new(), LockFreeHeap::<u64, 8, SLOTS>::new());
    survives_kills(WaitFreeBuffer::<u64, 10, SLOTS>::new(), WaitFreeHeap::<u64, 8, SLOTS>::new());
}
