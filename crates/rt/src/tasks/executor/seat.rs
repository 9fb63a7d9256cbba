//! The runtime state of a task's thread.

use super::claims::Claims;
use lockwright_model::CpuId;
use lockwright_sys::guard::Guarded;
use lockwright_sys::{fork, sched};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Nothing has happened to a waiting task.
pub(super) const NOTHING: u32 = 0;
/// The task owns the resource for which it waits.
pub(super) const GRANTED: u32 = 1;
/// The task was woken, and requests again or starts its job.
pub(super) const WOKEN: u32 = 2;

/// The runtime state of one task's thread. It occupies its own cache lines, so that neighbours share none.
#[derive(Debug)]
#[repr(align(128))]
pub struct Seat {
    /// The thread's id, or 0 before the thread exists.
    pub(super) tid: AtomicU32,
    /// The process of the thread, by [`fork::generation`].
    generation: AtomicU32,
    /// The flag on which the task waits.
    pub(super) flag: AtomicU32,
    /// The processor of the system to which the task was sent last.
    pub(super) place: AtomicU32,
    /// The thread is permanently under the ordinary policy, where levels have no effect.
    pub(super) is_ordinary: AtomicBool,
    pub(super) own_cpu: CpuId,
    pub(super) claims: Guarded<Claims>,
    /// By [`Turn`].
    turns: [AtomicU64; 5],
}

/// The numbers of the events of all runs of the process, in one order.
static TURNS: AtomicU64 = AtomicU64::new(0);

/// Returns the next number, from 1 on.
pub(crate) fn next_turn() -> u64 {
    // ORDERING: SeqCst: an atomic operation of a lock between two numbers of a thread does not pass them.
    TURNS.fetch_add(1, Ordering::SeqCst) + 1
}

/// The events of the last request of a task.
///
/// A machine decides on an event under its guard, and the event has the number of the decision. Other locks decide in
/// an atomic operation. `Asking` and `Asked` are then the numbers before and after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// The request has not been decided before, or arrives at the processor where its section executes.
    Asking,
    /// The request has been decided.
    Asked,
    /// The last change of the task's priority by a machine. Under `omlp` and `mpcp_vs`, the last one before the grant
    /// admits a request that was held back, or did not have to be.
    Changed,
    /// The grant. A lock without a machine numbers it when the task owns the resource.
    Owned,
    /// The release. A lock without a machine numbers it before the next task can own the resource.
    Left,
}

impl Seat {
    pub(super) fn new(own_cpu: CpuId, claims: Claims) -> Self {
        Self {
            tid: AtomicU32::new(0),
            generation: AtomicU32::new(0),
            flag: AtomicU32::new(NOTHING),
            place: AtomicU32::new(u32::from(own_cpu.0)),
            is_ordinary: AtomicBool::new(false),
            own_cpu,
            claims: Guarded::new(claims),
            turns: Default::default(),
        }
    }

    /// Returns the id of the task's thread.
    pub fn tid(&self) -> sched::Tid {
        // ORDERING: Acquire pairs with the Release in `sit`.
        sched::Tid(self.tid.load(Ordering::Acquire))
    }

    /// Whether the task's thread is one of this process. A child of `fork` has copies of its parent's tasks.
    pub(crate) fn is_of_this_process(&self) -> bool {
        // ORDERING: Relaxed: a seat is taken before others name it, and the generation changes only in a child.
        self.generation.load(Ordering::Relaxed) == fork::generation()
    }

    /// Makes the calling thread the thread of this task.
    pub fn sit(&self) {
        // ORDERING: Relaxed: ordered by the next store.
        self.generation.store(fork::generation(), Ordering::Relaxed);
        // ORDERING: Release pairs with the Acquire in `tid`.
        self.tid.store(sched::gettid().0, Ordering::Release);
    }

    /// Returns the number of an event, from 1 on, or 0 if events are not counted. It belongs to the last request whose
    /// call has returned.
    pub fn turn(&self, turn: Turn) -> u64 {
        // ORDERING: Relaxed: the task itself stores it, or the task that grants to it, before it sets the flag.
        self.turns[turn as usize].load(Ordering::Relaxed)
    }

    /// Stores the number of an event.
    pub(super) fn set_turn(&self, turn: Turn, number: u64) {
        // ORDERING: as above.
        self.turns[turn as usize].store(number, Ordering::Relaxed);
    }

    /// Returns the processor of the system to which the task was sent last.
    pub fn places(&self) -> &AtomicU32 {
        &self.place
    }
}
