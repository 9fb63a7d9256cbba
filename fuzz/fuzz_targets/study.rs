//! Any text as a study file: a study that can be judged, or faults with places.
#![no_main]

#[path = "../../crates/study/tests/plan/check/mod.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|source: &str| {
    if let Err(error) = check::plan(source) {
        panic!("{error}");
    }
});
