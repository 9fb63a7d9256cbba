//! The priority queue, which is that of the paper's experiment.

use super::nodes::{Nodes, Section, WRITES};
use crate::Stats;
use crate::commit::{Commit, Locked};
use crate::ics::Ics;
use crate::stop::Stop;
use crate::sync::constructor;
use crate::writer::Writer;

const PRIORITY: usize = 0;
const VALUE: usize = 1;
const FIELDS: usize = 2;

type Storage<const NODES: usize, const WRITERS: usize> = Nodes<NODES, FIELDS, WRITERS>;

/// A queue of values in the order of their priorities, the greatest first, and in the order of their commits among
/// equals.
///
/// It holds `NODES` − `WRITERS` entries.
///
/// # Bound
/// The bound of [`Ics`] with three writes. `enqueue` reads the entries before the new one, and `dequeue` reads one.
///
/// # Examples
/// ```
/// use lockwright_ics::PriorityQueue;
///
/// static QUEUE: PriorityQueue<16, 4> = PriorityQueue::new();
///
/// let mut writer = QUEUE.writer().expect("four threads may write");
/// writer.enqueue(1, 100)?;
/// writer.enqueue(7, 700)?;
/// assert_eq!(writer.dequeue()?, Some((7, 700)));
/// # Ok::<(), lockwright_ics::Stop>(())
/// ```
#[derive(Debug)]
pub struct PriorityQueue<const NODES: usize, const WRITERS: usize, C = Locked> {
    ics: Ics<Storage<NODES, WRITERS>, WRITERS, WRITES, C>,
}

impl<const NODES: usize, const WRITERS: usize> PriorityQueue<NODES, WRITERS> {
    constructor! {
        /// Creates an empty structure for threads on any processors.
        #[must_use]
        pub fn new() -> Self {
            Self { ics: Ics::new(Nodes::new()) }
        }
    }
}

impl<const NODES: usize, const WRITERS: usize> Default for PriorityQueue<NODES, WRITERS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const NODES: usize, const WRITERS: usize, C> PriorityQueue<NODES, WRITERS, C> {
    constructor! {
        /// Creates an empty structure with another strategy.
        #[must_use]
        pub fn with(commit: C) -> Self {
            Self { ics: Ics::with(Nodes::new(), commit) }
        }
    }

    /// Returns the strategy.
    #[must_use]
    pub const fn commit(&self) -> &C {
        self.ics.commit()
    }
}

impl<const NODES: usize, const WRITERS: usize, C: Commit> PriorityQueue<NODES, WRITERS, C> {
    /// Claims a free writer, as [`Ics::writer`] does.
    #[must_use = "a writer becomes free when dropped"]
    pub fn writer(&self) -> Option<QueueWriter<'_, NODES, WRITERS, C>> {
        self.ics.writer().map(QueueWriter)
    }

    /// Returns the writer of a number, claimed or not, as [`Ics::shared_writer`] does.
    ///
    /// # Safety
    /// While the returned writer lives, no other thread uses a writer of this number.
    /// All actions of its last user happen before this call.
    #[must_use]
    #[allow(unsafe_code)] // The caller guarantees the contract of the callee.
    pub unsafe fn shared_writer(&self, index: usize) -> Option<QueueWriter<'_, NODES, WRITERS, C>> {
        // SAFETY: the caller has the writer of this number to itself, and the queue has no other writers than those of
        // `ics`.
        unsafe { self.ics.shared_writer(index) }.map(QueueWriter)
    }

    /// Reserves the writer of a number, as [`Ics::reserve`] does.
    pub fn reserve(&self, index: usize) {
        self.ics.reserve(index);
    }

    /// Returns what the sections of a writer did, as [`Ics::stats`] does.
    #[must_use]
    pub fn stats(&self, index: usize) -> Option<Stats> {
        self.ics.stats(index)
    }

    /// Returns the priority and the value that `dequeue` would return.
    ///
    /// # Bound
    /// The bound of [`Ics::query`].
    #[must_use]
    pub fn peek(&self) -> Option<(u64, u64)> {
        let peeked = self.ics.query(|view| {
            let Some(first) = Storage::<NODES, WRITERS>::follow(view, Storage::<NODES, WRITERS>::ROOT)? else {
                return Ok(None);
            };
            let priority = view.read(Storage::<NODES, WRITERS>::field(first, PRIORITY))?;
            Ok(Some((priority, view.read(Storage::<NODES, WRITERS>::field(first, VALUE))?)))
        });
        // Only a damaged structure stops the query; it has no entries.
        peeked.unwrap_or(None)
    }
}

/// A function that checks whether a section can still commit.
pub type Still<'a> = &'a dyn Fn() -> Result<(), Stop>;

/// The right to change a [`PriorityQueue`].
///
/// # Examples
/// ```
/// use lockwright_ics::{PriorityQueue, Stop};
///
/// static QUEUE: PriorityQueue<3, 1> = PriorityQueue::new();
/// let mut writer = QUEUE.writer().expect("one thread may write");
/// writer.enqueue(1, 10)?;
/// writer.enqueue(1, 11)?;
/// assert_eq!(writer.enqueue(1, 12), Err(Stop::Full));
/// # Ok::<(), Stop>(())
/// ```
#[derive(Debug)]
pub struct QueueWriter<'q, const NODES: usize, const WRITERS: usize, C>(
    Writer<'q, Storage<NODES, WRITERS>, WRITERS, WRITES, C>,
);

impl<const NODES: usize, const WRITERS: usize, C: Commit> QueueWriter<'_, NODES, WRITERS, C> {
    /// Inserts a value behind those of equal and greater priority.
    ///
    /// # Errors
    /// [`Stop::Full`] if no node is left, [`Stop::Damaged`] if the memory was never constructed.
    pub fn enqueue(&mut self, priority: u64, value: u64) -> Result<(), Stop> {
        self.enqueue_after(priority, value, |_| Ok(()))
    }

    /// Executes `work` in the section, and then inserts a value as [`QueueWriter::enqueue`] does.
    ///
    /// `work` is executed in each attempt. It may call its argument from time to time, and return early with its error.
    ///
    /// # Errors
    /// The errors of [`QueueWriter::enqueue`], and the error of `work`.
    pub fn enqueue_after(
        &mut self,
        priority: u64,
        value: u64,
        mut work: impl FnMut(Still<'_>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        self.0.update(|section| {
            work(&|| section.check())?;
            Self::insert(section, priority, value)
        })
    }

    fn insert(section: &mut Section<'_, NODES, FIELDS, WRITERS, C>, priority: u64, value: u64) -> Result<(), Stop> {
        let (link, _) = Storage::<NODES, WRITERS>::find(section, |section, node| {
            Ok(section.read(Storage::<NODES, WRITERS>::field(node, PRIORITY))? < priority)
        })?;
        Storage::<NODES, WRITERS>::insert(section, link, [priority, value])
    }

    /// Removes the first entry. Returns its priority and value, or `None` if the queue is empty.
    ///
    /// # Errors
    /// None for a queue that its constructor made.
    pub fn dequeue(&mut self) -> Result<Option<(u64, u64)>, Stop> {
        self.dequeue_after(|_| Ok(()))
    }

    /// Executes `work` in the section, as [`QueueWriter::enqueue_after`] does, and then removes the first entry.
    ///
    /// # Errors
    /// The error of `work`.
    pub fn dequeue_after(
        &mut self,
        mut work: impl FnMut(Still<'_>) -> Result<(), Stop>,
    ) -> Result<Option<(u64, u64)>, Stop> {
        self.0.update(|section| {
            work(&|| section.check())?;
            let root = Storage::<NODES, WRITERS>::ROOT;
            let Some(first) = Storage::<NODES, WRITERS>::follow(section, root)? else { return Ok(None) };
            let priority = section.read(Storage::<NODES, WRITERS>::field(first, PRIORITY))?;
            let value = section.read(Storage::<NODES, WRITERS>::field(first, VALUE))?;
            Storage::<NODES, WRITERS>::remove(section, root, first)?;
            Ok(Some((priority, value)))
        })
    }

    /// Returns the counts of this writer.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.0.stats()
    }
}
