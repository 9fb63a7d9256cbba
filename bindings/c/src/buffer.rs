//! The functions `lw_buffer_*`.

use crate::argument::{Const, Mut};
use crate::object::{self, Kind, SLOTS, TwoKinds, operate};
use libc::{c_int, c_void, size_t};
use lockwright::objects::{Buffer, LockFreeBuffer, WaitFreeBuffer};

/// The greatest number of bytes of a value in a `lw_buffer_t`.
pub const LW_BUFFER_BYTES: u32 = 256;

const WORDS: usize = LW_BUFFER_BYTES as usize / 8;

/// A buffer with one value of up to `LW_BUFFER_BYTES` bytes, which any thread may read and replace without waiting for
/// another one.
///
/// Initialise it with `lw_buffer_init`. Never move or copy it. Its fields are private.
#[repr(C, align(128))]
pub struct lw_buffer_t {
    lw_words: [u64; 9280],
}

// SAFETY: both types consist of atomics, and bits that are zero are valid and empty.
unsafe impl TwoKinds for lw_buffer_t {
    const CHECK: u32 = 0x4c57_6275;
    type LockFree = LockFreeBuffer<u64, WORDS, SLOTS>;
    type WaitFree = WaitFreeBuffer<u64, WORDS, SLOTS>;
}

/// Initialises `*buffer` with a value of zeros, whatever the memory contained before.
///
/// `kind` is `LW_OBJECT_LOCK_FREE`, where a read is repeated if a write overlaps it, or `LW_OBJECT_WAIT_FREE`. Writes
/// are wait-free in both.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `buffer` is NULL or misaligned, or `kind` is another value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_buffer_init(buffer: Mut<'_, lw_buffer_t>, kind: u32) -> c_int {
    object::init(buffer, kind)
}

/// Destroys a buffer: every later use except `lw_buffer_init` returns EINVAL.
///
/// Returns:
/// - 0: success.
/// - EBUSY: a slot is in use. Nothing is changed.
/// - EINVAL: `buffer` is not an initialised buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_buffer_destroy(buffer: Mut<'_, lw_buffer_t>) -> c_int {
    object::destroy(buffer)
}

/// Why a value of this size cannot be copied from or to the caller's memory.
fn refused(size: usize, is_null: bool) -> Option<c_int> {
    match size {
        0 => None,
        _ if size > LW_BUFFER_BYTES as usize => Some(libc::EMSGSIZE),
        _ => is_null.then_some(libc::EINVAL),
    }
}

/// Copies the first `size` bytes of the value to `bytes`. They come from one write, or are zeros before the first one.
///
/// Returns:
/// - 0: success.
/// - EMSGSIZE: `size` is greater than `LW_BUFFER_BYTES`.
/// - EBUSY: the slot is in use: two threads use it, or a thread was killed in an operation of this slot.
/// - EINVAL: `buffer` is not an initialised buffer, there is no such slot, or `bytes` is NULL and `size` is not 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_buffer_read(
    buffer: Mut<'_, lw_buffer_t>,
    slot: u32,
    bytes: Mut<'_, c_void>,
    size: size_t,
) -> c_int {
    if let Some(error) = refused(size, bytes.is_null()) {
        return error;
    }
    operate(buffer.object(), slot, |buffer, slot| {
        let words = match buffer {
            Kind::LockFree(buffer) => buffer.read(slot),
            Kind::WaitFree(buffer) => buffer.read(slot),
        };
        // SAFETY: the check above excludes null unless `size` is 0, and a `size` beyond the words. The header requires
        // room for `size` bytes.
        unsafe { bytes.fill_from(&words, size) };
        0
    })
}

/// Replaces the value: its first `size` bytes are those at `bytes`, and the others are zeros.
///
/// Returns the values of `lw_buffer_read`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_buffer_write(
    buffer: Mut<'_, lw_buffer_t>,
    slot: u32,
    bytes: Const<'_, c_void>,
    size: size_t,
) -> c_int {
    if let Some(error) = refused(size, bytes.is_null()) {
        return error;
    }
    let mut words = [0; WORDS];
    // SAFETY: the check above excludes null unless `size` is 0, and a `size` beyond the words. The header requires
    // `size` bytes there.
    unsafe { bytes.copy_to(&mut words, size) };
    operate(buffer.object(), slot, |buffer, slot| {
        match buffer {
            Kind::LockFree(buffer) => buffer.write(slot, words),
            Kind::WaitFree(buffer) => buffer.write(slot, words),
        }
        0
    })
}
