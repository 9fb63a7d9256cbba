//! Lock and unlock without contention, beside public crates with the same algorithms, in one run.

use criterion::{Criterion, criterion_group, criterion_main};
use lockwright_locks::{
    Algorithm, Anderson, Batched, Bpl, Clh, Guard, JohnsonHarathi, Markatos, Mcs, PhaseFair, Priority, RwSpinLock,
    Slot, SpinLock, Tas, TaskFair, Ticket,
};
use std::hint::black_box;

const SLOTS: usize = 16;

fn uncontended(criterion: &mut Criterion) {
    let slot = Slot::claim().expect("a free slot");
    let mut group = criterion.benchmark_group("uncontended");

    macro_rules! ours {
        ($name:literal, $algorithm:ty) => {{
            let lock = SpinLock::<$algorithm, u64>::new(0);
            group.bench_function($name, |bencher| {
                bencher.iter(|| {
                    let request = <$algorithm as Algorithm>::request(black_box(&slot), Priority::new(1));
                    let mut guard: Guard<'_, $algorithm, u64> = black_box(&lock).lock_with(request);
                    *guard = guard.wrapping_add(1);
                });
            });
        }};
    }
    macro_rules! reads {
        ($name:literal, $algorithm:ty) => {{
            let lock = RwSpinLock::<$algorithm, u64>::new(0);
            group.bench_function($name, |bencher| bencher.iter(|| *black_box(&lock).read()));
        }};
    }
    macro_rules! theirs {
        ($name:literal, $lock:ty) => {{
            let lock = <$lock>::new(0_u64);
            group.bench_function($name, |bencher| {
                bencher.iter(|| {
                    let mut guard = black_box(&lock).lock();
                    *guard = guard.wrapping_add(1);
                });
            });
        }};
    }

    ours!("tas", Tas);
    theirs!("tas of spin", spin::mutex::SpinMutex<u64>);
    ours!("ticket", Ticket);
    theirs!("ticket of spin", spin::mutex::TicketMutex<u64>);
    ours!("mcs", Mcs<SLOTS>);
    let lock = mcslock::raw::spins::Mutex::new(0_u64);
    let mut node = mcslock::raw::MutexNode::new();
    group.bench_function("mcs of mcslock", |bencher| {
        bencher.iter(|| {
            black_box(&lock).lock_with_then(black_box(&mut node), |value| *value = value.wrapping_add(1));
        });
    });
    ours!("clh", Clh<SLOTS>);
    ours!("anderson", Anderson<SLOTS>);
    ours!("markatos", Markatos<SLOTS>);
    ours!("johnson-harathi", JohnsonHarathi<SLOTS>);
    ours!("bpl", Bpl<SLOTS>);
    ours!("batched", Batched<SLOTS>);
    ours!("phase-fair", PhaseFair);
    reads!("phase-fair, a reader", PhaseFair);
    ours!("task-fair", TaskFair);
    reads!("task-fair, a reader", TaskFair);
    group.finish();
}

criterion_group!(benches, uncontended);
criterion_main!(benches);
