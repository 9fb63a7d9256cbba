//! Any text as an overheads file: overheads that round-trip, or faults with places.
#![no_main]

#[path = "../../crates/model/tests/format/check/mod.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|source: &str| {
    if let Err(error) = check::overheads(source) {
        panic!("{error}");
    }
});
