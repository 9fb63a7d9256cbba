//! The linear programs of P-EDF that `check` does not use: preemptable spinning and lock-free objects. No simulated job
//! of a random system that they accept is late, and a program without one of its terms accepts a late one.

use crate::edf_resources_hold::sharing;
use crate::ticks::{self, Op, Rules, Seen, Spec, State};
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
    /// Whether it spins.
    fn is_blocked(&self, state: &State, task: usize, executing: &[usize]) -> bool {
        executing.contains(&task) && state.job(task).waits.is_some()
    }
}

/// Commit loops that are not preempted. An attempt fails if another job committed since it began.
struct LockFree {
    commits: Vec<u64>,
    /// The commits that the loop of each task has seen.
    seen: Vec<u64>,
    has_failed: bool,
}

impl LockFree {
    fn new(tasks: &[Spec], resources: usize) -> Self {
        Self { commits: vec![0; resources], seen: vec![0; tasks.len()], has_failed: false }
    }
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
        self.has_failed |= !succeeds;
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

/// The observations in several schedules of one system.
#[derive(Clone, Copy, Default, Debug)]
struct Shown {
    /// Whether a job is late.
    is_late: bool,
    /// Whether the jobs of a schedule do not end. The processors are then overloaded.
    is_endless: bool,
    /// Whether a job spins for one of another processor, or executes a loop again.
    has_waited: bool,
}

/// One schedule. Returns `None` beside whether a job has waited if the jobs do not end.
fn schedule(
    tasks: &[Spec],
    resources: usize,
    edf: Edf,
    arrivals: &[Vec<u64>],
    late: bool,
    random: Rng,
) -> (Option<Vec<Seen>>, bool) {
    if edf == Edf::LockFree {
        let mut rules = LockFree::new(tasks, resources);
        let seen = ticks::run(tasks, resources, &mut rules, arrivals, late, random);
        return (seen, rules.has_failed);
    }
    let mut rules = Preemptable::new(tasks, resources);
    let seen = ticks::run(tasks, resources, &mut rules, arrivals, late, random);
    let has_waited = seen.iter().flatten().any(|seen| seen.blocked > 0);
    (seen, has_waited)
}

/// Executes several schedules, up to the first one with a late job.
fn show(system: &System, edf: Edf, random: &mut Rng) -> Shown {
    let (tasks, resources) = (ticks::specs(system), system.resource_ids().count());
    assert!(tasks.iter().all(|task| task.ops.iter().all(|op| *op != Op::Run(0))));
    let mut shown = Shown::default();
    for run in 0..RUNS {
        let arrivals = ticks::arrivals(&tasks, run, HORIZON, random);
        let (seen, has_waited) = schedule(&tasks, resources, edf, &arrivals, run % 2 == 1, random.fork());
        shown.has_waited |= has_waited;
        shown.is_endless |= seen.is_none();
        shown.is_late = seen.is_some_and(|seen| seen.iter().any(|seen| seen.misses > 0));
        if shown.is_late {
            break;
        }
    }
    shown
}

fn hold(edf: Edf) {
    let (mut proved, mut waited, mut late, mut endless, mut seed) = (0, 0, 0, 0, 0);
    // BOUND: a fair share of the sets is proved.
    while proved < crate::attacked::sets(10_000) {
        let (system, mut random) = drawn(seed);
        let is_proved = p_edf(&sharing(&system, |_| true), edf).is_ok();
        if is_proved {
            let shown = show(&system, edf, &mut random);
            proved += 1;
            waited += u64::from(shown.has_waited);
            let is_in_time = !shown.is_late && !shown.is_endless;
            assert!(is_in_time, "{edf:?}, seed {seed}: {shown:?}\n{}", write_system(&system));
        } else if late < 100 {
            let shown = show(&system, edf, &mut random);
            late += u64::from(shown.is_late);
            endless += u64::from(shown.is_endless && !shown.is_late);
        }
        seed += 1;
    }
    println!("{edf:?}: {proved} of {seed} proved, jobs wait in {waited}; {late} others late, {endless} only endless");
    assert!(waited > proved / 8 && late > 50, "{waited}, {late}");
}

fn refute(edf: Edf, mutants: &[Mutant]) {
    for &mutant in mutants {
        let refuted = (0..100_000).find(|&seed| {
            let (system, mut random) = drawn(seed);
            let rows = sharing(&system, |_| true);
            let is_broken = p_edf_mutant(&rows, edf, mutant).is_ok() && p_edf(&rows, edf).is_err();
            is_broken && show(&system, edf, &mut random).is_late
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
    let seen = executed(&system, edf, &[vec![1], vec![9], vec![0]]);
    assert_eq!((seen.response, seen.misses), (20, 1));
}

/// Executes the first task of a system with one resource, whose jobs arrive at these times.
fn executed(system: &System, edf: Edf, arrivals: &[Vec<u64>]) -> Seen {
    let seen = schedule(&ticks::specs(system), 1, edf, arrivals, false, Rng::with_seed(1)).0;
    seen.expect("it ends")[0]
}

/// The first loop of `i` fails when the first job of `x` commits at 70, and the second one when the second job of `x`
/// commits at 110: both within 57 ns, although the period of `x` is 100 ns.
const LOOPS: &str = r#"
    [platform]
    cpus = 2
    scheduler = "p-edf"
    [[resource]]
    name = "r"
    [[task]]
    name = "i"
    cpu = 0
    period = "1 us"
    deadline = "57 ns"
    body = [
        { run = "4 ns" }, { lock = "r" }, { run = "7 ns" }, { unlock = "r" },
        { run = "26 ns" }, { lock = "r" }, { run = "7 ns" }, { unlock = "r" },
    ]
    [[task]]
    name = "y"
    cpu = 1
    period = "1 us"
    deadline = "92 ns"
    wcet = "60 ns"
    [[task]]
    name = "x"
    cpu = 1
    period = "100 ns"
    body = [{ lock = "r" }, { run = "10 ns" }, { unlock = "r" }]
"#;

/// Jobs that arrived before the interval, in schedules that random ones hardly find.
#[test]
fn programs_without_carry_in_are_refuted() {
    for (edf, text, arrival, response) in [
        (Edf::SpinFifoPreemptable, include_str!("counterexamples/edf-carry-in.toml"), 80, 31),
        (Edf::LockFree, LOOPS, 60, 58),
    ] {
        let system = lockwright_model::format::parse_system(text).expect("a valid system");
        let rows = sharing(&system, |_| true);
        assert!(p_edf(&rows, edf).is_err() && p_edf_mutant(&rows, edf, Mutant::RemoteCarryIn).is_ok(), "{edf:?}");
        let seen = executed(&system, edf, &[vec![arrival], vec![0], vec![0, 100]]);
        assert_eq!((seen.response, seen.misses), (response, 1), "{edf:?}");
    }
}
