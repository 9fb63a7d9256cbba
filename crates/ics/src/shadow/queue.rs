//! A priority queue: the one of the paper's experiment.

use super::{Nodes, Section, WRITES};
use crate::Stats;
use crate::commit::{Commit, Locked};
use crate::ics::Ics;
use crate::slot::Slot;
use crate::sync::constructor;
use crate::transaction::Stop;

const PRIORITY: usize = 0;
const VALUE: usize = 1;
const FIELDS: usize = 2;

type Storage<const NODES: usize, const SLOTS: usize> = Nodes<NODES, FIELDS, SLOTS>;

/// Values in the order of their priorities, the greatest first, those of one priority in the order of their commits. Holds `NODES` − `SLOTS` of them.
///
/// # Bound
/// As for [`Ics`] with three writes. To enqueue reads as many entries as are before the new one; to dequeue, one.
///
/// # Examples
/// ```
/// use lockwright_ics::PriorityQueue;
///
/// static QUEUE: PriorityQueue<16, 4> = PriorityQueue::new();
///
/// let mut slot = QUEUE.slot().expect("four threads may have one");
/// slot.enqueue(1, 100)?;
/// slot.enqueue(7, 700)?;
/// assert_eq!(slot.dequeue()?, Some((7, 700)));
/// # Ok::<(), lockwright_ics::Stop>(())
/// ```
#[derive(Debug)]
pub struct PriorityQueue<const NODES: usize, const SLOTS: usize, C = Locked> {
    ics: Ics<Storage<NODES, SLOTS>, SLOTS, WRITES, C>,
}

impl<const NODES: usize, const SLOTS: usize> PriorityQueue<NODES, SLOTS> {
    constructor! {
        /// Empty, for threads on whatever processors.
        #[must_use]
        pub fn new() -> Self {
            Self { ics: Ics::new(Nodes::new()) }
        }
    }
}

impl<const NODES: usize, const SLOTS: usize> Default for PriorityQueue<NODES, SLOTS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const NODES: usize, const SLOTS: usize, C> PriorityQueue<NODES, SLOTS, C> {
    constructor! {
        /// Empty, with another strategy.
        #[must_use]
        pub fn with(commit: C) -> Self {
            Self { ics: Ics::with(Nodes::new(), commit) }
        }
    }

    /// The strategy.
    pub const fn commit(&self) -> &C {
        self.ics.commit()
    }
}

impl<const NODES: usize, const SLOTS: usize, C: Commit> PriorityQueue<NODES, SLOTS, C> {
    /// See [`Ics::slot`].
    pub fn slot(&self) -> Option<QueueSlot<'_, NODES, SLOTS, C>> {
        self.ics.slot().map(QueueSlot)
    }

    /// See [`Ics::shared_slot`].
    ///
    /// # Safety
    /// As there.
    #[allow(unsafe_code)] // It says what the caller must promise; nothing unsafe is done.
    pub unsafe fn shared_slot(&self, index: usize) -> Option<QueueSlot<'_, NODES, SLOTS, C>> {
        // SAFETY: the caller's promise.
        unsafe { self.ics.shared_slot(index) }.map(QueueSlot)
    }

    /// See [`Ics::reserve`].
    pub fn reserve(&self, index: usize) {
        self.ics.reserve(index);
    }

    /// What would be dequeued: priority and value.
    ///
    /// # Bound
    /// As [`Ics::query`].
    pub fn peek(&self) -> Option<(u64, u64)> {
        let peeked = self.ics.query(|view| {
            let Some(first) = Storage::<NODES, SLOTS>::follow(view, Storage::<NODES, SLOTS>::ROOT)? else {
                return Ok(None);
            };
            let priority = view.read(Storage::<NODES, SLOTS>::field(first, PRIORITY))?;
            Ok(Some((priority, view.read(Storage::<NODES, SLOTS>::field(first, VALUE))?)))
        });
        // Nothing else stops it than conflicts.
        peeked.unwrap_or(None)
    }
}

/// Asks whether a section can still commit.
pub type Still<'a> = &'a dyn Fn() -> Result<(), Stop>;

/// The right to change a [`PriorityQueue`].
#[derive(Debug)]
pub struct QueueSlot<'q, const NODES: usize, const SLOTS: usize, C>(Slot<'q, Storage<NODES, SLOTS>, SLOTS, WRITES, C>);

impl<const NODES: usize, const SLOTS: usize, C: Commit> QueueSlot<'_, NODES, SLOTS, C> {
    /// Puts a value in, behind those of its priority and of greater ones.
    ///
    /// # Errors
    /// [`Stop::Full`].
    pub fn enqueue(&mut self, priority: u64, value: u64) -> Result<(), Stop> {
        self.enqueue_after(priority, value, |_| Ok(()))
    }

    /// The same, with work that is done in the section, each time it is begun anew. The work may ask now and then whether the section can still commit, and stop with the answer
    /// if it cannot.
    ///
    /// # Errors
    /// [`Stop::Full`], and what the work stops with.
    pub fn enqueue_after(
        &mut self,
        priority: u64,
        value: u64,
        mut work: impl FnMut(Still<'_>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        self.0.update(|section| {
            work(&|| section.check())?;
            Self::put(section, priority, value)
        })
    }

    fn put(section: &mut Section<'_, NODES, FIELDS, SLOTS, C>, priority: u64, value: u64) -> Result<(), Stop> {
        let (link, _) = Storage::<NODES, SLOTS>::find(section, |section, node| {
            Ok(section.read(Storage::<NODES, SLOTS>::field(node, PRIORITY))? < priority)
        })?;
        Storage::<NODES, SLOTS>::put_in(section, link, [priority, value])
    }

    /// Takes the first out: priority and value; `None` where there is none.
    ///
    /// # Errors
    /// None but those of an object that is not its own any more.
    pub fn dequeue(&mut self) -> Result<Option<(u64, u64)>, Stop> {
        self.dequeue_after(|_| Ok(()))
    }

    /// The same, with work that is done in the section, as for [`QueueSlot::enqueue_after`].
    ///
    /// # Errors
    /// What the work stops with.
    pub fn dequeue_after(
        &mut self,
        mut work: impl FnMut(Still<'_>) -> Result<(), Stop>,
    ) -> Result<Option<(u64, u64)>, Stop> {
        self.0.update(|section| {
            work(&|| section.check())?;
            let root = Storage::<NODES, SLOTS>::ROOT;
            let Some(first) = Storage::<NODES, SLOTS>::follow(section, root)? else { return Ok(None) };
            let priority = section.read(Storage::<NODES, SLOTS>::field(first, PRIORITY))?;
            let value = section.read(Storage::<NODES, SLOTS>::field(first, VALUE))?;
            Storage::<NODES, SLOTS>::take_out(section, root, first)?;
            Ok(Some((priority, value)))
        })
    }

    /// What the slot did.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.0.stats()
    }
}
