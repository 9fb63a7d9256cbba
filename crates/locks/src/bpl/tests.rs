//! Tests of the lock on its atomics.

use super::*;
use crate::testing::{self, Probe};
use std::vec::Vec;

/// The unsuccessful checks of each waiting slot.
#[derive(Debug)]
pub(super) struct Checks([core::sync::atomic::AtomicUsize; SLOTS_MAX]);

impl Checks {
    #[allow(clippy::declare_interior_mutable_const)] // The constructor is constant.
    pub(super) const NONE: Self = Self([const { core::sync::atomic::AtomicUsize::new(0) }; SLOTS_MAX]);

    pub(super) fn count(&self, slot: usize) {
        self.0[slot].fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn end(&self, slot: usize) {
        self.0[slot].store(0, Ordering::SeqCst);
    }

    fn of(&self, slot: usize) -> usize {
        self.0[slot].load(Ordering::SeqCst)
    }
}

const PLACES: [Place; 7] =
    [Place::Waiters, Place::Batch, Place::Lowest, Place::Urgent, Place::Settling0, Place::Settling1, Place::Status];

impl<const SLOTS: usize, W: Word, R: Relax> Bpl<SLOTS, W, R> {
    fn words(&self) -> [u64; 7] {
        PLACES.map(|place| self.load(place))
    }
}

impl<const SLOTS: usize, W: Word, R: Relax> Probe for Bpl<SLOTS, W, R> {
    /// A batch is drawn before the first unsuccessful check.
    fn has_requested(&self, slot: usize, _: usize) -> bool {
        self.checks.of(slot) > 0
    }

    /// Whether all waiters have checked twice without a change: each of them is where it stays.
    fn has_settled(&self, waiters: usize) -> bool {
        let waiting: Vec<usize> = (0..SLOTS).filter(|&slot| self.checks.of(slot) > 0).collect();
        if waiting.len() != waiters {
            return false;
        }
        let before = self.words();
        let mut relax = testing::Patient::default();
        for slot in waiting {
            let checks = self.checks.of(slot);
            while self.checks.of(slot) < checks + 2 {
                relax.relax();
            }
        }
        self.words() == before
    }
}

testing::exclusion!(Bpl<8, usize, testing::Patient>, 3, 2);
testing::abort!(Bpl<8, usize, testing::Patient>);

// In loom SeqCst orders no more than AcqRel, so two waiters at a barrier may miss each other. Shuttle, real threads and
// the search check the order of hand-offs.
#[cfg(not(lockwright_loom))]
testing::order!(Bpl<16, usize, testing::Patient>, Order::Batched);

#[cfg(not(lockwright_loom))]
mod with_32_bits {
    use super::*;
    testing::exclusion!(Bpl<32, u32, testing::Patient>);
    testing::order!(Bpl<32, u32, testing::Patient>, Order::Batched);
}

#[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
mod on_one_thread {
    use super::*;
    use crate::testing::checks;

    /// Returns a slot of this thread.
    #[allow(unsafe_code)]
    fn slot(index: usize) -> Slot {
        // SAFETY: the thread uses one slot of a number at a time, on its own locks.
        unsafe { Slot::new(index) }
    }

    #[allow(unsafe_code)]
    fn release<const SLOTS: usize, W: Word>(lock: &Bpl<SLOTS, W>) {
        // SAFETY: each test calls this while it holds the lock, and a hold of `Bpl` carries no data.
        unsafe { lock.release(()) }
    }

    fn lock_with<const SLOTS: usize, W: Word>(words: [u64; 7]) -> Bpl<SLOTS, W> {
        let lock = Bpl::<SLOTS, W>::new();
        for (place, word) in PLACES.into_iter().zip(words) {
            lock.store(place, word);
        }
        lock
    }

    /// Returns the words of locks with few waiters, at each batch of interest, held and free.
    fn small_states<const SLOTS: usize, W: Word>() -> Vec<[u64; 7]> {
        let rules = Bpl::<SLOTS, W>::RULES;
        let half = 1 << (rules.id_bits - 1);
        let last = 2 * half - 1;
        let mut states = Vec::new();
        for waiters in 0..3 {
            for id in [0, 1, half - 1, half, half + 1, last - 1, last] {
                for joined in 0..3 {
                    for status in 0..2 {
                        let nobody = rules.nobody();
                        states.push([waiters, (joined << rules.id_bits | id) & nobody, nobody, nobody, 0, 0, status]);
                    }
                }
            }
        }
        states
    }

    /// The straight-line code has the effect of the steps.
    fn the_straight_code_is_the_steps<const SLOTS: usize, W: Word>() {
        let request = (&slot(0), Priority::new(3));
        for words in small_states::<SLOTS, W>().into_iter().step_by(if cfg!(miri) { 25 } else { 1 }) {
            let (straight, stepped) = (lock_with::<SLOTS, W>(words), lock_with::<SLOTS, W>(words));
            let mut contender = Contender::new(At::ReadBatch, 1, 3);
            while !matches!(contender.at, At::Count | At::Inside) {
                contender.step(&stepped);
            }
            let is_in = contender.at == At::Inside;
            // A try checks `status` first, and leaves a held lock as it is.
            let tried = lock_with::<SLOTS, W>(words);
            assert_eq!(tried.try_acquire(request).is_some(), is_in, "{words:x?}");
            assert_eq!(tried.words(), if words[6] == 0 { stepped.words() } else { words });

            assert_eq!(straight.enter_at_once(), is_in, "{words:x?}");
            assert_eq!(straight.words(), stepped.words(), "after {words:x?}");
            if is_in {
                while contender.at != At::Outside {
                    contender.step(&stepped);
                }
                release(&straight);
                assert_eq!(straight.words(), stepped.words(), "after {words:x?}");
            }
        }
    }

    #[test]
    fn the_straight_code_is_the_steps_in_32_and_64_bits() {
        the_straight_code_is_the_steps::<1, u32>();
        the_straight_code_is_the_steps::<32, u32>();
        the_straight_code_is_the_steps::<64, u64>();
        the_straight_code_is_the_steps::<64, usize>();
    }

    const ROUNDS: u32 = if cfg!(miri) { 10 } else { 400 };

    /// Threads keep a lock busy whose ids wrap around soon; it is served in order, and no thread is left waiting.
    #[allow(unsafe_code)]
    fn ids_wrap_around<const SLOTS: usize, W: Word>() {
        let rules = Bpl::<SLOTS, W>::RULES;
        let last = (1 << rules.id_bits) - 1;
        for before in [0, 1, 50, 500] {
            let lock = Bpl::<SLOTS, W, testing::Patient>::new();
            lock.store(Place::Batch, last - before);
            // The lock counts one more waiter, so that the ids do not restart.
            lock.store(Place::Waiters, 1);
            std::thread::scope(|scope| {
                for index in 0..3 {
                    let lock = &lock;
                    scope.spawn(move || {
                        let slot = slot(index);
                        for round in 0..ROUNDS {
                            lock.acquire((&slot, Priority::new(round)));
                            // SAFETY: the lock was just acquired.
                            unsafe { lock.release(()) };
                        }
                    });
                }
            });
            lock.store(Place::Waiters, 0);
            // The idle lock is in its initial state, except for the batch.
            assert_eq!(
                lock.words(),
                [0, rules.id(last - before + 3 * u64::from(ROUNDS)), rules.nobody(), rules.nobody(), 0, 0, 0]
            );
        }
    }

    #[test]
    fn ids_wrap_around_in_32_and_64_bits() {
        ids_wrap_around::<32, u32>();
        ids_wrap_around::<8, u32>();
        ids_wrap_around::<64, u64>();
    }

    #[test]
    fn ids_restart_when_no_request_waits() {
        let rules = Bpl::<8, u32>::RULES;
        let half = 1 << (rules.id_bits - 1);
        let lock = lock_with::<8, u32>([0, half - 1, rules.nobody(), rules.nobody(), 0, 0, 0]);
        for batch in [half, 1, 2] {
            lock.acquire((&slot(0), Priority::new(0)));
            release(&lock);
            assert_eq!(lock.load(Place::Batch), batch);
        }
    }

    /// More requests than the count holds can give up and return during one section.
    #[test]
    fn a_count_that_overflows_changes_no_id() {
        let lock = Bpl::<2, u32>::new();
        lock.acquire((&slot(0), Priority::new(0)));
        for _ in 0..10 {
            assert!(lock.acquire_until((&slot(1), Priority::new(0)), || true).is_none());
            assert_eq!(Bpl::<2, u32>::RULES.id(lock.load(Place::Batch)), 0);
        }
        release(&lock);
        assert!(lock.try_acquire((&slot(1), Priority::new(0))).is_some());
        release(&lock);
        assert_eq!(lock.load(Place::Batch), 2);
    }

    #[test]
    fn priorities_become_levels() {
        fn levels<const SLOTS: usize, W: Word>() -> [u64; 4] {
            [0, 1, 2, u32::MAX].map(|priority| Bpl::<SLOTS, W>::level(Priority::new(priority)))
        }
        assert_eq!(levels::<8, u32>(), [0xffff_fffe, 0xffff_fffe, 0xffff_fffd, 0]);
        assert_eq!(levels::<8, u64>(), [0xffff_ffff, 0xffff_fffe, 0xffff_fffd, 0]);
        // The least urgent priority waits like all others, although all ones stand for no priority.
        checks::scripted::<Bpl<8, u32, testing::Patient>>(testing::Order::Batched, &[&[0, 7], &[0, 65_535]]);
    }

    #[test]
    fn words_are_laid_out_for_all_slots() {
        assert_eq!((Bpl::<64, u64>::RULES.id_bits, Bpl::<32, u32>::RULES.id_bits), (57, 26));
        assert_eq!((Bpl::<1, u32>::RULES.id_bits, Bpl::<8, u32>::RULES.id_bits), (31, 28));
    }

    #[test]
    #[should_panic(expected = "slot 8 requests a lock that has slots 0 to 7")]
    fn a_slot_beyond_those_of_the_lock_is_refused() {
        Bpl::<8>::new().acquire((&slot(8), Priority::new(0)));
    }
}
