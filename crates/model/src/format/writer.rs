//! Writing a system as a task-set file.

use crate::{Duration, Scheduler, Step, System, TaskId};
use core::fmt::Write;

/// The system as a TOML task set, which [`parse_system`](super::parse_system) reads back to an equal system. Bodies are
/// written step by step, and every task with its priority.
#[must_use]
pub fn write_system(system: &System) -> String {
    let mut out = String::new();
    // Writing to a `String` does not fail.
    let _ = write_to(&mut out, system);
    out.trim_start().into()
}

fn write_to(out: &mut String, system: &System) -> core::fmt::Result {
    if !system.name().is_empty() {
        writeln!(out, "name = {}", quoted(system.name()))?;
    }
    if let Some(protocol) = system.protocol() {
        writeln!(out, "protocol = \"{protocol}\"")?;
    }
    writeln!(out, "\n[platform]\ncpus = {}\npriorities = \"explicit\"", system.cpus())?;
    if system.scheduler() != Scheduler::default() {
        writeln!(out, "scheduler = \"{}\"", system.scheduler())?;
    }
    for resource in system.resources() {
        writeln!(out, "\n[[resource]]\nname = {}", quoted(&resource.name))?;
        if let Some(protocol) = resource.protocol {
            writeln!(out, "protocol = \"{protocol}\"")?;
        }
        if let Some(home) = resource.home {
            writeln!(out, "home = {}", home.0)?;
        }
        for (key, priority) in [("ceiling", resource.ceiling), ("cutoff", resource.cutoff)] {
            if let Some(priority) = priority {
                writeln!(out, "{key} = {}", priority.level())?;
            }
        }
    }
    system.task_ids().try_for_each(|id| write_task(out, system, id))
}

fn write_task(out: &mut String, system: &System, id: TaskId) -> core::fmt::Result {
    let task = system.task(id);
    writeln!(out, "\n[[task]]\nname = {}", quoted(&task.name))?;
    writeln!(out, "period = \"{}\"", task.period)?;
    if task.deadline != task.period {
        writeln!(out, "deadline = \"{}\"", task.deadline)?;
    }
    for (key, time) in [("jitter", task.jitter), ("offset", task.offset)] {
        if time != Duration::ZERO {
            writeln!(out, "{key} = \"{time}\"")?;
        }
    }
    writeln!(out, "wcet = \"{}\"\npriority = {}", task.wcet, task.priority.level())?;
    // Under a global scheduler they mean nothing, and a file with them is read with a note.
    if !system.scheduler().is_global() || task.cpu.0 > 0 {
        let cpus: Vec<String> = system.cpus_of(id).map(|cpu| cpu.0.to_string()).collect();
        match cpus.as_slice() {
            [cpu] => writeln!(out, "cpu = {cpu}")?,
            _ => writeln!(out, "cpus = [{}]", cpus.join(", "))?,
        }
    }
    if let Some(kib) = system.working_set(id) {
        writeln!(out, "working_set_kib = {kib}")?;
    }
    if task.body == [Step::Run(task.wcet)] {
        return Ok(());
    }
    writeln!(out, "body = [")?;
    for step in &task.body {
        match step {
            Step::Run(time) => writeln!(out, "    {{ run = \"{time}\" }},")?,
            Step::Lock(resource) => {
                writeln!(out, "    {{ lock = {} }},", quoted(&system.resource(*resource).name))?;
            }
            Step::Unlock(resource) => {
                writeln!(out, "    {{ unlock = {} }},", quoted(&system.resource(*resource).name))?;
            }
        }
    }
    writeln!(out, "]")
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::parse_system;
    use crate::{CpuId, Priority, Protocol, Resource, ResourceId, Task};

    #[test]
    fn any_name_and_every_property_come_back() {
        for name in
            ["a", "\"", "'''\"\"\"", "\\", "two\nlines\r\n", "\u{0}\u{1b}\u{7f}", "µ\u{feff}\u{2028}", " ", "#[[task]]"]
        {
            let ns = Duration::from_ns;
            let resource =
                |name: String, protocol, ceiling, home| Resource { name, protocol, ceiling, home, cutoff: ceiling };
            let resources = vec![
                resource(name.into(), Some(Protocol::Mpcp), Some(Priority::BASE_MAX), Some(CpuId(1))),
                resource(format!("{name}2"), None, None, None),
            ];
            let [outer, inner] = [0, 1].map(ResourceId);
            let body = vec![
                Step::Lock(outer),
                Step::Lock(inner),
                Step::Run(ns(1_234_567_891)),
                Step::Unlock(inner),
                Step::Unlock(outer),
                Step::Run(ns(1)),
                Step::Run(ns(7)),
            ];
            let task = Task {
                name: name.into(),
                cpu: CpuId(2),
                priority: Priority::BASE_MAX,
                period: crate::DURATION_MAX,
                deadline: ns(999_999_999_999_999),
                jitter: ns(999_999_999_999_998),
                offset: ns(1),
                wcet: ns(1_234_567_899),
                body,
            };
            for (system_name, protocol) in [(name, None), ("", Some(Protocol::Icpp))] {
                let system = System::new(system_name.into(), 3, protocol, resources.clone(), vec![task.clone()]);
                let system = system.expect("valid").with_working_sets(vec![protocol.map(|_| u32::MAX >> 2)]);
                assert_eq!(parse_system(&write_system(&system)).as_ref(), Ok(&system), "{name:?}");
            }
        }
    }
}
