//! Lock and unlock without contention, beside std, parking_lot and the C library, on one CPU.

use criterion::{Criterion, criterion_group, criterion_main};
use lockwright::mutex::{Builder, FifoMutex, Mutex, MutexProtocol, Unlock};
use lockwright::section::Lazy;
use std::cell::UnsafeCell;
use std::hint::black_box;

/// A mutex of the C library.
struct Native(UnsafeCell<libc::pthread_mutex_t>);

impl Native {
    fn new(protocol: i32, ceiling: i32, robust: bool) -> Option<Box<Self>> {
        let mutex = Box::new(Self(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER)));
        // SAFETY: the attributes are initialised before they are used, and the mutex is in a box, so it does not move.
        let made = unsafe {
            let mut attributes = std::mem::zeroed();
            libc::pthread_mutexattr_init(&raw mut attributes);
            libc::pthread_mutexattr_setprotocol(&raw mut attributes, protocol);
            if protocol == PROTECT {
                pthread_mutexattr_setprioceiling(&raw mut attributes, ceiling);
            }
            if robust {
                libc::pthread_mutexattr_setrobust(&raw mut attributes, libc::PTHREAD_MUTEX_ROBUST);
            }
            libc::pthread_mutex_init(mutex.0.get(), &raw const attributes)
        };
        (made == 0).then_some(mutex)
    }

    fn turn(&self) {
        // SAFETY: the mutex was initialised when it was made, and this thread locks it before it unlocks it.
        unsafe {
            assert_eq!(libc::pthread_mutex_lock(self.0.get()), 0);
            libc::pthread_mutex_unlock(self.0.get());
        }
    }
}

const NONE: i32 = 0;
const INHERIT: i32 = 1;
const PROTECT: i32 = 2;

unsafe extern "C" {
    fn pthread_mutexattr_setprioceiling(attributes: *mut libc::pthread_mutexattr_t, ceiling: i32) -> i32;
}

fn uncontended(criterion: &mut Criterion) {
    let cpu = bind();
    let mut group = criterion.benchmark_group("mutex");
    let standard = std::sync::Mutex::new(0_u32);
    group.bench_function("std", |bencher| bencher.iter(|| *black_box(&standard).lock().expect("not poisoned") += 1));
    let parking = parking_lot::Mutex::new(0_u32);
    group.bench_function("parking_lot", |bencher| bencher.iter(|| *black_box(&parking).lock() += 1));
    for (name, protocol, ceiling, robust) in [
        ("glibc plain", NONE, 0, false),
        ("glibc inherit", INHERIT, 0, false),
        ("glibc robust", NONE, 0, true),
        ("glibc inherit robust", INHERIT, 0, true),
        ("glibc protect", PROTECT, 50, false),
    ] {
        let Some(native) = Native::new(protocol, ceiling, robust) else { continue };
        if protocol == PROTECT && !become_fifo(10) {
            continue;
        }
        group.bench_function(name, |bencher| bencher.iter(|| black_box(&native).turn()));
    }
    let mut ours = |name: &str, mutex: Mutex<u32>| {
        group.bench_function(name, |bencher| bencher.iter(|| *black_box(&mutex).lock().expect("is free") += 1));
    };
    let of = |protocol| Mutex::builder().protocol(protocol).unlock(Unlock::Auto);
    let can_rise = become_fifo(10);
    if can_rise {
        ours("lockwright protect, eager", of(MutexProtocol::Protect(50)).build(0));
        let managed = Lazy::manage(cpu).expect("this CPU");
        ours("lockwright protect, lazy", of(MutexProtocol::Protect(50)).build(0));
        drop(managed);
        become_ordinary();
    }
    ours("lockwright plain", of(MutexProtocol::None).build(0));
    ours("lockwright inherit", of(MutexProtocol::Inherit).build(0));
    ours("lockwright robust", robust(of(MutexProtocol::None)).build(0));
    ours("lockwright inherit robust", robust(of(MutexProtocol::Inherit)).build(0));
    lockwright::statistics::count_mutexes();
    for (name, protocol) in [("plain", MutexProtocol::None), ("inherit", MutexProtocol::Inherit)] {
        ours(&format!("lockwright {name}, counted"), of(protocol).counted(true).build(0));
    }
    let fifo = FifoMutex::<u32>::new(0);
    group.bench_function("lockwright fifo", |bencher| bencher.iter(|| *black_box(&fifo).lock().expect("is free") += 1));
    group.finish();
}

fn robust(builder: Builder) -> Builder {
    // SAFETY: each guard is dropped in the function that made it, so a held mutex does not move.
    unsafe { builder.robust(true) }
}

/// Binds the thread to the last CPU that it may use. Returns the number of that CPU.
fn bind() -> usize {
    // SAFETY: all zeros is an empty set; the sets are valid for the calls.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of_val(&set), &raw mut set);
        let cpu = (0..libc::CPU_SETSIZE as usize).rev().find(|&cpu| libc::CPU_ISSET(cpu, &set)).unwrap_or(0);
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut one);
        libc::sched_setaffinity(0, size_of_val(&one), &raw const one);
        cpu
    }
}

/// Puts the calling thread under SCHED_FIFO. Returns whether that is permitted.
fn become_fifo(level: i32) -> bool {
    let param = libc::sched_param { sched_priority: level };
    // SAFETY: `param` is valid for reading.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const param) == 0 }
}

fn become_ordinary() {
    let param = libc::sched_param { sched_priority: 0 };
    // SAFETY: `param` is valid for reading.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const param) };
}

criterion_group!(benches, uncontended);
criterion_main!(benches);
