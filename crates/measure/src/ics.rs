//! Interruptible sections: the published experiment with a shared priority queue, and what a section costs.
//!
//! *The experiment* (section 7 of the paper). Three tasks of one priority enqueue: each executes for a while outside, then in a section. A more urgent one sleeps, then
//! dequeues in a section of one tick. All are on one processor; those that enqueue take turns every two ticks.

use super::cost::become_measuring;
use super::pace::LEVEL;
use super::pace::Pace;
use super::protocols::Readings;
use hdrhistogram::Histogram;
use lockwright::ics::{Commit, Ics, Kind, PriorityQueue, QueueWriter, Single, Still, Stop, Strategy, Var, Word};
use lockwright::mutex::{Mutex, Protocol, Unlock};
use lockwright_engine::raw::{become_realtime, spawn};
use lockwright_engine::{Control, RunError};
use lockwright_sys::futex::{self, Scope};
use lockwright_sys::native::{NativeKind, NativeMutex, NativeSemaphore};
use lockwright_sys::sched::{self, Tid};
use lockwright_sys::{clock, signal};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// Tasks that enqueue.
const ENQUEUERS: usize = 3;
/// Nodes of the queue: more than are enqueued in a usual measurement.
const NODES: usize = 1024;
/// One each, and the shared one.
const SLOTS: usize = ENQUEUERS + 2;
/// The slot of those that take the interruptible lock.
const SHARED_SLOT: usize = 0;
/// Those that enqueue; the one whose turn it is is one above.
const ENQUEUE_LEVEL: u8 = LEVEL - 20;
const DEQUEUE_LEVEL: u8 = LEVEL - 10;
/// The time quantum, in ticks.
const QUANTUM_TICKS: u64 = 2;
/// A task looks at its clock so often, and asks whether its section can still commit.
const LOOK_NS: u64 = 10_000;
const SOLO: u64 = 10;
/// Looks take up a tenth of a tick then, or less.
const TICK_NS_MIN: u64 = 50_000;
/// Three operations fit into a measurement's share of a second.
const TICK_NS_MAX: u64 = 20_000_000;
/// How often it is told how far the experiment is.
const TELL_NS: u64 = 20_000_000;
/// One that has not come to its end after so many times the work of those that enqueue is ended: each commit is in vain for the others' sections at most, and a fifth of
/// each second at least is the experiment's.
const LONGEST_WORKS: u64 = 20;
/// Beside that, for tasks that have not begun.
const LONGEST_NS: u64 = 10_000_000_000;
/// Longest response a histogram holds: an hour.
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
    /// An interruptible lock: those that enqueue take a mutex with priority inheritance first.
    InterruptibleLock,
}

impl Mechanism {
    /// Each of them.
    pub const ALL: [Self; 5] =
        [Self::FifoSemaphore, Self::PrioritySemaphore, Self::Inherit, Self::Ics, Self::InterruptibleLock];

    /// In a few words.
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

/// How long tasks execute, in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    /// Outside, those that enqueue.
    pub outside: u64,
    /// Inside, those that enqueue.
    pub inside: u64,
    /// The one that dequeues sleeps so long.
    pub sleeps: u64,
}

impl Setting {
    /// The two of the paper: a section now and then, and one most of the time.
    pub const PUBLISHED: [Self; 2] =
        [Self { outside: 7, inside: 1, sleeps: 10 }, Self { outside: 2, inside: 4, sleeps: 20 }];
}

/// What was measured of a mechanism under a setting.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// The setting.
    pub setting: Setting,
    /// How commits were decided, whatever the mechanism: the queue is always the same.
    pub strategy: Kind,
    /// Response times of enqueuing, from the request to the end of the section, in nanoseconds.
    pub enqueue: Histogram<u64>,
    /// The same of dequeuing.
    pub dequeue: Histogram<u64>,
    /// Median of dequeuing with nobody else, in nanoseconds.
    pub solo_ns: u64,
    /// Attempts of sections that were repeated.
    pub repeated: u64,
    /// Whether it was ended early.
    pub interrupted: bool,
}

/// A semaphore that serves in order of arrival, and knows no priorities.
#[derive(Debug, Default)]
struct Fifo {
    next: AtomicU32,
    /// Who has it, and of each place the ticket that was served there last.
    serves: AtomicU32,
    places: [AtomicU32; 8],
}

impl Fifo {
    fn lock(&self) {
        // ORDERING: Relaxed: the order of tickets is all there is to it.
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        let place = &self.places[ticket as usize % self.places.len()];
        // BOUND: those before; fewer than there are places.
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
        // ORDERING: Relaxed: only who has it writes it.
        let next = self.serves.load(Ordering::Relaxed).wrapping_add(1);
        self.serves.store(next, Ordering::Relaxed);
        let place = &self.places[next as usize % self.places.len()];
        // ORDERING: Release pairs with the Acquire of the lock.
        place.store(next, Ordering::Release);
        futex::wake(Scope::Private, place, 1);
    }
}

/// What is shared.
struct Shared {
    queue: Queue,
    mechanism: Mechanism,
    fifo: Fifo,
    mutex: Mutex<()>,
    /// All are ready.
    begun: AtomicBool,
    over: AtomicBool,
    enqueued: AtomicU64,
    /// Who enqueues, by the kernel's number.
    enqueuers: [AtomicU32; ENQUEUERS],
}

impl Shared {
    fn new(mechanism: Mechanism, cpu: usize) -> Self {
        let mutex = match mechanism {
            Mechanism::PrioritySemaphore => Mutex::builder().protocol(Protocol::None).unlock(Unlock::Serial),
            _ => Mutex::builder().protocol(Protocol::Inherit),
        };
        let queue = Queue::with(Strategy::for_cpu(cpu as u32));
        queue.reserve(SHARED_SLOT);
        Self {
            queue,
            mechanism,
            fifo: Fifo::default(),
            mutex: mutex.build(()),
            begun: AtomicBool::new(false),
            over: AtomicBool::new(false),
            enqueued: AtomicU64::new(0),
            enqueuers: [const { AtomicU32::new(0) }; ENQUEUERS],
        }
    }

    /// Executes `section` as the mechanism has it.
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

/// Executes for so long, preemption not counted; ends early where `still` says so.
fn execute(ns: u64, still: Still<'_>) -> Result<(), Stop> {
    let start_ns = clock::executed_ns();
    // BOUND: the time.
    loop {
        let executed_ns = clock::executed_ns().saturating_sub(start_ns);
        if executed_ns >= ns {
            return Ok(());
        }
        still()?;
        let until_ns = clock::now_ns() + LOOK_NS.min(ns - executed_ns);
        // BOUND: a look.
        while clock::now_ns() < until_ns {
            std::hint::spin_loop();
        }
    }
}

fn histogram() -> Result<Histogram<u64>, RunError> {
    Histogram::new_with_bounds(1, RESPONSE_NS_MAX, 3).map_err(|_| RunError::SetUp)
}

fn repeated(slot: &Slot<'_>) -> u64 {
    slot.stats().conflicts + slot.stats().restarts
}

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
    // BOUND: the measurement: until `over`.
    while !shared.over.load(Ordering::Relaxed) {
        pace.rest();
        let _ = execute(setting.outside * tick_ns, &|| Ok(()));
        let start_ns = clock::now_ns();
        let work = |still: Still<'_>| execute(setting.inside * tick_ns, still);
        shared.protect(false, || {
            // A queue that is full takes no more: the work was done all the same.
            let _ = match &mut slot {
                Some(slot) => slot.enqueue_after(value % 7, value, work),
                None => shared.with_shared_slot(|slot| slot.enqueue_after(value % 7, value, work)),
            };
        });
        responses.saturating_record(clock::now_ns() - start_ns);
        shared.enqueued.fetch_add(1, Ordering::Relaxed);
        value += ENQUEUERS as u64;
    }
    let repeated = match &slot {
        Some(slot) => repeated(slot),
        // Those that share a slot count together: one says it.
        None if index == 0 => shared.with_shared_slot(|slot| repeated(slot)),
        None => 0,
    };
    Ok((responses, repeated))
}

impl Shared {
    /// For who has the mutex; or, to look at the counts, anybody.
    #[allow(unsafe_code)]
    fn with_shared_slot<T>(&self, work: impl FnOnce(&mut Slot<'_>) -> T) -> T {
        // SAFETY: the slot was reserved, and is used to write by who has the mutex alone.
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
            // Nothing but conflicts stops it, and those repeat it.
            let _ = slot.dequeue_after(|still| execute(tick_ns, still));
        });
        responses.saturating_record(clock::now_ns() - start_ns);
    }
    Ok((responses, repeated(&slot)))
}

/// The one that dequeues, alone.
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

/// Executes the experiment under both settings with each mechanism, until `operations` have been enqueued in each; `tell` hears how many have been in all of them. A tick takes
/// `tick`, from 50 µs to 20 ms; all that is executed leaves a third of each second to others. What was not begun when it was stopped is left out.
///
/// # Errors
/// Without the right to real-time priorities; where threads cannot be started.
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
    let cpus = sched::affinity()?;
    // The last CPU: the first serves most interrupts.
    let cpu = *cpus.last().ok_or(RunError::SetUp)?;
    signal::with_all_blocked(|| {
        let solo_ns = spawn("solo", move || solo(cpu, tick_ns))?.join().map_err(|_| RunError::SetUp)??;
        let shared = Arc::new(Shared::new(mechanism, cpu));
        let over = EndsAll(Arc::clone(&shared));
        let strategy = shared.queue.commit().kind();
        let pace = Pace::new((setting.outside + setting.inside) * tick_ns * ENQUEUERS as u64);
        let (ready, all_ready) = mpsc::channel();
        let mut threads = Vec::new();
        for index in 0..=ENQUEUERS {
            let (shared, ready) = (Arc::clone(&shared), ready.clone());
            let is_enqueuer = index < ENQUEUERS;
            threads.push(spawn(if is_enqueuer { "enqueue" } else { "dequeue" }, move || {
                let level = if is_enqueuer { ENQUEUE_LEVEL } else { DEQUEUE_LEVEL };
                let risen = become_realtime(level, &[cpu]);
                if is_enqueuer {
                    shared.enqueuers[index].store(sched::gettid().0, Ordering::Relaxed);
                }
                let _ = ready.send(());
                risen?;
                // BOUND: set-up of the others.
                while !shared.begun.load(Ordering::Relaxed) && !shared.over.load(Ordering::Relaxed) {
                    clock::sleep_until(clock::now_ns() + tick_ns)?;
                }
                if is_enqueuer {
                    enqueue(&shared, index, setting, tick_ns, pace)
                } else {
                    dequeue(&shared, setting, tick_ns, pace)
                }
            })?);
        }
        // Above all of them, where it can on another processor: it takes no time of theirs.
        let (shared_by_turns, own) = (Arc::clone(&shared), control.clone());
        let work_ns = operations.saturating_mul((setting.outside + setting.inside) * tick_ns);
        let end_ns = clock::now_ns().saturating_add(work_ns.saturating_mul(LONGEST_WORKS).saturating_add(LONGEST_NS));
        let others: Vec<usize> = if cpus.len() > 1 { cpus[..cpus.len() - 1].to_vec() } else { cpus };
        let turns = spawn("turns", move || {
            let risen = become_realtime(LEVEL, &others);
            // A thread that ended without a word has dropped its sender.
            for _ in 0..=ENQUEUERS {
                let _ = all_ready.recv_timeout(Duration::from_secs(10));
            }
            shared_by_turns.begun.store(true, Ordering::Relaxed);
            let interrupted = take_turns(&shared_by_turns, tick_ns, operations, end_ns, &own);
            shared_by_turns.over.store(true, Ordering::Relaxed);
            risen.map(|()| interrupted)
        })?;
        // BOUND: that thread: `end_ns`.
        while !turns.is_finished() {
            tell(shared.enqueued.load(Ordering::Relaxed) as usize);
            let _ = clock::sleep_until(clock::now_ns() + TELL_NS);
        }
        tell(shared.enqueued.load(Ordering::Relaxed) as usize);
        let interrupted = turns.join().map_err(|_| RunError::SetUp)?;
        let (mut enqueued, mut dequeued, mut repeats) = (histogram()?, histogram()?, 0);
        for (index, thread) in threads.into_iter().enumerate() {
            let (responses, repeated) = thread.join().map_err(|_| RunError::SetUp)??;
            let all = if index < ENQUEUERS { &mut enqueued } else { &mut dequeued };
            all.add(responses).map_err(|_| RunError::SetUp)?;
            repeats += repeated;
        }
        drop(over);
        Ok(Experiment {
            mechanism,
            setting,
            strategy,
            enqueue: enqueued,
            dequeue: dequeued,
            solo_ns,
            repeated: repeats,
            interrupted: interrupted?,
        })
    })
}

/// All threads end, though one could not be started.
struct EndsAll(Arc<Shared>);

impl Drop for EndsAll {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Relaxed);
    }
}

/// Gives each enqueuer its quantum, one after the other: a level above the others. Says whether it was ended early.
fn take_turns(shared: &Shared, tick_ns: u64, operations: u64, end_ns: u64, control: &Control) -> bool {
    let enqueuer = |turn: usize| Tid(shared.enqueuers[turn % ENQUEUERS].load(Ordering::Relaxed));
    let mut turn = 0;
    // BOUND: `end_ns`.
    while shared.enqueued.load(Ordering::Relaxed) < operations {
        if control.is_stopped() || clock::now_ns() >= end_ns {
            return true;
        }
        // One that has not come, or has ended, has no turn; both levels count as soon as the kernel lets go of inherited ones.
        let _ = sched::set_level(enqueuer(turn + 1), ENQUEUE_LEVEL + 1);
        let _ = sched::set_level(enqueuer(turn), ENQUEUE_LEVEL);
        turn += 1;
        let _ = clock::sleep_until(clock::now_ns() + QUANTUM_TICKS * tick_ns);
    }
    false
}

/// What so many of something took.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Overhead {
    /// What.
    pub name: &'static str,
    /// How its sections commit; none where there are none.
    pub strategy: Option<Kind>,
    /// How many were executed for each reading.
    pub count: u64,
    /// All of them together, in nanoseconds.
    pub total: Readings,
}

impl Overhead {
    /// Of one, in nanoseconds: what a share of the readings does not exceed.
    #[must_use]
    pub fn each_ns(&self, share: f64) -> f64 {
        self.total.quantile(share) as f64 / self.count as f64
    }
}

/// What was measured of sections nobody else wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Overheads {
    /// What threads of one processor commit by on this machine.
    pub strategy: Kind,
    /// Whether the readings were taken under SCHED_FIFO; without, anything may come between, and nobody can say when there is a switch.
    pub realtime: bool,
    /// Each of them.
    pub costs: Vec<Overhead>,
}

/// Sections a reading, as in the paper.
const SECTIONS: u64 = 10_000;
const MANY: usize = 10;
const LEFT: Var<u64> = Var::new(0);

/// What, how its sections commit, and a reading's worth of the work.
type Work = (&'static str, Option<Kind>, Box<dyn FnMut()>);

/// A reading's worth: the loop is inside, so that nothing else is measured.
fn work(name: &'static str, strategy: Option<Kind>, mut one: impl FnMut() + 'static) -> Work {
    let all = move || {
        for _ in 0..SECTIONS {
            one();
        }
    };
    (name, strategy, Box::new(all))
}

fn sections<C: Commit + 'static>(all: &mut Vec<Work>, kind: Kind, strategy: impl Fn() -> C) -> Result<(), RunError> {
    let single = Single::<u64, C>::with(0, strategy());
    all.push(work("one word alone", Some(kind), move || {
        let _ = black_box(&single).update(|value| Ok((value.wrapping_add(1), ())));
    }));
    // They are measured for as long as the process lives, a few times at most.
    let one: &'static Ics<[Word; 1], 2, 1, C> = Box::leak(Box::new(Ics::with([Word::new(0)], strategy())));
    let mut slot = one.writer().ok_or(RunError::SetUp)?;
    all.push(work("empty section", Some(kind), move || _ = black_box(&mut slot).update(|_| Ok(()))));
    let mut slot = one.writer().ok_or(RunError::SetUp)?;
    all.push(work("section of a word", Some(kind), move || {
        let _ = black_box(&mut slot).update(|section| {
            let value = section.read(LEFT)?;
            section.write(LEFT, value.wrapping_add(1))
        });
    }));
    let many: &'static Ics<[Word; MANY], 2, MANY, C> =
        Box::leak(Box::new(Ics::with([const { Word::new(0) }; MANY], strategy())));
    let mut slot = many.writer().ok_or(RunError::SetUp)?;
    all.push(work("section of ten words by name", Some(kind), move || {
        // Word by word, as a program has its variables by name.
        macro_rules! write_each {
            ($section:ident: $($word:literal)*) => {
                $($section.write(Var::<u64>::new($word), $word)?;)*
            };
        }
        let _ = black_box(&mut slot).update(|section| {
            write_each!(section: 0 1 2 3 4 5 6 7 8 9);
            Ok(())
        });
    }));
    let whole: &'static Ics<[Word; MANY], 2, MANY, C> =
        Box::leak(Box::new(Ics::with([const { Word::new(0) }; MANY], strategy())));
    let mut slot = whole.writer().ok_or(RunError::SetUp)?;
    all.push(work("section of a variable of ten words", Some(kind), move || {
        let _ = black_box(&mut slot).update(|section| section.write(Var::new(0), black_box([7_u64; MANY])));
    }));
    Ok(())
}

/// Takes `readings` readings of 10,000 sections each, beside the C library's mutexes and semaphore, on one processor; and of switches between two threads, with a section in
/// each turn and without. Where nobody may be real-time, of all but the switches.
///
/// # Errors
/// Where threads cannot be started.
pub fn ics_overheads(readings: usize, control: &Control) -> Result<Overheads, RunError> {
    let control = control.clone();
    let thread = signal::with_all_blocked(|| spawn("measure", move || overheads(readings.max(1), &control)))?;
    thread.join().map_err(|_| RunError::SetUp)?
}

fn overheads(readings: usize, control: &Control) -> Result<Overheads, RunError> {
    let cpu = *sched::affinity()?.last().ok_or(RunError::SetUp)?;
    let realtime = become_measuring(cpu)?;
    let chosen = Strategy::for_cpu(cpu as u32).kind();
    let mut all: Vec<Work> = Vec::new();
    for (name, inherits) in [("glibc mutex", false), ("glibc PI mutex", true)] {
        if let Some(mutex) = NativeMutex::new(NativeKind { inherits, ..NativeKind::default() }) {
            all.push(work(name, None, move || {
                black_box(&mutex).lock();
                mutex.unlock();
            }));
        }
    }
    if let Some(semaphore) = NativeSemaphore::new() {
        all.push(work("glibc semaphore", None, move || {
            black_box(&semaphore).wait();
            semaphore.post();
        }));
    }
    sections(&mut all, Kind::Locked, || lockwright_ics::Locked)?;
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: this thread is bound to its processor, and nobody else knows of the objects.
        #[allow(unsafe_code)]
        let plain = || unsafe { lockwright_ics::Uniprocessor::new() };
        sections(&mut all, Kind::Plain, plain)?;
    }
    if chosen == Kind::Rseq {
        sections(&mut all, chosen, || Strategy::for_cpu(cpu as u32))?;
    }
    let mut taken: Vec<Vec<u64>> = vec![Vec::with_capacity(readings); all.len()];
    let pace = Pace::new(50_000_000);
    for _ in 0..readings {
        // They take turns, so that what happens to the machine happens to all.
        for ((.., work), taken) in all.iter_mut().zip(&mut taken) {
            pace.rest();
            let start_ns = clock::now_ns();
            work();
            taken.push(clock::now_ns() - start_ns);
        }
        if control.is_stopped() {
            break;
        }
    }
    let cost = |name, strategy, taken| Some(Overhead { name, strategy, count: SECTIONS, total: Readings::new(taken)? });
    let named = all.iter().map(|&(name, strategy, _)| (name, strategy)).zip(taken);
    let mut costs: Vec<Overhead> = named.filter_map(|((name, strategy), taken)| cost(name, strategy, taken)).collect();
    if realtime {
        for (name, strategy) in [("switch", None), ("switch, section of a word", Some(chosen))] {
            costs.extend(cost(name, strategy, switches(cpu, readings.min(20), strategy.is_some(), control)?));
        }
    }
    Ok(Overheads { strategy: chosen, realtime, costs })
}

/// 10,000 switches between two threads of one level, by yielding.
fn switches(cpu: usize, readings: usize, with_sections: bool, control: &Control) -> Result<Vec<u64>, RunError> {
    let ics = Arc::new(Ics::<[Word; 1], 2, 1, Strategy>::with([Word::new(0)], Strategy::for_cpu(cpu as u32)));
    let over = Arc::new(AtomicBool::new(false));
    let partner = {
        let (ics, over) = (Arc::clone(&ics), Arc::clone(&over));
        spawn("partner", move || -> Result<(), RunError> {
            become_realtime(LEVEL, &[cpu])?;
            let mut slot = ics.writer().ok_or(RunError::SetUp)?;
            // BOUND: the measurement: until `over`.
            while !over.load(Ordering::Relaxed) {
                turn(&mut slot, with_sections);
            }
            Ok(())
        })?
    };
    let mut slot = ics.writer().ok_or(RunError::SetUp)?;
    let pace = Pace::new(100_000_000);
    let mut taken = Vec::with_capacity(readings);
    for _ in 0..readings {
        if control.is_stopped() {
            break;
        }
        pace.rest();
        let start_ns = clock::now_ns();
        for _ in 0..SECTIONS / 2 {
            turn(&mut slot, with_sections);
        }
        taken.push(clock::now_ns() - start_ns);
    }
    over.store(true, Ordering::Relaxed);
    partner.join().map_err(|_| RunError::SetUp)??;
    Ok(taken)
}

fn turn(slot: &mut lockwright::ics::Writer<'_, [Word; 1], 2, 1, Strategy>, with_section: bool) {
    if with_section {
        let _ = slot.update(|section| {
            let value = section.read(LEFT)?;
            section.write(LEFT, value.wrapping_add(1))
        });
    }
    sched::yield_now();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::require_realtime;

    /// A few operations of each; that the one that dequeues does not wait is shown by the measurement, no test asserts times.
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
            assert!(repeats || done.repeated == 0, "{mechanism:?}: who is alone inside repeats nothing");
        }
    }

    #[test]
    fn overheads_are_measured() {
        let Some(_machine) = require_realtime() else { return };
        let all = ics_overheads(10, &Control::new()).expect("permission was checked");
        assert!(all.realtime && all.costs.len() >= 9, "{all:?}");
        for cost in &all.costs {
            assert!(cost.each_ns(0.0) > 0.0 && (cost.total.count(), cost.count) == (10, 10_000), "{cost:?}");
        }
        assert!(
            all.costs.iter().any(|cost| cost.strategy == Some(all.strategy)),
            "what is chosen is measured: {all:?}"
        );
    }

    #[test]
    fn what_is_stopped_before_it_begins_executes_nothing() {
        let control = Control::new();
        control.stop();
        let mut told = false;
        let seen = ics_experiments(Duration::from_micros(100), 60, &control, &mut |_, _| told = true);
        assert!(seen.is_ok_and(|seen| seen.is_empty()) && !told);
    }
}
