//! The rules that every [`System`] keeps, and the messages for broken rules.

use crate::{
    CPUS_MAX, DURATION_MAX, Duration, NESTING_MAX, Priority, Protocol, RESOURCES_MAX, Resource, ResourceId, STEPS_MAX,
    Step, System, TASKS_MAX, Task, TaskId,
};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// The part of a system that an [`Invalid`] is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Subject {
    /// The system as a whole.
    System,
    /// One task.
    Task(TaskId),
    /// One step of one task's body.
    Step(TaskId, usize),
    /// One resource.
    Resource(ResourceId),
}

/// The reason why a system is refused.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Invalid {
    /// The part of the system that is at fault.
    pub subject: Subject,
    /// The property of the subject, as a task-set file spells it. `None` if no single property is at fault.
    pub key: Option<&'static str>,
    /// The fault, in words.
    pub message: String,
    /// How to correct it.
    pub help: String,
}

impl Invalid {
    /// Returns the refusal of a property of a subject, or of the subject as a whole, with what is wrong and how to
    /// correct it.
    #[must_use]
    pub fn new(
        subject: Subject,
        key: Option<&'static str>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self { subject, key, message: message.into(), help: help.into() }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.message, self.help)
    }
}

impl core::error::Error for Invalid {}

fn invalid<T>(subject: Subject, message: String, help: impl Into<String>) -> Result<T, Invalid> {
    Err(Invalid::new(subject, None, message, help))
}

fn invalid_key<T>(subject: Subject, key: &'static str, message: String, help: impl Into<String>) -> Result<T, Invalid> {
    Err(Invalid::new(subject, Some(key), message, help))
}

impl System {
    pub(crate) fn check_resources(&self) -> Result<(), Invalid> {
        for id in self.resource_ids() {
            if let Some(home) = self.resource(id).home.filter(|home| home.index() >= self.cpus()) {
                return invalid_key(
                    Subject::Resource(id),
                    "home",
                    format!("resource `{}` is at home on CPU {}, which does not exist", self.resource(id).name, home.0),
                    format!("the platform has CPUs 0 to {}", self.cpus() - 1),
                );
            }
            if self.resource(id).cutoff.is_some_and(|cutoff| cutoff > Priority::BASE_MAX) {
                return invalid_key(
                    Subject::Resource(id),
                    "cutoff",
                    format!("the cutoff of resource `{}` is too high", self.resource(id).name),
                    format!("cutoffs are base priorities, 0 to {}", Priority::BASE_MAX),
                );
            }
            let Some(ceiling) = self.resource(id).ceiling else { continue };
            if ceiling > Priority::BASE_MAX {
                return invalid_key(
                    Subject::Resource(id),
                    "ceiling",
                    format!("the ceiling of resource `{}` is too high", self.resource(id).name),
                    format!("ceilings are base priorities, 0 to {}", Priority::BASE_MAX),
                );
            }
            let above = self.users(id).iter().find(|&&user| self.task(user).priority > ceiling);
            if let Some(&user) = above {
                let (resource, user) = (&self.resource(id).name, self.task(user));
                return invalid_key(
                    Subject::Resource(id),
                    "ceiling",
                    format!(
                        "resource `{resource}` has ceiling {ceiling}, but task `{}` of priority {} uses it",
                        user.name, user.priority
                    ),
                    format!("set the ceiling to at least {}, or leave it out", user.priority),
                );
            }
        }
        Ok(())
    }

    /// Checks the cluster of each task, given in `cpus` by task as
    /// a set of CPUs, a bit each. Returns the distinct clusters.
    pub(crate) fn check_clusters(&self, cpus: &[u64]) -> Result<Vec<u64>, Invalid> {
        let mut clusters: Vec<(u64, TaskId)> = Vec::new();
        let platform = u64::MAX >> (CPUS_MAX - self.cpus());
        for id in self.task_ids() {
            let (name, own) = (&self.task(id).name, self.task(id).cpu);
            let cluster = cpus.get(id.index()).copied().unwrap_or(1 << own.index());
            if cluster & !platform != 0 || cluster.trailing_zeros() as usize != own.index() {
                return invalid_key(
                    Subject::Task(id),
                    "cpus",
                    format!("the CPUs of task `{name}` are not those of a cluster"),
                    format!(
                        "a cluster is a set of CPUs 0 to {}, the first of which is the task's own",
                        self.cpus() - 1
                    ),
                );
            }
            if let Some(&(_, other)) = clusters.iter().find(|&&(known, _)| known & cluster != 0 && known != cluster) {
                return invalid_key(
                    Subject::Task(id),
                    "cpus",
                    format!("tasks `{}` and `{name}` share some of their CPUs, but not all", self.task(other).name),
                    "clusters do not overlap: give both the same CPUs, or no common one",
                );
            }
            if !clusters.iter().any(|&(known, _)| known == cluster) {
                clusters.push((cluster, id));
            }
        }
        Ok(clusters.into_iter().map(|(cluster, _)| cluster).collect())
    }

    /// Refuses every named protocol except `omlp` if there are clusters of several processors.
    pub(crate) fn check_cluster_protocols(&self) -> Result<(), Invalid> {
        let refused =
            |protocol: Option<Protocol>| protocol.filter(|&protocol| self.has_clusters() && protocol != Protocol::Omlp);
        let of_resources = self.resource_ids().map(|id| (Subject::Resource(id), self.resource(id).protocol));
        for (subject, named) in core::iter::once((Subject::System, self.protocol())).chain(of_resources) {
            if let Some(protocol) = refused(named) {
                return invalid_key(
                    subject,
                    "protocol",
                    format!("`{protocol}` does not support clusters of several CPUs"),
                    "use `omlp`, or give each task one CPU",
                );
            }
        }
        Ok(())
    }

    /// Refuses a cycle in the relation "requested while holding". This is Kahn's algorithm over the resources.
    pub(crate) fn check_order(&self) -> Result<(), Invalid> {
        // (inner, outer) -> one task that locks `inner` directly inside `outer`.
        let mut nested: BTreeMap<(ResourceId, ResourceId), TaskId> = BTreeMap::new();
        for task in self.task_ids() {
            let sections = self.sections(task);
            for section in sections {
                if let Some(parent) = section.parent {
                    nested.entry((section.resource, sections[parent].resource)).or_insert(task);
                }
            }
        }
        if nested.is_empty() {
            return Ok(());
        }
        let mut left: Vec<ResourceId> = self.resource_ids().collect();
        // BOUND: every round except the last removes a resource.
        loop {
            let (before, has_outer) =
                (left.len(), |inner: ResourceId| left.iter().any(|&outer| nested.contains_key(&(inner, outer))));
            left = left.iter().copied().filter(|&resource| has_outer(resource)).collect();
            if left.is_empty() {
                return Ok(());
            }
            if left.len() == before {
                return self.refuse_cycle(&left, &nested);
            }
        }
    }

    /// Refuses the cycle in `left`. Every resource in `left` is requested inside another one of `left`, so a walk
    /// outwards returns to a resource it has passed.
    fn refuse_cycle(
        &self,
        left: &[ResourceId],
        nested: &BTreeMap<(ResourceId, ResourceId), TaskId>,
    ) -> Result<(), Invalid> {
        let mut walk: Vec<(ResourceId, ResourceId, TaskId)> = Vec::new();
        let mut at = left[0];
        while !walk.iter().any(|(inner, _, _)| *inner == at) {
            let outer = left.iter().find_map(|&outer| Some((outer, *nested.get(&(at, outer))?)));
            let Some((outer, task)) = outer else { break };
            walk.push((at, outer, task));
            at = outer;
        }
        let start = walk.iter().position(|(inner, _, _)| *inner == at).unwrap_or(0);
        let cycle = &walk[start..];
        let (task_name, name) = (|task| &self.task(task).name, |resource| &self.resource(resource).name);
        let story: Vec<String> = cycle
            .iter()
            .rev()
            .map(|&(inner, outer, task)| {
                format!("`{}` locks `{}` while holding `{}`", task_name(task), name(inner), name(outer))
            })
            .collect();
        invalid(
            cycle.last().map_or(Subject::System, |&(inner, outer, task)| self.nested_lock(task, outer, inner)),
            format!("these nested locks can deadlock: {}", story.join(", ")),
            "take the resources in the same order everywhere",
        )
    }

    /// Refuses a section inside another one if the file puts one of the two resources under a protocol without
    /// nested sections: `lock_free`, `wait_free`, `phase_fair` or `task_fair`.
    pub(crate) fn check_unnested(&self) -> Result<(), Invalid> {
        let named = |id: ResourceId| self.resource(id).protocol.or(self.protocol());
        for task in self.task_ids() {
            let sections = self.sections(task);
            for section in sections {
                let Some(parent) = section.parent else { continue };
                let (outer, inner) = (sections[parent].resource, section.resource);
                let refuses = |protocol: &Protocol| protocol.is_object() || protocol.has_readers();
                if let Some(protocol) = [outer, inner].into_iter().filter_map(named).find(refuses) {
                    let name = |id: ResourceId| &self.resource(id).name;
                    return invalid(
                        self.nested_lock(task, outer, inner),
                        format!(
                            "task `{}` locks `{}` while holding `{}`, but sections under `{protocol}` are not nested",
                            self.task(task).name,
                            name(inner),
                            name(outer)
                        ),
                        format!("end the section on `{}` first", name(outer)),
                    );
                }
            }
        }
        Ok(())
    }

    /// Returns the step at which `task` locks `inner` directly inside `outer`.
    fn nested_lock(&self, task: TaskId, outer: ResourceId, inner: ResourceId) -> Subject {
        let sections = self.sections(task);
        let nested = sections.iter().position(|section| {
            section.resource == inner && section.parent.is_some_and(|parent| sections[parent].resource == outer)
        });
        // Section n opens at the n-th lock.
        let locks = self.task(task).body.iter().enumerate().filter(|(_, step)| step.acquired().is_some());
        let step = nested.and_then(|nested| locks.map(|(step, _)| step).nth(nested));
        step.map_or(Subject::Task(task), |step| Subject::Step(task, step))
    }
}

pub(crate) fn check_counts(cpus: usize, resources: &[Resource], tasks: &[Task]) -> Result<(), Invalid> {
    if cpus == 0 || cpus > CPUS_MAX {
        return invalid_key(
            Subject::System,
            "cpus",
            format!("a platform of {cpus} CPUs"),
            format!("1 to {CPUS_MAX} CPUs are supported"),
        );
    }
    if tasks.is_empty() {
        return invalid(Subject::System, "the system has no tasks".into(), "add at least one task");
    }
    if tasks.len() > TASKS_MAX {
        return invalid(
            Subject::System,
            format!("{} tasks", tasks.len()),
            format!("at most {TASKS_MAX} are supported"),
        );
    }
    if resources.len() > RESOURCES_MAX {
        return invalid(
            Subject::System,
            format!("{} resources", resources.len()),
            format!("at most {RESOURCES_MAX} are supported"),
        );
    }
    Ok(())
}

/// Refuses an empty name, and one that an earlier task or resource has.
pub(crate) fn check_name(kind: &str, name: &str, is_repeated: bool, subject: Subject) -> Result<(), Invalid> {
    if name.is_empty() {
        return invalid_key(subject, "name", format!("a {kind} without a name"), "give it a name");
    }
    if is_repeated {
        return invalid_key(subject, "name", format!("two {kind}s have the name `{name}`"), "names are unique");
    }
    Ok(())
}

/// Returns the place of the first name that an earlier one equals.
pub(crate) fn first_repeated<'a>(names: impl Iterator<Item = &'a str>) -> Option<usize> {
    let mut sorted: Vec<(&str, usize)> = names.zip(0..).collect();
    // Numbered names are in this order already.
    sorted.sort_unstable_by_key(|&(name, place)| (name.len(), name, place));
    sorted.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[1].1).min()
}

pub(crate) fn check_times(cpus: usize, task: &Task, subject: Subject) -> Result<(), Invalid> {
    let name = &task.name;
    if task.cpu.index() >= cpus {
        return invalid_key(
            subject,
            "cpu",
            format!("task `{name}` is on CPU {}, but the platform has {cpus}", task.cpu.0),
            format!("CPUs are numbered 0 to {}", cpus - 1),
        );
    }
    if task.priority.is_boosted() {
        return invalid_key(
            subject,
            "priority",
            format!("the priority of task `{name}` is too high"),
            format!("base priorities are 0 to {}", Priority::BASE_MAX),
        );
    }
    for (what, time) in [
        ("period", task.period),
        ("deadline", task.deadline),
        ("jitter", task.jitter),
        ("offset", task.offset),
        ("wcet", task.wcet),
    ] {
        if time > DURATION_MAX {
            return invalid_key(
                subject,
                what,
                format!("the {what} of task `{name}` is {time}"),
                format!("at most {DURATION_MAX} is supported"),
            );
        }
    }
    for (what, time) in [("period", task.period), ("deadline", task.deadline), ("wcet", task.wcet)] {
        if time == Duration::ZERO {
            return invalid_key(subject, what, format!("the {what} of task `{name}` is zero"), "it must be positive");
        }
    }
    if task.deadline > task.period {
        return invalid_key(
            subject,
            "deadline",
            format!("the deadline of task `{name}`, {}, is beyond its period, {}", task.deadline, task.period),
            "deadlines beyond periods are not supported: set the deadline to at most the period",
        );
    }
    if task.jitter >= task.deadline {
        return invalid_key(
            subject,
            "jitter",
            format!("the jitter of task `{name}`, {}, uses up its deadline, {}", task.jitter, task.deadline),
            "a job released after its deadline can never meet it: lower the jitter",
        );
    }
    Ok(())
}

pub(crate) fn check_body(resources: &[Resource], task: &Task, id: TaskId) -> Result<(), Invalid> {
    let name = &task.name;
    if task.body.len() > STEPS_MAX {
        return invalid_key(
            Subject::Task(id),
            "body",
            format!("the body of task `{name}` has {} steps", task.body.len()),
            format!("at most {STEPS_MAX} are supported"),
        );
    }
    let mut sections = Sections { resources, task: name, open: Vec::new() };
    let mut total = Duration::ZERO;
    for (index, step) in task.body.iter().enumerate() {
        let subject = Subject::Step(id, index);
        match *step {
            Step::Run(Duration::ZERO) => {
                return invalid(subject, format!("a run of task `{name}` takes no time"), "leave it out");
            }
            Step::Run(time) => match total.checked_add(time) {
                Some(sum) if sum <= DURATION_MAX => total = sum,
                _ => {
                    return invalid(
                        subject,
                        format!("the runs of task `{name}` are too long together"),
                        format!("a job executes for at most {DURATION_MAX}"),
                    );
                }
            },
            Step::Lock(resource) | Step::Read(resource) => sections.begin(resource, subject, total)?,
            Step::Unlock(resource) => sections.end(resource, subject, total)?,
        }
    }
    if let Some(Open { resource, begin, .. }) = sections.open.last() {
        return invalid(
            *begin,
            format!("task `{name}` never unlocks `{}`", resources[resource.index()].name),
            "unlock it before the job ends",
        );
    }
    if total != task.wcet {
        return invalid_key(
            Subject::Task(id),
            "wcet",
            format!("the runs of task `{name}` add up to {total}, but its wcet is {}", task.wcet),
            "make them equal, or leave the wcet out",
        );
    }
    Ok(())
}

/// The sections of a body at one of its steps.
struct Sections<'a> {
    resources: &'a [Resource],
    /// The name of the task.
    task: &'a str,
    /// The sections that have begun and not ended, the innermost last.
    open: Vec<Open>,
}

struct Open {
    resource: ResourceId,
    /// The step that locks it.
    begin: Subject,
    /// The execution time before the section. It shows whether the section is empty.
    since: Duration,
}

impl Sections<'_> {
    fn begin(&mut self, resource: ResourceId, begin: Subject, since: Duration) -> Result<(), Invalid> {
        let name = self.task;
        let Some(known) = self.resources.get(resource.index()) else {
            return invalid(begin, format!("task `{name}` locks an unknown resource"), "declare it");
        };
        if self.open.iter().any(|open| open.resource == resource) {
            return invalid(
                begin,
                format!("task `{name}` locks `{}` while it already holds it", known.name),
                "locks are not recursive: release it first",
            );
        }
        if self.open.len() == NESTING_MAX {
            return invalid(
                begin,
                format!("task `{name}` holds more than {NESTING_MAX} resources at once"),
                "nest less deeply",
            );
        }
        self.open.push(Open { resource, begin, since });
        Ok(())
    }

    fn end(&mut self, resource: ResourceId, subject: Subject, total: Duration) -> Result<(), Invalid> {
        let (name, resources) = (self.task, self.resources);
        let known = resources.get(resource.index()).map_or("?", |resource| resource.name.as_str());
        match self.open.pop() {
            Some(open) if open.resource != resource => invalid(
                subject,
                format!("task `{name}` unlocks `{known}`, but locked `{}` last", resources[open.resource.index()].name),
                "release resources in the reverse order of their locks",
            ),
            None => {
                invalid(subject, format!("task `{name}` unlocks `{known}`, which it does not hold"), "lock it first")
            }
            Some(open) if open.since == total => invalid(
                subject,
                format!("the section of task `{name}` on `{known}` is empty"),
                "put a run between lock and unlock",
            ),
            Some(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CpuId;

    fn task(body: Vec<Step>) -> Task {
        let wcet = body.iter().map(|step| if let Step::Run(time) = step { *time } else { Duration::ZERO }).sum();
        Task {
            name: "t".into(),
            cpu: CpuId(0),
            priority: Priority::base(1),
            period: Duration::from_ms(10),
            deadline: Duration::from_ms(10),
            jitter: Duration::ZERO,
            offset: Duration::ZERO,
            wcet,
            body,
        }
    }

    fn resources() -> Vec<Resource> {
        ["a", "b", "c"].map(Resource::new).to_vec()
    }

    fn message(tasks: Vec<Task>) -> String {
        System::new("s".into(), 1, None, resources(), tasks).expect_err("must be refused").to_string()
    }

    const RUN: Step = Step::Run(Duration::from_ns(1));
    const A: ResourceId = ResourceId(0);
    const B: ResourceId = ResourceId(1);
    const C: ResourceId = ResourceId(2);

    fn nested(outer: ResourceId, inner: ResourceId) -> Vec<Step> {
        alloc::vec![Step::Lock(outer), Step::Lock(inner), RUN, Step::Unlock(inner), Step::Unlock(outer)]
    }

    #[test]
    fn malformed_bodies_are_refused() {
        for (body, part) in [
            (alloc::vec![Step::Lock(A), RUN], "never unlocks `a`"),
            (alloc::vec![RUN, Step::Unlock(A)], "does not hold"),
            (alloc::vec![RUN, Step::Lock(A), Step::Unlock(A)], "is empty"),
            (alloc::vec![Step::Lock(A), RUN, Step::Lock(A)], "already holds"),
            (alloc::vec![Step::Lock(A), Step::Lock(B), RUN, Step::Unlock(A)], "locked `b` last"),
            (alloc::vec![RUN, Step::Run(Duration::ZERO)], "takes no time"),
            (alloc::vec![Step::Lock(ResourceId(9)), RUN], "unknown resource"),
        ] {
            let message = message(alloc::vec![task(body)]);
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn a_cycle_of_nested_locks_is_named_in_full() {
        let mut second = task(nested(B, C));
        second.name = "u".into();
        let mut third = task(nested(C, A));
        third.name = "v".into();
        let message = message(alloc::vec![task(nested(A, B)), second, third]);
        for part in
            ["`t` locks `b` while holding `a`", "`u` locks `c` while holding `b`", "`v` locks `a` while holding `c`"]
        {
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn a_consistent_lock_order_is_accepted() {
        let mut second = task(nested(B, C));
        second.name = "u".into();
        let mut third = task(nested(A, C));
        third.name = "v".into();
        assert!(System::new("s".into(), 1, None, resources(), alloc::vec![task(nested(A, B)), second, third]).is_ok());
    }

    #[test]
    fn a_ceiling_below_a_user_is_refused() {
        let mut resources = resources();
        resources[0].ceiling = Some(Priority::base(0));
        let tasks = alloc::vec![task(alloc::vec![Step::Lock(A), RUN, Step::Unlock(A)])];
        let error = System::new("s".into(), 1, None, resources, tasks).expect_err("must be refused");
        assert_eq!(error.subject, Subject::Resource(A));
    }
}
