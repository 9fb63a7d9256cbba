//! Any text as a file of SchedCAT and of Cheddar: a system that round-trips, or faults with places.
#![no_main]

#[path = "../../crates/model/tests/format/check/mod.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|source: &str| {
    if let Err(error) = check::xml(source) {
        panic!("{error}");
    }
});
