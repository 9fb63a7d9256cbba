//! The event loop.

use crate::config::{Arrivals, Change, Config, Execution, Offsets, Taken};
use crate::cpu::Cpu;
use crate::earliest::Earliest;
use crate::machines::{Machines, Source};
use crate::task::{Aside, Asked, Job, Stage, State, TaskState};
use crate::tracer::Tracer;
use lockwright_model::{
    CpuId, Duration, Event, Instant, MAX_EXECUTED_TASKS, Observation, Priority, Protocol, Record, Resource, ResourceId,
    Scheduler, System, Task, TaskId, assign_deadline_monotonic,
};
use lockwright_protocol::fulock::Unlock;
use lockwright_protocol::{Action, Machine, Refusal};
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::fmt;

/// The execution of a system in virtual time.
pub struct Simulation<'s, T: Tracer = ()> {
    system: &'s System,
    config: Config,
    /// Whether each processor schedules by earliest deadlines, rather than by fixed priorities.
    by_deadline: bool,
    machines: Machines,
    tasks: Vec<TaskState>,
    /// The rest of each task's state.
    aside: Vec<Aside>,
    /// The stages of all tasks, one after the other.
    stages: Vec<Stage>,
    /// For each task: its base priority, and its priority from each machine.
    views: Vec<Priority>,
    cpus: Vec<Cpu>,
    /// For each processor: the end of the running task's current run, or never if the processor is idle.
    run_ends: Earliest,
    /// For each processor: the set of processors of its cluster, as bits. The first of them keeps the ready tasks.
    clusters: Vec<u64>,
    /// Whether a cluster has several processors.
    has_clusters: bool,
    /// The set of processors that have a decision to make now, as bits.
    unsettled: u64,
    /// For each task: its next release.
    releases: Earliest,
    /// Scripted changes to come, in reverse order.
    changes: Vec<Change>,
    random: fastrand::Rng,
    now: u64,
    released: u64,
    tracer: T,
}

/// Returns the same system with priorities in the order of relative deadlines, for the ceilings of the stack resource
/// policy.
fn with_preemption_levels(system: &System) -> System {
    let mut tasks = system.tasks().to_vec();
    assign_deadline_monotonic(&mut tasks);
    let resources = system.resources().iter().map(|resource| Resource { ceiling: None, ..resource.clone() });
    System::new(system.name().into(), system.cpus(), None, resources.collect(), tasks)
        .expect("a valid system is valid with other priorities and no ceilings fixed by hand")
}

impl<T: Tracer> fmt::Debug for Simulation<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.system.name();
        f.debug_struct("Simulation").field("system", &name).field("now", &self.now).finish_non_exhaustive()
    }
}

impl<'s, T: Tracer> Simulation<'s, T> {
    /// Creates a simulation at time zero, before the first arrival.
    ///
    /// In a system under `p-edf`, resources are under `srp` with preemption levels by relative deadlines, and resources
    /// shared across processors are under `msrp`, whatever the protocol is. No blocking is observed in such a system.
    /// All other schedulers are treated as `p-fp`; [`plain`](crate::plain) simulates global ones.
    ///
    /// # Panics
    /// Panics if a job makes a nested request that its protocol refuses ([`System::refused_nesting`]), if a protocol
    /// does not support the clusters ([`System::refused_in_clusters`]), and if there are more than
    /// [`MAX_EXECUTED_TASKS`] tasks.
    #[must_use]
    pub fn new(system: &'s System, config: &Config, tracer: T) -> Self {
        Self::build(system, config, None, tracer)
    }

    /// Creates a simulation with one `fulock` machine for all resources under `none`, `pip` and `icpp`.
    ///
    /// These resources have no protection, inheritance, or a ceiling, and the unlock mode `unlock`. All tasks are
    /// real-time. Otherwise it is as [`Simulation::new`].
    #[must_use]
    pub fn with_fulock(system: &'s System, config: &Config, unlock: Unlock, tracer: T) -> Self {
        Self::build(system, config, Some(unlock), tracer)
    }

    /// Creates a simulation with `machine` instead of the machine of the protocol. It serves to test mutants and new
    /// machines. Otherwise it is as [`Simulation::new`].
    ///
    /// # Panics
    /// Panics as [`Simulation::new`] does, and if the resources are under several protocols or there are none.
    #[must_use]
    pub fn with_machine(system: &'s System, config: &Config, machine: Box<dyn Machine>, tracer: T) -> Self {
        let mut simulation = Self::build(system, config, None, tracer);
        simulation.machines.replace(machine);
        simulation
    }

    fn build(system: &'s System, config: &Config, fulock: Option<Unlock>, tracer: T) -> Self {
        let protocol = config.protocol.unwrap_or_else(|| system.protocol_or_default());
        let by_deadline = system.scheduler() == Scheduler::PEdf;
        assert!(system.tasks().len() <= MAX_EXECUTED_TASKS, "at most {MAX_EXECUTED_TASKS} tasks are simulated");
        assert!(system.refused_in_clusters(protocol).is_none(), "`{protocol}` knows no clusters");
        let ruling = |resource| match by_deadline {
            true if system.is_global(resource) => Protocol::Msrp,
            true => Protocol::Srp,
            false => system.protocol_of(resource, protocol),
        };
        let protocols: Vec<Protocol> = system.resource_ids().map(ruling).collect();
        let mut random = fastrand::Rng::with_seed(config.seed);
        let mut ranks: Vec<Vec<Priority>> = vec![Vec::new(); system.cpus()];
        for task in system.tasks() {
            ranks[task.cpu.index()].push(task.priority);
        }
        for ranks in &mut ranks {
            ranks.sort_unstable_by_key(|&priority| Reverse(priority));
            ranks.dedup();
        }
        let mut stages = Vec::new();
        let tasks: Vec<TaskState> = system
            .tasks()
            .iter()
            .enumerate()
            .map(|(index, task)| {
                let own_cpu = task.cpu.index();
                // At most MAX_TASKS times MAX_STEPS.
                let first_stage = stages.len() as u32;
                stages.extend(Stage::all(&task.body));
                TaskState {
                    job: None,
                    asked: Asked::Not,
                    left: None,
                    next_arrival: match &config.offsets {
                        Offsets::File => task.offset.as_ns(),
                        Offsets::Synchronous => 0,
                        Offsets::Random => random.u64(0..task.period.as_ns()),
                        Offsets::Fixed(offsets) => offsets.get(index).map_or(0, |offset| offset.as_ns()),
                    },
                    period: task.period.as_ns(),
                    jitter: task.jitter.as_ns(),
                    deadline: task.deadline.as_ns(),
                    waited: 0,
                    spun: 0,
                    away: 0,
                    priority: task.priority,
                    stage: first_stage,
                    first_stage,
                    rank: ranks[own_cpu].partition_point(|&other| other > task.priority) as u32,
                    cpu: own_cpu,
                    own_cpu,
                    sent_by: None,
                    state: State::Idle,
                }
            })
            .collect();
        let aside = |task: &Task| Aside {
            backlog: VecDeque::new(),
            delayed: 0,
            last_cpu: task.cpu.index(),
            seen: Observation::default(),
        };
        let levels = by_deadline.then(|| with_preemption_levels(system));
        let machines = Machines::new(levels.as_ref().unwrap_or(system), &protocols, fulock);
        let mut views = vec![Priority::MIN; tasks.len() * (1 + machines.count())];
        for (views, task) in views.chunks_exact_mut(1 + machines.count()).zip(system.tasks()) {
            views[0] = task.priority;
        }
        let mut changes = config.changes.clone();
        changes.sort_by_key(|change| Reverse(change.at));
        let mut simulation = Self {
            system,
            config: config.clone(),
            by_deadline,
            machines,
            tasks,
            aside: system.tasks().iter().map(aside).collect(),
            stages,
            views,
            cpus: ranks.iter().map(|ranks| Cpu::new(ranks.len())).collect(),
            run_ends: Earliest::never(system.cpus()),
            clusters: (0..system.cpus()).map(|cpu| system.cluster(CpuId::new(cpu))).collect(),
            has_clusters: system.has_clusters(),
            unsettled: 0,
            releases: Earliest::never(system.tasks().len()),
            changes,
            random,
            now: 0,
            released: 0,
            tracer,
        };
        for task in 0..simulation.tasks.len() {
            let release = simulation.draw_release(task);
            simulation.releases.set(task, release);
        }
        if let Some(taken) = simulation.config.taken.filter(|taken| taken.tick_period > Duration::ZERO) {
            for cpu in 0..simulation.cpus.len() {
                let first = simulation.random.u64(0..taken.tick_period.as_ns());
                simulation.cpus[cpu].tick = (first, simulation.late(first, taken));
            }
        }
        simulation
    }

    /// Returns the current virtual time.
    #[must_use]
    pub fn now(&self) -> Instant {
        Instant::from_ns(self.now)
    }

    /// Returns the number of jobs that all tasks have released so far.
    #[must_use]
    pub fn released(&self) -> u64 {
        self.released
    }

    /// Simulates until `end`, with the events at `end` itself. It may be called again with a later end.
    pub fn run_until(&mut self, end: Instant) {
        let end = end.as_ns();
        // BOUND: every round advances the time, which ends at `end`.
        loop {
            let runs = self.run_ends.first();
            let release = self.releases.first();
            let change = self.changes.last().map_or(u64::MAX, |change| change.at.as_ns());
            let (mut tick, mut deferred) = (u64::MAX, u64::MAX);
            if self.config.taken.is_some() {
                for cpu in &self.cpus {
                    tick = tick.min(cpu.tick.1);
                    deferred = deferred.min(if cpu.deferred { cpu.stalled_until } else { u64::MAX });
                }
            }
            let next = runs.min(release).min(change).min(tick).min(deferred);
            if next > end {
                break;
            }
            if self.has_clusters && next > self.now {
                self.delay(next - self.now);
            }
            self.now = next;
            if runs == next {
                self.end_runs();
                self.settle();
            }
            if tick == next {
                self.tick();
            }
            if deferred == next {
                self.go_on();
                self.settle();
            }
            if change == next || release == next {
                self.change_priorities();
                self.release_jobs();
                self.settle();
            }
        }
        self.now = self.now.max(end);
    }

    /// Returns the observations so far, by task id. Unfinished jobs past their deadline count as misses.
    #[must_use]
    pub fn observations(&self) -> Vec<Observation> {
        let observe = |(state, aside): (&TaskState, &Aside)| {
            let unfinished = state.job.iter().chain(&aside.backlog);
            let late = unfinished.filter(|job| self.now - job.arrival > state.deadline).count();
            Observation { misses: aside.seen.misses + late as u64, ..aside.seen }
        };
        self.tasks.iter().zip(&self.aside).map(observe).collect()
    }

    /// Returns the time since the arrival of the oldest unfinished job of each task, by task id; zero if there is none.
    /// It is a lower bound on the response time of that job.
    #[must_use]
    pub fn ages(&self) -> Vec<Duration> {
        let age = |state: &TaskState| state.job.map_or(0, |job| self.now - job.arrival);
        self.tasks.iter().map(|state| Duration::from_ns(age(state))).collect()
    }

    /// Returns the tracer with its records.
    pub fn into_tracer(self) -> T {
        self.tracer
    }

    fn record(&mut self, at: u64, task: usize, event: Event) {
        if T::WANTS {
            self.tracer.record(Record { at: Instant::from_ns(at), task: TaskId::new(task), event });
        }
    }

    /// Draws the next release of a task: its next arrival, and a delay of at most its jitter.
    fn draw_release(&mut self, task: usize) -> u64 {
        let jitter = self.tasks[task].jitter;
        let delay = match jitter {
            0 => 0,
            _ => match self.random.u8(0..4) {
                0 => jitter,
                1 => self.random.u64(0..=jitter),
                _ => 0,
            },
        };
        // No job is released past the end of 64-bit time.
        let at = self.tasks[task].next_arrival.saturating_add(delay);
        self.config.taken.map_or(at, |taken| self.late(at, taken))
    }

    /// Draws the time of an interrupt that is due at `at`.
    fn late(&mut self, at: u64, taken: Taken) -> u64 {
        let most = taken.latency.as_ns();
        at.saturating_add(match self.random.u8(0..3) {
            _ if most == 0 => 0,
            0 => most,
            1 => self.random.u64(0..=most),
            _ => 0,
        })
    }

    /// Executes the ticks of this instant.
    fn tick(&mut self) {
        let Some(taken) = self.config.taken else { return };
        for cpu in 0..self.cpus.len() {
            if self.cpus[cpu].tick.1 == self.now {
                self.stall(cpu, taken.tick.as_ns());
                let next = self.cpus[cpu].tick.0.saturating_add(taken.tick_period.as_ns());
                self.cpus[cpu].tick = (next, self.late(next, taken).max(self.now + 1));
            }
        }
    }

    /// Makes the deferred decisions of processors whose overheads have ended.
    fn go_on(&mut self) {
        for cpu in 0..self.cpus.len() {
            if self.cpus[cpu].deferred && self.cpus[cpu].stalled_until <= self.now {
                self.cpus[cpu].deferred = false;
                self.unsettled |= 1 << cpu;
            }
        }
    }

    /// Executes the interrupt of a release.
    fn interrupt(&mut self, task: usize) {
        let Some(taken) = self.config.taken else { return };
        let own = self.tasks[task].own_cpu;
        let mut members = self.clusters[own];
        for _ in 0..self.random.u32(0..members.count_ones().max(1)) {
            members &= members - 1;
        }
        self.stall(members.trailing_zeros() as usize, taken.release.as_ns());
    }

    /// Occupies a processor with overheads for `ns`.
    fn stall(&mut self, cpu: usize, ns: u64) {
        let until = &mut self.cpus[cpu].stalled_until;
        *until = (*until).max(self.now).saturating_add(ns);
        let ends = self.run_ends.get(cpu);
        if ends != u64::MAX {
            self.run_ends.set(cpu, ends.saturating_add(ns));
        }
    }

    /// Charges a context switch if the processor executes another task than before.
    fn switch(&mut self, cpu: usize) {
        let Some(taken) = self.config.taken else { return };
        let running = self.cpus[cpu].running;
        if self.cpus[cpu].given != running {
            self.cpus[cpu].given = running;
            self.stall(cpu, taken.switch.as_ns());
            if running.is_some_and(|task| {
                let state = &self.tasks[task];
                state.stage > state.first_stage || state.left.is_some()
            }) {
                self.stall(cpu, taken.refill.as_ns());
            }
        }
    }

    /// Whether the task makes no decision when the overheads of its processor end: it runs, or spins.
    fn goes_on(&self, task: usize) -> bool {
        let state = &self.tasks[task];
        matches!(self.stages[state.stage as usize], Stage::Run(_)) || matches!(state.asked, Asked::Spinning(_))
    }

    fn release_jobs(&mut self) {
        let at = self.now;
        while self.releases.first() == at && at != u64::MAX {
            let task = self.releases.whose();
            let arrival = self.tasks[task].next_arrival;
            let period = self.tasks[task].period;
            let more = match self.config.arrivals {
                Arrivals::Sporadic if self.random.u8(0..4) == 0 => self.random.u64(0..=period),
                _ => 0,
            };
            self.tasks[task].next_arrival = arrival.saturating_add(period).saturating_add(more);
            let next = self.draw_release(task);
            self.releases.set(task, next);
            self.released += 1;
            self.interrupt(task);
            self.record(arrival, task, Event::Arrive);
            let (cpu, rank) = (self.tasks[task].own_cpu, self.tasks[task].rank);
            self.account(cpu);
            self.account(self.tasks[task].cpu);
            let executed = self.cpus[cpu].executed_at_least(rank as usize);
            let job = Job { arrival, release: at, executed, away: self.tasks[task].away };
            if self.tasks[task].job.is_some() {
                self.aside[task].backlog.push_back(job);
            } else {
                self.make_ready(task);
                self.start_job(task, job);
            }
        }
    }

    fn start_job(&mut self, task: usize, job: Job) {
        let state = &mut self.tasks[task];
        (state.job, state.stage, state.left, state.asked) = (Some(job), state.first_stage, None, Asked::Not);
        (state.waited, state.spun) = (0, 0);
        self.aside[task].delayed = 0;
        if self.by_deadline {
            self.order(self.tasks[task].own_cpu, Some(task));
        }
        self.tell(|machine, act| machine.arrive(TaskId::new(task), act));
        if self.by_deadline && self.tasks[task].state == State::Waiting {
            self.order(self.tasks[task].own_cpu, Some(task));
        }
    }

    /// Gives the jobs of a processor priorities in the order of their deadlines.
    ///
    /// The stack resource policy starts the job with the earliest deadline, or none: while that job is held, no job
    /// with a later deadline starts, whatever its preemption level is. The job of `new` has not begun, even if its task
    /// is on the processor with the previous job.
    fn order(&mut self, cpu: usize, new: Option<usize>) {
        let due = |task: usize| {
            let job = self.tasks[task].job.filter(|_| self.tasks[task].own_cpu == cpu)?;
            Some((job.arrival.saturating_add(self.tasks[task].deadline), task))
        };
        let mut jobs: Vec<(u64, usize)> = (0..self.tasks.len()).filter_map(due).collect();
        let is_held = |job: &&(u64, usize)| self.tasks[job.1].state == State::Waiting;
        let first_held = jobs.iter().filter(is_held).min().copied();
        let has_begun = |task: usize| {
            let state = &self.tasks[task];
            let is_on = state.state == State::Running && new != Some(task);
            state.stage > state.first_stage || state.left.is_some() || is_on
        };
        jobs.sort_unstable_by_key(|&job| {
            let is_after = first_held.is_some_and(|held| job > held) && !has_begun(job.1);
            Reverse((is_after, job))
        });
        for (level, (_, task)) in jobs.into_iter().enumerate() {
            // At most MAX_EXECUTED_TASKS.
            self.set_view(task, 0, Priority::base(level as u32 + 1));
        }
    }

    /// Passes an event to the machines that count jobs.
    fn tell(&mut self, event: impl Fn(&mut dyn Machine, &mut dyn FnMut(Action)) -> Result<(), Refusal>) {
        for place in 0..self.machines.counting().len() {
            let source = self.machines.counting()[place];
            self.call(source, &event);
        }
    }

    fn make_ready(&mut self, task: usize) {
        let state = &mut self.tasks[task];
        state.state = State::Ready;
        self.cpus[state.cpu].push_tail(state.priority, task);
        self.unsettled |= 1 << state.cpu;
    }

    /// Returns the first processor of the cluster of `cpu`.
    fn first(&self, cpu: usize) -> usize {
        self.clusters[cpu].trailing_zeros() as usize
    }

    /// Adds to the delays of jobs in clusters. A job in a cluster of c processors is delayed while it is among the c
    /// most urgent jobs and does not execute. Waiting jobs count among these.
    fn delay(&mut self, elapsed: u64) {
        for task in 0..self.tasks.len() {
            let (own, base) = (self.tasks[task].own_cpu, self.system.tasks()[task].priority);
            if self.tasks[task].job.is_none() || self.tasks[task].state == State::Running {
                continue;
            }
            let is_before = |(other, state): (usize, &TaskState)| {
                let is_there = other != task && state.own_cpu == own && state.job.is_some();
                is_there && self.system.tasks()[other].priority >= base
            };
            let before = self.tasks.iter().enumerate().filter(|&it| is_before(it)).count();
            if before < self.clusters[own].count_ones() as usize {
                self.aside[task].delayed += elapsed;
            }
        }
    }

    fn change_priorities(&mut self) {
        while let Some(change) = self.changes.pop_if(|change| change.at.as_ns() == self.now) {
            let index = change.task.index();
            self.set_view(index, 0, change.priority);
            for source in 0..self.machines.count() {
                self.call(source, |machine, act| machine.set_base(change.task, change.priority, act));
            }
        }
    }

    /// Ends the runs that end at this instant. The next step of each is due.
    fn end_runs(&mut self) {
        while self.run_ends.first() == self.now && self.now != u64::MAX {
            let cpu = self.run_ends.whose();
            self.run_ends.set(cpu, u64::MAX);
            if let Some(task) = self.cpus[cpu].running {
                self.tasks[task].left = None;
                self.tasks[task].stage += 1;
                self.unsettled |= 1 << cpu;
            }
        }
    }

    /// Lets every processor take all steps that take no time.
    ///
    /// BOUND: each turn of a processor takes one of the finitely many steps before the next run of a ready job, or
    /// leaves the processor idle or with a run of at least a nanosecond. An interruptible section that restarts has
    /// such a run.
    fn settle(&mut self) {
        while self.unsettled != 0 {
            let cpu = self.draw_unsettled();
            self.unsettled &= !(1 << cpu);
            if self.has_clusters && self.clusters[cpu] != 1 << cpu {
                self.dispatch_cluster(cpu);
            } else if self.cpus[cpu].stalled_until > self.now {
                // The decision waits until the overheads have ended.
                self.cpus[cpu].deferred = true;
                continue;
            } else {
                self.dispatch(cpu, cpu);
            }
            self.switch(cpu);
            if let Some(task) = self.cpus[cpu].running
                && self.run_ends.get(cpu) == u64::MAX
            {
                if self.cpus[cpu].stalled_until > self.now && !self.goes_on(task) {
                    self.cpus[cpu].deferred = true;
                } else {
                    self.step(cpu, task);
                }
            }
        }
    }

    fn draw_unsettled(&mut self) -> usize {
        let mut left = self.unsettled;
        if self.config.shuffle {
            for _ in 0..self.random.u32(0..left.count_ones()) {
                left &= left - 1;
            }
        }
        left.trailing_zeros() as usize
    }

    /// Assigns the processors of a cluster to its most urgent tasks, one after the other. Each task gets an idle
    /// processor, its last one if that is idle, or else the processor of the least urgent task.
    ///
    /// BOUND: after each turn except the last, one more of the most urgent tasks executes.
    fn dispatch_cluster(&mut self, cpu: usize) {
        let (own, members) = (self.first(cpu), self.clusters[cpu]);
        while let Some((priority, first)) = self.cpus[own].first() {
            let last = self.aside[first].last_cpu;
            let running = |cpu: usize| self.cpus[cpu].running.map(|task| self.tasks[task].priority);
            let members = (0..self.cpus.len()).filter(|&cpu| members >> cpu & 1 == 1);
            let least = members.min_by_key(|&cpu| (running(cpu), cpu != last));
            let Some(least) = least.filter(|&cpu| running(cpu) < Some(priority)) else { return };
            if least != last {
                self.aside[first].last_cpu = least;
                self.record(self.now, first, Event::Migrate(CpuId::new(least)));
            }
            self.dispatch(own, least);
            self.unsettled |= 1 << least;
        }
    }

    /// Starts the most urgent ready task of `own` on the processor if it is more urgent than the running one.
    ///
    /// In most cases the running task stays. The function is inlined for them.
    #[inline(always)]
    fn dispatch(&mut self, own: usize, cpu: usize) {
        let Some((priority, first)) = self.cpus[own].first() else { return };
        if self.cpus[cpu].running.is_none_or(|task| self.tasks[task].priority < priority) {
            self.put(own, cpu, first);
        }
    }

    /// Replaces the running task of the processor by the first ready task of `own`.
    #[inline(never)]
    fn put(&mut self, own: usize, cpu: usize, first: usize) {
        if let Some(task) = self.cpus[cpu].running {
            self.leave(cpu, task);
            let state = &mut self.tasks[task];
            (state.state, state.cpu) = (State::Ready, own);
            self.cpus[own].push_head(state.priority, task);
            // `first` is more urgent, so it stays in front.
        }
        self.account(cpu);
        self.cpus[own].pop_first();
        self.cpus[cpu].running = Some(first);
        let state = &mut self.tasks[first];
        (state.state, state.cpu) = (State::Running, cpu);
        self.record(self.now, first, Event::Run);
    }

    /// Removes the running task from its processor, and keeps the rest of its run.
    fn leave(&mut self, cpu: usize, task: usize) {
        self.account(cpu);
        let here = &mut self.cpus[cpu];
        here.running = None;
        let ends = self.run_ends.get(cpu);
        if ends != u64::MAX {
            self.tasks[task].left = Some(ends - self.now.max(here.stalled_until));
            self.run_ends.set(cpu, u64::MAX);
        }
        self.unsettled |= 1 << cpu;
        self.record(self.now, task, Event::Stop);
    }

    fn spins_at_home(&self, task: usize, cpu: usize) -> bool {
        self.tasks[task].own_cpu == cpu && matches!(self.tasks[task].asked, Asked::Spinning(_))
    }

    /// Accounts for the time since the last call. In most cases no time has passed; the function is inlined for them.
    #[inline(always)]
    fn account(&mut self, cpu: usize) {
        let elapsed = self.cpus[cpu].unaccounted(self.now);
        if elapsed > 0 {
            self.account_elapsed(cpu, elapsed);
        }
    }

    #[inline(never)]
    fn account_elapsed(&mut self, cpu: usize, elapsed: u64) {
        let here = &mut self.cpus[cpu];
        let Some(task) = here.running else { return here.account(self.now, None) };
        let state = &mut self.tasks[task];
        if matches!(state.asked, Asked::Spinning(_)) {
            state.spun += elapsed;
        }
        if state.own_cpu == cpu {
            return here.account(self.now, Some(state.rank));
        }
        let mut rank = None;
        // In a cluster of several processors, `delay` counts instead.
        if self.clusters[state.own_cpu] >> cpu & 1 == 0 {
            state.away += elapsed;
            // The task executes in place of a task that spins on this processor, so the time counts as spinning of that
            // one.
            if let Some(host) = self.cpus[cpu].ready().find(|&host| self.spins_at_home(host, cpu)) {
                self.tasks[host].spun += elapsed;
                rank = Some(self.tasks[host].rank);
            }
        }
        self.cpus[cpu].account(self.now, rank);
    }

    /// Takes one step of the running task.
    fn step(&mut self, cpu: usize, task: usize) {
        let state = &self.tasks[task];
        match self.stages[state.stage as usize] {
            Stage::End => self.finish(cpu, task),
            Stage::Run(worst) => {
                let left = state.left.unwrap_or_else(|| match self.config.execution {
                    Execution::Worst => worst,
                    Execution::Random => match self.random.u8(0..4) {
                        0 => 1,
                        1 => self.random.u64(1..=worst),
                        _ => worst,
                    },
                });
                // A run past the end of 64-bit time never ends.
                self.run_ends.set(cpu, self.now.max(self.cpus[cpu].stalled_until).saturating_add(left));
            }
            Stage::Lock(_) if matches!(state.asked, Asked::Spinning(_)) => {}
            Stage::Lock(resource) => {
                self.unsettled |= 1 << cpu;
                self.lock(task, resource);
            }
            Stage::Unlock(resource) => {
                self.unsettled |= 1 << cpu;
                self.unlock(task, resource);
            }
        }
    }

    /// Ends a section, unless the machine restarts it. In that case the machine has no other action.
    fn unlock(&mut self, task: usize, resource: ResourceId) {
        let (id, source) = (TaskId::new(task), self.machines.source(resource));
        let end_section = |simulation: &mut Self| {
            simulation.record(simulation.now, task, Event::Release(resource));
            simulation.tasks[task].stage += 1;
        };
        let mut is_first = true;
        let release = |machine: &mut dyn Machine, act: &mut dyn FnMut(Action)| machine.release(id, resource, act);
        self.call_and(source, release, |simulation, action| {
            if std::mem::take(&mut is_first) && !matches!(action, Action::Restart { .. }) {
                end_section(simulation);
            }
            simulation.carry_out(source, action);
        });
        if is_first {
            end_section(self);
        }
    }

    fn lock(&mut self, task: usize, resource: ResourceId) {
        let (id, source) = (TaskId::new(task), self.machines.source(resource));
        match self.tasks[task].asked {
            Asked::Not => {
                self.record(self.now, task, Event::Request(resource));
                self.tasks[task].asked = Asked::Since(self.now);
                self.call(source, |machine, act| machine.request(id, resource, act));
            }
            Asked::Since(_) => self.call(source, |machine, act| machine.woken(id, act)),
            Asked::Spinning(_) | Asked::Granted(_) => {}
        }
        if let Asked::Granted(since) = self.tasks[task].asked
            && self.tasks[task].state == State::Running
        {
            let state = &mut self.tasks[task];
            state.asked = Asked::Not;
            state.stage += 1;
            state.waited += self.now - since;
            self.record(self.now, task, Event::Acquire(resource));
        }
    }

    fn finish(&mut self, cpu: usize, task: usize) {
        self.record(self.now, task, Event::Finish);
        self.account(cpu);
        debug_assert_eq!(self.first(cpu), self.tasks[task].own_cpu, "a job ends where it belongs");
        let executed = self.cpus[self.tasks[task].own_cpu].executed_at_least(self.tasks[task].rank as usize);
        let state = &mut self.tasks[task];
        if let Some(job) = state.job.take() {
            let response = self.now - job.arrival;
            // For other jobs, spinning counts as execution; for the job itself, it counts as blocking.
            let delayed = (self.now - job.release + state.spun).saturating_sub(executed - job.executed);
            let blocking = match self.has_clusters {
                true => self.aside[task].delayed,
                false => delayed.saturating_sub(state.away - job.away),
            };
            let seen = &mut self.aside[task].seen;
            seen.jobs += 1;
            seen.misses += u64::from(response > state.deadline);
            seen.response = seen.response.max(Some(Duration::from_ns(response)));
            // Blocking is defined by fixed priorities.
            if !self.by_deadline {
                seen.blocking = seen.blocking.max(Some(Duration::from_ns(blocking)));
            }
            seen.lock_wait = seen.lock_wait.max(Some(Duration::from_ns(state.waited)));
        }
        self.tell(|machine, act| machine.finish(TaskId::new(task), act));
        match self.aside[task].backlog.pop_front() {
            Some(job) => {
                self.unsettled |= 1 << cpu;
                self.start_job(task, job);
            }
            None => {
                self.leave(cpu, task);
                (self.tasks[task].state, self.tasks[task].cpu) = (State::Idle, self.first(cpu));
            }
        }
    }

    /// Passes an event to a machine, and carries out each of its actions at once.
    fn call(
        &mut self,
        source: Source,
        event: impl FnOnce(&mut dyn Machine, &mut dyn FnMut(Action)) -> Result<(), Refusal>,
    ) {
        self.call_and(source, event, |simulation, action| simulation.carry_out(source, action));
    }

    /// As [`Simulation::call`], with a function that carries out the actions. That function must not use the machine,
    /// which is taken out of its place.
    #[inline]
    fn call_and(
        &mut self,
        source: Source,
        event: impl FnOnce(&mut dyn Machine, &mut dyn FnMut(Action)) -> Result<(), Refusal>,
        mut carry_out: impl FnMut(&mut Self, Action),
    ) {
        let mut machine = self.machines.take_out(source);
        event(&mut *machine, &mut |action| carry_out(self, action))
            .expect("a valid system asks a machine for nothing it refuses");
        self.machines.put_back(source, machine);
    }

    /// Carries out an action. The function is inlined, so that the compiler sees which action it is.
    #[inline(always)]
    fn carry_out(&mut self, source: Source, action: Action) {
        match action {
            Action::Grant { task, .. } => {
                let cpu = self.tasks[task.index()].cpu;
                self.account(cpu);
                let asked = &mut self.tasks[task.index()].asked;
                if let Asked::Since(since) | Asked::Spinning(since) = *asked {
                    *asked = Asked::Granted(since);
                    self.unsettled |= 1 << cpu;
                }
            }
            Action::Spin { task, .. } => {
                self.account(self.tasks[task.index()].cpu);
                let asked = &mut self.tasks[task.index()].asked;
                if let Asked::Since(since) = *asked {
                    *asked = Asked::Spinning(since);
                }
            }
            Action::Block { task, .. } | Action::Hold { task } => {
                self.withdraw(task.index());
                self.tasks[task.index()].state = State::Waiting;
            }
            Action::Restart { task, resource } => self.restart(task.index(), resource),
            Action::Migrate { task, cpu, .. } => self.migrate(source, task.index(), cpu.index()),
            Action::Wake { task } => {
                if self.tasks[task.index()].state == State::Waiting {
                    self.make_ready(task.index());
                    if self.by_deadline {
                        self.order(self.tasks[task.index()].own_cpu, None);
                    }
                }
            }
            Action::SetPriority { task, priority, .. } => self.set_view(task.index(), 1 + source, priority),
        }
    }

    /// Restarts the section that the task has just executed to its end.
    fn restart(&mut self, task: usize, resource: ResourceId) {
        self.record(self.now, task, Event::Restart(resource));
        let state = &mut self.tasks[task];
        let so_far = &self.stages[state.first_stage as usize..state.stage as usize];
        let again = so_far.iter().rev().take_while(|&&stage| stage != Stage::Lock(resource)).count();
        // At most MAX_STEPS: the lock is a step of the same body.
        state.stage -= again as u32;
        self.aside[task].seen.restarts += 1;
    }

    /// Removes a task from its processor, whether it executes there or is ready.
    fn withdraw(&mut self, task: usize) {
        let cpu = self.tasks[task].cpu;
        match self.tasks[task].state {
            State::Running => {
                self.leave(cpu, task);
                self.tasks[task].cpu = self.first(cpu);
            }
            State::Ready => self.cpus[cpu].remove(task),
            State::Idle | State::Waiting => {}
        }
    }

    fn migrate(&mut self, source: Source, task: usize, cpu: usize) {
        if self.tasks[task].cpu == cpu {
            return;
        }
        let was = self.tasks[task].state;
        self.withdraw(task);
        self.tasks[task].cpu = cpu;
        self.tasks[task].sent_by = Some(source as u32).filter(|_| cpu != self.tasks[task].own_cpu);
        self.tasks[task].priority = self.effective(task);
        self.record(self.now, task, Event::Migrate(CpuId::new(cpu)));
        if matches!(was, State::Running | State::Ready) {
            self.make_ready(task);
        }
    }

    /// Returns the highest of the base priority and the priorities from the machines. On a processor to which a machine
    /// moved the task, only the priority from that machine counts, as the others do not consider that processor's
    /// tasks.
    fn effective(&self, task: usize) -> Priority {
        let width = 1 + self.machines.count();
        let views = &self.views[task * width..][..width];
        match self.tasks[task].sent_by {
            Some(source) => views[1 + source as usize],
            // The machines work with preemption levels, not deadlines. Only priorities above all levels count.
            None if self.by_deadline => {
                let above = views[1..].iter().copied().filter(|&view| view > Priority::BASE_MAX.raised());
                above.fold(views[0], Priority::max)
            }
            None => views.iter().copied().fold(Priority::MIN, Priority::max),
        }
    }

    /// Sets the base priority (view 0) or the priority from a machine (the next views) of a task.
    fn set_view(&mut self, task: usize, view: usize, priority: Priority) {
        self.views[task * (1 + self.machines.count()) + view] = priority;
        let effective = self.effective(task);
        let state = &mut self.tasks[task];
        let before = std::mem::replace(&mut state.priority, effective);
        if effective == before {
            return;
        }
        let (cpu, state) = (state.cpu, state.state);
        self.unsettled |= 1 << cpu;
        if state == State::Ready {
            self.cpus[cpu].remove(task);
            if effective > before {
                self.cpus[cpu].push_tail(effective, task);
            } else {
                self.cpus[cpu].push_head(effective, task);
            }
        }
        self.record(self.now, task, Event::Priority(effective));
    }
}
