//! Interruptible sections: a published experiment with a shared priority queue, and the costs of sections.

pub mod costs;
pub mod experiment;
