//! The event loop.

mod accounts;
mod actions;
mod build;
mod dispatch;
mod global;
mod overheads;
mod releases;
mod steps;

use crate::config::{Change, Config, Stall};
use crate::cpu::Cpu;
use crate::earliest::Earliest;
use crate::machines::Machines;
use crate::run_ends::RunEnds;
use crate::task::{Aside, Stage, TaskState};
use crate::tracer::Tracer;
use lockwright_model::{Duration, Event, Instant, Observation, Priority, Record, System, TaskId};
use lockwright_protocol::Machine;
use lockwright_protocol::fulock::Unlock;
use std::fmt;

/// The execution of a system in virtual time.
pub struct Simulation<'s, T: Tracer = ()> {
    system: &'s System,
    config: Config,
    /// Whether processors schedule by earliest deadlines, rather than by fixed priorities.
    by_deadline: bool,
    /// Whether jobs execute on any processor.
    is_global: bool,
    /// Whether jobs wait for long resources under partitioned EDF.
    has_long: bool,
    /// By task: the preemption level; only if there are such resources.
    levels: Vec<Priority>,
    /// By resource: the ceiling, if it is under SRP; only if there are such resources.
    ceilings: Vec<Option<Priority>>,
    /// Under a global scheduler, for each processor: the job to which it is linked (see `global.rs`).
    links: Vec<Option<usize>>,
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
    run_ends: RunEnds,
    /// For each processor: the set of processors of its cluster, as bits. The first of them keeps the ready tasks.
    clusters: Vec<u64>,
    /// Whether a cluster has several processors.
    has_clusters: bool,
    /// Whether every processor has its own tasks, and there are no overheads.
    is_plain: bool,
    /// The processor that acts now.
    acting: usize,
    /// Tasks that become ready when their processors notice what another one did, and the times of that.
    notices: Vec<(u64, usize)>,
    /// The end of the interrupts that have come to the processor for releases.
    interrupts_until: u64,
    /// Scripted stalls to come, in reverse order.
    stalls: Vec<Stall>,
    /// Whether a job has spun so far.
    has_spun: bool,
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
    /// shared across processors are under `fmlp_long` if that is chosen, and otherwise under `msrp`. The owner of a
    /// long resource is before all jobs of its processor; of several, the one whose request was made first. No blocking
    /// is observed in such a system.
    ///
    /// Under `g-edf` and `g-fp`, resources are under `none`, `fmlp_short`, `fmlp_long`, `lock_free` or `wait_free`. A
    /// job that is not preempted delays at most one more urgent job at a time, and each of these at most once: when it
    /// arrives. [`plain`](crate::plain) is faster for tasks without locks.
    ///
    /// # Panics
    /// Panics if a job makes a nested request that its protocol refuses ([`System::refused_nesting`]), if a protocol
    /// does not support the clusters ([`System::refused_in_clusters`]) or the global scheduler
    /// ([`System::refused_globally`]), if a stall names a CPU that the system does not have, and if there are more than
    /// [`EXECUTED_TASKS_MAX`](lockwright_model::EXECUTED_TASKS_MAX) tasks.
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
    pub fn with_machine(system: &'s System, config: &Config, machine: Box<dyn Machine + Send>, tracer: T) -> Self {
        let mut simulation = Self::build(system, config, None, tracer);
        simulation.machines.replace(machine);
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
            let (mut tick, mut deferred, mut notice) = (u64::MAX, u64::MAX, u64::MAX);
            if self.config.taken.is_some() {
                notice = self.notices.iter().map(|&(at, _)| at).min().unwrap_or(u64::MAX);
                tick = self.stalls.last().map_or(u64::MAX, |stall| stall.at.as_ns());
                for cpu in &self.cpus {
                    tick = tick.min(cpu.tick.1);
                    deferred = deferred.min(if cpu.deferred { cpu.stalled_until } else { u64::MAX });
                }
            }
            let next = runs.min(release).min(change).min(tick).min(deferred).min(notice);
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
            if self.config.taken.is_some() {
                if tick == next {
                    self.tick();
                }
                if deferred == next {
                    self.go_on();
                    self.settle();
                }
                if notice == next {
                    self.notice();
                    self.settle();
                }
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
            let mut seen = aside.seen;
            seen.misses += late as u64;
            seen
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
}
