//! Interruptible sections on real threads.

#[path = "../../../sys/tests/support/machine.rs"]
mod machine;
#[allow(dead_code)] // The tests of mutexes share it.
#[path = "../mutex/support.rs"]
mod support;

mod killed;
mod lock;
mod refused;
mod stress;
