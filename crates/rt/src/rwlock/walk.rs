//! A walk over all interleavings of a few readers and writers, with the transitions of `state` and a stand-in for the
//! kernel's words with priority inheritance.
//!
//! The steps are those of `raw`, line by line, in sequentially consistent memory. An exchange that is repeated is one
//! step. Any waiter may be the most urgent one, and every thread may give up whenever it waits, if its script says so.

use super::state::{Enter, GATES, Place, State};
use crate::behind::behind;
use crate::search::{Model, columns, search};

/// A mutation of the steps that must make a property fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mutant {
    None,
    /// A writer comes although its gates are still in use.
    IgnoresHeldUp,
    /// A writer that leaves does not invert the phase.
    KeepsPhase,
    /// A writer that leaves admits nobody.
    AdmitsNobody,
    /// The last reader does not wake the writer.
    LeavesQuietly,
    /// The last reader that passes does not wake the writer that is held up.
    PassesQuietly,
    /// A writer that comes does not look for readers.
    Barges,
    /// A reader that gives up does not look whether it was admitted.
    GivesUpBlindly,
    /// A reader enters beside a writer that waits for readers, although it holds nothing.
    Overtakes,
    /// A reader that gets a gate keeps it.
    KeepsGate,
    /// The last reader looks at the lock after it has left.
    LooksAfterwards,
    /// A thread that frees the lock does not look whether it is free.
    FreesInUse,
    /// A thread that frees the lock does not wait for a writer that has left and still has the turn.
    FreesAtOnce,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Script {
    writes: bool,
    gives_up: bool,
    nested: bool,
    /// After its last round, when all others have come for the last time, it frees the lock unless it is in use.
    frees: bool,
    rounds: u8,
}

const fn reads(rounds: u8) -> Script {
    Script { writes: false, gives_up: false, nested: false, frees: false, rounds }
}

const fn writes(rounds: u8) -> Script {
    Script { writes: true, ..reads(rounds) }
}

const fn frees(script: Script) -> Script {
    Script { frees: true, ..script }
}

const fn impatient(script: Script) -> Script {
    Script { gives_up: true, ..script }
}

const fn nested(script: Script) -> Script {
    Script { nested: true, ..script }
}

/// For `turn`, which is no gate.
const NOWHERE: Place = Place { phase: 0, gate: 0 };

/// A word with priority inheritance.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Word {
    /// The owner plus 1.
    owner: u8,
    /// The waiters, one bit each.
    waiters: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    /// Before the next round.
    Start,
    // A reader.
    Registered(Place),
    Waits(Place),
    HasGate(Place),
    /// It knows whether it got the gate.
    Settles(Place, bool),
    /// It has passed or left, and wakes the writer.
    Wakes(bool),
    Reads,
    // A writer.
    WaitsForTurn,
    HasTurn,
    /// It waits for readers while the half is this, before or after it has come.
    Sleeps(u32, bool),
    Asleep(bool),
    Prepared,
    Drains,
    Writes,
    Opens(usize, usize),
    Unlocks,
    // A thread that frees the lock.
    Frees,
    LooksForTurn,
    RequestsTurn,
    WaitsToFree,
    HasTurnToFree,
    LooksAgain,
    Done,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Whole {
    state: State,
    turn: Word,
    gates: [[Word; GATES]; 2],
    at: Vec<At>,
    rounds: Vec<u8>,
    /// The writers that entered since each reader was registered.
    passed_by: Vec<u8>,
    is_freed: bool,
    /// A guarantee that was broken.
    wrong: Option<&'static str>,
}

struct Walk {
    scripts: Vec<Script>,
    mutant: Mutant,
}

impl Walk {
    /// Unlocks the word; any of its waiters may get it.
    fn unlock(word: fn(&mut Whole, Place) -> &mut Word, place: Place, whole: &Whole, to: &mut dyn FnMut(Whole)) {
        let mut next = whole.clone();
        let seen = *word(&mut next, place);
        if seen.waiters == 0 {
            word(&mut next, place).owner = 0;
            to(next);
            return;
        }
        for heir in (0..8).filter(|heir| seen.waiters & 1 << heir != 0) {
            let mut next = next.clone();
            *word(&mut next, place) = Word { owner: heir + 1, waiters: seen.waiters & !(1 << heir) };
            let at = &mut next.at[usize::from(heir)];
            *at = match *at {
                At::WaitsForTurn => At::HasTurn,
                At::WaitsToFree => At::HasTurnToFree,
                _ => At::HasGate(place),
            };
            to(next);
        }
    }

    fn gate(whole: &mut Whole, place: Place) -> &mut Word {
        &mut whole.gates[place.phase][place.gate]
    }

    fn turn(whole: &mut Whole, _: Place) -> &mut Word {
        &mut whole.turn
    }

    fn wakes(whole: &mut Whole) {
        if let Some(at) = whole.at.iter_mut().find(|at| matches!(at, At::Asleep(_))) {
            let At::Asleep(has_come) = *at else { return };
            *at = if has_come { At::Drains } else { At::HasTurn };
        }
    }

    fn ends_round(&self, whole: &mut Whole, task: usize) {
        whole.rounds[task] += 1;
        whole.passed_by[task] = 0;
        whole.at[task] = match whole.rounds[task] == self.scripts[task].rounds {
            true if self.scripts[task].frees => At::Frees,
            true => At::Done,
            false => At::Start,
        };
    }

    /// The writer enters.
    fn writes(&self, whole: &mut Whole, task: usize) {
        if whole.at.iter().any(|at| matches!(at, At::Reads | At::Writes)) {
            whole.wrong = Some("two inside");
        }
        whole.at[task] = At::Writes;
        for reader in 0..whole.at.len() {
            let waits = matches!(whole.at[reader], At::Registered(_) | At::Waits(_) | At::HasGate(_));
            whole.passed_by[reader] += u8::from(waits && !self.scripts[reader].writes);
            if whole.passed_by[reader] > 1 {
                whole.wrong = Some("a reader waits for two writers");
            }
        }
    }

    fn enters_to_read(whole: &mut Whole, task: usize) {
        if whole.at.contains(&At::Writes) {
            whole.wrong = Some("two inside");
        }
        whole.at[task] = At::Reads;
    }

    fn reader_steps(&self, whole: &Whole, task: usize, to: &mut dyn FnMut(Whole)) {
        let mut next = whole.clone();
        let gives_up = self.scripts[task].gives_up;
        match whole.at[task] {
            At::Start => {
                let nested = self.scripts[task].nested;
                match whole.state.enter(nested || self.mutant == Mutant::Overtakes) {
                    Enter::In(state) => {
                        next.state = state;
                        Self::enters_to_read(&mut next, task);
                        if whole.state.has_writer() && !nested {
                            next.wrong = Some("a reader overtakes a writer");
                        }
                    }
                    Enter::Wait(state, place) => {
                        next.state = state;
                        next.at[task] = At::Registered(place);
                    }
                    Enter::Full => unreachable!("a few readers"),
                }
                to(next);
            }
            At::Registered(place) => {
                if whole.state.has_admitted(place.phase) {
                    next.at[task] = At::Settles(place, false);
                } else {
                    next.at[task] = At::Waits(place);
                }
                to(next);
            }
            At::Waits(place) => {
                let word = Self::gate(&mut next, place);
                if word.waiters & 1 << task != 0 {
                    if gives_up {
                        word.waiters &= !(1 << task);
                        next.at[task] = At::Settles(place, true);
                        to(next);
                    }
                    return;
                }
                if word.owner == 0 {
                    word.owner = task as u8 + 1;
                    next.at[task] = At::HasGate(place);
                } else {
                    word.waiters |= 1 << task;
                }
                to(next);
            }
            At::HasGate(place) => {
                next.at[task] = At::Settles(place, false);
                if self.mutant == Mutant::KeepsGate {
                    to(next);
                } else {
                    Self::unlock(Self::gate, place, &next, to);
                }
            }
            At::Settles(place, gave_up) => {
                let is_admitted = whole.state.has_admitted(place.phase);
                if is_admitted && whole.state.passing() == 0 {
                    next.wrong = Some("nobody was admitted");
                } else if is_admitted && !(gave_up && self.mutant == Mutant::GivesUpBlindly) {
                    let (state, wakes) = whole.state.pass();
                    next.state = state;
                    Self::enters_to_read(&mut next, task);
                    if wakes && self.mutant != Mutant::PassesQuietly {
                        next.at[task] = At::Wakes(true);
                    }
                } else if whole.state.waiting() == 0 {
                    next.wrong = Some("nobody waits");
                } else {
                    if !gave_up {
                        next.wrong = Some("a reader gets a gate of a writer that is inside");
                    }
                    next.state = whole.state.give_up();
                    self.ends_round(&mut next, task);
                }
                to(next);
            }
            At::Wakes(is_inside) => {
                if whole.is_freed && self.mutant == Mutant::LooksAfterwards {
                    next.wrong = Some("a look at a lock that was freed");
                }
                Self::wakes(&mut next);
                if is_inside {
                    Self::enters_to_read(&mut next, task);
                } else {
                    self.ends_round(&mut next, task);
                }
                to(next);
            }
            At::Reads => {
                let Some((state, wakes)) = whole.state.reader_leaves() else {
                    next.wrong = Some("nobody is inside");
                    return to(next);
                };
                next.state = state;
                if wakes && self.mutant != Mutant::LeavesQuietly {
                    next.at[task] = At::Wakes(false);
                } else {
                    self.ends_round(&mut next, task);
                }
                to(next);
            }
            _ => {}
        }
    }

    fn writer_steps(&self, whole: &Whole, task: usize, to: &mut dyn FnMut(Whole)) {
        let mut next = whole.clone();
        let gives_up = self.scripts[task].gives_up;
        match whole.at[task] {
            At::Start if whole.turn.owner == 0 => {
                next.turn.owner = task as u8 + 1;
                next.at[task] = At::HasTurn;
                to(next);
            }
            At::Start => {
                next.turn.waiters |= 1 << task;
                next.at[task] = At::WaitsForTurn;
                to(next);
            }
            At::WaitsForTurn if gives_up => {
                next.turn.waiters &= !(1 << task);
                self.ends_round(&mut next, task);
                to(next);
            }
            At::HasTurn => {
                next.at[task] = if whole.state.is_held_up() && self.mutant != Mutant::IgnoresHeldUp {
                    At::Sleeps(whole.state.low(), false)
                } else {
                    At::Prepared
                };
                if next.at[task] == At::Prepared {
                    let gates = &mut next.gates[whole.state.phase()];
                    if gates.iter().any(|gate| gate.waiters != 0 || gate.owner != 0) {
                        next.wrong = Some("a gate is in use");
                    }
                    gates.fill(Word { owner: task as u8 + 1, waiters: 0 });
                }
                to(next);
            }
            At::Prepared => {
                next.state = whole.state.writer_comes();
                if whole.state.inside() == 0 || self.mutant == Mutant::Barges {
                    self.writes(&mut next, task);
                } else {
                    next.at[task] = At::Drains;
                }
                to(next);
            }
            At::Drains => {
                next.state = whole.state.writer_continues();
                if next.state.is_written() {
                    self.writes(&mut next, task);
                } else {
                    next.at[task] = At::Sleeps(whole.state.low(), true);
                }
                to(next);
            }
            At::Sleeps(low, has_come) => {
                let awake = if has_come { At::Drains } else { At::HasTurn };
                next.at[task] = if whole.state.low() == low { At::Asleep(has_come) } else { awake };
                to(next);
            }
            At::Asleep(has_come) if gives_up => {
                if has_come {
                    self.leaves(whole, task, to);
                } else {
                    next.at[task] = At::Unlocks;
                    to(next);
                }
            }
            At::Writes => self.leaves(whole, task, to),
            At::Opens(phase, gate) => {
                next.at[task] = if gate + 1 < GATES { At::Opens(phase, gate + 1) } else { At::Unlocks };
                Self::unlock(Self::gate, Place { phase, gate }, &next, to);
            }
            At::Unlocks => {
                self.ends_round(&mut next, task);
                Self::unlock(Self::turn, NOWHERE, &next, to);
            }
            _ => {}
        }
    }

    fn freeing_steps(&self, whole: &Whole, task: usize, to: &mut dyn FnMut(Whole)) {
        let mut next = whole.clone();
        match whole.at[task] {
            At::Frees if whole.at.contains(&At::Start) => return,
            At::Frees if whole.state.is_free() || self.mutant == Mutant::FreesInUse => next.at[task] = At::LooksForTurn,
            At::Frees => next.at[task] = At::Done,
            At::LooksForTurn if whole.turn.owner == 0 || self.mutant == Mutant::FreesAtOnce => {
                Self::frees(&mut next, task);
            }
            At::LooksForTurn => next.at[task] = At::RequestsTurn,
            At::RequestsTurn if whole.turn.owner == 0 => {
                next.turn.owner = task as u8 + 1;
                next.at[task] = At::HasTurnToFree;
            }
            At::RequestsTurn => {
                next.turn.waiters |= 1 << task;
                next.at[task] = At::WaitsToFree;
            }
            // The time ends only if a thread holds the lock: a writer that has left ends the wait by itself.
            At::WaitsToFree if !whole.state.is_free() => {
                next.turn.waiters &= !(1 << task);
                next.at[task] = At::Frees;
            }
            At::HasTurnToFree => {
                next.at[task] = At::LooksAgain;
                return Self::unlock(Self::turn, NOWHERE, &next, to);
            }
            At::LooksAgain if whole.state.is_free() && whole.turn.owner == 0 => Self::frees(&mut next, task),
            At::LooksAgain => next.at[task] = At::Done,
            _ => return,
        }
        to(next);
    }

    fn frees(whole: &mut Whole, task: usize) {
        whole.at[task] = At::Done;
        whole.is_freed = true;
        if !whole.at.iter().all(|at| matches!(at, At::Wakes(false) | At::Done)) {
            whole.wrong = Some("the memory of a lock in use is freed");
        }
    }

    fn leaves(&self, whole: &Whole, task: usize, to: &mut dyn FnMut(Whole)) {
        let mut next = whole.clone();
        let before = whole.state;
        next.state = match self.mutant {
            Mutant::AdmitsNobody => {
                let waiting = before.waiting() << 32;
                State(State(before.0 - waiting).writer_leaves().0 + waiting)
            }
            Mutant::KeepsPhase if before.waiting() > 0 => {
                let after = before.writer_leaves();
                State(after.0 ^ (before.0 ^ after.0) & 1 << 50)
            }
            _ => before.writer_leaves(),
        };
        if before.waiting() > 0 {
            next.at[task] = At::Opens(before.phase(), 0);
        } else {
            // The gates keep the id of a writer that has left, and nobody looks at them.
            next.gates[before.phase()] = Default::default();
            next.at[task] = At::Unlocks;
        }
        to(next);
    }
}

impl Model for Walk {
    type State = Whole;

    fn start(&self) -> Whole {
        let count = self.scripts.len();
        Whole {
            state: State(0),
            turn: Word::default(),
            gates: Default::default(),
            at: vec![At::Start; count],
            rounds: vec![0; count],
            passed_by: vec![0; count],
            is_freed: false,
            wrong: None,
        }
    }

    fn tasks(&self) -> usize {
        self.scripts.len()
    }

    fn steps(&self, whole: &Whole, task: usize, to: &mut dyn FnMut(Whole)) {
        if whole.wrong.is_some() {
            return;
        }
        if self.scripts[task].writes {
            self.writer_steps(whole, task, to);
        } else {
            self.reader_steps(whole, task, to);
        }
        self.freeing_steps(whole, task, to);
    }

    fn is_done(&self, whole: &Whole) -> bool {
        whole.at.iter().all(|at| *at == At::Done)
    }

    fn is_wrong(&self, whole: &Whole) -> bool {
        whole.wrong.is_some() || self.is_done(whole) && !(whole.state.is_free() && whole.turn == Word::default())
    }

    fn counts(&self, _: &Whole, _: usize, to: &Whole) -> bool {
        to.wrong.is_some()
    }

    fn describe(&self, _: &Whole, task: usize, to: &Whole) -> String {
        format!("{:?} {:x}", to.at[task], to.state.0)
    }
}

/// Whether all interleavings of these threads keep all guarantees.
fn holds(scripts: &[Script], mutant: Mutant) -> bool {
    let walk = Walk { scripts: scripts.to_vec(), mutant };
    let found = search(&walk);
    let is_right = !found.is_wrong && found.stuck == 0;
    eprintln!("{scripts:?}, {mutant:?}: {} states, {} wrong steps", found.states, found.counted);
    if !is_right {
        let way = if found.is_wrong { &found.way_to_counted } else { &found.way_to_stuck };
        eprintln!("wrong: {}, {} stuck\n{}", found.is_wrong, found.stuck, columns(walk.tasks(), way));
    }
    is_right
}

// A search keeps a processor busy, so it executes behind the tests on real threads.

#[test]
fn readers_and_writers_exclude_each_other_and_all_finish() {
    let _behind = behind();
    assert!(holds(&[reads(2), reads(1), writes(2), writes(1)], Mutant::None));
    assert!(holds(&[reads(1), reads(1), reads(1), writes(2)], Mutant::None));
    assert!(holds(&[nested(reads(2)), reads(1), writes(1), writes(1)], Mutant::None));
}

#[test]
fn threads_give_up_at_any_time() {
    let _behind = behind();
    assert!(holds(&[impatient(reads(2)), reads(2), impatient(writes(2)), writes(1)], Mutant::None));
    assert!(holds(&[reads(2), reads(2), impatient(writes(3))], Mutant::None));
    assert!(holds(&[impatient(reads(1)), reads(1), impatient(writes(1)), impatient(writes(2))], Mutant::None));
}

/// As soon as the others have left, though they may still wake a writer or pass the turn on.
#[test]
fn the_memory_may_be_freed() {
    let _behind = behind();
    let scripts = [reads(1), reads(1), frees(writes(1))];
    assert!(holds(&scripts, Mutant::None));
    assert!(!holds(&scripts, Mutant::LooksAfterwards));
    let scripts = [reads(1), writes(1), impatient(writes(1)), frees(reads(1))];
    assert!(holds(&scripts, Mutant::None));
    assert!(!holds(&scripts, Mutant::FreesInUse));
    assert!(!holds(&scripts, Mutant::FreesAtOnce));
}

#[test]
fn each_mutation_fails() {
    let _behind = behind();
    let calm = [reads(1), reads(1), writes(2), writes(1)];
    for mutant in [Mutant::AdmitsNobody, Mutant::LeavesQuietly, Mutant::Barges, Mutant::KeepsGate, Mutant::Overtakes] {
        assert!(!holds(&calm, mutant), "{mutant:?}");
    }
    let hasty = [impatient(reads(2)), reads(2), impatient(writes(2)), writes(1)];
    for mutant in [Mutant::IgnoresHeldUp, Mutant::KeepsPhase, Mutant::PassesQuietly, Mutant::GivesUpBlindly] {
        assert!(!holds(&hasty, mutant), "{mutant:?}");
    }
}
