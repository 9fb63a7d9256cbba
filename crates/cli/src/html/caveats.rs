//! The caveats that apply to a system. A test holds each sentence equal to one of CAVEATS.md.

use crate::json::{Output, Verb};
use lockwright_model::System;

/// The facts that decide whether a caveat applies.
struct Subject<'a> {
    system: &'a System,
    output: &'a Output,
}

impl Subject<'_> {
    fn is_under(&self, protocols: &[&str]) -> bool {
        self.output.results.iter().any(|result| protocols.contains(&result.protocol.as_str()))
    }

    fn has_bounds(&self) -> bool {
        self.output.results.iter().flat_map(|result| &result.tasks).any(|task| task.response_ns.is_some())
    }

    fn is_executed(&self) -> bool {
        matches!(self.output.verb, Verb::Run | Verb::Verify)
    }

    fn shares_across_cpus(&self) -> bool {
        let system = self.system;
        system.resource_ids().any(|resource| {
            let mut cpus = system.users(resource).iter().map(|&task| system.cluster(system.task(task).cpu));
            let first = cpus.next();
            cpus.any(|cpu| Some(cpu) != first)
        })
    }

    fn has_jitter(&self) -> bool {
        self.system.tasks().iter().any(|task| task.jitter.as_ns() > 0)
    }
}

/// A sentence of CAVEATS.md, and when it applies.
type Caveat = (&'static str, fn(&Subject<'_>) -> bool);

const CAVEATS: [Caveat; 13] = [
    (
        "Bounds charge **no overhead**, except where `--overheads` gives some or `verify` measures some: no context \
         switch, wake-up latency, lock operation, cache refill or interrupt.",
        |subject| subject.has_bounds() && subject.output.overheads.is_none(),
    ),
    (
        "The files that `measure protocols` writes contain no cache costs, and no measurement shows a worst case.",
        |subject| subject.output.overheads.is_some(),
    ),
    (
        "Bounds hold for tasks that never suspend except for locks, on processors that execute nothing else of equal or \
         higher priority.",
        |subject| subject.has_bounds(),
    ),
    ("Nothing here is checked by a proof assistant.", |subject| subject.has_bounds()),
    (
        "`none`, `pip`, `icpp`, `pcp`, `srp`, `ics` and `ics_lock` give no bound for a resource shared across \
         processors, nor for tasks that such a resource can delay.",
        |subject| {
            subject.shares_across_cpus() && subject.is_under(&["none", "pip", "icpp", "pcp", "srp", "ics", "ics_lock"])
        },
    ),
    (
        "Only `omlp` supports clusters of several CPUs (`c-fp`), and their bounds rest on one chain of arguments: \
         suspension as execution, then Bertogna–Cirinei on each cluster.",
        |subject| subject.system.has_clusters(),
    ),
    (
        "A simulation shows schedules and proves nothing: an observed maximum is a lower bound of the worst case.",
        |subject| subject.output.verb == Verb::Simulate,
    ),
    ("Locking, switching and migrating take no time.", |subject| {
        subject.output.verb == Verb::Simulate && subject.output.overheads.is_none()
    }),
    ("Bounds with overheads charge ticks and other interrupts, not other threads.", |subject| {
        subject.is_executed() && subject.output.overheads.is_some()
    }),
    (
        "Jobs burn time by reading the clock; a gap longer than the calibrated one counts as time in which something \
         else executed.",
        |subject| subject.is_executed(),
    ),
    ("Real threads show no release jitter: tasks are released at their arrival, by the timer.", |subject| {
        subject.is_executed() && subject.has_jitter()
    }),
    (
        "Threads that spin under `mrsp`, `msrp`, `fmlp_short`, `phase_fair` and `task_fair` nap between checks after \
         20 ms: the owner was then delayed by something outside the protocol.",
        |subject| subject.is_executed() && subject.is_under(&["mrsp", "msrp", "fmlp_short", "phase_fair", "task_fair"]),
    ),
    (
        "Under `ics` and `ics_lock`, jobs burn time and share no data: a run shows when and how often sections are \
         executed, not what they would have read.",
        |subject| subject.is_executed() && subject.is_under(&["ics", "ics_lock"]),
    ),
];

/// The caveats that apply to these results, without marks of emphasis.
pub fn caveats(system: &System, output: &Output) -> Vec<String> {
    let subject = Subject { system, output };
    CAVEATS.iter().filter(|(_, applies)| applies(&subject)).map(|(text, _)| text.replace("**", "")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_caveat_is_one_of_the_document() {
        let document = include_str!("../../../../CAVEATS.md");
        for (text, _) in CAVEATS {
            assert!(document.contains(text), "CAVEATS.md does not contain: {text}");
        }
    }
}
