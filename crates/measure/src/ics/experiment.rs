//! A published experiment with a shared priority queue, after section 7 of the paper.
//!
//! Three tasks of one priority enqueue: each executes for some ticks outside its section, and then inside. A more
//! urgent task sleeps, and then dequeues in a section of one tick. All tasks are on one processor, and the enqueuing
//! tasks take turns every two ticks.

use crate::harness::{Crew, measuring, one_cpu};
use crate::pace::{LEVEL, Pace};
use hdrhistogram::Histogram;
use lockwright::ics::{Kind, PriorityQueue, QueueWriter, Stats, Still, Stop, Strategy};
use lockwright::mutex::{Mutex, MutexProtocol, Unlock};
use lockwright_engine::raw::become_realtime;
use lockwright_engine::{Control, RunError};
use lockwright_sys::clock;
use lockwright_sys::futex::{self, Scope};
use lockwright_sys::sched::{self, Tid};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// The number of tasks that enqueue.
const ENQUEUERS: usize = 3;
/// The number of nodes of the queue: more than a usual measurement enqueues.
const NODES: usize = 1024;
/// The number of slots: one for each task, and a shared one.
const SLOTS: usize = ENQUEUERS + 2;
/// The slot that the users of the interruptible lock share.
const SHARED_SLOT: usize = 0;
/// The level of the enqueuing tasks. The one whose turn it is has the level above.
const ENQUEUE_LEVEL: u8 = LEVEL - 20;
const DEQUEUE_LEVEL: u8 = LEVEL - 10;
/// The time quantum, in ticks.
const QUANTUM_TICKS: u64 = 2;
/// The period in which an executing task reads its clock and checks whether its section can still commit.
const LOOK_NS: u64 = 10_000;
/// The number of operations without other tasks.
const SOLO: u64 = 10;
/// The shortest tick. It has at least five checks.
const TICK_NS_MIN: u64 = 50_000;
/// The longest tick. Three operations fit into a measurement's share of a second.
const TICK_NS_MAX: u64 = 20_000_000;
/// The period of progress reports.
const TELL_NS: u64 = 20_000_000;
/// An experiment is ended after this multiple of the work of the enqueuing tasks. Each commit invalidates at most the
/// sections of the others, and the experiment has at least a fifth of each second.
const LONGEST_WORKS: u64 = 20;
/// The time in addition to that, for tasks that have not begun.
const LONGEST_NS: u64 = 10_000_000_000;
/// The longest response time that a histogram holds: an hour.
const RESPONSE_NS_MAX: u64 = 3_600_000_000_000;

type Queue = PriorityQueue<NODES, SLOTS, Strategy>;
type Slot<'q> = QueueWriter<'q, NODES, SLOTS, Strategy>;

/// How the queue is protected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mechanism {
    /// A semaphore that serves in order of arrival.
    FifoSemaphore,
    /// A semaphore that serves in order of priority.
    PrioritySemaphore,
    /// A mutex with priority inheritance.
    Inherit,
    /// An interruptible section.
    Ics,
    /// An interruptible lock: enqueuing tasks first lock a mutex with priority inheritance.
    InterruptibleLock,
}

impl Mechanism {
    /// All mechanisms.
    pub const ALL: [Self; 5] =
        [Self::FifoSemaphore, Self::PrioritySemaphore, Self::Inherit, Self::Ics, Self::InterruptibleLock];

    /// Returns the name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FifoSemaphore => "FIFO semaphore",
            Self::PrioritySemaphore => "priority semaphore",
            Self::Inherit => "PI mutex",
            Self::Ics => "ICS",
            Self::InterruptibleLock => "interruptible lock",
        }
    }
}

/// The times of the tasks, in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    /// The execution of an enqueuing task outside its section.
    pub outside: u64,
    /// The execution of an enqueuing task inside its section.
    pub inside: u64,
    /// The sleep of the dequeuing task.
    pub sleeps: u64,
}

impl Setting {
    /// The two settings of the paper: with rare sections, and with sections most of the time.
    pub const PUBLISHED: [Self; 2] =
        [Self { outside: 7, inside: 1, sleeps: 10 }, Self { outside: 2, inside: 4, sleeps: 20 }];
}

/// The results of one mechanism in one setting.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// The setting.
    pub setting: Setting,
    /// How sections committed. With each mechanism, the queue is the same.
    pub strategy: Kind,
    /// Response times of enqueuing, from the request to the end of the section, in nanoseconds.
    pub enqueue: Histogram<u64>,
    /// Response times of dequeuing, in nanoseconds.
    pub dequeue: Histogram<u64>,
    /// The median response time of dequeuing without other tasks, in nanoseconds.
    pub solo_ns: u64,
    /// The number of sections that were restarted.
    pub repeated: u64,
    /// Whether the experiment was ended early.
    pub interrupted: bool,
}

/// A semaphore that serves in order of arrival, without regard to priorities.
#[derive(Debug, Default)]
struct Fifo {
    next: AtomicU32,
    /// The ticket of the owner.
    serves: AtomicU32,
    /// At each place, the last ticket that was served there.
    places: [AtomicU32; 8],
}

impl Fifo {
    fn lock(&self) {
        // ORDERING: Relaxed: only the order of the tickets matters.
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        let place = &self.places[ticket as usize % self.places.len()];
        // BOUND: the owners before, which are fewer than the places.
        loop {
            // ORDERING: Acquire pairs with the Release of the unlock.
            let served = place.load(Ordering::Acquire);
            if served == ticket {
                return;
            }
            futex::wait(Scope::Private, place, served, None).or_panic();
        }
    }

    fn unlock(&self) {
        // ORDERING: Relaxed: only the owner writes it.
        let next = self.serves.load(Ordering::Relaxed).wrapping_add(1);
        self.serves.store(next, Ordering::Relaxed);
        let place = &self.places[next as usize % self.places.len()];
        // ORDERING: Release pairs with the Acquire of the lock.
        place.store(next, Ordering::Release);
        futex::wake(Scope::Private, place, 1);
    }
}

/// The state that the tasks share.
struct Shared {
    queue: Queue,
    mechanism: Mechanism,
    fifo: Fifo,
    mutex: Mutex<()>,
    over: AtomicBool,
    enqueued: AtomicU64,
    /// The thread ids of the enqueuers; 0 for those that have not begun.
    enqueuers: [AtomicU32; ENQUEUERS],
}

impl Shared {
    fn new(mechanism: Mechanism, cpu: usize) -> Self {
        let mutex = match mechanism {
            Mechanism::PrioritySemaphore => Mutex::builder().protocol(MutexProtocol::None).unlock(Unlock::Serial),
            _ => Mutex::builder().protocol(MutexProtocol::Inherit),
        };
        let queue = Queue::with(Strategy::for_cpu(cpu as u32));
        queue.reserve(SHARED_SLOT);
        Self {
            queue,
            mechanism,
            fifo: Fifo::default(),
            mutex: mutex.build(()),
            over: AtomicBool::new(false),
            enqueued: AtomicU64::new(0),
            enqueuers: [const { AtomicU32::new(0) }; ENQUEUERS],
        }
    }

    /// Executes `section` under the mechanism.
    fn protect(&self, is_urgent: bool, section: impl FnOnce()) {
        match self.mechanism {
            Mechanism::FifoSemaphore => {
                self.fifo.lock();
                section();
                self.fifo.unlock();
            }
            Mechanism::Ics => section(),
            Mechanism::InterruptibleLock if is_urgent => section(),
            Mechanism::PrioritySemaphore | Mechanism::Inherit | Mechanism::InterruptibleLock => {
                if let Ok(_guard) = self.mutex.lock() {
                    section();
                }
            }
        }
    }
}

/// Executes for `ns` of the thread's execution time. Ends early if `still` returns an error.
fn execute(ns: u64, still: Still<'_>) -> Result<(), Stop> {
    let start_ns = clock::executed_ns();
    // BOUND: `ns` of execution.
    loop {
        let executed_ns = clock::executed_ns().saturating_sub(start_ns);
        if executed_ns >= ns {
            return Ok(());
        }
        still()?;
        let until_ns = clock::now_ns() + LOOK_NS.min(ns - executed_ns);
        // BOUND: LOOK_NS.
        while clock::now_ns() < until_ns {
            std::hint::spin_loop();
        }
    }
}

fn histogram() -> Result<Histogram<u64>, RunError> {
    Histogram::new_with_bounds(1, RESPONSE_NS_MAX, 3).map_err(|_| RunError::SetUp)
}

fn repeated(stats: Stats) -> u64 {
    stats.conflicts + stats.restarts
}

#[allow(unsafe_code)] // One slot is shared by the enqueuers under a mutex.
fn enqueue(
    shared: &Shared,
    index: usize,
    setting: Setting,
    tick_ns: u64,
    pace: Pace,
) -> Result<(Histogram<u64>, u64), RunError> {
    let mut responses = histogram()?;
    let mut slot = if shared.mechanism == Mechanism::InterruptibleLock {
        None
    } else {
        Some(shared.queue.writer().ok_or(RunError::SetUp)?)
    };
    let mut value = index as u64;
    // BOUND: until the measurement sets `over`.
    while !shared.over.load(Ordering::Relaxed) {
        pace.rest();
        let _ = execute(setting.outside * tick_ns, &|| Ok(()));
        let start_ns = clock::now_ns();
        let work = |still: Still<'_>| execute(setting.inside * tick_ns, still);
        shared.protect(false, || {
            // If the queue is full, nothing is enqueued, but the work was done.
            let _ = match &mut slot {
                Some(slot) => slot.enqueue_after(value % 7, value, work),
                // SAFETY: `protect` locks the mutex for enqueuers under this mechanism.
                None => unsafe { shared.with_shared_slot(|slot| slot.enqueue_after(value % 7, value, work)) },
            };
        });
        responses.saturating_record(clock::now_ns() - start_ns);
        shared.enqueued.fetch_add(1, Ordering::Relaxed);
        value += ENQUEUERS as u64;
    }
    let repeated = match &slot {
        Some(slot) => repeated(slot.stats()),
        // The slot has one count for all its users. The first of them returns it.
        None if index == 0 => shared.queue.stats(SHARED_SLOT).map_or(0, repeated),
        None => 0,
    };
    Ok((responses, repeated))
}

impl Shared {
    /// Executes `work` with the shared slot.
    ///
    /// # Safety
    /// The caller owns the mutex of the enqueuers, under which alone they use the slot.
    #[allow(unsafe_code)]
    unsafe fn with_shared_slot<T>(&self, work: impl FnOnce(&mut Slot<'_>) -> T) -> T {
        // SAFETY: the number was reserved when the queue was made, so `writer` never returns it. The caller owns the
        // mutex, so no other thread uses the slot, and what its last user did comes before.
        match unsafe { self.queue.shared_writer(SHARED_SLOT) } {
            Some(mut slot) => work(&mut slot),
            None => unreachable!("a queue has a first slot"),
        }
    }
}

fn dequeue(shared: &Shared, setting: Setting, tick_ns: u64, pace: Pace) -> Result<(Histogram<u64>, u64), RunError> {
    let mut responses = histogram()?;
    let mut slot = shared.queue.writer().ok_or(RunError::SetUp)?;
    while !shared.over.load(Ordering::Relaxed) {
        pace.rest();
        clock::sleep_until(clock::now_ns() + setting.sleeps * tick_ns)?;
        let start_ns = clock::now_ns();
        shared.protect(true, || {
            // Only conflicts stop the section, and they restart it.
            let _ = slot.dequeue_after(|still| execute(tick_ns, still));
        });
        responses.saturating_record(clock::now_ns() - start_ns);
    }
    Ok((responses, repeated(slot.stats())))
}

/// Measures dequeuing without other tasks.
fn solo(cpu: usize, tick_ns: u64) -> Result<u64, RunError> {
    become_realtime(DEQUEUE_LEVEL, &[cpu])?;
    let shared = Shared::new(Mechanism::Ics, cpu);
    let mut slot = shared.queue.writer().ok_or(RunError::SetUp)?;
    let mut responses = histogram()?;
    for value in 0..SOLO {
        let _ = slot.enqueue(1, value);
        clock::sleep_until(clock::now_ns() + tick_ns)?;
        let start_ns = clock::now_ns();
        let _ = slot.dequeue_after(|still| execute(tick_ns, still));
        responses.saturating_record(clock::now_ns() - start_ns);
    }
    Ok(responses.value_at_quantile(0.5))
}

/// Executes the experiment in both settings with each mechanism, until `operations` elements were enqueued in each.
///
/// `tell` receives the number of elements so far, and the number of all elements. A tick takes `tick`, from 50 µs to
/// 20 ms. The experiment leaves almost a third of each second to other threads. If `control` is stopped, experiments
/// that have not begun are left out.
///
/// # Errors
/// Fails without permission for real-time priorities, and if threads cannot be started.
pub fn ics_experiments(
    tick: Duration,
    operations: usize,
    control: &Control,
    tell: &mut dyn FnMut(usize, usize),
) -> Result<Vec<Experiment>, RunError> {
    let tick_ns = u64::try_from(tick.as_nanos()).unwrap_or(u64::MAX).clamp(TICK_NS_MIN, TICK_NS_MAX);
    let each =
        || Setting::PUBLISHED.into_iter().flat_map(|setting| Mechanism::ALL.map(|mechanism| (setting, mechanism)));
    let whole = operations * each().count();
    let mut seen = Vec::new();
    for (done, (setting, mechanism)) in each().enumerate() {
        let mut tell_all = |enqueued: usize| tell(done * operations + enqueued.min(operations), whole);
        if control.is_stopped() {
            break;
        }
        seen.push(experiment(mechanism, setting, tick_ns, operations as u64, control, &mut tell_all)?);
    }
    Ok(seen)
}

fn experiment(
    mechanism: Mechanism,
    setting: Setting,
    tick_ns: u64,
    operations: u64,
    control: &Control,
    tell: &mut dyn FnMut(usize),
) -> Result<Experiment, RunError> {
    let (cpu, mut others) = (one_cpu()?, sched::affinity()?);
    let solo_ns = measuring(cpu, control, move |_| solo(cpu, tick_ns))?;
    let shared = Arc::new(Shared::new(mechanism, cpu));
    let strategy = shared.queue.commit().kind();
    let work_ns = operations.saturating_mul((setting.outside + setting.inside) * tick_ns);
    let pace = Pace::new((setting.outside + setting.inside) * tick_ns * ENQUEUERS as u64);
    let mut tasks = Crew::new();
    // The threads of the tasks must end before `tasks` joins them.
    let over = EndsAll(Arc::clone(&shared));
    for index in 0..ENQUEUERS {
        let shared = Arc::clone(&shared);
        tasks.add(ENQUEUE_LEVEL, &[cpu], move || {
            shared.enqueuers[index].store(sched::gettid().0, Ordering::Relaxed);
            enqueue(&shared, index, setting, tick_ns, pace)
        })?;
    }
    let dequeuer = Arc::clone(&shared);
    tasks.add(DEQUEUE_LEVEL, &[cpu], move || dequeue(&dequeuer, setting, tick_ns, pace))?;
    // The quanta are given from another processor if there is one: that takes no time from the tasks.
    if others.len() > 1 {
        others.retain(|&other| other != cpu);
    }
    let mut turns = Crew::new();
    let (scheduled, own) = (Arc::clone(&shared), control.clone());
    let longest_ns = work_ns.saturating_mul(LONGEST_WORKS).saturating_add(LONGEST_NS);
    turns.add(LEVEL, &others, move || {
        let end_ns = clock::now_ns().saturating_add(longest_ns);
        let interrupted = take_turns(&scheduled, tick_ns, operations, end_ns, &own);
        scheduled.over.store(true, Ordering::Relaxed);
        interrupted
    })?;
    tasks.start(control)?;
    turns.start(control)?;
    // BOUND: the thread that gives the quanta ends after `longest_ns`, or a stop.
    while !turns.has_ended() && !control.is_stopped() {
        tell(shared.enqueued.load(Ordering::Relaxed) as usize);
        let _ = clock::sleep_until(clock::now_ns() + TELL_NS);
    }
    tell(shared.enqueued.load(Ordering::Relaxed) as usize);
    let interrupted = turns.join()?.contains(&true);
    drop(over);
    let (mut enqueued, mut dequeued, mut repeats) = (histogram()?, histogram()?, 0);
    for (index, seen) in tasks.join()?.into_iter().enumerate() {
        let (responses, repeated) = seen?;
        let all = if index < ENQUEUERS { &mut enqueued } else { &mut dequeued };
        all.add(responses).map_err(|_| RunError::SetUp)?;
        repeats += repeated;
    }
    Ok(Experiment {
        mechanism,
        setting,
        strategy,
        enqueue: enqueued,
        dequeue: dequeued,
        solo_ns,
        repeated: repeats,
        interrupted,
    })
}

/// Ends all threads, even if one could not be started.
struct EndsAll(Arc<Shared>);

impl Drop for EndsAll {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Relaxed);
    }
}

/// Gives each enqueuing task its quantum, in which it has the level above the others. Returns whether the experiment
/// was ended early.
fn take_turns(shared: &Shared, tick_ns: u64, operations: u64, end_ns: u64, control: &Control) -> bool {
    let set_level = |turn: usize, level| match shared.enqueuers[turn % ENQUEUERS].load(Ordering::Relaxed) {
        0 => {}
        // An enqueuer that has ended has no turn.
        tid => _ = sched::set_level(Tid(tid), level),
    };
    let mut turn = 0;
    // BOUND: `end_ns`.
    while shared.enqueued.load(Ordering::Relaxed) < operations {
        if control.is_stopped() || clock::now_ns() >= end_ns {
            return true;
        }
        // Both levels take effect as soon as inherited ones end.
        set_level(turn + 1, ENQUEUE_LEVEL + 1);
        set_level(turn, ENQUEUE_LEVEL);
        turn += 1;
        let _ = clock::sleep_until(clock::now_ns() + QUANTUM_TICKS * tick_ns);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::require_realtime;

    /// A few operations with each mechanism. No test asserts times.
    #[test]
    fn every_mechanism_comes_to_an_end() {
        let Some(_machine) = require_realtime() else { return };
        for mechanism in Mechanism::ALL {
            let setting = Setting { outside: 2, inside: 4, sleeps: 5 };
            let mut told = 0;
            let done = experiment(mechanism, setting, 100_000, 60, &Control::new(), &mut |enqueued| told = enqueued);
            let done = done.expect("permission was checked");
            assert!(told >= 60 && !done.interrupted, "{mechanism:?}: {told}");
            assert!(done.enqueue.len() >= 60 && !done.dequeue.is_empty() && done.solo_ns >= 100_000, "{done:?}");
            let repeats = matches!(mechanism, Mechanism::Ics | Mechanism::InterruptibleLock);
            assert!(repeats || done.repeated == 0, "{mechanism:?}: sections under mutual exclusion are not restarted");
        }
    }

    #[test]
    fn a_stopped_experiment_executes_nothing() {
        let control = Control::new();
        control.stop();
        let mut told = false;
        let seen = ics_experiments(Duration::from_micros(100), 60, &control, &mut |_, _| told = true);
        assert!(seen.is_ok_and(|seen| seen.is_empty()) && !told);
    }
}
