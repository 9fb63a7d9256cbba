//! The functions `lw_pqueue_*`.

use crate::argument::Mut;
use crate::object::{self, Kind, SLOTS, TwoKinds, operate};
use libc::c_int;
use lockwright::objects::{LockFreeHeap, PriorityQueue, WaitFreeHeap};

/// The number of values that a `lw_pqueue_t` holds.
pub const LW_PQUEUE_CAPACITY: u32 = 1020;

const CAPACITY: usize = LW_PQUEUE_CAPACITY as usize;
const BLOCKS: usize = 17;

const _: () = assert!(LockFreeHeap::<u64, BLOCKS, SLOTS>::CAPACITY == CAPACITY);
const _: () = assert!(WaitFreeHeap::<u64, BLOCKS, SLOTS>::CAPACITY == CAPACITY);

/// A priority queue of up to `LW_PQUEUE_CAPACITY` values of 64 bits, which any thread may use without waiting for
/// another one. A greater value comes first.
///
/// Initialise it with `lw_pqueue_init`. Never move or copy it. Its fields are private.
#[repr(C, align(128))]
pub struct lw_pqueue_t {
    lw_words: [u64; 5120],
}

// SAFETY: both types consist of atomics, and bits that are zero are valid and empty.
unsafe impl TwoKinds for lw_pqueue_t {
    const CHECK: u32 = 0x4c57_7071;
    type LockFree = LockFreeHeap<u64, BLOCKS, SLOTS>;
    type WaitFree = WaitFreeHeap<u64, BLOCKS, SLOTS>;
}

/// Initialises `*queue` as an empty queue, whatever the memory contained before.
///
/// `kind` is `LW_OBJECT_LOCK_FREE`, where an operation is repeated if another one overlaps it, or
/// `LW_OBJECT_WAIT_FREE`, which takes a little longer alone.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `queue` is NULL or misaligned, or `kind` is another value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_pqueue_init(queue: Mut<'_, lw_pqueue_t>, kind: u32) -> c_int {
    object::init(queue, kind)
}

/// Destroys a queue: every later use except `lw_pqueue_init` returns EINVAL.
///
/// Returns:
/// - 0: success.
/// - EBUSY: a slot is in use. Nothing is changed.
/// - EINVAL: `queue` is not an initialised queue.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_pqueue_destroy(queue: Mut<'_, lw_pqueue_t>) -> c_int {
    object::destroy(queue)
}

/// Inserts a value.
///
/// Returns:
/// - 0: success.
/// - ENOSPC: the queue is full.
/// - EBUSY: the slot is in use: two threads use it, or a thread was killed in an operation of this slot.
/// - EINVAL: `queue` is not an initialised queue, or there is no such slot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_pqueue_insert(queue: Mut<'_, lw_pqueue_t>, slot: u32, value: u64) -> c_int {
    operate(queue.object(), slot, |queue, slot| {
        let inserted = match queue {
            Kind::LockFree(queue) => queue.insert(slot, value),
            Kind::WaitFree(queue) => queue.insert(slot, value),
        };
        inserted.map_or(libc::ENOSPC, |()| 0)
    })
}

/// Removes the greatest value, and writes it to `*value`.
///
/// Returns:
/// - 0: success.
/// - ENODATA: the queue is empty. `*value` is unchanged.
/// - EBUSY: the slot is in use: two threads use it, or a thread was killed in an operation of this slot.
/// - EINVAL: `queue` is not an initialised queue, there is no such slot, or `value` is NULL or misaligned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_pqueue_extract_max(queue: Mut<'_, lw_pqueue_t>, slot: u32, value: Mut<'_, u64>) -> c_int {
    if !value.is_there() {
        return libc::EINVAL;
    }
    operate(queue.object(), slot, |queue, slot| {
        let greatest = match queue {
            Kind::LockFree(queue) => queue.extract_max(slot),
            Kind::WaitFree(queue) => queue.extract_max(slot),
        };
        let Some(greatest) = greatest else { return libc::ENODATA };
        value.write(greatest);
        0
    })
}
