//! A workload of rt-app, which `lockwright import rt-app` reads back.

use super::form::{Inexpressible, levels, unknown};
use lockwright_model::{Duration, Protocol, Step, System};
use serde_json::to_string;
use std::fmt::Write;

const WHOLE: &str = "round the times in the file";

/// The workload that executes `system`.
pub(super) fn workload(system: &System, protocol: Protocol) -> Result<String, Inexpressible> {
    let inherits = inherits(system, protocol)?;
    let levels = levels(system)?;
    let mut text =
        format!("{{\n    \"global\": {{ \"duration\": 10, \"pi_enabled\": {inherits} }},\n    \"tasks\": {{\n");
    let last = levels.len() - 1;
    for (index, (task, level)) in system.tasks().iter().zip(&levels).enumerate() {
        let us = |time| microseconds(time, &task.name);
        // Writing to a `String` does not fail.
        let _ = writeln!(
            text,
            "        {}: {{\n            \"policy\": \"SCHED_FIFO\", \"priority\": {level}, \"cpus\": [{}], \"loop\": -1,",
            json(&task.name),
            task.cpu.index()
        );
        if task.offset > Duration::ZERO {
            let _ = writeln!(text, "            \"delay\": {},", us(task.offset)?);
        }
        if task.deadline < task.period {
            let _ = writeln!(text, "            \"deadline\": {},", us(task.deadline)?);
        }
        // The events of a thread are the keys of an object, so each has a number of its own.
        for (number, step) in task.body.iter().enumerate() {
            let _ = match step {
                Step::Run(time) => writeln!(text, "            \"run{number}\": {},", us(*time)?),
                Step::Lock(resource) | Step::Read(resource) | Step::Unlock(resource) => {
                    let word = if step.acquired().is_some() { "lock" } else { "unlock" };
                    let name = json(&system.resource(*resource).name);
                    writeln!(text, "            \"{word}{number}\": {name},")
                }
            };
        }
        let comma = if index < last { "," } else { "" };
        let _ = writeln!(
            text,
            "            \"timer\": {{ \"ref\": \"unique\", \"period\": {}, \"mode\": \"absolute\" }}\n        }}{comma}",
            us(task.period)?
        );
    }
    text.push_str("    }\n}\n");
    Ok(text)
}

/// Whether all mutexes inherit priorities: rt-app has one setting for all.
fn inherits(system: &System, protocol: Protocol) -> Result<bool, Inexpressible> {
    const HELP: &str = "add --protocol pip or none";
    let used = || system.resource_ids().filter(|&resource| !system.users(resource).is_empty());
    let mut first = None;
    for resource in used() {
        let ruling = system.protocol_of(resource, protocol);
        if !matches!(ruling, Protocol::Pip | Protocol::None) {
            return Err(unknown(ruling, "the mutexes of rt-app", HELP));
        }
        if *first.get_or_insert(ruling) != ruling {
            let message = "the mutexes of rt-app all inherit priorities, or none does".to_owned();
            return Err(Inexpressible::new(message, "give all resources of the file the same protocol"));
        }
    }
    Ok(first.unwrap_or(Protocol::Pip) == Protocol::Pip)
}

fn microseconds(time: Duration, task: &str) -> Result<u64, Inexpressible> {
    if time.as_ns().is_multiple_of(1_000) {
        return Ok(time.as_ns() / 1_000);
    }
    Err(Inexpressible::new(format!("`{task}`: rt-app has whole microseconds, and not {time}"), WHOLE))
}

fn json(text: &str) -> String {
    // A string is always JSON.
    to_string(text).unwrap_or_default()
}
