//! The processor's cycle counter, and evicting one value or everything from its caches.
//!
//! On processors other than x86-64, the counter is the clock, and a single value cannot be evicted.

use crate::clock;
use std::hint::black_box;

/// Whether [`flush`] does anything.
pub const CAN_FLUSH: bool = cfg!(target_arch = "x86_64");

/// Reads the time-stamp counter. Earlier instructions have completed, and later ones have not begun.
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

/// Reads the clock in nanoseconds, which stand for cycles here.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub fn now() -> u64 {
    clock::now_ns()
}

/// Evicts `value` from all caches.
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

/// Does nothing; see [`CAN_FLUSH`].
#[cfg(not(target_arch = "x86_64"))]
pub fn flush<T: ?Sized>(_: &T) {}

/// Memory that exceeds a processor's caches, and whose pages exceed its translation caches. Reading all of it evicts
/// everything else.
pub struct Sweep(Vec<u8>);

impl std::fmt::Debug for Sweep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sweep").field("bytes", &self.0.len()).finish_non_exhaustive()
    }
}

impl Sweep {
    /// The smallest cache line of any supported processor, in bytes.
    const LINE: usize = 32;
    /// The size of the sweep in multiples of the last-level cache. A cache with random replacement needs more than one.
    const TIMES: usize = 2;
    /// The size in bytes if the machine does not report its caches.
    const USUAL: usize = 64 << 20;
    /// The largest size in bytes. A larger cache is not evicted completely.
    const MOST: usize = 256 << 20;
    const PAGE: usize = 4096;

    /// Allocates and touches the memory for the caches of this CPU.
    pub fn new(cpu: usize) -> Self {
        let bytes = Self::bytes_for(largest_cache(cpu));
        let mut memory = vec![0_u8; bytes];
        let skipped = memory.as_ptr().align_offset(Self::PAGE).min(bytes);
        // SAFETY: the range lies within `memory`. If the kernel refuses, the memory has fewer pages but is still valid.
        unsafe { libc::madvise(memory.as_mut_ptr().add(skipped).cast(), bytes - skipped, libc::MADV_NOHUGEPAGE) };
        // A page that was never written to is not backed by memory.
        memory.iter_mut().step_by(Self::PAGE).for_each(|byte| *byte = 1);
        Self(memory)
    }

    fn bytes_for(cache: Option<usize>) -> usize {
        cache.map_or(Self::USUAL, |cache| cache.saturating_mul(Self::TIMES).min(Self::MOST))
    }

    /// Reads every line.
    ///
    /// # Returns
    ///
    /// The sum of the first byte of each line. Returning it keeps the compiler from removing the reads.
    pub fn read(&self) -> usize {
        black_box(black_box(&self.0).iter().step_by(Self::LINE).map(|&byte| usize::from(byte)).sum())
    }
}

/// The size of the CPU's largest cache in bytes, or `None` if the machine does not report it.
fn largest_cache(cpu: usize) -> Option<usize> {
    let caches = std::fs::read_dir(format!("/sys/devices/system/cpu/cpu{cpu}/cache")).ok()?;
    let sizes =
        caches.flatten().filter_map(|cache| bytes_of(&std::fs::read_to_string(cache.path().join("size")).ok()?));
    sizes.max()
}

/// Parses the size of a cache as the kernel writes it: `32K`, `8M`.
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

/// Cycles per nanosecond, measured against the clock.
///
/// BOUND: 20 ms, plus preemptions.
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
    fn cache_sizes_are_parsed() {
        let read = ["32K\n", "1024K", "8M", "512", "", "K", "0", "x"].map(bytes_of);
        assert_eq!(read, [Some(32 << 10), Some(1 << 20), Some(8 << 20), Some(512), None, None, None, None]);
    }

    /// The time of reads after a sweep depends on the machine and its load, so it is not tested; `measure mutex`
    /// reports it.
    #[test]
    fn a_sweep_exceeds_the_caches_and_reads_every_line() {
        let mut sweep = Sweep(vec![1; 4096 * Sweep::LINE]);
        assert_eq!(sweep.read(), 4096);
        sweep.0[77 * Sweep::LINE] = 0;
        assert_eq!(sweep.read(), 4095, "one line was not read");
        let bytes = [Some(8 << 20), None, Some(usize::MAX)].map(Sweep::bytes_for);
        assert_eq!(bytes, [16 << 20, 64 << 20, 256 << 20]);
        assert!(largest_cache(0).is_none_or(|cache| Sweep::new(0).0.len() >= cache.min(Sweep::MOST)));
    }
}
