//! The costs of sections without contention.

use crate::harness::{Batches, Crew, Readings, Timed, in_turns, measuring, one_cpu};
use crate::pace::{LEVEL, Pace};
use lockwright::ics::{Commit, Ics, Kind, Single, Strategy, Var, Word};
use lockwright_engine::{Control, RunError};
use lockwright_sys::clock;
use lockwright_sys::native::{NativeAttributes, NativeMutex, NativeSemaphore};
use lockwright_sys::sched;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The cost of one operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SectionCost {
    /// The name of the operation.
    pub name: &'static str,
    /// How its sections commit; `None` for operations without sections.
    pub strategy: Option<Kind>,
    /// Its times, in nanoseconds.
    pub ns: Batches,
}

/// The costs of sections without contention.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SectionCosts {
    /// How the threads of one processor commit on this machine.
    pub strategy: Kind,
    /// Whether the readings were taken under SCHED_FIFO. Otherwise other threads may have disturbed them, and context
    /// switches are not measured.
    pub realtime: bool,
    /// The cost of each operation.
    pub costs: Vec<SectionCost>,
}

/// The number of sections in each reading, as in the paper.
const SECTIONS: u64 = 10_000;
/// The resolution of the clock.
const CLOCK_STEP_NS: u64 = 1;
const MANY: usize = 10;
const LEFT: Var<u64> = Var::new(0);

/// An operation: its name, and how its sections commit.
type Work = Timed<'static, (&'static str, Option<Kind>)>;

fn work(name: &'static str, strategy: Option<Kind>, mut one: impl FnMut() + 'static) -> Work {
    let batch = move || {
        let start_ns = clock::now_ns();
        for _ in 0..SECTIONS {
            one();
        }
        clock::now_ns() - start_ns
    };
    Timed { what: (name, strategy), count: SECTIONS, batch: Box::new(batch) }
}

fn sections<C: Commit + 'static>(all: &mut Vec<Work>, kind: Kind, strategy: impl Fn() -> C) -> Result<(), RunError> {
    let single = Single::<u64, C>::with(0, strategy());
    all.push(work("one word alone", Some(kind), move || {
        let _ = black_box(&single).update(|value| Ok((value.wrapping_add(1), ())));
    }));
    // These objects are leaked: a process measures at most a few times.
    let one: &'static Ics<[Word; 1], 2, 1, C> = Box::leak(Box::new(Ics::with([Word::new(0)], strategy())));
    let mut slot = one.writer().ok_or(RunError::SetUp)?;
    all.push(work("empty section", Some(kind), move || _ = black_box(&mut slot).update(|_| Ok(()))));
    let mut slot = one.writer().ok_or(RunError::SetUp)?;
    all.push(work("section of a word", Some(kind), move || {
        let _ = black_box(&mut slot).update(|section| {
            let value = section.read(LEFT)?;
            section.write(LEFT, value.wrapping_add(1))
        });
    }));
    let many: &'static Ics<[Word; MANY], 2, MANY, C> =
        Box::leak(Box::new(Ics::with([const { Word::new(0) }; MANY], strategy())));
    let mut slot = many.writer().ok_or(RunError::SetUp)?;
    all.push(work("section of ten words by name", Some(kind), move || {
        // The words are written one by one, as in a program that has a name for each variable.
        macro_rules! write_each {
            ($section:ident: $($word:literal)*) => {
                $($section.write(Var::<u64>::new($word), $word)?;)*
            };
        }
        let _ = black_box(&mut slot).update(|section| {
            write_each!(section: 0 1 2 3 4 5 6 7 8 9);
            Ok(())
        });
    }));
    let whole: &'static Ics<[Word; MANY], 2, MANY, C> =
        Box::leak(Box::new(Ics::with([const { Word::new(0) }; MANY], strategy())));
    let mut slot = whole.writer().ok_or(RunError::SetUp)?;
    all.push(work("section of a variable of ten words", Some(kind), move || {
        let _ = black_box(&mut slot).update(|section| section.write(Var::new(0), black_box([7_u64; MANY])));
    }));
    Ok(())
}

/// Takes `readings` readings of 10,000 sections each, on one processor, and as many of the C library's mutexes and
/// semaphore. It also measures context switches between two threads, with and without a section in each turn. Without
/// permission for real-time priorities, switches are left out.
///
/// # Errors
/// Fails if threads cannot be started.
pub fn section_costs(readings: usize, control: &Control) -> Result<SectionCosts, RunError> {
    let (cpu, own) = (one_cpu()?, control.clone());
    measuring(cpu, control, move |realtime| costs(readings.max(1), cpu, realtime, &own))
}

fn costs(readings: usize, cpu: usize, realtime: bool, control: &Control) -> Result<SectionCosts, RunError> {
    let chosen = Strategy::for_cpu(cpu as u32).kind();
    let mut all: Vec<Work> = Vec::new();
    for (name, inherits) in [("glibc mutex", false), ("glibc PI mutex", true)] {
        if let Some(mutex) = NativeMutex::new(NativeAttributes { inherits, ..NativeAttributes::default() }) {
            all.push(work(name, None, move || {
                black_box(&mutex).lock();
                mutex.unlock();
            }));
        }
    }
    if let Some(semaphore) = NativeSemaphore::new() {
        all.push(work("glibc semaphore", None, move || {
            black_box(&semaphore).wait();
            semaphore.post();
        }));
    }
    sections(&mut all, Kind::Locked, || lockwright_ics::Locked)?;
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: this thread is bound to its processor, and no other thread has a reference to the objects.
        #[allow(unsafe_code)]
        let plain = || unsafe { lockwright_ics::Uniprocessor::new() };
        sections(&mut all, Kind::Uniprocessor, plain)?;
    }
    if chosen == Kind::Rseq {
        sections(&mut all, chosen, || Strategy::for_cpu(cpu as u32))?;
    }
    let seen = in_turns(all, CLOCK_STEP_NS, readings, 50_000_000, control);
    let mut costs: Vec<SectionCost> =
        seen.into_iter().map(|((name, strategy), ns)| SectionCost { name, strategy, ns }).collect();
    if realtime {
        for (name, strategy) in [("switch", None), ("switch, section of a word", Some(chosen))] {
            let total = Readings::new(switches(cpu, readings.min(20), strategy.is_some(), control)?);
            let ns = total.map(|total| Batches { count: SECTIONS, total, step: CLOCK_STEP_NS });
            costs.extend(ns.map(|ns| SectionCost { name, strategy, ns }));
        }
    }
    Ok(SectionCosts { strategy: chosen, realtime, costs })
}

/// Measures 10,000 switches between two threads of one level, which yield in turn.
fn switches(cpu: usize, readings: usize, with_sections: bool, control: &Control) -> Result<Vec<u64>, RunError> {
    let ics = Arc::new(Ics::<[Word; 1], 2, 1, Strategy>::with([Word::new(0)], Strategy::for_cpu(cpu as u32)));
    let over = Arc::new(AtomicBool::new(false));
    let mut partner = Crew::new();
    let (shared, ends) = (Arc::clone(&ics), Arc::clone(&over));
    partner.add(LEVEL, &[cpu], move || -> Result<(), RunError> {
        let mut slot = shared.writer().ok_or(RunError::SetUp)?;
        // BOUND: until the caller sets `over`.
        while !ends.load(Ordering::Relaxed) {
            turn(&mut slot, with_sections);
        }
        Ok(())
    })?;
    let mut slot = ics.writer().ok_or(RunError::SetUp)?;
    let pace = Pace::new(100_000_000);
    let mut taken = Vec::with_capacity(readings);
    partner.start(control)?;
    for _ in 0..readings {
        if control.is_stopped() {
            break;
        }
        pace.rest();
        let start_ns = clock::now_ns();
        for _ in 0..SECTIONS / 2 {
            turn(&mut slot, with_sections);
        }
        taken.push(clock::now_ns() - start_ns);
    }
    over.store(true, Ordering::Relaxed);
    partner.join()?.into_iter().collect::<Result<(), _>>()?;
    Ok(taken)
}

fn turn(slot: &mut lockwright::ics::Writer<'_, [Word; 1], 2, 1, Strategy>, with_section: bool) {
    if with_section {
        let _ = slot.update(|section| {
            let value = section.read(LEFT)?;
            section.write(LEFT, value.wrapping_add(1))
        });
    }
    sched::yield_now();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::require_realtime;

    #[test]
    fn costs_are_measured() {
        let Some(_machine) = require_realtime() else { return };
        let all = section_costs(10, &Control::new()).expect("permission was checked");
        assert!(all.realtime && all.costs.len() >= 9, "{all:?}");
        for cost in &all.costs {
            assert!(cost.ns.each(0.0) > 0.0 && (cost.ns.total.count(), cost.ns.count) == (10, 10_000), "{cost:?}");
        }
        assert!(
            all.costs.iter().any(|cost| cost.strategy == Some(all.strategy)),
            "the chosen strategy is measured: {all:?}"
        );
    }
}
