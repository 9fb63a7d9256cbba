//! Any bytes as a recording, and as a script of events in a valid frame: a recording from which results follow, or a
//! problem with its place.
#![no_main]

#[path = "../../crates/record/tests/file/check/mod.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let is_file = bytes.starts_with(b"LWRECORD");
    let checked = if is_file { check::recording(bytes) } else { check::recording(&check::file_of(bytes)) };
    if let Err(error) = checked {
        panic!("{error}");
    }
});
