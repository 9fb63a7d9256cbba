//! Any text as an rt-app workload: a system that round-trips, or faults with places.
#![no_main]

#[path = "../../crates/model/tests/format/check/mod.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|source: &str| {
    if let Err(error) = check::rt_app(source) {
        panic!("{error}");
    }
});
