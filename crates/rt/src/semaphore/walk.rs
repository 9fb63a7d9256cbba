//! A walk over all interleavings of a few threads that acquire and release, with the transitions of `state` and a
//! stand-in for the kernel's queue.
//!
//! The steps are those of `mod`, in sequentially consistent memory. An exchange that is repeated is one step.

use super::state::State;
use crate::behind::behind;
use crate::search::{Model, columns, search};

/// A mutation of the steps that must make a property fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mutant {
    None,
    /// A thread that asks takes a grant that is there already.
    Barges,
    /// A release does not wake.
    ReleasesQuietly,
    /// A release looks for waiters after its exchange.
    LooksAfterwards,
    /// A thread that gives up does not look for a grant.
    GivesUpBlindly,
    /// A thread that was woken only takes grants that came since it looked.
    DistrustsWakeUps,
    /// A thread takes a grant without looking how many others took.
    TakesBlindly,
    /// A cancelled thread keeps the unit that it was granted.
    KeepsUnit,
    /// A release of several units grants one.
    GrantsOne,
}

/// An operation of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Op {
    Acquire,
    /// Acquires, and may give up while it sleeps. If it does, it skips the next operation.
    Try,
    /// The same, by being cancelled.
    Cancellable,
    Release(u32),
    /// Frees the memory of the semaphore.
    Free,
}

use Op::{Acquire, Cancellable, Free, Release, Try};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    Start,
    Asks,
    Sleeps(u32),
    Asleep(u32),
    /// It looks for a grant: what it has seen, and why it looks.
    Looks(u32, Why),
    /// The same, and it has read how many grants were taken.
    Compares(u32, Why, u32),
    Takes(u32, Why, u32),
    /// It leaves if the word is still this.
    Leaves(u32, Why, State),
    /// It has released, and wakes that many.
    Wakes(u32),
    /// The mutant that looks for waiters after its exchange.
    LooksAgain,
    /// It passes on the unit that it was granted while it was cancelled.
    PassesOn,
    Done,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Why {
    Changed,
    Woken,
    GivesUp,
    Cancelled,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Whole {
    state: State,
    taken: u32,
    is_freed: bool,
    queue: Vec<u8>,
    at: Vec<At>,
    next: Vec<u8>,
    /// For each thread that waits, the threads that asked before it, one bit each.
    before: Vec<u8>,
    /// Units that nobody has, as they should be.
    free: i32,
    wrong: Option<&'static str>,
}

struct Walk {
    units: u32,
    scripts: Vec<Vec<Op>>,
    /// All threads have one priority, and nobody may overtake a thread that waits.
    is_strict: bool,
    mutant: Mutant,
}

impl Walk {
    fn op(&self, whole: &Whole, task: usize) -> Option<Op> {
        self.scripts[task].get(usize::from(whole.next[task])).copied()
    }

    fn advances(&self, whole: &mut Whole, task: usize, count: u8) {
        whole.next[task] += count;
        whole.at[task] = if self.op(whole, task).is_some() { At::Start } else { At::Done };
    }

    fn waits(whole: &Whole, task: usize) -> bool {
        !matches!(whole.at[task], At::Start | At::Asks | At::Wakes(_) | At::LooksAgain | At::PassesOn | At::Done)
    }

    /// The thread has a unit.
    fn acquires(&self, whole: &mut Whole, task: usize, waited: bool) {
        whole.free -= 1;
        if whole.free < 0 {
            whole.wrong = Some("a unit for two");
        }
        if self.is_strict {
            let passes = |other: usize| {
                other != task && Self::waits(whole, other) && (!waited || whole.before[task] & 1 << other != 0)
            };
            if (0..whole.at.len()).any(passes) {
                whole.wrong = Some("a thread is overtaken");
            }
        }
        whole.before.iter_mut().for_each(|before| *before &= !(1 << task));
        self.advances(whole, task, 1);
    }

    fn releases(&self, whole: &Whole, task: usize, units: u32, to: &mut dyn FnMut(Whole)) {
        let mut next = whole.clone();
        let (state, granted) = match (self.mutant, whole.state.release(units).expect("a few units")) {
            (Mutant::LooksAfterwards, _) => (State(whole.state.0.wrapping_add(u64::from(units) << 32)), 0),
            (Mutant::GrantsOne, (state, granted)) if granted > 1 => {
                (State::of(state.balance(), whole.state.grants() + 1), 1)
            }
            (_, released) => released,
        };
        next.state = state;
        next.free += units as i32;
        next.at[task] = match self.mutant {
            Mutant::LooksAfterwards => At::LooksAgain,
            _ => At::Wakes(granted),
        };
        to(next);
    }

    /// Wakes `count` sleepers, any of them, or the first ones.
    fn wakes(&self, whole: &Whole, count: u32, to: &mut dyn FnMut(Whole)) {
        if count == 0 || whole.queue.is_empty() || self.mutant == Mutant::ReleasesQuietly {
            return to(whole.clone());
        }
        let choices = if self.is_strict { 1 } else { whole.queue.len() };
        for &sleeper in &whole.queue[..choices] {
            let mut next = whole.clone();
            next.queue.retain(|other| *other != sleeper);
            let woken = usize::from(sleeper);
            let At::Asleep(seen) = next.at[woken] else { unreachable!("it sleeps") };
            next.at[woken] = At::Looks(seen, Why::Woken);
            self.wakes(&next, count - 1, to);
        }
    }

    fn acquisition(&self, whole: &Whole, task: usize, to: &mut dyn FnMut(Whole)) {
        let mut next = whole.clone();
        match whole.at[task] {
            At::Start if whole.state.balance() > 0 => {
                next.state = whole.state.ask();
                self.acquires(&mut next, task, false);
            }
            At::Start => next.at[task] = At::Asks,
            At::Asks => {
                next.state = whole.state.ask();
                if whole.state.balance() > 0 {
                    self.acquires(&mut next, task, false);
                } else {
                    let earlier = (0..whole.at.len()).filter(|other| *other != task && Self::waits(whole, *other));
                    next.before[task] = earlier.map(|other| 1 << other).sum();
                    let seen = whole.state.grants();
                    next.at[task] = At::Sleeps(seen);
                    if self.mutant == Mutant::Barges {
                        next.at[task] = At::Looks(seen.wrapping_sub(1), Why::Changed);
                    }
                }
            }
            At::Sleeps(seen) if whole.state.grants() == seen => {
                next.at[task] = At::Asleep(seen);
                next.queue.push(task as u8);
            }
            At::Sleeps(seen) => next.at[task] = At::Looks(seen, Why::Changed),
            At::Asleep(seen) => {
                let why = match self.op(whole, task) {
                    Some(Try) => Why::GivesUp,
                    Some(Cancellable) => Why::Cancelled,
                    _ => return,
                };
                next.queue.retain(|sleeper| usize::from(*sleeper) != task);
                next.at[task] = At::Looks(seen, why);
            }
            At::Looks(seen, why) => next.at[task] = At::Compares(seen, why, whole.taken),
            At::Compares(seen, why, taken) => {
                let state = whole.state;
                let may_take = match why {
                    Why::Woken => self.mutant != Mutant::DistrustsWakeUps || state.grants() != seen,
                    Why::Changed => state.grants() != seen,
                    Why::GivesUp => state.grants() != seen || state.balance() >= 0,
                    Why::Cancelled => true,
                };
                let blind = why == Why::GivesUp && self.mutant == Mutant::GivesUpBlindly;
                next.at[task] = if taken != state.grants() && may_take && !blind {
                    At::Takes(seen, why, taken)
                } else if matches!(why, Why::GivesUp | Why::Cancelled) {
                    At::Leaves(seen, why, state)
                } else {
                    At::Sleeps(state.grants())
                };
            }
            At::Takes(_, why, taken) if whole.taken == taken || self.mutant == Mutant::TakesBlindly => {
                next.taken = whole.taken + 1;
                if why == Why::Cancelled {
                    next.at[task] = At::PassesOn;
                    next.before.iter_mut().for_each(|before| *before &= !(1 << task));
                } else {
                    self.acquires(&mut next, task, true);
                }
            }
            At::Takes(seen, why, _) => next.at[task] = At::Looks(seen, why),
            At::Leaves(seen, why, state) => {
                let left = if self.mutant == Mutant::GivesUpBlindly {
                    Some(State(whole.state.0.wrapping_add(super::UNIT)))
                } else {
                    state.give_up().filter(|_| whole.state == state)
                };
                if let Some(left) = left {
                    next.state = left;
                    next.before.iter_mut().for_each(|before| *before &= !(1 << task));
                    self.advances(&mut next, task, 2);
                } else if whole.state == state {
                    next.wrong = Some("nobody waits");
                } else {
                    next.at[task] = At::Looks(seen, why);
                }
            }
            _ => return,
        }
        to(next);
    }
}

impl Model for Walk {
    type State = Whole;

    fn start(&self) -> Whole {
        let count = self.scripts.len();
        Whole {
            state: State::of(self.units as i32, 0),
            taken: 0,
            is_freed: false,
            queue: Vec::new(),
            at: vec![At::Start; count],
            next: vec![0; count],
            before: vec![0; count],
            free: self.units as i32,
            wrong: None,
        }
    }

    fn tasks(&self) -> usize {
        self.scripts.len()
    }

    fn steps(&self, whole: &Whole, task: usize, to: &mut dyn FnMut(Whole)) {
        let Some(op) = self.op(whole, task) else { return };
        if whole.wrong.is_some() {
            return;
        }
        if let At::Wakes(count) = whole.at[task] {
            let mut next = whole.clone();
            self.advances(&mut next, task, if op == Cancellable { 2 } else { 1 });
            return self.wakes(&next, count, to);
        }
        if whole.is_freed {
            let mut next = whole.clone();
            next.wrong = Some("freed memory is touched");
            return to(next);
        }
        match (op, whole.at[task]) {
            (Free, _) => {
                let mut next = whole.clone();
                next.is_freed = true;
                self.advances(&mut next, task, 1);
                to(next);
            }
            // The mutant.
            (Release(units), At::LooksAgain) => {
                let mut next = whole.clone();
                let waiting = units.min(whole.queue.len() as u32);
                next.state = State::of(whole.state.balance(), whole.state.grants() + waiting);
                next.at[task] = At::Wakes(waiting);
                to(next);
            }
            (Release(units), _) => self.releases(whole, task, units, to),
            (_, At::PassesOn) if self.mutant == Mutant::KeepsUnit => {
                let mut next = whole.clone();
                self.advances(&mut next, task, 2);
                to(next);
            }
            (_, At::PassesOn) => {
                let mut before = whole.clone();
                before.free -= 1;
                self.releases(&before, task, 1, to);
            }
            _ => self.acquisition(whole, task, to),
        }
    }

    fn is_done(&self, whole: &Whole) -> bool {
        whole.at.iter().all(|at| *at == At::Done)
    }

    fn is_wrong(&self, whole: &Whole) -> bool {
        let is_exact = whole.state.balance() == whole.free && whole.state.grants() == whole.taken;
        whole.wrong.is_some() || self.is_done(whole) && !whole.is_freed && !is_exact
    }

    fn counts(&self, _: &Whole, _: usize, to: &Whole) -> bool {
        self.is_wrong(to)
    }

    fn describe(&self, _: &Whole, task: usize, to: &Whole) -> String {
        format!("{:?} {}+{}-{}", to.at[task], to.state.balance(), to.state.grants(), to.taken)
    }
}

/// Whether all interleavings of these threads keep all guarantees.
fn holds(units: u32, scripts: &[&[Op]], is_strict: bool, mutant: Mutant) -> bool {
    let walk = Walk { units, scripts: scripts.iter().map(|script| script.to_vec()).collect(), is_strict, mutant };
    let found = search(&walk);
    let is_right = !found.is_wrong && found.stuck == 0;
    eprintln!("{scripts:?}, {mutant:?}: {} states", found.states);
    if !is_right {
        let way = if found.is_wrong { &found.way_to_counted } else { &found.way_to_stuck };
        eprintln!("wrong: {}, {} stuck\n{}", found.is_wrong, found.stuck, columns(walk.tasks(), way));
    }
    is_right
}

const TURNS: &[Op] = &[Acquire, Release(1), Acquire, Release(1)];
const HASTY: &[Op] = &[Try, Release(1), Try, Release(1)];
const CANCELLED: &[Op] = &[Cancellable, Release(1)];

// A search keeps a processor busy, so it executes behind the tests on real threads.

#[test]
fn no_unit_is_lost_or_used_twice() {
    let _behind = behind();
    assert!(holds(1, &[TURNS, TURNS, TURNS], false, Mutant::None));
    assert!(holds(2, &[TURNS, TURNS, &TURNS[..2], &TURNS[..2]], false, Mutant::None));
    assert!(holds(0, &[&[Release(3)], TURNS, &[Acquire], &[Acquire, Acquire, Release(1)]], false, Mutant::None));
}

#[test]
fn threads_give_up_and_are_cancelled_at_any_time() {
    let _behind = behind();
    assert!(holds(1, &[HASTY, TURNS, HASTY], false, Mutant::None));
    assert!(holds(1, &[CANCELLED, TURNS, HASTY], false, Mutant::None));
    assert!(holds(1, &[CANCELLED, CANCELLED, TURNS], false, Mutant::None));
    assert!(holds(0, &[&[Release(2)], HASTY, CANCELLED], false, Mutant::None));
}

#[test]
fn nobody_overtakes_a_thread_that_waits() {
    let _behind = behind();
    assert!(holds(1, &[TURNS, TURNS], true, Mutant::None));
    assert!(!holds(1, &[TURNS, TURNS], true, Mutant::Barges));
}

/// As soon as the last unit was acquired.
#[test]
fn the_memory_may_be_freed() {
    let _behind = behind();
    let frees: &[&[Op]] = &[&[Acquire, Acquire, Free], &[Release(1)], &[Release(1)]];
    assert!(holds(0, frees, false, Mutant::None));
    assert!(!holds(0, frees, false, Mutant::LooksAfterwards));
}

#[test]
fn each_mutation_fails() {
    let _behind = behind();
    for mutant in [Mutant::ReleasesQuietly, Mutant::DistrustsWakeUps, Mutant::TakesBlindly] {
        assert!(!holds(1, &[TURNS, TURNS, TURNS], false, mutant), "{mutant:?}");
    }
    assert!(!holds(1, &[HASTY, TURNS, HASTY], false, Mutant::GivesUpBlindly));
    assert!(!holds(1, &[CANCELLED, TURNS, HASTY], false, Mutant::KeepsUnit));
    assert!(!holds(0, &[&[Release(2)], &[Acquire], &[Acquire]], false, Mutant::GrantsOne));
}
