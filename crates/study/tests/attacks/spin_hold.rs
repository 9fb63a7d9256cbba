//! The linear programs of spinlocks that `check` does not use: unordered ones, those whose spinning is preemptable, and
//! nested ones. No simulated response of a random system exceeds their bounds, however the lock chooses among those
//! that wait.

use fastrand::Rng;
use lockwright_analysis::linear::{Locking, Section, responses_of_program, spin_fifo_nested};
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
        // It may hold another resource around this one.
        if !self.owners.contains(&Some(task)) {
            self.set_priority(task, self.tasks[task.index()].0, act);
        }
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

/// Draws a system whose resources are all shared across processors, with this percentage of nested sections.
fn draw(random: &mut Rng, nested: u8) -> Option<System> {
    let shape = Shape {
        cpus: (2, 4),
        tasks: (3, 9),
        resources: (1, 2),
        nested,
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
        let config = Config::default()
            .with_offsets(if run == 0 { Offsets::Synchronous } else { Offsets::Random })
            .with_execution(Execution::Worst)
            .with_seed(random.u64(..))
            // One machine rules all resources.
            .with_protocol(Protocol::FmlpShort);
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
        let Some(system) = draw(&mut random, 0) else { continue };
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
        let Some(system) = draw(&mut random, 0) else { return false };
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

/// The sections of each task, in the form of the program. `None` if an inner resource has no greater number.
fn nested_sections(system: &System) -> Option<Vec<Vec<Section>>> {
    let of = |task| {
        let all = system.sections(task);
        let one = |(place, section): (usize, &lockwright_model::Section)| {
            let is_ordered = section.parent.is_none_or(|outer| all[outer].resource < section.resource);
            let inner = all.iter().filter(|other| other.parent == Some(place)).map(|other| other.length.as_ns());
            let length = section.length.as_ns() - inner.sum::<u64>();
            is_ordered.then_some(Section { resource: section.resource.0, length, outer: section.parent })
        };
        all.iter().enumerate().map(one).collect()
    };
    system.task_ids().map(of).collect()
}

/// The response times that are consistent with the program for nested FIFO locks. `None` if a task may be late.
fn nested_bounds(system: &System, sections: &[Vec<Section>]) -> Option<Vec<u64>> {
    let mut sharing = sharing(system);
    for task in &mut sharing.tasks {
        task.response = task.cost;
    }
    // BOUND: response times only rise, up to the deadlines.
    loop {
        let delays = spin_fifo_nested(&sharing, sections).ok()?;
        let before = sharing.tasks.clone();
        for (id, delay) in delays.into_iter().enumerate() {
            let own = &before[id];
            let is_above = |&other: &usize| {
                other != id && before[other].cluster == own.cluster && before[other].priority >= own.priority
            };
            let above: Vec<usize> = (0..before.len()).filter(is_above).collect();
            let jobs = |other: &usize, time: u64| time.div_ceil(before[*other].period) * before[*other].cost;
            let mut response = own.response;
            loop {
                let next = own.cost + delay + above.iter().map(|other| jobs(other, response)).sum::<u64>();
                if next > own.deadline.min(own.period) {
                    return None;
                }
                if next <= response {
                    break;
                }
                response = next;
            }
            sharing.tasks[id].response = response;
        }
        if sharing.tasks == before {
            return Some(before.iter().map(|task| task.response).collect());
        }
    }
}

#[test]
fn bounds_of_nested_fifo_locks_hold() {
    let (mut bounded, mut caught, mut flat_caught, mut seed) = (0, 0, 0, 0_u64);
    // BOUND: at least every hundredth system is covered, and has nested sections.
    while bounded < crate::attacked::sets(5_000) {
        seed += 1;
        let mut random = Rng::with_seed(seed);
        let Some(system) = draw(&mut random, 60) else { continue };
        let Some(sections) = nested_sections(&system) else { continue };
        if sections.iter().flatten().all(|section| section.outer.is_none()) {
            continue;
        }
        let Some(found) = nested_bounds(&system, &sections) else { continue };
        bounded += 1;
        if let Some(excess) = exceeds(&system, &found, false, true, &mut random) {
            panic!("seed {seed}: {excess}\n{found:?}\n{}", write_system(&system));
        }
        // The mutants: bounds lower by a tenth are exceeded, and bounds without inner sections.
        if caught < 10 {
            let lower: Vec<u64> = found.iter().map(|bound| bound * 9 / 10).collect();
            caught += u64::from(exceeds(&system, &lower, false, true, &mut random).is_some());
        }
        if flat_caught < 10 {
            let mut flat = sections;
            flat.iter_mut().for_each(|sections| sections.retain(|section| section.outer.is_none()));
            let lower = nested_bounds(&system, &flat);
            flat_caught +=
                u64::from(lower.is_some_and(|lower| exceeds(&system, &lower, false, true, &mut random).is_some()));
        }
    }
    println!("nested: {bounded} of {seed} systems have bounds");
    assert_eq!((caught, flat_caught), (10, 10));
}
