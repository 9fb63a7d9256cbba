//! The mutexes against their reference: random scripts are played on real threads and on the machine `Fulock`, one step
//! at a time, and both must give the same answers.
//!
//! All threads have one processor. In a step, one thread locks, tries, unlocks, or ends, or its priority changes; the
//! step is complete when each thread has returned or is suspended on a mutex. Then both sides must agree on the values
//! returned (with the cycle of a deadlock), the threads that wait, the owners, and the effective priorities. At the end
//! of a script everything is unlocked, which shows the order of all waiters.
//!
//! The mutexes differ from the machine in these points, which [`Reference`] and the choice of steps take into account:
//!
//! - A thread rises to a ceiling before it waits, so the waiters of such a mutex have equal priorities.
//! - Where a mutex does not inherit, the kernel queues waiters by their own priority and ceilings, without the priority
//!   that they inherit. Scripts avoid steps after which a thread that inherits waits for such a mutex.
//! - A mutex that inherits is always handed over.
//! - The kernel (Linux 6.18) boosts too little in two cases, and scripts avoid both. A thread that is handed a mutex
//!   which inherits does not look at the waiters behind it, for none is more urgent; if it falls below them later, it
//!   is boosted only when the first waiter changes. And a waiter whose priority changes while another one is before it
//!   is counted with the old priority once it is the first because the mutex was handed over.

use crate::support::*;
use lockwright::mutex::{Acquired, Builder, Deadline, Limit, MutexProtocol, RawError, RawMutex, Unlock};
use lockwright_model::{Priority, ResourceId, TaskId};
use lockwright_protocol::fulock::{self, Class, Fulock, Health, Protection};
use lockwright_protocol::{Action, Refusal};
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

const THREADS: usize = 4;
const LOCKS: usize = 2;
/// The two levels of each thread. All levels are different.
const LEVELS: [[u8; 2]; THREADS] = [[10, 25], [20, 45], [30, 15], [40, 35]];
/// Some threads are above the second ceiling.
const CEILINGS: [u8; LOCKS] = [60, 32];
/// The number of steps of a script, without the last ones.
const STEPS: usize = 30;
/// The number of scripts for each set of mutexes.
const SCRIPTS: u64 = 6;

/// The mutexes of a script.
#[derive(Clone, Copy, Debug)]
struct Mutexes {
    protocols: [MutexProtocol; LOCKS],
    unlock: Unlock,
    robust: bool,
    /// The first thread is an ordinary one.
    ordinary: bool,
}

impl Mutexes {
    fn inherits(&self, lock: usize) -> bool {
        self.protocols[lock] == MutexProtocol::Inherit
    }

    fn ceiling(&self, lock: usize) -> Option<u8> {
        match self.protocols[lock] {
            MutexProtocol::Protect(ceiling) => Some(ceiling),
            _ => None,
        }
    }

    fn has_ceilings(&self) -> bool {
        (0..LOCKS).any(|lock| self.ceiling(lock).is_some())
    }

    fn build(&self) -> [RawMutex; LOCKS] {
        let kind = Builder::new().unlock(self.unlock).robustly(self.robust);
        self.protocols.map(|protocol| kind.protocol(protocol).build_raw())
    }
}

/// All sets of mutexes: each pair of protocols, and each way to unlock.
fn sets() -> Vec<Mutexes> {
    let [one, other] = CEILINGS.map(MutexProtocol::Protect);
    let pairs = [
        [MutexProtocol::None, MutexProtocol::None],
        [MutexProtocol::None, MutexProtocol::Inherit],
        [MutexProtocol::Inherit, MutexProtocol::Inherit],
        [MutexProtocol::None, other],
        [MutexProtocol::Inherit, other],
        [one, MutexProtocol::Inherit],
        [one, other],
    ];
    let all = pairs.into_iter().flat_map(|protocols| {
        let unlocks = UNLOCKS.map(|unlock| [false, true].map(|robust| (unlock, robust)));
        unlocks.into_iter().flatten().flat_map(move |(unlock, robust)| {
            [false, true].map(|ordinary| Mutexes { protocols, unlock, robust, ordinary })
        })
    });
    // An ordinary thread that rises to a ceiling is a real-time thread meanwhile; in the machine it stays ordinary.
    all.filter(|set| !(set.ordinary && set.has_ceilings())).collect()
}

/// An operation of a thread in a step.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Op {
    Lock(usize),
    Try(usize),
    /// Locks until a deadline that passes in this step.
    Timed(usize),
    Unlock(usize),
    /// Unlocks, and tries at once to lock again.
    UnlockTry(usize),
    MakeConsistent(usize),
    /// Its other level, set from outside.
    Rebase,
    /// Ends with everything that it owns. Another thread succeeds it.
    End,
}

/// The answer of a step to a thread.
#[derive(Clone, PartialEq, Debug)]
enum Answer {
    Locked,
    OwnerDied,
    Done,
    Busy,
    TimedOut,
    /// Threads, and the mutexes they wait for.
    Deadlock(Vec<(usize, usize)>),
    NotRecoverable,
    AboveCeiling,
    NotOwner,
    /// There is nothing to make consistent.
    Healthy,
}

/// The fault of a mutant of the reference, which the comparison must find.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    None,
    /// Of two waiters, the one behind the first is served.
    WrongWaiter,
    /// A mutex that should be handed over becomes free.
    LetsSteal,
    /// A mutex that should become free is handed over.
    HandsOver,
    NoInheritance,
    NoCeiling,
    /// A waiter whose time is over stays in the queue.
    KeepsWaiting,
    /// A change of priority is not noticed.
    SamePriority,
    /// The next owner of a dead mutex is not told.
    ForgetsDeath,
    /// A deadlock is not seen.
    Blind,
    /// The cycle of a deadlock misses its last wait.
    ShortCycle,
}

const FAULTS: [Fault; 10] = [
    Fault::WrongWaiter,
    Fault::LetsSteal,
    Fault::HandsOver,
    Fault::NoInheritance,
    Fault::NoCeiling,
    Fault::KeepsWaiting,
    Fault::SamePriority,
    Fault::ForgetsDeath,
    Fault::Blind,
    Fault::ShortCycle,
];

/// The machine, driven as the mutexes drive the kernel.
#[derive(Clone)]
struct Reference {
    set: Mutexes,
    fault: Fault,
    machine: Fulock<THREADS, LOCKS>,
    /// Which of its levels a thread has.
    place: [usize; THREADS],
    /// The answers to the threads that return in this step.
    answers: [Vec<Answer>; THREADS],
    /// The step led to where the mutexes differ from the machine.
    leaves_common_ground: bool,
}

fn task(thread: usize) -> TaskId {
    TaskId::new(thread)
}

fn resource(lock: usize) -> ResourceId {
    ResourceId::new(lock)
}

impl Reference {
    fn new(set: Mutexes, fault: Fault) -> Self {
        let tasks: [_; THREADS] = std::array::from_fn(|thread| match thread {
            0 if set.ordinary => (Priority::base(0), Class::Ordinary),
            _ => (Priority::base(LEVELS[thread][0].into()), Class::RealTime),
        });
        let protections = set.protocols.map(|protocol| match protocol {
            MutexProtocol::Inherit if fault != Fault::NoInheritance => Protection::Inherit,
            MutexProtocol::Protect(ceiling) if fault != Fault::NoCeiling => {
                Protection::Protect(Priority::base(ceiling.into()))
            }
            _ => Protection::None,
        });
        Self {
            set,
            fault,
            machine: Fulock::new(&tasks, &protections),
            place: [0; THREADS],
            answers: Default::default(),
            leaves_common_ground: false,
        }
    }

    fn owner(&self, lock: usize) -> Option<usize> {
        self.machine.owner(resource(lock)).map(TaskId::index)
    }

    fn waits_for(&self, thread: usize) -> Option<usize> {
        self.machine.waits_for(task(thread)).map(ResourceId::index)
    }

    fn effective(&self, thread: usize) -> u32 {
        self.machine.effective(task(thread)).level()
    }

    /// The level of a thread by itself.
    fn own(&self, thread: usize) -> u8 {
        if self.set.ordinary && thread == 0 { 0 } else { LEVELS[thread][self.place[thread]] }
    }

    fn set_base(&mut self, thread: usize, level: u8) {
        self.machine.set_base(task(thread), Priority::base(level.into()), &mut |_| ()).expect("the thread exists");
    }

    /// Whether a step has a meaning, and the same one on both sides.
    fn is_open_to(&self, thread: usize, op: Op) -> bool {
        let owns = |lock| self.owner(lock) == Some(thread);
        let health = |lock| self.machine.health(resource(lock));
        let is_waiting = self.waits_for(thread).is_some();
        match op {
            // The kernel does not queue a waiter anew of a mutex that does not inherit. Ceilings would hide the level.
            Op::Rebase => {
                let is_queued_again = self.waits_for(thread).is_none_or(|lock| self.set.inherits(lock));
                self.own(thread) > 0 && !self.set.has_ceilings() && is_queued_again
            }
            _ if is_waiting => false,
            Op::MakeConsistent(lock) => owns(lock),
            // Of equal waiters, one that was overtaken goes behind the others, and in the machine it keeps its place.
            Op::UnlockTry(lock) => {
                owns(lock)
                    && health(lock) == Health::Healthy
                    && (self.set.ceiling(lock).is_none() || self.is_serial(lock))
            }
            Op::End => self.set.robust || !(0..LOCKS).any(owns),
            _ => true,
        }
    }

    /// Whether the mutex is handed over, whatever way to unlock is asked for.
    fn is_serial(&self, lock: usize) -> bool {
        self.set.inherits(lock) || self.set.unlock == Unlock::Serial
    }

    /// Carries out a step.
    fn step(&mut self, thread: usize, op: Op) {
        self.answers = Default::default();
        self.leaves_common_ground = false;
        let before: [_; THREADS] = std::array::from_fn(|thread| self.waits_for(thread));
        let raised: [_; THREADS] = std::array::from_fn(|thread| self.raised(thread));
        let mut effective: [_; THREADS] = std::array::from_fn(|thread| self.effective(thread));
        let were_boosted: [_; THREADS] = std::array::from_fn(|thread| self.is_boosted(thread));
        let answer = match op {
            Op::Lock(lock) => self.lock(thread, lock),
            Op::Try(lock) => Some(self.try_lock(thread, lock)),
            Op::Timed(lock) => Some(match self.lock(thread, lock) {
                // A cycle through a timed wait passes by itself, so it is no deadlock.
                Some(Answer::Deadlock(cycle)) if cycle.len() > 1 => Answer::TimedOut,
                Some(answer) => answer,
                None => {
                    effective = self.look_at_waiters(effective);
                    if self.fault != Fault::KeepsWaiting {
                        self.machine.cancel(task(thread), &mut |_| ()).expect("the thread waits");
                        self.fall(thread);
                    }
                    Answer::TimedOut
                }
            }),
            Op::Unlock(lock) => {
                let (answer, woken) = self.unlock(thread, lock);
                woken.into_iter().for_each(|woken| self.woken(woken));
                Some(answer)
            }
            Op::UnlockTry(lock) => {
                let (answer, woken) = self.unlock(thread, lock);
                self.answers[thread].push(answer);
                // A more urgent thread preempts the caller, and tries first.
                let (before, after): (Vec<_>, Vec<_>) =
                    woken.into_iter().partition(|&woken| self.effective(woken) > self.effective(thread));
                before.into_iter().for_each(|woken| self.woken(woken));
                let answer = self.try_lock(thread, lock);
                after.into_iter().for_each(|woken| self.woken(woken));
                Some(answer)
            }
            Op::MakeConsistent(lock) => Some(match self.machine.make_consistent(task(thread), resource(lock)) {
                Ok(()) => Answer::Done,
                Err(refusal) => self.refused(thread, lock, refusal),
            }),
            Op::Rebase => {
                self.place[thread] = 1 - self.place[thread];
                if self.fault != Fault::SamePriority {
                    self.set_base(thread, self.own(thread));
                }
                None
            }
            Op::End => {
                self.machine.die(task(thread), &mut |_| ()).expect("the thread exists");
                None
            }
        };
        self.answers[thread].extend(answer);
        // The others that wait no longer were granted the mutex, or it is lost.
        for (other, before) in before.into_iter().enumerate() {
            let (Some(lock), None) = (before, self.waits_for(other)) else { continue };
            let answer = match self.owner(lock) == Some(other) {
                true => self.granted(other, lock),
                false => Answer::NotRecoverable,
            };
            self.fall(other);
            self.answers[other].push(answer);
            let second = (0..THREADS).find(|&second| self.waits_for(second) == Some(lock));
            if let (Fault::WrongWaiter, Some(second)) = (self.fault, second) {
                self.answers.swap(other, second);
            }
        }
        self.look_at_waiters(effective);
        self.leaves_common_ground |= (0..THREADS)
            .any(|thread| self.is_boosted(thread) && !were_boosted[thread] && self.raised(thread) < raised[thread]);
    }

    /// Looks whether the kernel queues the waiters as the machine does. `before` has the effective priorities at the
    /// last look; returns those of now.
    fn look_at_waiters(&mut self, before: [u32; THREADS]) -> [u32; THREADS] {
        let now = std::array::from_fn(|thread| self.effective(thread));
        self.leaves_common_ground |= (0..THREADS).any(|thread| {
            let Some(lock) = self.waits_for(thread) else { return false };
            let is_behind = (0..THREADS).any(|other| self.waits_for(other) == Some(lock) && now[other] > now[thread]);
            let changed_behind = is_behind && now[thread] != before[thread];
            if self.set.inherits(lock) { changed_behind } else { self.is_boosted(thread) }
        });
        now
    }

    /// The level of a thread by itself and by ceilings.
    fn raised(&self, thread: usize) -> u8 {
        let is_risen_to = |&lock: &usize| self.waits_for(thread) == Some(lock) || self.owner(lock) == Some(thread);
        let ceilings = (0..LOCKS).filter(is_risen_to).filter_map(|lock| self.set.ceiling(lock));
        ceilings.fold(self.own(thread), u8::max)
    }

    fn is_boosted(&self, thread: usize) -> bool {
        self.effective(thread) > self.raised(thread).into()
    }

    /// Falls from a ceiling that it rose to before it waited.
    fn fall(&mut self, thread: usize) {
        self.set_base(thread, self.own(thread));
    }

    /// `None` if the thread waits.
    fn lock(&mut self, thread: usize, lock: usize) -> Option<Answer> {
        let own = self.own(thread);
        if let Some(ceiling) = self.set.ceiling(lock).filter(|&ceiling| ceiling > own && self.fault != Fault::NoCeiling)
        {
            self.set_base(thread, ceiling);
        }
        let answer = match self.machine.request(task(thread), resource(lock), &mut |_| ()) {
            Ok(()) if self.waits_for(thread).is_some() => return None,
            Ok(()) => self.granted(thread, lock),
            Err(Refusal::Deadlock) if self.fault == Fault::Blind => Answer::Locked,
            Err(refusal) => self.refused(thread, lock, refusal),
        };
        self.fall(thread);
        Some(answer)
    }

    fn try_lock(&mut self, thread: usize, lock: usize) -> Answer {
        match self.machine.try_request(task(thread), resource(lock), &mut |_| ()) {
            Ok(()) => self.granted(thread, lock),
            Err(Refusal::AlreadyHeld) => Answer::Busy,
            Err(refusal) => self.refused(thread, lock, refusal),
        }
    }

    /// The answer, and the threads that are awake and try again.
    fn unlock(&mut self, thread: usize, lock: usize) -> (Answer, Vec<usize>) {
        let unlock = match (self.fault, self.is_serial(lock), self.set.unlock) {
            (Fault::LetsSteal, ..) => fulock::Unlock::Parallel,
            (Fault::HandsOver, ..) | (_, true, _) => fulock::Unlock::Serial,
            (.., Unlock::Parallel) => fulock::Unlock::Parallel,
            _ => fulock::Unlock::Auto,
        };
        let mut woken = Vec::new();
        let released = self.machine.release(task(thread), resource(lock), unlock, &mut |action| {
            if let Action::Wake { task } = action {
                woken.push(task.index());
            }
        });
        woken.retain(|&woken| self.waits_for(woken).is_some());
        match released {
            Ok(()) => (Answer::Done, woken),
            Err(refusal) => (self.refused(thread, lock, refusal), woken),
        }
    }

    fn woken(&mut self, thread: usize) {
        self.machine.woken(task(thread), &mut |_| ()).expect("the thread waits");
    }

    fn granted(&self, thread: usize, lock: usize) -> Answer {
        assert_eq!(self.owner(lock), Some(thread), "granted");
        match self.machine.health(resource(lock)) {
            Health::Dead if self.fault != Fault::ForgetsDeath => Answer::OwnerDied,
            _ => Answer::Locked,
        }
    }

    fn refused(&self, thread: usize, lock: usize, refusal: Refusal) -> Answer {
        match refusal {
            Refusal::Taken => Answer::Busy,
            Refusal::AlreadyHeld => Answer::Deadlock(vec![(thread, lock)]),
            Refusal::Deadlock => {
                let cycle = self.machine.cycle(task(thread), resource(lock)).expect("the machine has a cycle");
                let mut waits: Vec<_> = cycle.waits().map(|(task, lock)| (task.index(), lock.index())).collect();
                if self.fault == Fault::ShortCycle {
                    waits.pop();
                }
                Answer::Deadlock(waits)
            }
            Refusal::NotRecoverable => Answer::NotRecoverable,
            Refusal::AboveCeiling => Answer::AboveCeiling,
            Refusal::NotHeld => Answer::NotOwner,
            Refusal::Healthy => Answer::Healthy,
            refusal => panic!("no script causes this refusal: {refusal}"),
        }
    }
}

/// The results of a thread: for each operation, how it locked the mutex, if it did.
type Returned = Vec<Result<Option<Acquired>, RawError>>;

/// Real threads, each of which carries out one operation at a time.
struct Real<'a> {
    stage: &'a Stage,
    set: Mutexes,
    mutexes: Arc<[RawMutex; LOCKS]>,
    players: [Player<()>; THREADS],
    /// The channel to each thread.
    orders: [Sender<Op>; THREADS],
    returns: Receiver<(usize, Returned)>,
    returned: Sender<(usize, Returned)>,
    /// The operation from which a thread has not returned yet.
    pending: [Option<Op>; THREADS],
}

fn carry_out(mutexes: &[RawMutex; LOCKS], op: Op) -> Returned {
    let lock = |lock: usize, limit| mutexes[lock].lock(limit).map(Some);
    let unlock = |lock: usize| mutexes[lock].unlock().map(|()| None);
    match op {
        Op::Lock(place) => vec![lock(place, Limit::Never)],
        Op::Try(place) => vec![lock(place, Limit::Now)],
        Op::Timed(place) => vec![lock(place, Limit::At(Deadline::after(ms(2))))],
        Op::Unlock(place) => vec![unlock(place)],
        Op::UnlockTry(place) => {
            let unlocked = unlock(place);
            vec![unlocked, lock(place, Limit::Now)]
        }
        Op::MakeConsistent(place) => vec![mutexes[place].make_consistent().map(|()| None)],
        Op::Rebase | Op::End => Vec::new(),
    }
}

impl<'a> Real<'a> {
    fn new(stage: &'a Stage, set: Mutexes) -> Self {
        let mutexes = Arc::new(set.build());
        let (returned, returns) = channel();
        let threads: [_; THREADS] = std::array::from_fn(|thread| enter(stage, set, thread, 0, &mutexes, &returned));
        let mut orders = Vec::new();
        let players = threads.map(|(player, order)| {
            orders.push(order);
            player
        });
        let orders = orders.try_into().expect("one for each thread");
        Self { stage, set, mutexes, players, orders, returns, returned, pending: [None; THREADS] }
    }

    /// Carries out a step, and returns the answers within it. `place` is the level of the thread from then on.
    fn step(&mut self, thread: usize, op: Op, place: usize) -> Result<[Vec<Answer>; THREADS], String> {
        match op {
            Op::Rebase => set_fifo(self.players[thread].tid, LEVELS[thread][place]),
            Op::End => {
                self.orders[thread].send(op).expect("the thread lives");
                let (player, order) = enter(self.stage, self.set, thread, place, &self.mutexes, &self.returned);
                self.orders[thread] = order;
                std::mem::replace(&mut self.players[thread], player).end();
            }
            _ => {
                self.pending[thread] = Some(op);
                self.orders[thread].send(op).expect("the thread lives");
            }
        }
        let mut answers: [Vec<Answer>; THREADS] = Default::default();
        let start = Instant::now();
        // Two looks in a row must find every thread at rest. BOUND: the patience of a test.
        let mut quiet = 0;
        while quiet < 2 {
            quiet += 1;
            for (thread, returned) in self.returns.try_iter() {
                quiet = 0;
                self.pending[thread] = None;
                let all = returned.into_iter().map(|result| self.answer(result)).collect::<Result<Vec<_>, _>>();
                answers[thread].extend(all?);
            }
            if (0..THREADS).any(|thread| self.pending[thread].is_some() && self.waits_for(thread).is_none()) {
                quiet = 0;
            }
            if quiet == 0 {
                if start.elapsed() > ms(5_000) {
                    return Err(format!("the operations {:?} do not end", self.pending));
                }
                std::thread::sleep(std::time::Duration::from_micros(30));
            }
        }
        Ok(answers)
    }

    /// The mutex that a thread is suspended on, if its operation may end so.
    fn waits_for(&self, thread: usize) -> Option<usize> {
        let Some(Op::Lock(lock)) = self.pending[thread] else { return None };
        is_waiting(self.players[thread].tid, &self.mutexes[lock]).then_some(lock)
    }

    fn owner(&self, lock: usize) -> Option<usize> {
        self.thread(self.mutexes[lock].owner())
    }

    fn thread(&self, tid: u32) -> Option<usize> {
        self.players.iter().position(|player| player.tid == tid)
    }

    fn answer(&self, result: Result<Option<Acquired>, RawError>) -> Result<Answer, String> {
        Ok(match result {
            Ok(Some(Acquired::Clean)) => Answer::Locked,
            Ok(Some(Acquired::OwnerDied)) => Answer::OwnerDied,
            Ok(None) => Answer::Done,
            Err(RawError::Busy) => Answer::Busy,
            Err(RawError::TimedOut) => Answer::TimedOut,
            Err(RawError::Deadlock(Some(cycle))) => {
                let lock = |address| self.mutexes.iter().position(|mutex| std::ptr::from_ref(mutex).addr() == address);
                let link = |link: &lockwright::mutex::Link| Some((self.thread(link.thread)?, lock(link.mutex)?));
                let links: Option<_> = cycle.links().iter().map(link).collect();
                Answer::Deadlock(links.ok_or_else(|| format!("a cycle of others: {cycle}"))?)
            }
            Err(RawError::NotRecoverable) => Answer::NotRecoverable,
            Err(RawError::AboveCeiling) => Answer::AboveCeiling,
            Err(RawError::NotOwner) => Answer::NotOwner,
            Err(RawError::Inapplicable) => Answer::Healthy,
            Err(error) => return Err(format!("{error:?}")),
        })
    }
}

fn enter(
    stage: &Stage,
    set: Mutexes,
    thread: usize,
    place: usize,
    mutexes: &Arc<[RawMutex; LOCKS]>,
    returned: &Sender<(usize, Returned)>,
) -> (Player<()>, Sender<Op>) {
    let (send, orders) = channel();
    let (mutexes, returned) = (Arc::clone(mutexes), returned.clone());
    let ready = Gate::default();
    let player = stage.thread(LEVELS[thread][place], {
        let ready = ready.clone();
        move || {
            if set.ordinary && thread == 0 {
                set_other(tid());
            }
            ready.open();
            for op in orders {
                if op == Op::End || returned.send((thread, carry_out(&mutexes, op))).is_err() {
                    break;
                }
            }
        }
    });
    ready.pass();
    (player, send)
}

/// Both sides of a script.
struct Play<'a> {
    reference: Reference,
    real: Real<'a>,
    script: Vec<(usize, Op)>,
    /// How often each part of the comparison compared something.
    seen: Seen,
}

/// The events in the scripts.
#[derive(Default, Debug)]
struct Seen {
    waits: u32,
    hand_overs: u32,
    overtaken: u32,
    timeouts: u32,
    deadlocks: u32,
    heirs: u32,
    lost: u32,
    boosts: u32,
}

fn same<T: PartialEq + Debug>(what: &str, real: T, reference: T) -> Result<(), String> {
    if real == reference { Ok(()) } else { Err(format!("{what}: {real:?}, and {reference:?} by the reference")) }
}

impl Play<'_> {
    /// Plays a step on both sides and compares them. `Ok(false)` if the step is not open.
    fn step(&mut self, thread: usize, op: Op) -> Result<bool, String> {
        let mut next = self.reference.clone();
        if !next.is_open_to(thread, op) {
            return Ok(false);
        }
        next.step(thread, op);
        if next.leaves_common_ground {
            return Ok(false);
        }
        self.script.push((thread, op));
        self.count(&next, op);
        self.reference = next;
        let answers = self.real.step(thread, op, self.reference.place[thread])?;
        same("returned", &answers, &self.reference.answers)?;
        for thread in 0..THREADS {
            same("waits", self.real.waits_for(thread), self.reference.waits_for(thread))?;
            let level = level(self.real.players[thread].tid);
            same(&format!("the level of {thread}"), level as u32, self.reference.effective(thread))?;
        }
        (0..LOCKS).try_for_each(|lock| same("the owner", self.real.owner(lock), self.reference.owner(lock)))?;
        Ok(true)
    }

    fn count(&mut self, next: &Reference, op: Op) {
        let all = || next.answers.iter().flatten();
        let seen = &mut self.seen;
        for thread in 0..THREADS {
            let (was, waits) = (self.reference.waits_for(thread).is_some(), next.waits_for(thread).is_some());
            seen.waits += u32::from(!was && waits);
            seen.hand_overs += u32::from(was && !waits);
            seen.boosts += u32::from(next.is_boosted(thread));
        }
        seen.overtaken +=
            u32::from(matches!(op, Op::UnlockTry(lock) if next.owner(lock) == self.reference.owner(lock)));
        seen.timeouts += all().filter(|answer| **answer == Answer::TimedOut).count() as u32;
        seen.deadlocks +=
            all().filter(|answer| matches!(answer, Answer::Deadlock(cycle) if cycle.len() > 1)).count() as u32;
        seen.heirs += all().filter(|answer| **answer == Answer::OwnerDied).count() as u32;
        seen.lost += all().filter(|answer| **answer == Answer::NotRecoverable).count() as u32;
    }

    fn random(&mut self, chance: &mut Chance) -> Result<bool, String> {
        let thread = chance.below(THREADS as u64) as usize;
        let lock = chance.below(LOCKS as u64) as usize;
        let op = match chance.below(20) {
            0..8 => Op::Lock(lock),
            8 => Op::Try(lock),
            9..11 => Op::Timed(lock),
            11..14 => Op::Unlock(lock),
            14..16 => Op::UnlockTry(lock),
            16 => Op::MakeConsistent(lock),
            17..19 => Op::Rebase,
            _ => Op::End,
        };
        self.step(thread, op)
    }

    /// Lets executing owners unlock their mutexes, until no thread owns or waits.
    fn finish(&mut self, chance: &mut Chance) -> Result<(), String> {
        // BOUND: each step unlocks a mutex, which each thread locks at most once more.
        loop {
            let mut is_over = true;
            for lock in 0..LOCKS {
                let Some(owner) = self.reference.owner(lock) else { continue };
                if chance.below(2) == 0 {
                    self.step(owner, Op::MakeConsistent(lock))?;
                }
                is_over &= !self.step(owner, Op::Unlock(lock))?;
            }
            if is_over {
                return same("still waiting", self.real.pending, [None; THREADS]);
            }
        }
    }
}

/// Plays a script. Returns the difference between the two sides as the error.
fn play(stage: &Stage, set: Mutexes, fault: Fault, seed: u64) -> Result<Seen, String> {
    let mut play = Play {
        reference: Reference::new(set, fault),
        real: Real::new(stage, set),
        script: Vec::new(),
        seen: Seen::default(),
    };
    let mut chance = Chance::new(seed);
    // BOUND: at least a quarter of the chosen steps are open.
    let played = (0..STEPS * 10).try_fold(0, |steps, _| {
        if steps < STEPS { play.random(&mut chance).map(|is_open| steps + usize::from(is_open)) } else { Ok(steps) }
    });
    match played.and_then(|_| play.finish(&mut chance)) {
        Ok(()) => Ok(play.seen),
        Err(difference) => Err(format!("{set:?}, script {seed}: {difference}, after {:?}", play.script)),
    }
}

#[test]
fn threads_behave_like_the_reference() {
    let Some(stage) = Stage::set_for(ms(120_000)) else { return };
    let mut total = Seen::default();
    for (place, set) in sets().into_iter().enumerate() {
        for script in 0..SCRIPTS {
            let seen =
                play(&stage, set, Fault::None, 1 + place as u64 * SCRIPTS + script).unwrap_or_else(|it| panic!("{it}"));
            total.waits += seen.waits;
            total.hand_overs += seen.hand_overs;
            total.overtaken += seen.overtaken;
            total.timeouts += seen.timeouts;
            total.deadlocks += seen.deadlocks;
            total.heirs += seen.heirs;
            total.lost += seen.lost;
            total.boosts += seen.boosts;
        }
    }
    println!("{total:?}");
    let Seen { waits, hand_overs, overtaken, timeouts, deadlocks, heirs, lost, boosts } = total;
    let least = [waits, hand_overs, overtaken, timeouts, deadlocks, heirs, lost, boosts].into_iter().min();
    assert!(least > Some(20), "some events were too rare: {total:?}");
}

#[test]
fn each_mutant_of_the_reference_differs() {
    let Some(stage) = Stage::set_for(ms(120_000)) else { return };
    for fault in FAULTS {
        let mut scripts = (0..SCRIPTS).flat_map(|script| sets().into_iter().map(move |set| (set, script)));
        let found = scripts.find_map(|(set, script)| play(&stage, set, fault, 1 + script).err());
        println!("{fault:?}: {}", found.unwrap_or_else(|| panic!("the mutant {fault:?} is not found")));
    }
}
