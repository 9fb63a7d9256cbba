//! The linear programs of P-EDF that `check` does not use: preemptable spinning and lock-free objects. No simulated job
//! of a random system that they accept is late, and a program without one of its terms accepts a late one.

use crate::edf_resources_hold::sharing;
use crate::ticks::{self, Op, Rules, Spec, State};
use fastrand::Rng;
use lockwright_analysis::Mutant;
use lockwright_analysis::linear::{Edf, p_edf, p_edf_mutant};
use lockwright_model::format::write_system;
use lockwright_model::{Scheduler, System};
use lockwright_study::{Shape, generate};

const RUNS: usize = 5;
/// The length of a schedule, in longest periods.
const HORIZON: u64 = 5;

/// The pending job of the processor with the earliest deadline, of those that `counts` selects.
fn earliest(state: &State, cpu: usize, counts: impl Fn(usize) -> bool) -> Option<usize> {
    let all = state.pending(cpu).into_iter().filter(|&x| counts(x));
    all.min_by_key(|&x| (state.job(x).deadline, x))
}

fn cpus(state: &State) -> usize {
    state.tasks.iter().map(|task| task.cluster + 1).max().unwrap_or(0)
}

/// Spinning in FIFO order until a job with an earlier deadline arrives: then the request is withdrawn, and issued again
/// when the job goes on. A section is not preempted. Resources of one processor are under SRP.
struct Preemptable {
    is_local: Vec<bool>,
    /// The shortest deadline of the users.
    ceilings: Vec<u64>,
    owners: Vec<Option<usize>>,
    /// Those that spin, in the order of their requests.
    spinning: Vec<usize>,
}

impl Preemptable {
    fn new(tasks: &[Spec], resources: usize) -> Self {
        let users = |q: usize| tasks.iter().filter(move |task| task.uses(q));
        let is_local = |q: usize| {
            let first = users(q).next().map(|task| task.cluster);
            users(q).all(|task| Some(task.cluster) == first)
        };
        Self {
            is_local: (0..resources).map(is_local).collect(),
            ceilings: (0..resources).map(|q| users(q).map(|task| task.deadline).min().unwrap_or(u64::MAX)).collect(),
            owners: vec![None; resources],
            spinning: Vec::new(),
        }
    }

    /// The job that executes or spins on the processor.
    fn top(&self, state: &State, cpu: usize) -> Option<usize> {
        let in_section = |x: usize| state.job(x).holds.is_some_and(|q| !self.is_local[q]);
        if let Some(owner) = earliest(state, cpu, in_section) {
            return Some(owner);
        }
        let first = earliest(state, cpu, |_| true)?;
        let passes = |other: usize| {
            let ceiling = state.job(other).holds.map_or(u64::MAX, |q| self.ceilings[q]);
            other == first || state.tasks[first].deadline < ceiling
        };
        if state.job(first).has_started || state.pending(cpu).into_iter().all(passes) {
            return Some(first);
        }
        earliest(state, cpu, |x| state.job(x).has_started)
    }
}

impl Rules for Preemptable {
    fn choose(&mut self, state: &mut State) -> Vec<usize> {
        let chosen: Vec<usize> = (0..cpus(state)).filter_map(|cpu| self.top(state, cpu)).collect();
        let spins = |x: &usize| state.job(*x).waits.is_some();
        self.spinning.retain(|x| chosen.contains(x) && state.jobs[*x].as_ref().is_some_and(|job| job.waits.is_some()));
        for &x in chosen.iter().filter(|x| spins(x)) {
            if !self.spinning.contains(&x) {
                self.spinning.push(x);
            }
        }
        for q in 0..state.resources {
            if self.owners[q].is_none()
                && let Some(place) = self.spinning.iter().position(|&x| state.job(x).waits == Some(q))
            {
                let next = self.spinning.remove(place);
                self.owners[q] = Some(next);
                state.grant(next);
            }
        }
        chosen
    }

    fn request(&mut self, state: &mut State, task: usize, q: usize) {
        if self.is_local[q] {
            assert_eq!(self.owners[q], None, "SRP grants every request");
        }
        if self.owners[q].is_none() {
            self.owners[q] = Some(task);
            state.grant(task);
        } else {
            self.spinning.push(task);
        }
    }

    fn release(&mut self, state: &mut State, _: usize, q: usize) -> bool {
        self.owners[q] = None;
        if let Some(place) = self.spinning.iter().position(|&x| state.job(x).waits == Some(q)) {
            let next = self.spinning.remove(place);
            self.owners[q] = Some(next);
            state.grant(next);
        }
        true
    }
}

/// Commit loops that are not preempted. An attempt fails if another job committed since it began.
struct LockFree {
    commits: Vec<u64>,
    /// The commits that the loop of each task has seen.
    seen: Vec<u64>,
}

impl Rules for LockFree {
    fn choose(&mut self, state: &mut State) -> Vec<usize> {
        let top =
            |cpu| earliest(state, cpu, |x| state.job(x).holds.is_some()).or_else(|| earliest(state, cpu, |_| true));
        (0..cpus(state)).filter_map(top).collect()
    }

    fn request(&mut self, state: &mut State, task: usize, q: usize) {
        self.seen[task] = self.commits[q];
        state.grant(task);
    }

    fn release(&mut self, _: &mut State, task: usize, q: usize) -> bool {
        let succeeds = self.seen[task] == self.commits[q];
        self.commits[q] += u64::from(succeeds);
        self.seen[task] = self.commits[q];
        succeeds
    }
}

fn drawn(seed: u64) -> (System, Rng) {
    let mut random = Rng::with_seed(seed);
    let shape = Shape {
        cpus: (2, 3),
        tasks: (3, 7),
        resources: (1, 2),
        nested: 0,
        jitter: 0,
        own_ceiling: 0,
        utilization: (20, 80),
        section: 10,
        ..Shape::small()
    };
    (generate(&mut random, &shape).under(Scheduler::PEdf), random)
}

/// Whether a job is late in one of several schedules.
fn is_late(system: &System, edf: Edf, random: &mut Rng) -> bool {
    let (tasks, resources) = (ticks::specs(system), system.resource_ids().count());
    assert!(tasks.iter().all(|task| task.ops.iter().all(|op| *op != Op::Run(0))));
    (0..RUNS).any(|run| {
        let arrivals = ticks::arrivals(&tasks, run, HORIZON, random);
        let mut rules: Box<dyn Rules> = match edf {
            Edf::LockFree => Box::new(LockFree { commits: vec![0; resources], seen: vec![0; tasks.len()] }),
            _ => Box::new(Preemptable::new(&tasks, resources)),
        };
        let seen = ticks::run(&tasks, resources, &mut *rules, &arrivals, run % 2 == 1, random.fork());
        seen.is_none_or(|seen| seen.iter().any(|seen| seen.misses > 0))
    })
}

fn hold(edf: Edf) {
    let (mut proved, mut shared, mut late, mut seed) = (0, 0, 0, 0);
    // BOUND: a fair share of the sets is proved.
    while proved < crate::attacked::sets(10_000) {
        let (system, mut random) = drawn(seed);
        let is_proved = p_edf(&sharing(&system, |_| true), edf).is_ok();
        if is_proved {
            proved += 1;
            shared += u64::from(system.resource_ids().any(|q| system.is_global(q)));
            assert!(!is_late(&system, edf, &mut random), "{edf:?}, seed {seed}\n{}", write_system(&system));
        } else if late < 100 {
            late += u64::from(is_late(&system, edf, &mut random));
        }
        seed += 1;
    }
    println!("{edf:?}: {proved} of {seed} proved, {shared} with resources of several processors; {late} others late");
    assert!(shared > proved / 8 && late > 50, "{shared}, {late}");
}

fn refute(edf: Edf, mutants: &[Mutant]) {
    for &mutant in mutants {
        let refuted = (0..100_000).find(|&seed| {
            let (system, mut random) = drawn(seed);
            let rows = sharing(&system, |_| true);
            p_edf_mutant(&rows, edf, mutant).is_ok() && p_edf(&rows, edf).is_err() && is_late(&system, edf, &mut random)
        });
        println!("{edf:?} without {mutant:?}: refuted at set {refuted:?}");
        assert!(refuted.is_some(), "{mutant:?} was omitted, and no schedule shows it");
    }
}

#[test]
fn preemptable_spinning_holds() {
    hold(Edf::SpinFifoPreemptable);
}

#[test]
fn lock_free_objects_hold() {
    hold(Edf::LockFree);
}

/// The requests for which jobs spin, and the section at the start, on resources of several processors and of one.
#[test]
fn preemptable_spinning_without_a_term_is_refuted() {
    refute(Edf::SpinFifoPreemptable, &[Mutant::Waiting, Mutant::Boosted, Mutant::LocalIcpp]);
}

/// The repetitions, and the loop at the start.
#[test]
fn lock_free_objects_without_a_term_are_refuted() {
    refute(Edf::LockFree, &[Mutant::Again, Mutant::Boosted]);
}

/// A schedule that random ones hardly find: `h` preempts `i` just before the first section of `x` ends, and `i` then
/// waits for the second one as well.
#[test]
fn requests_that_are_not_issued_again_are_refuted() {
    let text = r#"
        [platform]
        cpus = 2
        scheduler = "p-edf"
        [[resource]]
        name = "r"
        [[task]]
        name = "i"
        cpu = 0
        period = "1 us"
        deadline = "19 ns"
        body = [{ lock = "r" }, { run = "1 ns" }, { unlock = "r" }]
        [[task]]
        name = "h"
        cpu = 0
        period = "1 us"
        deadline = "6 ns"
        wcet = "5 ns"
        [[task]]
        name = "x"
        cpu = 1
        period = "1 us"
        body = [
            { lock = "r" }, { run = "10 ns" }, { unlock = "r" },
            { lock = "r" }, { run = "10 ns" }, { unlock = "r" },
        ]
    "#;
    let system = lockwright_model::format::parse_system(text).expect("a valid system");
    let (rows, edf) = (sharing(&system, |_| true), Edf::SpinFifoPreemptable);
    assert!(p_edf(&rows, edf).is_err() && p_edf_mutant(&rows, edf, Mutant::Again).is_ok());
    let tasks = ticks::specs(&system);
    let mut rules = Preemptable::new(&tasks, 1);
    let arrivals = [vec![1], vec![9], vec![0]];
    let seen = ticks::run(&tasks, 1, &mut rules, &arrivals, false, Rng::with_seed(1)).expect("it ends");
    assert_eq!((seen[0].response, seen[0].misses), (20, 1));
}
