//! The queue, checked over the interleavings of its threads (loom). The file is the one that programs execute; only the
//! words are a model of PI futexes, with the walk by which the kernel looks for cycles of waits.

#[allow(clippy::duplicate_mod, reason = "the same file with the words of the model")]
#[path = "queue.rs"]
mod queue;

use crate::behind::behind;
use crate::process::holds_in_child;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use queue::{Failure, NONE, Node, Queue};
use words::{AtomicU32, IDS, Limit, MUTANT, Mutant, OWNER, WordError};

mod words {
    pub(super) use loom::sync::atomic::Ordering;
    use loom::sync::{Condvar, Mutex, MutexGuard};
    use loom::thread::yield_now;
    use std::cell::Cell;

    /// A mutation that must make a property fail.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(super) enum Mutant {
        None,
        /// The unlock publishes nothing.
        RelaxedUnlock,
        /// The tail publishes nothing.
        RelaxedTail,
        /// A request that gives up does not pass its word on.
        KeepsWord,
        /// A request ends when the kernel reports a cycle for the first time.
        BelievesTheKernel,
    }

    thread_local! {
        // Loom executes all threads of a model on one thread.
        pub(super) static MUTANT: Cell<Mutant> = const { Cell::new(Mutant::None) };
        pub(super) static HOLDER: Cell<u32> = const { Cell::new(0) };
    }

    /// An atomic of loom whose exchanges a mutation weakens.
    #[derive(Debug)]
    pub(super) struct AtomicU32(loom::sync::atomic::AtomicU32);

    impl AtomicU32 {
        pub(super) fn new(value: u32) -> Self {
            Self(loom::sync::atomic::AtomicU32::new(value))
        }

        pub(super) fn load(&self, order: Ordering) -> u32 {
            self.0.load(order)
        }

        /// An exchange, because loom does not order a store after an earlier exchange by another thread: a later load
        /// could read the value of that exchange.
        pub(super) fn store(&self, value: u32, order: Ordering) {
            self.0.swap(value, order);
        }

        pub(super) fn swap(&self, value: u32, order: Ordering) -> u32 {
            let is_weak = order == Ordering::AcqRel && MUTANT.get() == Mutant::RelaxedTail;
            self.0.swap(value, if is_weak { Ordering::Relaxed } else { order })
        }

        pub(super) fn compare_exchange(
            &self,
            current: u32,
            new: u32,
            success: Ordering,
            failure: Ordering,
        ) -> Result<u32, u32> {
            let is_weak = success == Ordering::Release && MUTANT.get() == Mutant::RelaxedUnlock;
            self.0.compare_exchange(current, new, if is_weak { Ordering::Relaxed } else { success }, failure)
        }
    }

    /// No holder ends in the model.
    pub(super) const LOST: u32 = u32::MAX;
    /// The bits of a word that hold the id of its owner.
    pub(super) const OWNER: u32 = WAITERS - 1;
    /// Set while the kernel has a waiter, so that the owner needs the kernel to unlock.
    const WAITERS: u32 = 1 << 16;

    /// How long a request waits.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(super) enum Limit {
        Never,
        /// This number of looks at the word.
        Looks(u32),
        Now,
    }

    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(super) enum WordError {
        Busy,
        TimedOut,
        Deadlock,
        OwnerDied,
        /// Stands for an answer that the queue passes on at once.
        Final,
    }

    /// For each thread that waits: the address of its word, and the owner.
    type Waits = [Option<(usize, u32)>; 8];

    loom::lazy_static! {
        static ref KERNEL: Mutex<Waits> = Mutex::new(Waits::default());
        static ref HANDED: Condvar = Condvar::new();
    }

    loom::thread_local! {
        /// The id of the thread.
        pub(super) static ME: Cell<u32> = Cell::new(0);
    }

    fn kernel() -> MutexGuard<'static, Waits> {
        KERNEL.lock().unwrap()
    }

    /// A PI futex has one owner, and the kernel hands it to its one waiter once the owner unlocks. A thread that begins
    /// to wait follows the owners, one at a time, to find out whether it would wait for itself.
    pub(super) fn lock_word(word: &AtomicU32, limit: Limit) -> Result<bool, WordError> {
        if word.load(Ordering::Acquire) == 0 {
            return Ok(false);
        }
        if limit == Limit::Now {
            return Err(WordError::Busy);
        }
        let me = ME.with(Cell::get);
        let place = me as usize % 8;
        let owner = {
            let mut waits = kernel();
            let seen = word.load(Ordering::Acquire);
            if seen == 0 || word.compare_exchange(seen, seen | WAITERS, Ordering::AcqRel, Ordering::Relaxed).is_err() {
                assert_eq!(word.load(Ordering::Acquire), 0, "only its owner changes a word without waiters");
                word.store(me, Ordering::Relaxed);
                return Ok(true);
            }
            waits[place] = Some((std::ptr::from_ref(word).addr(), seen & OWNER));
            seen & OWNER
        };
        if closes_cycle(me, owner) {
            let mut waits = kernel();
            // The owner has unlocked meanwhile.
            if waits[place].take().is_none() {
                return Ok(true);
            }
            return Err(if MUTANT.get() == Mutant::BelievesTheKernel { WordError::Final } else { WordError::Deadlock });
        }
        let mut waits = kernel();
        let mut looks = 0;
        while waits[place].is_some() {
            looks += 1;
            match limit {
                Limit::Looks(most) if looks >= most => {
                    waits[place] = None;
                    return Err(WordError::TimedOut);
                }
                Limit::Looks(_) => {
                    drop(waits);
                    yield_now();
                    waits = kernel();
                }
                _ => waits = HANDED.wait(waits).unwrap(),
            }
        }
        Ok(true)
    }

    /// The kernel's walk along the owners. All locks are free between two steps. The kernel notices that a thread waits
    /// for another word only if its queue for that word lies at another address, and a thread reuses its own.
    fn closes_cycle(me: u32, owner: u32) -> bool {
        let mut thread = owner;
        let waits_for = |waits: &Waits, thread: u32| waits[thread as usize % 8].map(|(_, owner)| owner);
        let mut is_blocked = waits_for(&kernel(), thread).is_some();
        while is_blocked {
            let waits = kernel();
            match waits_for(&waits, thread) {
                _ if waits_for(&waits, me).is_none() => return false,
                None => return false,
                Some(owner) if owner == me => return true,
                Some(owner) => thread = owner,
            }
            is_blocked = waits_for(&waits, thread).is_some();
        }
        false
    }

    pub(super) fn unlock_word(word: &AtomicU32, me: u32) -> Result<(), i32> {
        if HOLDER.get() == me {
            HOLDER.set(0);
        } else if MUTANT.get() == Mutant::KeepsWord {
            return Ok(());
        }
        if word.compare_exchange(me, 0, Ordering::Release, Ordering::Relaxed).is_ok() {
            return Ok(());
        }
        let mut waits = kernel();
        if word.load(Ordering::Relaxed) & OWNER != me {
            return Err(libc::EPERM);
        }
        let address = std::ptr::from_ref(word).addr();
        let waiter = waits.iter().position(|wait| wait.is_some_and(|(word, _)| word == address));
        let next = waiter.map_or(0, |waiter| {
            waits[waiter] = None;
            (IDS + waiter as u32) | WAITERS
        });
        word.store(next, Ordering::Release);
        HANDED.notify_all();
        Ok(())
    }

    /// The id of the first thread; the others follow, and stand in their places modulo 8.
    pub(super) const IDS: u32 = 104;
}

const NODES: u32 = 6;

struct Model {
    queue: Queue<Vec<Node>>,
    value: UnsafeCell<u32>,
}

impl Model {
    fn new() -> Arc<Self> {
        let node = |index| Node {
            word: AtomicU32::new(0),
            left_for: AtomicU32::new(NONE),
            used: AtomicU32::new(u32::from(index == 0)),
        };
        let queue = Queue {
            tail: AtomicU32::new(0),
            holder: AtomicU32::new(0),
            spare: AtomicU32::new(NONE),
            nodes: (0..NODES).map(node).collect(),
        };
        Arc::new(Self { queue, value: UnsafeCell::new(0) })
    }

    /// Requests the mutex once. Returns whether it was served.
    fn lock(&self, me: u32, limit: Limit) -> bool {
        words::ME.with(|id| id.set(me));
        let locked = match limit {
            Limit::Now => self.queue.try_lock(me),
            _ => self.queue.lock(me, limit, || {}).map(|_| ()),
        };
        let is_left = matches!(locked, Ok(()) | Err(Failure::Word(WordError::Busy | WordError::TimedOut)));
        assert!(is_left, "there is no cycle, and there are enough nodes: {locked:?}");
        if locked.is_ok() {
            words::HOLDER.set(me);
        }
        locked.is_ok()
    }

    /// Requests the mutex once, and counts if it is served. Returns whether it was.
    fn count(&self, me: u32, limit: Limit) -> bool {
        let is_locked = self.lock(me, limit);
        if is_locked {
            assert_eq!(self.queue.word() & OWNER, me, "the holder is known");
            // SAFETY: this thread holds the mutex, so no other thread accesses the value; loom reports it otherwise.
            self.value.with_mut(|value| unsafe { *value += 1 });
            self.queue.unlock(me).expect("the caller holds the mutex");
        }
        is_locked
    }

    /// After all threads have ended: the mutex is free, it counted each request that was served, and no node is lost.
    fn settle(&self, served: u32) {
        let last = IDS + 7;
        assert!(self.count(last, Limit::Now) && self.count(last, Limit::Never), "the mutex is free");
        // SAFETY: the other threads have ended.
        self.value.with(|value| assert_eq!(unsafe { *value }, served + 2));
        let used = self.queue.nodes.iter().filter(|node| node.used.load(words::Ordering::Relaxed) == 1).count();
        assert_eq!(used, 2, "the tail and the spare");
    }
}

/// The work of all threads: each has a list of requests, with their limits.
struct Case {
    requests: &'static [&'static [Limit]],
    /// The threads enter the queue in their order, while the first one holds the mutex.
    is_queued: bool,
}

/// Executes the threads of a case. Each request that always waits must be served.
fn explore(mutant: Mutant, case: &'static Case) {
    let mut builder = loom::model::Builder::new();
    // Threads in a queue are in the right places already, and there are more of them.
    builder.preemption_bound = Some(if case.is_queued { 1 } else { 2 });
    builder.max_branches = 10_000;
    builder.check(move || {
        MUTANT.set(mutant);
        let model = Model::new();
        let serve = |model: &Model, index: usize| {
            let serve = |&limit: &Limit| {
                let is_served = model.count(IDS + index as u32, limit);
                assert!(is_served || limit != Limit::Never, "a request without a deadline is served");
                u32::from(is_served)
            };
            case.requests[index].iter().map(serve).sum::<u32>()
        };
        if case.is_queued {
            assert!(model.lock(IDS, Limit::Never), "the mutex is free");
        }
        let start = |index| {
            let ours = Arc::clone(&model);
            let last = model.queue.tail.load(words::Ordering::Relaxed);
            let thread = thread::spawn(move || serve(&ours, index));
            while case.is_queued && model.queue.tail.load(words::Ordering::Relaxed) == last {
                thread::yield_now();
            }
            thread
        };
        let others: Vec<_> = (1..case.requests.len()).map(start).collect();
        if case.is_queued {
            model.queue.unlock(IDS).expect("the caller holds the mutex");
        }
        let mut served = serve(&model, 0);
        served += others.into_iter().map(|other| other.join().unwrap()).sum::<u32>();
        MUTANT.set(Mutant::None);
        model.settle(served);
    });
}

const WAIT: Limit = Limit::Never;
const GIVE_UP: Limit = Limit::Looks(1);
const GIVE_UP_LATE: Limit = Limit::Looks(2);
const TRY: Limit = Limit::Now;

const CASES: [Case; 6] = [
    Case { requests: &[&[WAIT, WAIT], &[WAIT, WAIT]], is_queued: false },
    Case { requests: &[&[WAIT], &[GIVE_UP, GIVE_UP], &[WAIT]], is_queued: false },
    Case { requests: &[&[WAIT], &[GIVE_UP], &[GIVE_UP]], is_queued: false },
    Case { requests: &[&[WAIT], &[TRY], &[GIVE_UP]], is_queued: false },
    Case { requests: &[&[WAIT], &[TRY], &[WAIT]], is_queued: false },
    // The second request of the second thread can enter the queue while the last thread follows the owners.
    Case { requests: &[&[], &[GIVE_UP_LATE, WAIT], &[WAIT], &[WAIT]], is_queued: true },
];

// A model keeps a processor busy, so it executes behind the tests on real threads.

#[test]
fn each_request_is_served_alone_or_leaves_nothing_behind() {
    let _behind = behind();
    CASES.iter().for_each(|case| explore(Mutant::None, case));
}

#[test]
fn mutants_are_found() {
    let _behind = behind();
    let holds = |mutant, case| {
        holds_in_child(|| {
            std::panic::set_hook(Box::new(|_| {}));
            explore(mutant, case);
            true
        })
    };
    let mutants =
        [(Mutant::RelaxedUnlock, 0), (Mutant::RelaxedTail, 0), (Mutant::KeepsWord, 1), (Mutant::BelievesTheKernel, 5)];
    for (mutant, case) in mutants {
        assert!(!holds(mutant, &CASES[case]), "{mutant:?}");
    }
    assert!(holds(Mutant::None, &CASES[0]), "the unchanged queue also holds in a child process");
}
