//! Nodes, their links, and the changes that a section makes to them.

use crate::commit::Commit;
#[cfg(test)]
use crate::mutation::Mutation;
use crate::stop::Stop;
#[cfg(any(lockwright_loom, lockwright_shuttle))]
use crate::sync::array;
use crate::sync::constructor;
use crate::transaction::Transaction;
use crate::var::Var;
use crate::view::View;
use crate::word::{Word, Words};

/// The maximum number of writes of a section that changes nodes.
pub(crate) const WRITES: usize = 3;
/// No node.
const NONE: u32 = u32::MAX;

/// The number of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Node(u32);

/// Nodes of `FIELDS` words each in fixed storage: those of one structure, those of the pool, and a spare for each
/// writer.
#[derive(Debug)]
pub(crate) struct Nodes<const NODES: usize, const FIELDS: usize, const WRITERS: usize> {
    root: Word,
    pool: Word,
    spares: [Word; WRITERS],
    links: [Word; NODES],
    fields: [[Word; FIELDS]; NODES],
}

impl<const NODES: usize, const FIELDS: usize, const WRITERS: usize> Words for Nodes<NODES, FIELDS, WRITERS> {
    const COUNT: usize = 2 + WRITERS + NODES * (1 + FIELDS);

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
        let index = index - WRITERS;
        if let Some(link) = self.links.get(index) {
            return Some(link);
        }
        self.fields.as_flattened().get(index - NODES)
    }
}

/// A section on nodes.
pub(crate) type Section<'s, const NODES: usize, const FIELDS: usize, const WRITERS: usize, C> =
    Transaction<'s, Nodes<NODES, FIELDS, WRITERS>, WRITERS, WRITES, C>;

/// A section or a query, which reads words.
pub(crate) trait Reader {
    fn number(&self, var: Var<u32>) -> Result<u32, Stop>;
    fn bits(&self, var: Var<u64>) -> Result<u64, Stop>;
}

macro_rules! reader {
    ($type:ident) => {
        impl<W: Words, const WRITERS: usize, const WRITES: usize, C: Commit> Reader
            for $type<'_, W, WRITERS, WRITES, C>
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

/// A word that leads to a node: the root, or the link of another node.
pub(crate) type Link = Var<u32>;

impl<const NODES: usize, const FIELDS: usize, const WRITERS: usize> Nodes<NODES, FIELDS, WRITERS> {
    const FITS: () = assert!(
        WRITERS < NODES && NODES < NONE as usize,
        "a structure has more nodes than writers, each of which keeps one"
    );

    pub(crate) const ROOT: Link = Var::new(0);
    const POOL: Link = Var::new(1);

    /// Returns the initial link of a node: the next number.
    const fn behind(node: usize) -> u64 {
        if node + 1 < NODES { node as u64 + 1 } else { NONE as u64 }
    }

    constructor! {
        /// Creates an empty structure: the first nodes are spares, the others are in the pool.
        pub(crate) fn new() -> Self {
            const { Self::FITS };
            #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
            {
                let mut links = [const { Word::new(0) }; NODES];
                let mut spares = [const { Word::new(0) }; WRITERS];
                let mut node = 0;
                while node < NODES {
                    links[node] = Word::new(Self::behind(node));
                    if node < WRITERS {
                        spares[node] = Word::new(node as u64);
                    }
                    node += 1;
                }
                Self {
                    root: Word::new(NONE as u64),
                    pool: Word::new(WRITERS as u64),
                    spares,
                    links,
                    fields: [const { [const { Word::new(0) }; FIELDS] }; NODES],
                }
            }
            #[cfg(any(lockwright_loom, lockwright_shuttle))]
            Self {
                root: Word::new(u64::from(NONE)),
                pool: Word::new(WRITERS as u64),
                spares: core::array::from_fn(|writer| Word::new(writer as u64)),
                links: core::array::from_fn(|node| Word::new(Self::behind(node))),
                fields: array!(array!(Word::new(0))),
            }
        }
    }

    const fn spare(writer: usize) -> Link {
        Var::new(2 + writer)
    }

    pub(crate) const fn link(node: Node) -> Link {
        Var::new(2 + WRITERS + node.0 as usize)
    }

    pub(crate) const fn field(node: Node, field: usize) -> Var<u64> {
        Var::new(2 + WRITERS + NODES + node.0 as usize * FIELDS + field)
    }

    /// Returns the node to which a link leads.
    #[inline]
    pub(crate) fn follow(reader: &impl Reader, link: Link) -> Result<Option<Node>, Stop> {
        Ok(Some(reader.number(link)?).filter(|&node| node != NONE).map(Node))
    }

    /// Follows the links from the root to the first node for which `is_there` holds, or to the end.
    ///
    /// Returns the link that leads there, and the node.
    ///
    /// BOUND: NODES, because all reads are from one instant.
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
        // The links form a ring, which no section makes; a restart would not help.
        Err(Stop::Damaged)
    }

    /// Returns the spare node of this writer. A section has one: the next spare is its own only after its commit.
    fn own<C: Commit>(section: &Section<'_, NODES, FIELDS, WRITERS, C>) -> Result<(Link, Node), Stop> {
        let spare = Self::spare(section.writer());
        if section.has_written(spare) {
            return Err(Stop::Full);
        }
        Ok((spare, Node(section.read(spare)?)))
    }

    /// Writes the spare node at once.
    fn fill<C: Commit>(
        section: &Section<'_, NODES, FIELDS, WRITERS, C>,
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

    /// Inserts a node with these fields at a link. A section changes nodes once.
    pub(crate) fn insert<C: Commit>(
        section: &mut Section<'_, NODES, FIELDS, WRITERS, C>,
        link: Link,
        fields: [u64; FIELDS],
    ) -> Result<(), Stop> {
        #[cfg(test)]
        if Mutation::PooledNode.is_active() {
            return Self::insert_as_published(section, link, fields);
        }
        let (spare, own) = Self::own(section)?;
        let top = Self::follow(section, Self::POOL)?.ok_or(Stop::Full)?;
        let behind = section.read(Self::link(top))?;
        Self::fill(section, own, section.read(link)?, fields)?;
        section.write(link, own.0)?;
        section.write(Self::POOL, behind)?;
        section.write(spare, top.0)
    }

    /// Removes the node to which a link leads. A section changes nodes once.
    pub(crate) fn remove<C: Commit>(
        section: &mut Section<'_, NODES, FIELDS, WRITERS, C>,
        link: Link,
        node: Node,
    ) -> Result<(), Stop> {
        let next = section.read(Self::link(node))?;
        #[cfg(test)]
        if Mutation::PooledNode.is_active() {
            return Self::remove_as_published(section, link, node);
        }
        let (spare, own) = Self::own(section)?;
        section.write_owned(Self::link(own), section.read(Self::POOL)?)?;
        section.write(link, next)?;
        section.write(Self::POOL, own.0)?;
        section.write(spare, node.0)
    }

    /// Replaces the node to which a link leads by one with these fields. A section changes nodes once.
    pub(crate) fn replace<C: Commit>(
        section: &mut Section<'_, NODES, FIELDS, WRITERS, C>,
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

/// The mutation [`Mutation::PooledNode`]: the changes as the paper has them, without a spare node.
#[cfg(test)]
impl<const NODES: usize, const FIELDS: usize, const WRITERS: usize> Nodes<NODES, FIELDS, WRITERS> {
    fn insert_as_published<C: Commit>(
        section: &mut Section<'_, NODES, FIELDS, WRITERS, C>,
        link: Link,
        fields: [u64; FIELDS],
    ) -> Result<(), Stop> {
        let top = Self::follow(section, Self::POOL)?.ok_or(Stop::Full)?;
        let behind = section.read(Self::link(top))?;
        Self::fill(section, top, section.read(link)?, fields)?;
        section.write(link, top.0)?;
        section.write(Self::POOL, behind)
    }

    fn remove_as_published<C: Commit>(
        section: &mut Section<'_, NODES, FIELDS, WRITERS, C>,
        link: Link,
        node: Node,
    ) -> Result<(), Stop> {
        let next = section.read(Self::link(node))?;
        section.write(link, next)?;
        section.write(Self::link(node), section.read(Self::POOL)?)?;
        section.write(Self::POOL, node.0)
    }
}
