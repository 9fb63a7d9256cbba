//! The machine of `g-edf`, and of `p-edf` with long resources, and the simulator's own rules for them give the same
//! schedules: in random systems, exactly the same jobs execute at every time.
//!
//! The machine is executed as threads execute it: a thread executes if it is not blocked and has at least the priority
//! of a running job. There must never be more of these than processors, and with a processor for each task, never two
//! on one. The simulator has its own rules (`global.rs`, `releases.rs`) and the machines of `fmlp_short`, `fmlp_long`,
//! `fmlp_plus` and `srp`.

use fastrand::Rng;
use lockwright_model::{
    CpuId, Duration, Event, Instant, Priority, Protocol, Record, Resource, ResourceId, Scheduler, Step, System, Task,
    TaskId,
};
use lockwright_protocol::{Action, EdfLock, GlobalEdf, Machine};
use lockwright_sim::{Config, Offsets, Simulation};

type Scheduling = GlobalEdf<16, 9>;

/// A time for which a task executes: the task, the begin and the end.
type Execution = (usize, u64, u64);

const KINDS: [Protocol; 2] = [Protocol::FmlpShort, Protocol::FmlpLong];

/// Times are so long that no two events are at the same time, except releases and deadlines that are meant to be.
fn drawn(seed: u64) -> System {
    let mut random = Rng::with_seed(seed);
    let cpus = random.usize(1..=4);
    let resources: Vec<Resource> = (0..random.usize(1..=3))
        .map(|index| {
            let mut resource = Resource::new(format!("r{index}"));
            resource.protocol = Some(KINDS[if seed % 3 < 2 { seed as usize % 3 } else { random.usize(0..2) }]);
            resource
        })
        .collect();
    let count = random.usize(2..=12);
    // All first jobs have the same deadline in some systems.
    let same_due = random.bool().then(|| random.u64(3_000_000..9_000_000));
    let tasks = (0..count).map(|index| {
        let ns = Duration::from_ns;
        let offset = random.u64(0..2_000_000);
        let deadline = same_due.map_or_else(|| random.u64(1_000_000..9_000_000), |due| due - offset);
        let period = deadline + random.u64(0..3_000_000);
        // The total utilization is about half of the processors to all of them.
        let share = deadline * cpus as u64 * random.u64(50..110) / 100 / count as u64;
        let sections = random.u64(0..=3);
        let mut part = |most: u64| Step::Run(ns(random.u64(1..=most.max(1))));
        let most = (share / (1 + sections)).min(deadline / (1 + 2 * sections));
        let mut body = vec![part(most)];
        for section in 0..sections {
            let resource = ResourceId::new((index as u64 * 7 + section * 5 + seed) as usize % resources.len());
            body.extend([Step::Lock(resource), part(most), Step::Unlock(resource), part(most / 2)]);
        }
        let wcet = body.iter().map(|step| if let Step::Run(time) = step { *time } else { Duration::ZERO }).sum();
        Task {
            name: format!("t{index}"),
            cpu: CpuId(0),
            priority: Priority::base(index as u32 + 1),
            period: ns(period),
            deadline: ns(deadline),
            jitter: Duration::ZERO,
            offset: ns(offset),
            wcet,
            body,
        }
    });
    let tasks = tasks.collect();
    System::new("s".into(), cpus, None, resources, tasks).expect("valid").under(Scheduler::GEdf)
}

/// Tasks with processors of their own, and resources across processors and of one, which may be nested.
fn drawn_partitioned(seed: u64) -> System {
    let mut random = Rng::with_seed(seed);
    let cpus = random.usize(2..=3);
    // For each processor two resources of its own, and up to three across processors, not all of them long.
    let across = random.usize(1..=3);
    let resource = |index: usize| {
        let mut resource = Resource::new(format!("r{index}"));
        resource.protocol =
            Some(if index % 3 == 2 && seed.is_multiple_of(2) { Protocol::Msrp } else { Protocol::FmlpLong });
        resource
    };
    let resources: Vec<Resource> = (0..across + 2 * cpus).map(resource).collect();
    let count = random.usize(4..=12);
    let same_due = random.bool().then(|| random.u64(3_000_000..9_000_000));
    let tasks = (0..count).map(|index| {
        let ns = Duration::from_ns;
        let cpu = random.usize(0..cpus);
        let offset = random.u64(0..2_000_000);
        let deadline = same_due.map_or_else(|| random.u64(1_000_000..9_000_000), |due| due - offset);
        let period = deadline + random.u64(0..3_000_000);
        let share = deadline * cpus as u64 * random.u64(60..120) / 100 / count as u64;
        let sections = random.u64(1..=4);
        let most = (share / (1 + sections)).min(deadline / (2 + 3 * sections)).max(2);
        let mut body = Vec::new();
        for section in 0..=sections {
            body.push(Step::Run(ns(random.u64(1..=most))));
            if section == sections {
                break;
            }
            let run = Step::Run(ns(random.u64(1..=most)));
            let own = [0, 1].map(|place| ResourceId::new(across + 2 * cpu + place));
            match random.u8(0..6) {
                0..=2 => {
                    let on = ResourceId::new(random.usize(0..across));
                    body.extend([Step::Lock(on), run, Step::Unlock(on)]);
                }
                3 | 4 => {
                    let on = own[random.usize(0..2)];
                    body.extend([Step::Lock(on), run, Step::Unlock(on)]);
                }
                _ => {
                    let inner = [Step::Lock(own[1]), run, Step::Unlock(own[1])];
                    body.extend([Step::Lock(own[0]), run]);
                    body.extend(inner);
                    body.extend([run, Step::Unlock(own[0])]);
                }
            }
        }
        let wcet: Duration =
            body.iter().map(|step| if let Step::Run(time) = step { *time } else { Duration::ZERO }).sum();
        Task {
            name: format!("t{index}"),
            cpu: CpuId::new(cpu),
            priority: Priority::base(index as u32 + 1),
            period: ns(period.max(wcet.as_ns())),
            deadline: ns(deadline.max(wcet.as_ns())),
            jitter: Duration::ZERO,
            offset: ns(offset),
            wcet,
            body,
        }
    });
    let tasks = tasks.collect();
    System::new("s".into(), cpus, None, resources, tasks).expect("valid").under(Scheduler::PEdf)
}

/// The thread of a task.
#[derive(Clone, Debug)]
struct Thread {
    level: Priority,
    has_job: bool,
    /// It waits on its flag.
    is_blocked: bool,
    spins: bool,
    /// The step of its job, and the rest of it if it is a run.
    step: usize,
    left: u64,
    next_arrival: u64,
}

/// The execution of the machine in virtual time.
struct Executed<'s> {
    system: &'s System,
    machine: Scheduling,
    threads: Vec<Thread>,
    now: u64,
    waits: u64,
}

impl<'s> Executed<'s> {
    fn new(system: &'s System, machine: Scheduling) -> Self {
        let thread = |task: &Task| Thread {
            level: Scheduling::ARRIVING,
            has_job: false,
            is_blocked: false,
            spins: false,
            step: 0,
            left: 0,
            next_arrival: task.offset.as_ns(),
        };
        Self { system, machine, threads: system.tasks().iter().map(thread).collect(), now: 0, waits: 0 }
    }

    fn executes(&self, task: usize) -> bool {
        let thread = &self.threads[task];
        thread.has_job && !thread.is_blocked && thread.level >= Scheduling::RUNNING
    }

    fn give(&mut self, event: impl FnOnce(&mut Scheduling, &mut dyn FnMut(Action))) {
        let mut actions = Vec::new();
        event(&mut self.machine, &mut |action| actions.push(action));
        for action in actions {
            match action {
                Action::SetPriority { task, priority, .. } => self.threads[task.index()].level = priority,
                Action::Grant { task, .. } => {
                    let thread = &mut self.threads[task.index()];
                    thread.spins = false;
                    thread.step += 1;
                    self.begin_step(task.index());
                }
                Action::Wake { task } => self.threads[task.index()].is_blocked = false,
                Action::Block { task, .. } => {
                    self.waits += 1;
                    self.threads[task.index()].is_blocked = true;
                }
                Action::Spin { task, .. } => {
                    self.waits += 1;
                    self.threads[task.index()].spins = true;
                }
                other => panic!("{other:?}"),
            }
        }
        let executing = (0..self.threads.len()).filter(|&task| self.executes(task)).count();
        assert!(executing <= self.system.cpus(), "{executing} threads execute");
        let cpu = |task: usize| self.system.tasks()[task].cpu;
        let mut own: Vec<CpuId> = (0..self.threads.len()).filter(|&task| self.executes(task)).map(cpu).collect();
        own.sort_unstable();
        let is_shared = own.windows(2).any(|two| two[0] == two[1]);
        assert!(self.system.scheduler() == Scheduler::GEdf || !is_shared, "two threads execute on one processor");
    }

    fn body(&self, task: usize) -> &'s [Step] {
        &self.system.tasks()[task].body
    }

    fn begin_step(&mut self, task: usize) {
        if let Some(Step::Run(time)) = self.body(task).get(self.threads[task].step) {
            self.threads[task].left = time.as_ns();
        }
    }

    /// The run of the task has ended.
    fn end_run(&mut self, task: usize) {
        let id = TaskId::new(task);
        self.threads[task].step += 1;
        match self.body(task).get(self.threads[task].step).copied() {
            Some(Step::Lock(resource)) => {
                self.give(|machine, act| machine.request(id, resource, act).expect("a request"));
            }
            Some(Step::Unlock(resource)) => {
                self.threads[task].step += 1;
                self.begin_step(task);
                self.give(|machine, act| machine.release(id, resource, act).expect("a release"));
            }
            Some(Step::Run(_)) => self.begin_step(task),
            None => {
                self.threads[task].has_job = false;
                self.give(|machine, act| machine.finish(id, act).expect("an end"));
            }
            other => panic!("{other:?} after a run"),
        }
    }

    fn arrive(&mut self, task: usize) {
        let at = self.threads[task].next_arrival;
        self.threads[task].next_arrival += self.system.tasks()[task].period.as_ns();
        (self.threads[task].has_job, self.threads[task].step) = (true, 0);
        self.begin_step(task);
        let due = Instant::from_ns(at) + self.system.tasks()[task].deadline;
        self.give(|machine, act| machine.arrive_due(TaskId::new(task), due, act).expect("an arrival"));
    }

    /// Executes until `end`, or until a job arrives before the previous one of its task has ended. Returns what
    /// executed, and the end.
    fn run(&mut self, end: u64) -> (Vec<Execution>, u64) {
        let mut all: Vec<Execution> = Vec::new();
        loop {
            let tasks = 0..self.threads.len();
            let executing: Vec<usize> = tasks.clone().filter(|&task| self.executes(task)).collect();
            let runs = executing.iter().filter(|&&task| !self.threads[task].spins);
            let run_end = runs.map(|&task| (self.now + self.threads[task].left, task)).min();
            let arrival = tasks.map(|task| (self.threads[task].next_arrival, task)).min().expect("a task");
            let next = run_end.map_or(arrival.0, |(at, _)| at.min(arrival.0)).min(end);
            for &task in &executing {
                add(&mut all, (task, self.now, next));
                if !self.threads[task].spins {
                    self.threads[task].left -= next - self.now;
                }
            }
            self.now = next;
            if next == end {
                return (all, end);
            }
            match run_end {
                Some((at, task)) if at == next => self.end_run(task),
                _ if self.threads[arrival.1].has_job => return (all, next),
                _ => self.arrive(arrival.1),
            }
        }
    }
}

/// Adds an execution, joined with the last one of its task.
fn add(all: &mut Vec<Execution>, (task, from, until): Execution) {
    if from == until {
        return;
    }
    match all.iter_mut().rfind(|other| other.0 == task) {
        Some(last) if last.2 == from => last.2 = until,
        _ => all.push((task, from, until)),
    }
}

/// What the simulator executes before `end`.
fn simulated(system: &System, end: u64) -> Vec<Execution> {
    let config = Config::default().with_offsets(Offsets::File);
    let mut simulation = Simulation::new(system, &config, Vec::<Record>::new());
    simulation.run_until(Instant::from_ns(end));
    let mut since = vec![None; system.tasks().len()];
    let mut all = Vec::new();
    for Record { at, task, event } in simulation.into_tracer() {
        match event {
            Event::Run => since[task.index()] = Some(at.as_ns()),
            Event::Stop => {
                if let Some(from) = since[task.index()].take() {
                    add(&mut all, (task.index(), from, at.as_ns()));
                }
            }
            _ => {}
        }
    }
    for (task, since) in since.into_iter().enumerate() {
        since.into_iter().for_each(|from| add(&mut all, (task, from, end)));
    }
    all
}

fn machine(system: &System) -> Scheduling {
    of_kinds(system, |kind| kind == Protocol::FmlpShort, 0)
}

/// A machine with these short resources, and with `fewer` processors.
fn of_kinds(system: &System, is_short: fn(Protocol) -> bool, fewer: usize) -> Scheduling {
    let lock = |short: bool| if short { EdfLock::Short } else { EdfLock::Long };
    let kinds = system.resources().iter().map(|resource| lock(resource.protocol.is_some_and(is_short)));
    let processors = system.cpus() - fewer.min(system.cpus() - 1);
    Scheduling::new(system.tasks().len(), &kinds.collect::<Vec<_>>(), processors)
}

/// The machine of a system with a processor for each task, with other locks.
fn of_locks(system: &System, changed: fn(EdfLock) -> EdfLock) -> Scheduling {
    let levels = system.with_preemption_levels();
    let tasks: Vec<_> = levels.tasks().iter().map(|task| (task.priority, task.cpu)).collect();
    let lock = |resource| match system.protocol_of(resource, Protocol::Msrp) {
        Protocol::Srp => EdfLock::Local(levels.ceiling(resource)),
        Protocol::Msrp => EdfLock::Short,
        _ => EdfLock::Long,
    };
    let locks: Vec<_> = system.resource_ids().map(|resource| changed(lock(resource))).collect();
    Scheduling::partitioned(&tasks, &locks, system.cpus())
}

/// Both schedules, sorted, up to the end of the first one.
fn both(executed: &mut Executed<'_>) -> ([Vec<Execution>; 2], u64) {
    let (mut all, end) = executed.run(END);
    let mut simulated = simulated(executed.system, end);
    all.sort_unstable();
    simulated.sort_unstable();
    ([all, simulated], end)
}

const END: u64 = 40_000_000;

/// The number of random systems.
fn systems() -> u64 {
    if std::env::var_os("LOCKWRIGHT_DEEP").is_some() { 30_000 } else { 3_000 }
}

#[test]
fn the_machine_and_the_simulator_give_the_same_schedules() {
    assert_same(drawn, machine);
}

#[test]
fn the_machine_and_the_simulator_give_the_same_schedules_with_a_processor_for_each_task() {
    assert_same(drawn_partitioned, |system| of_locks(system, |lock| lock));
}

fn assert_same(drawn: fn(u64) -> System, machine: fn(&System) -> Scheduling) {
    let (mut executions, mut waits, mut whole, mut tested) = (0, 0, 0, 0);
    let systems = systems();
    for seed in 0..systems {
        let system = drawn(seed);
        // Without a long resource, `p-edf` has another machine.
        if !system.has_global_locks(Protocol::Msrp) && system.scheduler() == Scheduler::PEdf {
            continue;
        }
        let mut executed = Executed::new(&system, machine(&system));
        let ([all, simulated], end) = both(&mut executed);
        waits += executed.waits;
        whole += u64::from(end == END);
        tested += 1;
        executions += all.len();
        let differs = all.iter().zip(&simulated).find(|(one, other)| one != other);
        assert_eq!(all, simulated, "seed {seed}, first: {differs:?}, {system:?}");
    }
    println!("{executions} executions, {waits} waits, {whole} of {tested} systems to the end");
    assert!(waits > tested * 5 && whole > tested / 4 && tested > systems / 3, "{waits} waits, {whole} of {tested}");
}

/// Wrong machines give other schedules.
#[test]
fn wrong_machines_are_noticed() {
    type Make = fn(&System) -> Scheduling;
    type Draw = fn(u64) -> System;
    let own_short: Make = |system| of_locks(system, |lock| if lock == EdfLock::Long { EdfLock::Short } else { lock });
    let mutants: [(&str, Draw, Make); 5] = [
        ("all resources short", drawn, |system| of_kinds(system, |_| true, 0)),
        ("all resources long", drawn, |system| of_kinds(system, |_| false, 0)),
        ("a processor less", drawn, |system| of_kinds(system, |kind| kind == Protocol::FmlpShort, 1)),
        ("long resources short", drawn_partitioned, own_short),
        ("sections of one processor that hold up every job", drawn_partitioned, |system| {
            of_locks(
                system,
                |lock| if matches!(lock, EdfLock::Local(_)) { EdfLock::Local(Priority::BASE_MAX) } else { lock },
            )
        }),
    ];
    for (name, drawn, make) in mutants {
        let differs = (0..100).map(drawn).any(|system| {
            let ([all, simulated], _) = both(&mut Executed::new(&system, make(&system)));
            all != simulated
        });
        assert!(differs, "not noticed: {name}");
    }
}
