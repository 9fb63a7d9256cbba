//! Mutations of the algorithms: each removes a part on which correctness rests, and a test must notice.

/// Whether a test has removed a part of the algorithm. Always false outside tests.
macro_rules! removed {
    ($part:ident) => {{
        #[cfg(test)]
        let removed = $crate::mutation::Part::$part.is_removed();
        #[cfg(not(test))]
        let removed = false;
        removed
    }};
}
pub(crate) use removed;

/// The order of a load that has its place in the one order of all sequentially consistent accesses, or of a load
/// without it.
macro_rules! in_order {
    ($part:ident) => {
        if $crate::mutation::removed!($part) { core::sync::atomic::Ordering::Acquire } else { SeqCst }
    };
}
pub(crate) use in_order;

/// A part of an algorithm.
#[cfg(test)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// A participant completes the operation of another one.
    Help,
    /// A participant gives up the place that it has put into the object, and owns the one that it has replaced.
    Exchange,
    /// A reader checks that what it has read is from one instant.
    Validation,
    /// A writer does not write a place that a reader holds.
    Holding,
    /// A reader looks at the current place after it has told all that it wants one.
    ReaderInOrder,
    /// A writer looks at the readers after it has replaced the current place.
    WriterInOrder,
    /// An attempt looks at a request after it has looked at the version.
    RequestInOrder,
}

// A model runs all its threads on one thread of the system.
#[cfg(test)]
std::thread_local! {
    static REMOVED: core::cell::Cell<Option<Part>> = const { core::cell::Cell::new(None) };
}

#[cfg(test)]
impl Part {
    pub(crate) fn is_removed(self) -> bool {
        REMOVED.get() == Some(self)
    }

    /// Executes `work` without this part, on this thread.
    pub(crate) fn without<R>(self, work: impl FnOnce() -> R) -> R {
        struct Restore;
        impl Drop for Restore {
            fn drop(&mut self) {
                REMOVED.set(None);
            }
        }
        let _restore = Restore;
        REMOVED.set(Some(self));
        work()
    }
}
