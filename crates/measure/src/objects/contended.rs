//! Operations by all CPUs at once, and the steps that they take.

use super::alone::{plain_buffer, plain_heap, plain_queue};
use super::subjects::{Bounded, Call, HEAP_BLOCKS, QUEUE_BLOCKS, QUEUE_CAPACITY, Sequential, Shared, WORDS};
use super::{CHUNK, CHUNK_NS_MAX, Sharing, calls, empty_reading, time};
use crate::harness::Readings;
use crate::pace::Pace;
use crate::squad::{Duty, Orders, squad};
use lockwright::locks::{Slot, SpinLock, Ticket};
use lockwright::mutex::{Mutex, MutexProtocol};
use lockwright::objects;
use lockwright_engine::{Control, RunError};
use lockwright_model::ObjectKind;
use lockwright_objects_steps as steps;
use lockwright_sys::sched;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The number of tasks for which the objects are built, and the most that take part.
const SLOTS: usize = 32;
/// A squad without progress for this time is stuck.
const PATIENCE_NS: u64 = 10_000_000_000;

/// An object that all CPUs use at once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContendedObject {
    /// Its kind.
    pub kind: ObjectKind,
    /// How it is shared.
    pub sharing: Sharing,
    /// The number of tasks, one on each CPU.
    pub tasks: usize,
    /// Cycles of each operation.
    pub cycles: Readings,
    /// The steps of the operations; `None` for an object under a lock.
    pub steps: Option<Steps>,
}

/// The steps of operations, in another run than their times.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Steps {
    /// The most steps of an operation.
    pub most: u64,
    /// The greatest bound of an operation, with the operations of others that overlapped it.
    pub bound: u64,
    /// The most operations of others that overlapped one.
    pub interfering: u64,
    /// The operations that exceeded their bound.
    pub exceeded: u64,
}

impl Steps {
    fn note(&mut self, steps: u64, bound: u64, interfering: u64) {
        self.most = self.most.max(steps);
        self.bound = self.bound.max(bound);
        self.interfering = self.interfering.max(interfering);
        self.exceeded += u64::from(steps > bound);
    }

    fn and(self, other: Self) -> Self {
        Self {
            most: self.most.max(other.most),
            bound: self.bound.max(other.bound),
            interfering: self.interfering.max(other.interfering),
            exceeded: self.exceeded + other.exceeded,
        }
    }
}

/// The operations that each member has begun and ended.
struct Counts(Vec<[AtomicU64; 2]>);

impl Counts {
    /// The operations of the other members that have begun (0) or ended (1).
    fn of_others(&self, member: usize, which: usize) -> u64 {
        let others = self.0.iter().enumerate().filter(|(other, _)| *other != member);
        // ORDERING: SeqCst, here and below: an operation that interferes is counted as begun before it does, and one
        // that is counted as ended interferes no longer.
        others.map(|(_, counts)| counts[which].load(Ordering::SeqCst)).sum()
    }

    fn count(&self, member: usize, which: usize) {
        self.0[member][which].fetch_add(1, Ordering::SeqCst);
    }
}

/// The readings of a member in a chunk of operations.
#[derive(Default)]
struct Seen {
    readings: Vec<u64>,
    steps: Option<Steps>,
}

/// Performs calls from a member's slot.
type Perform = Box<dyn Fn(&Slot, &[Call], &Work<'_>, &mut Seen) + Send + Sync>;

/// The inputs of a member's calls.
struct Work<'a> {
    member: usize,
    counts: &'a Counts,
    /// The time of an empty reading.
    empty: u64,
}

fn timed(object: impl Shared) -> Perform {
    let object = Box::new(object);
    Box::new(move |slot, calls, work, seen| {
        time(calls, work.empty, &mut seen.readings, |call| object.call(slot, call));
    })
}

fn counted<O: Bounded>(object: O) -> Perform {
    let object = Box::new(object);
    Box::new(move |slot, calls, work, seen| {
        let all = seen.steps.get_or_insert_default();
        for &call in calls {
            let before = work.counts.of_others(work.member, 1);
            work.counts.count(work.member, 0);
            let ((), steps) = steps::steps::count(|| object.call(slot, call));
            work.counts.count(work.member, 1);
            let interfering = work.counts.of_others(work.member, 0) - before;
            all.note(steps, O::steps_max(call, interfering), interfering);
        }
    })
}

struct Arena {
    perform: Perform,
    calls: Vec<Call>,
    counts: Counts,
    /// The members that have reached their first operation.
    ready: AtomicUsize,
    pace: Pace,
}

impl Duty for Arena {
    type Seen = Seen;

    /// Executes the member's share of the calls.
    ///
    /// BOUND: the calls, after all members are ready or ordered to stop.
    fn serve(&self, member: usize, slot: &Slot, orders: &Orders) -> Seen {
        let members = self.counts.0.len();
        let share = |member: usize| self.calls.len() * member / members;
        let calls = &self.calls[share(member)..share(member + 1)];
        let mut seen = Seen { readings: Vec::with_capacity(calls.len()), steps: None };
        let work = Work { member, counts: &self.counts, empty: empty_reading() };
        // ORDERING: Relaxed: it publishes nothing.
        self.ready.fetch_add(1, Ordering::Relaxed);
        while self.ready.load(Ordering::Relaxed) < members && !orders.is_stopped() {
            std::hint::spin_loop();
        }
        for chunk in calls.chunks(CHUNK) {
            self.pace.rest();
            if orders.is_stopped() {
                break;
            }
            (self.perform)(slot, chunk, &work, &mut seen);
            orders.report_progress();
        }
        seen
    }
}

/// An object to time, and one to count the steps of.
struct Subject {
    kind: ObjectKind,
    sharing: Sharing,
    timed: Perform,
    counted: Option<Perform>,
}

fn locked<P: Sequential>(kind: ObjectKind, new: fn() -> P) -> [Subject; 2] {
    let of = |sharing, timed| Subject { kind, sharing, timed, counted: None };
    [
        of(Sharing::Spin, timed(SpinLock::<Ticket, P>::new(new()))),
        of(Sharing::Inherit, timed(Mutex::builder().protocol(MutexProtocol::Inherit).build(new()))),
    ]
}

fn subjects() -> Vec<Subject> {
    let mut all: Vec<Subject> = Vec::new();
    macro_rules! add {
        ($kind:ident, $sharing:ident, $object:ident<$size:ident>) => {
            all.push(Subject {
                kind: ObjectKind::$kind,
                sharing: Sharing::$sharing,
                timed: timed(objects::$object::<u64, $size, SLOTS>::new()),
                counted: Some(counted(steps::$object::<u64, $size, SLOTS>::new())),
            });
        };
    }
    add!(Buffer, LockFree, LockFreeBuffer<WORDS>);
    add!(Buffer, WaitFree, WaitFreeBuffer<WORDS>);
    add!(Queue, LockFree, LockFreeQueue<QUEUE_CAPACITY>);
    add!(Queue, WaitFree, WaitFreeQueue<QUEUE_BLOCKS>);
    add!(Heap, LockFree, LockFreeHeap<HEAP_BLOCKS>);
    add!(Heap, WaitFree, WaitFreeHeap<HEAP_BLOCKS>);
    all.extend(locked(ObjectKind::Buffer, plain_buffer));
    all.extend(locked(ObjectKind::Queue, plain_queue));
    all.extend(locked(ObjectKind::Heap, plain_heap));
    all.sort_by_key(|subject| (subject.kind, subject.sharing));
    all
}

/// Times `operations` operations (at least one for each CPU) on each object by tasks on all CPUs at once, and counts
/// the steps of as many. If `control` is stopped, incomplete objects are left out.
///
/// # Errors
/// Fails without permission for real-time priorities, and if threads cannot be started or do not return.
pub fn contended_objects(
    operations: usize,
    control: &Control,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Vec<ContendedObject>, RunError> {
    let cpus: Vec<usize> = sched::affinity()?.into_iter().take(SLOTS).collect();
    let subjects = subjects();
    let all = subjects.len();
    let mut results = Vec::new();
    for Subject { kind, sharing, timed, counted } in subjects {
        let run = |perform: Perform| {
            let arena = Arena {
                perform,
                calls: calls(kind, operations.max(cpus.len())),
                counts: Counts(cpus.iter().map(|_| [AtomicU64::new(0), AtomicU64::new(0)]).collect()),
                ready: AtomicUsize::new(0),
                pace: Pace::new(CHUNK_NS_MAX),
            };
            squad(arena, &cpus, PATIENCE_NS, control)
        };
        let Some(times) = run(timed)? else { return Ok(results) };
        let steps = match counted {
            Some(counted) => {
                let Some(seen) = run(counted)? else { return Ok(results) };
                seen.into_iter().filter_map(|seen| seen.steps).reduce(Steps::and)
            }
            None => None,
        };
        let cycles = times.into_iter().flat_map(|seen| seen.readings).collect();
        let Some(cycles) = Readings::new(cycles) else { return Ok(results) };
        results.push(ContendedObject { kind, sharing, tasks: cpus.len(), cycles, steps });
        progress(results.len(), all);
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::require_realtime;
    use crate::slots::all_slots;

    #[test]
    fn no_operation_exceeds_its_steps() {
        let Some(_machine) = require_realtime() else { return };
        let _slots = all_slots();
        let seen = contended_objects(4_000, &Control::new(), &mut |_, _| {}).expect("nobody is stuck");
        assert_eq!(seen.len(), 3 * 4);
        for seen in seen {
            assert_eq!(seen.cycles.count(), 4_000, "{seen:?}");
            let is_locked = matches!(seen.sharing, Sharing::Spin | Sharing::Inherit);
            assert_eq!(seen.steps.is_none(), is_locked, "{:?} {:?}", seen.kind, seen.sharing);
            let Some(steps) = seen.steps else { continue };
            assert!(steps.exceeded == 0 && steps.most > 0 && steps.most <= steps.bound, "{:?} {steps:?}", seen.kind);
        }
    }

    #[test]
    fn steps_above_a_bound_are_counted() {
        let mut steps = Steps::default();
        steps.note(7, 7, 0);
        steps.note(9, 8, 3);
        let all = steps.and(Steps { most: 2, bound: 20, interfering: 1, exceeded: 4 });
        assert_eq!(all, Steps { most: 9, bound: 20, interfering: 3, exceeded: 5 });
    }
}
