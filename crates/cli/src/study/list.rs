//! `lockwright study list`: the published studies.

use crate::console::Console;
use crate::exit::Exit;
use crate::layout::Column;

/// The studies: the command, the paper, and what comes out.
const STUDIES: [[&str; 3]; 5] = [
    [
        "lockwright study bpl",
        "Bounded Priority-Aware Locking for Real-Time Kernels",
        "figure 6: inversions and weighted delays of three orders of a lock under bursts of requests, simulated",
    ],
    [
        "lockwright study rtas2008",
        "Brandenburg, Calandrino, Block, Leontyev, Anderson, Real-Time Synchronization on Multiprocessors: To Block or \
         Not to Block, to Suspend or Spin?, RTAS 2008",
        "figures 1 to 4 and 7 to 132: schedulability and tardiness under EDF with spinlocks, semaphores and \
         objects; the conclusions, checked",
    ],
    [
        "lockwright measure locks",
        "Bounded Priority-Aware Locking for Real-Time Kernels",
        "figures 7 and 8: the costs of locks without contention, and their delays over the rate of requests, measured \
         on this machine",
    ],
    [
        "lockwright measure ics",
        "Johnson, Harathi, Interruptible Critical Sections",
        "figures 3 to 8: response times of a shared priority queue under five mechanisms at two utilizations, measured \
         on this machine",
    ],
    [
        "lockwright measure mutex",
        "The fusyn paper, Linux Symposium 2004",
        "figures 8 and 9: the latency of a change of owner over the number of waiters, measured on this machine \
         (--waiters 1,10,100,1000,2000)",
    ],
];

/// Executes `study list`.
///
/// # Errors
/// The console has the message.
pub fn list(console: &Console) -> Result<Exit, Exit> {
    let column = |place: usize| STUDIES.map(|study| study[place].to_owned());
    let drawn = console.layout.draw(&[
        Column::words("command", column(0)),
        Column::prose("paper", column(1)),
        Column::prose("results", column(2)),
    ]);
    console.print_text(&drawn)?;
    Ok(Exit::Holds)
}
