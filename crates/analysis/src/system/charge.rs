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
//! can preempt. The cache delay of a request is that of the largest working set of all tasks there. A task without a
//! given working set counts with the largest size that was measured.
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
//! processor, not on any of the cluster: see [`System::is_interrupt`] and `clustered.rs`.
//!
//! The terms are from Brandenburg, *Scheduling and Locking in Multiprocessor Real-Time Operating Systems*, 2011. The
//! interrupts in sections are our own addition. The cost of leaving a section is from Brandenburg et al., *Real-time
//! synchronization on multiprocessors: to block or not to block, to suspend or spin?*, RTAS 2008, whose non-preemptive
//! sections end with a system call if a preemption was delayed. We charge it in the section.

use lockwright_model::{
    CpuId, Duration, Invalid, Overhead, Overheads, Priority, Protocol, ResourceId, Step, Subject, System, Task, TaskId,
};

/// The most rounds in the iteration that counts the interrupts of a section.
const ROUNDS_MAX: u32 = 1_000;

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
pub fn charge(system: &System, overheads: &Overheads, protocol: Protocol) -> Result<System, Invalid> {
    charge_as(system, overheads, protocol, None)
}

/// A charge that a mutant omits. Tests use the mutants to show that they would detect the missing charge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(not(feature = "mutants"), allow(dead_code))]
pub enum ChargeMutant {
    /// The two switches of each job.
    JobSwitches,
    /// The cache refill after a job that preempted another.
    JobRefill,
    /// The lateness of a release.
    Lateness,
    /// The timer ticks.
    Ticks,
    /// The interrupts of releases.
    Releases,
    /// The operations in a section.
    Operations,
    /// The costs before a section.
    Before,
    /// The switches in a section.
    SectionSwitches,
    /// The cache refills in a section.
    SectionRefills,
    /// The interrupts during a section.
    SectionInterrupts,
    /// The moves of an owner whose section other jobs help to finish, under `mrsp`.
    Helped,
}

#[cfg(feature = "mutants")]
impl ChargeMutant {
    /// Every mutant.
    pub const ALL: [Self; 11] = [
        Self::JobSwitches,
        Self::JobRefill,
        Self::Lateness,
        Self::Ticks,
        Self::Releases,
        Self::Operations,
        Self::Before,
        Self::SectionSwitches,
        Self::SectionRefills,
        Self::SectionInterrupts,
        Self::Helped,
    ];
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
    charge_as(system, overheads, protocol, Some(mutant))
}

fn charge_as(
    system: &System,
    overheads: &Overheads,
    protocol: Protocol,
    mutant: Option<ChargeMutant>,
) -> Result<System, Invalid> {
    // There is nothing to charge. `sensitivity` calls this for each of its steps.
    if *overheads == Overheads::default() {
        return Ok(system.clone());
    }
    let unless = |part, time: Duration| if mutant == Some(part) { Duration::ZERO } else { time };
    let system = &with_homes(system)?;
    let of = |overhead| overheads.cost(overhead).with(system.tasks().len());
    let too_long = || refuse("a time that the overheads lengthen does not fit", "check the units of the overheads");
    let switch = sum(&[of(Overhead::Schedule), of(Overhead::ContextSwitch)]).ok_or_else(too_long)?;
    let refill = of(Overhead::CacheRefill);
    let ipi = of(Overhead::IpiLatency);
    let late = if overheads.dedicated_interrupts {
        sum(&[of(Overhead::ReleaseLatency), queued_releases(system, overheads).ok_or_else(too_long)?, ipi])
    } else if system.has_clusters() {
        // The processor that handles the interrupt notifies the one that executes the least urgent job.
        sum(&[of(Overhead::ReleaseLatency), of(Overhead::Release), ipi])
    } else {
        sum(&[of(Overhead::ReleaseLatency), of(Overhead::Release)])
    };
    let late = unless(ChargeMutant::Lateness, late.ok_or_else(too_long)?);

    let mut interrupts = interrupts(system, overheads);
    interrupts.retain(|(kind, _)| mutant != Some(*kind));
    let largest = |cpu: CpuId, besides: Option<TaskId>| {
        let there = system.task_ids().filter(|&id| system.task(id).cpu == cpu && Some(id) != besides);
        there.map(|id| working_set(system, overheads, id)).max()
    };
    let delay = |largest: Option<u32>| largest.map_or(Duration::ZERO, |kib| overheads.cache_delay.with(kib as usize));
    if let Some(id) = unmeasured(system, overheads) {
        return Err(Invalid {
            subject: Subject::Task(id),
            key: None,
            message: format!(
                "the working set of task `{}` is beyond the last point of `cache_delay`",
                system.task(id).name
            ),
            help: "measure the cache delay of the largest working set as well".into(),
        });
    }
    // By processor: the cost to refill the caches of the task with the largest working set there. On a processor
    // without tasks, `cache_refill` alone counts, for a job from elsewhere.
    let all = |cpu| refill.checked_add(delay(largest(cpu, None)));
    let mut tasks = Vec::with_capacity(system.tasks().len());
    for (id, task) in system.task_ids().zip(system.tasks()) {
        let others = delay(largest(task.cpu, Some(id)));
        let preempted = unless(ChargeMutant::JobRefill, refill.checked_add(others).ok_or_else(too_long)?);
        let switches = unless(ChargeMutant::JobSwitches, switch);
        let job = sum(&[switches, switches, preempted]).ok_or_else(too_long)?;
        let mut charged = task.clone();
        charged.jitter = task.jitter.checked_add(late).ok_or_else(too_long)?;
        // The greatest cost of a refill on any processor where the section may execute: for the owner, or for the job
        // that it preempts there.
        let filled = |resource| {
            let places = places(system, protocol, resource, task.cpu) | 1 << task.cpu.index();
            let there = (0..system.cpus()).filter(|cpu| places >> cpu & 1 == 1).map(|cpu| all(CpuId::new(cpu)));
            there.collect::<Option<Vec<_>>>().map(|all| all.into_iter().max().unwrap_or_default())
        };
        let section = |resource| {
            let ruling = system.protocol_of(resource, protocol);
            let of = |overhead| overheads.cost_under(overhead, ruling).with(system.tasks().len());
            let filled = filled(resource)?;
            let system_call = of(Overhead::SyscallIn).checked_add(of(Overhead::SyscallOut))?;
            let ipi = of(Overhead::IpiLatency);
            let operations = [of(Overhead::Lock), ipi, of(Overhead::Unlock), of(Overhead::LeaveSection), system_call];
            let (switches, filled_there) =
                (unless(ChargeMutant::SectionSwitches, switch), unless(ChargeMutant::SectionRefills, filled));
            let inside = [unless(ChargeMutant::Operations, sum(&operations)?), switches, switches];
            let inside = sum(&[sum(&inside)?, filled_there, filled_there])?;
            let back = match ruling.has_homes() {
                true => sum(&[switch, ipi, filled, filled, of(Overhead::Lock), of(Overhead::Unlock), system_call])?,
                false => Duration::ZERO,
            };
            Some((unless(ChargeMutant::Before, sum(&[switch, system_call, back])?), inside))
        };
        let body = lengthened(&task.body, job, section).ok_or_else(too_long)?;
        let stretch = |resource, length: Duration| {
            if mutant == Some(ChargeMutant::SectionInterrupts) || !(system.is_global(resource) || system.has_clusters())
            {
                return Some(length);
            }
            let places = places(system, protocol, resource, task.cpu);
            let there = |interrupt: &&Task| places >> interrupt.cpu.index() & 1 == 1;
            let mut there: Vec<&Task> = interrupts.iter().map(|(_, interrupt)| interrupt).filter(there).collect();
            let moves = if mutant == Some(ChargeMutant::Helped) {
                Vec::new()
            } else {
                let each = sum(&[switch, switch, ipi, filled(resource)?, filled(resource)?])?;
                helped(system, protocol, resource, late, each)?
            };
            there.extend(&moves);
            // On one processor, the owner executes when the section begins, so earlier interrupts have ended. On
            // several, interrupts that began before may still be in progress.
            let carried = if places.count_ones() > 1 {
                stretched(Duration::ZERO, &there, Duration::ZERO)?
            } else {
                Duration::ZERO
            };
            stretched(length, &there, carried)
        };
        charged.body = interrupted(&body, stretch).ok_or_else(too_long)?;
        charged.wcet = runs(&charged.body).ok_or_else(too_long)?;
        tasks.push(charged);
    }
    // The interrupts of a cluster belong to its first processor.
    let home = |cpu: CpuId| CpuId::new(system.cluster(cpu).trailing_zeros() as usize);
    let interrupts = interrupts.into_iter().map(|(_, task)| Task { cpu: home(task.cpu), ..task });
    system.with_interrupts(tasks, interrupts.collect())
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

/// Returns, under `mrsp`, the releases that make an owner move or wait for help, as tasks: those of the tasks above the
/// resource's ceiling on a processor of its users. Each prolongs the section by `each`.
fn helped(
    system: &System,
    protocol: Protocol,
    resource: ResourceId,
    late: Duration,
    each: Duration,
) -> Option<Vec<Task>> {
    if system.protocol_of(resource, protocol) != Protocol::Mrsp || each == Duration::ZERO {
        return Some(Vec::new());
    }
    let ceiling = |cpu: CpuId| {
        let there = system.users(resource).iter().map(|&user| system.task(user)).filter(|user| user.cpu == cpu);
        there.map(|user| user.priority).max()
    };
    let above = system.tasks().iter().filter(|task| ceiling(task.cpu).is_some_and(|ceiling| task.priority > ceiling));
    above.map(|task| Some(Task { wcet: each, jitter: task.jitter.checked_add(late)?, ..task.clone() })).collect()
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

/// Returns the working set for which the cache delay of a task counts, in KiB: its own, or that of the last measured
/// point.
pub(crate) fn working_set(system: &System, overheads: &Overheads, task: TaskId) -> u32 {
    let largest = || overheads.cache_delay.points().last().map_or(0, |&(kib, _)| kib);
    system.working_set(task).unwrap_or_else(largest)
}

/// Returns a task whose working set is larger than all those for which the cache delay was measured.
pub(crate) fn unmeasured(system: &System, overheads: &Overheads) -> Option<TaskId> {
    system.task_ids().find(|&id| !overheads.cache_delay.covers(working_set(system, overheads, id)))
}

/// Returns the time in which one processor handles the releases of all tasks, one after the other.
pub(crate) fn queued_releases(system: &System, overheads: &Overheads) -> Option<Duration> {
    let tasks = system.tasks().len();
    let ns = overheads.cost(Overhead::Release).with(tasks).as_ns().checked_mul(tasks as u64)?;
    Duration::ZERO.checked_add(Duration::from_ns(ns))
}

fn refuse(message: &str, help: &str) -> Invalid {
    Invalid { subject: Subject::System, key: None, message: message.into(), help: help.into() }
}

/// Returns the interrupts as tasks above all others. An interrupt that takes no time is omitted.
pub(crate) fn interrupts(system: &System, overheads: &Overheads) -> Vec<(ChargeMutant, Task)> {
    let of = |overhead| overheads.cost(overhead).with(system.tasks().len());
    let jitter = of(Overhead::ReleaseLatency);
    let interrupt = |name: String, cpu: CpuId, period: Duration, wcet: Duration, jitter: Duration| Task {
        name,
        cpu,
        priority: Priority::BASE_MAX,
        period,
        deadline: period,
        jitter,
        offset: Duration::ZERO,
        wcet,
        body: vec![Step::Run(wcet)],
    };
    let mut tasks = Vec::new();
    if of(Overhead::Tick) != Duration::ZERO {
        for cpu in (0..system.cpus()).filter_map(|cpu| u16::try_from(cpu).ok()) {
            let name = unused(system, format!("the tick of CPU {cpu}"));
            // A tick that is later than this coincides with the next one, and the kernel merges the two.
            let late = jitter.min(overheads.tick_period.saturating_sub(of(Overhead::Tick)));
            let tick = interrupt(name, CpuId(cpu), overheads.tick_period, of(Overhead::Tick), late);
            tasks.push((ChargeMutant::Ticks, tick));
        }
    }
    if of(Overhead::Release) != Duration::ZERO && !overheads.dedicated_interrupts {
        for task in system.tasks() {
            let name = unused(system, format!("the release of {}", task.name));
            // If the jobs of a task are released late, so are their interrupts.
            let jitter = task.jitter.checked_add(jitter).unwrap_or(task.jitter);
            let release = interrupt(name, task.cpu, task.period, of(Overhead::Release), jitter);
            tasks.push((ChargeMutant::Releases, release));
        }
    }
    tasks
}

/// Returns the name, changed if necessary so that no task of the system has it.
fn unused(system: &System, mut name: String) -> String {
    // BOUND: one more round than there are tasks.
    while system.tasks().iter().any(|task| task.name == name) {
        name.push('\'');
    }
    name
}

pub(crate) fn sum(parts: &[Duration]) -> Option<Duration> {
    parts.iter().try_fold(Duration::ZERO, |sum, part| sum.checked_add(*part))
}

pub(crate) fn runs(body: &[Step]) -> Option<Duration> {
    body.iter().try_fold(Duration::ZERO, |sum, step| match step {
        Step::Run(time) => sum.checked_add(*time),
        Step::Lock(_) | Step::Unlock(_) => Some(sum),
    })
}

/// Appends a run, or prolongs the last step if that is a run.
fn run(body: &mut Vec<Step>, time: Duration) -> Option<()> {
    if let Some(Step::Run(last)) = body.last_mut() {
        *last = last.checked_add(time)?;
    } else if time != Duration::ZERO {
        body.push(Step::Run(time));
    }
    Some(())
}

/// Returns the body with a run of `job` at its start, and with the two runs of `section` before and in each section.
pub(crate) fn lengthened(
    body: &[Step],
    job: Duration,
    section: impl Fn(ResourceId) -> Option<(Duration, Duration)>,
) -> Option<Vec<Step>> {
    let mut longer = Vec::with_capacity(body.len() + 1);
    run(&mut longer, job)?;
    for &step in body {
        match step {
            Step::Run(time) => run(&mut longer, time)?,
            Step::Lock(resource) => {
                let (before, inside) = section(resource)?;
                run(&mut longer, before)?;
                longer.push(step);
                run(&mut longer, inside)?;
            }
            Step::Unlock(_) => longer.push(step),
        }
    }
    Some(longer)
}

/// Returns the body with each section prolonged to the length that `stretch` returns, inner sections first. Returns
/// `None` if `stretch` does.
fn interrupted(body: &[Step], stretch: impl Fn(ResourceId, Duration) -> Option<Duration>) -> Option<Vec<Step>> {
    let mut longer: Vec<Step> = Vec::with_capacity(body.len());
    // The places where the open sections began.
    let mut open: Vec<usize> = Vec::new();
    for &step in body {
        match step {
            Step::Lock(_) => open.push(longer.len()),
            Step::Unlock(resource) => {
                let begun = open.pop().unwrap_or(0);
                let length = runs(&longer[begun..])?;
                let more = stretch(resource, length)?.checked_sub(length)?;
                run(&mut longer, more)?;
            }
            Step::Run(_) => {}
        }
        longer.push(step);
    }
    Some(longer)
}

/// Returns the time that `length` of execution takes with interrupts in between. Interrupts that came up to `carried`
/// before it may still be pending. For an execution of no length, it is the longest time that interrupts alone may
/// last.
///
/// Returns `None` if the interrupts leave no time.
pub(crate) fn stretched(length: Duration, interrupts: &[&Task], carried: Duration) -> Option<Duration> {
    let all = || interrupts.iter().try_fold(0_u64, |sum, interrupt| sum.checked_add(interrupt.wcet.as_ns()));
    let mut whole = if length == Duration::ZERO { all()? } else { length.as_ns() };
    for _ in 0..ROUNDS_MAX {
        let next = interrupts.iter().try_fold(length.as_ns(), |sum, interrupt| {
            let window = whole.checked_add(interrupt.jitter.as_ns())?.checked_add(carried.as_ns())?;
            let times = window.div_ceil(interrupt.period.as_ns().max(1));
            sum.checked_add(times.checked_mul(interrupt.wcet.as_ns())?)
        })?;
        if next == whole {
            return Some(Duration::from_ns(whole));
        }
        whole = next;
    }
    None
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
        // Interrupts that leave no time are refused at once.
        assert!(charge(&system, &parse_overheads("tick = \"25 ns\"\ntick_period = \"25 ns\"").unwrap()).is_err());
    }
}
