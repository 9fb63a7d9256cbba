//! The processor's own counter, and emptying its caches of a value. Elsewhere than on x86-64: the clock, and no emptying.

use super::clock;

/// Whether [`flush`] does anything.
pub(crate) const CAN_FLUSH: bool = cfg!(target_arch = "x86_64");

/// Cycles of the time-stamp counter; nothing before is still under way, nothing after has begun.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn now() -> u64 {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: both instructions are part of x86-64 and touch no memory.
    unsafe {
        _mm_lfence();
        let cycles = _rdtsc();
        _mm_lfence();
        cycles
    }
}

/// Nanoseconds of the clock stand for cycles.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(crate) fn now() -> u64 {
    clock::now_ns()
}

/// Empties all caches of `value`.
#[cfg(target_arch = "x86_64")]
pub(crate) fn flush<T: ?Sized>(value: &T) {
    use std::arch::x86_64::{_mm_clflush, _mm_mfence};
    const LINE: usize = 64;
    let first = std::ptr::from_ref(value).cast::<u8>();
    for offset in (0..size_of_val(value)).step_by(LINE) {
        // SAFETY: the address lies within `value`, and flushing changes no contents.
        unsafe { _mm_clflush(first.wrapping_add(offset)) };
    }
    // SAFETY: the instruction is part of x86-64.
    unsafe { _mm_mfence() };
}

/// Nothing: see [`CAN_FLUSH`].
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn flush<T: ?Sized>(_: &T) {}

/// Cycles a nanosecond, measured against the clock.
///
/// BOUND: 20 ms, and what comes between.
pub(crate) fn per_ns() -> f64 {
    const SPAN_NS: u64 = 20_000_000;
    let (start_ns, start) = (clock::now_ns(), now());
    while clock::now_ns() < start_ns + SPAN_NS {
        std::hint::spin_loop();
    }
    let (end_ns, end) = (clock::now_ns(), now());
    (end - start) as f64 / (end_ns - start_ns) as f64
}
