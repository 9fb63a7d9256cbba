//! Model of the lock word, checked over all interleavings of its threads (loom), with a stand-in for the kernel's
//! queue.
//!
//! The loops are those of `lock`, `wait` and `unlock`, line by line, without attributes, errors and inheritance.

use super::word::{self, Ask, FREE, GiveBack};
use crate::behind::behind;
use crate::process::holds_in_child;
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

/// A mutation of the loops that must make a property fail.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mutant {
    /// No mutation.
    None,
    /// A thread that has waited does not announce further waiters.
    Forgets,
    /// A mutex that was handed over while nobody waited stays handed.
    StaysHanded,
    /// Such a mutex is freed, but a waiter that came meanwhile is not woken.
    FreesQuietly,
    /// Any thread locks a mutex that was handed to another one.
    Steals,
    /// The unlock publishes nothing.
    Relaxed,
    /// A woken thread that found another owner locks the mutex at the next hand-off.
    Remembers,
}

/// The kernel's queue of one word.
#[derive(Default)]
struct Queue {
    waiters: Vec<u32>,
    /// Threads whose wait has ended and that have not executed yet, and whether they were woken (or timed out).
    ended: Vec<(u32, bool)>,
    /// The thread that was woken as the heir.
    promised: Option<u32>,
}

struct Model {
    word: AtomicU32,
    queue: Mutex<Queue>,
    ended: Condvar,
    value: UnsafeCell<u32>,
    serial: bool,
    mutant: Mutant,
}

impl Model {
    fn new(serial: bool, mutant: Mutant) -> Arc<Self> {
        Arc::new(Self {
            word: AtomicU32::new(FREE),
            queue: Mutex::default(),
            ended: Condvar::new(),
            value: UnsafeCell::new(0),
            serial,
            mutant,
        })
    }

    /// Waits while the word is `expected`. Returns whether the thread was woken, or `None` if it timed out.
    fn wait(&self, expected: u32, me: u32) -> Option<bool> {
        let mut queue = self.queue.lock().unwrap();
        if self.word.load(Ordering::SeqCst) != expected {
            return Some(false);
        }
        queue.waiters.push(me);
        loop {
            if let Some(place) = queue.ended.iter().position(|(who, _)| *who == me) {
                return queue.ended.swap_remove(place).1.then_some(true);
            }
            queue = self.ended.wait(queue).unwrap();
        }
    }

    fn wake(&self, promises: bool) -> usize {
        let mut queue = self.queue.lock().unwrap();
        if queue.waiters.is_empty() {
            return 0;
        }
        let first = queue.waiters.remove(0);
        queue.ended.push((first, true));
        if promises {
            queue.promised = Some(first);
        }
        self.ended.notify_all();
        1
    }

    /// Lets the wait of `who` time out, if it waits.
    fn time_out(&self, who: u32) {
        let mut queue = self.queue.lock().unwrap();
        if let Some(place) = queue.waiters.iter().position(|waiter| *waiter == who) {
            queue.waiters.remove(place);
            queue.ended.push((who, false));
            self.ended.notify_all();
        }
    }

    /// Like `RawMutex::lock`. Returns whether the mutex is locked.
    fn lock(&self, me: u32, tries: bool) -> bool {
        self.word.compare_exchange(FREE, me, Ordering::Acquire, Ordering::Relaxed).is_ok()
            || self.take(me, tries, false, self.mutant == Mutant::Steals)
    }

    /// Like `RawMutex::wait_for_word`.
    fn take(&self, me: u32, tries: bool, mut has_waited: bool, mut was_woken: bool) -> bool {
        loop {
            let word = self.word.load(Ordering::Relaxed);
            match word::ask(word, me, has_waited && self.mutant != Mutant::Forgets, was_woken) {
                Ask::Take { word: taken, .. } => {
                    if self.word.compare_exchange(word, taken, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                        return true;
                    }
                }
                _ if tries => return false,
                Ask::Announce(announced) => {
                    was_woken &= self.mutant == Mutant::Remembers;
                    let _ = self.word.compare_exchange(word, announced, Ordering::Relaxed, Ordering::Relaxed);
                }
                Ask::Wait => match self.wait(word, me) {
                    Some(woken) => (was_woken, has_waited) = (woken, true),
                    None => return false,
                },
            }
        }
    }

    /// Like `RawMutex::unlock_word`.
    fn unlock(&self) {
        let release = if self.mutant == Mutant::Relaxed { Ordering::Relaxed } else { Ordering::Release };
        loop {
            let word = self.word.load(Ordering::Relaxed);
            match word::give_back(word, self.serial) {
                GiveBack::Free => {
                    if self.word.compare_exchange(word, FREE, release, Ordering::Relaxed).is_err() {
                        continue;
                    }
                }
                GiveBack::Wake => {
                    self.word.store(FREE, release);
                    self.wake(false);
                }
                GiveBack::Hand(handed) => {
                    self.word.store(handed, release);
                    if self.wake(true) == 0 && self.mutant != Mutant::StaysHanded {
                        let freed = self.word.compare_exchange(handed, FREE, release, Ordering::Relaxed);
                        assert!(freed.is_ok(), "another thread owns it, and may have freed its memory");
                        if self.mutant != Mutant::FreesQuietly {
                            self.wake(false);
                        }
                    }
                }
            }
            return;
        }
    }

    /// Accesses the value. The model checks that no two accesses are concurrent, and that each is ordered after the one
    /// before.
    fn section(&self) {
        self.value.with_mut(|value| {
            // SAFETY: this thread is in the section, so no other thread accesses the value; loom reports it otherwise.
            unsafe { *value += 1 };
        });
    }

    /// Locks the mutex, accesses the value, and unlocks.
    fn visit(&self, me: u32) {
        if self.lock(me, false) {
            self.queue.lock().unwrap().promised.take_if(|promised| *promised == me);
            self.section();
            self.unlock();
        }
    }

    /// Like [`Model::visit`], with a try, which must not get a mutex that was handed to another thread.
    fn try_to_visit(&self, me: u32) {
        if self.lock(me, true) {
            assert_eq!(self.queue.lock().unwrap().promised, None, "the try overtook the heir");
            self.section();
            self.unlock();
        }
    }
}

/// Explores the interleavings of the threads, with a bound on preemptions (most faults need two).
fn explore(preemptions: impl Into<Option<usize>>, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions.into();
    builder.check(body);
}

/// Whether the model finds a fault. Runs in a child process, because a fault may abort the process.
fn fails(body: impl Fn() + Sync + Send + 'static) -> bool {
    fails_within(Some(2), body)
}

fn fails_within(preemptions: Option<usize>, body: impl Fn() + Sync + Send + 'static) -> bool {
    !holds_in_child(|| {
        std::panic::set_hook(Box::new(|_| {}));
        explore(preemptions, body);
        true
    })
}

/// Three threads visit. Checks exclusion, and that no thread waits for ever (the model detects that all threads wait).
fn three_visit(serial: bool, mutant: Mutant) -> impl Fn() + Sync + Send + 'static {
    move || {
        let model = Model::new(serial, mutant);
        let others = [2, 3].map(|me| {
            let model = Arc::clone(&model);
            thread::spawn(move || model.visit(me))
        });
        model.visit(1);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert!(model.lock(9, true), "the mutex is free at the end");
        model.section();
        model.value.with(|value| {
            // SAFETY: the other threads have ended, so no other thread accesses the value.
            assert_eq!(unsafe { *value }, 4);
        });
    }
}

/// One waiter times out at any instant, beside one without a deadline.
fn one_gives_up(serial: bool, mutant: Mutant) -> impl Fn() + Sync + Send + 'static {
    move || {
        let model = Model::new(serial, mutant);
        assert!(model.lock(1, false));
        let others = [2, 3].map(|me| {
            let model = Arc::clone(&model);
            thread::spawn(move || model.visit(me))
        });
        model.section();
        model.time_out(2);
        model.unlock();
        others.into_iter().for_each(|other| other.join().unwrap());
        assert!(model.lock(9, true), "the mutex is free at the end");
    }
}

/// A thread that was woken before finds that another thread owns the mutex.
fn one_was_woken_before(mutant: Mutant) -> impl Fn() + Sync + Send + 'static {
    move || {
        let model = Model::new(true, mutant);
        assert!(model.lock(1, false));
        let owner = thread::spawn({
            let model = Arc::clone(&model);
            move || {
                model.section();
                model.unlock();
            }
        });
        assert!(model.take(2, false, true, true));
        model.section();
        model.unlock();
        owner.join().unwrap();
        assert!(model.lock(9, true), "the mutex is free at the end");
    }
}

/// A try beside an owner and a waiter.
fn a_thief_comes(serial: bool, mutant: Mutant) -> impl Fn() + Sync + Send + 'static {
    move || {
        let model = Model::new(serial, mutant);
        assert!(model.lock(1, false));
        let waiter = thread::spawn({
            let model = Arc::clone(&model);
            move || model.visit(2)
        });
        let thief = thread::spawn({
            let model = Arc::clone(&model);
            move || model.try_to_visit(3)
        });
        model.section();
        model.unlock();
        waiter.join().unwrap();
        thief.join().unwrap();
    }
}

// A model keeps a processor busy, so it executes behind the tests on real threads.

#[test]
fn three_threads_exclude_each_other_and_all_finish() {
    let _behind = behind();
    // The mutants of these scripts fail within two preemptions.
    let preemptions = if std::env::var_os("LOCKWRIGHT_DEEP").is_some() { 3 } else { 2 };
    for serial in [false, true] {
        explore(preemptions, three_visit(serial, Mutant::None));
        explore(preemptions, one_gives_up(serial, Mutant::None));
    }
}

#[test]
fn a_handed_mutex_is_not_stolen() {
    let _behind = behind();
    explore(None, one_was_woken_before(Mutant::None));
    explore(3, a_thief_comes(true, Mutant::None));
    explore(3, a_thief_comes(false, Mutant::None));
}

#[test]
fn each_mutation_fails() {
    let _behind = behind();
    assert!(fails(three_visit(false, Mutant::Forgets)), "a waiter is never woken");
    assert!(fails(three_visit(true, Mutant::StaysHanded)), "the mutex stays handed to nobody");
    assert!(fails(three_visit(true, Mutant::FreesQuietly)), "a waiter is never woken");
    assert!(fails(a_thief_comes(true, Mutant::Steals)), "a try locks the heir's mutex");
    assert!(fails(three_visit(false, Mutant::Relaxed)), "the access is not published");
    assert!(
        fails_within(None, one_was_woken_before(Mutant::Remembers)),
        "the old owner changes a word that another thread owns"
    );
    assert!(!fails(a_thief_comes(true, Mutant::None)), "the unchanged model also holds in a child process");
}
