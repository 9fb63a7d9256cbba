//! Mutexes and condition variables on real threads and processes, through the public interface.
//!
//! Tests that need levels of SCHED_FIFO print the reason and pass if the permission is missing; with
//! LOCKWRIGHT_REQUIRE_RT set they fail. Each has a watchdog above all its threads.

mod ceilings;
mod condvar;
mod condvar_deadlock;
mod condvar_mixed;
mod condvar_stress;
mod counted;
mod counting;
mod deadlock;
mod death;
mod fifo;
mod forked;
mod handover;
mod inheritance;
mod killed;
#[path = "../../../sys/tests/support/machine.rs"]
mod machine;
mod reference;
mod robust_list;
mod support;
