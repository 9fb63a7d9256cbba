//! The arguments that C passes, and their checks.
//!
//! C passes pointers as [`Const`] and [`Mut`]. These state once what the header requires of every pointer, so that the
//! functions need no reason of their own to follow one.

use libc::{c_char, c_int, c_void, timespec};
use lockwright::mutex::{Clock, Deadline};
use std::ffi::CStr;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::time::Duration;

const NS_PER_S: i64 = 1_000_000_000;
/// The latest time, 292 years after a clock's zero. Later times are treated as this one.
const LAST_NS: u64 = i64::MAX as u64;

/// A `const T *` that C passed.
///
/// No Rust code makes one: it exists only as an argument of a function that C called, and C has promised what the
/// header requires. So the pointer is null, or misaligned, or points to memory of type `T` that stays during the call
/// and that no other thread writes meanwhile, unless `T` is a [`CObject`]. A `Const<c_char>` that is not null points to
/// a text with a final 0.
#[repr(transparent)]
pub struct Const<'call, T>(*const T, PhantomData<&'call T>);

/// A `T *` that C passed.
///
/// The same holds as for [`Const`], except that the memory may be uninitialised, and that no other thread reads it
/// either, unless `T` is a [`CObject`] and the function neither makes nor destroys the object.
#[repr(transparent)]
pub struct Mut<'call, T>(*mut T, PhantomData<&'call mut T>);

/// A type of the header whose memory contains an object of this library.
///
/// # Safety
/// All bits are a valid `Contents`, and it consists of atomics and of integers that its own methods protect: C may pass
/// memory that was never initialised, and any thread may read it.
pub unsafe trait CObject: Sized {
    type Contents;

    /// Returns whether these bits are an object: it was made at this place, and has not been destroyed.
    fn is_made(contents: &Self::Contents) -> bool;
}

/// `T::Contents` may be in memory of type `T`.
const fn assert_fits<T: CObject>() {
    assert!(size_of::<T::Contents>() <= size_of::<T>() && align_of::<T::Contents>() == align_of::<T>());
}

impl<'call, T> Const<'call, T> {
    pub fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// Returns whether the pointer is neither null nor misaligned.
    #[inline]
    pub fn is_there(&self) -> bool {
        !self.0.is_null() && self.0.is_aligned()
    }

    /// Returns the value, or `None` if it is not there.
    pub fn read(self) -> Option<T>
    where
        T: Copy,
    {
        // SAFETY: `is_there` excludes null and misaligned pointers, and C promised a `T` that no thread writes during
        // the call.
        self.is_there().then(|| unsafe { *self.0 })
    }

    /// Returns the `count` values, or `None` if there are more than `most`, or some and they are not there.
    ///
    /// # Safety
    /// If `count` is at most `most`, and the pointer is neither null nor misaligned, then `count` values stand there,
    /// and no thread writes them during the call.
    pub unsafe fn list(self, count: usize, most: usize) -> Option<&'call [T]>
    where
        T: Copy,
    {
        match count {
            0 => Some(&[]),
            // SAFETY: `is_there` excludes null and misaligned pointers. By the contract of `list`, `count` values stand
            // there, which no thread writes during the call.
            _ if count <= most && self.is_there() => Some(unsafe { std::slice::from_raw_parts(self.0, count) }),
            _ => None,
        }
    }

    /// Returns the object, or `None` if there is none.
    #[inline]
    pub fn object(self) -> Option<&'call T::Contents>
    where
        T: CObject,
    {
        const { assert_fits::<T>() };
        if !self.is_there() {
            return None;
        }
        // SAFETY: `is_there` excludes null and misaligned pointers, C promised memory of this type during the call, and
        // `Contents` fits. A `CObject` accepts any bits, and its fields may be shared between threads.
        let contents = unsafe { &*self.0.cast::<T::Contents>() };
        // A branch, which is predicted, and not a choice of values.
        if T::is_made(contents) { Some(contents) } else { None }
    }
}

impl<'call> Const<'call, c_char> {
    /// Returns the text, or `None` if the pointer is null.
    pub fn text(self) -> Option<&'call CStr> {
        // SAFETY: the pointer is not null, and C promised a text with a final 0 that stays during the call.
        (!self.is_null()).then(|| unsafe { CStr::from_ptr(self.0) })
    }
}

impl Const<'_, c_void> {
    /// Copies the first `size` bytes to the beginning of `words`.
    ///
    /// # Safety
    /// Unless `size` is 0, the pointer is not null, and `size` bytes stand there, which no thread writes during the
    /// call. `words` have room for them.
    pub unsafe fn copy_to(self, words: &mut [u64], size: usize) {
        // SAFETY: by the contract of `copy_to`, `size` bytes stand there, and `words` have room for them. The two do
        // not overlap, because C does not know `words`.
        unsafe { words.as_mut_ptr().cast::<u8>().copy_from(self.0.cast(), size) };
    }
}

impl<'call, T> Mut<'call, T> {
    pub fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// Returns whether the pointer is neither null nor misaligned.
    #[inline]
    pub fn is_there(&self) -> bool {
        !self.0.is_null() && self.0.is_aligned()
    }

    /// Writes `value`, unless the memory is not there. Returns whether it wrote.
    pub fn write(self, value: T) -> bool {
        let is_there = self.is_there();
        if is_there {
            // SAFETY: `is_there` excludes null and misaligned pointers, and C promised memory for a `T` that no other
            // thread uses during the call.
            unsafe { self.0.write(value) };
        }
        is_there
    }

    /// Returns room for `count` values, or `None` if it is not there.
    ///
    /// # Safety
    /// If the pointer is neither null nor misaligned, then it has room for `count` values, which no other thread uses
    /// during the call.
    pub unsafe fn room(self, count: usize) -> Option<&'call mut [MaybeUninit<T>]> {
        let fits = isize::try_from(count.checked_mul(size_of::<T>())?).is_ok();
        match count {
            0 => Some(&mut []),
            // SAFETY: `is_there` excludes null and misaligned pointers. By the contract of `room`, there is room for
            // `count` values, which no other thread uses during the call.
            _ if fits && self.is_there() => Some(unsafe { std::slice::from_raw_parts_mut(self.0.cast(), count) }),
            _ => None,
        }
    }

    /// Returns the object, or `None` if there is none.
    #[inline]
    pub fn object(self) -> Option<&'call T::Contents>
    where
        T: CObject,
    {
        Const(self.0.cast_const(), PhantomData).object()
    }

    /// Makes an object of zeros, whatever the memory contained before, or returns `None` if the memory is not there. It
    /// has no copy on the stack, and may be large.
    ///
    /// # Safety
    /// Bits that are zero are a valid `Contents`.
    pub unsafe fn make_of_zeros(self) -> Option<&'call T::Contents>
    where
        T: CObject,
    {
        const { assert_fits::<T>() };
        if !self.is_there() {
            return None;
        }
        // SAFETY: `is_there` excludes null and misaligned pointers, C promised memory for a `T` that no other thread
        // uses, and `Contents` fits. By the contract of `make_of_zeros`, zeros are valid.
        unsafe {
            self.0.write_bytes(0, 1);
            Some(&*self.0.cast::<T::Contents>())
        }
    }

    /// Makes an object of `contents`, whatever the memory contained before, or returns `None` if the memory is not
    /// there.
    pub fn make(self, contents: T::Contents) -> Option<&'call T::Contents>
    where
        T: CObject,
    {
        const { assert_fits::<T>() };
        if !self.is_there() {
            return None;
        }
        let place = self.0.cast::<T::Contents>();
        // SAFETY: `is_there` excludes null and misaligned pointers, C promised memory for a `T` that no other thread
        // uses, and `Contents` fits.
        unsafe {
            self.0.write_bytes(0, 1);
            place.write(contents);
            Some(&*place)
        }
    }
}

impl Mut<'_, c_void> {
    /// Copies the first `size` bytes of `words` there.
    ///
    /// # Safety
    /// Unless `size` is 0, the pointer is not null, and has room for `size` bytes, which no other thread uses during
    /// the call. `words` have as many.
    pub unsafe fn fill_from(self, words: &[u64], size: usize) {
        // SAFETY: by the contract of `fill_from`, there is room for `size` bytes, and `words` have as many. The two
        // do not overlap, because C does not know `words`.
        unsafe { self.0.cast::<u8>().copy_from(words.as_ptr().cast(), size) };
    }
}

/// Returns the deadline at `*time` by `clock`, or `None` if the clock or the time is not valid. A time before the
/// clock's zero has passed.
pub fn deadline(clock: c_int, time: Const<'_, timespec>) -> Option<Deadline> {
    let clock = match clock {
        libc::CLOCK_MONOTONIC => Clock::Monotonic,
        libc::CLOCK_REALTIME => Clock::Realtime,
        _ => return None,
    };
    let time = time.read()?;
    if !(0..NS_PER_S).contains(&time.tv_nsec) {
        return None;
    }
    Some(Deadline { clock, at_ns: u64::try_from(ns(time)).unwrap_or(0) })
}

/// Returns the deadline `*time` from now by the monotonic clock, or `None` if the time is not valid.
pub fn deadline_after(time: Const<'_, timespec>) -> Option<Deadline> {
    let time = time.read()?;
    if time.tv_sec < 0 || !(0..NS_PER_S).contains(&time.tv_nsec) {
        return None;
    }
    Some(Deadline::after(Duration::from_nanos(u64::try_from(ns(time)).unwrap_or(LAST_NS))))
}

/// Converts to nanoseconds, at most `LAST_NS`.
fn ns(time: timespec) -> i64 {
    time.tv_sec.saturating_mul(NS_PER_S).saturating_add(time.tv_nsec)
}
