//! Stamps of events: the processor's time-stamp counter where the kernel trusts it as its own clock, and the monotonic
//! clock elsewhere.

use std::arch::x86_64::_rdtsc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

static IS_CYCLES: AtomicBool = AtomicBool::new(false);
/// The stamp at the start of the recording.
static START: AtomicU64 = AtomicU64::new(0);

/// The time of a clock in nanoseconds.
pub(crate) fn now_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing, and every Linux has the clocks that this library passes.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    // Both clocks are after their zeros.
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

fn counter() -> u64 {
    // ORDERING: Relaxed: set before threads are recorded, which `stage` releases.
    if IS_CYCLES.load(Ordering::Relaxed) {
        // SAFETY: the instruction is part of x86-64 and touches no memory.
        unsafe { _rdtsc() }
    } else {
        now_ns(libc::CLOCK_MONOTONIC)
    }
}

/// Returns the stamp of now, since the start of the recording.
#[inline(always)]
pub(crate) fn stamp() -> u64 {
    // ORDERING: Relaxed: as in `counter`.
    counter().wrapping_sub(START.load(Ordering::Relaxed))
}

/// A moment by three clocks: the counter, the monotonic clock and the real-time clock.
pub(crate) fn moment() -> [u64; 3] {
    /// The clocks of the try with the least time between them are the closest.
    const TRIES: u32 = 5;
    let mut best = (u64::MAX, [0; 3]);
    for _ in 0..TRIES {
        let before = counter();
        let monotonic_ns = now_ns(libc::CLOCK_MONOTONIC);
        let after = counter();
        let realtime_ns = now_ns(libc::CLOCK_REALTIME);
        let length = after.wrapping_sub(before);
        if length < best.0 {
            best = (length, [before.wrapping_add(length / 2), monotonic_ns, realtime_ns]);
        }
    }
    best.1
}

/// Chooses the counter, and begins. Returns whether stamps are cycles, and the moment of the start.
pub(crate) fn start() -> (bool, [u64; 3]) {
    /// The kernel's clocks that are the time-stamp counter, or are computed from it.
    const TRUSTED: [&str; 3] = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page"];
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let clock = std::fs::read_to_string(path).unwrap_or_default();
    let is_cycles = TRUSTED.contains(&clock.trim());
    IS_CYCLES.store(is_cycles, Ordering::Relaxed);
    let moment = moment();
    START.store(moment[0], Ordering::Relaxed);
    (is_cycles, moment)
}
