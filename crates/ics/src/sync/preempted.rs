//! The atomics of `core`, with a preemption point before each access.

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
