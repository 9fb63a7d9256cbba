//! The types of `lw_ics_*`.

use libc::{c_int, c_void};
use lockwright::ics::{Ics, Stop, Strategy, Transaction, View, Word, Writer};
use std::mem::{self, offset_of};
use std::ptr;

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

/// Private: the check value of a slot, combined with its address, and the kind of a section that writes. Functions that
/// are compiled with their caller follow pointers only if they find these values. Whoever changes one of the private
/// types, or what their fields mean, changes both values: programs compiled before then call the library.
pub const LW_PRIVATE_ICS_SLOT_: u32 = 0x4c57_7331;
pub const LW_PRIVATE_ICS_WRITES_: u32 = 0x4c57_7365;
/// Private: the number of places that belong to slots.
pub const LW_PRIVATE_ICS_PLACES_: u32 = LW_ICS_SLOTS * LW_ICS_WRITES;

/// Private: a word of an object.
#[repr(C)]
pub struct lw_private_ics_word_t {
    pub lw_locator: u64,
    pub lw_place: u64,
}

/// Private: the writes of an attempt.
#[repr(C)]
pub struct lw_private_ics_page_t {
    pub lw_length: u32,
    pub lw_writes: [u32; LW_ICS_WRITES as usize],
}

/// Private: what an object knows about a slot.
#[repr(C)]
pub struct lw_private_ics_record_t {
    pub lw_pages: [lw_private_ics_page_t; 2],
    pub lw_performed: u64,
    lw_claimed: u64,
    pub lw_pending: u64,
    pub lw_last: u64,
    pub lw_spares: [u32; LW_ICS_WRITES as usize],
    pub lw_replaced: [u32; LW_ICS_WRITES as usize],
    pub lw_entries: u64,
    lw_queries: u64,
    pub lw_commits: u64,
    lw_others: [u64; 8],
}

/// Private: head, words, records and places.
#[repr(C)]
pub struct lw_private_ics_object_t {
    pub lw_head: u64,
    lw_spare: [u64; 15],
    pub lw_words: [lw_private_ics_word_t; LW_ICS_WORDS as usize],
    pub lw_records: [lw_private_ics_record_t; LW_ICS_SLOTS as usize],
    pub lw_places: [u64; LW_PRIVATE_ICS_PLACES_ as usize],
}

/// Private: the memory that an object points to.
#[repr(C)]
pub struct lw_private_ics_t {
    /// Not 0 once the process has chosen a signal.
    pub lw_chosen: *const c_int,
    pub lw_commit: u32,
    lw_spare: [u32; 29],
    pub lw_object: lw_private_ics_object_t,
}

/// An object for interruptible sections: `LW_ICS_WORDS` words of 64 bits, initially 0, that sections read and write.
///
/// Initialise it with `lw_ics_init`. Never move or copy it, nor share it between processes: its words are in the memory
/// of the process that made it. Its fields are private.
#[repr(C)]
pub struct lw_ics_t {
    lw_object: *mut lw_private_ics_t,
    lw_check: u32,
    lw_spare: u32,
}

/// A slot: the right to write an object in sections. Only one thread may use a slot at a time; several threads may
/// share one under a lock. Never move or copy it: a copy is no slot. Its fields are private.
#[repr(C)]
pub struct lw_ics_slot_t {
    pub lw_object: *mut lw_private_ics_t,
    pub lw_index: u32,
    pub lw_check: u32,
}

/// Private: one execution of a body.
#[repr(C)]
pub struct lw_private_ics_attempt_t {
    pub lw_object: *mut lw_private_ics_object_t,
    pub lw_page: *mut lw_private_ics_page_t,
    pub lw_record: *mut lw_private_ics_record_t,
    pub lw_slot: u64,
    pub lw_seen: u64,
    pub lw_page_number: u64,
    pub lw_length: u64,
    pub lw_filter: u64,
}

/// A section in progress. Valid only inside the body that receives it. Its fields are private.
#[repr(C)]
pub struct lw_ics_section_t {
    /// What the rest contains.
    lw_kind: u32,
    /// Why a write was refused, or 0: the section cannot commit then, whatever its body returns.
    pub(crate) lw_refused: c_int,
    lw_chosen: *const c_int,
    lw_attempt: lw_private_ics_attempt_t,
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

/// The kind of a section that only reads.
const QUERIES: u32 = 0x4c57_7175;

pub(crate) type Object = Ics<[Word; WORDS], SLOTS, WRITES, Strategy>;
type Attempt<'a> = Transaction<'a, [Word; WORDS], SLOTS, WRITES, Strategy>;
type Look<'a> = View<'a, [Word; WORDS], SLOTS, WRITES, Strategy>;

/// The access of a body to the variables.
///
/// The object outlives its sections: the header forbids to destroy it while a thread is inside one.
pub enum Section<'a> {
    Writes(&'a Attempt<'static>),
    Queries(&'a Look<'static>),
}

impl lw_ics_section_t {
    /// A section that has just begun. `chosen` is not 0 once the process has chosen a signal.
    #[inline]
    pub fn writes(attempt: Attempt<'static>, chosen: *const c_int) -> Self {
        // SAFETY: both types have the same size, fields and offsets, as asserted below, and the fields of the mirror
        // take all bits.
        let lw_attempt = unsafe { mem::transmute::<Attempt<'static>, lw_private_ics_attempt_t>(attempt) };
        Self { lw_kind: LW_PRIVATE_ICS_WRITES_, lw_refused: 0, lw_chosen: chosen, lw_attempt }
    }

    /// A section that reads by this view.
    ///
    /// # Safety
    /// The view lives as long as the section.
    pub unsafe fn queries(view: &Look<'_>) -> Self {
        // SAFETY: zeros are null pointers and integers.
        let mut lw_attempt: lw_private_ics_attempt_t = unsafe { mem::zeroed() };
        lw_attempt.lw_object = ptr::from_ref(view).cast_mut().cast();
        Self { lw_kind: QUERIES, lw_refused: 0, lw_chosen: ptr::null(), lw_attempt }
    }

    #[inline]
    pub fn part(&self) -> Section<'_> {
        // SAFETY: the kind says what `writes` (or the same function of the header) or `queries` stored here. An
        // attempt of the header has the layout of that of Rust, as asserted below.
        unsafe {
            match self.lw_kind {
                LW_PRIVATE_ICS_WRITES_ => Section::Writes(&*(&raw const self.lw_attempt).cast()),
                _ => Section::Queries(&*self.lw_attempt.lw_object.cast()),
            }
        }
    }

    /// Returns the attempt, if the section writes.
    #[inline]
    pub fn attempt(&mut self) -> Option<&mut Attempt<'static>> {
        // SAFETY: as in `part`.
        (self.lw_kind == LW_PRIVATE_ICS_WRITES_).then(|| unsafe { &mut *(&raw mut self.lw_attempt).cast() })
    }

    /// Returns whether the section can still commit.
    pub fn check(&self) -> Result<(), Stop> {
        match self.part() {
            Section::Writes(attempt) => attempt.check(),
            Section::Queries(view) => view.check(),
        }
    }

    /// Ends an attempt whose body gave this answer, and commits it if it can. Returns how it ended, and the answer.
    ///
    /// # Safety
    /// The attempt has not ended.
    pub unsafe fn end(&self, answer: c_int) -> (Result<(), Stop>, c_int) {
        let answer = if answer == 0 { self.lw_refused } else { answer };
        match self.part() {
            // SAFETY: the caller guarantees it.
            Section::Writes(attempt) => (unsafe { Writer::end(attempt, Self::decide(answer)) }, answer),
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

/// What the functions of the header access is where they expect it. They exist on this architecture only.
#[cfg(target_arch = "x86_64")]
const _: () = {
    use lockwright::ics::Offsets;
    use {
        lw_private_ics_attempt_t as attempt, lw_private_ics_object_t as object, lw_private_ics_page_t as page,
        lw_private_ics_record_t as record, lw_private_ics_word_t as word,
    };
    const fn assert_same(ours: &[usize], theirs: &[usize]) {
        assert!(ours.len() == theirs.len());
        let mut nth = 0;
        // BOUND: the number of offsets.
        while nth < ours.len() {
            assert!(ours[nth] == theirs[nth], "a private type of the header has another layout");
            nth += 1;
        }
    }
    let Offsets { object: of_object, word: of_word, record: of_record, page: of_page, attempt: of_attempt, .. } =
        Object::OFFSETS;
    assert_same(
        &of_object,
        &[
            offset_of!(object, lw_head),
            offset_of!(object, lw_words),
            offset_of!(object, lw_records),
            offset_of!(object, lw_places),
        ],
    );
    assert_same(&of_word, &[offset_of!(word, lw_locator), offset_of!(word, lw_place), size_of::<word>()]);
    assert_same(
        &of_record,
        &[
            offset_of!(record, lw_pages),
            offset_of!(record, lw_performed),
            offset_of!(record, lw_pending),
            offset_of!(record, lw_last),
            offset_of!(record, lw_spares),
            offset_of!(record, lw_replaced),
            offset_of!(record, lw_entries),
            offset_of!(record, lw_commits),
            size_of::<record>(),
        ],
    );
    assert_same(&of_page, &[offset_of!(page, lw_length), offset_of!(page, lw_writes), size_of::<page>()]);
    assert_same(
        &of_attempt,
        &[
            offset_of!(attempt, lw_object),
            offset_of!(attempt, lw_page),
            offset_of!(attempt, lw_record),
            offset_of!(attempt, lw_slot),
            offset_of!(attempt, lw_seen),
            offset_of!(attempt, lw_page_number),
            offset_of!(attempt, lw_length),
            offset_of!(attempt, lw_filter),
            size_of::<attempt>(),
        ],
    );
};
