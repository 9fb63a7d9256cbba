//! The one door to atomics: core's; in unit tests the same with a place before each access where another task can come between
//! (`testing::nested`); or those of a model (`--cfg lockwright_loom`, `--cfg lockwright_shuttle`).

#[cfg(not(any(test, lockwright_loom, lockwright_shuttle)))]
pub use core::sync::atomic::{AtomicU32, AtomicU64, fence};

#[cfg(lockwright_loom)]
pub use loom::sync::atomic::{AtomicU32, AtomicU64, fence};
#[cfg(lockwright_shuttle)]
pub use shuttle::sync::atomic::{AtomicU32, AtomicU64, fence};

#[cfg(all(test, not(any(lockwright_loom, lockwright_shuttle))))]
pub use preempted::{AtomicU32, AtomicU64, fence};

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

pub(crate) use {array, constructor};

#[cfg(all(test, not(any(lockwright_loom, lockwright_shuttle))))]
mod preempted {
    use crate::testing::nested::point;
    use core::sync::atomic::{self, Ordering};

    pub fn fence(order: Ordering) {
        atomic::fence(order);
    }

    macro_rules! preempted {
        ($name:ident, $value:ty) => {
            #[derive(Debug)]
            #[repr(transparent)]
            pub struct $name(atomic::$name);

            #[allow(dead_code)] // Not every width is used with every operation.
            impl $name {
                pub const fn new(value: $value) -> Self {
                    Self(atomic::$name::new(value))
                }
                pub fn as_ptr(&self) -> *mut $value {
                    point();
                    self.0.as_ptr()
                }
                pub fn load(&self, order: Ordering) -> $value {
                    point();
                    self.0.load(order)
                }
                pub fn store(&self, value: $value, order: Ordering) {
                    point();
                    self.0.store(value, order);
                }
                pub fn compare_exchange(
                    &self,
                    current: $value,
                    new: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    point();
                    self.0.compare_exchange(current, new, success, failure)
                }
            }
        };
    }

    preempted!(AtomicU32, u32);
    preempted!(AtomicU64, u64);
}
