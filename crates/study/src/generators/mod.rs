//! Random numbers for the parts of generated task sets.
//!
//! All random numbers come from a [`Stream`], which is computed from the seed of a study, the number of a cell, the
//! number of a sample and the number of a part. So each part of each sample can be drawn alone, in any order and on any
//! thread.

mod philox;
#[cfg(test)]
mod testing;

pub use philox::{Philox, Stream};
