//! Readers share the lock, exclude writers, and enter in the order of the specification.

use super::exclusion::Count;
use super::order::Probe;
use super::run::{Arc, mpsc, thread, unexplored};
use crate::{RwSpinLock, Shareable};
use std::collections::VecDeque;
use std::vec::Vec;

/// `readers` and `writers` threads, of which this is the first writer, lock `rounds` times each.
///
/// Every third time they try first. Each reader sees the last count, and the same one as long as it reads.
pub(crate) fn shares<A: Shareable + Send + Sync + 'static>(readers: usize, writers: usize, rounds: usize) {
    all_share::<A>(readers, writers, rounds, |index, round| (index + round) % 3 == 2);
}

/// The same, where the threads try first each time.
pub(crate) fn shares_tries<A: Shareable + Send + Sync + 'static>(readers: usize, writers: usize, rounds: usize) {
    all_share::<A>(readers, writers, rounds, |_, _| true);
}

fn all_share<A: Shareable + Send + Sync + 'static>(
    readers: usize,
    writers: usize,
    rounds: usize,
    tries: fn(usize, usize) -> bool,
) {
    let lock = Arc::new(RwSpinLock::<A, Count>::new(Count::new()));
    let reads = move |lock: &RwSpinLock<A, Count>, index: usize| {
        let mut last = 0;
        for round in 0..rounds {
            let tried = if tries(index, round) { lock.try_read() } else { None };
            let seen = tried.unwrap_or_else(|| lock.read()).read();
            assert!(seen >= last, "the count is off");
            last = seen;
        }
    };
    let writes = move |lock: &RwSpinLock<A, Count>, index: usize| {
        for round in 0..rounds {
            let tried = if tries(index, round) { lock.try_write() } else { None };
            tried.unwrap_or_else(|| lock.write()).add_one();
        }
    };
    let spawned = |index: usize| {
        let lock = Arc::clone(&lock);
        thread::spawn(move || if index < writers { writes(&lock, index) } else { reads(&lock, index) })
    };
    let others: Vec<_> = (1..writers + readers).map(spawned).collect();
    writes(&lock, 0);
    // A reader that sees a writer inside has panicked with a message.
    others.into_iter().for_each(|other| other.join().unwrap_or_else(|said| std::panic::resume_unwind(said)));
    assert_eq!(lock.read().read(), writers * rounds, "the count is off");
}

/// Two readers wait for each other while both hold the lock.
pub(crate) fn readers_meet<A: Shareable + Send + Sync + 'static>() {
    let lock = Arc::new(RwSpinLock::<A, ()>::new(()));
    let ((here, there), (back, comes)) = (mpsc::channel(), mpsc::channel());
    let other = {
        let lock = Arc::clone(&lock);
        thread::spawn(move || {
            let _guard = lock.read();
            here.send(()).expect("the first reader receives");
            comes.recv().expect("the first reader sends");
        })
    };
    let guard = lock.read();
    back.send(()).expect("the other reader receives");
    there.recv().expect("the other reader sends");
    drop(guard);
    other.join().expect("the thread ends");
    drop(lock.write());
}

/// The order in which readers and writers enter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SharedOrder {
    /// FIFO; readers with no writer between them enter together.
    Fifo,
    /// All waiting readers, then one writer, and so on. Writers are FIFO.
    Phases,
}

/// A request of a script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wants {
    Read,
    Write,
}

use Wants::{Read, Write};

/// The requests of the next phase, taken from those that wait. `after` is the phase that ends.
fn next_phase(order: SharedOrder, waiting: &mut VecDeque<(usize, Wants)>, after: Wants) -> Vec<usize> {
    let reads = |waiting: &VecDeque<(usize, Wants)>| waiting.iter().filter(|(_, wants)| *wants == Read).count();
    let phase = match order {
        SharedOrder::Phases if reads(waiting) == 0 || after == Read && reads(waiting) < waiting.len() => Write,
        SharedOrder::Phases => Read,
        SharedOrder::Fifo => waiting.front().map_or(Read, |&(_, wants)| wants),
    };
    let count = match (order, phase) {
        (_, Write) => 1,
        (SharedOrder::Phases, Read) => reads(waiting),
        (SharedOrder::Fifo, Read) => waiting.iter().take_while(|(_, wants)| *wants == Read).count(),
    };
    let (entering, left): (Vec<_>, Vec<_>) = {
        let mut room = count;
        waiting.drain(..).partition(|&(_, wants)| {
            let enters = wants == phase && room > 0;
            room -= usize::from(enters);
            enters
        })
    };
    waiting.extend(left);
    entering.into_iter().map(|(index, _)| index).collect()
}

/// The view of a lock that a script needs.
pub(crate) trait SharedProbe: Probe + Shareable {
    /// The number of requests that have been made.
    fn requests(&self) -> usize;

    /// Whether the next writer, if there is one, has its place before readers that come.
    fn has_settled(&self) -> bool {
        true
    }
}

/// A writer holds the lock. Each of `arrivals` has the requests that arrive while the phase lasts.
pub(crate) fn phases<A: SharedProbe + Send + Sync + 'static>(order: SharedOrder, arrivals: &[&[Wants]]) {
    let lock = Arc::new(RwSpinLock::<A, ()>::new(()));
    let (inside, enters) = mpsc::channel();
    let mut leaves = Vec::new();
    let mut threads = Vec::new();
    let mut waiting = VecDeque::new();
    let mut wants = Vec::new();
    let mut held = Some(lock.write());
    let mut holders: Vec<usize> = Vec::new();
    let mut arrivals = arrivals.iter();
    loop {
        unexplored(|| {
            for &request in arrivals.next().copied().unwrap_or_default() {
                let index = threads.len();
                let (here, inside) = (Arc::clone(&lock), inside.clone());
                let (leave, told) = mpsc::channel();
                leaves.push(leave);
                wants.push(request);
                let requests = lock.algorithm().requests();
                threads.push(thread::spawn(move || {
                    let guards = match request {
                        Read => (Some(here.read()), None),
                        Write => (None, Some(here.write())),
                    };
                    inside.send(index).expect("the script receives");
                    told.recv().expect("the script sends");
                    drop(guards);
                }));
                while lock.algorithm().requests() == requests {
                    thread::yield_now();
                }
                waiting.push_back((index, request));
            }
        });
        let ends = holders.first().map_or(Write, |&holder| wants[holder]);
        drop(held.take());
        for holder in holders.drain(..) {
            leaves[holder].send(()).expect("the holder receives");
        }
        if waiting.is_empty() {
            break;
        }
        let expected = next_phase(order, &mut waiting, ends);
        for _ in &expected {
            let enters = enters.recv().expect("a thread enters");
            assert!(expected.contains(&enters), "{enters} is not next of {waiting:?}: {expected:?} are");
            holders.push(enters);
        }
        unexplored(|| {
            while !SharedProbe::has_settled(lock.algorithm()) {
                thread::yield_now();
            }
        });
    }
    threads.into_iter().for_each(|thread| thread.join().expect("the thread ends"));
}

/// A writer and a reader wait for a writer, the writer first: the smallest script that distinguishes the orders.
pub(crate) fn writer_then_reader<A: SharedProbe + Send + Sync + 'static>(order: SharedOrder) {
    phases::<A>(order, &[&[Write, Read]]);
}

/// Readers and writers that come and go.
pub(crate) fn busy_phases<A: SharedProbe + Send + Sync + 'static>(order: SharedOrder) {
    phases::<A>(order, &[&[Read, Write, Read, Write], &[Read, Write], &[], &[Read, Read], &[Write]]);
    phases::<A>(order, &[&[Write, Write, Read], &[Read], &[Write, Read, Read]]);
}
