//! Mutexes: their costs without contention, and the time from one owner to the next.

use super::cost::{CostError, Costs, cost_of};
use super::counter::Batch;
use super::harness::{Crew, Readings, one_cpu};
use super::pace::{LEVEL, Pace};
use super::subject::{Candidate, Subject};
use lockwright::mutex::{Builder, Limit, Mutex, MutexProtocol, RawMutex, Unlock};
use lockwright::section::Lazy;
use lockwright_engine::{Control, RunError};
use lockwright_locks::Slot;
use lockwright_model::TaskId;
use lockwright_sys::clock;
use lockwright_sys::cycles::Sweep;
use lockwright_sys::futex::{self, Scope};
use lockwright_sys::native::{NativeAttributes, NativeMutex};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// A ceiling above every thread of a measurement.
const CEILING: u8 = LEVEL + 5;

impl Subject for RawMutex {
    fn time(&self, _: &Slot, _: usize, batch: &Batch) -> u64 {
        batch.time(self, || self.section(&mut || {}))
    }
}

impl Subject for NativeMutex {
    fn time(&self, _: &Slot, _: usize, batch: &Batch) -> u64 {
        batch.time(self.memory(), || self.section(&mut || {}))
    }
}

/// A mutex that a managed thread uses.
struct Managed(RawMutex);

impl Subject for Managed {
    fn time(&self, slot: &Slot, cpu: usize, batch: &Batch) -> u64 {
        // If the thread cannot be managed, each lock raises its priority.
        let _managed = Lazy::manage(cpu);
        self.0.time(slot, cpu, batch)
    }
}

/// A mutex that is handed over from one owner to the next.
trait Handed: Send + Sync {
    fn section(&self, section: &mut dyn FnMut());
}

impl Handed for RawMutex {
    #[inline]
    fn section(&self, section: &mut dyn FnMut()) {
        if self.lock(Limit::Never).is_ok() {
            section();
            // The unlock succeeds, as this thread holds the mutex.
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

const fn ours(protocol: MutexProtocol) -> Builder {
    Mutex::builder().protocol(protocol)
}

/// A builder of robust mutexes. Each is put into a box, where the thread that locks it also unlocks it.
fn robust(protocol: MutexProtocol) -> Builder {
    // SAFETY: the mutex is in a box, so it does not move while a thread holds it.
    unsafe { ours(protocol).robust(true) }
}

fn native(attributes: NativeAttributes) -> Box<NativeMutex> {
    match NativeMutex::new(attributes) {
        Some(mutex) => Box::new(mutex),
        None => unreachable!("the C library has all kinds that are measured"),
    }
}

const PLAIN: NativeAttributes = NativeAttributes { inherits: false, robust: false, ceiling: None };

static ALL: [Candidate<dyn Subject>; 11] = [
    Candidate { name: "lockwright plain", new: || Box::new(ours(MutexProtocol::None).build_raw()) },
    Candidate { name: "glibc plain", new: || native(PLAIN) },
    Candidate { name: "lockwright inherit", new: || Box::new(ours(MutexProtocol::Inherit).build_raw()) },
    Candidate { name: "glibc inherit", new: || native(NativeAttributes { inherits: true, ..PLAIN }) },
    Candidate { name: "lockwright robust", new: || Box::new(robust(MutexProtocol::None).build_raw()) },
    Candidate { name: "glibc robust", new: || native(NativeAttributes { robust: true, ..PLAIN }) },
    Candidate { name: "lockwright inherit robust", new: || Box::new(robust(MutexProtocol::Inherit).build_raw()) },
    Candidate {
        name: "glibc inherit robust",
        new: || native(NativeAttributes { inherits: true, robust: true, ceiling: None }),
    },
    Candidate {
        name: "lockwright protect, managed",
        new: || Box::new(Managed(ours(MutexProtocol::Protect(CEILING)).build_raw())),
    },
    Candidate { name: "lockwright protect", new: || Box::new(ours(MutexProtocol::Protect(CEILING)).build_raw()) },
    Candidate { name: "glibc protect", new: || native(NativeAttributes { ceiling: Some(CEILING), ..PLAIN }) },
];

/// Measures mutexes as [`cost`](super::cost()) measures spinlocks: ours beside the C library's. Without permission for
/// real-time priorities, mutexes with ceilings are left out.
///
/// # Errors
/// Those of [`cost`](super::cost()).
pub fn mutex_cost(readings: usize, control: &Control) -> Result<Costs, CostError> {
    let mut costs = cost_of(&ALL, readings, control)?;
    if !costs.realtime {
        // The thread could not rise to the ceiling.
        costs.costs.retain(|cost| !cost.lock.contains("protect"));
    }
    Ok(costs)
}

/// Hand-overs of one mutex from its owner to the first waiter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HandOver {
    /// The name of the mutex.
    pub lock: &'static str,
    /// The number of waiters.
    pub waiters: usize,
    /// Whether all caches were emptied before each unlock. If not, many waiters still evict each other's data.
    pub cold: bool,
    /// From before the unlock until the first waiter executes, in nanoseconds.
    pub ns: Readings,
}

const HANDED: [Candidate<dyn Handed>; 3] = [
    Candidate {
        name: "lockwright serial",
        new: || Box::new(ours(MutexProtocol::None).unlock(Unlock::Serial).build_raw()),
    },
    Candidate { name: "lockwright inherit", new: || Box::new(ours(MutexProtocol::Inherit).build_raw()) },
    Candidate { name: "glibc inherit", new: || native(NativeAttributes { inherits: true, ..PLAIN }) },
];

/// Whether the caches are emptied. Warm caches come first, as emptying also evicts the harness.
const CACHES: [bool; 2] = [false, true];

/// Measures the time from an unlock until the first waiter executes, on one CPU. The waiters are more urgent than the
/// owner.
///
/// For each number of `waiters`, there are `rounds` readings (at least one) with warm caches, and as many with cold
/// ones. If `control` is stopped, incomplete numbers of waiters are left out.
///
/// # Errors
/// Fails without permission for real-time priorities, and if threads cannot be started or do not return.
pub fn hand_over(
    waiters: &[usize],
    rounds: usize,
    control: &Control,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Vec<HandOver>, RunError> {
    let cpu = one_cpu()?;
    let parts = waiters.len() * HANDED.len() * CACHES.len();
    let sweep = Arc::new(Sweep::new(cpu));
    let mut results = Vec::new();
    for &waiters in waiters {
        for candidate in &HANDED {
            let Some(measured) = measure(candidate, waiters.max(1), rounds.max(1), cpu, &sweep, control)? else {
                return Ok(results);
            };
            for (cold, ns) in CACHES.into_iter().zip(measured) {
                results.push(HandOver { lock: candidate.name, waiters, cold, ns });
            }
            progress(results.len(), parts);
        }
    }
    Ok(results)
}

/// The state that the owner and the waiters share. All are on one CPU, and the waiters are more urgent, so the owner
/// executes only while all of them are suspended.
struct Arena {
    lock: Box<dyn Handed>,
    /// The number of the round. The waiters sleep on it, and end at LAST.
    round: AtomicU32,
    /// The number of requests of the waiters in all rounds.
    requests: AtomicUsize,
    /// The time just before the owner's unlock.
    unlocked_ns: AtomicU64,
    /// The time at which the first waiter executed; 0 before.
    entered_ns: AtomicU64,
}

const LAST: u32 = u32::MAX;
/// A measurement without a reading for this time is stuck.
const PATIENCE: Duration = Duration::from_secs(20);

impl Arena {
    /// The body of a waiter.
    ///
    /// BOUND: the rounds.
    fn wait(&self) {
        // ORDERING: Relaxed, here and below: all threads are on one CPU, and futexes and the lock order their accesses.
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
                    self.requests.fetch_add(1, Ordering::Relaxed);
                    self.lock.section(&mut || {
                        let now = clock::now_ns();
                        let _ = self.entered_ns.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
                    });
                }
            }
        }
    }

    /// The body of the owner.
    ///
    /// BOUND: the rounds with warm and with cold caches. A disturbed round is repeated, up to ATTEMPTS times on
    /// average.
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
                if let Some(ns) = self.hand(waiters, cold.then_some(sweep)) {
                    taken += 1;
                    let _ = tell.send(Some(Reading { cold, ns }));
                }
            }
        }
        self.round.store(LAST, Ordering::Relaxed);
        futex::wake(Scope::Private, &self.round, i32::MAX);
        let _ = tell.send(None);
    }

    /// Executes one round of the owner. Returns `None` if other threads disturbed it.
    fn hand(&self, waiters: usize, sweep: Option<&Sweep>) -> Option<u64> {
        self.entered_ns.store(0, Ordering::Relaxed);
        let before = self.requests.load(Ordering::Relaxed);
        self.lock.section(&mut || {
            self.round.fetch_add(1, Ordering::Relaxed);
            futex::wake(Scope::Private, &self.round, i32::MAX);
            // All waiters are suspended.
            if let Some(sweep) = sweep {
                sweep.read();
            }
            self.unlocked_ns.store(clock::now_ns(), Ordering::Relaxed);
        });
        let all_requested = self.requests.load(Ordering::Relaxed) - before == waiters;
        let (given, first) = (self.unlocked_ns.load(Ordering::Relaxed), self.entered_ns.load(Ordering::Relaxed));
        (all_requested && first >= given).then(|| first - given)
    }
}

/// The time of one hand-over.
struct Reading {
    cold: bool,
    ns: u64,
}

/// Measures one mutex. Returns the readings in the order of [`CACHES`], or `None` if `control` was stopped.
fn measure(
    candidate: &Candidate<dyn Handed>,
    waiters: usize,
    rounds: usize,
    cpu: usize,
    sweep: &Arc<Sweep>,
    control: &Control,
) -> Result<Option<[Readings; 2]>, RunError> {
    let arena = Arc::new(Arena {
        lock: (candidate.new)(),
        round: AtomicU32::new(0),
        requests: AtomicUsize::new(0),
        unlocked_ns: AtomicU64::new(0),
        entered_ns: AtomicU64::new(0),
    });
    let (tell, told) = mpsc::channel();
    let mut crew = Crew::new();
    for _ in 0..waiters {
        let arena = Arc::clone(&arena);
        crew.add(LEVEL + 1, &[cpu], move || arena.wait())?;
    }
    let (sweep, own) = (Arc::clone(sweep), control.clone());
    crew.add(LEVEL, &[cpu], move || arena.own(waiters, rounds, &sweep, &own, &tell))?;
    crew.start(control)?;
    let mut readings = CACHES.map(|_| Vec::with_capacity(rounds));
    loop {
        match told.recv_timeout(PATIENCE) {
            Ok(Some(Reading { cold, ns })) => readings[usize::from(cold)].push(ns),
            Ok(None) => break,
            // All of them are suspended, and none spins.
            Err(_) => {
                crew.leave();
                return Err(RunError::Stuck { tasks: vec![TaskId::new(0)] });
            }
        }
    }
    crew.join()?;
    let [warm, cold] = readings.map(Readings::new);
    Ok(warm.zip(cold).filter(|_| !control.is_stopped()).map(|(warm, cold)| [warm, cold]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{alone, require_realtime};
    use crate::slots::all_slots;

    #[test]
    fn each_mutex_has_a_cost() {
        let _machine = alone();
        let _slots = all_slots();
        let costs = mutex_cost(20, &Control::new()).expect("needs no permission");
        assert!(costs.costs.len() >= ALL.len());
        for cost in &costs.costs {
            assert_eq!(cost.cycles.total.count(), 20, "{}", cost.lock);
            assert!(cost.cycles.each(0.0) > 0.0, "{cost:?}");
        }
    }

    #[test]
    fn each_mutex_is_handed_over() {
        let Some(_machine) = require_realtime() else { return };
        let seen = hand_over(&[1, 5], 4, &Control::new(), &mut |_, _| {}).expect("nobody is stuck");
        assert_eq!(seen.len(), 2 * HANDED.len() * CACHES.len());
        for seen in seen {
            assert_eq!(seen.ns.count(), 4, "{}", seen.lock);
            assert!(seen.ns.quantile(0.0) > 0, "no hand-over takes no time");
        }
    }

    #[test]
    fn a_stopped_measurement_has_no_hand_overs() {
        let Some(_machine) = require_realtime() else { return };
        let control = Control::new();
        control.stop();
        assert_eq!(hand_over(&[1], 4, &control, &mut |_, _| {}), Ok(Vec::new()));
    }
}
