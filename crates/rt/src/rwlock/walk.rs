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
    /// A writer leaves to waiters without owning `leaver`.
    LeavesUnseen,
    /// A writer owns `leaver` only after it has admitted others.
    OwnsLeaverLate,
    /// A reader that leaves does not look at LEAVING.
    ReaderLeavesBefore,
    /// A writer that leaves does not look at LEAVING.
    WriterLeavesBefore,
    /// A writer clears LEAVING before its last access.
    ClearsEarly,
    /// A thread clears LEAVING when `leaver` is no longer its own.
    ClearsLate,
    /// A thread that has waited does not clear LEAVING.
    ClearsNever,
    /// A reader unlocks `leaver` after it has left.
    UnlocksLeaverLast,
    /// A writer without waiters passes the turn on after it has left.
    PassesTurnLast,
    /// A writer unlocks the turn after `leaver`.
    UnlocksTurnLast,
    /// A writer that gets the turn does not look for one that is about to leave.
    FollowsNobody,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Script {
    writes: bool,
    gives_up: bool,
    nested: bool,
    /// After its last round it frees the lock, if all others have returned or left before this round.
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

const WAITS_FOR_A_HOLDER: &str = "an unlock waits for a thread that still holds the lock";

/// For words that are no gates.
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
    // A reader, or a writer that waits as one.
    Registered(Place),
    Waits(Place),
    HasGate(Place),
    /// It knows whether it got the gate.
    Settles(Place, bool),
    /// It has passed or left, and wakes the writer.
    Wakes(bool),
    Reads,
    /// It has seen LEAVING. It reads, or otherwise writes.
    WaitsForLeaver(bool),
    HasLeaver(bool),
    HasCleared(bool),
    ClearsAfterwards(bool),
    Exits,
    UnlocksLeaverAfterwards,
    // A writer.
    WaitsForTurn,
    HasTurn,
    /// It waits for readers while the half is this, before or after it has come.
    Sleeps(u32, bool),
    Asleep(bool),
    Prepared,
    Drains,
    Writes,
    GivesTurnBack,
    // A writer that leaves without waiters.
    PassesTurn,
    Leaves,
    PassesTurnAfterwards,
    // A writer that leaves to waiters, and whether it still has the turn.
    LocksLeaver(bool),
    LocksLeaverLate(Option<Place>, bool),
    Admits(bool),
    Opens(Place, bool),
    UnlocksTurn,
    UnlocksLeaver,
    UnlocksTurnAfterwards,
    Frees,
    Done,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Whole {
    state: State,
    turn: Word,
    leaver: Word,
    gates: [[Word; GATES]; 2],
    at: Vec<At>,
    rounds: Vec<u8>,
    /// The writers that entered since each reader was registered.
    passed_by: Vec<u8>,
    /// The threads that had left when the one that frees the lock entered, one bit each.
    left: u8,
    /// A thread has owned `leaver` since a writer set LEAVING.
    is_known: bool,
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
                At::WaitsForLeaver(reads) => At::HasLeaver(reads),
                At::LocksLeaver(has_turn) => At::Admits(has_turn),
                At::LocksLeaverLate(place, has_turn) => Self::opens(place, has_turn),
                _ => At::HasGate(place),
            };
            to(next);
        }
    }

    /// Locks `leaver`, or waits for it.
    fn locks_leaver(whole: &mut Whole, task: usize, then: At) {
        if whole.leaver.owner == 0 {
            whole.leaver.owner = task as u8 + 1;
            whole.at[task] = then;
        } else {
            whole.leaver.waiters |= 1 << task;
        }
    }

    fn gate(whole: &mut Whole, place: Place) -> &mut Word {
        &mut whole.gates[place.phase][place.gate]
    }

    fn turn(whole: &mut Whole, _: Place) -> &mut Word {
        &mut whole.turn
    }

    fn leaver(whole: &mut Whole, _: Place) -> &mut Word {
        &mut whole.leaver
    }

    /// Whether all others have unlocked for the last time, as one that enters may conclude.
    fn left(&self, whole: &Whole, task: usize) -> u8 {
        let has_left = |&other: &usize| {
            let is_last = whole.rounds[other] + 1 == self.scripts[other].rounds;
            match whole.at[other] {
                At::Done => true,
                At::Wakes(is_inside) => !is_inside && is_last,
                At::PassesTurnAfterwards | At::Opens(..) | At::UnlocksTurn | At::UnlocksLeaver => is_last,
                At::UnlocksTurnAfterwards | At::UnlocksLeaverAfterwards | At::LocksLeaverLate(..) => is_last,
                _ => false,
            }
        };
        (0..whole.at.len()).filter(|other| *other != task).filter(has_left).fold(0, |left, other| left | 1 << other)
    }

    /// The thread enters. One that frees the lock notes who has left.
    fn enters(&self, whole: &mut Whole, task: usize, at: At) {
        if self.scripts[task].frees {
            whole.left = self.left(whole, task);
        }
        whole.at[task] = at;
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
        self.enters(whole, task, At::Writes);
        for reader in 0..whole.at.len() {
            let waits = matches!(whole.at[reader], At::Registered(_) | At::Waits(_) | At::HasGate(_));
            whole.passed_by[reader] += u8::from(waits && !self.scripts[reader].writes);
            if whole.passed_by[reader] > 1 {
                whole.wrong = Some("a reader waits for two writers");
            }
        }
    }

    fn enters_to_read(&self, whole: &mut Whole, task: usize) {
        if whole.at.contains(&At::Writes) {
            whole.wrong = Some("two inside");
        }
        self.enters(whole, task, At::Reads);
    }

    /// A reader has left. A writer that waited as one continues with its turn.
    fn has_read(&self, whole: &mut Whole, task: usize) {
        if self.scripts[task].writes {
            whole.at[task] = At::HasTurn;
        } else {
            self.ends_round(whole, task);
        }
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
                        self.enters_to_read(&mut next, task);
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
                    self.enters_to_read(&mut next, task);
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
                    if self.scripts[task].writes {
                        next.at[task] = At::GivesTurnBack;
                    } else {
                        self.ends_round(&mut next, task);
                    }
                }
                to(next);
            }
            At::Wakes(is_inside) => {
                Self::wakes(&mut next);
                if is_inside {
                    self.enters_to_read(&mut next, task);
                } else {
                    self.has_read(&mut next, task);
                }
                to(next);
            }
            At::Reads => {
                let is_leaving = whole.state.is_leaving() && self.mutant != Mutant::ReaderLeavesBefore;
                if is_leaving && whole.is_known && self.mutant != Mutant::ClearsLate {
                    next.wrong = Some(WAITS_FOR_A_HOLDER);
                }
                next.at[task] = if is_leaving { At::WaitsForLeaver(true) } else { At::Exits };
                to(next);
            }
            At::WaitsForLeaver(reads) => {
                if whole.leaver.waiters & 1 << task != 0 {
                    return;
                }
                Self::locks_leaver(&mut next, task, At::HasLeaver(reads));
                to(next);
            }
            At::HasLeaver(reads) => {
                next.is_known = true;
                next.at[task] = At::HasCleared(reads);
                if !matches!(self.mutant, Mutant::ClearsLate | Mutant::ClearsNever) {
                    next.state = whole.state.left();
                }
                to(next);
            }
            At::HasCleared(reads) => {
                next.at[task] = match self.mutant {
                    Mutant::ClearsLate => At::ClearsAfterwards(reads),
                    _ => Self::exits(reads),
                };
                if self.mutant == Mutant::UnlocksLeaverLast && reads {
                    to(next);
                } else {
                    Self::unlock(Self::leaver, NOWHERE, &next, to);
                }
            }
            At::ClearsAfterwards(reads) => {
                next.state = whole.state.left();
                next.at[task] = Self::exits(reads);
                to(next);
            }
            At::Exits => {
                let Some((state, wakes)) = whole.state.reader_leaves() else {
                    next.wrong = Some("nobody is inside");
                    return to(next);
                };
                next.state = state;
                if wakes && self.mutant != Mutant::LeavesQuietly {
                    next.at[task] = At::Wakes(false);
                } else if self.mutant == Mutant::UnlocksLeaverLast && usize::from(whole.leaver.owner) == task + 1 {
                    next.at[task] = At::UnlocksLeaverAfterwards;
                } else {
                    self.has_read(&mut next, task);
                }
                to(next);
            }
            At::UnlocksLeaverAfterwards => {
                self.has_read(&mut next, task);
                Self::unlock(Self::leaver, NOWHERE, &next, to);
            }
            At::Frees => {
                next.at[task] = At::Done;
                let known = |other: usize| next.at[other] == At::Done || whole.left & 1 << other != 0;
                next.is_freed = (0..whole.at.len()).all(known);
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
            At::HasTurn if whole.state.has_writer() && self.mutant != Mutant::FollowsNobody => {
                let Enter::Wait(state, place) = whole.state.enter(false) else { unreachable!("a writer is inside") };
                next.state = state;
                next.at[task] = At::Registered(place);
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
                    self.leaves(&mut next, task);
                } else {
                    next.at[task] = At::GivesTurnBack;
                }
                to(next);
            }
            At::GivesTurnBack => {
                self.ends_round(&mut next, task);
                Self::unlock(Self::turn, NOWHERE, &next, to);
            }
            At::Writes => {
                self.leaves(&mut next, task);
                to(next);
            }
            At::PassesTurn if self.mutant == Mutant::PassesTurnLast => {
                next.at[task] = At::Leaves;
                to(next);
            }
            At::PassesTurn => {
                if whole.turn.waiters == 0 {
                    next.turn.owner = 0;
                    next.at[task] = At::Leaves;
                } else {
                    next.at[task] = At::LocksLeaver(true);
                }
                to(next);
            }
            At::Leaves => {
                if whole.state.waiting() == 0 {
                    next.state = self.after(whole.state);
                    // The gates keep the id of a writer that has left, and nobody looks at them.
                    next.gates[whole.state.phase()] = Default::default();
                    if self.mutant == Mutant::PassesTurnLast {
                        next.at[task] = At::PassesTurnAfterwards;
                    } else {
                        self.ends_round(&mut next, task);
                    }
                } else {
                    next.at[task] = At::LocksLeaver(self.mutant == Mutant::PassesTurnLast);
                }
                to(next);
            }
            At::LocksLeaver(has_turn) => {
                if matches!(self.mutant, Mutant::LeavesUnseen | Mutant::OwnsLeaverLate) {
                    next.at[task] = At::Admits(has_turn);
                } else if whole.leaver.waiters & 1 << task != 0 {
                    return;
                } else {
                    Self::locks_leaver(&mut next, task, At::Admits(has_turn));
                }
                to(next);
            }
            At::LocksLeaverLate(place, has_turn) => {
                if whole.leaver.waiters & 1 << task != 0 {
                    return;
                }
                Self::locks_leaver(&mut next, task, Self::opens(place, has_turn));
                to(next);
            }
            At::Admits(has_turn) => {
                let before = whole.state;
                next.state = self.after(before).leaving();
                next.is_known = false;
                let place = (before.waiting() > 0).then_some(Place { phase: before.phase(), gate: 0 });
                if place.is_none() {
                    next.gates[before.phase()] = Default::default();
                }
                if self.mutant == Mutant::OwnsLeaverLate {
                    next.at[task] = At::LocksLeaverLate(place, has_turn);
                } else if let Some(place) = place {
                    next.at[task] = At::Opens(place, has_turn);
                } else {
                    self.has_opened(&mut next, task, has_turn);
                }
                to(next);
            }
            At::Opens(Place { phase, gate }, has_turn) => {
                if gate + 1 < GATES {
                    next.at[task] = At::Opens(Place { phase, gate: gate + 1 }, has_turn);
                } else {
                    self.has_opened(&mut next, task, has_turn);
                }
                Self::unlock(Self::gate, Place { phase, gate }, &next, to);
            }
            At::UnlocksTurn => {
                self.has_turned(&mut next, task);
                Self::unlock(Self::turn, NOWHERE, &next, to);
            }
            At::UnlocksLeaver => {
                if self.mutant == Mutant::UnlocksTurnLast && usize::from(whole.turn.owner) == task + 1 {
                    next.at[task] = At::UnlocksTurnAfterwards;
                } else {
                    self.ends_round(&mut next, task);
                }
                Self::unlock(Self::leaver, NOWHERE, &next, to);
            }
            At::PassesTurnAfterwards | At::UnlocksTurnAfterwards => {
                self.ends_round(&mut next, task);
                Self::unlock(Self::turn, NOWHERE, &next, to);
            }
            _ => self.reader_steps(whole, task, to),
        }
    }

    /// The first step of a writer that leaves: it looks at LEAVING.
    fn leaves(&self, whole: &mut Whole, task: usize) {
        if whole.state.is_leaving() && whole.is_known && self.mutant != Mutant::ClearsLate {
            whole.wrong = Some(WAITS_FOR_A_HOLDER);
        }
        whole.at[task] = if whole.state.is_leaving() && self.mutant != Mutant::WriterLeavesBefore {
            At::WaitsForLeaver(false)
        } else {
            At::PassesTurn
        };
    }

    /// What follows when no other thread accesses the lock to leave.
    fn exits(reads: bool) -> At {
        if reads { At::Exits } else { At::PassesTurn }
    }

    /// What follows when a writer has admitted others and owns `leaver`.
    fn opens(place: Option<Place>, has_turn: bool) -> At {
        match place {
            Some(place) => At::Opens(place, has_turn),
            None if has_turn => At::UnlocksTurn,
            None => At::UnlocksLeaver,
        }
    }

    /// The gates are unlocked.
    fn has_opened(&self, whole: &mut Whole, task: usize, has_turn: bool) {
        if has_turn && self.mutant != Mutant::UnlocksTurnLast {
            whole.at[task] = At::UnlocksTurn;
        } else {
            self.has_turned(whole, task);
        }
    }

    /// The turn is unlocked.
    fn has_turned(&self, whole: &mut Whole, task: usize) {
        if self.mutant == Mutant::LeavesUnseen {
            self.ends_round(whole, task);
        } else {
            whole.at[task] = At::UnlocksLeaver;
        }
        if self.mutant == Mutant::ClearsEarly {
            whole.state = whole.state.left();
        }
    }

    fn is_free(&self, whole: &Whole) -> bool {
        whole.state.is_free() && [whole.turn, whole.leaver] == [Word::default(); 2]
    }

    /// The word after the writer has left.
    fn after(&self, before: State) -> State {
        match self.mutant {
            Mutant::AdmitsNobody => {
                let waiting = before.waiting() << 32;
                State(State(before.0 - waiting).writer_leaves().0 + waiting)
            }
            Mutant::KeepsPhase if before.waiting() > 0 => {
                let after = before.writer_leaves();
                State(after.0 ^ (before.0 ^ after.0) & 1 << 50)
            }
            _ => before.writer_leaves(),
        }
    }
}

impl Model for Walk {
    type State = Whole;

    fn start(&self) -> Whole {
        let count = self.scripts.len();
        Whole {
            state: State(0),
            turn: Word::default(),
            leaver: Word::default(),
            gates: Default::default(),
            at: vec![At::Start; count],
            rounds: vec![0; count],
            passed_by: vec![0; count],
            left: 0,
            is_known: false,
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
        // A reader that wakes a writer needs only the address.
        let accesses = match whole.at[task] {
            At::Wakes(_) => self.mutant == Mutant::LooksAfterwards,
            At::Frees | At::Done => false,
            _ => true,
        };
        if whole.is_freed && accesses {
            return to(Whole { wrong: Some("an access to a lock that was freed"), ..whole.clone() });
        }
        if self.scripts[task].writes {
            self.writer_steps(whole, task, to);
        } else {
            self.reader_steps(whole, task, to);
        }
    }

    fn is_done(&self, whole: &Whole) -> bool {
        whole.at.iter().all(|at| *at == At::Done)
    }

    fn is_wrong(&self, whole: &Whole) -> bool {
        whole.wrong.is_some() || self.is_done(whole) && !self.is_free(whole)
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

/// By the last user, as soon as its own unlock has returned: no thread that left before it still accesses the lock.
#[test]
fn the_last_user_may_free_the_memory() {
    let _behind = behind();
    let one_writer = [reads(1), reads(1), frees(writes(1))];
    let one_reader = [writes(2), reads(1), frees(reads(1))];
    let writers = [writes(1), reads(1), frees(writes(1))];
    let more_writers = [writes(1), impatient(writes(1)), frees(reads(1))];
    let hasty = [impatient(writes(2)), reads(1), reads(1), frees(writes(1))];
    let disturbed = [impatient(writes(2)), reads(1), reads(1), frees(reads(1))];
    for scripts in [&one_writer[..], &one_reader, &writers, &more_writers, &hasty, &disturbed] {
        assert!(holds(scripts, Mutant::None));
    }
    for mutant in [
        Mutant::LeavesUnseen,
        Mutant::OwnsLeaverLate,
        Mutant::ReaderLeavesBefore,
        Mutant::PassesTurnLast,
        Mutant::ClearsEarly,
        Mutant::ClearsNever,
        Mutant::UnlocksLeaverLast,
    ] {
        assert!(!holds(&one_reader, mutant), "{mutant:?}");
    }
    assert!(!holds(&disturbed, Mutant::ClearsLate));
    assert!(!holds(&one_writer, Mutant::LooksAfterwards));
    assert!(!holds(&writers, Mutant::WriterLeavesBefore));
    assert!(!holds(&writers, Mutant::FollowsNobody));
    assert!(!holds(&more_writers, Mutant::UnlocksTurnLast));
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
