//! Whole runs on real threads. They use all real-time levels of the machine, so only one runs at a time.
//!
//! Without permission for real time, the tests pass and print the reason. With LOCKWRIGHT_REQUIRE_RT set, they fail.

mod audit;
mod edf;
mod ending;
mod exclusion;
mod global;
mod global_locks;
mod interruptible;
mod isolated;
mod judge;
mod kernel;
mod long_edf;
#[path = "../../../sys/tests/support/machine.rs"]
mod machine;
mod order;
mod partitions;
mod pathfinder;
mod stress;
mod support;
mod unplug;
