//! The conversion of a value uses the object of the operation, with the same slot.

use lockwright_locks::{Slot, Ticket};
use lockwright_objects::{
    Buffer, LockFreeBuffer, LockFreeQueue, LockedBuffer, LockedHeap, LockedQueue, PriorityQueue, Queue, Value,
    WaitFreeBuffer, WaitFreeHeap, WaitFreeQueue,
};
use std::cell::RefCell;

type Hook = Box<dyn Fn()>;

thread_local! {
    /// The hook of the next conversion of a value other than zero.
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

/// A value whose conversions execute the hook.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Hooked(u64);

impl Hooked {
    fn convert(self) -> Self {
        if self.0 != 0
            && let Some(hook) = HOOK.take()
        {
            hook();
        }
        self
    }
}

impl Value for Hooked {
    fn to_bits(self) -> u64 {
        self.convert().0
    }
    fn from_bits(bits: u64) -> Self {
        Self(bits).convert()
    }
}

/// Executes `work`, and `hook` at the next conversion.
fn hooked<R>(hook: impl Fn() + 'static, work: impl FnOnce() -> R) -> R {
    HOOK.set(Some(Box::new(hook)));
    let result = work();
    assert!(HOOK.take().is_none(), "the operation converts no value");
    result
}

fn slot() -> Slot {
    Slot::claim().expect("a slot")
}

fn a_write_converts_first<B: Buffer<Hooked, 2> + Default + 'static>() {
    let buffer: &B = Box::leak(Box::default());
    let write = |slot: &Slot, value: u64| buffer.write(slot, [Hooked(value), Hooked(value + 1)]);
    let mine: &Slot = Box::leak(Box::new(slot()));
    for round in 1..8 {
        let inner = 100 * round;
        hooked(move || write(mine, inner), || write(mine, inner + 10));
        assert_eq!(buffer.read(mine), [Hooked(inner + 10), Hooked(inner + 11)]);
        // The place of the next write is not the current one.
        let is_whole = move || assert_eq!(buffer.read(mine), [Hooked(inner + 10), Hooked(inner + 11)]);
        let values = [Hooked(inner + 20), Hooked(inner + 21)];
        hooked(move || HOOK.set(Some(Box::new(is_whole))), || buffer.write(mine, values));
    }
}

fn a_push_converts_first<Q: Queue<Hooked> + Default + 'static>() {
    let queue: &Q = Box::leak(Box::default());
    let mine: &Slot = Box::leak(Box::new(slot()));
    let push = move |value| assert_eq!(queue.push(mine, Hooked(value)), Ok(()));
    hooked(move || push(1), || push(2));
    // A pop ends before it converts.
    let pop = move |value| assert_eq!(queue.pop(mine), Some(Hooked(value)));
    hooked(move || pop(2), || pop(1));
    assert_eq!(queue.pop(mine), None);
}

fn an_insert_converts_first<Q: PriorityQueue<Hooked> + Default + 'static>() {
    let queue: &Q = Box::leak(Box::default());
    let mine: &Slot = Box::leak(Box::new(slot()));
    let insert = move |value| assert_eq!(queue.insert(mine, Hooked(value)), Ok(()));
    hooked(move || insert(1), || insert(2));
    assert_eq!(queue.extract_max(mine), Some(Hooked(2)));
    assert_eq!(queue.extract_max(mine), Some(Hooked(1)));
}

#[test]
fn buffers() {
    a_write_converts_first::<LockFreeBuffer<Hooked, 2, 64>>();
    a_write_converts_first::<WaitFreeBuffer<Hooked, 2, 8>>();
    a_write_converts_first::<LockedBuffer<Ticket, Hooked, 2>>();
}

#[test]
fn queues() {
    a_push_converts_first::<LockFreeQueue<Hooked, 4, 64>>();
    a_push_converts_first::<WaitFreeQueue<Hooked, 1, 8>>();
    a_push_converts_first::<LockedQueue<Ticket, Hooked, 4>>();
}

#[test]
fn heaps() {
    an_insert_converts_first::<WaitFreeHeap<Hooked, 1, 8>>();
    an_insert_converts_first::<LockedHeap<Ticket, Hooked, 4>>();
}
