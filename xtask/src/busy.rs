//! Runs the tests on real threads ten times while ordinary threads want every processor.
//!
//! A test must notice that it was disturbed: it may repeat an attempt, and it may end as not judged, which is a failure
//! here. It must not call a correct lock wrong. The deliberately wrong protocols among these tests must still be found
//! each time.

use crate::{tests, tool};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

const ROUNDS: usize = 10;
/// The time after which a program hangs.
const TIME_MAX: &str = "15m";
/// Threads that compute, and threads that write to memory.
const COMPUTING: usize = 4;
const WRITING: usize = 2;
/// The memory that each of the latter writes to, in bytes: more than caches hold.
const MEMORY: usize = 256 << 20;
const PAGE: usize = 4096;

/// The packages with tests on real threads, and the beginnings of the names of their programs.
const PROGRAMS: [(&str, &str); 2] = [("crates/engine", "realtime-"), ("scenarios", "scenarios-")];

/// Runs the rounds.
pub fn run() -> Result<(), String> {
    let mut programs = tests::programs()?;
    programs.retain(|program| {
        let name = program.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        PROGRAMS.iter().any(|(package, begin)| program.package == tool::root().join(package) && name.starts_with(begin))
    });
    if programs.len() != PROGRAMS.len() {
        return Err(format!("of {} programs on real threads, {} were found", PROGRAMS.len(), programs.len()));
    }
    let over = AtomicBool::new(false);
    let failed = std::thread::scope(|scope| {
        let _end = End(&over);
        for _ in 0..COMPUTING {
            scope.spawn(|| compute(&over));
        }
        for _ in 0..WRITING {
            scope.spawn(|| write(&over));
        }
        let mut failed = Vec::new();
        for round in 1..=ROUNDS {
            for program in &programs {
                let mut command = Command::new("timeout");
                command
                    .arg(TIME_MAX)
                    .arg(&program.file)
                    .current_dir(&program.package)
                    .env("LOCKWRIGHT_REQUIRE_RT", "1");
                failed.extend(tool::run(&mut command).err().map(|why| format!("round {round}: {why}")));
            }
        }
        failed
    });
    eprintln!("xtask: {} of {} runs beside other work failed", failed.len(), ROUNDS * programs.len());
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

/// Ends the threads, also if the rounds end by a panic.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        // ORDERING: Relaxed: nothing else is passed on.
        self.0.store(true, Ordering::Relaxed);
    }
}

fn compute(over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
}

fn write(over: &AtomicBool) {
    let mut memory = vec![0_u8; MEMORY];
    while !over.load(Ordering::Relaxed) {
        for page in memory.chunks_mut(PAGE) {
            page[0] = page[0].wrapping_add(1);
        }
        std::hint::black_box(&mut memory);
    }
}
