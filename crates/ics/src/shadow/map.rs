//! The ordered map.

use super::nodes::{Link, Node, Nodes, Reader, WRITES};
use crate::Stats;
use crate::commit::{Commit, Locked};
use crate::ics::Ics;
use crate::stop::Stop;
use crate::sync::constructor;
use crate::writer::Writer;

const KEY: usize = 0;
const VALUE: usize = 1;
const FIELDS: usize = 2;

type Storage<const NODES: usize, const WRITERS: usize> = Nodes<NODES, FIELDS, WRITERS>;

/// A map of keys to values, in the order of keys. It holds `NODES` − `WRITERS` entries.
///
/// # Bound
/// The bound of [`Ics`] with three writes. Each operation reads the entries up to its key.
///
/// # Examples
/// ```
/// use lockwright_ics::OrderedMap;
///
/// static MAP: OrderedMap<16, 4> = OrderedMap::new();
///
/// let mut writer = MAP.writer().expect("four threads may write");
/// assert_eq!(writer.insert(7, 700)?, None);
/// assert_eq!(writer.insert(7, 701)?, Some(700));
/// assert_eq!(MAP.get(7), Some(701));
/// assert_eq!(writer.remove(7)?, Some(701));
/// # Ok::<(), lockwright_ics::Stop>(())
/// ```
#[derive(Debug)]
pub struct OrderedMap<const NODES: usize, const WRITERS: usize, C = Locked> {
    ics: Ics<Storage<NODES, WRITERS>, WRITERS, WRITES, C>,
}

impl<const NODES: usize, const WRITERS: usize> OrderedMap<NODES, WRITERS> {
    constructor! {
        /// Creates an empty structure for threads on any processors.
        #[must_use]
        pub fn new() -> Self {
            Self { ics: Ics::new(Nodes::new()) }
        }
    }
}

impl<const NODES: usize, const WRITERS: usize> Default for OrderedMap<NODES, WRITERS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const NODES: usize, const WRITERS: usize, C> OrderedMap<NODES, WRITERS, C> {
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

/// Returns the link that leads to the first key that is not below `key`, and the node if it has this key.
fn locate<R: Reader, const NODES: usize, const WRITERS: usize>(
    reader: &R,
    key: u64,
) -> Result<(Link, Option<Node>), Stop> {
    let (link, node) = Storage::<NODES, WRITERS>::find(reader, |reader, node| {
        Ok(reader.bits(Storage::<NODES, WRITERS>::field(node, KEY))? >= key)
    })?;
    match node {
        Some(node) if reader.bits(Storage::<NODES, WRITERS>::field(node, KEY))? == key => Ok((link, Some(node))),
        _ => Ok((link, None)),
    }
}

impl<const NODES: usize, const WRITERS: usize, C: Commit> OrderedMap<NODES, WRITERS, C> {
    /// Claims a free writer, as [`Ics::writer`] does.
    #[must_use = "a writer becomes free when dropped"]
    pub fn writer(&self) -> Option<MapWriter<'_, NODES, WRITERS, C>> {
        self.ics.writer().map(MapWriter)
    }

    /// Returns the writer of a number, claimed or not, as [`Ics::shared_writer`] does.
    ///
    /// # Safety
    /// While the returned writer lives, no other thread uses a writer of this number.
    /// All actions of its last user happen before this call.
    #[must_use]
    #[allow(unsafe_code)] // The caller guarantees the contract of the callee.
    pub unsafe fn shared_writer(&self, index: usize) -> Option<MapWriter<'_, NODES, WRITERS, C>> {
        // SAFETY: the caller has the writer of this number to itself, and the map has no other writers than those of
        // `ics`.
        unsafe { self.ics.shared_writer(index) }.map(MapWriter)
    }

    /// Returns the value of a key.
    ///
    /// # Bound
    /// The bound of [`Ics::query`].
    #[must_use]
    pub fn get(&self, key: u64) -> Option<u64> {
        let got = self.ics.query(|view| match locate::<_, NODES, WRITERS>(view, key)? {
            (_, Some(node)) => view.read(Storage::<NODES, WRITERS>::field(node, VALUE)).map(Some),
            (_, None) => Ok(None),
        });
        // Only a damaged structure stops the query; it has no entries.
        got.unwrap_or(None)
    }

    /// Returns the entry of the least key that is not below this one.
    ///
    /// # Bound
    /// The bound of [`Ics::query`].
    #[must_use]
    pub fn first_from(&self, key: u64) -> Option<(u64, u64)> {
        let first = self.ics.query(|view| {
            let (link, _) = locate::<_, NODES, WRITERS>(view, key)?;
            let Some(node) = Storage::<NODES, WRITERS>::follow(view, link)? else { return Ok(None) };
            let key = view.read(Storage::<NODES, WRITERS>::field(node, KEY))?;
            Ok(Some((key, view.read(Storage::<NODES, WRITERS>::field(node, VALUE))?)))
        });
        first.unwrap_or(None)
    }
}

/// The right to change an [`OrderedMap`].
///
/// # Examples
/// ```
/// use lockwright_ics::{MapWriter, OrderedMap, Stop};
///
/// fn rename<C: lockwright_ics::Commit>(map: &mut MapWriter<'_, 16, 4, C>, from: u64, to: u64) -> Result<(), Stop> {
///     if let Some(value) = map.remove(from)? {
///         map.insert(to, value)?;
///     }
///     Ok(())
/// }
///
/// static MAP: OrderedMap<16, 4> = OrderedMap::new();
/// let mut writer = MAP.writer().expect("four threads may write");
/// writer.insert(1, 100)?;
/// rename(&mut writer, 1, 2)?;
/// assert_eq!((MAP.get(1), MAP.get(2)), (None, Some(100)));
/// # Ok::<(), Stop>(())
/// ```
#[derive(Debug)]
pub struct MapWriter<'m, const NODES: usize, const WRITERS: usize, C>(
    Writer<'m, Storage<NODES, WRITERS>, WRITERS, WRITES, C>,
);

impl<const NODES: usize, const WRITERS: usize, C: Commit> MapWriter<'_, NODES, WRITERS, C> {
    /// Sets the value of a key. Returns its former value.
    ///
    /// # Errors
    /// [`Stop::Full`] if no node is left, [`Stop::Damaged`] if the memory was never constructed.
    pub fn insert(&mut self, key: u64, value: u64) -> Result<Option<u64>, Stop> {
        self.0.update(|section| match locate::<_, NODES, WRITERS>(section, key)? {
            (link, Some(node)) => {
                let before = section.read(Storage::<NODES, WRITERS>::field(node, VALUE))?;
                Storage::<NODES, WRITERS>::replace(section, link, node, [key, value])?;
                Ok(Some(before))
            }
            (link, None) => Storage::<NODES, WRITERS>::insert(section, link, [key, value]).map(|()| None),
        })
    }

    /// Removes a key. Returns its value.
    ///
    /// # Errors
    /// [`Stop::Damaged`] if the memory was never constructed.
    pub fn remove(&mut self, key: u64) -> Result<Option<u64>, Stop> {
        self.0.update(|section| match locate::<_, NODES, WRITERS>(section, key)? {
            (link, Some(node)) => {
                let before = section.read(Storage::<NODES, WRITERS>::field(node, VALUE))?;
                Storage::<NODES, WRITERS>::remove(section, link, node)?;
                Ok(Some(before))
            }
            (_, None) => Ok(None),
        })
    }

    /// Returns the counts of this writer.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.0.stats()
    }
}
