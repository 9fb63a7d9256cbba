//! Constructors and arrays that are constant, except in a model, whose atomics are made when the program executes.
//!
//! This is one file: the crates `ics` and `objects` contain links to that of `locks`.

/// A constructor, which is constant except in a model.
#[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
macro_rules! constructor {
    ($(#[$attribute:meta])* $visibility:vis fn $($rest:tt)+) => { $(#[$attribute])* $visibility const fn $($rest)+ };
}
#[cfg(any(lockwright_loom, lockwright_shuttle))]
macro_rules! constructor {
    ($($function:tt)+) => { $($function)+ };
}

/// An array of the values of an expression, which is constant except in a model.
#[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
macro_rules! array {
    ($element:expr) => {
        [const { $element }; _]
    };
}
#[cfg(any(lockwright_loom, lockwright_shuttle))]
macro_rules! array {
    ($element:expr) => {
        core::array::from_fn(|_| $element)
    };
}

pub(crate) use {array, constructor};
