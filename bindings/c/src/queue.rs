//! The functions `lw_queue_*`.

use crate::argument::Mut;
use crate::object::{self, Kind, SLOTS, TwoKinds, operate};
use libc::c_int;
use lockwright::objects::{LockFreeQueue, Queue, WaitFreeQueue};

/// The number of values that a `lw_queue_t` holds.
pub const LW_QUEUE_CAPACITY: u32 = 1022;

const CAPACITY: usize = LW_QUEUE_CAPACITY as usize;
/// The blocks of the wait-free queue.
const BLOCKS: usize = 16;

const _: () = assert!(WaitFreeQueue::<u64, BLOCKS, SLOTS>::CAPACITY == CAPACITY);

/// A FIFO queue of up to `LW_QUEUE_CAPACITY` values of 64 bits, which any thread may use without waiting for another
/// one.
///
/// Initialise it with `lw_queue_init`. Never move or copy it. Its fields are private.
#[repr(C, align(128))]
pub struct lw_queue_t {
    lw_words: [u64; 5120],
}

// SAFETY: both types consist of atomics, and bits that are zero are valid and empty.
unsafe impl TwoKinds for lw_queue_t {
    const CHECK: u32 = 0x4c57_7175;
    type LockFree = LockFreeQueue<u64, CAPACITY, SLOTS>;
    type WaitFree = WaitFreeQueue<u64, BLOCKS, SLOTS>;
}

/// Initialises `*queue` as an empty queue, whatever the memory contained before.
///
/// `kind` is `LW_OBJECT_LOCK_FREE`, where a push is repeated if another push overlaps it, and a pop likewise, or
/// `LW_OBJECT_WAIT_FREE`, which takes several times as long alone.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `queue` is NULL or misaligned, or `kind` is another value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_queue_init(queue: Mut<'_, lw_queue_t>, kind: u32) -> c_int {
    object::init(queue, kind)
}

/// Destroys a queue: every later use except `lw_queue_init` returns EINVAL.
///
/// Returns:
/// - 0: success.
/// - EBUSY: a slot is in use. Nothing is changed.
/// - EINVAL: `queue` is not an initialised queue.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_queue_destroy(queue: Mut<'_, lw_queue_t>) -> c_int {
    object::destroy(queue)
}

/// Appends a value.
///
/// Returns:
/// - 0: success.
/// - ENOSPC: the queue is full.
/// - EBUSY: the slot is in use: two threads use it, or a thread was killed in an operation of this slot.
/// - EINVAL: `queue` is not an initialised queue, or there is no such slot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_queue_push(queue: Mut<'_, lw_queue_t>, slot: u32, value: u64) -> c_int {
    operate(queue.object(), slot, |queue, slot| {
        let pushed = match queue {
            Kind::LockFree(queue) => queue.push(slot, value),
            Kind::WaitFree(queue) => queue.push(slot, value),
        };
        pushed.map_or(libc::ENOSPC, |()| 0)
    })
}

/// Removes the oldest value, and writes it to `*value`.
///
/// Returns:
/// - 0: success.
/// - ENODATA: the queue is empty. `*value` is unchanged.
/// - EBUSY: the slot is in use: two threads use it, or a thread was killed in an operation of this slot.
/// - EINVAL: `queue` is not an initialised queue, there is no such slot, or `value` is NULL or misaligned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_queue_pop(queue: Mut<'_, lw_queue_t>, slot: u32, value: Mut<'_, u64>) -> c_int {
    if !value.is_there() {
        return libc::EINVAL;
    }
    operate(queue.object(), slot, |queue, slot| {
        let popped = match queue {
            Kind::LockFree(queue) => queue.pop(slot),
            Kind::WaitFree(queue) => queue.pop(slot),
        };
        let Some(popped) = popped else { return libc::ENODATA };
        value.write(popped);
        0
    })
}
