//! Objects of many blocks, against collections of the standard library.

use lockwright_locks::{Batched, Slot, Ticket};
use lockwright_objects::{
    Full, LockFreeHeap, LockedHeap, LockedQueue, PriorityQueue, Queue, Value, WaitFreeHeap, WaitFreeQueue,
};
use std::collections::{BinaryHeap, VecDeque};

/// Numbers in an order without a pattern.
fn scattered(count: u64) -> impl Iterator<Item = u64> {
    (1..=count).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20)
}

fn fills_and_empties(heap: &impl PriorityQueue<u64>, capacity: usize) {
    let slot = Slot::claim().expect("a slot");
    let mut expected = BinaryHeap::new();
    for value in scattered(capacity as u64) {
        assert_eq!(heap.insert(&slot, value), Ok(()));
        expected.push(value);
        if value % 3 == 0 {
            assert_eq!(heap.extract_max(&slot), expected.pop());
        }
    }
    while expected.len() < capacity {
        assert_eq!(heap.insert(&slot, 7), Ok(()));
        expected.push(7);
    }
    assert_eq!(heap.insert(&slot, 8), Err(Full));
    while let Some(value) = expected.pop() {
        assert_eq!(heap.extract_max(&slot), Some(value));
    }
    assert_eq!(heap.extract_max(&slot), None);
}

#[test]
fn heaps_of_a_thousand_values() {
    static LOCK_FREE: LockFreeHeap<u64, 17, 64> = LockFreeHeap::new();
    static WAIT_FREE: WaitFreeHeap<u64, 17, 64> = WaitFreeHeap::new();
    assert_eq!(LockFreeHeap::<u64, 17, 64>::CAPACITY, 1020);
    fills_and_empties(&LOCK_FREE, 1020);
    fills_and_empties(&WAIT_FREE, 1020);
    static LOCKED: LockedHeap<Batched<64>, u64, 1023> = LockedHeap::new();
    fills_and_empties(&LOCKED, 1023);
}

#[test]
fn the_largest_heap_has_spare_blocks_for_every_path() {
    static HEAP: LockFreeHeap<u64, 1024, 4> = LockFreeHeap::new();
    assert_eq!(LockFreeHeap::<u64, 1024, 4>::CAPACITY, 61_440);
    let slot = Slot::claim().expect("a slot");
    // Each value moves to the root.
    (0..61_440).for_each(|value| assert_eq!(HEAP.insert(&slot, value), Ok(())));
    (61_000..61_440).rev().for_each(|value| assert_eq!(HEAP.extract_max(&slot), Some(value)));
}

fn goes_round(queue: &impl Queue<i64>, capacity: usize) {
    let slot = Slot::claim().expect("a slot");
    let mut expected = VecDeque::new();
    for value in scattered(5_000) {
        if value % 5 < 3 {
            let is_full = expected.len() == capacity;
            assert_eq!(queue.push(&slot, i64::from_bits(value)), if is_full { Err(Full) } else { Ok(()) });
            if !is_full {
                expected.push_back(i64::from_bits(value));
            }
        } else {
            assert_eq!(queue.pop(&slot), expected.pop_front());
        }
    }
}

#[test]
fn queues_of_many_values_go_round() {
    static WAIT_FREE: WaitFreeQueue<i64, 4, 64> = WaitFreeQueue::new();
    static LOCKED: LockedQueue<Ticket, i64, 100> = LockedQueue::new();
    goes_round(&WAIT_FREE, WaitFreeQueue::<i64, 4, 64>::CAPACITY);
    goes_round(&LOCKED, 100);
}

/// Values that several threads move through a heap arrive once.
#[test]
fn threads_lose_no_value() {
    static HEAP: WaitFreeHeap<u64, 17, 64> = WaitFreeHeap::new();
    const COUNT: u64 = 2_000;
    let arrived = std::thread::scope(|scope| {
        let producers: Vec<_> = (0..2)
            .map(|producer| {
                scope.spawn(move || {
                    let slot = Slot::claim().expect("a slot");
                    for value in 0..COUNT {
                        while HEAP.insert(&slot, 2 * value + producer).is_err() {
                            std::thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        let slot = Slot::claim().expect("a slot");
        let mut arrived = Vec::new();
        while arrived.len() < 2 * COUNT as usize {
            match HEAP.extract_max(&slot) {
                Some(value) => arrived.push(value),
                None => std::thread::yield_now(),
            }
        }
        producers.into_iter().for_each(|producer| producer.join().expect("the thread ends"));
        arrived.sort_unstable();
        arrived
    });
    assert_eq!(arrived, (0..2 * COUNT).collect::<Vec<_>>());
}
