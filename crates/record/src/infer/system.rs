//! The task set of the inferred tasks.

use super::choices::Choices;
use super::inferred::{Inferred, LeftOut};
use super::period::Regularity;
use super::remarks;
use super::task::InferredTask;
use crate::event::{EventKind, Policy};
use crate::history::{History, rank};
use crate::recording::{MutexProtocol, ObjectId, ObjectKind, Recording};
use crate::texts::{jobs, times};
use lockwright_model::{
    CPUS_MAX, CpuId, Duration, Priority, Protocol, RESOURCES_MAX, Resource, ResourceId, Scheduler, Step, System,
    TASKS_MAX, Task,
};
use std::collections::{BTreeMap, BTreeSet};

/// Makes a task set of the tasks, as far as that is possible.
pub(super) fn assemble(
    recording: &Recording,
    histories: &[History],
    tasks: Vec<InferredTask>,
    left_out: Vec<LeftOut>,
    choices: &Choices,
) -> Inferred {
    let used: BTreeSet<ObjectId> = tasks.iter().flat_map(|task| task.body.objects()).collect();
    let objects: Vec<ObjectId> = used.into_iter().collect();
    let system = system(recording, &tasks, &objects, choices);
    let warnings = warnings(recording, histories, &tasks, &left_out, &objects);
    let head = remarks::head(recording, &tasks, &left_out, choices);
    Inferred { system, tasks, left_out, objects, warnings, head, choices: choices.clone() }
}

fn system(
    recording: &Recording,
    tasks: &[InferredTask],
    objects: &[ObjectId],
    choices: &Choices,
) -> Result<System, String> {
    if !recording.switches {
        return Err("switches of threads were not recorded, so execution times are unknown".into());
    }
    if tasks.is_empty() {
        return Err("no thread has recognisable jobs".into());
    }
    for (what, count, most) in [("tasks", tasks.len(), TASKS_MAX), ("resources", objects.len(), RESOURCES_MAX)] {
        if count > most {
            return Err(format!("the program has {count} {what}, and a task set has at most {most}"));
        }
    }
    let is_global = is_global(tasks);
    let highest = tasks.iter().map(|task| task.cpu.0).max().unwrap_or(0) as usize;
    let cpus = if is_global { cpus_of(tasks).len() } else { highest + 1 };
    if cpus > CPUS_MAX {
        return Err(format!("a task executes on CPU {highest}, and a task set has at most {CPUS_MAX} CPUs"));
    }
    let names = unique(tasks.iter().map(|task| recording.thread_name(task.thread)));
    let first = tasks.iter().filter_map(first_release).min().unwrap_or(0);
    let model_tasks: Result<Vec<Task>, String> = tasks
        .iter()
        .zip(names)
        .map(|(task, name)| {
            let cpu = if is_global { 0 } else { task.cpu.0 as usize };
            model_task(task, name, CpuId::new(cpu), objects, first, choices)
                .map_err(|why| format!("`{}` cannot be expressed: {why}", recording.thread_name(task.thread)))
        })
        .collect();
    let model_tasks = model_tasks?;
    let protocol = protocol_seen(recording, objects);
    let names = unique(objects.iter().map(|&object| recording.object_name(object)));
    let resources = objects.iter().zip(names).enumerate().map(|(index, (&object, name))| {
        let own = protocol_of(recording, object);
        let top = model_tasks.iter().filter(|task| uses(task, ResourceId::new(index))).map(|task| task.priority).max();
        let ceiling = ceiling_of(recording, object).filter(|&ceiling| top.is_some_and(|top| top < ceiling));
        let mut resource = Resource::new(name);
        (resource.protocol, resource.ceiling) = (own.filter(|_| own != protocol), ceiling);
        resource
    });
    let resources: Vec<Resource> = resources.collect();
    let name = recording.program.first().map_or("", |path| path.rsplit('/').next().unwrap_or(path));
    let system = System::new(name.into(), cpus, protocol, resources, model_tasks).map_err(|why| why.to_string())?;
    Ok(match tasks.iter().all(is_deadline) {
        true => system.under(if is_global { Scheduler::GEdf } else { Scheduler::PEdf }),
        false => system,
    })
}

fn is_deadline(task: &InferredTask) -> bool {
    matches!(task.policy, Policy::Deadline { .. })
}

/// Whether the tasks share several CPUs: threads under `SCHED_DEADLINE` are bound to one only in a cpuset of their own.
/// Only the number of the CPUs counts then.
fn is_global(tasks: &[InferredTask]) -> bool {
    tasks.iter().all(is_deadline) && cpus_of(tasks).len() > 1 && !tasks.iter().all(|task| task.cpu.1)
}

/// The CPUs of the tasks.
fn cpus_of(tasks: &[InferredTask]) -> BTreeSet<u32> {
    tasks.iter().map(|task| task.cpu.0).collect()
}

/// The first known release of a task.
fn first_release(task: &InferredTask) -> Option<i64> {
    task.jobs.iter().find(|job| job.is_release_known).map(|job| job.release_ns)
}

fn model_task(
    task: &InferredTask,
    name: String,
    cpu: CpuId,
    objects: &[ObjectId],
    first_ns: i64,
    choices: &Choices,
) -> Result<Task, String> {
    let resource = |object: ObjectId| ResourceId::new(objects.binary_search(&object).unwrap_or(0));
    let body = task.body.steps(choices.margin, &resource);
    let run = |step: &Step| match step {
        Step::Run(time) => Some(*time),
        Step::Lock(_) | Step::Read(_) | Step::Unlock(_) => None,
    };
    let wcet = body.iter().filter_map(run).try_fold(Duration::ZERO, Duration::checked_add);
    let period = task.period();
    let deadline = match task.policy {
        Policy::Deadline { deadline_ns, .. } if deadline_ns > 0 => deadline_ns.min(period),
        _ => period,
    };
    let release = first_release(task).unwrap_or(first_ns);
    let offset = u64::try_from(release.saturating_sub(first_ns)).unwrap_or(0) % period;
    Ok(Task {
        name,
        cpu,
        priority: Priority::base(u32::from(rank(task.policy))),
        period: Duration::from_ns(period),
        deadline: Duration::from_ns(deadline),
        jitter: Duration::ZERO,
        offset: if task.regularity == Regularity::Sporadic { Duration::ZERO } else { Duration::from_ns(offset) },
        wcet: wcet.ok_or("its execution time is too long")?,
        body,
    })
}

fn uses(task: &Task, resource: ResourceId) -> bool {
    task.body.iter().any(|step| step.acquired() == Some(resource))
}

/// The protocol of most resources; the first of several.
fn protocol_seen(recording: &Recording, objects: &[ObjectId]) -> Option<Protocol> {
    let mut counts: BTreeMap<&str, (usize, Protocol)> = BTreeMap::new();
    for protocol in objects.iter().filter_map(|&object| protocol_of(recording, object)) {
        counts.entry(protocol.name()).or_insert((0, protocol)).0 += 1;
    }
    let most = counts.values().map(|(count, _)| *count).max()?;
    counts.into_values().find(|(count, _)| *count == most).map(|(_, protocol)| protocol)
}

/// The protocol of a lock. Locks without a protocol of their own are plain.
fn protocol_of(recording: &Recording, object: ObjectId) -> Option<Protocol> {
    Some(match recording.objects.get(object as usize)?.kind {
        ObjectKind::Mutex { protocol: MutexProtocol::Inherit, .. } => Protocol::Pip,
        ObjectKind::Mutex { protocol: MutexProtocol::Protect(_), .. } => Protocol::Icpp,
        _ => Protocol::None,
    })
}

fn ceiling_of(recording: &Recording, object: ObjectId) -> Option<Priority> {
    match recording.objects.get(object as usize)?.kind {
        ObjectKind::Mutex { protocol: MutexProtocol::Protect(ceiling), .. } => Some(Priority::base(ceiling.into())),
        _ => None,
    }
}

/// The names, with numbers behind those that were there before or are empty.
fn unique(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut known = BTreeSet::new();
    let mut unique = Vec::new();
    for name in names {
        let mut own = if name.is_empty() { "unnamed".to_owned() } else { name.clone() };
        let mut number = 2;
        // BOUND: one more than the names before.
        while !known.insert(own.clone()) {
            own = format!("{name}-{number}");
            number += 1;
        }
        unique.push(own);
    }
    unique
}

/// The share of a task's execution outside its jobs that is told, in thousandths.
const OUTSIDE_PERMILLE: u128 = 50;

/// Returns the observations that the task set does not express.
fn warnings(
    recording: &Recording,
    histories: &[History],
    tasks: &[InferredTask],
    left_out: &[LeftOut],
    objects: &[ObjectId],
) -> Vec<String> {
    let mut warnings = Vec::new();
    if recording.unrecorded_threads > 0 {
        let threads = match recording.unrecorded_threads {
            1 => "1 thread".to_owned(),
            several => format!("{several} threads"),
        };
        warnings.push(format!(
            "the locks and waits of {threads} are missing: there was no memory for them, or too many threads"
        ));
    }
    if recording.lost > 0 {
        warnings.push(format!("{} events were lost: jobs and sections may be longer than they appear", recording.lost));
    }
    if !recording.complete {
        warnings.push("the recording ends before the end of the program".into());
    }
    for task in tasks {
        let name = recording.thread_name(task.thread);
        if let (waits @ 1.., longest) = task.suspensions {
            let longest = Duration::from_ns(longest);
            warnings.push(format!(
                "the jobs of `{name}` waited for something that is not a recorded lock, {}, up to {longest} in one job: bounds \
                 do not cover such waits",
                times(waits)
            ));
        }
        let executed_ns = histories.get(task.thread as usize).map_or(0, |history| history.executed_ns);
        let permille = (u128::from(task.outside_ns) * 1000).checked_div(executed_ns.into()).unwrap_or(0);
        if permille > OUTSIDE_PERMILLE {
            warnings.push(format!(
                "`{name}` executed at least {} before its first job or behind its last one, {} % of its CPU time: \
                 bounds do not cover this",
                Duration::from_ns(task.outside_ns),
                permille / 10
            ));
        }
        if let Policy::Deadline { runtime_ns, period_ns, .. } = task.policy {
            let [runtime, period] = [runtime_ns, period_ns].map(Duration::from_ns);
            if let Some(most) = task.cpu_ns.last().filter(|&&most| most > runtime_ns) {
                warnings.push(format!(
                    "a job of `{name}` executed {}, longer than its runtime of {runtime} under SCHED_DEADLINE: the \
                     kernel lets it wait for its next period, and bounds do not cover this",
                    Duration::from_ns(*most)
                ));
            }
            // Less than 2 % count as periodic.
            if !task.yields && u128::from(task.period_ns) * 50 < u128::from(period_ns) * 49 {
                warnings.push(format!(
                    "jobs of `{name}` were released {} apart, less than its period of {period} under SCHED_DEADLINE: \
                     the kernel may let them wait, and bounds do not cover this",
                    Duration::from_ns(task.period_ns)
                ));
            }
        }
        let at_once = task.jobs.iter().filter(|job| !job.is_release_known).count() as u64;
        if at_once > 0 {
            warnings.push(format!(
                "{} of `{name}` began without a wait, as soon as the job before had ended: responses are longer than \
                 shown, and these beginnings do not count for the period",
                jobs(at_once)
            ));
        }
        let skipped = task.jobs.iter().fold(0_u64, |sum, job| sum.saturating_add(job.releases - 1));
        if skipped > 0 {
            warnings.push(format!("`{name}` skipped {}: its timer expired again before it was read", jobs(skipped)));
        }
        if task.across > 0 {
            warnings.push(format!(
                "`{name}` held locks across the end of a job, {}: these sections are not in its body, and bounds do \
                 not cover them",
                times(task.across)
            ));
        }
        if task.cpu.1 && is_global(tasks) {
            warnings.push(format!(
                "`{name}` is bound to CPU {}, and others are not bound: the task set lets all tasks execute on all CPUs, \
                 so its bounds do not hold",
                task.cpu.0
            ));
        }
        if let (cpu, false) = task.cpu
            && !is_global(tasks)
        {
            let others = histories.get(task.thread as usize).map_or(0, |history| history.cpus.len().saturating_sub(1));
            if others > 0 {
                warnings.push(format!(
                    "`{name}` executed on {} CPUs and is not bound to one: it is assigned to CPU {cpu}",
                    others + 1
                ));
            }
        }
        if matches!(task.policy, Policy::Fair { .. }) {
            warnings.push(format!(
                "`{name}` has an ordinary policy: its bound does not hold beside other ordinary threads"
            ));
        }
    }
    for out in left_out.iter().filter(|out| out.has_jobs) {
        warnings.push(format!(
            "`{}` is not a task, because {}: bounds do not cover its jobs",
            recording.thread_name(out.thread),
            out.reason
        ));
    }
    for out in left_out {
        let locks = |entry: &crate::history::Entry| match entry.kind {
            EventKind::Locked { object, .. } => objects.binary_search(&object).is_ok().then_some(object),
            _ => None,
        };
        let history = histories.get(out.thread as usize);
        let shared: BTreeSet<ObjectId> =
            history.map(|history| history.entries.iter().filter_map(locks).collect()).unwrap_or_default();
        if !shared.is_empty() {
            warnings.push(format!(
                "`{}` is not a task and locks {}: bounds do not cover its sections",
                recording.thread_name(out.thread),
                listed(shared.iter().map(|&object| recording.object_name(object)))
            ));
        }
    }
    for out in left_out.iter().filter(|out| !out.has_jobs) {
        let beside = histories.get(out.thread as usize).map_or(0, |history| beside(recording, history, tasks));
        if beside > 0 {
            warnings.push(format!(
                "`{}` is not a task and executed {} on CPUs of tasks, at a real-time priority that is not below theirs: \
                 bounds do not cover this",
                recording.thread_name(out.thread),
                Duration::from_ns(beside)
            ));
        }
    }
    once_each(warnings)
}

/// How long a thread executed on CPUs of tasks, at a real-time priority that is not below that of a task there.
fn beside(recording: &Recording, history: &History, tasks: &[InferredTask]) -> u64 {
    let mut least: BTreeMap<u32, u8> = BTreeMap::new();
    for task in tasks {
        let rank = rank(task.policy).max(1);
        least.entry(task.cpu.0).and_modify(|least| *least = rank.min(*least)).or_insert(rank);
    }
    let (mut since_ns, mut sum_ns) = (0, 0_u64);
    let (mut on, mut own) = (None, 0);
    let mut pass = |until_ns: u64, on: Option<u32>, own: u8| {
        if on.and_then(|cpu| least.get(&cpu)).is_some_and(|&least| own >= least) {
            sum_ns = sum_ns.saturating_add(until_ns.saturating_sub(since_ns));
        }
        since_ns = until_ns;
    };
    for entry in &history.entries {
        pass(entry.at_ns, on, own);
        match entry.kind {
            EventKind::Scheduling(policy) => own = rank(policy),
            EventKind::SwitchIn { cpu } => on = Some(cpu),
            EventKind::SwitchOut(_) | EventKind::End => on = None,
            _ => {}
        }
    }
    pass(recording.length_ns, on, own);
    sum_ns
}

/// The most names in one warning.
const NAMES_MAX: usize = 4;

/// Names in a sentence. Objects that share a name are counted, and a long list is cut short.
fn listed(names: impl Iterator<Item = impl Into<String>>) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for name in names {
        *counts.entry(name.into()).or_default() += 1;
    }
    let named = |(name, count): (&String, &usize)| match count {
        1 => format!("`{name}`"),
        count => format!("{count} objects named `{name}`"),
    };
    let mut parts: Vec<String> = counts.iter().take(NAMES_MAX).map(named).collect();
    let others: usize = counts.values().skip(NAMES_MAX).sum();
    parts.extend((others > 0).then(|| format!("{others} others")));
    match parts.split_last() {
        Some((last, rest @ [_, ..])) => format!("{} and {last}", rest.join(", ")),
        _ => parts.concat(),
    }
}

/// The warnings without repetition: threads may share a name.
fn once_each(warnings: Vec<String>) -> Vec<String> {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for warning in warnings {
        match counts.iter_mut().find(|(known, _)| *known == warning) {
            Some((_, count)) => *count += 1,
            None => counts.push((warning, 1)),
        }
    }
    let told = |(warning, count): (String, usize)| match count {
        1 => warning,
        count => format!("{warning} ({count} threads of this name)"),
    };
    counts.into_iter().map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut_short() {
        let listed = |names: &[&str]| listed(names.iter().copied());
        assert_eq!(listed(&["a"]), "`a`");
        assert_eq!(listed(&["a", "b", "a"]), "2 objects named `a` and `b`");
        assert_eq!(listed(&["d", "c", "b", "a", "f", "e", "e"]), "`a`, `b`, `c`, `d` and 3 others");
    }

    #[test]
    fn warnings_come_once() {
        let warnings = ["x", "y", "x"].map(str::to_owned).to_vec();
        assert_eq!(once_each(warnings), ["x (2 threads of this name)", "y"]);
    }
}
