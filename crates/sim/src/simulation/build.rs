//! The state at time zero.

use super::Simulation;
use crate::config::{Config, Offsets};
use crate::cpu::Cpu;
use crate::earliest::Earliest;
use crate::machines::Machines;
use crate::run_ends::RunEnds;
use crate::task::{Aside, Asked, Stage, State, TaskState};
use crate::tracer::Tracer;
use lockwright_model::{
    CpuId, Duration, EXECUTED_TASKS_MAX, Observation, Priority, Protocol, ResourceId, System, Task,
};
use lockwright_protocol::fulock::Unlock;
use std::cmp::Reverse;
use std::collections::VecDeque;

/// Returns the protocol of each resource.
fn protocols(system: &System, config: &Config) -> Vec<Protocol> {
    let protocol = config.protocol.unwrap_or_else(|| system.protocol_or_default());
    assert!(system.refused_in_clusters(protocol).is_none(), "`{protocol}` does not support clusters");
    assert!(system.refused_globally(protocol).is_none(), "`{protocol}` does not support global schedulers");
    system.resource_ids().map(|resource| system.protocol_of(resource, protocol)).collect()
}

/// Returns the processor to which a task is assigned. Under a global scheduler, that is the first one for all tasks.
fn own_cpu(system: &System, task: &Task) -> CpuId {
    if system.scheduler().is_global() { CpuId(0) } else { task.cpu }
}

/// Returns the base priorities of each processor's tasks, the most urgent first, each once.
fn ranks(system: &System) -> Vec<Vec<Priority>> {
    let mut ranks: Vec<Vec<Priority>> = vec![Vec::new(); system.cpus()];
    for task in system.tasks() {
        ranks[own_cpu(system, task).index()].push(task.priority);
    }
    for ranks in &mut ranks {
        ranks.sort_unstable_by_key(|&priority| Reverse(priority));
        ranks.dedup();
    }
    ranks
}

/// Returns the state of a task without a job. `ranks` are those of its processor.
fn idle(task: &Task, cpu: CpuId, first_arrival: u64, stage: u32, ranks: &[Priority]) -> TaskState {
    TaskState {
        job: None,
        asked: Asked::Not,
        // The first release replaces it.
        next: Stage::End,
        next_arrival: first_arrival,
        period: task.period.as_ns(),
        jitter: task.jitter.as_ns(),
        deadline: task.deadline.as_ns(),
        waited: 0,
        spun: 0,
        away: 0,
        priority: task.priority,
        stage,
        first_stage: stage,
        rank: ranks.partition_point(|&other| other > task.priority) as u32,
        cpu,
        own_cpu: cpu,
        sent_by: None,
        state: State::Idle,
    }
}

/// Returns the processors that may execute the tasks of `cpu`, as bits.
fn cluster(system: &System, cpu: usize) -> u64 {
    // There are at most 64 processors.
    let all = u64::MAX >> (u64::BITS as usize - system.cpus());
    if system.scheduler().is_global() { all } else { system.cluster(CpuId::new(cpu)) }
}

impl<'s, T: Tracer> Simulation<'s, T> {
    pub(super) fn build(system: &'s System, config: &Config, fulock: Option<Unlock>, tracer: T) -> Self {
        let (by_deadline, is_global) = (system.scheduler().is_by_deadline(), system.scheduler().is_global());
        assert!(system.tasks().len() <= EXECUTED_TASKS_MAX, "at most {EXECUTED_TASKS_MAX} tasks are simulated");
        let protocols = protocols(system, config);
        let mut random = fastrand::Rng::with_seed(config.seed);
        let ranks = ranks(system);
        let (mut stages, mut tasks) = (Vec::new(), Vec::with_capacity(system.tasks().len()));
        for (index, task) in system.tasks().iter().enumerate() {
            let first_arrival = match &config.offsets {
                Offsets::File => task.offset.as_ns(),
                Offsets::Synchronous => 0,
                Offsets::Random => random.u64(0..task.period.as_ns()),
                Offsets::Fixed(offsets) => offsets.get(index).map_or(0, |offset| offset.as_ns()),
            };
            // The number of stages is at most TASKS_MAX times STEPS_MAX.
            let cpu = own_cpu(system, task);
            tasks.push(idle(task, cpu, first_arrival, stages.len() as u32, &ranks[cpu.index()]));
            stages.extend(Stage::all(&task.body));
        }
        let aside = |task: &Task| Aside {
            backlog: VecDeque::new(),
            delayed: 0,
            last_cpu: task.cpu.index(),
            is_put_off: false,
            seen: Observation::default(),
        };
        let levels = (by_deadline && !is_global).then(|| system.with_preemption_levels());
        let used = || system.resource_ids().filter(|&resource| !system.users(resource).is_empty());
        let is_long = |resource: ResourceId| protocols[resource.index()] == Protocol::FmlpLong;
        let has_long = levels.is_some() && used().any(is_long);
        let levelled = levels.as_ref().filter(|_| has_long);
        let level_of = |system: &System| system.tasks().iter().map(|task| task.priority).collect();
        let ceilings_of = |system: &System| {
            let is_srp = |id: &ResourceId| protocols[id.index()] == Protocol::Srp;
            system.resource_ids().map(|id| Some(id).filter(is_srp).map(|id| system.ceiling(id))).collect()
        };
        let machines = Machines::new(levels.as_ref().unwrap_or(system), &protocols, fulock);
        let mut views = vec![Priority::MIN; tasks.len() * (1 + machines.count())];
        for (views, task) in views.chunks_exact_mut(1 + machines.count()).zip(system.tasks()) {
            views[0] = task.priority;
        }
        let mut changes = config.changes.clone();
        changes.sort_by_key(|change| Reverse(change.at));
        let mut stalls = config.taken.as_ref().map_or_else(Vec::new, |taken| taken.stalls.clone());
        assert!(stalls.iter().all(|stall| stall.cpu.index() < system.cpus()), "a stall names a CPU of the system");
        stalls.sort_by_key(|stall| Reverse(stall.at));
        let has_clusters = system.has_clusters() || is_global;
        let mut simulation = Self {
            system,
            config: config.clone(),
            by_deadline,
            is_global,
            has_long,
            levels: levelled.map(level_of).unwrap_or_default(),
            ceilings: levelled.map(ceilings_of).unwrap_or_default(),
            links: vec![None; if is_global { system.cpus() } else { 0 }],
            machines,
            tasks,
            aside: system.tasks().iter().map(aside).collect(),
            stages,
            views,
            cpus: ranks.iter().map(|ranks| Cpu::new(ranks.len())).collect(),
            run_ends: RunEnds::never(system.cpus()),
            clusters: (0..system.cpus()).map(|cpu| cluster(system, cpu)).collect(),
            has_clusters,
            is_plain: !has_clusters && config.taken.is_none(),
            acting: 0,
            notices: Vec::new(),
            interrupts_until: 0,
            stalls,
            has_spun: false,
            unsettled: 0,
            releases: Earliest::never(system.tasks().len()),
            changes,
            random,
            now: 0,
            released: 0,
            tracer,
        };
        simulation.draw_first();
        simulation
    }

    /// Draws the first release of each task and the first tick of each processor.
    fn draw_first(&mut self) {
        for task in 0..self.tasks.len() {
            let release = self.draw_release(task);
            self.releases.set(task, release);
        }
        let period = self.config.taken.as_ref().map_or(Duration::ZERO, |taken| taken.tick_period);
        if period > Duration::ZERO {
            for cpu in 0..self.cpus.len() {
                let first = self.random.u64(0..period.as_ns());
                self.cpus[cpu].tick = (first, self.late(first));
            }
        }
    }
}
