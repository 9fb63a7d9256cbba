//! All spinlocks behind one interface.

use super::counter::Batch;
use lockwright_locks::{
    Algorithm, Anderson, Batched, Bpl, Clh, JohnsonHarathi, Markatos, Mcs, Priority, SLOTS_MAX, Slot, SpinLock, Tas,
    Ticket,
};
use std::hint::black_box;

/// A lock under measurement.
pub(super) trait Subject {
    /// Times a batch of locks and unlocks by the calling thread, which is bound to `cpu`.
    fn time(&self, slot: &Slot, cpu: usize, batch: &Batch) -> u64;
}

/// A lock that threads of all CPUs request.
pub(super) trait Wanted: Subject + Send + Sync {
    /// Locks, executes `section`, and unlocks.
    fn section(&self, slot: &Slot, priority: Priority, section: &mut dyn FnMut());
}

impl<A: Algorithm + Send + Sync> Subject for SpinLock<A, ()> {
    fn time(&self, slot: &Slot, _: usize, batch: &Batch) -> u64 {
        let request = A::request(slot, Priority::new(1));
        batch.time(self, || drop(black_box(self.lock_with(request))))
    }
}

impl<A: Algorithm + Send + Sync> Wanted for SpinLock<A, ()> {
    fn section(&self, slot: &Slot, priority: Priority, section: &mut dyn FnMut()) {
        let _guard = self.lock_with(A::request(slot, priority));
        section();
    }
}

/// A lock and its name.
pub(super) struct Candidate<S: ?Sized> {
    pub(super) name: &'static str,
    pub(super) new: fn() -> Box<S>,
}

const fn candidate<A: Algorithm + Send + Sync + 'static>(name: &'static str) -> Candidate<dyn Wanted> {
    Candidate { name, new: || Box::new(SpinLock::<A, ()>::new(())) }
}

/// The lock with which the others are compared; it is FIFO.
pub(super) const FIFO: &str = "ticket";

pub(super) const ALL: [Candidate<dyn Wanted>; 9] = [
    candidate::<Tas>("tas"),
    candidate::<Ticket>(FIFO),
    candidate::<Anderson<SLOTS_MAX>>("anderson"),
    candidate::<Mcs<SLOTS_MAX>>("mcs"),
    candidate::<Clh<SLOTS_MAX>>("clh"),
    candidate::<Markatos<SLOTS_MAX>>("markatos"),
    candidate::<JohnsonHarathi<SLOTS_MAX>>("johnson_harathi"),
    candidate::<Bpl<SLOTS_MAX, u64>>("bpl"),
    candidate::<Batched<SLOTS_MAX, u64>>("batched"),
];

/// The names of the locks that are measured, in the order of the results.
pub fn lock_names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|candidate| candidate.name)
}
