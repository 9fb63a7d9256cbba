//! What a waiter does between two looks.

use crate::sync;

/// What a waiter does between two looks. A new one for each wait.
///
/// It must not panic. Who waits for a lock without giving up cannot leave the queue: the lock comes to nobody then, and stays held. Nothing is
/// unsound by it: the slot goes on waiting, and asks for no lock any more. `Batched`, `Bpl` and `Tas` are left in order.
pub trait Relax: Default {
    /// Once a look that found nothing.
    fn relax(&mut self);
}

/// Tells the core that it spins (`pause`, `yield`, `wfe`-less hint), once a look. Right where waits are short and bounded.
#[derive(Clone, Copy, Default, Debug)]
pub struct Spin;

impl Relax for Spin {
    #[inline]
    fn relax(&mut self) {
        sync::spin_loop();
    }
}

/// Looks more and more seldom, to one look in [`Backoff::HINTS_MAX`] hints: less traffic on the lock's line, and a later look at it.
#[derive(Clone, Copy, Default, Debug)]
pub struct Backoff(u32);

impl Backoff {
    /// The most hints between two looks.
    pub const HINTS_MAX: u32 = 64;
}

impl Relax for Backoff {
    #[inline]
    fn relax(&mut self) {
        // BOUND: HINTS_MAX hints.
        for _ in 0..1 << self.0 {
            sync::spin_loop();
        }
        if 1 << self.0 < Self::HINTS_MAX {
            self.0 += 1;
        }
    }
}
