//! The linear programs of spinlocks that `check` does not use: unordered ones, and those whose spinning is preemptable.
//! No simulated response of a random system exceeds their bounds, however the lock chooses among those that wait.

use fastrand::Rng;
use lockwright_analysis::linear::{Locking, responses_of_program};
use lockwright_analysis::{Demand, Sharer, Sharing};
use lockwright_model::format::write_system;
use lockwright_model::{CpuId, Instant, Priority, Protocol, ResourceId, System, TaskId};
use lockwright_protocol::{Action, Machine, Refusal};
use lockwright_sim::{Config, Execution, Offsets, Simulation};
use lockwright_study::{Shape, generate};

const RUNS: u64 = 4;
/// The length of a schedule, in longest periods.
const HORIZON: u64 = 6;

/// The next owner of a spinlock.
#[derive(Clone)]
enum Service {
    /// The first that asked, or that asked again after a preemption.
    Fifo,
    /// Any; this task last, if possible.
    Against(TaskId, Rng),
}

/// Spinlocks whose holders are not preempted. A preemptable job that is preempted while it spins asks again when it
/// resumes.
struct SpinLocks {
    /// The base priority and the processor of each task.
    tasks: Vec<(Priority, CpuId)>,
    is_preemptable: bool,
    service: Service,
    owners: Vec<Option<TaskId>>,
    /// The requests that wait, in the order in which they were issued or issued again.
    waiting: Vec<(TaskId, ResourceId)>,
    /// Whether the task has a job.
    is_pending: Vec<bool>,
    epochs: Vec<u32>,
}

impl SpinLocks {
    fn new(system: &System, is_preemptable: bool, service: Service) -> Self {
        let tasks: Vec<_> = system.tasks().iter().map(|task| (task.priority, task.cpu)).collect();
        Self {
            is_preemptable,
            service,
            owners: vec![None; system.resource_ids().count()],
            waiting: Vec::new(),
            is_pending: vec![false; tasks.len()],
            epochs: vec![0; tasks.len()],
            tasks,
        }
    }

    fn set_priority(&mut self, task: TaskId, priority: Priority, act: &mut dyn FnMut(Action)) {
        let epoch = &mut self.epochs[task.index()];
        *epoch += 1;
        act(Action::SetPriority { task, priority, epoch: *epoch });
    }

    /// Whether the task executes, if it spins: no more urgent job of its processor is pending.
    fn executes(&self, task: TaskId) -> bool {
        let (priority, cpu) = self.tasks[task.index()];
        let is_above =
            |(&(other, on), &is_pending): (&(Priority, CpuId), &bool)| is_pending && on == cpu && other > priority;
        !self.is_preemptable || !self.tasks.iter().zip(&self.is_pending).any(is_above)
    }

    fn grant(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) {
        self.owners[resource.index()] = Some(task);
        if self.is_preemptable {
            self.set_priority(task, Priority::NON_PREEMPTIVE, act);
        }
        act(Action::Grant { task, resource });
    }

    /// Removes the request that is served next.
    fn next(&mut self, resource: ResourceId) -> Option<TaskId> {
        let asks = |&place: &usize| self.waiting[place].1 == resource && self.executes(self.waiting[place].0);
        let places: Vec<usize> = (0..self.waiting.len()).filter(asks).collect();
        let place = match &mut self.service {
            Service::Fifo => *places.first()?,
            Service::Against(victim, random) => {
                let others = places.iter().filter(|&&place| self.waiting[place].0 != *victim);
                let others: Vec<usize> = others.copied().collect();
                *random.choice(if others.is_empty() { &places } else { &others })?
            }
        };
        Some(self.waiting.remove(place).0)
    }
}

impl Machine for SpinLocks {
    fn counts_jobs(&self) -> bool {
        true
    }

    fn arrive(&mut self, task: TaskId, _: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.is_pending[task.index()] = true;
        Ok(())
    }

    fn finish(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        let was_there: Vec<bool> = self.waiting.iter().map(|&(waiter, _)| self.executes(waiter)).collect();
        self.is_pending[task.index()] = false;
        let resumed = self.waiting.iter().zip(was_there).find(|(waiting, was)| !was && self.executes(waiting.0));
        if let Some((&(waiter, resource), _)) = resumed {
            self.waiting.retain(|&(other, _)| other != waiter);
            if self.owners[resource.index()].is_none() {
                self.grant(waiter, resource, act);
            } else {
                self.waiting.push((waiter, resource));
            }
        }
        Ok(())
    }

    fn request(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        if !self.is_preemptable {
            self.set_priority(task, Priority::NON_PREEMPTIVE, act);
        }
        if self.owners[resource.index()].is_none() {
            self.grant(task, resource, act);
        } else {
            self.waiting.push((task, resource));
            act(Action::Spin { task, resource });
        }
        Ok(())
    }

    fn release(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.owners[resource.index()] = None;
        if let Some(next) = self.next(resource) {
            self.grant(next, resource, act);
        }
        self.set_priority(task, self.tasks[task.index()].0, act);
        Ok(())
    }

    fn cancel(&mut self, _: TaskId, _: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        unreachable!("no task gives up")
    }

    fn set_base(&mut self, _: TaskId, _: Priority, _: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        unreachable!("no priority changes")
    }
}

/// The rows of a system.
pub fn sharing(system: &System) -> Sharing {
    let sharer = |id| {
        let task = system.task(id);
        let demand = |request: &lockwright_model::Request| Demand {
            resource: request.resource.0,
            count: request.count,
            length: request.length.as_ns(),
        };
        Sharer {
            cost: task.wcet.as_ns(),
            period: task.period.as_ns(),
            deadline: task.deadline.as_ns(),
            priority: task.priority.level(),
            cluster: task.cpu.0,
            requests: system.requests(id).iter().map(demand).collect(),
            ..Sharer::default()
        }
    };
    Sharing { tasks: system.task_ids().map(sharer).collect() }
}

/// Draws a system whose resources are all shared across processors.
fn draw(random: &mut Rng) -> Option<System> {
    let shape = Shape {
        cpus: (2, 4),
        tasks: (3, 9),
        resources: (1, 2),
        nested: 0,
        jitter: 0,
        shuffled: 0,
        own_ceiling: 0,
        utilization: (10, 50),
        ..Shape::small()
    };
    let system = generate(random, &shape);
    let is_fit = system.resource_ids().all(|id| system.is_global(id) || system.users(id).is_empty());
    is_fit.then_some(system)
}

/// Returns a task whose simulated response exceeds its bound.
fn exceeds(system: &System, bounds: &[u64], is_preemptable: bool, is_fifo: bool, random: &mut Rng) -> Option<String> {
    let longest = system.tasks().iter().map(|task| task.period.as_ns()).max()?;
    for run in 0..RUNS {
        let victim = TaskId(random.u16(0..system.tasks().len() as u16));
        let service = if is_fifo { Service::Fifo } else { Service::Against(victim, random.fork()) };
        let config = Config {
            offsets: if run == 0 { Offsets::Synchronous } else { Offsets::Random },
            execution: Execution::Worst,
            seed: random.u64(..),
            // One machine rules all resources.
            protocol: Some(Protocol::FmlpShort),
            ..Config::default()
        };
        let locks = SpinLocks::new(system, is_preemptable, service);
        let mut simulation = Simulation::with_machine(system, &config, Box::new(locks), ());
        simulation.run_until(Instant::from_ns(longest * HORIZON));
        let seen = simulation.observations();
        let over = |(task, bound): &(usize, u64)| seen[*task].response.is_some_and(|seen| seen.as_ns() > *bound);
        if let Some((task, bound)) = bounds.iter().copied().enumerate().find(over) {
            return Some(format!("task {task}: {:?}, and the bound is {bound}, {config:?}", seen[task].response));
        }
    }
    None
}

fn hold(locking: Locking<'_>) {
    let is_preemptable = matches!(locking, Locking::SpinFifoPreemptable | Locking::SpinUnorderedPreemptable);
    let is_fifo = matches!(locking, Locking::SpinFifo | Locking::SpinFifoPreemptable);
    let (mut bounded, mut caught, mut seed) = (0, 0, 0_u64);
    // BOUND: at least every tenth system is covered.
    while bounded < crate::attacked::sets(20_000) {
        seed += 1;
        let mut random = Rng::with_seed(seed);
        let Some(system) = draw(&mut random) else { continue };
        let Ok(found) = responses_of_program(&sharing(&system), locking) else { continue };
        bounded += 1;
        if let Some(excess) = exceeds(&system, &found.responses, is_preemptable, is_fifo, &mut random) {
            panic!("{locking:?}, seed {seed}: {excess}\n{:?}\n{}", found.responses, write_system(&system));
        }
        // The mutant: bounds lower by a tenth are exceeded.
        if caught < 10 {
            let lower: Vec<u64> = found.responses.iter().map(|bound| bound * 9 / 10).collect();
            caught += u64::from(exceeds(&system, &lower, is_preemptable, is_fifo, &mut random).is_some());
        }
    }
    println!("{locking:?}: {bounded} of {seed} systems have bounds");
    assert_eq!(caught, 10);
}

#[test]
fn bounds_of_fifo_locks_hold() {
    hold(Locking::SpinFifo);
}

#[test]
fn bounds_of_preemptable_fifo_locks_hold() {
    hold(Locking::SpinFifoPreemptable);
}

#[test]
fn bounds_of_unordered_locks_hold() {
    hold(Locking::SpinUnordered);
}

#[test]
fn bounds_of_preemptable_unordered_locks_hold() {
    hold(Locking::SpinUnorderedPreemptable);
}

/// The first seed whose system exceeds the bounds of another lock.
fn caught(locking: Locking<'_>, is_preemptable: bool, is_fifo: bool) -> Option<u64> {
    (0..200_000).find(|&seed| {
        let mut random = Rng::with_seed(seed);
        let Some(system) = draw(&mut random) else { return false };
        let found = responses_of_program(&sharing(&system), locking);
        found.is_ok_and(|found| exceeds(&system, &found.responses, is_preemptable, is_fifo, &mut random).is_some())
    })
}

/// The mutants: the bounds of FIFO locks lack the later requests that an unordered lock serves first, and those of
/// locks whose spinning is preemptable lack the section of a less urgent job that spins at the arrival.
#[test]
fn bounds_without_a_term_do_not_hold() {
    for (locking, is_preemptable, is_fifo) in [
        (Locking::SpinFifo, false, false),
        (Locking::SpinFifoPreemptable, true, false),
        (Locking::SpinFifoPreemptable, false, true),
        (Locking::SpinUnorderedPreemptable, false, false),
    ] {
        let seed = caught(locking, is_preemptable, is_fifo);
        println!("{locking:?}: exceeded at set {seed:?}");
        assert!(seed.is_some(), "{locking:?}, preemptable {is_preemptable}, FIFO {is_fifo}");
    }
}
