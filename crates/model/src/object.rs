//! Non-blocking objects.

use core::fmt;

/// A kind of shared object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ObjectKind {
    /// A buffer of several words.
    Buffer,
    /// A bounded FIFO queue.
    Queue,
    /// A priority queue.
    Heap,
}

impl ObjectKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Buffer, Self::Queue, Self::Heap];

    /// Returns the name, as files spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Buffer => "buffer",
            Self::Queue => "queue",
            Self::Heap => "heap",
        }
    }
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The guarantee of the operations of an object if other tasks use it at the same time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Progress {
    /// An operation is repeated if operations of others overlap it.
    LockFree,
    /// An operation takes a bounded time, whatever others do.
    WaitFree,
}

impl Progress {
    /// Both guarantees.
    pub const ALL: [Self; 2] = [Self::LockFree, Self::WaitFree];

    /// Returns the name, as files spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LockFree => "lock_free",
            Self::WaitFree => "wait_free",
        }
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
