//! The result of the part of a lock or an unlock that calls nothing.

/// How far a lock or an unlock came that calls nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
#[must_use]
pub enum AtOnce {
    /// It is done.
    Done,
    /// Nothing has changed.
    Not,
    /// A robust mutex: the word is announced to the kernel. A lock has locked it; an unlock has taken it out of the
    /// list, and not unlocked it.
    Begun,
}

impl AtOnce {
    #[inline(always)]
    pub(super) const fn of(is_done: bool) -> Self {
        if is_done { Self::Done } else { Self::Not }
    }
}
