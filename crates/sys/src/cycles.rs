//! The processor's own counter, and emptying its caches: of a value, or of everything. Elsewhere than on x86-64 the counter is the clock, and of a
//! value alone they are not emptied.

use crate::clock;
use std::hint::black_box;

/// Whether [`flush`] does anything.
pub const CAN_FLUSH: bool = cfg!(target_arch = "x86_64");

/// Cycles of the time-stamp counter; nothing before is still under way, nothing after has begun.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn now() -> u64 {
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
pub fn now() -> u64 {
    clock::now_ns()
}

/// Empties all caches of `value`.
#[cfg(target_arch = "x86_64")]
pub fn flush<T: ?Sized>(value: &T) {
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
pub fn flush<T: ?Sized>(_: &T) {}

/// Memory that does not fit into a processor's caches, nor its pages into the cache of their addresses: who reads all of it drives everything
/// else out.
pub struct Sweep(Vec<u8>);

impl Sweep {
    /// The smallest cache line there is.
    const LINE: usize = 32;
    /// Of a last-level cache: so that what is kept at random is driven out, too.
    const TIMES: usize = 2;
    /// Where the machine does not say how large its caches are.
    const USUAL: usize = 64 << 20;
    /// No more, however large a cache is: what is left in it then is not from memory.
    const MOST: usize = 256 << 20;
    const PAGE: usize = 4096;

    /// For the caches of this CPU. All of it is there before it is read.
    pub fn new(cpu: usize) -> Self {
        let bytes = Self::bytes_for(largest_cache(cpu));
        let mut memory = vec![0_u8; bytes];
        let skipped = memory.as_ptr().align_offset(Self::PAGE).min(bytes);
        // SAFETY: within `memory`. Refused, it is memory all the same, with fewer addresses.
        unsafe { libc::madvise(memory.as_mut_ptr().add(skipped).cast(), bytes - skipped, libc::MADV_NOHUGEPAGE) };
        // What was never written to has no page of its own.
        memory.iter_mut().step_by(Self::PAGE).for_each(|byte| *byte = 1);
        Self(memory)
    }

    fn bytes_for(cache: Option<usize>) -> usize {
        cache.map_or(Self::USUAL, |cache| cache.saturating_mul(Self::TIMES).min(Self::MOST))
    }

    /// Reads every line of it.
    ///
    /// # Returns
    ///
    /// The sum of what stands first in each line, which nobody needs: that it is asked for keeps the reads.
    pub fn read(&self) -> usize {
        black_box(black_box(&self.0).iter().step_by(Self::LINE).map(|&byte| usize::from(byte)).sum())
    }
}

/// In bytes, if the machine says so.
fn largest_cache(cpu: usize) -> Option<usize> {
    let caches = std::fs::read_dir(format!("/sys/devices/system/cpu/cpu{cpu}/cache")).ok()?;
    let sizes =
        caches.flatten().filter_map(|cache| bytes_of(&std::fs::read_to_string(cache.path().join("size")).ok()?));
    sizes.max()
}

/// As the kernel writes sizes of caches: 32K, 8M.
fn bytes_of(size: &str) -> Option<usize> {
    let size = size.trim();
    let (number, unit) = match size.strip_suffix('K') {
        Some(number) => (number, 1 << 10),
        None => match size.strip_suffix('M') {
            Some(number) => (number, 1 << 20),
            None => (size, 1),
        },
    };
    number.parse::<usize>().ok()?.checked_mul(unit).filter(|&bytes| bytes > 0)
}

/// Cycles a nanosecond, measured against the clock.
///
/// BOUND: 20 ms, and what comes between.
pub fn per_ns() -> f64 {
    const SPAN_NS: u64 = 20_000_000;
    let (start_ns, start) = (clock::now_ns(), now());
    while clock::now_ns() < start_ns + SPAN_NS {
        std::hint::spin_loop();
    }
    let (end_ns, end) = (clock::now_ns(), now());
    (end - start) as f64 / (end_ns - start_ns) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_caches_are_read() {
        let read = ["32K\n", "1024K", "8M", "512", "", "K", "0", "x"].map(bytes_of);
        assert_eq!(read, [Some(32 << 10), Some(1 << 20), Some(8 << 20), Some(512), None, None, None, None]);
    }

    /// How long reads take after it depends on the machine and on who else works there: `measure mutex` shows it.
    #[test]
    fn a_sweep_reads_every_line_of_more_than_the_caches_hold() {
        let mut sweep = Sweep(vec![1; 4096 * Sweep::LINE]);
        assert_eq!(sweep.read(), 4096);
        sweep.0[77 * Sweep::LINE] = 0;
        assert_eq!(sweep.read(), 4095, "one line was not read");
        let bytes = [Some(8 << 20), None, Some(usize::MAX)].map(Sweep::bytes_for);
        assert_eq!(bytes, [16 << 20, 64 << 20, 256 << 20]);
        assert!(largest_cache(0).is_none_or(|cache| Sweep::new(0).0.len() >= cache.min(Sweep::MOST)));
    }
}
