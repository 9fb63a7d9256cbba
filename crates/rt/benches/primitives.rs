//! Semaphores, barriers and one-time initialisation, beside the C library's, std's and parking_lot's, on one CPU; and
//! jobs of a task set, counted, traced and neither.

use criterion::{Bencher, Criterion, criterion_group, criterion_main};
use lockwright::barrier::Barrier;
use lockwright::once::Once;
use lockwright::semaphore::Semaphore;
use lockwright::tasks::{Protocol, TaskSet};
use std::cell::UnsafeCell;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// An object of the C library.
struct Native<T>(Box<UnsafeCell<T>>);

// SAFETY: the C library's functions synchronise the threads that use these objects, and nothing else accesses them.
unsafe impl<T> Sync for Native<T> {}

impl<T> Native<T> {
    /// # Safety
    /// All zeros are a `T`.
    unsafe fn zeroed() -> Self {
        // SAFETY: zeros are a `T`, which is the contract of this function.
        Self(Box::new(UnsafeCell::new(unsafe { std::mem::zeroed() })))
    }

    fn at(&self) -> *mut T {
        self.0.get()
    }
}

impl Native<libc::sem_t> {
    fn semaphore(units: u32) -> Self {
        // SAFETY: zeros are a `sem_t` that is initialised next, and the box keeps it where it is.
        unsafe {
            let made = Self::zeroed();
            assert_eq!(libc::sem_init(made.at(), 0, units), 0);
            made
        }
    }

    fn acquire(&self) {
        // SAFETY: `semaphore` initialised it, and the box keeps it where it is.
        while unsafe { libc::sem_wait(self.at()) } != 0 {}
    }

    fn release(&self) {
        // SAFETY: `semaphore` initialised it, and the box keeps it where it is.
        unsafe { libc::sem_post(self.at()) };
    }
}

impl Native<libc::pthread_barrier_t> {
    fn barrier(count: u32) -> Self {
        // SAFETY: zeros are a `pthread_barrier_t` that is initialised next, and the box keeps it where it is.
        unsafe {
            let made = Self::zeroed();
            assert_eq!(libc::pthread_barrier_init(made.at(), std::ptr::null(), count), 0);
            made
        }
    }

    fn wait(&self) {
        // SAFETY: `barrier` initialised it, and the box keeps it where it is.
        unsafe { libc::pthread_barrier_wait(self.at()) };
    }
}

unsafe extern "C" {
    fn pthread_once(once: *mut i32, routine: extern "C" fn()) -> i32;
}

extern "C" fn nothing() {}

/// Times two threads that each execute their part so often.
fn both(bencher: &mut Bencher<'_>, one: impl Fn(), other: impl Fn() + Sync) {
    bencher.iter_custom(|count| {
        std::thread::scope(|scope| {
            scope.spawn(|| (0..count).for_each(|_| other()));
            let start = Instant::now();
            (0..count).for_each(|_| one());
            start.elapsed()
        })
    });
}

fn semaphores(criterion: &mut Criterion) {
    bind();
    let mut group = criterion.benchmark_group("semaphore");
    let (native, ours) = (Native::semaphore(1), Semaphore::new(1));
    group.bench_function("glibc", |bencher| {
        bencher.iter(|| {
            black_box(&native).acquire();
            black_box(&native).release();
        });
    });
    group.bench_function("lockwright", |bencher| {
        bencher.iter(|| {
            black_box(&ours).acquire().and_then(|()| black_box(&ours).release()).expect("a unit is free");
        });
    });
    let [there, back] = [(); 2].map(|()| Native::semaphore(0));
    group.bench_function("glibc, there and back", |bencher| {
        let one = || {
            there.release();
            back.acquire();
        };
        both(bencher, one, || {
            there.acquire();
            back.release();
        });
    });
    let [there, back] = [(); 2].map(|()| Semaphore::new(0));
    group.bench_function("lockwright, there and back", |bencher| {
        let one = || there.release().and_then(|()| back.acquire()).expect("the other thread releases");
        both(bencher, one, || there.acquire().and_then(|()| back.release()).expect("the other thread releases"));
    });
    group.finish();
}

fn barriers(criterion: &mut Criterion) {
    bind();
    let mut group = criterion.benchmark_group("barrier");
    let native = Native::barrier(2);
    group.bench_function("glibc", |bencher| both(bencher, || native.wait(), || native.wait()));
    let standard = std::sync::Barrier::new(2);
    group.bench_function("std", |bencher| both(bencher, || _ = standard.wait(), || _ = standard.wait()));
    let ours = Barrier::new(2);
    let wait = || _ = ours.wait().expect("the kernel lets threads wait");
    group.bench_function("lockwright", |bencher| both(bencher, wait, wait));
    group.finish();
}

fn onces(criterion: &mut Criterion) {
    bind();
    let mut group = criterion.benchmark_group("once");
    // SAFETY: zero is a `pthread_once_t` whose routine has not been called.
    let native = unsafe { Native::<i32>::zeroed() };
    let call = || {
        // SAFETY: `native` is a `pthread_once_t` that outlives the call, and `nothing` is a function of the right type.
        unsafe { pthread_once(black_box(native.at()), nothing) }
    };
    group.bench_function("glibc", |bencher| bencher.iter(call));
    let standard = std::sync::Once::new();
    group.bench_function("std", |bencher| bencher.iter(|| black_box(&standard).call_once(|| ())));
    let parking = parking_lot::Once::new();
    group.bench_function("parking_lot", |bencher| bencher.iter(|| black_box(&parking).call_once(|| ())));
    let ours = Once::new();
    group.bench_function("lockwright", |bencher| bencher.iter(|| black_box(&ours).call(|| ())));
    // The first call.
    group.bench_function("std, first", |bencher| bencher.iter(|| black_box(std::sync::Once::new()).call_once(|| ())));
    group.bench_function("parking_lot, first", |bencher| {
        bencher.iter(|| black_box(parking_lot::Once::new()).call_once(|| ()));
    });
    group.bench_function("lockwright, first", |bencher| bencher.iter(|| black_box(Once::new()).call(|| ())));
    group.finish();
}

/// A job with one section on a free resource. Each measurement has a task set of its own, whose trace has room for all
/// events.
fn jobs(criterion: &mut Criterion) {
    bind();
    let mut group = criterion.benchmark_group("job");
    for (name, is_counted, is_traced) in
        [("plain", false, false), ("counted", true, false), ("traced", false, true), ("counted, traced", true, true)]
    {
        group.bench_function(name, |bencher| bencher.iter_custom(|jobs| execute(jobs, is_counted, is_traced)));
    }
    group.finish();
}

/// The time that this number of jobs takes.
fn execute(jobs: u64, is_counted: bool, is_traced: bool) -> Duration {
    let mut builder = TaskSet::builder(Protocol::Pip);
    let bus = builder.resource("bus");
    let task = builder.task("control", 0, 20, &[bus]);
    let set = builder.build().expect("a task set");
    if is_counted {
        set.measure();
    }
    if is_traced {
        set.trace(6 * jobs as usize).expect("there is memory");
    }
    // Without permission there is nothing to measure.
    let Ok(me) = set.join(task) else { return Duration::from_nanos(jobs) };
    let begin = Instant::now();
    for _ in 0..jobs {
        let job = me.begin().expect("no job has begun");
        drop(black_box(job.lock(bus).expect("the task is a user")));
    }
    let time = begin.elapsed();
    assert!(set.traced().is_none_or(|trace| trace.dropped == 0));
    time
}

/// Binds the thread, and those that it starts, to the last CPU that it may use.
fn bind() {
    // SAFETY: all zeros is an empty set; the sets are valid for the calls.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of_val(&set), &raw mut set);
        let cpu = (0..libc::CPU_SETSIZE as usize).rev().find(|&cpu| libc::CPU_ISSET(cpu, &set)).unwrap_or(0);
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut one);
        libc::sched_setaffinity(0, size_of_val(&one), &raw const one);
    }
}

fn short() -> Criterion {
    Criterion::default().warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2))
}

criterion_group! {
    name = benches;
    config = short();
    targets = semaphores, barriers, onces, jobs
}
criterion_main!(benches);
