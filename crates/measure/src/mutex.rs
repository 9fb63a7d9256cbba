//! Mutexes: alone, and from one owner to the next.

use super::cost::{Costs, cost_of};
use super::pace::LEVEL;
use super::pace::Pace;
use super::subject::{Candidate, Subject, read_each};
use lockwright::mutex::{Builder, Limit, Mutex, Protocol, RawMutex, Unlock};
use lockwright::section::Lazy;
use lockwright_engine::raw::{Gate, Muster, Place, become_realtime, spawn};
use lockwright_engine::{Control, RunError};
use lockwright_locks::Slot;
use lockwright_model::TaskId;
use lockwright_sys::cycles::Sweep;
use lockwright_sys::futex::{self, Scope};
use lockwright_sys::native::{NativeKind, NativeMutex};
use lockwright_sys::{clock, sched, signal};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

/// A ceiling above every thread of a measurement.
const CEILING: u8 = LEVEL + 5;

impl Subject for RawMutex {
    fn read(&self, _: &Slot, _: usize, readings: &mut [u64], cold: bool) {
        read_each(self, readings, cold, || self.section(&mut || {}));
    }
}

impl Subject for NativeMutex {
    fn read(&self, _: &Slot, _: usize, readings: &mut [u64], cold: bool) {
        read_each(self.memory(), readings, cold, || self.section(&mut || {}));
    }
}

/// Its user is a managed thread.
struct Managed(RawMutex);

impl Subject for Managed {
    fn read(&self, slot: &Slot, cpu: usize, readings: &mut [u64], cold: bool) {
        // Where it cannot be, what is measured is the eager way.
        let _managed = Lazy::manage(cpu);
        self.0.read(slot, cpu, readings, cold);
    }
}

/// A mutex that is handed from one to the next.
trait Handed: Send + Sync {
    fn section(&self, section: &mut dyn FnMut());
}

impl Handed for RawMutex {
    #[inline]
    fn section(&self, section: &mut dyn FnMut()) {
        if self.lock(Limit::Never).is_ok() {
            section();
            // It was taken here.
            let _ = self.unlock();
        }
    }
}

impl Handed for NativeMutex {
    #[inline]
    fn section(&self, section: &mut dyn FnMut()) {
        if self.lock() {
            section();
            self.unlock();
        }
    }
}

const fn ours(protocol: Protocol) -> Builder {
    Mutex::builder().protocol(protocol)
}

/// A robust one. Each is in a box of its own, and the thread that locked it unlocks it there.
fn robust(protocol: Protocol) -> Builder {
    // SAFETY: see above: it stays where it is while a thread has it.
    unsafe { ours(protocol).robust(true) }
}

fn native(kind: NativeKind) -> Box<NativeMutex> {
    match NativeMutex::new(kind) {
        Some(mutex) => Box::new(mutex),
        None => unreachable!("the C library has all kinds that are measured"),
    }
}

const PLAIN: NativeKind = NativeKind { inherits: false, robust: false, ceiling: None };

static ALL: [Candidate<dyn Subject>; 11] = [
    Candidate { name: "lockwright plain", new: || Box::new(ours(Protocol::None).build_raw()) },
    Candidate { name: "glibc plain", new: || native(PLAIN) },
    Candidate { name: "lockwright inherit", new: || Box::new(ours(Protocol::Inherit).build_raw()) },
    Candidate { name: "glibc inherit", new: || native(NativeKind { inherits: true, ..PLAIN }) },
    Candidate { name: "lockwright robust", new: || Box::new(robust(Protocol::None).build_raw()) },
    Candidate { name: "glibc robust", new: || native(NativeKind { robust: true, ..PLAIN }) },
    Candidate { name: "lockwright inherit robust", new: || Box::new(robust(Protocol::Inherit).build_raw()) },
    Candidate {
        name: "glibc inherit robust",
        new: || native(NativeKind { inherits: true, robust: true, ceiling: None }),
    },
    Candidate {
        name: "lockwright protect, managed",
        new: || Box::new(Managed(ours(Protocol::Protect(CEILING)).build_raw())),
    },
    Candidate { name: "lockwright protect", new: || Box::new(ours(Protocol::Protect(CEILING)).build_raw()) },
    Candidate { name: "glibc protect", new: || native(NativeKind { ceiling: Some(CEILING), ..PLAIN }) },
];

/// As [`cost`](super::cost()), of mutexes, ours beside the C library's; without the right to real-time priorities, of those without ceilings.
///
/// # Errors
/// Those of [`cost`](super::cost()).
pub fn mutex_cost(readings: usize, control: &Control) -> Result<Costs, RunError> {
    let mut costs = cost_of(&ALL, readings, control)?;
    if !costs.realtime {
        // Nobody could rise to the ceiling.
        costs.costs.retain(|cost| !cost.lock.contains("protect"));
    }
    Ok(costs)
}

/// From one owner to the next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HandOver {
    /// Which mutex.
    pub lock: &'static str,
    /// How many waited.
    pub waiters: usize,
    /// Whether all caches were emptied before each unlock. Where not, many waiters drive each other out.
    pub cold: bool,
    /// From before the unlock until the first waiter executes, in nanoseconds, ascending, not empty.
    pub ns: Vec<u64>,
}

impl HandOver {
    /// The reading that a share of all does not exceed: 0 is the least, 1 the greatest.
    #[must_use]
    pub fn quantile(&self, share: f64) -> u64 {
        let last = self.ns.len() - 1;
        self.ns[((share * last as f64).round() as usize).min(last)]
    }
}

const HANDED: [Candidate<dyn Handed>; 3] = [
    Candidate { name: "lockwright serial", new: || Box::new(ours(Protocol::None).unlock(Unlock::Serial).build_raw()) },
    Candidate { name: "lockwright inherit", new: || Box::new(ours(Protocol::Inherit).build_raw()) },
    Candidate { name: "glibc inherit", new: || native(NativeKind { inherits: true, ..PLAIN }) },
];

/// Whether they are emptied: first not, for what is swept drives out the harness, too.
const CACHES: [bool; 2] = [false, true];

/// How long it takes from an unlock until the first of so many waiters executes, `rounds` times (at least once) for each number with caches as they
/// are, and as often with empty ones, on one CPU: the waiters are more urgent than the owner. Where `control` is stopped, what was not measured to its end is left out.
///
/// # Errors
/// Without the right to real-time priorities; when threads cannot be started, or do not come back.
pub fn hand_over(
    waiters: &[usize],
    rounds: usize,
    control: &Control,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Vec<HandOver>, RunError> {
    let cpu = sched::affinity()?.last().copied().unwrap_or(0);
    let parts = waiters.len() * HANDED.len() * CACHES.len();
    let sweep = Arc::new(Sweep::new(cpu));
    let mut results = Vec::new();
    for &waiters in waiters {
        for candidate in &HANDED {
            let Some(measured) = measure(candidate, waiters.max(1), rounds.max(1), cpu, &sweep, control)? else {
                return Ok(results);
            };
            for (cold, mut ns) in CACHES.into_iter().zip(measured) {
                ns.sort_unstable();
                results.push(HandOver { lock: candidate.name, waiters, cold, ns });
            }
            progress(results.len(), parts);
        }
    }
    Ok(results)
}

/// What owner and waiters share. All are on one CPU, and the waiters are more urgent: the owner executes only when all of them are suspended.
struct Arena {
    lock: Box<dyn Handed>,
    /// Counts rounds; the waiters sleep on it. LAST is the end.
    round: AtomicU32,
    /// Waiters that have asked, in all rounds.
    asked: AtomicUsize,
    /// When the owner was about to unlock.
    given_ns: AtomicU64,
    /// When the first waiter executed; 0 before.
    taken_ns: AtomicU64,
    muster: Arc<Muster>,
    start: Gate,
}

const LAST: u32 = u32::MAX;
/// A measurement that does not get on for so long is stuck.
const PATIENCE: Duration = Duration::from_secs(20);

impl Arena {
    /// BOUND: the rounds.
    fn wait(&self) {
        // ORDERING: Relaxed, here and below: one CPU, and futexes and the lock between.
        let mut seen = 0;
        loop {
            let round = self.round.load(Ordering::Relaxed);
            match round {
                LAST => return,
                round if round == seen => {
                    futex::wait(Scope::Private, &self.round, round, None).or_panic();
                }
                _ => {
                    seen = round;
                    self.asked.fetch_add(1, Ordering::Relaxed);
                    self.lock.section(&mut || {
                        let now = clock::now_ns();
                        let _ = self.taken_ns.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
                    });
                }
            }
        }
    }

    /// BOUND: the rounds, with warm and with cold caches; each is tried a few times where something came between.
    fn own(
        &self,
        waiters: usize,
        rounds: usize,
        sweep: &Sweep,
        control: &Control,
        tell: &mpsc::Sender<Option<Reading>>,
    ) {
        const ATTEMPTS: usize = 3;
        let pace = Pace::new(100_000_000);
        for cold in CACHES {
            let mut taken = 0;
            for _ in 0..ATTEMPTS * rounds {
                if taken == rounds || control.is_stopped() {
                    break;
                }
                pace.rest();
                if let Some(ns) = self.give(waiters, cold.then_some(sweep)) {
                    taken += 1;
                    let _ = tell.send(Some(Reading { cold, ns }));
                }
            }
        }
        self.round.store(LAST, Ordering::Relaxed);
        futex::wake(Scope::Private, &self.round, i32::MAX);
        let _ = tell.send(None);
    }

    /// One round of the owner. `None` where something came between.
    fn give(&self, waiters: usize, sweep: Option<&Sweep>) -> Option<u64> {
        self.taken_ns.store(0, Ordering::Relaxed);
        let before = self.asked.load(Ordering::Relaxed);
        self.lock.section(&mut || {
            self.round.fetch_add(1, Ordering::Relaxed);
            futex::wake(Scope::Private, &self.round, i32::MAX);
            // All of them are suspended.
            if let Some(sweep) = sweep {
                sweep.read();
            }
            self.given_ns.store(clock::now_ns(), Ordering::Relaxed);
        });
        let all_asked = self.asked.load(Ordering::Relaxed) - before == waiters;
        let (given, first) = (self.given_ns.load(Ordering::Relaxed), self.taken_ns.load(Ordering::Relaxed));
        (all_asked && first >= given).then(|| first - given)
    }
}

/// One hand-over.
struct Reading {
    cold: bool,
    ns: u64,
}

/// The readings in the order of [`CACHES`].
///
/// `None` where it was stopped.
fn measure(
    candidate: &Candidate<dyn Handed>,
    waiters: usize,
    rounds: usize,
    cpu: usize,
    sweep: &Arc<Sweep>,
    control: &Control,
) -> Result<Option<[Vec<u64>; 2]>, RunError> {
    let arena = Arc::new(Arena {
        lock: (candidate.new)(),
        round: AtomicU32::new(0),
        asked: AtomicUsize::new(0),
        given_ns: AtomicU64::new(0),
        taken_ns: AtomicU64::new(0),
        muster: Arc::default(),
        start: Gate::default(),
    });
    let (tell, told) = mpsc::channel();
    let mut threads = Vec::with_capacity(waiters + 1);
    let assembled = signal::with_all_blocked(|| {
        for _ in 0..waiters {
            threads.push(member(&arena, LEVEL + 1, cpu, Arena::wait)?);
        }
        let (sweep, control) = (Arc::clone(sweep), control.clone());
        threads.push(member(&arena, LEVEL, cpu, move |arena| arena.own(waiters, rounds, &sweep, &control, &tell))?);
        arena.muster.wait()
    });
    if let Err(error) = assembled {
        arena.start.abandon();
        threads.into_iter().for_each(|thread| drop(thread.join()));
        return Err(error);
    }
    arena.start.open();
    let mut readings = CACHES.map(|_| Vec::with_capacity(rounds));
    loop {
        match told.recv_timeout(PATIENCE) {
            Ok(Some(Reading { cold, ns })) => readings[usize::from(cold)].push(ns),
            Ok(None) => break,
            // All of them are suspended: nobody spins. They are left behind.
            Err(_) => return Err(RunError::Stuck { tasks: vec![TaskId::new(0)] }),
        }
    }
    threads.into_iter().for_each(|thread| drop(thread.join()));
    Ok((readings.iter().all(|ns| !ns.is_empty()) && !control.is_stopped()).then_some(readings))
}

fn member(
    arena: &Arc<Arena>,
    level: u8,
    cpu: usize,
    body: impl FnOnce(&Arena) + Send + 'static,
) -> Result<JoinHandle<()>, RunError> {
    let (arena, place) = (Arc::clone(arena), Place::new(&arena.muster));
    spawn("measure", move || {
        place.answer(become_realtime(level, &[cpu]).map_err(RunError::from));
        if arena.start.pass() {
            body(&arena);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::require_realtime;
    use crate::slots::all_slots;

    #[test]
    fn each_mutex_has_a_cost() {
        let _slots = all_slots();
        let costs = mutex_cost(200, &Control::new()).expect("needs no permission");
        assert!(costs.costs.len() >= ALL.len());
        for cost in &costs.costs {
            assert_eq!(cost.cycles.len(), 200, "{}", cost.lock);
        }
    }

    #[test]
    fn each_mutex_is_handed_over() {
        let Some(_machine) = require_realtime() else { return };
        let seen = hand_over(&[1, 5], 4, &Control::new(), &mut |_, _| {}).expect("nobody is stuck");
        assert_eq!(seen.len(), 2 * HANDED.len() * CACHES.len());
        for seen in seen {
            assert_eq!(seen.ns.len(), 4, "{}", seen.lock);
            assert!(seen.ns[0] > 0, "nothing takes no time");
        }
    }

    #[test]
    fn stopped_it_leaves_out_what_was_not_measured() {
        let Some(_machine) = require_realtime() else { return };
        let control = Control::new();
        control.stop();
        assert_eq!(hand_over(&[1], 4, &control, &mut |_, _| {}), Ok(Vec::new()));
    }
}
