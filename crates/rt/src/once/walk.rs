//! A walk over all interleavings of a few threads that initialise once, with a stand-in for the kernel's words with
//! priority inheritance.
//!
//! The steps are those of `mod`, in sequentially consistent memory, with two words to initialise and two slots. Any
//! waiter may be the most urgent one.

use super::{DONE, NEW, RUNS, SLOT, STEP};
use crate::behind::behind;
use crate::search::{Model, columns, search};

const SLOTS: usize = 2;

/// A mutation of the steps that must make a property fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mutant {
    None,
    /// A thread that begins does not look whether another one has.
    BeginsBlindly,
    /// A thread that gets a slot does not look at the state again.
    RunsBlindly,
    /// A thread that ends leaves its slot before it says so.
    LeavesFirst,
    /// A thread that ends keeps its slot.
    KeepsSlot,
    /// A thread that gets a slot and does not need it keeps it.
    KeepsOther,
    /// An initialiser that unwinds counts as done.
    EndsAlways,
    /// A thread that finds that another one was first keeps its slot.
    KeepsFirst,
}

/// How a thread's initialiser ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ending {
    Returns,
    Unwinds,
    /// The thread ends inside.
    Dies,
}

use Ending::{Dies, Returns, Unwinds};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Word {
    /// The owner plus 1.
    owner: u8,
    /// The waiters, one bit each.
    waiters: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    Start,
    /// It has a slot and has yet to write the state.
    Has(usize),
    /// It read that the initialiser executes in this slot.
    Wants(usize),
    Waits(usize),
    Gets(usize),
    Runs(usize),
    /// It has yet to leave its slot, or to write the state.
    Ends(usize, u32),
    Leaves(usize),
    Done,
    Dead,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Whole {
    states: [u32; 2],
    /// Whether an initialiser of each word has returned.
    has_returned: [bool; 2],
    slots: [Word; SLOTS],
    at: Vec<At>,
    /// Which calls each thread has finished.
    calls: Vec<u8>,
    wrong: Option<&'static str>,
}

struct Walk {
    /// For each thread, the words that it initialises one after the other, and how its initialisers end.
    scripts: Vec<(Vec<usize>, Ending)>,
    mutant: Mutant,
}

impl Walk {
    fn once(&self, whole: &Whole, task: usize) -> usize {
        self.scripts[task].0[usize::from(whole.calls[task])]
    }

    fn returns(&self, whole: &mut Whole, task: usize) {
        whole.calls[task] += 1;
        let is_last = usize::from(whole.calls[task]) == self.scripts[task].0.len();
        whole.at[task] = if is_last { At::Done } else { At::Start };
    }

    fn runs(&self, whole: &mut Whole, task: usize, slot: usize) {
        let once = self.once(whole, task);
        let is_other =
            |other: usize| other != task && matches!(whole.at[other], At::Runs(_)) && self.once(whole, other) == once;
        if whole.has_returned[once] || (0..whole.at.len()).any(is_other) {
            whole.wrong = Some("an initialiser executes twice");
        }
        whole.at[task] = At::Runs(slot);
    }

    /// Passes a slot on; any of its waiters may get it.
    fn passes(whole: &Whole, slot: usize, to: &mut dyn FnMut(Whole)) {
        let word = whole.slots[slot];
        let mut next = whole.clone();
        next.slots[slot].owner = 0;
        if word.waiters == 0 {
            return to(next);
        }
        for heir in (0..8).filter(|heir| word.waiters & 1 << heir != 0) {
            let mut next = next.clone();
            next.slots[slot] = Word { owner: heir + 1, waiters: word.waiters & !(1 << heir) };
            next.at[usize::from(heir)] = At::Gets(slot);
            to(next);
        }
    }
}

impl Model for Walk {
    type State = Whole;

    fn start(&self) -> Whole {
        let count = self.scripts.len();
        Whole {
            states: [NEW; 2],
            has_returned: [false; 2],
            slots: [Word::default(); SLOTS],
            at: vec![At::Start; count],
            calls: vec![0; count],
            wrong: None,
        }
    }

    fn tasks(&self) -> usize {
        self.scripts.len()
    }

    fn steps(&self, whole: &Whole, task: usize, to: &mut dyn FnMut(Whole)) {
        let at = whole.at[task];
        if whole.wrong.is_some() || matches!(at, At::Done | At::Dead) {
            return;
        }
        let me = task as u8 + 1;
        let once = self.once(whole, task);
        let state = whole.states[once];
        let mut next = whole.clone();
        match at {
            At::Start if state == DONE => {
                if !whole.has_returned[once] {
                    next.wrong = Some("no initialiser has returned");
                }
                self.returns(&mut next, task);
            }
            At::Start if state & STEP == RUNS => next.at[task] = At::Wants((state / SLOT) as usize),
            At::Start => {
                let Some(slot) = (0..SLOTS).find(|slot| whole.slots[*slot].owner == 0) else { return };
                next.slots[slot].owner = me;
                next.at[task] = At::Has(slot);
            }
            At::Has(slot) if state == NEW || self.mutant == Mutant::BeginsBlindly => {
                next.states[once] = RUNS + slot as u32 * SLOT;
                self.runs(&mut next, task, slot);
            }
            At::Has(slot) => {
                next.at[task] = At::Start;
                if self.mutant != Mutant::KeepsFirst {
                    return Self::passes(&next, slot, to);
                }
            }
            At::Wants(slot) => {
                let owner = whole.slots[slot].owner;
                let is_dead = owner != 0 && whole.at[usize::from(owner) - 1] == At::Dead;
                if owner == 0 || is_dead {
                    next.slots[slot].owner = me;
                    next.at[task] = At::Gets(slot);
                } else {
                    next.slots[slot].waiters |= 1 << task;
                    next.at[task] = At::Waits(slot);
                }
            }
            At::Waits(_) => return,
            At::Gets(slot) if state == RUNS + slot as u32 * SLOT || self.mutant == Mutant::RunsBlindly => {
                self.runs(&mut next, task, slot);
            }
            At::Gets(slot) => {
                next.at[task] = At::Start;
                if self.mutant != Mutant::KeepsOther {
                    return Self::passes(&next, slot, to);
                }
            }
            At::Runs(slot) => {
                next.at[task] = match self.scripts[task].1 {
                    Returns => {
                        next.has_returned[once] = true;
                        At::Ends(slot, DONE)
                    }
                    Unwinds if self.mutant == Mutant::EndsAlways => At::Ends(slot, DONE),
                    Unwinds => At::Ends(slot, NEW),
                    Dies => {
                        next.at[task] = At::Dead;
                        // The kernel passes the slot on if anybody waits.
                        if whole.slots[slot].waiters != 0 {
                            return Self::passes(&next, slot, to);
                        }
                        At::Dead
                    }
                };
            }
            At::Ends(slot, _) if self.mutant == Mutant::LeavesFirst && whole.slots[slot].owner == me => {
                return Self::passes(&next, slot, to);
            }
            At::Ends(slot, ended) => {
                next.states[once] = ended;
                next.at[task] = At::Leaves(slot);
            }
            At::Leaves(slot) => {
                self.returns(&mut next, task);
                if self.mutant != Mutant::KeepsSlot && self.mutant != Mutant::LeavesFirst {
                    return Self::passes(&next, slot, to);
                }
            }
            At::Done | At::Dead => {}
        }
        to(next);
    }

    fn is_done(&self, whole: &Whole) -> bool {
        whole.at.iter().all(|at| matches!(at, At::Done | At::Dead))
    }

    fn is_wrong(&self, whole: &Whole) -> bool {
        let is_held = |word: &Word| word.owner != 0 && whole.at[usize::from(word.owner) - 1] != At::Dead;
        whole.wrong.is_some() || self.is_done(whole) && whole.slots.iter().any(is_held)
    }

    fn counts(&self, _: &Whole, _: usize, to: &Whole) -> bool {
        self.is_wrong(to)
    }

    fn describe(&self, _: &Whole, task: usize, to: &Whole) -> String {
        format!("{:?} {:?}", to.at[task], to.states)
    }
}

/// Whether all interleavings of these threads keep all guarantees.
fn holds(scripts: &[(&[usize], Ending)], mutant: Mutant) -> bool {
    let walk = Walk { scripts: scripts.iter().map(|(calls, ending)| (calls.to_vec(), *ending)).collect(), mutant };
    let found = search(&walk);
    let is_right = !found.is_wrong && found.stuck == 0;
    eprintln!("{scripts:?}, {mutant:?}: {} states", found.states);
    if !is_right {
        let way = if found.is_wrong { &found.way_to_counted } else { &found.way_to_stuck };
        eprintln!("wrong: {}, {} stuck\n{}", found.is_wrong, found.stuck, columns(walk.tasks(), way));
    }
    is_right
}

// A search keeps a processor busy, so it executes behind the tests on real threads.

#[test]
fn each_initialiser_executes_once() {
    let _behind = behind();
    assert!(holds(&[(&[0], Returns), (&[0], Returns), (&[0], Returns)], Mutant::None));
    assert!(holds(&[(&[0, 1], Returns), (&[1, 0], Returns), (&[0], Returns)], Mutant::None));
}

#[test]
fn the_next_caller_executes_one_that_did_not_return() {
    let _behind = behind();
    assert!(holds(&[(&[0], Unwinds), (&[0], Returns), (&[0], Returns)], Mutant::None));
    assert!(holds(&[(&[0], Dies), (&[0], Returns), (&[0], Unwinds)], Mutant::None));
    assert!(holds(&[(&[0, 1], Unwinds), (&[0, 1], Dies), (&[1, 0], Returns)], Mutant::None));
}

#[test]
fn each_mutation_fails() {
    let _behind = behind();
    let calm: &[(&[usize], Ending)] = &[(&[0, 1], Returns), (&[1, 0], Returns), (&[0], Returns)];
    for mutant in [
        Mutant::BeginsBlindly,
        Mutant::RunsBlindly,
        Mutant::LeavesFirst,
        Mutant::KeepsSlot,
        Mutant::KeepsOther,
        Mutant::KeepsFirst,
    ] {
        assert!(!holds(calm, mutant), "{mutant:?}");
    }
    assert!(!holds(&[(&[0], Unwinds), (&[0], Returns)], Mutant::EndsAlways));
}
