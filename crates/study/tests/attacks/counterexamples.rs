//! Systems that once broke a bound, and mutations of them.

use fastrand::Rng;
use lockwright_analysis::analyse;
use lockwright_model::format::{parse_system, write_system};
use lockwright_model::{Instant, Priority, Protocol, ResourceId, System, TaskId};
use lockwright_protocol::{Action, Machine, MpcpVs, Refusal};
use lockwright_sim::{Config, Simulation};
use lockwright_study::{attack, hold, mutate};
use std::time::{Duration, Instant as Clock};

/// The first lines of each file say what it shows.
const ALL: [&str; 8] = [
    include_str!("counterexamples/nested-plain-mutex.toml"),
    include_str!("counterexamples/nested-plain-mutex-equals.toml"),
    include_str!("counterexamples/icpp-nested-after-suspension.toml"),
    include_str!("counterexamples/icpp-nested-after-global.toml"),
    include_str!("counterexamples/icpp-nested-after-inheritance.toml"),
    include_str!("counterexamples/icpp-nested-after-home.toml"),
    include_str!("counterexamples/plain-mutex-equal-boosted.toml"),
    include_str!("counterexamples/plain-mutex-equal-inherited.toml"),
];

fn systems() -> Vec<System> {
    ALL.iter().map(|text| parse_system(text).expect("a counterexample is valid")).collect()
}

#[test]
fn systems_that_once_broke_a_bound_have_none_now() {
    for system in systems() {
        let protocol = system.protocol_or_default();
        let analysis = analyse(&system, protocol);
        let mut simulation = Simulation::new(&system, &Config::default().with_protocol(protocol), ());
        simulation.run_until(Instant::from_ns(990));
        let seen = simulation.observations();
        assert_eq!(hold(&analysis, &seen, &simulation.ages()), None, "{}", write_system(&system));
        let top = system.task_ids().find(|&id| system.task(id).name == "top").expect("each has a task `top`");
        // The schedule that broke the bound: sections of tens of nanoseconds delay `top` by hundreds.
        assert!(seen[top.index()].blocking.is_some_and(|blocking| blocking.as_ns() > 250), "{seen:?}");
        assert_eq!(analysis.task(top).response, None, "{}", write_system(&system));
        assert!(analysis.task(top).unbounded.is_some());
    }
}

#[test]
fn bounds_of_mutated_counterexamples_hold() {
    let systems = systems();
    let (mut bounded, mut seed) = (0, 0);
    while bounded < crate::attacked::sets(10_000) {
        seed += 1;
        let mut random = Rng::with_seed(seed);
        let Some(mutant) = mutate(&mut random, &systems[seed as usize % systems.len()]) else { continue };
        let protocol = Protocol::ALL[random.usize(0..Protocol::ALL.len())];
        let analysis = analyse(&mutant, protocol);
        if analysis.tasks.iter().all(|task| task.response.is_none()) {
            continue;
        }
        bounded += 1;
        if let Some((excess, config)) = attack(&mutant, &analysis, protocol, &mut random, 4, 10) {
            panic!("{protocol}, seed {seed}: {excess:?} under {config:?}\n{analysis:#?}\n{}", write_system(&mutant));
        }
    }
    println!("{bounded} systems with bounds of {seed} mutants");
}

/// One task fills its processor except for a nanosecond per second, and a thousand others execute in the remainder.
#[test]
fn a_slowly_converging_analysis_ends() {
    let mut text = String::from("[[task]]\nname = \"full\"\nperiod = \"1 s\"\nwcet = \"999.999999 ms\"\n");
    for index in 0..1_000 {
        text += &format!("[[task]]\nname = \"t{index}\"\nperiod = \"1000000 s\"\nwcet = \"90 ns\"\n");
    }
    let system = parse_system(&text).expect("a valid system");
    let start = Clock::now();
    let analysis = analyse(&system, Protocol::Icpp);
    assert_eq!(analysis.tasks[0].response.map(|response| response.as_ns()), Some(999_999_999));
    // This is the budget of one analysis, which holds even on a slow machine.
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

/// A mutant of `mpcp_vs`: a request that was held back is made again at
/// once when the request before it ends, and not when its job executes.
struct AsksAtOnce(MpcpVs);

impl AsksAtOnce {
    fn pass(
        &mut self,
        act: &mut dyn FnMut(Action),
        event: impl FnOnce(&mut MpcpVs, &mut dyn FnMut(Action)) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let mut actions = Vec::new();
        event(&mut self.0, &mut |action| actions.push(action))?;
        let granted =
            |task| actions.iter().any(|action| matches!(action, Action::Grant { task: to, .. } if *to == task));
        for &action in &actions {
            match action {
                Action::Wake { task } if !granted(task) => {
                    let mut again = Vec::new();
                    self.0.woken(task, &mut |action| again.push(action))?;
                    again.iter().for_each(|&action| act(action));
                    if again.iter().any(|action| matches!(action, Action::Grant { .. })) {
                        act(Action::Wake { task });
                    }
                }
                action => act(action),
            }
        }
        Ok(())
    }
}

impl Machine for AsksAtOnce {
    fn request(&mut self, task: TaskId, on: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.pass(act, |machine, act| machine.request(task, on, act))
    }

    fn release(&mut self, task: TaskId, on: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.pass(act, |machine, act| machine.release(task, on, act))
    }

    fn woken(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.pass(act, |machine, act| machine.woken(task, act))
    }

    fn cancel(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.pass(act, |machine, act| machine.cancel(task, act))
    }

    fn set_base(&mut self, task: TaskId, base: Priority, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.pass(act, |machine, act| machine.set_base(task, base, act))
    }
}

/// docs/mpcp_vs.md: a request that was held back is made again when its job executes, at base priority. Under another
/// reading, the bound is broken.
#[test]
fn held_back_requests_are_made_when_their_jobs_execute() {
    const MS: u64 = 1_000_000;
    let system = parse_system(include_str!("counterexamples/mpcp_vs-asks-when-woken.toml")).expect("a valid system");
    let analysis = analyse(&system, Protocol::MpcpVs);
    assert_eq!(analysis.tasks[0].response.map(|bound| bound.as_ns()), Some(21 * MS), "{analysis:#?}");
    let response = |mut simulation: Simulation| {
        simulation.run_until(Instant::from_ns(99 * MS));
        let excess = hold(&analysis, &simulation.observations(), &simulation.ages());
        (simulation.observations()[0].response.map(|response| response.as_ns()), excess)
    };
    let config = Config::default();
    assert_eq!(response(Simulation::new(&system, &config, ())), (Some(19 * MS), None));
    let tasks: Vec<_> = system.tasks().iter().map(|task| (task.priority, task.cpu)).collect();
    let ceilings: Vec<_> = system.resource_ids().map(|resource| system.mpcp_ceiling(resource)).collect();
    let mutant = AsksAtOnce(MpcpVs::new(&tasks, &ceilings));
    let (broken, excess) = response(Simulation::with_machine(&system, &config, Box::new(mutant), ()));
    assert_eq!(broken, Some(24 * MS));
    assert_eq!(excess.map(|excess| excess.task), Some(TaskId(0)), "the bound holds under our rule only");
}

/// With one ceiling for all processors, which a ceiling fixed by hand is, a section that a remote task waits for is
/// preempted by one that less urgent remote tasks need.
#[test]
fn one_ceiling_delays_what_remote_tasks_need_more() {
    const MS: u64 = 1_000_000;
    let text = include_str!("counterexamples/mpcp-one-ceiling.toml");
    let one_ceiling = text.replace("name = \"r\"\n", "name = \"r\"\nceiling = 5\n");
    for (text, response) in [(text, 6), (one_ceiling.as_str(), 16)] {
        let system = parse_system(text).expect("a valid system");
        let mut simulation = Simulation::new(&system, &Config::default(), ());
        simulation.run_until(Instant::from_ns(99 * MS));
        let seen = simulation.observations();
        let urgent = system.task_ids().find(|&id| system.task(id).name == "urgent").expect("a task");
        assert_eq!(seen[urgent.index()].response.map(|seen| seen.as_ns()), Some(response * MS), "{seen:?}");
        assert_eq!(hold(&analyse(&system, Protocol::Mpcp), &seen, &simulation.ages()), None);
    }
}
