//! An ordered map.

use super::{Link, Node, Nodes, Reader, WRITES};
use crate::Stats;
use crate::commit::{Commit, Locked};
use crate::ics::Ics;
use crate::slot::Slot;
use crate::sync::constructor;
use crate::transaction::Stop;

const KEY: usize = 0;
const VALUE: usize = 1;
const FIELDS: usize = 2;

type Storage<const NODES: usize, const SLOTS: usize> = Nodes<NODES, FIELDS, SLOTS>;

/// Values by key, in the order of keys. Holds `NODES` − `SLOTS` of them.
///
/// # Bound
/// As for [`Ics`] with three writes. Each operation reads the entries up to its key.
///
/// # Examples
/// ```
/// use lockwright_ics::OrderedMap;
///
/// static MAP: OrderedMap<16, 4> = OrderedMap::new();
///
/// let mut slot = MAP.slot().expect("four threads may have one");
/// assert_eq!(slot.insert(7, 700)?, None);
/// assert_eq!(slot.insert(7, 701)?, Some(700));
/// assert_eq!(MAP.get(7), Some(701));
/// assert_eq!(slot.remove(7)?, Some(701));
/// # Ok::<(), lockwright_ics::Stop>(())
/// ```
#[derive(Debug)]
pub struct OrderedMap<const NODES: usize, const SLOTS: usize, C = Locked> {
    ics: Ics<Storage<NODES, SLOTS>, SLOTS, WRITES, C>,
}

impl<const NODES: usize, const SLOTS: usize> OrderedMap<NODES, SLOTS> {
    constructor! {
        /// Empty, for threads on whatever processors.
        #[must_use]
        pub fn new() -> Self {
            Self { ics: Ics::new(Nodes::new()) }
        }
    }
}

impl<const NODES: usize, const SLOTS: usize> Default for OrderedMap<NODES, SLOTS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const NODES: usize, const SLOTS: usize, C> OrderedMap<NODES, SLOTS, C> {
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

/// The link that leads to the first key that is not below this one; and the node, if it is this key's.
fn locate<R: Reader, const NODES: usize, const SLOTS: usize>(
    reader: &R,
    key: u64,
) -> Result<(Link, Option<Node>), Stop> {
    let (link, node) = Storage::<NODES, SLOTS>::find(reader, |reader, node| {
        Ok(reader.bits(Storage::<NODES, SLOTS>::field(node, KEY))? >= key)
    })?;
    match node {
        Some(node) if reader.bits(Storage::<NODES, SLOTS>::field(node, KEY))? == key => Ok((link, Some(node))),
        _ => Ok((link, None)),
    }
}

impl<const NODES: usize, const SLOTS: usize, C: Commit> OrderedMap<NODES, SLOTS, C> {
    /// See [`Ics::slot`].
    pub fn slot(&self) -> Option<MapSlot<'_, NODES, SLOTS, C>> {
        self.ics.slot().map(MapSlot)
    }

    /// See [`Ics::shared_slot`].
    ///
    /// # Safety
    /// As there.
    #[allow(unsafe_code)] // It says what the caller must promise; nothing unsafe is done.
    pub unsafe fn shared_slot(&self, index: usize) -> Option<MapSlot<'_, NODES, SLOTS, C>> {
        // SAFETY: the caller's promise.
        unsafe { self.ics.shared_slot(index) }.map(MapSlot)
    }

    /// The value of a key.
    ///
    /// # Bound
    /// As [`Ics::query`].
    pub fn get(&self, key: u64) -> Option<u64> {
        let got = self.ics.query(|view| match locate::<_, NODES, SLOTS>(view, key)? {
            (_, Some(node)) => view.read(Storage::<NODES, SLOTS>::field(node, VALUE)).map(Some),
            (_, None) => Ok(None),
        });
        // Nothing else stops it than conflicts.
        got.unwrap_or(None)
    }

    /// The entry of the least key that is not below this one.
    ///
    /// # Bound
    /// As [`Ics::query`].
    pub fn first_from(&self, key: u64) -> Option<(u64, u64)> {
        let first = self.ics.query(|view| {
            let (link, _) = locate::<_, NODES, SLOTS>(view, key)?;
            let Some(node) = Storage::<NODES, SLOTS>::follow(view, link)? else { return Ok(None) };
            let key = view.read(Storage::<NODES, SLOTS>::field(node, KEY))?;
            Ok(Some((key, view.read(Storage::<NODES, SLOTS>::field(node, VALUE))?)))
        });
        first.unwrap_or(None)
    }
}

/// The right to change an [`OrderedMap`].
#[derive(Debug)]
pub struct MapSlot<'m, const NODES: usize, const SLOTS: usize, C>(Slot<'m, Storage<NODES, SLOTS>, SLOTS, WRITES, C>);

impl<const NODES: usize, const SLOTS: usize, C: Commit> MapSlot<'_, NODES, SLOTS, C> {
    /// Gives a key this value. Says which it had.
    ///
    /// # Errors
    /// [`Stop::Full`].
    pub fn insert(&mut self, key: u64, value: u64) -> Result<Option<u64>, Stop> {
        self.0.update(|section| match locate::<_, NODES, SLOTS>(section, key)? {
            (link, Some(node)) => {
                let before = section.read(Storage::<NODES, SLOTS>::field(node, VALUE))?;
                Storage::<NODES, SLOTS>::replace(section, link, node, [key, value])?;
                Ok(Some(before))
            }
            (link, None) => Storage::<NODES, SLOTS>::put_in(section, link, [key, value]).map(|()| None),
        })
    }

    /// Takes a key out. Says which value it had.
    ///
    /// # Errors
    /// None but those of an object that is not its own any more.
    pub fn remove(&mut self, key: u64) -> Result<Option<u64>, Stop> {
        self.0.update(|section| match locate::<_, NODES, SLOTS>(section, key)? {
            (link, Some(node)) => {
                let before = section.read(Storage::<NODES, SLOTS>::field(node, VALUE))?;
                Storage::<NODES, SLOTS>::take_out(section, link, node)?;
                Ok(Some(before))
            }
            (_, None) => Ok(None),
        })
    }

    /// What the slot did.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.0.stats()
    }
}
