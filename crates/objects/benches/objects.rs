//! The objects beside those of other crates and of the standard library, in one run and in turns: alone, and on two
//! CPUs at once.
//!
//! A time alone is that of two operations: a push and a pop, a write and a read, an insertion and an extraction.
//! A time of two CPUs is that of one operation of a thread while the other thread executes as many.

use crossbeam_queue::ArrayQueue;
use crossbeam_utils::CachePadded;
use lockwright_locks::{Slot, Ticket};
use lockwright_objects::{
    Buffer, LockFreeBuffer, LockFreeHeap, LockFreeQueue, LockedBuffer, LockedHeap, LockedQueue, PriorityQueue, Queue,
    WaitFreeBuffer, WaitFreeHeap, WaitFreeQueue,
};
use lockwright_sys::sched;
use seqlock::SeqLock;
use std::cell::RefCell;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, mpsc};
use std::time::{Duration, Instant};

const SLOTS: usize = 16;
const WORDS: usize = 10;
const CAPACITY: usize = 1022;
const BLOCKS: usize = 16;
/// The values in a heap while it is measured.
const USUAL: u64 = 500;
/// How often each object is measured, and the operations each time, alone and on two CPUs.
const ROUNDS: usize = 51;
const ALONE: u64 = 50_000;
const TWO: u64 = 20_000;
/// The level of SCHED_FIFO at which the objects are measured on two CPUs.
const LEVEL: u8 = 10;

/// Binds the calling thread to one CPU of those that the program began with.
fn bind(number: usize) {
    static CPUS: LazyLock<Vec<usize>> = LazyLock::new(|| sched::affinity().expect("the CPUs of this thread"));
    let cpus = &*CPUS;
    sched::set_affinity(sched::gettid(), &[cpus[number % cpus.len()]]).expect("a CPU of this thread");
}

/// Executes two bodies at once, each on a CPU of its own, and returns the longer time.
fn on_two_cpus(one: impl FnOnce(&Slot) + Send, other: impl FnOnce(&Slot) + Send) -> Duration {
    /// Waits for the other thread, and times a body.
    fn timed(body: impl FnOnce(&Slot), cpu: usize, ready: &AtomicUsize) -> Duration {
        bind(cpu);
        // Other programs would take one of the CPUs away, which a time of two CPUs does not survive. Without the right
        // to real-time priorities, the times are those of the usual scheduler.
        let _ = sched::set_fifo(sched::gettid(), LEVEL);
        let slot = Slot::claim().expect("a free slot");
        ready.fetch_add(1, Ordering::AcqRel);
        until(|| (ready.load(Ordering::Acquire) == 2).then_some(()));
        let begin = Instant::now();
        body(&slot);
        begin.elapsed()
    }
    let ready = &AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let one = scope.spawn(move || timed(one, 0, ready));
        let other = scope.spawn(move || timed(other, 1, ready));
        one.join().expect("the thread ends").max(other.join().expect("the thread ends"))
    })
}

/// Repeats an operation until it succeeds.
fn until<T>(mut operation: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(value) = operation() {
            return value;
        }
        std::hint::spin_loop();
    }
}

/// One object of a kind: times of a number of operations, alone and on two CPUs.
struct Subject<'a> {
    name: &'static str,
    alone: Box<dyn FnMut(u64) -> Duration + 'a>,
    two: Box<dyn FnMut(u64) -> Duration + 'a>,
}

/// Measures the objects of a kind in turns, so that a disturbance of the machine meets all of them, and writes the
/// medians.
fn compare(kind: &str, mut subjects: Vec<Subject<'_>>) {
    let mut times = vec![[const { Vec::new() }; 2]; subjects.len()];
    let per_operation = |time: Duration, count: u64| time.as_nanos() as f64 / count as f64;
    for _ in 0..ROUNDS {
        for (subject, times) in subjects.iter_mut().zip(&mut times) {
            times[0].push(per_operation((subject.alone)(ALONE), ALONE));
            times[1].push(per_operation((subject.two)(TWO), TWO));
        }
    }
    println!("{kind:<8} {:<24} {:>24} {:>24}", "", "alone, ns (quartiles)", "two CPUs, ns (quartiles)");
    for (subject, mut times) in subjects.iter().zip(times) {
        let [alone, two] = times.each_mut().map(|times| {
            times.sort_by(f64::total_cmp);
            let quartile = |number: usize| times[(times.len() - 1) * number / 4];
            format!("{:.1} ({:.1} to {:.1})", quartile(2), quartile(1), quartile(3))
        });
        println!("{kind:<8} {:<24} {alone:>24} {two:>24}", subject.name);
    }
}

/// Executes a body with a slot, and returns the time of the body.
fn timed_alone(body: impl FnOnce(&Slot)) -> Duration {
    let slot = Slot::claim().expect("a free slot");
    let begin = Instant::now();
    body(&slot);
    begin.elapsed()
}

/// A push and a pop alone, and the way of values from one CPU to the other.
fn queue<'a>(
    name: &'static str,
    push: impl FnMut(&Slot, u64) -> bool + Send + 'a,
    pop: impl FnMut(&Slot) -> Option<u64> + Send + 'a,
) -> Subject<'a> {
    let ends = Rc::new(RefCell::new((push, pop)));
    let again = Rc::clone(&ends);
    Subject {
        name,
        alone: Box::new(move |count| {
            let (push, pop) = &mut *ends.borrow_mut();
            timed_alone(|slot| {
                for _ in 0..count {
                    push(slot, black_box(7));
                    black_box(pop(slot));
                }
            })
        }),
        two: Box::new(move |count| {
            let (push, pop) = &mut *again.borrow_mut();
            on_two_cpus(
                |slot| (0..count).for_each(|value| until(|| push(slot, value).then_some(()))),
                |slot| (0..count).for_each(|value| assert_eq!(until(|| pop(slot)), value)),
            )
        }),
    }
}

fn our_queue<'a>(name: &'static str, ours: &'a (impl Queue<u64> + Sync)) -> Subject<'a> {
    queue(name, |slot, value| ours.push(slot, value).is_ok(), |slot| ours.pop(slot))
}

/// The least that a queue of one producer and one consumer can do if both commit by a compare-and-swap of the cell: the
/// positions are their own, and each cell contains its value.
struct Cells {
    tail: CachePadded<AtomicUsize>,
    head: CachePadded<AtomicUsize>,
    cells: [AtomicU64; CAPACITY],
}

impl Default for Cells {
    fn default() -> Self {
        Self {
            tail: CachePadded::default(),
            head: CachePadded::default(),
            cells: [const { AtomicU64::new(0) }; CAPACITY],
        }
    }
}

impl Cells {
    /// Exchanges the content of the cell at a position, and returns whether it was the expected one.
    fn exchange(&self, position: &AtomicUsize, expected: impl Fn(u64) -> bool, new: u64) -> Option<u64> {
        let at = position.load(Ordering::Relaxed);
        let seen = self.cells[at].load(Ordering::Acquire);
        if !expected(seen) {
            return None;
        }
        let done = self.cells[at].compare_exchange(seen, new, Ordering::AcqRel, Ordering::Acquire);
        position.store(if at + 1 == CAPACITY { 0 } else { at + 1 }, Ordering::Relaxed);
        done.ok()
    }

    fn push(&self, value: u64) -> bool {
        self.exchange(&self.tail, |seen| seen == 0, value + 1).is_some()
    }

    fn pop(&self) -> Option<u64> {
        self.exchange(&self.head, |seen| seen != 0, 0).map(|value| value - 1)
    }
}

fn queues() {
    let lock_free = LockFreeQueue::<u64, CAPACITY, SLOTS>::new();
    let wait_free = WaitFreeQueue::<u64, BLOCKS, SLOTS>::new();
    let locked = LockedQueue::<Ticket, u64, CAPACITY>::new();
    let array = ArrayQueue::new(CAPACITY);
    let cells = &Cells::default();
    let (sender, receiver) = mpsc::sync_channel(CAPACITY);
    compare(
        "queue",
        vec![
            our_queue("LockFreeQueue", &lock_free),
            queue("crossbeam ArrayQueue", |_, value| array.push(value).is_ok(), |_| array.pop()),
            queue("std mpsc", |_, value| sender.try_send(value).is_ok(), move |_| receiver.try_recv().ok()),
            queue("one CAS a cell", |_, value| cells.push(value), |_| cells.pop()),
            our_queue("WaitFreeQueue", &wait_free),
            our_queue("LockedQueue<Ticket>", &locked),
        ],
    );
}

/// A write and a read alone, and reads on one CPU while the other one writes.
fn buffer<'a>(
    name: &'static str,
    write: impl FnMut(&Slot, [u64; WORDS]) + Send + 'a,
    read: impl FnMut(&Slot) -> [u64; WORDS] + Send + 'a,
) -> Subject<'a> {
    let sides = Rc::new(RefCell::new((write, read)));
    let again = Rc::clone(&sides);
    Subject {
        name,
        alone: Box::new(move |count| {
            let (write, read) = &mut *sides.borrow_mut();
            timed_alone(|slot| {
                for _ in 0..count {
                    write(slot, black_box([7; WORDS]));
                    black_box(read(slot));
                }
            })
        }),
        two: Box::new(move |count| {
            let (write, read) = &mut *again.borrow_mut();
            on_two_cpus(
                |slot| (0..count).for_each(|value| write(slot, [value; WORDS])),
                |slot| {
                    for _ in 0..count {
                        let seen = read(slot);
                        assert!(seen.iter().all(|word| *word == seen[0]));
                    }
                },
            )
        }),
    }
}

fn our_buffer<'a>(name: &'static str, ours: &'a (impl Buffer<u64, WORDS> + Sync)) -> Subject<'a> {
    buffer(name, |slot, values| ours.write(slot, values), |slot| ours.read(slot))
}

fn buffers() {
    let lock_free = LockFreeBuffer::<u64, WORDS, SLOTS>::new();
    let wait_free = WaitFreeBuffer::<u64, WORDS, SLOTS>::new();
    let locked = LockedBuffer::<Ticket, u64, WORDS>::new();
    let seqlock = SeqLock::new([0; WORDS]);
    let (mut input, mut output) = triple_buffer::triple_buffer(&[0; WORDS]);
    compare(
        "buffer",
        vec![
            our_buffer("LockFreeBuffer", &lock_free),
            our_buffer("WaitFreeBuffer", &wait_free),
            buffer("seqlock", |_, values| *seqlock.lock_write() = values, |_| seqlock.read()),
            buffer("triple_buffer", move |_, values| input.write(values), move |_| *output.read()),
            our_buffer("LockedBuffer<Ticket>", &locked),
        ],
    );
}

/// An insertion and an extraction alone, and on both CPUs at once, in a heap of the usual number of values.
fn heap<'a>(
    name: &'static str,
    insert: impl Fn(&Slot, u64) + Sync + 'a,
    extract: impl Fn(&Slot) -> Option<u64> + Sync + 'a,
) -> Subject<'a> {
    let scattered = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    let slot = Slot::claim().expect("a free slot");
    (0..USUAL).for_each(|number| insert(&slot, scattered(number)));
    let work = Rc::new(move |slot: &Slot, count: u64| {
        for number in 0..count {
            insert(slot, scattered(number));
            black_box(extract(slot));
        }
    });
    let again = Rc::clone(&work);
    Subject {
        name,
        alone: Box::new(move |count| timed_alone(|slot| work(slot, count))),
        two: Box::new(move |count| {
            let work = &*again;
            on_two_cpus(|slot| work(slot, count), |slot| work(slot, count))
        }),
    }
}

fn our_heap<'a>(name: &'static str, ours: &'a (impl PriorityQueue<u64> + Sync)) -> Subject<'a> {
    heap(name, |slot, value| _ = ours.insert(slot, value), |slot| ours.extract_max(slot))
}

/// The copies of a heap's operations without the operations: a table of 16 words and some lines of 16 words, and the
/// compare-and-swap of a head.
struct Copies {
    head: CachePadded<AtomicU64>,
    from: [AtomicU64; COPIED],
    to: [CachePadded<[AtomicU64; COPIED]>; SLOTS],
}

/// The words of a table and three lines.
const COPIED: usize = 64;

impl Copies {
    fn commit(&self, slot: &Slot, lines: usize) {
        for (to, from) in self.to[slot.index()].iter().zip(&self.from).take(16 + 16 * lines) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        let seen = self.head.load(Ordering::Acquire);
        let _ = self.head.compare_exchange(seen, seen + 1, Ordering::AcqRel, Ordering::Acquire);
    }
}

fn heaps() {
    let copies = &Copies {
        head: CachePadded::new(AtomicU64::new(0)),
        from: [const { AtomicU64::new(0) }; COPIED],
        to: [const { CachePadded::new([const { AtomicU64::new(0) }; COPIED]) }; SLOTS],
    };
    let extracted = |slot: &Slot| {
        copies.commit(slot, 3);
        Some(0)
    };
    let lock_free = LockFreeHeap::<u64, BLOCKS, SLOTS>::new();
    let wait_free = WaitFreeHeap::<u64, BLOCKS, SLOTS>::new();
    let locked = LockedHeap::<Ticket, u64, CAPACITY>::new();
    let theirs = Mutex::new(BinaryHeap::with_capacity(CAPACITY));
    let lock = || theirs.lock().expect("not poisoned");
    compare(
        "heap",
        vec![
            our_heap("LockFreeHeap", &lock_free),
            our_heap("WaitFreeHeap", &wait_free),
            heap("std Mutex<BinaryHeap>", |_, value| lock().push(value), |_| lock().pop()),
            heap("the copies alone", |slot, _| copies.commit(slot, 2), extracted),
            our_heap("LockedHeap<Ticket>", &locked),
        ],
    );
}

fn main() {
    bind(1);
    queues();
    buffers();
    heaps();
}
