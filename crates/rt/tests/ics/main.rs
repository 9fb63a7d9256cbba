//! Interruptible sections on real threads.

#[path = "../../../sys/tests/support/machine.rs"]
mod machine;
#[allow(dead_code)] // It is the mutexes', too.
#[path = "../mutex/support.rs"]
mod support;

mod killed;
mod lock;
mod refused;
mod stress;
