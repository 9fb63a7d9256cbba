//! How long a waiter spins before it sleeps in between.

use lockwright_sys::clock;
use std::hint::spin_loop;

/// Nanoseconds of spinning after which a task sleeps in between, because the owner was delayed by something outside the
/// protocol.
const SPIN_NS: u64 = 20_000_000;
/// Nanoseconds of each such sleep.
const NAP_NS: u64 = 1_000_000;
/// The number of spins between two readings of the clock.
const SPINS: u32 = 1 << 12;

/// How long a waiter has spun: after [`SPIN_NS`] it naps between two looks, so that lower threads of its processor
/// execute as well.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    /// The looks since the clock was read.
    looks: u32,
    start: Option<u64>,
}

impl Patience {
    /// Pauses after a look that found nothing. `nap` sleeps until the given time.
    #[inline]
    pub(crate) fn pause(&mut self, nap: impl Fn(u64)) {
        self.looks += 1;
        if self.looks < SPINS {
            spin_loop();
            return;
        }
        self.looks = 0;
        let now = clock::now_ns();
        if now.saturating_sub(*self.start.get_or_insert(now)) > SPIN_NS {
            nap(now + NAP_NS);
        }
    }
}

/// Spins until `look` returns a value. `nap` is called as by [`Patience::pause`].
///
/// BOUND: the caller's, for the value it waits for.
pub(crate) fn spin_until<T>(look: impl Fn() -> Option<T>, nap: impl Fn(u64)) -> T {
    let mut patience = Patience::default();
    loop {
        if let Some(found) = look() {
            return found;
        }
        patience.pause(&nap);
    }
}
