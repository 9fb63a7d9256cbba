//! A program in C with pthread mutexes.

use super::form::{Inexpressible, levels, unknown};
use lockwright_model::{Protocol, Step, System};
use std::fmt::Write;

/// Everything except the system.
const PROGRAM: &str = include_str!("program.c");

/// The program that executes `system`.
pub(super) fn program(system: &System, name: &str, protocol: Protocol) -> Result<String, Inexpressible> {
    let levels = levels(system)?;
    let mut data = format!("enum {{ RESOURCES = {}, TASKS = {} }};\n\n", system.resources().len(), levels.len());
    // Writing to a `String` does not fail.
    let _ = writeln!(data, "static const struct resource resources[RESOURCES + 1] = {{");
    for resource in system.resource_ids() {
        let (kind, ceiling) = match system.protocol_of(resource, protocol) {
            Protocol::None => ("PTHREAD_PRIO_NONE", 0),
            Protocol::Pip => ("PTHREAD_PRIO_INHERIT", 0),
            Protocol::Icpp => {
                let ceiling = system.ceiling(resource);
                let users = || system.tasks().iter().zip(&levels).filter(|(task, _)| task.priority <= ceiling);
                ("PTHREAD_PRIO_PROTECT", users().map(|(_, &level)| level).max().unwrap_or(1))
            }
            other => return Err(unknown(other, "pthread mutexes", "add --protocol pip, icpp or none")),
        };
        let _ = writeln!(data, "    {{ {}, {kind}, {ceiling} }},", quoted(&system.resource(resource).name));
    }
    // An array has at least one element.
    data.push_str("    { \"\", PTHREAD_PRIO_NONE, 0 },\n};\n\n");
    for (index, task) in system.tasks().iter().enumerate() {
        let _ = writeln!(data, "static const struct step body_{index}[] = {{");
        for step in &task.body {
            let _ = match step {
                Step::Run(time) => writeln!(data, "    {{ RUN, INT64_C({}) }},", time.as_ns()),
                Step::Lock(resource) | Step::Read(resource) => writeln!(data, "    {{ LOCK, {} }},", resource.index()),
                Step::Unlock(resource) => writeln!(data, "    {{ UNLOCK, {} }},", resource.index()),
            };
        }
        data.push_str("};\n\n");
    }
    data.push_str("static const struct task tasks[TASKS] = {\n");
    for (index, (task, level)) in system.tasks().iter().zip(&levels).enumerate() {
        let [period, deadline, offset] = [task.period, task.deadline, task.offset].map(|time| time.as_ns());
        let _ = writeln!(
            data,
            "    {{ {}, {}, {level}, INT64_C({period}), INT64_C({deadline}), INT64_C({offset}), body_{index}, {} }},",
            quoted(&task.name),
            task.cpu.index(),
            task.body.len()
        );
    }
    data.push_str("};\n");
    // A name must not end the comment.
    Ok(PROGRAM.replace("@NAME@", &quoted(name).replace("*/", "* /")).replace("@DATA@", &data))
}

/// A string literal of C.
fn quoted(text: &str) -> String {
    let mut literal = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => literal.extend(['\\', char::from(byte)]),
            // `??` begins a trigraph in old compilers.
            b'?' => literal.push_str("\\?"),
            b' '..=b'~' => literal.push(char::from(byte)),
            _ => {
                let _ = write!(literal, "\\{byte:03o}");
            }
        }
    }
    literal.push('"');
    literal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_is_a_literal() {
        assert_eq!(quoted("a \"b\" \\ ?\n"), "\"a \\\"b\\\" \\\\ \\?\\012\"");
        assert_eq!(quoted("é"), "\"\\303\\251\"");
    }
}
