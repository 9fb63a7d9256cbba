//! Task sets of SchedCAT.

use super::import::{Import, Rounding, elements, import, place};
use crate::format::diagnostic::{Diagnostics, shown};
use crate::format::rt_app::Imported;
use crate::{
    CPUS_MAX, CpuId, Duration, NESTING_MAX, Priority, RESOURCES_MAX, Resource, ResourceId, STEPS_MAX, Step, System,
    TASKS_MAX, Task, assign_deadline_monotonic,
};
use core::ops::Range;
use roxmltree::Node;

/// Reads a task set that SchedCAT wrote: a `<taskset>`.
///
/// `unit` is the duration of one unit of time of the file; SchedCAT's own generators use microseconds. The tasks get
/// deadline-monotonic priorities, and the time outside of critical sections is divided evenly before, between and
/// after them, because the file has neither priorities nor an order of execution.
///
/// # Errors
/// Returns at least one fault, in order of place.
///
/// # Examples
/// ```
/// use lockwright_model::{Duration, format::import_schedcat};
/// let source = r#"<taskset>
///     <task id="1" period="10000" wcet="900" partition="0">
///         <resources><requirement res_id="3" max_writes="2" max_write_length="20"/></resources>
///     </task>
/// </taskset>"#;
/// let imported = import_schedcat(source, Duration::from_us(1))?;
/// assert_eq!(imported.system.tasks()[0].wcet, Duration::from_us(900));
/// assert_eq!(imported.system.resources()[0].name, "R3");
/// # Ok::<(), lockwright_model::format::Diagnostics>(())
/// ```
pub fn import_schedcat(source: &str, unit: Duration) -> Result<Imported, Diagnostics> {
    import(source, unit, |import, root| match root.tag_name().name() {
        "taskset" => TaskSet::default().read(import, root),
        "testpoint" => {
            import.fault(place(root), "a testpoint contains several task sets", "save one `<taskset>` as a file");
            None
        }
        other => {
            let message = format!("{} is not a task set of SchedCAT", shown(other));
            import.fault(place(root), message, "its root element is `<taskset>`");
            None
        }
    })
}

/// The system so far.
#[derive(Default)]
struct TaskSet {
    tasks: Vec<Task>,
    task_spans: Vec<Range<usize>>,
    resources: Vec<Resource>,
    resource_spans: Vec<Range<usize>>,
}

/// A section with those inside it. Its own length does not include theirs.
struct Section {
    resource: ResourceId,
    own: Duration,
    inside: Vec<Self>,
}

impl TaskSet {
    fn read(mut self, import: &mut Import, root: Node) -> Option<System> {
        let message = "the file has neither priorities nor an order of execution: priorities are deadline-monotonic, and \
                       execution outside of sections is divided evenly before, between and after them";
        import.note(place(root), message);
        for element in elements(root) {
            match element.tag_name().name() {
                "task" if self.tasks.len() == TASKS_MAX => {
                    import.fault(place(element), "too many tasks", format!("at most {TASKS_MAX} are supported"));
                    return None;
                }
                "task" => self.task(import, element),
                "properties" => {}
                other => {
                    let message = format!("unknown element {} in a task set", shown(other));
                    import.fault(place(element), message, "remove it");
                }
            }
            if import.faults.is_full() {
                return None;
            }
        }
        if !import.faults.is_empty() {
            return None;
        }
        if self.tasks.is_empty() {
            import.fault(place(root), "the task set has no tasks", "add at least one");
            return None;
        }
        assign_deadline_monotonic(&mut self.tasks);
        let cpus = self.tasks.iter().map(|task| task.cpu.index() + 1).max().unwrap_or(1);
        match System::new("schedcat".into(), cpus, None, self.resources, self.tasks) {
            Ok(system) => Some(system),
            Err(invalid) => {
                import.invalid(invalid, (&self.task_spans, &self.resource_spans));
                None
            }
        }
    }

    /// Reads a task. A fault leaves it out.
    fn task(&mut self, import: &mut Import, element: Node) {
        let mut name = format!("T{}", self.tasks.len() + 1);
        let (mut period, mut wcet, mut deadline, mut cpu) = (None, None, None, None);
        for attribute in element.attributes() {
            let (text, at) = (attribute.value(), attribute.range_value());
            match attribute.name() {
                "id" => name = format!("T{}", text.trim()),
                "period" => period = import.time("the period", text, at, Rounding::Down),
                "wcet" => wcet = import.time("the execution time", text, at, Rounding::Up),
                "deadline" => deadline = import.time("the deadline", text, at, Rounding::Down),
                "partition" => cpu = import.whole("the partition", text, at, 0, CPUS_MAX as u64 - 1),
                "response_time" => import.note(at, "`response_time` is ignored: it is a result"),
                "wss" => import.note(at, "`wss` is ignored: write `working_set` into the task set"),
                other => {
                    let message = format!("unknown attribute {} of a task", shown(other));
                    import.fault(attribute.range(), message, "remove it");
                }
            }
        }
        let missing = [("period", element.has_attribute("period")), ("wcet", element.has_attribute("wcet"))];
        for (key, _) in missing.iter().filter(|(_, is_there)| !is_there) {
            import.fault(place(element), format!("the task has no {}", shown(key)), format!("add {key}=\"...\""));
        }
        if !element.has_attribute("partition") {
            import.note(place(element), "the task has no `partition`: it is on CPU 0");
        }
        let mut sections = Vec::new();
        for child in elements(element) {
            match child.tag_name().name() {
                "resources" | "critical_sections" if !sections.is_empty() => {
                    let message = "the task has both `resources` and `critical_sections`";
                    import.fault(place(child), message, "they are two forms of the same requests: keep one");
                }
                "resources" => self.requirements(import, child, &mut sections),
                "critical_sections" => {
                    sections = elements(child).filter_map(|one| self.section(import, one, 1)).collect();
                }
                "affinity" => {
                    let help = "remove it, and give the task a `partition`";
                    import.fault(place(child), "an affinity to several processors cannot be imported", help);
                }
                other => {
                    let message = format!("unknown element {} of a task", shown(other));
                    import.fault(place(child), message, "remove it");
                }
            }
        }
        let (Some(period), Some(wcet)) = (period, wcet) else { return };
        let Some(body) = body(import, element, &sections, wcet) else { return };
        self.tasks.push(Task {
            name,
            cpu: CpuId::new(cpu.unwrap_or(0) as usize),
            priority: Priority::MIN,
            period,
            deadline: deadline.unwrap_or(period),
            jitter: Duration::ZERO,
            offset: Duration::ZERO,
            wcet,
            body,
        });
        self.task_spans.push(place(element));
    }

    /// Reads the requirements of a task: for each resource the number of its requests and their length.
    fn requirements(&mut self, import: &mut Import, element: Node, sections: &mut Vec<Section>) {
        for requirement in elements(element) {
            if !named(import, requirement, "requirement") {
                continue;
            }
            let mut writes = Some(1);
            let mut length = import.unit.checked_mul(1);
            let mut id = "0";
            for attribute in requirement.attributes() {
                let (text, at) = (attribute.value(), attribute.range_value());
                match attribute.name() {
                    "res_id" => id = text,
                    "max_writes" => {
                        writes = import.whole("the number of requests", text, at, 0, STEPS_MAX as u64);
                    }
                    "max_write_length" => length = import.time("the length", text, at, Rounding::Up),
                    "max_reads" => {
                        if import.whole("the number of reads", text, at.clone(), 0, u64::MAX).is_some_and(|n| n > 0) {
                            let help = "convert reads to writes (`convert_reads_to_writes` in SchedCAT)";
                            import.fault(at, "reads cannot be imported", help);
                        }
                    }
                    "max_read_length" => {}
                    other => {
                        let message = format!("unknown attribute {} of a requirement", shown(other));
                        import.fault(attribute.range(), message, "remove it");
                    }
                }
            }
            let (Some(writes @ 1..), Some(own)) = (writes, length) else { continue };
            if sections.len() as u64 + writes > STEPS_MAX as u64 / 2 {
                let help = format!("a body has at most {STEPS_MAX} steps, two for each section");
                import.fault(place(requirement), "too many requests", help);
                return;
            }
            let Some(resource) = self.resource(import, id, requirement) else { return };
            sections.extend((0..writes).map(|_| Section { resource, own, inside: Vec::new() }));
        }
    }

    /// Reads a critical section and those inside it.
    fn section(&mut self, import: &mut Import, element: Node, depth: usize) -> Option<Section> {
        if !named(import, element, "critical_section") {
            return None;
        }
        if depth > NESTING_MAX {
            import.fault(place(element), "too deeply nested", format!("at most {NESTING_MAX} levels are supported"));
            return None;
        }
        let text = element.attribute("length").unwrap_or("0");
        let at = element.attribute_node("length").map_or_else(|| place(element), |length| length.range_value());
        let own = import.time("the length", text, at, Rounding::Up)?;
        let resource = self.resource(import, element.attribute("res_id").unwrap_or("0"), element)?;
        let inside = elements(element).filter_map(|inner| self.section(import, inner, depth + 1)).collect();
        Some(Section { resource, own, inside })
    }

    fn resource(&mut self, import: &mut Import, id: &str, element: Node) -> Option<ResourceId> {
        let name = format!("R{}", id.trim());
        let known = self.resources.iter().position(|resource| resource.name == name);
        if known.is_none() && self.resources.len() == RESOURCES_MAX {
            import.fault(place(element), "too many resources", format!("at most {RESOURCES_MAX} are supported"));
            return None;
        }
        Some(ResourceId::new(known.unwrap_or_else(|| {
            self.resources.push(Resource::new(name));
            self.resource_spans.push(place(element));
            self.resources.len() - 1
        })))
    }
}

/// Returns whether an element has this name, and reports it otherwise.
fn named(import: &mut Import, element: Node, name: &str) -> bool {
    let is_named = element.has_tag_name(name);
    if !is_named {
        let message = format!("unknown element {}", shown(element.tag_name().name()));
        import.fault(place(element), message, format!("write `<{name}>`"));
    }
    is_named
}

/// Returns the body of a task: its sections, and other execution divided evenly before, between and after them.
fn body(import: &mut Import, element: Node, sections: &[Section], wcet: Duration) -> Option<Vec<Step>> {
    fn total(sections: &[Section]) -> Option<Duration> {
        sections
            .iter()
            .try_fold(Duration::ZERO, |sum, section| sum.checked_add(section.own)?.checked_add(total(&section.inside)?))
    }
    let Some(other) = total(sections).and_then(|inside| wcet.checked_sub(inside)) else {
        import.fault(
            place(element),
            "the critical sections are longer than the execution time",
            "`wcet` includes the execution in critical sections",
        );
        return None;
    };
    fn push(section: &Section, body: &mut Vec<Step>) {
        body.push(Step::Lock(section.resource));
        if section.own > Duration::ZERO {
            body.push(Step::Run(section.own));
        }
        section.inside.iter().for_each(|inner| push(inner, body));
        body.push(Step::Unlock(section.resource));
    }
    let gaps = sections.len() as u64 + 1;
    let gap = |index: u64| Duration::from_ns(other.as_ns() / gaps + u64::from(index < other.as_ns() % gaps));
    let mut body = Vec::new();
    for index in 0..gaps {
        if gap(index) > Duration::ZERO {
            body.push(Step::Run(gap(index)));
        }
        if let Some(section) = sections.get(index as usize) {
            push(section, &mut body);
        }
    }
    Some(body)
}
