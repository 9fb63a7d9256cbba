//! Sections without contention, beside the mutex of the standard library and that of the C library with priority
//! inheritance.

use criterion::{Criterion, criterion_group, criterion_main};
use lockwright_ics::{Commit, Ics, Locked, Var, Word};
use std::cell::UnsafeCell;
use std::hint::black_box;
use std::sync::Mutex;

const FIRST: Var<u64> = Var::new(0);
const MANY: usize = 10;

/// Writes each word by its number, as a program that has a name for each variable.
macro_rules! write_each {
    ($section:ident: $($word:literal)*) => {
        $($section.write(Var::<u64>::new($word), $word)?;)*
    };
}

fn sections<C: Commit>(criterion: &mut Criterion, name: &str, commit: fn() -> C) {
    let mut group = criterion.benchmark_group("uncontended");
    let one = Ics::<_, 4, 1, C>::with([Word::new(0)], commit());
    let mut writer = one.writer().expect("a free writer");
    group.bench_function(format!("{name}, empty"), |bencher| {
        bencher.iter(|| black_box(&mut writer).update(|_| Ok(())));
    });
    group.bench_function(format!("{name}, a word"), |bencher| {
        bencher.iter(|| {
            black_box(&mut writer).update(|section| {
                let value = section.read(FIRST)?;
                section.write(FIRST, value + 1)
            })
        });
    });
    let many = Ics::<_, 4, MANY, C>::with([const { Word::new(0) }; MANY], commit());
    let mut writer = many.writer().expect("a free writer");
    group.bench_function(format!("{name}, ten words"), |bencher| {
        bencher.iter(|| {
            black_box(&mut writer).update(|section| {
                write_each!(section: 0 1 2 3 4 5 6 7 8 9);
                Ok(())
            })
        });
    });
    group.finish();
}

/// The mutex of the C library with priority inheritance.
struct Inherits(Box<UnsafeCell<libc::pthread_mutex_t>>);

impl Inherits {
    fn new() -> Self {
        let mutex = Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
        // SAFETY: the attributes are initialised before they are used; all pointers are valid.
        unsafe {
            let mut attributes = std::mem::zeroed();
            libc::pthread_mutexattr_init(&raw mut attributes);
            libc::pthread_mutexattr_setprotocol(&raw mut attributes, libc::PTHREAD_PRIO_INHERIT);
            libc::pthread_mutex_init(mutex.get(), &raw const attributes);
        }
        Self(mutex)
    }

    fn with(&self, work: impl FnOnce()) {
        // SAFETY: the mutex is initialised, and this thread unlocks it after it locked it.
        unsafe {
            libc::pthread_mutex_lock(self.0.get());
            work();
            libc::pthread_mutex_unlock(self.0.get());
        }
    }
}

fn uncontended(criterion: &mut Criterion) {
    sections(criterion, "locked", || Locked);
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: a single thread enters the objects.
        sections(criterion, "uniprocessor", || unsafe { lockwright_ics::Uniprocessor::new() });
    }
    let mut group = criterion.benchmark_group("uncontended");
    let mutex = Mutex::new(0_u64);
    group.bench_function("mutex of std, a word", |bencher| {
        bencher.iter(|| {
            if let Ok(mut value) = black_box(&mutex).lock() {
                *value = value.wrapping_add(1);
            }
        });
    });
    let mutex = Inherits::new();
    let mut value = 0_u64;
    group.bench_function("PI mutex of the C library, a word", |bencher| {
        bencher.iter(|| black_box(&mutex).with(|| value = black_box(value).wrapping_add(1)));
    });
    group.finish();
}

/// Binds the thread to the first processor that it may use.
fn bind() {
    // SAFETY: zeros are an empty set; the pointers are valid, and every processor number is within the set.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set);
        let first = (0..libc::CPU_SETSIZE as usize).find(|&cpu| libc::CPU_ISSET(cpu, &set)).unwrap_or(0);
        libc::CPU_ZERO(&mut set);
        libc::CPU_SET(first, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
    }
}

fn bound(criterion: &mut Criterion) {
    bind();
    uncontended(criterion);
}

criterion_group!(benches, bound);
criterion_main!(benches);
