//! The shadow-page form: what is large is prepared in nodes that nobody else sees, and linked in by a few writes.
//!
//! ```text
//!   root ──> node ──> node ──> node          the structure: links are words, changed by commits
//!   pool ──> node ──> node                   nodes nobody has
//!   spares   one node a slot                 its owner may write all of it at once, without a record
//!
//!   put in    spare: fields, link := next     then  link before := spare   pool := behind the top   spare := the top
//!   take out  spare: link := top of the pool  then  link before := next    pool := spare            spare := the node
//!   replace   spare: fields, link := next     then  link before := spare                            spare := the node
//! ```
//! In the paper (section 3.3) a section prepares its nodes while they are in the pool still, where another's section finds them too. That is right where the kernel
//! restarts whoever was preempted, before it executes one more instruction. Here it may go on for a while, and its late stores would hit nodes that are in use by then.
//! So each slot has a node that is its own before the section begins, and a commit exchanges it: three writes at most, too.

mod map;
mod queue;

pub use map::{MapSlot, OrderedMap};
pub use queue::{PriorityQueue, QueueSlot, Still};

use crate::commit::Commit;
use crate::left_out::{Part, is_left_out};
#[cfg(any(lockwright_loom, lockwright_shuttle))]
use crate::sync::array;
use crate::sync::constructor;
use crate::transaction::{Stop, Transaction};
use crate::value::{Var, Word, Words};

/// Most writes of a section that changes nodes.
pub(crate) const WRITES: usize = 3;
/// No node.
const NONE: u32 = u32::MAX;

/// A node's number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Node(u32);

/// Nodes of `FIELDS` words each in fixed storage: those of one structure, those of the pool, and a spare one a slot.
#[derive(Debug)]
pub(crate) struct Nodes<const NODES: usize, const FIELDS: usize, const SLOTS: usize> {
    root: Word,
    pool: Word,
    spares: [Word; SLOTS],
    links: [Word; NODES],
    fields: [[Word; FIELDS]; NODES],
}

impl<const NODES: usize, const FIELDS: usize, const SLOTS: usize> Words for Nodes<NODES, FIELDS, SLOTS> {
    const COUNT: usize = 2 + SLOTS + NODES * (1 + FIELDS);

    #[inline]
    fn word(&self, index: usize) -> Option<&Word> {
        match index {
            0 => return Some(&self.root),
            1 => return Some(&self.pool),
            _ => {}
        }
        let index = index - 2;
        if let Some(spare) = self.spares.get(index) {
            return Some(spare);
        }
        let index = index - SLOTS;
        if let Some(link) = self.links.get(index) {
            return Some(link);
        }
        self.fields.as_flattened().get(index - NODES)
    }
}

/// A section on nodes.
pub(crate) type Section<'s, const NODES: usize, const FIELDS: usize, const SLOTS: usize, C> =
    Transaction<'s, Nodes<NODES, FIELDS, SLOTS>, SLOTS, WRITES, C>;

/// Who reads words: a section, or a query.
pub(crate) trait Reader {
    fn number(&self, var: Var<u32>) -> Result<u32, Stop>;
    fn bits(&self, var: Var<u64>) -> Result<u64, Stop>;
}

macro_rules! reader {
    ($type:ident) => {
        impl<W: Words, const SLOTS: usize, const WRITES: usize, C: Commit> Reader
            for crate::$type<'_, W, SLOTS, WRITES, C>
        {
            #[inline]
            fn number(&self, var: Var<u32>) -> Result<u32, Stop> {
                self.read(var)
            }
            #[inline]
            fn bits(&self, var: Var<u64>) -> Result<u64, Stop> {
                self.read(var)
            }
        }
    };
}
reader!(Transaction);
reader!(View);

/// What leads to a node: the root, or another node's link.
pub(crate) type Link = Var<u32>;

impl<const NODES: usize, const FIELDS: usize, const SLOTS: usize> Nodes<NODES, FIELDS, SLOTS> {
    const FITS: () =
        assert!(SLOTS < NODES && NODES < NONE as usize, "there are more nodes than slots: each slot keeps one");

    pub(crate) const ROOT: Link = Var::new(0);
    const POOL: Link = Var::new(1);

    /// The number behind one, as a link.
    const fn behind(node: usize) -> u64 {
        if node + 1 < NODES { node as u64 + 1 } else { NONE as u64 }
    }

    constructor! {
        /// No node in the structure, the first ones spare, the others in the pool.
        pub(crate) fn new() -> Self {
            const { Self::FITS };
            #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
            {
                let mut links = [const { Word::new(0) }; NODES];
                let mut spares = [const { Word::new(0) }; SLOTS];
                let mut node = 0;
                while node < NODES {
                    links[node] = Word::new(Self::behind(node));
                    if node < SLOTS {
                        spares[node] = Word::new(node as u64);
                    }
                    node += 1;
                }
                Self {
                    root: Word::new(NONE as u64),
                    pool: Word::new(SLOTS as u64),
                    spares,
                    links,
                    fields: [const { [const { Word::new(0) }; FIELDS] }; NODES],
                }
            }
            #[cfg(any(lockwright_loom, lockwright_shuttle))]
            Self {
                root: Word::new(u64::from(NONE)),
                pool: Word::new(SLOTS as u64),
                spares: core::array::from_fn(|slot| Word::new(slot as u64)),
                links: core::array::from_fn(|node| Word::new(Self::behind(node))),
                fields: array!(array!(Word::new(0))),
            }
        }
    }

    const fn spare(slot: usize) -> Link {
        Var::new(2 + slot)
    }

    pub(crate) const fn link(node: Node) -> Link {
        Var::new(2 + SLOTS + node.0 as usize)
    }

    pub(crate) const fn field(node: Node, field: usize) -> Var<u64> {
        Var::new(2 + SLOTS + NODES + node.0 as usize * FIELDS + field)
    }

    /// The node a link leads to.
    #[inline]
    pub(crate) fn follow(reader: &impl Reader, link: Link) -> Result<Option<Node>, Stop> {
        Ok(Some(reader.number(link)?).filter(|&node| node != NONE).map(Node))
    }

    /// The first link on the way from the root that leads to no node, or to one at which `is_there`; and that node.
    ///
    /// BOUND: NODES, for all that is read is from one instant.
    pub(crate) fn find<R: Reader>(
        reader: &R,
        mut is_there: impl FnMut(&R, Node) -> Result<bool, Stop>,
    ) -> Result<(Link, Option<Node>), Stop> {
        let mut link = Self::ROOT;
        for _ in 0..NODES {
            match Self::follow(reader, link)? {
                Some(node) if !is_there(reader, node)? => link = Self::link(node),
                found => return Ok((link, found)),
            }
        }
        // A ring: no section makes one. To begin again would be in vain.
        Err(Stop::Damaged)
    }

    /// This slot's own node. A section has one: another that it would get by its own commit is not its own before that.
    fn own<C: Commit>(section: &Section<'_, NODES, FIELDS, SLOTS, C>) -> Result<(Link, Node), Stop> {
        let spare = Self::spare(section.slot());
        if section.has_written(spare) {
            return Err(Stop::Full);
        }
        if is_left_out(Part::OwnNode) {
            return Ok((spare, Self::follow(section, Self::POOL)?.ok_or(Stop::Full)?));
        }
        Ok((spare, Node(section.read(spare)?)))
    }

    /// Writes the slot's own node, at once.
    fn fill<C: Commit>(
        section: &Section<'_, NODES, FIELDS, SLOTS, C>,
        own: Node,
        next: u32,
        fields: [u64; FIELDS],
    ) -> Result<(), Stop> {
        section.write_owned(Self::link(own), next)?;
        // BOUND: FIELDS.
        for (field, value) in fields.into_iter().enumerate() {
            section.write_owned(Self::field(own, field), value)?;
        }
        Ok(())
    }

    /// Puts a node with these fields in at a link. One change of nodes a section.
    pub(crate) fn put_in<C: Commit>(
        section: &mut Section<'_, NODES, FIELDS, SLOTS, C>,
        link: Link,
        fields: [u64; FIELDS],
    ) -> Result<(), Stop> {
        let (spare, own) = Self::own(section)?;
        let top = Self::follow(section, Self::POOL)?.ok_or(Stop::Full)?;
        let behind = section.read(Self::link(top))?;
        Self::fill(section, own, section.read(link)?, fields)?;
        section.write(link, own.0)?;
        section.write(Self::POOL, behind)?;
        if is_left_out(Part::OwnNode) {
            return Ok(());
        }
        section.write(spare, top.0)
    }

    /// Takes the node out that a link leads to. One change of nodes a section.
    pub(crate) fn take_out<C: Commit>(
        section: &mut Section<'_, NODES, FIELDS, SLOTS, C>,
        link: Link,
        node: Node,
    ) -> Result<(), Stop> {
        let next = section.read(Self::link(node))?;
        if is_left_out(Part::OwnNode) {
            section.write(link, next)?;
            section.write(Self::link(node), section.read(Self::POOL)?)?;
            return section.write(Self::POOL, node.0);
        }
        let (spare, own) = Self::own(section)?;
        section.write_owned(Self::link(own), section.read(Self::POOL)?)?;
        section.write(link, next)?;
        section.write(Self::POOL, own.0)?;
        section.write(spare, node.0)
    }

    /// Puts another node with these fields where a link leads to one. One change of nodes a section.
    pub(crate) fn replace<C: Commit>(
        section: &mut Section<'_, NODES, FIELDS, SLOTS, C>,
        link: Link,
        node: Node,
        fields: [u64; FIELDS],
    ) -> Result<(), Stop> {
        let (spare, own) = Self::own(section)?;
        Self::fill(section, own, section.read(Self::link(node))?, fields)?;
        section.write(link, own.0)?;
        section.write(spare, node.0)
    }
}
