//! `lockwright study list`: the published studies.

use crate::console::Console;
use crate::exit::Exit;
use crate::layout::Column;

/// The studies: the command, the paper, and what comes out.
const STUDIES: [[&str; 3]; 3] = [
    [
        "lockwright study bpl",
        "Bounded Priority-Aware Locking for Real-Time Kernels",
        "inversions and weighted delays of three orders of a lock under bursts of requests",
    ],
    [
        "lockwright study rtas2008",
        "Brandenburg, Calandrino, Block, Leontyev, Anderson, Real-Time Synchronization on Multiprocessors: To Block or \
         Not to Block, to Suspend or Spin?, RTAS 2008",
        "figures 1 to 4, 7 to 20 and 49 to 76: schedulability and tardiness under EDF with spinlocks, semaphores and \
         objects; the conclusions, checked",
    ],
    [
        "lockwright measure ics",
        "Johnson, Harathi, Interruptible Critical Sections",
        "costs and response times of a shared priority queue under five mechanisms, measured on this machine",
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
