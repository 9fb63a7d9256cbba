//! A walk over all interleavings of a few threads at the word of a robust mutex, with a stand-in for the kernel's
//! queue. Threads die at any step, and waits time out at any time.
//!
//! The steps are those of `wait` and [`pass`](super::pass), in sequentially consistent memory. Any waiter may be the
//! most urgent one, and a mutex with [`AUTO`](crate::mutex::attributes::AUTO) may decide either way at each unlock.
//!
//! A state is wrong if two threads are inside, or if a thread sleeps and no other thread has a step left: then no
//! thread will wake it.

use super::super::word::{self, Ask, DIED, FREE, HANDED, WAITERS};
use crate::behind::behind;
use crate::search::{Model, columns, search};

/// How many rounds an unlock makes here.
const ROUNDS: u8 = 2;

/// A mutation of the steps that must make a property fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mutant {
    None,
    /// An unlock that wakes a waiter frees the word and forgets the others.
    Forgets,
    /// An unlock that finds no waiter clears the announcement, and wakes nobody with the same call.
    ClearsQuietly,
    /// An unlock that has cleared the announcement writes FREE whatever the word is.
    FreesBlindly,
    /// An unlock that finds no waiter frees the word without clearing the announcement first.
    FreesAtOnce,
    /// A thread that locks an open mutex drops the announcement.
    DropsWaiters,
    /// A mutex that was handed over while nobody waited stays handed.
    StaysHanded,
    /// Threads do not recognise an open mutex.
    SeesNothingOpen,
    /// The kernel wakes nobody when a thread dies that has announced the mutex and does not own it.
    KernelForgets,
}

/// How unlocks pass the mutex on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Parallel,
    Serial,
    /// One or the other, at each unlock.
    Auto,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    Start,
    /// It is about to read the word, and has just been woken or not.
    Reads(bool),
    /// It has read that the word is HANDED, and has yet to read whether the mutex is open.
    Looks(bool),
    /// It has decided for this word; the last flag says that it may take a handed one.
    Decides(u32, bool, bool),
    Asleep(u32),
    Inside,
    /// It unlocks, in this round.
    Frees(u8),
    Counts(u8),
    Clears(u8),
    /// It has decided to hand the mutex over, or to open it.
    Marks(u8, bool),
    Passes(u8, bool),
    Wakes(u8, bool),
    Regains(u8),
    Done,
    Dead,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Thread {
    visits: u8,
    is_mortal: bool,
    times_out: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Whole {
    word: u32,
    is_open: bool,
    was_open: bool,
    at: Vec<At>,
    visits: Vec<u8>,
    /// A mutex that was never open was locked by a thread that is not its heir.
    is_stolen: bool,
}

struct Walk {
    threads: Vec<Thread>,
    mode: Mode,
    mutant: Mutant,
}

impl Walk {
    /// Wakes one sleeper, if there is one; any may be the first. Passes on each result, with whether one was woken.
    fn wake_one(whole: &Whole, then: &mut dyn FnMut(Whole, bool)) {
        let mut is_empty = true;
        for (who, _) in whole.at.iter().enumerate().filter(|(_, at)| matches!(at, At::Asleep(_))) {
            is_empty = false;
            let mut next = whole.clone();
            next.at[who] = At::Reads(true);
            then(next, true);
        }
        if is_empty {
            then(whole.clone(), false);
        }
    }

    fn wake_all(whole: &mut Whole) {
        whole.at.iter_mut().filter(|at| matches!(at, At::Asleep(_))).for_each(|at| *at = At::Reads(true));
    }

    fn leaves(&self, whole: &mut Whole, task: usize) {
        whole.visits[task] += 1;
        whole.at[task] = if whole.visits[task] == self.threads[task].visits { At::Done } else { At::Start };
    }

    /// What the kernel does when the thread ends.
    fn dies(&self, whole: &Whole, task: usize, to: &mut dyn FnMut(Whole)) {
        let mut next = whole.clone();
        next.at[task] = At::Dead;
        let owner = word::owner(whole.word);
        if owner == task as u32 + 1 {
            next.word = DIED | whole.word & WAITERS;
            if whole.word & WAITERS == 0 {
                return to(next);
            }
        } else if owner != 0 || whole.at[task] == At::Start || self.mutant == Mutant::KernelForgets {
            return to(next);
        }
        Self::wake_one(&next, &mut |next, _| to(next));
    }

    /// Carries out what `ask` decides about a word that is still `seen`.
    fn decides(&self, next: &mut Whole, task: usize, seen: u32, was_woken: bool, may_take: bool) {
        let me = task as u32 + 1;
        next.at[task] = match word::ask(seen, me, self.mutant == Mutant::Forgets, may_take) {
            _ if next.word != seen => At::Reads(was_woken),
            Ask::Take { word, .. } => {
                next.is_stolen |= seen == HANDED && !was_woken && !next.was_open && !next.at.contains(&At::Dead);
                next.word = if self.mutant == Mutant::DropsWaiters { me } else { word };
                At::Inside
            }
            Ask::Announce(announced) => {
                next.word = announced;
                At::Reads(false)
            }
            Ask::Wait => At::Asleep(seen),
        };
    }

    /// A step of an unlock.
    fn unlocks(&self, whole: &Whole, task: usize, to: &mut dyn FnMut(Whole)) {
        let me = task as u32 + 1;
        let mut next = whole.clone();
        match whole.at[task] {
            At::Frees(round) if whole.word == me || round > 0 && self.mutant == Mutant::FreesBlindly => {
                next.word = FREE;
                self.leaves(&mut next, task);
            }
            At::Frees(round) => next.at[task] = At::Counts(round),
            At::Counts(ROUNDS) => {
                next.word = FREE;
                Self::wake_all(&mut next);
                self.leaves(&mut next, task);
            }
            At::Counts(round) if whole.at.iter().any(|at| matches!(at, At::Asleep(_))) => {
                let modes: &[bool] = match self.mode {
                    Mode::Parallel => &[false],
                    Mode::Serial => &[true],
                    Mode::Auto => &[false, true],
                };
                for &hands in modes {
                    next.at[task] = At::Marks(round, hands);
                    to(next.clone());
                }
                return;
            }
            At::Counts(round) => next.at[task] = At::Clears(round),
            At::Clears(round) => {
                if self.mutant == Mutant::FreesAtOnce {
                    next.word = FREE;
                    self.leaves(&mut next, task);
                } else {
                    next.word &= !WAITERS;
                    if self.mutant != Mutant::ClearsQuietly {
                        Self::wake_all(&mut next);
                    }
                    next.at[task] = At::Frees(round + 1);
                }
            }
            At::Marks(round, hands) => {
                next.is_open = !hands;
                next.was_open |= !hands;
                next.at[task] = At::Passes(round, hands);
            }
            At::Passes(round, hands) => {
                next.word = if self.mutant == Mutant::Forgets { FREE } else { HANDED };
                next.at[task] = At::Wakes(round, hands);
            }
            At::Wakes(round, _) => {
                return Self::wake_one(whole, &mut |mut next, is_woken| {
                    let regains = !is_woken && self.mode != Mode::Parallel;
                    if regains && self.mutant != Mutant::StaysHanded {
                        next.at[task] = At::Regains(round);
                    } else {
                        self.leaves(&mut next, task);
                    }
                    to(next);
                });
            }
            At::Regains(round) if whole.word == HANDED => {
                next.word = me | WAITERS;
                next.at[task] = At::Counts(round + 1);
            }
            At::Regains(_) => self.leaves(&mut next, task),
            _ => return,
        }
        to(next);
    }
}

impl Model for Walk {
    type State = Whole;

    fn start(&self) -> Whole {
        let count = self.threads.len();
        Whole {
            word: FREE,
            is_open: false,
            was_open: false,
            at: vec![At::Start; count],
            visits: vec![0; count],
            is_stolen: false,
        }
    }

    fn tasks(&self) -> usize {
        self.threads.len()
    }

    fn steps(&self, whole: &Whole, task: usize, to: &mut dyn FnMut(Whole)) {
        let at = whole.at[task];
        if matches!(at, At::Done | At::Dead) || self.is_wrong(whole) {
            return;
        }
        if self.threads[task].is_mortal {
            self.dies(whole, task, to);
        }
        let me = task as u32 + 1;
        let mut next = whole.clone();
        match at {
            At::Start if whole.word == FREE => {
                next.word = me;
                next.at[task] = At::Inside;
            }
            At::Start => next.at[task] = At::Reads(false),
            At::Reads(was_woken) if whole.word == HANDED && self.mutant != Mutant::SeesNothingOpen => {
                next.at[task] = At::Looks(was_woken);
            }
            At::Reads(was_woken) => next.at[task] = At::Decides(whole.word, was_woken, was_woken),
            At::Looks(was_woken) => next.at[task] = At::Decides(HANDED, was_woken, was_woken || whole.is_open),
            At::Decides(seen, was_woken, may_take) => self.decides(&mut next, task, seen, was_woken, may_take),
            At::Asleep(seen) => {
                if self.threads[task].times_out {
                    let mut next = whole.clone();
                    self.leaves(&mut next, task);
                    to(next);
                }
                // The heir had its time. If no thread has died, no thread needs to wait that long.
                if seen == HANDED && whole.word == HANDED && whole.at.contains(&At::Dead) {
                    next.at[task] = At::Decides(HANDED, false, true);
                }
            }
            At::Inside => next.at[task] = At::Frees(0),
            _ => return self.unlocks(whole, task, to),
        }
        to(next);
    }

    fn is_done(&self, whole: &Whole) -> bool {
        whole.at.iter().all(|at| matches!(at, At::Done | At::Dead))
    }

    fn is_wrong(&self, whole: &Whole) -> bool {
        let inside = whole.at.iter().filter(|at| **at == At::Inside).count();
        let is_still = |(task, at): (usize, &At)| match at {
            At::Done | At::Dead => true,
            At::Asleep(seen) => {
                let passes = *seen == HANDED && whole.word == HANDED && whole.at.contains(&At::Dead);
                !self.threads[task].times_out && !passes
            }
            _ => false,
        };
        inside > 1 || whole.is_stolen || !self.is_done(whole) && whole.at.iter().enumerate().all(is_still)
    }

    fn counts(&self, _: &Whole, _: usize, to: &Whole) -> bool {
        self.is_wrong(to)
    }

    fn describe(&self, _: &Whole, task: usize, to: &Whole) -> String {
        format!("{:?} {:x}", to.at[task], to.word)
    }
}

const STAYS: Thread = Thread { visits: 1, is_mortal: false, times_out: false };
const TWICE: Thread = Thread { visits: 2, ..STAYS };
const DIES: Thread = Thread { is_mortal: true, ..STAYS };
const DIES_LATER: Thread = Thread { is_mortal: true, ..TWICE };
const GIVES_UP: Thread = Thread { times_out: true, ..STAYS };

/// Whether all interleavings of these threads keep all guarantees.
fn holds(threads: &[Thread], mode: Mode, mutant: Mutant) -> bool {
    let walk = Walk { threads: threads.to_vec(), mode, mutant };
    let found = search(&walk);
    let is_right = !found.is_wrong && found.stuck == 0;
    eprintln!("{mode:?}, {mutant:?}: {} states", found.states);
    if !is_right {
        let way = if found.is_wrong { &found.way_to_counted } else { &found.way_to_stuck };
        eprintln!("wrong: {}, {} stuck\n{}", found.is_wrong, found.stuck, columns(walk.tasks(), way));
    }
    is_right
}

const MODES: [Mode; 3] = [Mode::Parallel, Mode::Serial, Mode::Auto];

// A search keeps a processor busy, so it executes behind the tests on real threads.

#[test]
fn no_death_and_no_time_out_loses_a_sleeper() {
    let _behind = behind();
    for mode in MODES {
        assert!(holds(&[TWICE, TWICE, STAYS], mode, Mutant::None));
        assert!(holds(&[DIES_LATER, TWICE, STAYS], mode, Mutant::None));
        assert!(holds(&[DIES_LATER, GIVES_UP, STAYS, STAYS], mode, Mutant::None));
        assert!(holds(&[DIES, DIES, STAYS, STAYS], mode, Mutant::None));
    }
}

#[test]
fn each_mutation_fails() {
    let _behind = behind();
    for (mutant, mode) in [
        (Mutant::Forgets, Mode::Parallel),
        (Mutant::ClearsQuietly, Mode::Parallel),
        (Mutant::FreesBlindly, Mode::Parallel),
        (Mutant::FreesAtOnce, Mode::Parallel),
        (Mutant::DropsWaiters, Mode::Parallel),
        (Mutant::StaysHanded, Mode::Serial),
        (Mutant::SeesNothingOpen, Mode::Parallel),
        (Mutant::KernelForgets, Mode::Parallel),
    ] {
        let all = [
            holds(&[DIES_LATER, TWICE, STAYS], mode, mutant),
            holds(&[DIES_LATER, GIVES_UP, STAYS, STAYS], mode, mutant),
            holds(&[DIES, DIES, STAYS, STAYS], mode, mutant),
        ];
        assert!(all.contains(&false), "{mutant:?}");
    }
}
