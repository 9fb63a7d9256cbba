//! The queue, checked over the interleavings of its threads (loom). The file is the one that programs execute; only the
//! words are a model of PI futexes.

#[allow(clippy::duplicate_mod, reason = "the same file with the words of the model")]
#[path = "queue.rs"]
mod queue;

use crate::machine;
use crate::process::holds_in_child;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use queue::{NONE, Node, Queue};
use words::{AtomicU32, Limit, MUTANT, Mutant};

mod words {
    pub(super) use loom::sync::atomic::Ordering;
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

    /// How long a request waits.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(super) enum Limit {
        Never,
        /// So many looks at the word.
        Looks(u32),
        Now,
    }

    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(super) enum WordError {
        Busy,
        TimedOut,
        OwnerDied,
    }

    /// A PI futex has one owner, and lets its one waiter continue once the owner unlocks.
    pub(super) fn lock_word(word: &AtomicU32, limit: Limit) -> Result<bool, WordError> {
        let mut looks = 0;
        while word.load(Ordering::Acquire) != 0 {
            looks += 1;
            match limit {
                Limit::Now => return Err(WordError::Busy),
                Limit::Looks(most) if looks >= most => return Err(WordError::TimedOut),
                _ => yield_now(),
            }
        }
        Ok(looks > 0)
    }

    pub(super) fn unlock_word(word: &AtomicU32, me: u32) -> Result<(), i32> {
        if HOLDER.get() == me {
            HOLDER.set(0);
        } else if MUTANT.get() == Mutant::KeepsWord {
            return Ok(());
        }
        word.compare_exchange(me, 0, Ordering::Release, Ordering::Relaxed).map(|_| ()).map_err(|_| libc::EPERM)
    }
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

    /// Requests the mutex once, and counts if it is served. Returns whether it was.
    fn count(&self, me: u32, limit: Limit) -> bool {
        let is_locked = match limit {
            Limit::Now => self.queue.try_lock(me).is_ok(),
            _ => self.queue.lock(me, limit).is_ok(),
        };
        if is_locked {
            words::HOLDER.set(me);
            assert_eq!(self.queue.word(), me, "the holder is known");
            // SAFETY: this thread holds the mutex, so no other thread accesses the value; loom reports it otherwise.
            self.value.with_mut(|value| unsafe { *value += 1 });
            self.queue.unlock(me).expect("the caller holds the mutex");
        }
        is_locked
    }

    /// After all threads have ended: the mutex is free, it counted each request that was served, and no node is lost.
    fn settle(&self, served: u32) {
        assert!(self.count(90, Limit::Now) && self.count(90, Limit::Never), "the mutex is free");
        // SAFETY: the other threads have ended.
        self.value.with(|value| assert_eq!(unsafe { *value }, served + 2));
        let used = self.queue.nodes.iter().filter(|node| node.used.load(words::Ordering::Relaxed) == 1).count();
        assert_eq!(used, 2, "the tail and the spare");
    }
}

/// Executes threads with these limits, each a number of requests. The first that always waits must be served.
fn explore(mutant: Mutant, threads: &'static [&'static [Limit]]) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(move || {
        MUTANT.set(mutant);
        let model = Model::new();
        let requests = |model: &Model, me: u32, limits: &[Limit]| {
            let serve = |&limit: &Limit| {
                let is_served = model.count(me, limit);
                assert!(is_served || limit != Limit::Never, "a request without a deadline is served");
                u32::from(is_served)
            };
            limits.iter().map(serve).sum::<u32>()
        };
        let others: Vec<_> = (1..threads.len())
            .map(|index| {
                let model = Arc::clone(&model);
                thread::spawn(move || requests(&model, 101 + index as u32, threads[index]))
            })
            .collect();
        let mut served = requests(&model, 101, threads[0]);
        served += others.into_iter().map(|other| other.join().unwrap()).sum::<u32>();
        MUTANT.set(Mutant::None);
        model.settle(served);
    });
}

const WAIT: Limit = Limit::Never;
const GIVE_UP: Limit = Limit::Looks(1);
const TRY: Limit = Limit::Now;

const CASES: [&[&[Limit]]; 5] = [
    &[&[WAIT, WAIT], &[WAIT, WAIT]],
    &[&[WAIT], &[GIVE_UP, GIVE_UP], &[WAIT]],
    &[&[WAIT], &[GIVE_UP], &[GIVE_UP]],
    &[&[WAIT], &[TRY], &[GIVE_UP]],
    &[&[WAIT], &[TRY], &[WAIT]],
];

// A model keeps a processor busy, so it shares the machine with other searches only.

#[test]
fn each_request_is_served_alone_or_leaves_nothing_behind() {
    let _machine = machine::shared();
    CASES.iter().for_each(|threads| explore(Mutant::None, threads));
}

#[test]
fn mutants_are_found() {
    let _machine = machine::shared();
    let holds = |mutant, threads| {
        holds_in_child(|| {
            std::panic::set_hook(Box::new(|_| {}));
            explore(mutant, threads);
            true
        })
    };
    for mutant in [Mutant::RelaxedUnlock, Mutant::RelaxedTail, Mutant::KeepsWord] {
        assert!(CASES.iter().any(|threads| !holds(mutant, threads)), "{mutant:?}");
    }
    assert!(holds(Mutant::None, CASES[0]), "the unchanged queue also holds in a child process");
}
