//! Interruptible critical sections on Linux: those of [`lockwright_ics`], with commits by restartable sequences, and
//! locks for sections that would otherwise restart too often.
//!
//! | | |
//! |---|---|
//! | [`Ics`], [`PriorityQueue`], [`OrderedMap`] | the shared objects |
//! | [`Strategy`] | how a commit is decided, chosen at start |
//! | [`InterruptibleLock`] | less urgent threads lock first, urgent ones do not |
//!
//! # Examples
//! ```
//! use lockwright::ics::{Ics, Strategy, Var, Word};
//!
//! const COUNT: Var<u64> = Var::new(0);
//!
//! // For threads of processor 0, and correct on other processors as well.
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
#[doc(hidden)]
pub use lockwright_ics::Offsets;
pub use lockwright_ics::{
    Commit, Data, Ics, Locked, MapWriter, OrderedMap, PriorityQueue, QueueWriter, Single, Stats, Still, Stop,
    Transaction, Value, Var, View, Word, Words, Writer, data,
};
pub use strategy::{Kind, Rseq, Strategy};
