//! Whole runs on real threads. They take the real-time levels of the machine, so one at a time.
//!
//! Without permission for real time they pass without a word but the reason; with LOCKWRIGHT_REQUIRE_RT set they fail.

mod ending;
mod exclusion;
mod interruptible;
mod judge;
#[path = "../../../sys/tests/support/machine.rs"]
mod machine;
mod order;
mod pathfinder;
mod support;
