//! The objects beside those of other crates and of the standard library, in one run: alone, and on two CPUs at once.
//!
//! A time of two CPUs is that of one operation of a thread while the other thread executes as many.

use criterion::{Criterion, criterion_group, criterion_main};
use crossbeam_queue::ArrayQueue;
use lockwright_locks::{Slot, Ticket};
use lockwright_objects::{
    Buffer, LockFreeBuffer, LockFreeHeap, LockFreeQueue, LockedBuffer, LockedHeap, LockedQueue, PriorityQueue, Queue,
    WaitFreeBuffer, WaitFreeHeap, WaitFreeQueue,
};
use lockwright_sys::sched;
use seqlock::SeqLock;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, mpsc};
use std::time::{Duration, Instant};

const SLOTS: usize = 16;
const WORDS: usize = 10;
const CAPACITY: usize = 1022;
const BLOCKS: usize = 64;
/// The values in a heap while it is measured.
const USUAL: u64 = 500;

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

/// Measures a push and a pop alone, and the way of values from one CPU to the other.
fn queue(
    criterion: &mut Criterion,
    name: &str,
    mut push: impl FnMut(&Slot, u64) -> bool + Send,
    mut pop: impl FnMut(&Slot) -> Option<u64> + Send,
) {
    criterion.bench_function(&format!("queue/alone/{name}"), |bencher| {
        let slot = Slot::claim().expect("a free slot");
        bencher.iter(|| {
            push(&slot, black_box(7));
            black_box(pop(&slot))
        });
    });
    criterion.bench_function(&format!("queue/two CPUs/{name}"), |bencher| {
        bencher.iter_custom(|count| {
            on_two_cpus(
                |slot| (0..count).for_each(|value| until(|| push(slot, value).then_some(()))),
                |slot| (0..count).for_each(|value| assert_eq!(until(|| pop(slot)), value)),
            )
        });
    });
}

fn our_queue(criterion: &mut Criterion, name: &str, ours: impl Queue<u64> + Sync) {
    queue(criterion, name, |slot, value| ours.push(slot, value).is_ok(), |slot| ours.pop(slot));
}

fn queues(criterion: &mut Criterion) {
    bind(1);
    our_queue(criterion, "lock-free", LockFreeQueue::<u64, CAPACITY, SLOTS>::new());
    our_queue(criterion, "wait-free", WaitFreeQueue::<u64, BLOCKS, SLOTS>::new());
    our_queue(criterion, "ticket lock", LockedQueue::<Ticket, u64, CAPACITY>::new());
    let array = ArrayQueue::new(CAPACITY);
    queue(criterion, "crossbeam ArrayQueue", |_, value| array.push(value).is_ok(), |_| array.pop());
    let (sender, receiver) = mpsc::sync_channel(CAPACITY);
    queue(criterion, "std mpsc", |_, value| sender.try_send(value).is_ok(), move |_| receiver.try_recv().ok());
}

/// Measures a write and a read alone, and reads on one CPU while the other one writes.
fn buffer(
    criterion: &mut Criterion,
    name: &str,
    mut write: impl FnMut(&Slot, [u64; WORDS]) + Send,
    mut read: impl FnMut(&Slot) -> [u64; WORDS] + Send,
) {
    criterion.bench_function(&format!("buffer/alone/{name}"), |bencher| {
        let slot = Slot::claim().expect("a free slot");
        bencher.iter(|| {
            write(&slot, black_box([7; WORDS]));
            black_box(read(&slot))
        });
    });
    criterion.bench_function(&format!("buffer/two CPUs/{name}"), |bencher| {
        bencher.iter_custom(|count| {
            on_two_cpus(
                |slot| (0..count).for_each(|value| write(slot, [value; WORDS])),
                |slot| {
                    for _ in 0..count {
                        let seen = read(slot);
                        assert!(seen.iter().all(|word| *word == seen[0]));
                    }
                },
            )
        });
    });
}

fn our_buffer(criterion: &mut Criterion, name: &str, ours: impl Buffer<u64, WORDS> + Sync) {
    buffer(criterion, name, |slot, values| ours.write(slot, values), |slot| ours.read(slot));
}

fn buffers(criterion: &mut Criterion) {
    bind(1);
    our_buffer(criterion, "lock-free", LockFreeBuffer::<u64, WORDS, SLOTS>::new());
    our_buffer(criterion, "wait-free", WaitFreeBuffer::<u64, WORDS, SLOTS>::new());
    our_buffer(criterion, "ticket lock", LockedBuffer::<Ticket, u64, WORDS>::new());
    let seqlock = SeqLock::new([0; WORDS]);
    buffer(criterion, "seqlock", |_, values| *seqlock.lock_write() = values, |_| seqlock.read());
    let (mut input, mut output) = triple_buffer::triple_buffer(&[0; WORDS]);
    buffer(criterion, "triple_buffer", move |_, values| input.write(values), move |_| *output.read());
}

/// Measures an insertion and an extraction alone, and on both CPUs at once.
fn heap(
    criterion: &mut Criterion,
    name: &str,
    insert: impl Fn(&Slot, u64) + Sync,
    extract: impl Fn(&Slot) -> Option<u64> + Sync,
) {
    let scattered = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    let slot = Slot::claim().expect("a free slot");
    (0..USUAL).for_each(|number| insert(&slot, scattered(number)));
    let mut number = USUAL;
    criterion.bench_function(&format!("heap/alone/{name}"), |bencher| {
        bencher.iter(|| {
            number += 1;
            insert(&slot, scattered(number));
            black_box(extract(&slot))
        });
    });
    let work = |slot: &Slot, count: u64| {
        for number in 0..count {
            insert(slot, scattered(number));
            black_box(extract(slot));
        }
    };
    criterion.bench_function(&format!("heap/two CPUs/{name}"), |bencher| {
        bencher.iter_custom(|count| on_two_cpus(|slot| work(slot, count), |slot| work(slot, count)));
    });
}

fn our_heap(criterion: &mut Criterion, name: &str, ours: impl PriorityQueue<u64> + Sync) {
    heap(criterion, name, |slot, value| _ = ours.insert(slot, value), |slot| ours.extract_max(slot));
}

fn heaps(criterion: &mut Criterion) {
    bind(1);
    our_heap(criterion, "lock-free", LockFreeHeap::<u64, BLOCKS, SLOTS>::new());
    our_heap(criterion, "wait-free", WaitFreeHeap::<u64, BLOCKS, SLOTS>::new());
    our_heap(criterion, "ticket lock", LockedHeap::<Ticket, u64, 1023>::new());
    let theirs = Mutex::new(BinaryHeap::with_capacity(1023));
    let lock = || theirs.lock().expect("not poisoned");
    heap(criterion, "std Mutex<BinaryHeap>", |_, value| lock().push(value), |_| lock().pop());
}

criterion_group!(benches, queues, buffers, heaps);
criterion_main!(benches);
