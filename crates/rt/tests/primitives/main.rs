//! Semaphores, barriers and one-time initialisation on real threads and processes, through the public interface.
//!
//! Tests that need levels of SCHED_FIFO print the reason and pass if the permission is missing; with
//! LOCKWRIGHT_REQUIRE_RT set they fail. Each has a watchdog above all its threads.

mod barrier;
#[path = "../../../sys/tests/support/machine.rs"]
mod machine;
mod once;
mod semaphore;
#[path = "../mutex/support.rs"]
#[allow(dead_code, reason = "for the other tests of mutexes")]
mod support;
