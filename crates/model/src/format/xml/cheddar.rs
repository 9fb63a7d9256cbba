//! Architectures of Cheddar.

use super::import::{Import, Rounding, elements, import, place};
use crate::format::diagnostic::{Diagnostics, shown};
use crate::format::rt_app::Imported;
use crate::{
    CPUS_MAX, CpuId, Duration, Priority, Protocol, RESOURCES_MAX, Resource, ResourceId, Scheduler, Step, System,
    TASKS_MAX, Task, assign_deadline_monotonic, assign_rate_monotonic,
};
use core::ops::Range;
use roxmltree::Node;
use std::collections::HashMap;

/// Reads an architecture of Cheddar 3: its processors, periodic and sporadic tasks, and shared resources.
///
/// `unit` is the duration of one unit of time, which Cheddar leaves to its user. A critical section from `task_begin`
/// to `task_end` contains both units, and the first unit of a job is number 1.
///
/// # Errors
/// Returns at least one fault, in order of place.
pub fn import_cheddar(source: &str, unit: Duration) -> Result<Imported, Diagnostics> {
    import(source, unit, |import, root| {
        if root.tag_name().name() != "cheddar" {
            let message = format!("{} is not an architecture of Cheddar", shown(root.tag_name().name()));
            import.fault(place(root), message, "its root element is `<cheddar>`");
            return None;
        }
        Architecture::default().read(import, root)
    })
}

/// How the priorities of the tasks are determined.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Policy {
    Posix,
    RateMonotonic,
    DeadlineMonotonic,
    Edf,
}

/// A processor, and the names that tasks use for it.
struct Cpu<'a> {
    processor: &'a str,
    core: &'a str,
}

/// A critical section: a resource, and the time from its begin to its end within the job.
struct Section {
    resource: ResourceId,
    begin: Duration,
    end: Duration,
    span: Range<usize>,
}

/// The system so far.
#[derive(Default)]
struct Architecture<'a> {
    policy: Option<Policy>,
    cpus: Vec<Cpu<'a>>,
    tasks: Vec<Task>,
    task_spans: Vec<Range<usize>>,
    /// The index of each task by name. Of several tasks of one name, which is a fault, it is that of the last one.
    task_names: HashMap<&'a str, usize>,
    /// The sections of each task.
    sections: Vec<Vec<Section>>,
    resources: Vec<Resource>,
    resource_spans: Vec<Range<usize>>,
}

/// The text of the first element of this name below another.
fn text<'a>(element: Node<'a, '_>, name: &str) -> Option<(&'a str, Range<usize>)> {
    let found = elements(element).find(|child| child.has_tag_name(name))?;
    // A comment in a value would divide it: such a value is empty here, and refused.
    let is_whole = found.children().count() <= 1;
    Some((found.text().filter(|_| is_whole).unwrap_or_default().trim(), place(found)))
}

impl<'a> Architecture<'a> {
    fn read(mut self, import: &mut Import, root: Node<'a, '_>) -> Option<System> {
        let section = |name| elements(root).filter(move |part| part.has_tag_name(name)).flat_map(elements);
        for part in elements(root) {
            match part.tag_name().name() {
                "core_units" | "processors" | "tasks" | "resources" | "address_spaces" => {}
                name @ ("dependencies" | "buffers" | "messages" | "task_groups" | "networks") => {
                    if elements(part).next().is_some() {
                        let message = format!("{} cannot be imported", shown(name));
                        import.fault(place(part), message, "remove them: a task set has independent tasks");
                    }
                }
                other => import.note(place(part), format!("{} is ignored", shown(other))),
            }
        }
        section("core_units").for_each(|core| self.core(import, core));
        for space in section("address_spaces") {
            if let Some((name, at)) = scheduler(space).filter(|(name, _)| *name != "NO_SCHEDULING_PROTOCOL") {
                let message = format!("{}: schedulers inside an address space cannot be imported", shown(name));
                import.fault(at, message, "set it to NO_SCHEDULING_PROTOCOL");
            }
        }
        if self.policy.is_none() && import.faults.is_empty() {
            import.fault(place(root), "the architecture has no cores", "add `<core_units>` with a scheduler");
        }
        let id = |core: Node<'a, '_>| Some((core.attribute("id")?, text(core, "name").map_or("", |(name, _)| name)));
        let cores: HashMap<&str, &str> = section("core_units").filter_map(id).collect();
        for processor in section("processors") {
            if import.faults.is_full() {
                return None;
            }
            self.processor(import, processor, &cores);
        }
        for task in section("tasks") {
            if import.faults.is_full() {
                return None;
            }
            if self.tasks.len() == TASKS_MAX {
                import.fault(place(task), "too many tasks", format!("at most {TASKS_MAX} are supported"));
                return None;
            }
            self.task(import, task);
        }
        section("resources").for_each(|resource| self.resource(import, resource));
        if import.faults.is_empty() && self.tasks.is_empty() {
            import.fault(place(root), "the architecture has no tasks", "add at least one");
        }
        self.build(import)
    }

    /// Reads the scheduler of a core. All cores have the same one.
    fn core(&mut self, import: &mut Import, core: Node) {
        // Some programs write 0 for "not given".
        if let Some((speed, at)) = text(core, "speed")
            && !speed.parse().is_ok_and(|speed: f64| speed == 0.0 || speed == 1.0)
        {
            import.fault(at, format!("a speed of {} cannot be imported", shown(speed)), "set it to 1");
        }
        let Some((name, at)) = scheduler(core) else {
            import.fault(place(core), "the core has no `scheduler_type`", "add one");
            return;
        };
        let policy = match name {
            "POSIX_1003_HIGHEST_PRIORITY_FIRST_PROTOCOL" => Policy::Posix,
            "RATE_MONOTONIC_PROTOCOL" => Policy::RateMonotonic,
            "DEADLINE_MONOTONIC_PROTOCOL" => Policy::DeadlineMonotonic,
            "EARLIEST_DEADLINE_FIRST_PROTOCOL" => Policy::Edf,
            other => {
                let message = format!("the scheduler {} cannot be imported", shown(other));
                let help = "use POSIX_1003_HIGHEST_PRIORITY_FIRST_PROTOCOL, RATE_MONOTONIC_PROTOCOL, \
                            DEADLINE_MONOTONIC_PROTOCOL or EARLIEST_DEADLINE_FIRST_PROTOCOL";
                import.fault(at, message, help);
                return;
            }
        };
        let parameters = core.descendants().find(|node| node.has_tag_name("scheduling_parameters"));
        if let Some((kind, at)) = parameters.and_then(|node| text(node, "preemptive_type"))
            && kind != "PREEMPTIVE"
        {
            import.fault(at, format!("{} cannot be imported", shown(kind)), "set it to PREEMPTIVE");
        }
        if *self.policy.get_or_insert(policy) != policy {
            import.fault(at, "the cores have different schedulers", "a task set has one: give all cores the same");
        }
    }

    /// Reads a processor: each of its cores is a CPU.
    fn processor(&mut self, import: &mut Import, processor: Node<'a, '_>, cores: &HashMap<&str, &'a str>) {
        let Some((name, at)) = text(processor, "name") else {
            import.fault(place(processor), "the processor has no name", "add `<name>`");
            return;
        };
        if let Some((kind, at)) = text(processor, "migration_type")
            && kind != "NO_MIGRATION_TYPE"
        {
            import.fault(at, format!("{} cannot be imported", shown(kind)), "set it to NO_MIGRATION_TYPE");
        }
        for reference in processor.descendants().filter_map(|node| node.attribute("ref")) {
            let Some(&core) = cores.get(reference) else {
                import.fault(at, format!("there is no core {}", shown(reference)), "name one of `<core_units>`");
                return;
            };
            if self.cpus.len() == CPUS_MAX {
                import.fault(at, "too many cores", format!("at most {CPUS_MAX} are supported"));
                return;
            }
            self.cpus.push(Cpu { processor: name, core });
        }
    }

    /// Reads a task. A fault leaves it out.
    fn task(&mut self, import: &mut Import, element: Node<'a, '_>) {
        let kind = element.tag_name().name();
        if !matches!(kind, "periodic_task" | "sporadic_task") {
            let message = format!("{} cannot be imported", shown(kind));
            import.fault(place(element), message, "periodic and sporadic tasks can");
            return;
        }
        let missing = |import: &mut Import, name: &str| {
            import.fault(place(element), format!("the task has no {}", shown(name)), format!("add <{name}>"));
        };
        let Some((name, _)) = text(element, "name") else { return missing(import, "name") };
        let time = |import: &mut Import, key: &str, rounding| {
            text(element, key).map(|(value, at)| import.time(&shown(key), value, at, rounding))
        };
        let Some(period) = time(import, "period", Rounding::Down) else { return missing(import, "period") };
        let Some(wcet) = time(import, "capacity", Rounding::Up) else { return missing(import, "capacity") };
        let deadline = time(import, "deadline", Rounding::Down).unwrap_or(period);
        let offset = time(import, "start_time", Rounding::Down).unwrap_or(Some(Duration::ZERO));
        let jitter = time(import, "jitter", Rounding::Up).unwrap_or(Some(Duration::ZERO));
        let priority = match (self.policy, text(element, "priority")) {
            (Some(Policy::Posix), Some((value, at))) => import.whole("the priority", value, at, 1, 65_535),
            (Some(Policy::Posix), None) => return missing(import, "priority"),
            _ => Some(1),
        };
        if let Some((policy, at)) = text(element, "policy").filter(|(policy, _)| *policy != "SCHED_FIFO")
            && self.policy == Some(Policy::Posix)
        {
            import.fault(at, format!("the policy {} cannot be imported", shown(policy)), "set it to SCHED_FIFO");
        }
        for key in ["blocking_time", "context_switch_overhead"] {
            if let Some((value, at)) = text(element, key).filter(|(value, _)| !matches!(*value, "" | "0")) {
                let why = "blocking is computed, and overheads come from `--overheads`";
                import.note(at, format!("{} of {} is ignored: {why}", shown(key), shown(value)));
            }
        }
        if let Some(offsets) = elements(element).find(|part| part.has_tag_name("offsets"))
            && elements(offsets).next().is_some()
        {
            import.fault(place(offsets), "offsets of single jobs cannot be imported", "remove them");
        }
        let cpu = self.cpu(import, element);
        let (Some(period), Some(wcet), Some(deadline), Some(offset), Some(jitter), Some(priority), Some(cpu)) =
            (period, wcet, deadline, offset, jitter, priority, cpu)
        else {
            return;
        };
        let priority = Priority::base(priority as u32);
        self.task_names.insert(name, self.tasks.len());
        let name = name.to_owned();
        self.tasks.push(Task { name, cpu, priority, period, deadline, jitter, offset, wcet, body: Vec::new() });
        self.task_spans.push(place(element));
        self.sections.push(Vec::new());
    }

    fn cpu(&self, import: &mut Import, task: Node) -> Option<CpuId> {
        let Some((processor, at)) = text(task, "cpu_name") else {
            import.fault(place(task), "the task has no `cpu_name`", "add the name of its processor");
            return None;
        };
        let core = text(task, "core_name").map_or("", |(name, _)| name);
        let fits = |cpu: &&Cpu| cpu.processor == processor && (core.is_empty() || cpu.core == core);
        match self.cpus.iter().filter(fits).count() {
            1 => self.cpus.iter().position(|cpu| fits(&cpu)).map(CpuId::new),
            0 => {
                import.fault(at, format!("there is no processor {}", shown(processor)), "name one of `<processors>`");
                None
            }
            _ => {
                let message = format!("{} has several cores", shown(processor));
                import.fault(at, message, "name the task's core in `<core_name>`");
                None
            }
        }
    }

    /// Reads a resource and its critical sections.
    fn resource(&mut self, import: &mut Import, element: Node) {
        let Some((name, at)) = text(element, "name") else {
            import.fault(place(element), "the resource has no name", "add `<name>`");
            return;
        };
        if self.resources.len() == RESOURCES_MAX {
            import.fault(at, "too many resources", format!("at most {RESOURCES_MAX} are supported"));
            return;
        }
        if let Some((state, at)) = text(element, "state").filter(|(state, _)| *state != "1") {
            let message = format!("a state of {} cannot be imported", shown(state));
            import.fault(at, message, "a resource is a mutex, with a state of 1");
        }
        let protocol = match text(element, "protocol") {
            None => Protocol::None,
            Some((name, at)) => match name {
                "NO_PROTOCOL" => Protocol::None,
                "PRIORITY_INHERITANCE_PROTOCOL" => Protocol::Pip,
                "PRIORITY_CEILING_PROTOCOL" => Protocol::Pcp,
                "IMMEDIATE_PRIORITY_CEILING_PROTOCOL" => Protocol::Icpp,
                other => {
                    import.fault(at, format!("there is no protocol {}", shown(other)), "use one of Cheddar's four");
                    return;
                }
            },
        };
        if self.policy == Some(Policy::Edf) {
            import.note(place(element), "under EDF the resource is analysed under `srp`, whatever its protocol is");
        }
        let is_manual = text(element, "priority_assignment").is_some_and(|(kind, _)| kind == "MANUAL_ASSIGNMENT");
        let has_ceiling = matches!(protocol, Protocol::Pcp | Protocol::Icpp) && self.policy == Some(Policy::Posix);
        if is_manual && !has_ceiling {
            import.note(place(element), "the manual ceiling is ignored: the priorities are not those of the file");
        }
        let ceiling = text(element, "priority").filter(|_| is_manual && has_ceiling);
        let ceiling = ceiling.and_then(|(value, at)| import.whole("the ceiling", value, at, 1, 65_535));
        let resource = ResourceId::new(self.resources.len());
        self.resources.push(Resource {
            name: name.to_owned(),
            protocol: Some(protocol),
            ceiling: ceiling.map(|level| Priority::base(level as u32)),
            ..Resource::default()
        });
        self.resource_spans.push(place(element));
        let Some(list) = elements(element).find(|part| part.has_tag_name("critical_sections")) else { return };
        let mut task = None;
        for part in elements(list) {
            if part.has_tag_name("task_name") {
                let wanted = part.text().unwrap_or_default().trim();
                task = self.task_names.get(wanted).copied();
                if task.is_none() && import.faults.is_empty() {
                    import.fault(place(part), format!("there is no task {}", shown(wanted)), "name one of `<tasks>`");
                }
            } else if let Some(task) = task {
                self.section(import, part, task, resource);
            }
        }
    }

    fn section(&mut self, import: &mut Import, element: Node, task: usize, resource: ResourceId) {
        let mut unit = |key: &str| {
            let (value, at) = text(element, key).unwrap_or_else(|| ("", place(element)));
            import.whole(&shown(key), value, at, 1, u64::MAX)
        };
        let (Some(first), Some(last)) = (unit("task_begin"), unit("task_end")) else { return };
        let times = (import.unit.checked_mul(first - 1), import.unit.checked_mul(last));
        let span = place(element);
        match times {
            (Some(begin), Some(end)) if begin < end && end <= self.tasks[task].wcet => {
                self.sections[task].push(Section { resource, begin, end, span });
            }
            _ => {
                let message =
                    format!("the section does not lie within the capacity of {}", shown(&self.tasks[task].name));
                import.fault(span, message, "`task_begin` and `task_end` are its first and last unit, from 1");
            }
        }
    }

    fn build(mut self, import: &mut Import) -> Option<System> {
        for (task, sections) in self.tasks.iter_mut().zip(&mut self.sections) {
            task.body = body(import, sections, task.wcet)?;
        }
        if !import.faults.is_empty() {
            return None;
        }
        match self.policy {
            Some(Policy::RateMonotonic) => assign_rate_monotonic(&mut self.tasks),
            Some(Policy::DeadlineMonotonic) => assign_deadline_monotonic(&mut self.tasks),
            _ => {}
        }
        let scheduler = if self.policy == Some(Policy::Edf) { Scheduler::PEdf } else { Scheduler::PFp };
        match System::new("cheddar".into(), self.cpus.len().max(1), None, self.resources, self.tasks) {
            Ok(system) => Some(system.under(scheduler)),
            Err(invalid) => {
                import.invalid(invalid, (&self.task_spans, &self.resource_spans));
                None
            }
        }
    }
}

/// The scheduler of a core or an address space.
fn scheduler<'a>(element: Node<'a, '_>) -> Option<(&'a str, Range<usize>)> {
    text(element.descendants().find(|node| node.has_tag_name("scheduling_parameters"))?, "scheduler_type")
}

/// Returns the body of a task with these sections, which must be nested properly.
fn body(import: &mut Import, sections: &mut [Section], wcet: Duration) -> Option<Vec<Step>> {
    // Of two sections that begin together, the longer one is outside.
    sections.sort_by_key(|section| (section.begin, core::cmp::Reverse(section.end)));
    let mut body = Vec::new();
    let mut now = Duration::ZERO;
    let mut run_until = |body: &mut Vec<Step>, until: Duration| {
        if until > now {
            body.push(Step::Run(until.saturating_sub(now)));
            now = until;
        }
    };
    let mut held: Vec<(ResourceId, Duration)> = Vec::new();
    for section in &*sections {
        while let Some((resource, end)) = held.pop_if(|(_, end)| *end <= section.begin) {
            run_until(&mut body, end);
            body.push(Step::Unlock(resource));
        }
        if held.last().is_some_and(|(_, end)| *end < section.end) {
            let help = "a section must end before the section around it";
            import.fault(
                section.span.clone(),
                "two sections of the task overlap, and neither contains the other",
                help,
            );
            return None;
        }
        run_until(&mut body, section.begin);
        body.push(Step::Lock(section.resource));
        held.push((section.resource, section.end));
    }
    while let Some((resource, end)) = held.pop() {
        run_until(&mut body, end);
        body.push(Step::Unlock(resource));
    }
    run_until(&mut body, wcet);
    Some(body)
}
