//! The parts that `lw_buffer_t`, `lw_queue_t` and `lw_pqueue_t` share: the two kinds, and the slots.

use crate::argument::{CObject, Mut};
use crate::panic::guarded;
use libc::c_int;
use lockwright::locks::Slot;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU32, Ordering};

/// The number of slots of a `lw_buffer_t`, `lw_queue_t` or `lw_pqueue_t`.
pub const LW_OBJECT_SLOTS: u32 = 16;

/// An operation is repeated if operations of other slots overlap it.
pub const LW_OBJECT_LOCK_FREE: u32 = 0;
/// An operation takes a number of steps that does not depend on other slots.
pub const LW_OBJECT_WAIT_FREE: u32 = 1;

// Not for C.
pub(crate) const SLOTS: usize = LW_OBJECT_SLOTS as usize;

/// 1 from the beginning of an operation of the slot to its end. It stays 1 if the thread is killed in between.
#[repr(C, align(128))]
struct InUse(AtomicU32);

/// The contents of an object of one of two types.
#[repr(C, align(128))]
pub struct Object<L, W> {
    check: AtomicU32,
    kind: AtomicU32,
    slots: [InUse; SLOTS],
    body: Body<L, W>,
}

#[repr(C)]
union Body<L, W> {
    lock_free: ManuallyDrop<L>,
    wait_free: ManuallyDrop<W>,
}

/// A type of the header whose memory contains an [`Object`].
///
/// # Safety
/// All bits are valid values of both types, which consist of atomics, and bits that are zero are empty objects.
pub unsafe trait TwoKinds: Sized {
    /// The check value of an object. No two types have the same.
    const CHECK: u32;
    type LockFree;
    type WaitFree;
}

// SAFETY: `check`, `kind` and `slots` are atomics, which accept all bits and may be shared. By the contract of
// `TwoKinds`, so does the body.
unsafe impl<T: TwoKinds> CObject for T {
    type Contents = Object<T::LockFree, T::WaitFree>;

    #[inline]
    fn is_made(object: &Self::Contents) -> bool {
        // ORDERING: Relaxed: the thread that made the object published it.
        object.check.load(Ordering::Relaxed) == T::CHECK
    }
}

/// Makes an empty object.
pub fn init<T: TwoKinds>(memory: Mut<'_, T>, kind: u32) -> c_int {
    guarded(|| {
        if !matches!(kind, LW_OBJECT_LOCK_FREE | LW_OBJECT_WAIT_FREE) {
            return libc::EINVAL;
        }
        // SAFETY: zeros are valid for the atomics, and by the contract of `TwoKinds` for the body; they are no check
        // value yet.
        let Some(object) = (unsafe { memory.make_of_zeros() }) else { return libc::EINVAL };
        // ORDERING: Relaxed: the caller publishes the object.
        object.kind.store(kind, Ordering::Relaxed);
        object.check.store(T::CHECK, Ordering::Relaxed);
        0
    })
}

/// Makes the memory invalid, unless a slot is in use.
pub fn destroy<T: TwoKinds>(memory: Mut<'_, T>) -> c_int {
    guarded(|| {
        let Some(object) = memory.object() else { return libc::EINVAL };
        // ORDERING: Relaxed: the caller has made sure that no other thread uses the object.
        if object.slots.iter().any(|slot| slot.0.load(Ordering::Relaxed) != 0) {
            return libc::EBUSY;
        }
        object.check.store(0, Ordering::Relaxed);
        0
    })
}

/// The body of an object.
pub enum Kind<'a, L, W> {
    LockFree(&'a L),
    WaitFree(&'a W),
}

/// Executes an operation from a slot.
#[inline]
pub fn operate<L, W>(
    object: Option<&Object<L, W>>,
    slot: u32,
    operation: impl FnOnce(Kind<'_, L, W>, &Slot) -> c_int,
) -> c_int {
    guarded(|| {
        let Some(object) = object else { return libc::EINVAL };
        let Some(in_use) = object.slots.get(slot as usize) else { return libc::EINVAL };
        // ORDERING: the acquire pairs with the release below: the last operation of the slot happens before this one.
        if in_use.0.swap(1, Ordering::Acquire) != 0 {
            return libc::EBUSY;
        }
        // SAFETY: the swap above found the slot free, so until it is free again only this thread uses this number with
        // this object.
        let number = unsafe { Slot::new(slot as usize) };
        // ORDERING: Relaxed: the thread that made the object published it.
        let kind = match object.kind.load(Ordering::Relaxed) {
            // SAFETY: by the contract of `TwoKinds`, all bits are valid values of both types, so this field may be
            // read; `init` has chosen it.
            LW_OBJECT_LOCK_FREE => Kind::LockFree(unsafe { &*object.body.lock_free }),
            // SAFETY: by the contract of `TwoKinds`, all bits are valid values of both types, so this field may be
            // read, whatever `kind` contains.
            _ => Kind::WaitFree(unsafe { &*object.body.wait_free }),
        };
        let answer = operation(kind, &number);
        in_use.0.store(0, Ordering::Release);
        answer
    })
}
