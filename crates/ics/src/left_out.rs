//! What can be left out, for tests of the tests; elsewhere nothing is.

/// A part that correctness rests on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// A helper looks neither at the head nor at the word before it changes the word.
    StaleHelper,
    /// A read does not look whether it is from one instant.
    Validation,
    /// A slot writes into the page that may still be posted.
    SecondPage,
    /// A writer does not keep what it writes behind its look at the head.
    WriterFence,
    /// A reader does not keep its second look at the head behind what it reads.
    ReaderFence,
    /// An owner that enters right behind its own commit does not mark it as performed.
    OwnMark,
    /// A section prepares a node while it is in the pool still.
    OwnNode,
    /// A variable of several words is written without a look whether there is room for all of them.
    Room,
    /// An owner notes what it posts after it has posted it.
    NoteBefore,
    /// An owner forgets that an attempt is to be settled before it has settled it.
    SettleBefore,
}

#[cfg(not(test))]
#[inline]
pub(crate) const fn is_left_out(_: Part) -> bool {
    false
}

#[cfg(test)]
pub(crate) use chosen::{is_left_out, leaving_out};

#[cfg(test)]
mod chosen {
    use super::Part;
    use core::cell::Cell;

    // A model runs all its threads on one thread of the system, and so does the search.
    std::thread_local! {
        static LEFT_OUT: Cell<Option<Part>> = const { Cell::new(None) };
    }

    pub(crate) fn is_left_out(part: Part) -> bool {
        LEFT_OUT.get() == Some(part)
    }

    pub(crate) fn leaving_out<R>(part: Option<Part>, work: impl FnOnce() -> R) -> R {
        struct Back;
        impl Drop for Back {
            fn drop(&mut self) {
                LEFT_OUT.set(None);
            }
        }
        let _back = Back;
        LEFT_OUT.set(part);
        work()
    }
}
