//! A walk over all interleavings of a few threads at a barrier, with the transitions of `State` and a stand-in for the
//! kernel's queue. The steps are those of `mod`, in sequentially consistent memory. An exchange that is repeated is one
//! step.

use super::{CALLER, DESTROYED, State};
use crate::behind::behind;
use crate::search::{Model, columns, search};

/// A mutation of the steps that must make a property fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mutant {
    None,
    /// The leader does not wake the others.
    LeadsQuietly,
    /// The leader wakes one other.
    WakesOne,
    /// The last arrival and the end of the round are two steps.
    EndsLater,
    /// A thread does not count as a caller.
    IsNotCounted,
    /// A thread that sleeps is woken by another one, and does not look at the round.
    TrustsWakeUps,
    /// A thread looks for arrivals instead of the round.
    LooksForArrivals,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    Start,
    Arrives,
    /// The mutant that ends the round later.
    Ends,
    Looks(u32),
    Sleeps(u32),
    Asleep(u32),
    Wakes,
    Leaves,
    /// The thread that frees the memory waits for the others.
    Destroys,
    Done,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Whole {
    state: State,
    callers: u32,
    is_freed: bool,
    at: Vec<At>,
    /// How many waits each thread has finished.
    rounds: Vec<u8>,
    leaders: u8,
    wrong: Option<&'static str>,
}

struct Walk {
    count: u32,
    threads: usize,
    rounds: u8,
    /// The first thread destroys the barrier after its last wait.
    is_destroyed: bool,
    /// A thread may be woken for no reason, once in each sleep.
    strays: bool,
    mutant: Mutant,
}

impl Walk {
    fn leaves(&self, next: &mut Whole, task: usize) {
        if self.mutant != Mutant::IsNotCounted {
            next.callers -= CALLER;
        }
        next.rounds[task] += 1;
        let is_last = next.rounds[task] == self.rounds;
        next.at[task] = match (is_last, task == 0 && self.is_destroyed) {
            (false, _) => At::Start,
            (true, false) => At::Done,
            (true, true) => At::Destroys,
        };
        // Each thread takes part in every round, so none may be a round ahead of a thread that has yet to arrive.
        let waits = |at: &At| matches!(at, At::Start | At::Arrives);
        if self.threads == self.count as usize
            && (0..self.threads).any(|other| waits(&next.at[other]) && next.rounds[other] + 1 < next.rounds[task])
        {
            next.wrong = Some("a thread did not wait for all");
        }
    }
}

impl Model for Walk {
    type State = Whole;

    fn start(&self) -> Whole {
        Whole {
            state: State(0),
            callers: 0,
            is_freed: false,
            at: vec![At::Start; self.threads],
            rounds: vec![0; self.threads],
            leaders: 0,
            wrong: None,
        }
    }

    fn tasks(&self) -> usize {
        self.threads
    }

    fn steps(&self, whole: &Whole, task: usize, to: &mut dyn FnMut(Whole)) {
        let at = whole.at[task];
        if whole.wrong.is_some() || at == At::Done {
            return;
        }
        let mut next = whole.clone();
        if whole.is_freed {
            next.wrong = Some("freed memory is touched");
            return to(next);
        }
        match at {
            At::Start => {
                if self.mutant != Mutant::IsNotCounted {
                    next.callers += CALLER;
                }
                next.at[task] = At::Arrives;
            }
            At::Arrives => {
                let state = whole.state;
                let after = state.arrive(self.count);
                if after.round() == state.round() {
                    next.state = after;
                    next.at[task] = At::Looks(state.round());
                } else if self.mutant == Mutant::EndsLater {
                    next.state = State::of(state.arrived() + 1, state.round());
                    next.at[task] = At::Ends;
                } else {
                    next.state = after;
                    next.leaders += 1;
                    next.at[task] = At::Wakes;
                }
            }
            At::Ends => {
                next.state = State::of(0, whole.state.round() + 1);
                next.leaders += 1;
                next.at[task] = At::Wakes;
            }
            At::Looks(round) => {
                let is_over = match self.mutant {
                    Mutant::LooksForArrivals => whole.state.arrived() == 0,
                    _ => whole.state.round() != round,
                };
                next.at[task] = if is_over { At::Leaves } else { At::Sleeps(round) };
            }
            At::Sleeps(round) => {
                next.at[task] = if whole.state.round() == round { At::Asleep(round) } else { At::Looks(round) };
            }
            At::Asleep(round) if self.strays => {
                let trusts = self.mutant == Mutant::TrustsWakeUps;
                next.at[task] = if trusts { At::Leaves } else { At::Looks(round) };
            }
            At::Asleep(_) => return,
            At::Wakes => {
                let most = match self.mutant {
                    Mutant::LeadsQuietly => 0,
                    Mutant::WakesOne => 1,
                    _ => usize::MAX,
                };
                let sleepers = next.at.iter_mut().filter(|at| matches!(at, At::Asleep(_)));
                for sleeper in sleepers.take(most) {
                    let At::Asleep(round) = *sleeper else { continue };
                    *sleeper = At::Looks(round);
                }
                next.at[task] = At::Leaves;
            }
            At::Leaves => self.leaves(&mut next, task),
            At::Destroys => {
                next.callers |= DESTROYED;
                if next.callers < CALLER {
                    next.is_freed = true;
                    next.at[task] = At::Done;
                }
            }
            At::Done => {}
        }
        to(next);
    }

    /// All threads are done, or wait for threads that do not come any more.
    fn is_done(&self, whole: &Whole) -> bool {
        let is_over = |at: &At| *at == At::Done || *at == At::Asleep(whole.state.round());
        let sleepers = whole.at.iter().filter(|at| **at != At::Done).count() as u32;
        whole.at.iter().all(is_over) && sleepers == whole.state.arrived() && sleepers < self.count
    }

    fn is_wrong(&self, whole: &Whole) -> bool {
        let arrivals: u32 = whole.rounds.iter().copied().map(u32::from).sum();
        whole.wrong.is_some() || self.is_done(whole) && u32::from(whole.leaders) * self.count != arrivals
    }

    fn counts(&self, _: &Whole, _: usize, to: &Whole) -> bool {
        self.is_wrong(to)
    }

    fn describe(&self, _: &Whole, task: usize, to: &Whole) -> String {
        format!("{:?} {}/{}", to.at[task], to.state.arrived(), to.state.round())
    }
}

/// Whether all interleavings of these threads keep all guarantees.
fn holds(walk: &Walk) -> bool {
    let found = search(walk);
    let is_right = !found.is_wrong && found.stuck == 0;
    eprintln!("{} at {}, {:?}: {} states", walk.threads, walk.count, walk.mutant, found.states);
    if !is_right {
        let way = if found.is_wrong { &found.way_to_counted } else { &found.way_to_stuck };
        eprintln!("wrong: {}, {} stuck\n{}", found.is_wrong, found.stuck, columns(walk.threads, way));
    }
    is_right
}

const THREE: Walk = Walk { count: 3, threads: 3, rounds: 3, is_destroyed: true, strays: false, mutant: Mutant::None };
/// More threads than the barrier counts.
const FOUR: Walk = Walk { count: 2, threads: 4, rounds: 2, is_destroyed: false, strays: false, mutant: Mutant::None };

// A search keeps a processor busy, so it executes behind the tests on real threads.

#[test]
fn each_round_has_one_leader_and_waits_for_all() {
    let _behind = behind();
    assert!(holds(&THREE));
    assert!(holds(&FOUR));
    assert!(holds(&Walk { strays: true, ..THREE }));
}

#[test]
fn each_mutation_fails() {
    let _behind = behind();
    for mutant in [Mutant::LeadsQuietly, Mutant::WakesOne, Mutant::IsNotCounted, Mutant::LooksForArrivals] {
        assert!(!holds(&Walk { mutant, ..THREE }), "{mutant:?}");
    }
    assert!(!holds(&Walk { mutant: Mutant::TrustsWakeUps, strays: true, ..THREE }));
    assert!(!holds(&Walk { mutant: Mutant::EndsLater, ..FOUR }));
}
