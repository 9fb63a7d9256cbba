//! Overheads charged to a system under partitioned or clustered fixed priorities.
//!
//! All costs are times. The names are the keys of an overheads file (`docs/overheads.md`).
//!
//! *Jobs.* A job causes two scheduling decisions and two context switches, at its start and at its end. The job that it
//! preempts fills the caches again:
//! ```text
//!   C += 2 (schedule + context_switch) + cache_refill + cache_delay        J += release_latency + release
//! ```
//! The cache delay of a job is that of the largest working set among the other tasks of the processor, which the job
//! can preempt. The cache delay of a request is that of the largest working set of all tasks there. On a home
//! processor, sections preempt those of others, so all tasks of the processors of the users of resources with this home
//! count as well. A task without a given working set counts with the largest size that was measured.
//!
//! If a dedicated processor handles all releases, J += release_latency + n release + ipi_latency, because all n tasks
//! may be released at one time.
//!
//! *Interrupts* are tasks above all others. Each processor has one for its ticks. Unless a dedicated processor handles
//! the releases, each processor also has one for the releases of each of its tasks. Both kinds are late by up to the
//! release latency.
//!
//! *Sections.* A request can suspend and resume. With s = schedule + context_switch and the costs of the protocol of
//! the section's resource:
//! ```text
//!   before the section   s + syscall_in + syscall_out
//!   in it                lock + 2 s + ipi_latency + syscall_in + syscall_out + unlock + leave_section
//!                        + 2 (cache_refill + cache_delay)
//!   before it, in addition, if sections execute on a home processor:
//!                        s + ipi_latency + lock + unlock + syscall_in + syscall_out + 2 (cache_refill + cache_delay)
//! ```
//! The section contains everything that delays other tasks:
//! - *The lock operation.* A task raises its priority before its request, so tasks of its processor wait for this
//!   operation as well. Under `ics` and `ics_lock`, an invalidated section is entered again.
//! - *Leaving the section.* The job leaves it before a delayed preemption takes place. The system call for that is the
//!   one charged in the section.
//! - *Both refills.* The job enters its section with cold caches, and leaves cold caches to the job that its raised
//!   priority preempted.
//!
//! A job that returns from a home preempts a job whose caches were cold when it left. Its operations begin on one
//! processor and end on the other, so both count them.
//!
//! A section on a resource shared across processors is also longer by the interrupts of the processor where it
//! executes. Only interrupts preempt it there, and tasks of other processors wait for them as well. If the section may
//! execute on one of several processors, in clusters and under `mrsp`, the interrupts of all of these count, including
//! those that began before the section. Under `mrsp` it is also longer by its moves: each release of a task above the
//! ceiling on a processor of a user may make it move once, for 2 s + ipi_latency + 2 (cache_refill + cache_delay).
//!
//! *Clusters.* One processor of the cluster handles a release and notifies another: J += ipi_latency. Interrupts
//! lengthen every section, as its request blocks jobs of its own cluster as well. An interrupt executes on one
//! processor, not on any of the cluster: see [`System::is_interrupt`] and `system/clustered.rs`.
//!
//! The terms are from Brandenburg, *Scheduling and Locking in Multiprocessor Real-Time Operating Systems*, 2011. The
//! interrupts in sections are our own addition. The cost of leaving a section is from Brandenburg et al., *Real-time
//! synchronization on multiprocessors: to block or not to block, to suspend or spin?*, RTAS 2008, whose non-preemptive
//! sections end with a system call if a preemption was delayed. We charge it in the section.

use super::body::{interrupted, is_inner, lengthened, runs, sum};
use super::machine::{Machine, stretched};
use super::objects::Operations;
use crate::rows::mutant::{ChargeMutant, Omission};
use lockwright_model::{
    CpuId, Duration, Invalid, Overhead, Overheads, Protocol, ResourceId, Step, Subject, System, Task, TaskId,
};

/// Returns the system with the overheads of its machine charged to it, for analysis under partitioned or clustered
/// fixed priorities.
///
/// The first tasks of the result are those of `system`, with the same ids. The interrupts follow. The result is meant
/// for the analysis, not for execution. `protocol` governs the resources for which the system names no protocol; it
/// decides where a section executes and which operations it costs.
///
/// # Errors
/// Returns an error if the charged system is not valid: it has too many tasks or steps, a time does not fit, the
/// interrupts leave no time for sections, or a working set is larger than all measured ones.
///
/// # Examples
/// ```
/// use lockwright_analysis::{analyse, charge};
/// use lockwright_model::format::{parse_overheads, parse_system};
/// use lockwright_model::{Duration, Protocol, System};
/// let system = parse_system(
///     r#"
///     [[resource]]
///     name = "bus"
///
///     [[task]]
///     name = "control"
///     period = "10 ms"
///     body = [{ run = "1 ms" }, { lock = "bus" }, { run = "1 ms" }, { unlock = "bus" }]
///
///     [[task]]
///     name = "log"
///     period = "50 ms"
///     body = [{ lock = "bus" }, { run = "4 ms" }, { unlock = "bus" }, { run = "10 ms" }]
///     "#,
/// )
/// .expect("a valid task set");
/// let overheads = parse_overheads("schedule = \"100 us\"\ncontext_switch = \"50 us\"").expect("valid overheads");
/// let charged = charge(&system, &overheads, Protocol::Icpp).expect("the times fit");
/// let response = |system: &System| analyse(system, Protocol::Icpp).tasks[0].response;
/// assert_eq!(response(&system), Some(Duration::from_ms(6)));
/// assert!(response(&charged) > response(&system));
/// ```
pub fn charge(system: &System, overheads: &Overheads, protocol: Protocol) -> Result<System, Invalid> {
    charge_as(system, overheads, protocol, Omission::NOTHING)
}

/// Like [`charge`], without one charge.
///
/// # Errors
/// Returns the errors of [`charge`].
#[cfg(feature = "mutants")]
pub fn charge_mutant(
    system: &System,
    overheads: &Overheads,
    protocol: Protocol,
    mutant: ChargeMutant,
) -> Result<System, Invalid> {
    charge_as(system, overheads, protocol, Omission::of(mutant))
}

fn charge_as(
    system: &System,
    overheads: &Overheads,
    protocol: Protocol,
    omission: Omission<ChargeMutant>,
) -> Result<System, Invalid> {
    // There is nothing to charge. `sensitivity` calls this for each of its steps.
    if overheads.charges_nothing() {
        return Ok(system.clone());
    }
    let system = Operations::new(system, overheads, protocol)?.system(system)?;
    let system = &with_homes(&system)?;
    let machine = Machine { system, overheads };
    let refuse = |subject, message: String, help: &str| Invalid::new(subject, None, message, help);
    let too_long = || {
        let message = "a time that the overheads lengthen does not fit".into();
        refuse(Subject::System, message, "check the units of the overheads")
    };
    let charges = Charges::new(machine, protocol, omission).ok_or_else(too_long)?;
    if let Some(id) = machine.unmeasured() {
        let name = &system.task(id).name;
        let message = format!("the working set of task `{name}` is beyond the last point of `cache_delay`");
        return Err(refuse(Subject::Task(id), message, "also measure the cache delay of the largest working set"));
    }
    machine.refuse_late(charges.late)?;
    let tasks = system.task_ids().map(|id| charges.task(id).ok_or_else(too_long));
    let tasks = tasks.collect::<Result<Vec<Task>, Invalid>>()?;
    // The interrupts of a cluster belong to its first processor.
    let home = |cpu: CpuId| CpuId::new(system.cluster(cpu).trailing_zeros() as usize);
    let interrupts = charges.interrupts.into_iter().map(|task| Task { cpu: home(task.cpu), ..task });
    system.with_interrupts(tasks, interrupts.collect())
}

/// The charges to the tasks of a system. A method returns `None` if a time does not fit, or if the interrupts leave no
/// time.
pub(crate) struct Charges<'a> {
    machine: Machine<'a>,
    protocol: Protocol,
    omission: Omission<ChargeMutant>,
    /// A scheduling decision and a context switch.
    switch: Duration,
    /// The lateness of a release.
    late: Duration,
    interrupts: Vec<Task>,
    operations: Operations,
    /// By CPU: the tasks with the largest working set and with the second largest, and these sizes.
    largest: Vec<[Option<(u32, TaskId)>; 2]>,
}

impl<'a> Charges<'a> {
    /// Returns the charges to a system whose homes are fixed, or that has none.
    pub(crate) fn of(system: &'a System, overheads: &'a Overheads, protocol: Protocol) -> Option<Self> {
        Self::new(Machine { system, overheads }, protocol, Omission::NOTHING)
    }

    fn new(machine: Machine<'a>, protocol: Protocol, omission: Omission<ChargeMutant>) -> Option<Self> {
        let [latency, release, ipi] =
            [Overhead::ReleaseLatency, Overhead::Release, Overhead::IpiLatency].map(|of| machine.cost(of));
        let ipi = omission.unless(ChargeMutant::ReleaseIpi, ipi);
        let late = if machine.overheads.dedicated_interrupts {
            sum(&[latency, machine.queued_releases(omission)?, ipi])?
        } else if machine.system.has_clusters() {
            // The processor that handles the interrupt notifies the one that executes the least urgent job.
            sum(&[latency, release, ipi])?
        } else {
            sum(&[latency, release])?
        };
        let kept = machine.interrupts().into_iter().filter(|(kind, _)| !omission.is(*kind));
        let interrupts = kept.map(|(_, interrupt)| interrupt).collect();
        let mut largest = vec![[None; 2]; machine.system.cpus()];
        for id in machine.system.task_ids() {
            let its = &mut largest[machine.system.task(id).cpu.index()];
            let own = Some((machine.working_set(id), id));
            *its = if own > its[0] { [own, its[0]] } else { [its[0], its[1].max(own)] };
        }
        let operations = Operations::new(machine.system, machine.overheads, protocol).ok()?;
        let (switch, late) = (machine.switch()?, omission.unless(ChargeMutant::Lateness, late));
        Some(Self { machine, protocol, omission, switch, late, interrupts, operations, largest })
    }

    /// Returns the task with all charges.
    fn task(&self, id: TaskId) -> Option<Task> {
        let task = self.machine.system.task(id);
        let (body, wcet) = self.body(id, &task.body)?;
        Some(Task { jitter: task.jitter.checked_add(self.late)?, wcet, body, ..task.clone() })
    }

    /// Returns the body of a task with all charges, and its execution time. The body may differ from that of the system
    /// in execution times: the charges do not depend on other tasks' bodies.
    pub(crate) fn body(&self, id: TaskId, body: &[Step]) -> Option<(Vec<Step>, Duration)> {
        let task = self.machine.system.task(id);
        let preempted = self.omission.unless(ChargeMutant::JobRefill, self.refill(task.cpu, Some(id))?);
        let switches = self.omission.unless(ChargeMutant::JobSwitches, self.switch);
        let job = sum(&[switches, switches, preempted])?;
        let body = lengthened(&self.operations.body(body), job, |resource| self.section(task, resource))?;
        let body = interrupted(&body, |resource, length| self.prolonged(task, resource, length))?;
        let wcet = runs(&body)?;
        Some((body, wcet))
    }

    /// Returns the cost to refill the caches of the task with the largest working set on a processor, except those of
    /// `besides`. On a processor without tasks, `cache_refill` alone counts, for a job from elsewhere.
    fn refill(&self, cpu: CpuId, besides: Option<TaskId>) -> Option<Duration> {
        let mut there = self.largest[cpu.index()].iter().flatten();
        let largest = there.find(|&&(_, id)| Some(id) != besides);
        let delay = largest.map_or(Duration::ZERO, |&(kib, _)| self.machine.overheads.cache_delay.with(kib as usize));
        self.machine.cost(Overhead::CacheRefill).checked_add(self.omission.unless(ChargeMutant::CacheDelay, delay))
    }

    /// Returns the greatest cost of a refill on any processor where the section may execute: for the owner, or for the
    /// job that it preempts there. On a home, that may be a job of another processor, in its section.
    fn refill_of_section(&self, task: &Task, resource: ResourceId) -> Option<Duration> {
        let system = self.machine.system;
        let hosts = places(system, self.protocol, resource, task.cpu);
        let guests = guests(system, self.protocol, resource);
        let places = self.omission.unless(ChargeMutant::Hosts, hosts)
            | self.omission.unless(ChargeMutant::Guests, guests)
            | 1 << task.cpu.index();
        let there = (0..system.cpus()).filter(|cpu| places >> cpu & 1 == 1);
        let refills = there.map(|cpu| self.refill(CpuId::new(cpu), None)).collect::<Option<Vec<_>>>()?;
        Some(refills.into_iter().max().unwrap_or_default())
    }

    /// Returns the costs before a section and in it.
    fn section(&self, task: &Task, resource: ResourceId) -> Option<(Duration, Duration)> {
        let ruling = self.machine.system.protocol_of(resource, self.protocol);
        if self.omission.is(ChargeMutant::InnerSections) && is_inner(&task.body, resource) {
            return Some((Duration::ZERO, Duration::ZERO));
        }
        let of = |overhead| self.machine.cost_under(overhead, ruling);
        let refill = self.refill_of_section(task, resource)?;
        let system_call = self.machine.system_call(ruling)?;
        let [lock, unlock, ipi] = [Overhead::Lock, Overhead::Unlock, Overhead::IpiLatency].map(of);
        let ipi = self.omission.unless(ChargeMutant::SectionIpi, ipi);
        let operations = sum(&[lock, ipi, unlock, of(Overhead::LeaveSection), system_call])?;
        let operations = self.omission.unless(ChargeMutant::Operations, operations);
        let switch = self.omission.unless(ChargeMutant::SectionSwitches, self.switch);
        let filled = self.omission.unless(ChargeMutant::SectionRefills, refill);
        let inside = sum(&[operations, switch, switch, filled, filled])?;
        let back = match ruling.has_homes() {
            true => sum(&[self.switch, ipi, refill, refill, lock, unlock, system_call])?,
            false => Duration::ZERO,
        };
        Some((self.omission.unless(ChargeMutant::Before, sum(&[self.switch, system_call, back])?), inside))
    }

    /// Returns the length of a section with the interrupts and moves during it.
    fn prolonged(&self, task: &Task, resource: ResourceId, length: Duration) -> Option<Duration> {
        let system = self.machine.system;
        // A section on a home of other processors meets interrupts that are not among those of the task's processor.
        let has_home = system.protocol_of(resource, self.protocol).has_homes();
        let is_felt = system.is_global(resource) || system.has_clusters() || has_home;
        if self.omission.is(ChargeMutant::SectionInterrupts) || !is_felt {
            return Some(length);
        }
        let places = places(system, self.protocol, resource, task.cpu);
        let moves = self.moves(task, resource)?;
        let there = self.interrupts.iter().filter(|interrupt| places >> interrupt.cpu.index() & 1 == 1);
        let there: Vec<&Task> = there.chain(&moves).collect();
        // On one processor, the owner executes when the section begins, so earlier interrupts have ended. On several,
        // interrupts that began before may still be in progress.
        let carried =
            if places.count_ones() > 1 { stretched(Duration::ZERO, &there, Duration::ZERO)? } else { Duration::ZERO };
        stretched(length, &there, carried)
    }

    /// Returns, under `mrsp`, the releases that make an owner move or wait for help, as tasks: those of the tasks above
    /// the resource's ceiling on a processor of its users.
    fn moves(&self, task: &Task, resource: ResourceId) -> Option<Vec<Task>> {
        let system = self.machine.system;
        let is_helped = system.protocol_of(resource, self.protocol) == Protocol::Mrsp;
        if self.omission.is(ChargeMutant::Helped) {
            return Some(Vec::new());
        }
        let refill = self.refill_of_section(task, resource)?;
        let each = sum(&[self.switch, self.switch, self.machine.cost(Overhead::IpiLatency), refill, refill])?;
        if !is_helped || each == Duration::ZERO {
            return Some(Vec::new());
        }
        let ceiling = |cpu: CpuId| {
            let there = system.users(resource).iter().map(|&user| system.task(user)).filter(|user| user.cpu == cpu);
            there.map(|user| user.priority).max()
        };
        let is_above = |task: &&Task| ceiling(task.cpu).is_some_and(|ceiling| task.priority > ceiling);
        let release =
            |task: &Task| Some(Task { wcet: each, jitter: task.jitter.checked_add(self.late)?, ..task.clone() });
        system.tasks().iter().filter(is_above).map(release).collect()
    }
}

/// Returns where a section of a task of `cpu` may execute, with one bit per processor.
fn places(system: &System, protocol: Protocol, resource: ResourceId, cpu: CpuId) -> u64 {
    let of = |cpu: CpuId| system.cluster(cpu);
    match system.protocol_of(resource, protocol) {
        homes if homes.has_homes() => of(system.home(resource)),
        Protocol::Mrsp => system.users(resource).iter().fold(0, |all, &user| all | of(system.task(user).cpu)),
        _ => of(cpu),
    }
}

/// Returns the processors of the tasks whose sections execute on the home of `resource`, with one bit per processor, or
/// 0 if sections on it do not execute on a home.
fn guests(system: &System, protocol: Protocol, resource: ResourceId) -> u64 {
    let has_home = |id| system.protocol_of(id, protocol).has_homes();
    let home = has_home(resource).then(|| system.home(resource));
    let there = system.resource_ids().filter(|&id| has_home(id) && Some(system.home(id)) == home);
    there.flat_map(|id| system.users(id)).fold(0, |all, &user| all | 1 << system.task(user).cpu.index())
}

/// Fixes the homes that are derived from execution times, so that they stay the same when execution times grow.
fn with_homes(system: &System) -> Result<System, Invalid> {
    let mut resources = system.resources().to_vec();
    for (id, resource) in system.resource_ids().zip(&mut resources) {
        if system.is_global(id) {
            resource.home = Some(system.home(id));
        }
    }
    if system.has_clusters() || resources == system.resources() {
        return Ok(system.clone());
    }
    let tasks = system.tasks().to_vec();
    let homes = System::new(system.name().into(), system.cpus(), system.protocol(), resources, tasks)?;
    let working_sets = system.task_ids().map(|id| system.working_set(id)).collect();
    Ok(homes.under(system.scheduler()).with_working_sets(working_sets))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse;
    use lockwright_model::Protocol;
    use lockwright_model::format::{parse_overheads, parse_system};

    fn ns(time: u64) -> Duration {
        Duration::from_ns(time)
    }

    const TWO: &str = r#"
        [[resource]]
        name = "r"
        [[task]]
        name = "a"
        period = "1000 ns"
        body = [{ run = "10 ns" }, { lock = "r" }, { run = "20 ns" }, { unlock = "r" }]
        [[task]]
        name = "b"
        period = "5000 ns"
        wcet = "500 ns"
        requests = [{ resource = "r", length = "30 ns" }]
    "#;

    const ALL: &str = r#"
        tick_period = "400 ns"
        tick = "4 ns"
        release = "3 ns"
        release_latency = "2 ns"
        schedule = "8 ns"
        context_switch = "2 ns"
        cache_refill = "5 ns"
        lock = "6 ns"
        unlock = "7 ns"
        leave_section = "3 ns"
        syscall_in = "1 ns"
        syscall_out = "1 ns"
        ipi_latency = "9 ns"
    "#;

    fn charge(system: &System, overheads: &Overheads) -> Result<System, Invalid> {
        super::charge(system, overheads, Protocol::Mpcp)
    }

    /// The lock operation counts in the section: under `ics` a section that is executed again enters again, and
    /// elsewhere a task raises its priority before its request. It takes 15 each time.
    #[test]
    fn entering_a_section_is_part_of_it() {
        let system = parse_system(TWO).unwrap();
        let overheads = parse_overheads("lock = \"5 ns\"").unwrap();
        for protocol in [Protocol::Ics, Protocol::Icpp] {
            let body = super::charge(&system, &overheads, protocol).unwrap().task(TaskId(0)).body.clone();
            assert_eq!((body[0], body[2]), (Step::Run(ns(10)), Step::Run(ns(25))));
        }
    }

    #[test]
    fn each_section_costs_what_its_protocol_costs() {
        let two = TWO.replace("name = \"r\"", "name = \"r\"\nprotocol = \"srp\"\n[[resource]]\nname = \"q\"");
        let two = two.replace("resource = \"r\"", "resource = \"q\"");
        let system = parse_system(&two).unwrap();
        let overheads = parse_overheads(
            "unlock = \"1 ns\"\nleave_section = \"50 ns\"\n[lock]\nlock = \"2 ns\"\n[lock.srp]\nlock = \"100 ns\"\n\
             leave_section = \"7 ns\"\n[lock.pip]\nunlock = \"1000 ns\"\nipi_latency = \"4 ns\"\nsyscall_in = \"3 ns\"",
        )
        .unwrap();
        let lengths = |protocol| {
            let charged = super::charge(&system, &overheads, protocol).unwrap();
            [0, 1].map(|task| charged.requests(TaskId(task))[0].length.as_ns())
        };
        assert_eq!(lengths(Protocol::Icpp), [20 + 100 + 1 + 7, 30 + 2 + 1 + 50]);
        assert_eq!(lengths(Protocol::Pip), [20 + 100 + 1 + 7, 30 + 2 + 1000 + 50 + 4 + 3]);
    }

    #[test]
    fn every_term_has_its_place() {
        let system = parse_system(TWO).unwrap();
        let charged = charge(&system, &parse_overheads(ALL).unwrap()).unwrap();
        let a = charged.task(TaskId(0));
        // The job: 2 * 10 + 5. Before the section: 10 + 2. In the section: 6 + 2 * 10 + 9 + 2 + 7 + 3 + 2 * 5.
        let (begun, inside) = (ns(25 + 10 + 12), ns(57 + 20));
        assert_eq!(a.body[0], Step::Run(begun));
        assert_eq!(a.body[2], Step::Run(inside));
        assert_eq!((a.jitter, a.wcet), (ns(5), ns(47 + 77)));
        let names: Vec<&str> = charged.tasks()[2..].iter().map(|task| task.name.as_str()).collect();
        assert_eq!(names, ["the tick of CPU 0", "the release of a", "the release of b"]);
        assert_eq!((charged.tasks()[2].wcet, charged.tasks()[2].jitter), (ns(4), ns(2)));
        // To a home and back: 10 + 9 + 2 * 5, and the operations: 6 + 7 + 2.
        let two = TWO.replace("name = \"b\"", "name = \"b\"\ncpu = 1").replace("name = \"a\"", "name = \"a\"\ncpu = 0");
        let system = parse_system(&format!("[platform]\ncpus = 2\n{two}")).unwrap();
        let longer = |protocol| {
            let charged = super::charge(&system, &parse_overheads(ALL).unwrap(), protocol).unwrap();
            (charged.task(TaskId(0)).body[0], charged.home(ResourceId(0)))
        };
        assert_eq!(longer(Protocol::Dpcp), (Step::Run(ns(10 + 25 + 12 + 29 + 15)), system.home(ResourceId(0))));
        assert_eq!(longer(Protocol::Mpcp).0, Step::Run(ns(10 + 25 + 12)));
        // Without overheads, the system stays as it is.
        assert_eq!(charge(&system, &Overheads::default()).unwrap(), system);
    }

    #[test]
    fn working_sets_of_others_are_filled_again() {
        let with = |a: &str, b: &str| {
            let text = TWO.replace("period = \"1000 ns\"", &format!("period = \"1000 ns\"\n{a}"));
            parse_system(&text.replace("period = \"5000 ns\"", &format!("period = \"5000 ns\"\n{b}"))).unwrap()
        };
        let curve = parse_overheads("cache_delay = [[0, \"0 ns\"], [10, \"10 ns\"], [20, \"40 ns\"]]").unwrap();
        let costs = |system: &System| {
            let charged = charge(system, &curve).unwrap();
            [0, 1].map(|task| charged.task(TaskId(task)).wcet.as_ns() - system.task(TaskId(task)).wcet.as_ns())
        };
        // The job is charged with the refill of a task that it preempts. The request is charged twice with the largest
        // refill of all.
        assert_eq!(costs(&with("working_set_kib = 5", "working_set_kib = 15")), [25 + 50, 5 + 50]);
        assert_eq!(costs(&with("working_set_kib = 5", "working_set_kib = 0")), [10, 5 + 10]);
        // A task without a given working set counts with the largest measured one.
        assert_eq!(costs(&with("", "working_set_kib = 10")), [10 + 80, 40 + 80]);
        let beyond = charge(&with("working_set_kib = 21", ""), &curve).unwrap_err();
        assert!(beyond.message.contains("`a` is beyond the last point"), "{}", beyond.message);
        // A single duration holds for all sizes.
        let flat = parse_overheads("cache_delay = \"7 ns\"").unwrap();
        let all = charge(&with("working_set_kib = 5000", ""), &flat).unwrap();
        assert_eq!(all.task(TaskId(0)).wcet.as_ns(), 30 + 7 + 14);
    }

    /// Ticks and releases have the same priority, and no requests.
    #[test]
    fn interrupts_leave_the_bounds_under_mrsp() {
        let two = TWO.replace("name = \"b\"", "name = \"b\"\ncpu = 1").replace("name = \"a\"", "name = \"a\"\ncpu = 0");
        let system = parse_system(&format!("[platform]\ncpus = 2\n{two}")).unwrap();
        let charged = super::charge(&system, &parse_overheads(ALL).unwrap(), Protocol::Mrsp).unwrap();
        let analysis = analyse(&charged, Protocol::Mrsp);
        assert!(analysis.tasks.iter().all(|task| task.response.is_some()), "{analysis:?}");
    }

    #[test]
    fn each_overhead_lengthens_a_response() {
        let system = parse_system(TWO).unwrap();
        let response = |text: &str| {
            let charged = charge(&system, &parse_overheads(text).unwrap()).unwrap();
            analyse(&charged, Protocol::Icpp).tasks[1].response.unwrap()
        };
        let free = response("");
        for line in ALL.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("tick")) {
            assert!(response(line) > free, "{line}");
        }
        assert!(response("tick = \"4 ns\"\ntick_period = \"400 ns\"") > free);
        assert!(response("dedicated_interrupts = true\nrelease = \"3 ns\"\nipi_latency = \"9 ns\"") > free);
    }

    #[test]
    fn sections_across_processors_hold_their_interrupts() {
        let two = TWO.replace("name = \"b\"", "name = \"b\"\ncpu = 1").replace("name = \"a\"", "name = \"a\"\ncpu = 0");
        let system = parse_system(&format!("[platform]\ncpus = 2\n{two}")).unwrap();
        let charged = charge(&system, &parse_overheads("tick = \"4 ns\"\ntick_period = \"25 ns\"").unwrap()).unwrap();
        // 30 ns and two ticks take 38 ns, and a third tick does not fall into that: 38 in 50.
        assert_eq!(charged.requests(TaskId(1))[0].length, ns(38));
        let local =
            charge(&parse_system(TWO).unwrap(), &parse_overheads("tick = \"4 ns\"\ntick_period = \"25 ns\"").unwrap());
        assert_eq!(local.unwrap().requests(TaskId(1))[0].length, ns(30));
        // No task of another CPU needs the resource, but its home is another CPU.
        for (home, length) in [(0, 30), (1, 38)] {
            let away = TWO.replace("name = \"r\"", &format!("name = \"r\"\nhome = {home}"));
            let away = away.replace("period =", "cpu = 0\nperiod =");
            let away = parse_system(&format!("[platform]\ncpus = 2\n{away}")).unwrap();
            let ticks = parse_overheads("tick = \"4 ns\"\ntick_period = \"25 ns\"").unwrap();
            for protocol in [Protocol::Dpcp, Protocol::Dflp] {
                let charged = super::charge(&away, &ticks, protocol).unwrap();
                assert_eq!(charged.requests(TaskId(1))[0].length, ns(length), "{protocol}, home {home}");
            }
        }
        // Interrupts that leave no time are refused at once.
        let mut full = parse_overheads("tick = \"4 ns\"\ntick_period = \"25 ns\"").unwrap();
        full.tick_period = ns(4);
        assert!(charge(&system, &full).is_err());
    }
}
