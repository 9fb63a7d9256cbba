//! The construction that makes a sequential object lock-free or wait-free.
//!
//! The words of an object are in blocks of some lines, and each word of a table names the lines of one block. An
//! operation copies the current table and the lines that it changes. One compare-and-swap makes the new table the
//! current one, and the participant then owns the table and the lines that it has replaced. If another operation has
//! committed meanwhile, the attempt fails.
//!
//! The table is copied in every attempt, also if the participant has made the current one. A shortcut would make only
//! operations alone faster, and their measured times would not hold under contention.
//!
//! The lock-free object repeats the attempt. The wait-free object announces its request; each attempt also performs
//! the request of one other participant, in turn.
//!
//! Reference: J. Anderson, M. Moir: Universal constructions for large objects. IEEE TPDS 10(12), 1999.

pub(crate) mod helping;
pub(crate) mod repeating;

use crate::mutation::removed;
use crate::sequential::{Accesses, LINE, Subtrees, Words};
use crate::sync::{AtomicU64, array, constructor, fence};
use crate::word::{PLACES_MAX, field, index, place, tag, tagged};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use crossbeam_utils::CachePadded;

/// The lines of a block, which one word of a table names. Models have small blocks.
const LINES: usize = if cfg!(any(test, lockwright_loom, lockwright_shuttle)) { 2 } else { 4 };

/// The greatest number of blocks of an object.
pub(crate) const BLOCKS_MAX: usize = 1024;

/// The lines that a participant owns: as many as two operations change.
pub(crate) const SPARES: usize = if cfg!(any(test, lockwright_loom, lockwright_shuttle)) { 4 } else { 8 };

const _: () = {
    // Objects of models have at most two blocks.
    let lines = LINES * if cfg!(any(test, lockwright_loom, lockwright_shuttle)) { 2 } else { BLOCKS_MAX };
    // A heap changes the lines of a path, and a queue at most two lines.
    let changed = 2 * Subtrees::levels(lines * Subtrees::NODES);
    assert!(changed <= SPARES || lines <= SPARES, "an attempt has a spare for each line that two operations change");
};

/// The memory of an object, with the answers to `ANSWERS` participants.
pub(crate) struct Construction<const BLOCKS: usize, const SLOTS: usize, const ANSWERS: usize> {
    /// | version 48 | current table 16 |
    head: CachePadded<AtomicU64>,
    /// The table zero.
    first: Table<BLOCKS, ANSWERS>,
    lines: [[Line; LINES]; BLOCKS],
    owners: [CachePadded<Owner<BLOCKS, ANSWERS>>; SLOTS],
}

struct Line([AtomicU64; LINE]);

/// The version of an object that is current, was current, or is in preparation.
struct Table<const BLOCKS: usize, const ANSWERS: usize> {
    /// | line 16 | in each word, one for each line of a block; zero stands for the line of the same number.
    blocks: [AtomicU64; BLOCKS],
    answers: [(AtomicU64, AtomicU64); ANSWERS],
}

/// The part of the memory that one participant owns.
struct Owner<const BLOCKS: usize, const ANSWERS: usize> {
    /// The table that it owns; zero stands for `own`.
    table: AtomicU64,
    /// The lines that it owns; zero stands for the line in `lines` of the same number.
    spares: [AtomicU64; SPARES],
    /// The table whose number is one more than that of the slot.
    own: Table<BLOCKS, ANSWERS>,
    lines: [Line; SPARES],
}

/// The place in a word of a table of the line of a number.
#[inline]
const fn shift(number: usize) -> u32 {
    16 * (number % LINES) as u32
}

impl<const BLOCKS: usize, const ANSWERS: usize> Table<BLOCKS, ANSWERS> {
    constructor! {
        fn new() -> Self {
            Self {
                blocks: array!(AtomicU64::new(0)),
                answers: array!((AtomicU64::new(0), AtomicU64::new(0))),
            }
        }
    }
}

impl<const BLOCKS: usize, const SLOTS: usize, const ANSWERS: usize> Construction<BLOCKS, SLOTS, ANSWERS> {
    constructor! {
        pub(crate) fn new() -> Self {
            assert!(BLOCKS > 0 && BLOCKS <= BLOCKS_MAX, "an object has between 1 and 1024 blocks");
            assert!(BLOCKS * LINES + SLOTS * SPARES < PLACES_MAX, "the lines of all participants have 16-bit numbers");
            Self {
                head: CachePadded::new(AtomicU64::new(0)),
                first: Table::new(),
                lines: array!(array!(Line(array!(AtomicU64::new(0))))),
                owners: array!(CachePadded::new(Owner {
                    table: AtomicU64::new(0),
                    spares: array!(AtomicU64::new(0)),
                    own: Table::new(),
                    lines: array!(Line(array!(AtomicU64::new(0)))),
                })),
            }
        }
    }

    fn table(&self, table: usize) -> &Table<BLOCKS, ANSWERS> {
        table.checked_sub(1).map_or(&self.first, |owner| &self.owners[owner].own)
    }

    #[inline]
    fn line(&self, line: usize) -> &Line {
        match self.lines.get(line / LINES) {
            Some(block) => &block[line % LINES],
            None => {
                let line = line - BLOCKS * LINES;
                &self.owners[line / SPARES].lines[line % SPARES]
            }
        }
    }

    /// Begins an attempt of a participant.
    fn begin(&self, me: usize) -> Attempt<'_, BLOCKS, SLOTS, ANSWERS> {
        // ORDERING: the acquire pairs with the release of the commit. `Helping::perform` needs one order of commits,
        // of these loads, and of the accesses of requests, so all of them are sequentially consistent.
        // The fence pairs with that of a commit that changes nothing: if it has seen a store of this attempt, then it
        // sees that the version is another one.
        let seen = self.head.load(SeqCst);
        fence(Release);
        let (old, mine) = (self.table(index(seen)), place(self.owners[me].table.load(Relaxed) as usize, me + 1));
        let new = self.table(mine);
        for (new, old) in new.blocks.iter().zip(&old.blocks) {
            new.store(old.load(Relaxed), Relaxed);
        }
        for (new, old) in new.answers.iter().zip(&old.answers) {
            new.0.store(old.0.load(Relaxed), Relaxed);
            new.1.store(old.1.load(Relaxed), Relaxed);
        }
        Attempt { object: self, me, seen, mine, replaced: [(0, 0); SPARES], count: 0, changed: false }
    }

    /// The steps of an attempt with some operations of a sequential object.
    const fn steps(accesses: Accesses, operations: usize) -> u64 {
        let copies = if accesses.lines < BLOCKS * LINES { accesses.lines } else { BLOCKS * LINES };
        // The spare and the line that it replaces, the copy, and the table.
        let copy = 2 + 2 * LINE + 2;
        let operation = 2 * accesses.gets + 2 * accesses.sets + copies * copy;
        // Head and own table; the copy of the table; the commit, the table and the lines that it replaces.
        (2 + 2 * BLOCKS + 4 * ANSWERS + operations * operation + 2 + operations * copies) as u64
    }
}

/// An attempt to commit.
struct Attempt<'a, const BLOCKS: usize, const SLOTS: usize, const ANSWERS: usize> {
    object: &'a Construction<BLOCKS, SLOTS, ANSWERS>,
    me: usize,
    /// The head at the beginning.
    seen: u64,
    /// The number of the new table.
    mine: usize,
    /// The lines that are copied, by their number in the object, and the lines that they replace.
    replaced: [(usize, usize); SPARES],
    count: usize,
    changed: bool,
}

impl<const BLOCKS: usize, const SLOTS: usize, const ANSWERS: usize> Attempt<'_, BLOCKS, SLOTS, ANSWERS> {
    fn table(&self) -> &Table<BLOCKS, ANSWERS> {
        self.object.table(self.mine)
    }

    /// Returns the line of a number in the object.
    #[inline]
    fn line(&self, number: usize) -> usize {
        let named = self.table().blocks[number / LINES].load(Relaxed) >> shift(number);
        place(index(named), number)
    }

    /// Returns the copy of a line, and makes it before the first change. There is always a spare for it, except in an
    /// attempt that fails because it has seen words of different instants.
    #[inline]
    fn copy(&mut self, number: usize) -> Option<usize> {
        let line = self.line(number);
        if self.replaced[..self.count].iter().any(|replaced| replaced.0 == number) {
            return Some(line);
        }
        let owner = &self.object.owners[self.me];
        let own = BLOCKS * LINES + self.me * SPARES + self.count;
        let spare = place(owner.spares.get(self.count)?.load(Relaxed) as usize, own);
        for (new, old) in self.object.line(spare).0.iter().zip(&self.object.line(line).0) {
            new.store(old.load(Relaxed), Relaxed);
        }
        let block = &self.table().blocks[number / LINES];
        let others = block.load(Relaxed) & !((PLACES_MAX as u64 - 1) << shift(number));
        block.store(others | (field(spare) as u64) << shift(number), Relaxed);
        self.replaced[self.count] = (number, line);
        self.count += 1;
        Some(spare)
    }

    /// Commits, and returns whether no other attempt has committed since the beginning.
    fn commit(self) -> bool {
        let head = &self.object.head;
        if !self.changed {
            // ORDERING: the fence pairs with those of attempts that reuse a table or a block.
            fence(Acquire);
            return head.load(Relaxed) == self.seen || removed!(Validation);
        }
        // ORDERING: the release pairs with the acquire of the attempts that begin from this table; see `begin`.
        if head.compare_exchange(self.seen, tagged(tag(self.seen) + 1, self.mine), SeqCst, Acquire).is_err() {
            return false;
        }
        let owner = &self.object.owners[self.me];
        owner.table.store(field(index(self.seen)) as u64, Relaxed);
        if !removed!(Exchange) {
            for (spare, (_, old)) in owner.spares.iter().zip(&self.replaced[..self.count]) {
                spare.store(field(*old) as u64, Relaxed);
            }
        }
        true
    }
}

impl<const BLOCKS: usize, const SLOTS: usize, const ANSWERS: usize> Words for Attempt<'_, BLOCKS, SLOTS, ANSWERS> {
    #[inline]
    fn get(&mut self, word: usize) -> u64 {
        // A word beyond the object comes from a table that is no longer current.
        let number = word / LINE % (BLOCKS * LINES);
        self.object.line(self.line(number)).0[word % LINE].load(Relaxed)
    }

    #[inline]
    fn set(&mut self, word: usize, bits: u64) {
        let number = word / LINE % (BLOCKS * LINES);
        self.changed = true;
        if let Some(copy) = self.copy(number) {
            self.object.line(copy).0[word % LINE].store(bits, Relaxed);
        }
    }
}
