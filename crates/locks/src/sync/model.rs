//! The atomics of a model, which a test can weaken.

#[cfg(lockwright_loom)]
use loom::{hint, sync::atomic};
#[cfg(lockwright_shuttle)]
use shuttle::{hint, sync::atomic};

use core::sync::atomic::Ordering;

pub(crate) fn spin_loop() {
    hint::spin_loop();
}

#[track_caller]
pub(crate) fn fence(order: Ordering) {
    if fault::weaken(order) != Ordering::Relaxed {
        atomic::fence(order);
    }
}

macro_rules! weakened {
    ($name:ident, $value:ty) => {
        #[derive(Debug)]
        pub struct $name(atomic::$name);

        #[allow(dead_code)] // Not every width is used with every operation.
        impl $name {
            pub(crate) fn new(value: $value) -> Self {
                Self(atomic::$name::new(value))
            }
            #[track_caller]
            pub(crate) fn load(&self, order: Ordering) -> $value {
                self.0.load(fault::weaken(order))
            }
            #[track_caller]
            pub(crate) fn store(&self, value: $value, order: Ordering) {
                self.0.store(value, fault::weaken(order));
            }
            #[track_caller]
            pub(crate) fn swap(&self, value: $value, order: Ordering) -> $value {
                self.0.swap(value, fault::weaken(order))
            }
            #[track_caller]
            pub(crate) fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.0.compare_exchange(current, new, fault::weaken(success), fault::weaken(failure))
            }
            #[track_caller]
            pub(crate) fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                self.0.fetch_add(value, fault::weaken(order))
            }
            #[track_caller]
            pub(crate) fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                self.0.fetch_sub(value, fault::weaken(order))
            }
            #[track_caller]
            pub(crate) fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                self.0.fetch_or(value, fault::weaken(order))
            }
            #[track_caller]
            pub(crate) fn fetch_xor(&self, value: $value, order: Ordering) -> $value {
                self.0.fetch_xor(value, fault::weaken(order))
            }
            #[track_caller]
            pub(crate) fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                self.0.fetch_and(value, fault::weaken(order))
            }
        }
    };
}

weakened!(AtomicU32, u32);
weakened!(AtomicU64, u64);
weakened!(AtomicUsize, usize);

/// The orderings that a test removes: everywhere, or at one place of the source text.
pub(crate) mod fault {
    use core::cell::{Cell, RefCell};
    use core::panic::Location;
    use core::sync::atomic::Ordering;
    use std::collections::BTreeSet;

    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub(crate) enum Fault {
        None,
        /// Acquire is weakened to Relaxed.
        NoAcquire,
        /// Release is weakened to Relaxed.
        NoRelease,
    }

    /// The place of an access in the source text.
    pub(crate) type Site = &'static Location<'static>;

    // A model runs all its threads on one thread of the system.
    std::thread_local! {
        static FAULT: Cell<(Fault, Option<Site>)> = const { Cell::new((Fault::None, None)) };
        /// The faults that are possible at each place, recorded on request.
        static SITES: RefCell<Option<BTreeSet<(Site, Fault)>>> = const { RefCell::new(None) };
    }

    pub(crate) fn set(fault: Fault) {
        FAULT.set((fault, None));
    }

    pub(crate) fn set_at(site: Site, fault: Fault) {
        FAULT.set((fault, Some(site)));
    }

    /// Returns the faults that are possible at the places that `work` executes.
    pub(crate) fn sites(work: impl FnOnce()) -> BTreeSet<(Site, Fault)> {
        SITES.set(Some(BTreeSet::new()));
        work();
        SITES.take().unwrap_or_default()
    }

    #[track_caller]
    pub(super) fn weaken(order: Ordering) -> Ordering {
        let here = Location::caller();
        SITES.with_borrow_mut(|sites| {
            if let Some(sites) = sites {
                let faults = [Fault::NoAcquire, Fault::NoRelease];
                sites.extend(
                    faults.into_iter().filter(|&fault| weaker(order, fault) != order).map(|fault| (here, fault)),
                );
            }
        });
        match FAULT.get() {
            (fault, None) => weaker(order, fault),
            (fault, Some(site)) if site == here => weaker(order, fault),
            _ => order,
        }
    }

    fn weaker(order: Ordering, fault: Fault) -> Ordering {
        match (fault, order) {
            (Fault::NoAcquire, Ordering::Acquire) | (Fault::NoRelease, Ordering::Release) => Ordering::Relaxed,
            (Fault::NoAcquire, Ordering::AcqRel | Ordering::SeqCst) => Ordering::Release,
            (Fault::NoRelease, Ordering::AcqRel | Ordering::SeqCst) => Ordering::Acquire,
            _ => order,
        }
    }
}
