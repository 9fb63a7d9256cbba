//! The types of `lw_ics_*`.

use libc::{c_int, c_void};
use lockwright::ics::{Stop, Strategy, Transaction, View, Word, Writer};

/// The number of words of a `lw_ics_t`.
pub const LW_ICS_WORDS: u32 = 64;
/// The number of slots of a `lw_ics_t`.
pub const LW_ICS_SLOTS: u32 = 16;
/// The most words of a `lw_ics_t` that one section may write.
pub const LW_ICS_WRITES: u32 = 16;

/// Commits by restartable sequences, for threads of one CPU, if the system has them, otherwise by compare-and-swap.
/// This is correct wherever threads execute: once a thread enters on another CPU, the object changes to
/// compare-and-swap permanently.
pub const LW_ICS_AUTO: u32 = 0;
/// Commits by compare-and-swap, for threads of several CPUs.
pub const LW_ICS_LOCKED: u32 = 1;
/// Commits by compare-and-swap without the LOCK prefix; on processors other than x86-64, the same as `LW_ICS_LOCKED`.
/// All threads that enter must be bound to one CPU, and nothing may move them. Otherwise updates are lost.
pub const LW_ICS_PLAIN: u32 = 2;
/// Commits by restartable sequences. Only `lw_ics_commit` returns this value; `lw_ics_init` does not accept it.
pub const LW_ICS_RSEQ: u32 = 3;

/// An object for interruptible sections: `LW_ICS_WORDS` words of 64 bits, initially 0, that sections read and write.
///
/// Initialise it with `lw_ics_init`. Never move or copy it, nor share it between processes: its words are in the memory
/// of the process that made it. Its fields are private.
#[repr(C)]
pub struct lw_ics_t {
    lw_object: *const c_void,
    lw_check: u32,
    lw_spare: u32,
}

/// A slot: the right to write an object in sections. Only one thread may use a slot at a time; several threads may
/// share one under a lock. Never move or copy it: a copy is no slot. Its fields are private.
#[repr(C)]
pub struct lw_ics_slot_t {
    lw_object: *const c_void,
    lw_index: u32,
    lw_check: u32,
}

/// A section in progress. Valid only inside the body that receives it.
pub struct lw_ics_section_t {
    pub part: Section,
    /// Why a write was refused, or 0: the section cannot commit then, whatever its body returns.
    pub refused: c_int,
}

/// Statistics of a slot. They count since `lw_ics_init`, whichever threads used the slot.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct lw_ics_stats_t {
    /// Attempts to execute a section.
    pub entries: u64,
    /// Attempts that committed.
    pub commits: u64,
    /// Attempts whose commit was refused because another section had committed.
    pub conflicts: u64,
    /// Attempts that ended earlier, at a read or check that found another commit.
    pub restarts: u64,
    /// Sections of other slots whose writes this slot performed.
    pub helped: u64,
    /// Those of `restarts` that the signal of `lw_ics_set_signal` cut short.
    pub cuts: u64,
}

/// The body of an interruptible section.
///
/// A body may be executed several times, each time from its beginning. It should only read, compute, write, and leave
/// results in the memory at `argument`. It accesses the object only through `lw_ics_read` and `lw_ics_write`. If one of
/// these returns a value other than 0, the body returns that value at once.
///
/// A body may take time, call other functions, and enter sections of other objects. It must not enter a section of the
/// same object, close the slot, or leave by `longjmp` or a C++ exception.
///
/// Returns:
/// - 0: commit.
/// - EAGAIN: begin again.
/// - Any other number: give up. Nothing is changed, and the caller of the section gets this number.
pub type lw_ics_body_t =
    Option<unsafe extern "C-unwind" fn(section: *mut lw_ics_section_t, argument: *mut c_void) -> c_int>;

// Not for C.
pub(crate) const WORDS: usize = LW_ICS_WORDS as usize;
pub(crate) const SLOTS: usize = LW_ICS_SLOTS as usize;
pub(crate) const WRITES: usize = LW_ICS_WRITES as usize;

/// The access of a body to the variables.
///
/// The object outlives its sections: the header forbids to destroy it while a thread is inside one.
pub enum Section {
    Writes(Transaction<'static, [Word; WORDS], SLOTS, WRITES, Strategy>),
    Queries(&'static View<'static, [Word; WORDS], SLOTS, WRITES, Strategy>),
}

impl lw_ics_section_t {
    /// Returns whether the section can still commit.
    pub fn check(&self) -> Result<(), Stop> {
        match &self.part {
            Section::Writes(transaction) => transaction.check(),
            Section::Queries(view) => view.check(),
        }
    }

    /// A section that has just begun.
    #[inline(always)]
    pub fn writes(transaction: Transaction<'static, [Word; WORDS], SLOTS, WRITES, Strategy>) -> Self {
        Self { part: Section::Writes(transaction), refused: 0 }
    }

    /// Ends an attempt whose body gave this answer, and commits it if it can. Returns how it ended, and the answer.
    ///
    /// # Safety
    /// The attempt has not ended.
    #[inline(always)]
    pub unsafe fn end(&self, answer: c_int) -> (Result<(), Stop>, c_int) {
        let answer = if answer == 0 { self.refused } else { answer };
        match &self.part {
            // SAFETY: the caller guarantees it.
            Section::Writes(transaction) => (unsafe { Writer::end(transaction, Self::decide(answer)) }, answer),
            Section::Queries(_) => (Self::decide(answer), answer),
        }
    }

    /// Decides by the body's answer how the section ends.
    #[inline]
    pub fn decide(answer: c_int) -> Result<(), Stop> {
        match answer {
            0 => Ok(()),
            libc::EAGAIN => Err(Stop::Conflict),
            _ => Err(Stop::Cancelled),
        }
    }
}
