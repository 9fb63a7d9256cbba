//! Every spinlock, behind one door.

use lockwright_locks::{
    Algorithm, Anderson, Batched, Bpl, Clh, JohnsonHarathi, Markatos, Mcs, Priority, SLOTS_MAX, Slot, SpinLock, Tas,
    Ticket,
};
use lockwright_sys::cycles;
use std::hint::black_box;

/// A lock under measurement.
pub(super) trait Subject {
    /// Cycles from before the lock to after the unlock, into each place; from memory if `cold`. On the CPU the thread is bound to.
    fn read(&self, slot: &Slot, cpu: usize, cycles: &mut [u64], cold: bool);
}

/// A lock that threads of all CPUs want.
pub(super) trait Wanted: Subject + Send + Sync {
    /// Takes the lock, executes `section`, releases it.
    fn section(&self, slot: &Slot, priority: Priority, section: &mut dyn FnMut());
}

impl<A: Algorithm + Send + Sync> Subject for SpinLock<A, ()> {
    fn read(&self, slot: &Slot, _: usize, readings: &mut [u64], cold: bool) {
        let request = A::request(slot, Priority::new(1));
        read_each(self, readings, cold, || drop(black_box(self.lock_with(request))));
    }
}

impl<A: Algorithm + Send + Sync> Wanted for SpinLock<A, ()> {
    fn section(&self, slot: &Slot, priority: Priority, section: &mut dyn FnMut()) {
        let _guard = self.lock_with(A::request(slot, priority));
        section();
    }
}

/// The same readings of nothing, which every reading contains.
pub(super) fn read_nothing(readings: &mut [u64], cold: bool) {
    read_each(&[0_u64; 8], readings, cold, || black_box(()));
}

/// Cycles of `turn`, into each place, after emptying the caches of `subject` if `cold`.
#[inline(always)]
pub(super) fn read_each<S>(subject: &S, readings: &mut [u64], cold: bool, turn: impl Fn()) {
    for reading in readings {
        if cold {
            cycles::flush(subject);
        }
        let before = cycles::now();
        turn();
        *reading = cycles::now() - before;
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

/// What others are held against, for it is FIFO.
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
