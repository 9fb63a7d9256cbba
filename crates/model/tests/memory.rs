//! The memory that the readers take for files that are not valid: at most fifty bytes for each byte of the file.
//!
//! This test runs in a process of its own, because the peak of the memory is that of the process.
#![cfg(target_os = "linux")]

use lockwright_model::format::{import_rt_app, parse_overheads, parse_system};
use std::fs;

/// The maximum number of bytes of memory for each byte of the file.
const MOST: usize = 50;

/// The length of the files: 4 MiB if LOCKWRIGHT_DEEP is set, as in CI.
fn length() -> usize {
    if std::env::var_os("LOCKWRIGHT_DEEP").is_some() { 4 << 20 } else { 1 << 20 }
}

/// Returns a value in bytes from the kernel's account of the process.
fn memory(key: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("the kernel's account");
    let line = status.lines().find_map(|line| line.strip_prefix(key)).expect("a known key");
    line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") << 10
}

/// Returns the memory that `read` takes at its peak.
fn peak(read: impl FnOnce()) -> usize {
    // This resets the peak.
    fs::write("/proc/self/clear_refs", "5").expect("the process resets its own peak");
    let before = memory("VmRSS:");
    read();
    memory("VmHWM:").saturating_sub(before)
}

fn repeated(part: &str) -> String {
    part.repeat(length() / part.len())
}

#[test]
fn invalid_files_take_at_most_fifty_times_their_length() {
    let mut random = 1_u64;
    let noise: String = (0..length())
        .map(|_| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            if random.is_multiple_of(20) { '\n' } else { char::from((random / 32 % 95) as u8 + 32) }
        })
        .collect();
    let files = [
        ("signs", repeated("=")),
        ("lines of signs", repeated("=\n")),
        ("keys without values", repeated("x=\n")),
        ("words", repeated("word\n")),
        ("one key again and again", repeated("a=1\n")),
        ("quotes", repeated("\"")),
        ("brackets", repeated("[")),
        ("a list of lists", format!("a=[{}]", repeated("[],"))),
        ("a list of tables", format!("a=[{}]", repeated("{a=1},"))),
        ("invalid tasks", repeated("[[task]]\nbody=[{a=1},{a=1},{a=1}]\n")),
        ("a very long body", format!("[[task]]\nbody=[{}]", repeated("{lock=\"r\"},"))),
        ("dotted keys", repeated("a.a.a.a.a.a.a.a=1\n")),
        ("objects", repeated("{\"a\":[1,")),
        ("numbers", format!("[{}]", repeated("1,"))),
        ("noise", noise),
    ];
    for (name, file) in &files {
        for (reader, taken) in [
            ("task set", peak(|| assert!(parse_system(file).is_err(), "{name}"))),
            ("overheads", peak(|| assert!(parse_overheads(file).is_err(), "{name}"))),
            ("rt-app", peak(|| assert!(import_rt_app(file).is_err(), "{name}"))),
        ] {
            println!("{name}, as {reader}: {} times", taken / file.len());
            assert!(taken <= MOST * file.len(), "{name}, as {reader}: {taken} bytes for {}", file.len());
        }
    }
}
