//! The word that counts readers and shows the writer's progress, and its transitions as pure functions. `raw` carries
//! them out.
//!
//! ```text
//!   event                    readers                                      flags
//!   a reader comes           inside + 1, or waiting + 1 if WRITER
//!   a writer comes                                                        WRITER, and WRITES if nobody is inside
//!   the last reader leaves   inside - 1                                   (wakes the writer)
//!   the writer continues                                                  WRITES
//!   the writer leaves        inside += waiting, passing += waiting,       neither; PHASE inverted if anybody waited,
//!                            waiting = 0                                  HELD_UP if passing was not 0
//!   an admitted reader runs  passing - 1                                  not HELD_UP if nobody is left
//!   a reader gives up        waiting - 1
//! ```
//! A writer that leaves while others wait also sets LEAVING; see `raw` for this bit.
//!
//! A waiting reader waits at a gate of its phase, a word with priority inheritance that the writer owns. There are
//! gates for two phases. A reader is `passing` from its admission until it has executed and needs its gate no more.
//!
//! When a writer begins to wait in some phase, the gates of this phase must not be in use: all readers that were
//! admitted when this PHASE was last inverted must have passed. They have, because the writer in between waited until
//! they left. The exception is a writer in between that gave up. Then the phase is HELD_UP, and the next writer waits
//! until all have passed.

/// The gates of a phase. With more readers than that, several wait at one gate.
pub(super) const GATES: usize = 4;

/// The most readers that hold the lock or wait for it.
const READERS_MAX: u64 = 0xffff;
const INSIDE: u64 = 1;
const PASSING: u64 = 1 << 16;
const WAITING: u64 = 1 << 32;
/// A writer is inside, or waits until the readers inside have left.
const WRITER: u64 = 1 << 48;
/// The writer is inside.
const WRITES: u64 = 1 << 49;
const PHASE: u64 = 1 << 50;
const HELD_UP: u64 = 1 << 51;
/// A writer that has admitted others may still access the lock.
const LEAVING: u64 = 1 << 52;

/// The value of the word. Zero is a free lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct State(pub u64);

/// Where a reader waits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Place {
    pub phase: usize,
    pub gate: usize,
}

/// The step of a reader that comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Enter {
    /// It holds the lock with this word.
    In(State),
    /// It waits with this word.
    Wait(State, Place),
    /// There are too many readers.
    Full,
}

impl State {
    pub(super) const fn inside(self) -> u64 {
        (self.0 / INSIDE) & READERS_MAX
    }

    pub(super) const fn passing(self) -> u64 {
        (self.0 / PASSING) & READERS_MAX
    }

    pub(super) const fn waiting(self) -> u64 {
        (self.0 / WAITING) & READERS_MAX
    }

    pub(super) const fn phase(self) -> usize {
        (self.0 & PHASE != 0) as usize
    }

    pub(super) const fn has_writer(self) -> bool {
        self.0 & WRITER != 0
    }

    pub(super) const fn is_written(self) -> bool {
        self.0 & WRITES != 0
    }

    /// Whether a writer that comes must wait until readers have passed.
    pub(super) const fn is_held_up(self) -> bool {
        self.0 & HELD_UP != 0
    }

    /// Whether a writer that left may still access the lock.
    pub(super) const fn is_leaving(self) -> bool {
        self.0 & LEAVING != 0
    }

    /// Whether no thread holds the lock or waits for it.
    pub(super) const fn is_free(self) -> bool {
        self.0 & !(PHASE | LEAVING) == 0
    }

    /// The half that changes when a reader leaves or passes, for which a writer waits.
    pub(super) const fn low(self) -> u32 {
        self.0 as u32
    }

    /// A reader comes. A `nested` one may hold the lock already, so it does not wait for a writer that waits for it.
    pub(super) const fn enter(self, nested: bool) -> Enter {
        if self.inside() + self.waiting() == READERS_MAX {
            return Enter::Full;
        }
        if self.has_writer() && (self.is_written() || !nested) {
            let place = Place { phase: self.phase(), gate: (self.waiting() % GATES as u64) as usize };
            Enter::Wait(Self(self.0 + WAITING), place)
        } else {
            Enter::In(Self(self.0 + INSIDE))
        }
    }

    /// Whether a reader that waited in this phase has been admitted, as it has not passed yet.
    pub(super) const fn has_admitted(self, phase: usize) -> bool {
        !(self.has_writer() && self.phase() == phase)
    }

    /// An admitted reader executes. Returns whether a writer may wait for that.
    pub(super) const fn pass(self) -> (Self, bool) {
        let next = self.0 - PASSING;
        if self.passing() == 1 { (Self(next & !HELD_UP), self.is_held_up()) } else { (Self(next), false) }
    }

    /// A reader that waits and has not been admitted gives up.
    pub(super) const fn give_up(self) -> Self {
        Self(self.0 - WAITING)
    }

    /// A reader leaves. Returns whether a writer waits for that, or `None` if no reader is inside.
    pub(super) const fn reader_leaves(self) -> Option<(Self, bool)> {
        if self.inside() == 0 {
            return None;
        }
        Some((Self(self.0 - INSIDE), self.inside() == 1 && self.has_writer()))
    }

    /// The only writer comes, while the phase is not held up.
    pub(super) const fn writer_comes(self) -> Self {
        Self(self.0 | WRITER).writer_continues()
    }

    /// The writer enters if no reader is inside.
    pub(super) const fn writer_continues(self) -> Self {
        if self.inside() == 0 { Self(self.0 | WRITES) } else { self }
    }

    /// The writer leaves, or gives up. All waiting readers are admitted.
    pub(super) const fn writer_leaves(self) -> Self {
        let waiting = self.waiting();
        if waiting == 0 {
            return Self(self.0 & !(WRITER | WRITES));
        }
        let held_up = if self.passing() > 0 { HELD_UP } else { 0 };
        let counts = self.0 - waiting * WAITING + waiting * INSIDE + waiting * PASSING;
        Self((counts & !(WRITER | WRITES) ^ PHASE) | held_up)
    }

    /// The writer that leaves accesses the lock after this.
    pub(super) const fn leaving(self) -> Self {
        Self(self.0 | LEAVING)
    }

    /// The writer that left accesses the lock no more.
    pub(super) const fn left(self) -> Self {
        Self(self.0 & !LEAVING)
    }

    /// The word in a child process whose only thread is the writer.
    pub(super) const fn without_readers(self) -> Self {
        Self(self.0 & (WRITER | WRITES | PHASE))
    }
}
