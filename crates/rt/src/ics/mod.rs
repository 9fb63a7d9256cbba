//! Interruptible critical sections on Linux: those of [`lockwright_ics`], decided by restartable sequences, and locks for those that would begin again too often.
//!
//! | | |
//! |---|---|
//! | [`Ics`], [`PriorityQueue`], [`OrderedMap`] | what is shared |
//! | [`Strategy`] | how a commit is decided, chosen at start |
//! | [`InterruptibleLock`] | less urgent threads take a lock first, urgent ones do not |
//!
//! # Examples
//! ```
//! use lockwright::ics::{Ics, Strategy, Var, Word};
//!
//! const COUNT: Var<u64> = Var::new(0);
//!
//! // For threads of processor 0; right on the others, too.
//! let shared: Ics<[Word; 1], 4, 1, Strategy> = Ics::with([Word::new(0)], Strategy::for_cpu(0));
//! let mut writer = shared.writer().expect("four threads may write");
//! writer.update(|section| {
//!     let count = section.read(COUNT)?;
//!     section.write(COUNT, count + 1)
//! })?;
//! # Ok::<(), lockwright::ics::Stop>(())
//! ```

mod lock;
mod strategy;

pub use lock::{Gate, GateError, InterruptibleLock, InterruptibleLockBuilder, InterruptibleLockError, Thread};
pub use lockwright_ics::{
    Commit, Data, Ics, Locked, MapWriter, OrderedMap, PriorityQueue, QueueWriter, Single, Stats, Still, Stop,
    Transaction, Value, Var, View, Word, Words, Writer, data,
};
pub use strategy::{Kind, Rseq, Strategy};
