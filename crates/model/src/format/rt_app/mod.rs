//! Workloads of rt-app, the load generator of the Linux scheduler's developers.
//!
//! ```text
//!   text --loose_json--> tree --thread, events--> threads (rate, loop of events)
//!        --this file--> tasks --System::new--> system
//! ```
//! A thread becomes a task if it has one rate: one `timer` at the end or the start
//! of its loop. An item that a task set cannot express is refused with its name
//! and place. An item that the import leaves out or decides is reported as a note.

mod events;
mod import;
mod loose_json;
mod thread;

use super::diagnostic::{Diagnostic, Diagnostics, check_length, shown};
use super::runs::sum_of_runs;
use crate::{
    CPUS_MAX, CpuId, Duration, Priority, Protocol, RESOURCES_MAX, Resource, ResourceId, Scheduler, Step, Subject,
    System, TASKS_MAX, Task, assign_rate_monotonic,
};
use core::ops::Range;
use events::Event;
use import::Import;
use loose_json::{Member, Node, Value};
use thread::{Policy, Thread};

/// A system made from a foreign file.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Imported {
    /// The system that the file describes.
    pub system: System,
    /// The items that the import left out or decided, in order of place.
    pub notes: Vec<Diagnostic>,
}

/// Reads the workload of an rt-app file.
///
/// # Errors
/// Returns at least one fault, in order of place.
///
/// # Examples
/// ```
/// use lockwright_model::format::import_rt_app;
/// let source = r#"{ "tasks": { "mixer": {
///     "policy": "SCHED_FIFO", "priority": 20, "cpus": [0],
///     "run": 100, "lock": "ring", "run": 20, "unlock": "ring", // microseconds
///     "timer": { "ref": "unique", "period": 5000 },
/// } } }"#;
/// let imported = import_rt_app(source)?;
/// assert_eq!(imported.system.tasks()[0].body.len(), 4);
/// # Ok::<(), lockwright_model::format::Diagnostics>(())
/// ```
pub fn import_rt_app(source: &str) -> Result<Imported, Diagnostics> {
    check_length(source.len())?;
    let mut import = Import::default();
    let system = match loose_json::parse(source) {
        Ok(root) => import.read(&root),
        Err(fault) => {
            import.faults.push(fault);
            None
        }
    };
    match system {
        Some(system) if import.faults.is_empty() => Ok(Imported { system, notes: import.notes.into_sorted(source) }),
        _ => Err(import.faults.into_refusal(source, "this is not an rt-app workload")),
    }
}

/// The keys of the `global` object that matter to the system.
struct Global {
    name: String,
    protocol: Protocol,
    policy: Policy,
}

/// The keys of `global` that control how a workload is run or logged.
const RUN_ONLY: [&str; 15] = [
    "duration",
    "calibration",
    "lock_pages",
    "logdir",
    "log_basename",
    "log_size",
    "logstats",
    "ftrace",
    "gnuplot",
    "frag",
    "io_device",
    "mem_buffer_size",
    "cumulative_slack",
    "pi_enabled",
    "default_policy",
];

impl Import {
    fn read(&mut self, root: &Node) -> Option<System> {
        let sections = self.object(root, "a workload")?;
        let mut tasks = None;
        let mut global = None;
        for member in sections {
            match &*member.key {
                "tasks" if tasks.is_none() => tasks = Some(member),
                "global" if global.is_none() => global = Some(member),
                "tasks" | "global" => self.given_twice(member),
                "resources" => self.note(&member.key_span, "`resources` is ignored: mutexes are declared by their use"),
                _ => self.unknown_key(member, "a workload", &["tasks", "global", "resources"]),
            }
        }
        let global = self.read_global(global);
        let Some(tasks) = tasks else {
            if self.faults.is_empty() {
                self.fault(&root.span, "the workload has no tasks", "add \"tasks\" : { ... }");
            }
            return None;
        };
        let mut threads: Vec<Thread> = Vec::new();
        for member in self.object(&tasks.node, "`tasks`")? {
            if self.faults.is_full() {
                break;
            }
            if let Some(thread) = Thread::read(self, member, global.policy) {
                threads.push(thread);
            }
        }
        if !self.faults.is_empty() {
            return None;
        }
        if threads.is_empty() {
            self.fault(&tasks.key_span, "the workload has no tasks", "add at least one thread");
            return None;
        }
        self.note_shared_timers(&threads);
        self.build(global, &threads)
    }

    fn read_global(&mut self, member: Option<&Member>) -> Global {
        let mut global = Global { name: "rt-app".into(), protocol: Protocol::None, policy: Policy::Other };
        let Some(member) = member else { return global };
        let Some(members) = self.object(&member.node, "`global`") else { return global };
        for member in members {
            match (&*member.key, &member.node.value) {
                ("pi_enabled", Value::Boolean(enabled)) => {
                    global.protocol = if *enabled { Protocol::Pip } else { Protocol::None };
                }
                ("pi_enabled", _) => self.mistyped(member, "true or false"),
                ("default_policy", _) => {
                    if let Some(policy) = Policy::read(self, member) {
                        global.policy = policy;
                    }
                }
                ("log_basename", Value::Text(name)) if !name.is_empty() => global.name = name.to_string(),
                (key, _) if RUN_ONLY.contains(&key) => {
                    self.note(&member.key_span, format!("{} is ignored: it has no effect on the tasks", shown(key)));
                }
                _ => self.unknown_key(member, "`global`", &RUN_ONLY),
            }
        }
        global
    }

    /// Notes shared timers. For rt-app a timer of one name in several threads is one timer; here each task has its own.
    fn note_shared_timers(&mut self, threads: &[Thread]) {
        let mut seen = std::collections::HashSet::new();
        for thread in threads {
            let Some((name, span)) = &thread.timer_ref else { continue };
            if !name.starts_with("unique") && !seen.insert(name) {
                self.note(span, format!("the timer {} is shared: each task gets its own", shown(name)));
            }
        }
    }

    fn build(&mut self, global: Global, threads: &[Thread]) -> Option<System> {
        let mut builder = Builder::default();
        for (index, thread) in threads.iter().enumerate() {
            if builder.tasks.len() + thread.instances > TASKS_MAX {
                self.fault(&thread.span, "too many tasks", format!("at most {TASKS_MAX} are supported"));
                return None;
            }
            builder.add(self, index, thread)?;
        }
        let Builder { mut tasks, resources, origins, resource_spans } = builder;
        let scheduler = self.scheduler(threads)?;
        self.assign_priorities(threads, &origins, &mut tasks);
        let cpus = match scheduler {
            Scheduler::GEdf => self.cpus_assumed(threads, &tasks)?,
            _ => tasks.iter().map(|task| task.cpu.index() + 1).max().unwrap_or(1),
        };
        // Under EDF the scheduler chooses the protocols.
        let protocol = (scheduler == Scheduler::PFp).then_some(global.protocol);
        match System::new(global.name, cpus, protocol, resources, tasks) {
            Ok(system) => Some(system.under(scheduler)),
            Err(invalid) => {
                let span = match invalid.subject {
                    Subject::Task(task) => threads[origins[task.index()]].span_of(invalid.key),
                    Subject::Step(task, step) => threads[origins[task.index()]].span_of_step(step),
                    Subject::Resource(resource) => resource_spans[resource.index()].clone(),
                    Subject::System => 0..0,
                };
                self.fault(&span, invalid.message, invalid.help);
                None
            }
        }
    }

    /// The scheduler of all threads: SCHED_DEADLINE is above all priorities, and a task set has one scheduler.
    fn scheduler(&mut self, threads: &[Thread]) -> Option<Scheduler> {
        let is_by_deadline = |thread: &&Thread| thread.policy == Policy::Deadline;
        let Some(first) = threads.iter().find(is_by_deadline) else { return Some(Scheduler::PFp) };
        if let Some(other) = threads.iter().find(|thread| !is_by_deadline(thread)) {
            self.fault(
                &other.span,
                format!("thread {} is not under SCHED_DEADLINE, unlike {}", shown(&other.name), shown(&first.name)),
                "a task set has one scheduler: give all threads SCHED_DEADLINE, or none",
            );
            return None;
        }
        let Some(bound) = threads.iter().find(|thread| thread.cpu.is_some()) else { return Some(Scheduler::GEdf) };
        if let Some(free) = threads.iter().find(|thread| thread.cpu.is_none()) {
            self.fault(
                &free.span,
                format!("thread {} names no CPU, unlike {}", shown(&free.name), shown(&bound.name)),
                "under SCHED_DEADLINE give each thread a CPU (p-edf), or none (g-edf)",
            );
            return None;
        }
        Some(Scheduler::PEdf)
    }

    /// The number of CPUs of threads that name none: the least one that their utilization does not exceed.
    fn cpus_assumed(&mut self, threads: &[Thread], tasks: &[Task]) -> Option<usize> {
        // Rounded up: in millionths of a CPU.
        let share =
            |task: &Task| (u128::from(task.wcet.as_ns()) * 1_000_000).div_ceil(task.period.as_ns().max(1).into());
        let needed = tasks.iter().map(share).sum::<u128>().div_ceil(1_000_000).max(1);
        let span = threads.first().map_or(0..0, |thread| thread.span.clone());
        let Some(cpus) = usize::try_from(needed).ok().filter(|&cpus| cpus <= CPUS_MAX) else {
            let help = format!("at most {CPUS_MAX} CPUs are supported: remove threads, or shorten their runs");
            self.fault(&span, format!("the threads have a utilization of {needed} CPUs"), help);
            return None;
        };
        let s = if cpus == 1 { "" } else { "s" };
        self.note(
            &span,
            format!("the threads name no CPUs: {cpus} CPU{s} assumed, as their utilization needs at least"),
        );
        Some(cpus)
    }

    /// Assigns the priorities. Real-time threads keep their order above all others; the others are rate monotonic.
    fn assign_priorities(&mut self, threads: &[Thread], origins: &[usize], tasks: &mut [Task]) {
        let mut others: Vec<Task> = Vec::new();
        for (task, &origin) in tasks.iter().zip(origins) {
            if threads[origin].realtime.is_none() {
                others.push(task.clone());
            }
        }
        let below = others.len() as u32;
        assign_rate_monotonic(&mut others);
        let mut others = others.into_iter();
        for (task, &origin) in tasks.iter_mut().zip(origins) {
            task.priority = match threads[origin].realtime {
                Some(level) => Priority::base(level + below),
                None => others.next().map_or(Priority::MIN, |other| other.priority),
            };
        }
        if let Some(first) = threads.iter().find(|thread| thread.policy == Policy::Other) {
            let message = "threads under SCHED_OTHER have no fixed priority: they get rate-monotonic priorities";
            self.note(&first.span, message);
            if threads.iter().any(|thread| thread.realtime.is_some()) {
                self.note(&first.span, format!("real-time priorities are raised by {below}, above all other threads"));
            }
        }
    }
}

/// The tasks and resources so far.
#[derive(Default)]
struct Builder {
    tasks: Vec<Task>,
    resources: Vec<Resource>,
    /// The index of the thread of each task.
    origins: Vec<usize>,
    /// The place of the first use of each resource.
    resource_spans: Vec<Range<usize>>,
}

impl Builder {
    fn add(&mut self, import: &mut Import, index: usize, thread: &Thread) -> Option<()> {
        let mut body = Vec::new();
        for (event, span) in &thread.events {
            body.push(match event {
                Event::Run(time) => Step::Run(*time),
                Event::Lock(name) => Step::Lock(self.resource(import, name, span)?),
                Event::Unlock(name) => Step::Unlock(self.resource(import, name, span)?),
            });
        }
        let blank = Task {
            name: thread.name.clone(),
            cpu: thread.cpu.unwrap_or(CpuId(0)),
            priority: Priority::MIN,
            period: thread.period,
            deadline: thread.deadline,
            jitter: Duration::ZERO,
            offset: thread.offset,
            wcet: sum_of_runs(&body),
            body,
        };
        for instance in 0..thread.instances {
            let mut task = blank.clone();
            if thread.instances > 1 {
                task.name = format!("{}-{instance}", thread.name);
            }
            self.tasks.push(task);
            self.origins.push(index);
        }
        Some(())
    }

    fn resource(&mut self, import: &mut Import, name: &str, span: &Range<usize>) -> Option<ResourceId> {
        let known = self.resources.iter().position(|resource| resource.name == name);
        if known.is_none() && self.resources.len() == RESOURCES_MAX {
            import.fault(span, "too many mutexes", format!("at most {RESOURCES_MAX} are supported"));
            return None;
        }
        Some(ResourceId::new(known.unwrap_or_else(|| {
            self.resources.push(Resource::new(name));
            self.resource_spans.push(span.clone());
            self.resources.len() - 1
        })))
    }
}
