//! Any bytes as a task set: a system that round-trips, or faults with places.
#![no_main]

#[path = "../../crates/model/tests/format/check/mod.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(error) = check::task_set(bytes) {
        panic!("{error}");
    }
});
