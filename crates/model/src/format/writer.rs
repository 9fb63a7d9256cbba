//! Writing a system as a task-set file, and overheads as an overheads file.

use crate::CPUS_MAX;
use crate::{Cost, Duration, ObjectKind, Overhead, Overheads, Progress, ResourceId, Scheduler, Step, System, TaskId};
use core::fmt::Write;

/// A place in a written task set that a comment can stand above.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Place {
    /// The begin of the file.
    Head,
    /// The protocol of the system.
    Protocol,
    /// The number of processors.
    Cpus,
    /// A resource.
    Resource(ResourceId),
    /// A task.
    Task(TaskId),
    /// The period of a task.
    Period(TaskId),
    /// The offset of a task, which is written if it is not zero.
    Offset(TaskId),
    /// The execution time of a task.
    Wcet(TaskId),
    /// The priority of a task.
    Priority(TaskId),
    /// The processor of a task.
    Cpu(TaskId),
    /// The body of a task, which is written if it has more than one step.
    Body(TaskId),
}

/// Returns the system as a TOML task set, which [`parse_system`](super::parse_system) reads back to an equal system.
/// Bodies are written step by step, and every task with its priority.
#[must_use]
pub fn write_system(system: &System) -> String {
    write_commented_system(system, |_| Vec::new())
}

/// As [`write_system`], with comments: `lines` returns the lines of the comment above a place. Control characters are
/// written as question marks.
#[must_use]
pub fn write_commented_system(system: &System, lines: impl Fn(Place) -> Vec<String>) -> String {
    let mut writer = Writer { out: String::new(), lines };
    // Writing to a `String` does not fail.
    let _ = write_to(&mut writer, system);
    writer.out.trim_start().into()
}

/// The text so far, and the comments.
struct Writer<F> {
    out: String,
    lines: F,
}

impl<F: Fn(Place) -> Vec<String>> Writer<F> {
    /// Writes the comment above a place.
    fn comment(&mut self, place: Place) {
        for line in (self.lines)(place) {
            self.out.push_str("# ");
            self.out.extend(line.chars().map(|c| if c.is_control() { '?' } else { c }));
            self.out.push('\n');
        }
    }
}

impl<F> Write for Writer<F> {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        self.out.write_str(text)
    }
}

fn write_to(out: &mut Writer<impl Fn(Place) -> Vec<String>>, system: &System) -> core::fmt::Result {
    out.comment(Place::Head);
    if !system.name().is_empty() {
        writeln!(out, "name = {}", quoted(system.name()))?;
    }
    if let Some(protocol) = system.protocol() {
        out.comment(Place::Protocol);
        writeln!(out, "protocol = \"{protocol}\"")?;
    }
    writeln!(out, "\n[platform]")?;
    out.comment(Place::Cpus);
    writeln!(out, "cpus = {}\npriorities = \"explicit\"", system.cpus())?;
    if system.scheduler() != Scheduler::default() {
        writeln!(out, "scheduler = \"{}\"", system.scheduler())?;
    }
    for (resource, id) in system.resources().iter().zip(system.resource_ids()) {
        writeln!(out, "\n[[resource]]")?;
        out.comment(Place::Resource(id));
        writeln!(out, "name = {}", quoted(&resource.name))?;
        if let Some(protocol) = resource.protocol {
            writeln!(out, "protocol = \"{protocol}\"")?;
        }
        if let Some(home) = resource.home {
            writeln!(out, "home = {}", home.0)?;
        }
        if let Some(object) = resource.object {
            writeln!(out, "object = \"{object}\"")?;
        }
        for (key, priority) in [("ceiling", resource.ceiling), ("cutoff", resource.cutoff)] {
            if let Some(priority) = priority {
                writeln!(out, "{key} = {}", priority.level())?;
            }
        }
    }
    system.task_ids().try_for_each(|id| write_task(out, system, id))
}

fn write_task(out: &mut Writer<impl Fn(Place) -> Vec<String>>, system: &System, id: TaskId) -> core::fmt::Result {
    let task = system.task(id);
    writeln!(out, "\n[[task]]")?;
    out.comment(Place::Task(id));
    writeln!(out, "name = {}", quoted(&task.name))?;
    out.comment(Place::Period(id));
    writeln!(out, "period = \"{}\"", task.period)?;
    if task.deadline != task.period {
        writeln!(out, "deadline = \"{}\"", task.deadline)?;
    }
    if task.jitter != Duration::ZERO {
        writeln!(out, "jitter = \"{}\"", task.jitter)?;
    }
    if task.offset != Duration::ZERO {
        out.comment(Place::Offset(id));
        writeln!(out, "offset = \"{}\"", task.offset)?;
    }
    out.comment(Place::Wcet(id));
    writeln!(out, "wcet = \"{}\"", task.wcet)?;
    out.comment(Place::Priority(id));
    writeln!(out, "priority = {}", task.priority.level())?;
    // Under a global scheduler CPUs mean nothing, and a file that gives them is read with a note.
    if !system.scheduler().is_global() || task.cpu.0 > 0 {
        out.comment(Place::Cpu(id));
        let cluster = system.cluster(task.cpu);
        let cpus: Vec<String> =
            (0..CPUS_MAX).filter(|cpu| cluster >> cpu & 1 == 1).map(|cpu| cpu.to_string()).collect();
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
    out.comment(Place::Body(id));
    writeln!(out, "body = [")?;
    for step in &task.body {
        match step {
            Step::Run(time) => writeln!(out, "    {{ run = \"{time}\" }},")?,
            Step::Lock(resource) => {
                writeln!(out, "    {{ lock = {} }},", quoted(&system.resource(*resource).name))?;
            }
            Step::Read(resource) => {
                let name = quoted(&system.resource(*resource).name);
                writeln!(out, "    {{ lock = {name}, mode = \"read\" }},")?;
            }
            Step::Unlock(resource) => {
                writeln!(out, "    {{ unlock = {} }},", quoted(&system.resource(*resource).name))?;
            }
        }
    }
    writeln!(out, "]")
}

/// Returns the overheads as a file, which [`parse_overheads`](super::parse_overheads) reads back to equal overheads.
/// An overhead without a cost is left out.
#[must_use]
pub fn write_overheads(overheads: &Overheads) -> String {
    let mut out = String::new();
    // Writing to a `String` does not fail.
    let _ = write_overheads_to(&mut out, overheads);
    out
}

fn write_overheads_to(out: &mut String, overheads: &Overheads) -> core::fmt::Result {
    if overheads.tick_period != Duration::ZERO {
        writeln!(out, "tick_period = \"{}\"", overheads.tick_period)?;
    }
    if overheads.dedicated_interrupts {
        writeln!(out, "dedicated_interrupts = true")?;
    }
    if !overheads.cache_delay.points().is_empty() {
        writeln!(out, "cache_delay = {}", cost(&overheads.cache_delay))?;
    }
    let has_tables = overheads.protocols().next().is_some();
    let said = |of: &Overhead| !overheads.cost(*of).points().is_empty();
    // With tables of protocols, the common cost of `lock` is in
    // the table `[lock]`, because a key of a file has one meaning.
    for of in Overhead::ALL.into_iter().filter(said).filter(|&of| !has_tables || of != Overhead::Lock) {
        writeln!(out, "{} = {}", of.name(), cost(overheads.cost(of)))?;
    }
    if has_tables && said(&Overhead::Lock) {
        writeln!(out, "\n[lock]\nlock = {}", cost(overheads.cost(Overhead::Lock)))?;
    }
    for protocol in overheads.protocols() {
        writeln!(out, "\n[lock.{protocol}]")?;
        for of in Overhead::OF_SECTIONS {
            if let Some(own) = overheads.own_cost(of, protocol) {
                writeln!(out, "{} = {}", of.name(), cost(own))?;
            }
        }
    }
    for kind in ObjectKind::ALL {
        let of = |progress| Some((progress, overheads.object(kind, progress)?));
        for (number, (progress, own)) in Progress::ALL.into_iter().filter_map(of).enumerate() {
            if number == 0 {
                writeln!(out, "\n[object.{kind}]")?;
            }
            writeln!(out, "{progress} = {}", cost(own))?;
        }
    }
    Ok(())
}

/// Returns a cost as a duration or a list of points.
fn cost(cost: &Cost) -> String {
    match cost.points() {
        [] => "\"0 ns\"".into(),
        // The same for any number.
        [(0, time)] => format!("\"{time}\""),
        points => {
            let points: Vec<String> = points.iter().map(|(number, time)| format!("[{number}, \"{time}\"]")).collect();
            format!("[{}]", points.join(", "))
        }
    }
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{parse_overheads, parse_system};
    use crate::{CpuId, Priority, Protocol, Resource, Task};

    #[test]
    fn overheads_round_trip() {
        let text = r#"
            tick_period = "4 ms"
            dedicated_interrupts = true
            cache_delay = [[0, "0 ns"], [32, "4 us"]]
            tick = "2 us"
            release = [[1, "1 us"], [20, "3 us"]]
            leave_section = "3 ns"
            LOCK
            [lock.srp]
            lock = [[2, "10 ns"], [3, "11 ns"]]
            leave_section = "0 ns"
            [lock.fmlp_long]
            unlock = "1 us"
            syscall_in = "5 ns"
        "#;
        let plain = "lock = \"9 ns\"\n".to_owned() + &text[..text.find("LOCK").unwrap_or(0)];
        for text in [text.replace("LOCK", "[lock]\nlock = \"9 ns\""), text.replace("LOCK", ""), plain] {
            let read = parse_overheads(&text).unwrap_or_else(|faults| panic!("{faults:?}"));
            let written = write_overheads(&read);
            assert_eq!(parse_overheads(&written).as_ref(), Ok(&read), "{written}");
        }
    }

    #[test]
    fn any_name_and_every_property_round_trip() {
        let names = [
            "a",
            "\"",
            "'''\"\"\"",
            "\\",
            "two\nlines\r\n",
            "\u{0}\u{1b}\u{7f}",
            "µ\u{feff}\u{2028}",
            " ",
            "#[[task]]",
        ];
        for name in names.into_iter().take(if cfg!(miri) { 2 } else { usize::MAX }) {
            let ns = Duration::from_ns;
            let resource = |name: String, protocol, ceiling: Option<Priority>, home| Resource {
                name,
                protocol,
                ceiling,
                home,
                cutoff: ceiling,
                object: ceiling.map(|_| ObjectKind::Heap),
            };
            let resources = vec![
                resource(name.into(), Some(Protocol::Mpcp), Some(Priority::BASE_MAX), Some(CpuId(1))),
                resource(format!("{name}2"), None, None, None),
            ];
            let [outer, inner] = [0, 1].map(ResourceId);
            let body = vec![
                Step::Lock(outer),
                Step::Read(inner),
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
                let written = write_commented_system(&system, |place| vec![format!("{place:?} {name}"), name.into()]);
                assert_eq!(parse_system(&written).as_ref(), Ok(&system), "{written}");
                let comments = written.lines().filter(|line| line.starts_with("# ")).count();
                assert!(comments >= 2 * 11, "each place has a comment: {written}");
            }
        }
    }
}
