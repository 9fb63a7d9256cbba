//! The costs of operations without contention, by the number of tasks for which the object was built.

use super::subjects::{
    Call, HEAP_BLOCKS, HEAP_CAPACITY, PlainBuffer, PlainHeap, PlainQueue, QUEUE_BLOCKS, QUEUE_CAPACITY, Sequential,
    Shared, WORDS,
};
use super::{CHUNK, CHUNK_NS_MAX, Sharing, calls, empty_reading, time};
use crate::harness::{Readings, measuring, one_cpu};
use crate::pace::Pace;
use lockwright::locks::{Slot, SpinLock, Ticket};
use lockwright::mutex::{Mutex, MutexProtocol};
use lockwright::objects::{LockFreeBuffer, LockFreeHeap, LockFreeQueue, WaitFreeBuffer, WaitFreeHeap, WaitFreeQueue};
use lockwright_engine::{Control, RunError};
use lockwright_model::ObjectKind;
use lockwright_sys::cycles;
use std::collections::{BinaryHeap, VecDeque};

/// The operations of every object, by one thread.
#[derive(Clone, PartialEq, Debug)]
pub struct ObjectCosts {
    /// Cycles of the time-stamp counter per nanosecond.
    pub cycles_per_ns: f64,
    /// Whether the readings were taken under SCHED_FIFO. Otherwise other threads may have disturbed them.
    pub realtime: bool,
    /// The objects of one kind after those of another; empty if the measurement was stopped.
    pub objects: Vec<AloneObject>,
}

/// The readings of one object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AloneObject {
    /// Its kind.
    pub kind: ObjectKind,
    /// How it may be shared.
    pub sharing: Sharing,
    /// The number of tasks for which it was built; `None` if it does not depend on them.
    pub tasks: Option<u32>,
    /// Cycles of each operation.
    pub cycles: Readings,
}

/// Times calls on an object.
type Timing = Box<dyn FnMut(&Slot, &[Call], u64, &mut Vec<u64>) + Send>;

struct Subject {
    kind: ObjectKind,
    sharing: Sharing,
    tasks: Option<u32>,
    timing: Timing,
    readings: Vec<u64>,
}

impl Subject {
    fn new(kind: ObjectKind, sharing: Sharing, tasks: Option<u32>, timing: Timing) -> Self {
        Self { kind, sharing, tasks, timing, readings: Vec::new() }
    }
}

fn shared(object: impl Shared) -> Timing {
    let object = Box::new(object);
    Box::new(move |slot, calls, empty, readings| time(calls, empty, readings, |call| object.call(slot, call)))
}

/// The sequential object, alone and under locks.
fn plain<P: Sequential>(kind: ObjectKind, new: fn() -> P) -> [Subject; 3] {
    let mut object = new();
    let alone: Timing =
        Box::new(move |_, calls, empty, readings| time(calls, empty, readings, |call| object.call(call)));
    let spin = SpinLock::<Ticket, P>::new(new());
    let inherit = Mutex::builder().protocol(MutexProtocol::Inherit).build(new());
    [
        Subject::new(kind, Sharing::Short, None, alone),
        Subject::new(kind, Sharing::Spin, None, shared(spin)),
        Subject::new(kind, Sharing::Inherit, None, shared(inherit)),
    ]
}

/// The objects that are built for `SLOTS` tasks.
fn built_for<const SLOTS: usize>() -> [Subject; 6] {
    use ObjectKind::{Buffer, Heap, Queue};
    let tasks = Some(SLOTS as u32);
    let lock_free = |kind, timing| Subject::new(kind, Sharing::LockFree, tasks, timing);
    let wait_free = |kind, timing| Subject::new(kind, Sharing::WaitFree, tasks, timing);
    [
        lock_free(Buffer, shared(LockFreeBuffer::<u64, WORDS, SLOTS>::new())),
        wait_free(Buffer, shared(WaitFreeBuffer::<u64, WORDS, SLOTS>::new())),
        lock_free(Queue, shared(LockFreeQueue::<u64, QUEUE_CAPACITY, SLOTS>::new())),
        wait_free(Queue, shared(WaitFreeQueue::<u64, QUEUE_BLOCKS, SLOTS>::new())),
        lock_free(Heap, shared(LockFreeHeap::<u64, HEAP_BLOCKS, SLOTS>::new())),
        wait_free(Heap, shared(WaitFreeHeap::<u64, HEAP_BLOCKS, SLOTS>::new())),
    ]
}

pub(super) fn plain_buffer() -> PlainBuffer {
    PlainBuffer([0; WORDS])
}

pub(super) fn plain_queue() -> PlainQueue {
    PlainQueue(VecDeque::with_capacity(QUEUE_CAPACITY))
}

pub(super) fn plain_heap() -> PlainHeap {
    PlainHeap(BinaryHeap::with_capacity(HEAP_CAPACITY))
}

fn subjects() -> Vec<Subject> {
    let mut all: Vec<Subject> = Vec::new();
    all.extend(plain(ObjectKind::Buffer, plain_buffer));
    all.extend(plain(ObjectKind::Queue, plain_queue));
    all.extend(plain(ObjectKind::Heap, plain_heap));
    all.extend(built_for::<2>());
    all.extend(built_for::<4>());
    all.extend(built_for::<8>());
    all.extend(built_for::<16>());
    all.extend(built_for::<24>());
    all.extend(built_for::<32>());
    all.sort_by_key(|subject| (subject.kind, subject.sharing, subject.tasks));
    all
}

/// Times `operations` operations (at least one) on each object, by one thread on one CPU. The objects take turns, so
/// that a disturbance of the machine affects all of them.
///
/// # Errors
/// Fails if the thread cannot be started or bound. It needs no permission for real-time priorities.
pub fn object_costs(operations: usize, control: &Control) -> Result<ObjectCosts, RunError> {
    // The objects are made here: the stack of a measuring thread is small.
    let mut subjects = subjects();
    let own = control.clone();
    measuring(one_cpu()?, control, move |realtime| {
        let slot = Slot::claim().filter(|slot| slot.index() < 2).ok_or(RunError::NoSlot)?;
        let (empty, pace) = (empty_reading(), Pace::new(CHUNK_NS_MAX));
        let calls = ObjectKind::ALL.map(|kind| calls(kind, operations.max(1)));
        subjects.iter_mut().for_each(|subject| subject.readings.reserve(operations.max(1)));
        for begin in (0..operations.max(1)).step_by(CHUNK) {
            for subject in &mut subjects {
                pace.rest();
                let calls = &calls[subject.kind as usize];
                let chunk = &calls[begin..calls.len().min(begin + CHUNK)];
                (subject.timing)(&slot, chunk, empty, &mut subject.readings);
            }
            if own.is_stopped() {
                subjects.clear();
            }
        }
        let done = |subject: Subject| {
            let Subject { kind, sharing, tasks, readings, .. } = subject;
            Some(AloneObject { kind, sharing, tasks, cycles: Readings::new(readings)? })
        };
        let objects = subjects.into_iter().filter_map(done).collect();
        Ok::<_, RunError>(ObjectCosts { cycles_per_ns: cycles::per_ns(), realtime, objects })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::alone;
    use crate::slots::all_slots;

    #[test]
    fn each_object_is_timed() {
        let _machine = alone();
        let _slots = all_slots();
        let costs = object_costs(1_500, &Control::new()).expect("needs no permission");
        // Three kinds; short and two locks; lock-free and wait-free for six numbers of tasks.
        assert_eq!(costs.objects.len(), 3 * (3 + 2 * 6));
        for object in &costs.objects {
            assert_eq!(object.cycles.count(), 1_500, "{object:?}");
            assert!(object.cycles.quantile(1.0) > 0, "no operation takes no time");
        }
    }

    #[test]
    fn a_stopped_measurement_has_no_costs() {
        let _machine = alone();
        let _slots = all_slots();
        let control = Control::new();
        control.stop();
        assert_eq!(object_costs(10, &control).map(|costs| costs.objects), Ok(Vec::new()));
    }
}
