//! The word between threads of a model that explores every interleaving, over a stand-in for the kernel's queue.
//!
//! The loops are those of `raw`, line by line, without kinds, errors and the kernel's own.

use super::word::{self, Ask, FREE, GiveBack};
use crate::machine::require_realtime;
use crate::process::holds_in_child;
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

/// What is left out of the loops, so that a property is seen to fail.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Twin {
    /// Nothing.
    None,
    /// Who waited does not say that others may wait.
    Forgets,
    /// A mutex handed to nobody stays so.
    StaysHanded,
    /// It is freed then, and who came to wait meanwhile is not woken.
    FreesQuietly,
    /// Whoever comes takes what was handed to another.
    Steals,
    /// The unlock publishes nothing.
    Relaxed,
    /// Who was woken, and found that somebody came between, takes what is handed over next.
    Remembers,
}

/// The kernel's queue of one word.
#[derive(Default)]
struct Queue {
    waiters: Vec<u32>,
    /// Those that were woken, and those whose time has come, until they execute.
    ended: Vec<(u32, bool)>,
    /// Who was woken to be the owner.
    promised: Option<u32>,
}

struct Model {
    word: AtomicU32,
    queue: Mutex<Queue>,
    ended: Condvar,
    value: UnsafeCell<u32>,
    serial: bool,
    twin: Twin,
}

impl Model {
    fn new(serial: bool, twin: Twin) -> Arc<Self> {
        Arc::new(Self {
            word: AtomicU32::new(FREE),
            queue: Mutex::default(),
            ended: Condvar::new(),
            value: UnsafeCell::new(0),
            serial,
            twin,
        })
    }

    /// Whether it was woken; `None` where its time came.
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

    /// The time of a waiter comes, if it waits.
    fn time_out(&self, who: u32) {
        let mut queue = self.queue.lock().unwrap();
        if let Some(place) = queue.waiters.iter().position(|waiter| *waiter == who) {
            queue.waiters.remove(place);
            queue.ended.push((who, false));
            self.ended.notify_all();
        }
    }

    /// As `RawMutex::lock`: whether it came.
    fn lock(&self, me: u32, tries: bool) -> bool {
        self.word.compare_exchange(FREE, me, Ordering::Acquire, Ordering::Relaxed).is_ok()
            || self.take(me, tries, false, self.twin == Twin::Steals)
    }

    /// As `RawMutex::take_word`.
    fn take(&self, me: u32, tries: bool, mut has_waited: bool, mut was_woken: bool) -> bool {
        loop {
            let word = self.word.load(Ordering::Relaxed);
            match word::ask(word, me, has_waited && self.twin != Twin::Forgets, was_woken) {
                Ask::Take { word: taken, .. } => {
                    if self.word.compare_exchange(word, taken, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                        return true;
                    }
                }
                _ if tries => return false,
                Ask::Announce(announced) => {
                    was_woken &= self.twin == Twin::Remembers;
                    let _ = self.word.compare_exchange(word, announced, Ordering::Relaxed, Ordering::Relaxed);
                }
                Ask::Wait => match self.wait(word, me) {
                    Some(woken) => (was_woken, has_waited) = (woken, true),
                    None => return false,
                },
            }
        }
    }

    /// As `RawMutex::give_word_back`.
    fn unlock(&self) {
        let release = if self.twin == Twin::Relaxed { Ordering::Relaxed } else { Ordering::Release };
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
                    if self.wake(true) == 0 && self.twin != Twin::StaysHanded {
                        let freed = self.word.compare_exchange(handed, FREE, release, Ordering::Relaxed);
                        assert!(freed.is_ok(), "another has it, and may have freed its memory");
                        if self.twin != Twin::FreesQuietly {
                            self.wake(false);
                        }
                    }
                }
            }
            return;
        }
    }

    /// The value, which the model keeps an eye on: no two at once, and each after the one before.
    fn section(&self) {
        self.value.with_mut(|value| {
            // SAFETY: the model fails where this is not so.
            unsafe { *value += 1 };
        });
    }

    /// Takes it, is inside, gives it back.
    fn visit(&self, me: u32) {
        if self.lock(me, false) {
            self.queue.lock().unwrap().promised.take_if(|promised| *promised == me);
            self.section();
            self.unlock();
        }
    }

    /// As [`Model::visit`], by a try: what was promised to another it must not get.
    fn try_to_visit(&self, me: u32) {
        if self.lock(me, true) {
            assert_eq!(self.queue.lock().unwrap().promised, None, "it came between");
            self.section();
            self.unlock();
        }
    }
}

/// Everything that two threads and this one do, with few preemptions (most faults need two).
fn explore(preemptions: impl Into<Option<usize>>, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions.into();
    builder.check(body);
}

/// In a child process: where the model finds a fault it may end the process.
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

/// Three visit: exclusion, and nobody waits for ever (the model finds that all threads wait).
fn three_visit(serial: bool, twin: Twin) -> impl Fn() + Sync + Send + 'static {
    move || {
        let model = Model::new(serial, twin);
        let others = [2, 3].map(|me| {
            let model = Arc::clone(&model);
            thread::spawn(move || model.visit(me))
        });
        model.visit(1);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert!(model.lock(9, true), "free at last");
        model.section();
        model.value.with(|value| {
            // SAFETY: as in `section`.
            assert_eq!(unsafe { *value }, 4);
        });
    }
}

/// A waiter whose time comes at any instant, beside one with patience.
fn one_gives_up(serial: bool, twin: Twin) -> impl Fn() + Sync + Send + 'static {
    move || {
        let model = Model::new(serial, twin);
        assert!(model.lock(1, false));
        let others = [2, 3].map(|me| {
            let model = Arc::clone(&model);
            thread::spawn(move || model.visit(me))
        });
        model.section();
        model.time_out(2);
        model.unlock();
        others.into_iter().for_each(|other| other.join().unwrap());
        assert!(model.lock(9, true), "free at last");
    }
}

/// One that was woken a while ago, and finds that somebody came between.
fn one_was_woken_before(twin: Twin) -> impl Fn() + Sync + Send + 'static {
    move || {
        let model = Model::new(true, twin);
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
        assert!(model.lock(9, true), "free at last");
    }
}

/// A try beside an owner and a waiter.
fn a_thief_comes(serial: bool, twin: Twin) -> impl Fn() + Sync + Send + 'static {
    move || {
        let model = Model::new(serial, twin);
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

// A model keeps a processor busy: it takes its turn with the tests on real threads.

#[test]
fn three_exclude_each_other_and_none_is_left() {
    let _quiet = require_realtime();
    for serial in [false, true] {
        explore(3, three_visit(serial, Twin::None));
        explore(3, one_gives_up(serial, Twin::None));
    }
}

#[test]
fn what_was_handed_is_not_stolen() {
    let _quiet = require_realtime();
    explore(None, one_was_woken_before(Twin::None));
    explore(3, a_thief_comes(true, Twin::None));
    explore(3, a_thief_comes(false, Twin::None));
}

#[test]
fn each_twin_fails() {
    let _quiet = require_realtime();
    assert!(fails(three_visit(false, Twin::Forgets)), "somebody is left");
    assert!(fails(three_visit(true, Twin::StaysHanded)), "it belongs to nobody");
    assert!(fails(three_visit(true, Twin::FreesQuietly)), "somebody is left");
    assert!(fails(a_thief_comes(true, Twin::Steals)), "it is stolen");
    assert!(fails(three_visit(false, Twin::Relaxed)), "it is not published");
    assert!(fails_within(None, one_was_woken_before(Twin::Remembers)), "it is touched once it is another's");
    assert!(!fails(a_thief_comes(true, Twin::None)), "what has no fault holds in a child, too");
}
