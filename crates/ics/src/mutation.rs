//! Mutations of the algorithm: each removes a part on which correctness rests, and a test must notice.

use core::cell::Cell;

/// A part of the algorithm that is removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mutation {
    /// A read does not check whether it is from one instant.
    NoValidation,
    /// A writer writes the page that may still be posted.
    OnePage,
    /// A writer that enters right after its own commit does not mark that commit as performed.
    NoOwnMark,
    /// A section prepares a node that is still in the pool.
    PooledNode,
    /// A variable of several words is written without a check for room.
    NoRoomCheck,
    /// A writer notes what it posts after it has posted it.
    LateNote,
    /// A writer clears its pending attempt before it has settled it.
    EarlySettle,
}

// A model runs all its threads on one thread of the system, and so does the search.
std::thread_local! {
    static ACTIVE: Cell<Option<Mutation>> = const { Cell::new(None) };
}

impl Mutation {
    pub(crate) fn is_active(self) -> bool {
        ACTIVE.get() == Some(self)
    }

    /// Executes `work` with the mutation on this thread.
    pub(crate) fn during<R>(self, work: impl FnOnce() -> R) -> R {
        struct Restore;
        impl Drop for Restore {
            fn drop(&mut self) {
                ACTIVE.set(None);
            }
        }
        let _restore = Restore;
        ACTIVE.set(Some(self));
        work()
    }
}
