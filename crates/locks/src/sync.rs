//! The one door to atomics: core's, or those of a model that explores interleavings (`--cfg lockwright_loom`, `--cfg lockwright_shuttle`).
//!
//! In a model, atomics can be made weaker than they were written ([`fault`]): a test that does not notice says nothing.

#[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
#[allow(unused_imports)] // The door is the same for all, whoever goes through it.
pub(crate) use core::{
    hint::spin_loop,
    sync::atomic::{AtomicU32, AtomicUsize, fence},
};

#[cfg(all(target_has_atomic = "64", not(any(lockwright_loom, lockwright_shuttle))))]
pub(crate) use core::sync::atomic::AtomicU64;

#[cfg(any(lockwright_loom, lockwright_shuttle))]
pub(crate) use model::{AtomicU32, AtomicU64, AtomicUsize, fault, fence, spin_loop};

/// A constructor: constant, except in a model.
macro_rules! constructor {
    ($(#[$meta:meta])* $visibility:vis fn $name:ident($($argument:ident: $type:ty),*) -> Self $body:block) => {
        $(#[$meta])*
        #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
        $visibility const fn $name($($argument: $type),*) -> Self $body

        $(#[$meta])*
        #[cfg(any(lockwright_loom, lockwright_shuttle))]
        $visibility fn $name($($argument: $type),*) -> Self $body
    };
}

/// What `Algorithm` asks of a constructor `new()`.
macro_rules! free_by_new {
    () => {
        #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
        const FREE: Self = Self::new();

        #[cfg(any(lockwright_loom, lockwright_shuttle))]
        fn free() -> Self {
            Self::new()
        }
    };
}

/// An array of what an expression makes, constant except in a model.
macro_rules! array {
    ($element:expr) => {{
        #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
        {
            [const { $element }; _]
        }
        #[cfg(any(lockwright_loom, lockwright_shuttle))]
        {
            core::array::from_fn(|_| $element)
        }
    }};
}

pub(crate) use {array, constructor, free_by_new};

#[cfg(any(lockwright_loom, lockwright_shuttle))]
mod model {
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
                pub(crate) fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                    self.0.fetch_and(value, fault::weaken(order))
                }
            }
        };
    }

    weakened!(AtomicU32, u32);
    weakened!(AtomicU64, u64);
    weakened!(AtomicUsize, usize);

    /// Which orderings are left out, for the tests of the tests: everywhere, or at one place of the text.
    pub(crate) mod fault {
        use core::cell::{Cell, RefCell};
        use core::panic::Location;
        use core::sync::atomic::Ordering;
        use std::collections::BTreeSet;

        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub(crate) enum Fault {
            None,
            /// Acquire counts for nothing.
            NoAcquire,
            /// Release counts for nothing.
            NoRelease,
        }

        /// The place of an access in the text.
        pub(crate) type Site = &'static Location<'static>;

        // A model runs all its threads on one thread of the system.
        std::thread_local! {
            static FAULT: Cell<(Fault, Option<Site>)> = const { Cell::new((Fault::None, None)) };
            /// What could be left out where, if it is asked for.
            static SITES: RefCell<Option<BTreeSet<(Site, Fault)>>> = const { RefCell::new(None) };
        }

        pub(crate) fn set(fault: Fault) {
            FAULT.set((fault, None));
        }

        pub(crate) fn set_at(site: Site, fault: Fault) {
            FAULT.set((fault, Some(site)));
        }

        /// What `work` comes by that could be left out.
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
}
