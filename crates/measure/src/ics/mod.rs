//! Interruptible sections: a published experiment with a shared priority queue, and the costs of sections.

pub mod experiment;
pub mod overheads;
