//! One attempt to read.

use crate::commit::Commit;
use crate::data::Data;
use crate::ics::Ics;
use crate::stop::Stop;
use crate::var::Var;
use crate::word::Words;
use core::sync::atomic::Ordering;

/// One attempt to query, as [`Ics::query`] passes it to its body.
///
/// # Examples
/// ```
/// use lockwright_ics::{Ics, Var, Word};
///
/// static SHARED: Ics<[Word; 2], 1, 2> = Ics::new([Word::new(3), Word::new(4)]);
/// let sum = SHARED.query(|view| Ok(view.read(Var::<u64>::new(0))? + view.read(Var::<u64>::new(1))?))?;
/// assert_eq!(sum, 7);
/// # Ok::<(), lockwright_ics::Stop>(())
/// ```
#[derive(Debug)]
pub struct View<'s, W, const WRITERS: usize, const WRITES: usize, C> {
    ics: &'s Ics<W, WRITERS, WRITES, C>,
    seen: u64,
}

impl<W: Words, const WRITERS: usize, const WRITES: usize, C: Commit> Ics<W, WRITERS, WRITES, C> {
    /// Reads a consistent state: everything that `body` reads is from one instant. A query invalidates no section.
    ///
    /// `body` restarts after each commit during it, so it should have no effect except its result.
    ///
    /// # Errors
    /// The error of `body`, except [`Stop::Conflict`], which restarts it.
    ///
    /// # Bound
    /// Each attempt takes an entry, and there is one more attempt for each commit during the query.
    pub fn query<R>(
        &self,
        mut body: impl FnMut(&View<'_, W, WRITERS, WRITES, C>) -> Result<R, Stop>,
    ) -> Result<R, Stop> {
        // BOUND: the commits of other threads.
        loop {
            let view = self.view();
            match body(&view) {
                // The body may have ignored a conflict.
                Ok(result) if self.validate(view.seen()).is_ok() => return Ok(result),
                Ok(_) | Err(Stop::Conflict) => {}
                stopped => return stopped,
            }
        }
    }

    /// Begins one attempt.
    fn view(&self) -> View<'_, W, WRITERS, WRITES, C> {
        // ORDERING: Acquire pairs with the Release of the commit.
        let seen = self.head.load(Ordering::Acquire);
        self.help(seen);
        View::new(self, seen)
    }
}

impl<'s, W: Words, const WRITERS: usize, const WRITES: usize, C: Commit> View<'s, W, WRITERS, WRITES, C> {
    pub(crate) const fn new(ics: &'s Ics<W, WRITERS, WRITES, C>, seen: u64) -> Self {
        Self { ics, seen }
    }

    pub(crate) const fn seen(&self) -> u64 {
        self.seen
    }

    /// Reads a variable. It and all earlier reads of this attempt are from one instant.
    ///
    /// # Errors
    /// [`Stop::Conflict`] if that no longer holds, [`Stop::NoSuchWord`] if the object does not have the variable.
    #[inline]
    pub fn read<T: Data>(&self, var: Var<T>) -> Result<T, Stop> {
        var.take(|index| self.ics.read(index, self.seen))
    }

    /// Checks whether everything read so far is still current. A long query calls it from time to time.
    ///
    /// # Errors
    /// [`Stop::Conflict`] if another section committed.
    #[inline]
    pub fn check(&self) -> Result<(), Stop> {
        self.ics.validate(self.seen)
    }
}
