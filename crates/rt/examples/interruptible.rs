//! Two threads count in interruptible sections: no thread waits for another one, and no update is lost.
//!
//! If another section commits while one is in progress, the latter is executed again from its beginning. So a section
//! computes from what it reads, writes, and has no other effects.
//!
//! `cargo run -p lockwright --example interruptible`

use lockwright::ics::{Ics, Stop, Strategy, Var, Word};
use std::thread;

const COUNT: Var<u64> = Var::new(0);
const SUM: Var<u64> = Var::new(1);

/// Two words; two threads may write, and a section writes at most two words.
type Shared = Ics<[Word; 2], 2, 2, Strategy>;

/// Counts to 1,000. Returns how often a section was executed again.
fn count(shared: &Shared) -> Result<u64, Stop> {
    let mut writer = shared.writer().ok_or(Stop::Full)?;
    for _ in 0..1_000 {
        writer.update(|section| {
            let count = section.read(COUNT)? + 1;
            let sum = section.read(SUM)? + count;
            section.write(COUNT, count)?;
            section.write(SUM, sum)
        })?;
    }
    let stats = writer.stats();
    Ok(stats.conflicts + stats.restarts)
}

fn main() -> Result<(), Stop> {
    // Commits by restartable sequences while all threads are on CPU 0, and otherwise by compare-and-swap.
    let shared: Shared = Ics::with([Word::new(0), Word::new(0)], Strategy::for_cpu(0));
    let again: u64 = thread::scope(|scope| {
        let threads = [scope.spawn(|| count(&shared)), scope.spawn(|| count(&shared))];
        threads.into_iter().map(|thread| thread.join().expect("the thread ends")).sum::<Result<u64, Stop>>()
    })?;
    // A query reads both words as of one instant.
    let (count, sum) = shared.query(|view| Ok((view.read(COUNT)?, view.read(SUM)?)))?;
    println!("counted to {count}, sum {sum}; {again} sections were executed again");
    assert_eq!((count, sum), (2_000, 2_000 * 2_001 / 2));
    Ok(())
}
