//! Stress tests: threads of four priorities, timers, signal handlers that enter sections and are interrupted by others,
//! migrations, and several sections for each thread. Every addition takes effect exactly once.

use crate::support::{Stage, cpus, pin, set_fifo, tid};
use lockwright::ics::{Commit, Ics, Kind, Locked, PriorityQueue, Rseq, Strategy, Var, Word};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::spawn;
use std::time::{Duration, Instant};

const THREADS: usize = 4;
/// One slot for each thread, and one for each of its two handlers.
const SLOTS: usize = 3 * THREADS;
const WORDS: usize = 6;
const WRITES: usize = 3;
const BURST: Duration = Duration::from_millis(400);
const PAUSE: Duration = Duration::from_millis(100);

type Object<C> = Ics<[Word; WORDS], SLOTS, WRITES, C>;

/// Executes a section that adds one to the first two words, which are always equal, and to one of the others.
/// It calls `interrupt` in the middle of its first attempt.
fn section<C: Commit>(
    ics: &Object<C>,
    slot: &mut lockwright::ics::Writer<'_, [Word; WORDS], SLOTS, WRITES, C>,
    which: u64,
    interrupt: impl FnOnce(),
) {
    let third = Var::<u64>::new(2 + (which % 4) as usize);
    let mut interrupt = Some(interrupt);
    let done = slot.update(|section| {
        let left: u64 = section.read(Var::new(0))?;
        let other = section.read(third)?;
        // Leaves time for interruptions.
        for _ in 0..which % 32 {
            std::hint::spin_loop();
        }
        if let Some(interrupt) = interrupt.take() {
            interrupt();
        }
        let right: u64 = section.read(Var::new(1))?;
        assert_eq!(left, right, "an inconsistent state");
        section.write(Var::new(0), left + 1)?;
        section.write(third, other + 1)?;
        section.write(Var::new(1), right + 1)
    });
    assert_eq!(done, Ok(()));
    if which.is_multiple_of(16) {
        let sums = ics.query(|view| Ok((view.read(Var::<u64>::new(0))?, view.read(Var::<u64>::new(1))?)));
        assert!(matches!(sums, Ok((left, right)) if left == right), "an inconsistent state");
    }
}

/// The work of a signal handler.
type Handler = Option<Box<dyn FnMut()>>;

thread_local! {
    /// The work of this thread's handlers, by nesting depth.
    static HANDLERS: RefCell<[Handler; 2]> = const { RefCell::new([None, None]) };
}

/// The signals that are handled in the middle of sections; the second interrupts the first.
fn signals() -> [i32; 2] {
    [libc::SIGRTMIN() + 4, libc::SIGRTMIN() + 5]
}

extern "C" fn handle(signal: i32) {
    let depth = usize::from(signal == signals()[1]);
    // The work is taken out meanwhile: this signal is blocked here, the other is not.
    let work = HANDLERS.with(|handlers| handlers.try_borrow_mut().ok().and_then(|mut handlers| handlers[depth].take()));
    if let Some(mut work) = work {
        work();
        HANDLERS.with(|handlers| {
            if let Ok(mut handlers) = handlers.try_borrow_mut() {
                handlers[depth] = Some(work);
            } else {
                std::mem::forget(work);
            }
        });
    }
}

fn install_handlers() {
    for signal in signals() {
        // SAFETY: all zeros is a valid action; the handler accesses only data of its own thread.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handle as *const () as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}

fn signal(thread: u32, signal: i32) {
    // SAFETY: the call takes integers. The thread is joined later, so its number is still its own.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, signal) };
}

/// The parameters of a stress run.
#[derive(Clone, Copy)]
struct Stress {
    /// The least number of sections.
    sections: u64,
    cpus: [usize; 2],
    /// Threads are moved between the two.
    migrates: bool,
    signals: bool,
}

/// The results of a stress run.
struct Left {
    sections: u64,
    conflicts: u64,
    is_exact: bool,
}

/// Executes sections of four priorities until there are enough, in bursts that leave the processor to other threads in
/// between.
fn blow<C: Commit + Send + Sync + 'static>(ics: Arc<Object<C>>, stress: Stress) -> Left {
    install_handlers();
    let (done, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let conflicts = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (0..THREADS)
        .map(|index| {
            let (ics, done, over, conflicts) =
                (Arc::clone(&ics), Arc::clone(&done), Arc::clone(&over), Arc::clone(&conflicts));
            let (send, receive) = std::sync::mpsc::channel();
            let handle = spawn(move || {
                let take = |place: usize| {
                    // SAFETY: only this thread and its handlers use these numbers, and `ics` outlives them.
                    unsafe { ics.shared_writer(index + place * THREADS) }.expect("each thread has a slot")
                };
                let mut slot = take(0);
                for depth in 0..2 {
                    let (ics, done) = (Arc::clone(&ics), Arc::clone(&done));
                    let mut which = depth as u64;
                    let work = move || {
                        // SAFETY: only this thread and its handlers use these numbers, and the handlers of one depth do
                        // not interrupt each other.
                        let slot = unsafe { ics.shared_writer(index + (1 + depth) * THREADS) };
                        section(&ics, &mut slot.expect("each thread has a slot"), which, || ());
                        which += 3;
                        done.fetch_add(1, Ordering::Relaxed);
                    };
                    HANDLERS.with_borrow_mut(|handlers| handlers[depth] = Some(Box::new(work)));
                }
                set_fifo(tid(), 10 + 10 * index as u8);
                pin(stress.cpus[index % 2]);
                send.send(tid()).expect("the test waits");
                let (mut which, mut burst) = (index as u64, Instant::now());
                let mut cpu = index;
                while !over.load(Ordering::Relaxed) {
                    let sections = if index == 0 { 64 } else { 8 };
                    for number in 0..sections {
                        // Timers and signals may come late, and between sections. This handler is always in one.
                        let interrupts = stress.signals && number == 0;
                        section(&ics, &mut slot, which, || {
                            if interrupts {
                                signal(tid(), signals()[0]);
                            }
                        });
                        which += 1;
                    }
                    done.fetch_add(sections, Ordering::Relaxed);
                    if stress.migrates && which % 512 < 8 {
                        cpu += 1;
                        pin(stress.cpus[cpu % 2]);
                    }
                    if index > 0 {
                        // Timers, each with its own period.
                        std::thread::sleep(Duration::from_micros(40 + 27 * index as u64));
                    } else if burst.elapsed() > BURST {
                        std::thread::sleep(PAUSE);
                        burst = Instant::now();
                    }
                }
                HANDLERS.with_borrow_mut(|handlers| *handlers = [None, None]);
                conflicts.fetch_add(slot.stats().conflicts + slot.stats().restarts, Ordering::Relaxed);
            });
            (receive.recv().expect("the thread begins"), handle)
        })
        .collect();
    let mut round = 0_usize;
    // BOUND: the watchdog of the stage.
    while done.load(Ordering::Relaxed) < stress.sections {
        if stress.signals {
            signal(threads[round % THREADS].0, signals()[round / THREADS % 2]);
            signal(threads[round % THREADS].0, signals()[(round / THREADS + 1) % 2]);
        }
        round += 1;
        std::thread::sleep(Duration::from_micros(90));
    }
    over.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|(_, handle)| handle.join().expect("all states were consistent"));
    let sections = done.load(Ordering::Relaxed);
    // A thread at home: it performs the posted section that it finds.
    let words = spawn(move || {
        pin(stress.cpus[0]);
        ics.query(|view| {
            let mut words = [0; WORDS];
            for (index, word) in words.iter_mut().enumerate() {
                *word = view.read(Var::<u64>::new(index))?;
            }
            Ok(words)
        })
    });
    let words = words.join().expect("the thread does not panic").expect("no other thread is inside");
    let is_exact = words[0] == sections && words[1] == sections && words[2..].iter().sum::<u64>() == sections;
    Left { sections, conflicts: conflicts.load(Ordering::Relaxed), is_exact }
}

fn object<C: Commit>(commit: C) -> Arc<Object<C>> {
    Arc::new(Ics::with([const { Word::new(0) }; WORDS], commit))
}

fn report(name: &str, left: &Left) {
    println!(
        "{name}: {} sections, {} attempts repeated, {}",
        left.sections,
        left.conflicts,
        if left.is_exact { "exact" } else { "lost" }
    );
}

/// Runs all stress tests, with a few sections in every test run or as many as requested.
fn stresses(sections: u64) {
    let Some(stage) = Stage::set_for(Duration::from_secs(10 + sections / 20_000)) else { return };
    let one = Stress { sections, cpus: [stage.cpu; 2], migrates: false, signals: true };
    let left = blow(object(Locked), one);
    report("locked, one processor", &left);
    assert!(left.is_exact && left.conflicts > 0);

    // SAFETY: all threads of the stress run are bound to the stage's processor; the test itself reads the sums after
    // they have ended.
    let plain = unsafe { Strategy::uniprocessor() };
    if plain.kind() == Kind::Uniprocessor {
        let left = blow(object(plain), one);
        report("plain, one processor", &left);
        assert!(left.is_exact && left.conflicts > 0);
    }

    let rseq = object(Strategy::for_cpu(stage.cpu as u32));
    if rseq.commit().kind() == Kind::Rseq {
        let left = blow(Arc::clone(&rseq), one);
        report("sequences, one processor", &left);
        assert!(left.is_exact && left.conflicts > 0);
        let aborted = rseq.commit().rseq().map_or(0, Rseq::aborted);
        println!("aborted: {aborted}");
        assert!(rseq.commit().rseq().is_some_and(Rseq::is_at_home), "a thread left its home processor");
        // A store takes nanoseconds, so few are interrupted, and of a few sections none.
        assert!(aborted > 0 || sections < 1_000_000, "no store was interrupted");
    }

    let Some(&other) = cpus().get(1) else { return };
    let two = Stress { cpus: [stage.cpu, other], migrates: true, ..one };
    let left = blow(object(Locked), two);
    report("locked, two processors", &left);
    assert!(left.is_exact && left.conflicts > 0);

    let rseq = object(Strategy::for_cpu(stage.cpu as u32));
    if let Some(strategy) = rseq.commit().rseq() {
        let left = blow(Arc::clone(&rseq), two);
        report("sequences, two processors", &left);
        assert!(left.is_exact && left.conflicts > 0);
        assert!(!strategy.is_at_home() && strategy.elsewhere() > 0, "a thread on another processor was not noticed");
    }
}

#[test]
fn no_update_is_lost_or_done_twice() {
    stresses(60_000);
}

#[test]
#[ignore = "minutes: cargo test --release -p lockwright --test ics stress -- --ignored --nocapture"]
fn no_update_of_millions_is_lost_or_done_twice() {
    stresses(4_000_000);
}

/// Threads leave the home processor in the middle of a stress run, again and again.
#[test]
fn a_thread_from_another_processor_does_not_affect_others() {
    let Some(stage) = Stage::set() else { return };
    let Some(&other) = cpus().get(1) else { return };
    for round in 0..10 {
        let ics = object(Strategy::for_cpu(stage.cpu as u32));
        if ics.commit().kind() != Kind::Rseq {
            return;
        }
        let stranger = {
            let ics = Arc::clone(&ics);
            spawn(move || {
                pin(other);
                std::thread::sleep(Duration::from_millis(5));
                // SAFETY: threads and handlers have the numbers below this one.
                let mut slot = unsafe { ics.shared_writer(SLOTS - 1) }.expect("a slot is free");
                (0..1000).for_each(|which| section(&ics, &mut slot, which, || ()));
            })
        };
        let stress = Stress { sections: 3_000, cpus: [stage.cpu; 2], migrates: false, signals: false };
        let left = blow(Arc::clone(&ics), stress);
        stranger.join().expect("all states were consistent");
        let sum = ics.query(|view| view.read(Var::<u64>::new(0))).expect("no other thread is inside");
        assert_eq!(sum, left.sections + 1000, "round {round}");
        assert!(ics.commit().rseq().is_some_and(|rseq| !rseq.is_at_home()));
    }
}

/// A mutant of the commit that does not detect conflicts: it ignores the version.
struct Blind;

// SAFETY: the implementation breaks the contract on purpose; the data are integers, which stay valid.
unsafe impl Commit for Blind {
    fn post(&self, head: &AtomicU64, _: u64, new: u64) -> bool {
        head.store(new, Ordering::Release);
        true
    }
    fn perform(&self, head: &AtomicU64, seen: u64, word: &AtomicU64, old: u64, new: u64) {
        Locked.perform(head, seen, word, old, new);
    }
}

/// The mutant: with one word, only the sum shows that an update is lost.
#[test]
fn without_the_conflict_flag_updates_are_lost() {
    let Some(stage) = Stage::set() else { return };
    let ics = Arc::new(Ics::<[Word; 1], 2, 1, Blind>::with([Word::new(0)], Blind));
    let over = Arc::new(AtomicBool::new(false));
    let add = |ics: &Ics<[Word; 1], 2, 1, Blind>, slot: usize, interrupt: &dyn Fn()| {
        // SAFETY: each thread has a number of its own.
        let mut slot = unsafe { ics.shared_writer(slot) }.expect("there are two slots");
        slot.update(|section| {
            let sum: u64 = section.read(Var::new(0))?;
            interrupt();
            section.write(Var::new(0), sum + 1)
        })
        .expect("the section does not stop");
    };
    let high = {
        let (ics, over) = (Arc::clone(&ics), Arc::clone(&over));
        stage.thread(20, move || {
            let mut sections = 0_u64;
            // BOUND: the other thread executes a named number of sections.
            loop {
                std::thread::park();
                if over.load(Ordering::Relaxed) {
                    return sections;
                }
                add(&ics, 1, &|| ());
                sections += 1;
            }
        })
    };
    let low = {
        let (ics, high) = (Arc::clone(&ics), high.thread().clone());
        stage.thread(10, move || {
            // The more urgent thread executes at once, in the middle of the section.
            (0..2000).for_each(|_| add(&ics, 0, &|| high.unpark()));
            2000
        })
    };
    let mut sections = low.end();
    over.store(true, Ordering::Relaxed);
    high.thread().unpark();
    sections += high.end();
    let sum: u64 = ics.query(|view| view.read(Var::new(0))).expect("no other thread is inside");
    println!("without the flag: {} of {sections} lost", sections - sum.min(sections));
    assert!(sum < sections, "no update was lost");
}

/// Enqueuers and a dequeuer on two processors: every value comes out once, and those of one enqueuer and priority in
/// order.
#[test]
fn a_queue_loses_nothing() {
    const EACH: u64 = 4_000;
    let Some(stage) = Stage::set() else { return };
    let queue = Arc::new(PriorityQueue::<24, 4, Strategy>::with(Strategy::for_cpu(stage.cpu as u32)));
    let enqueuers: Vec<_> = (0..3_u64)
        .map(|index| {
            let queue = Arc::clone(&queue);
            spawn(move || {
                if let Some(&cpu) = cpus().get(index as usize % 2) {
                    pin(cpu);
                }
                let mut slot = queue.writer().expect("each thread has a slot");
                for value in 0..EACH {
                    while slot.enqueue(value % 3, index * EACH + value).is_err() {
                        std::thread::sleep(Duration::from_micros(20));
                    }
                }
            })
        })
        .collect();
    let dequeuer = {
        let queue = Arc::clone(&queue);
        stage.thread(50, move || {
            let mut slot = queue.writer().expect("a slot is free");
            let mut last = [[None::<u64>; 3]; 3];
            let mut count = 0;
            while count < 3 * EACH {
                let Some((priority, value)) = slot.dequeue().expect("the section does not stop") else {
                    std::thread::sleep(Duration::from_micros(50));
                    continue;
                };
                let last = &mut last[(value / EACH) as usize][priority as usize];
                assert!(last.is_none_or(|last| last < value), "out of order");
                *last = Some(value);
                count += 1;
            }
        })
    };
    enqueuers.into_iter().for_each(|enqueuer| enqueuer.join().expect("the thread does not panic"));
    dequeuer.end();
    assert_eq!(queue.peek(), None);
}
