//! Programs whose jobs are longer than their period (`overload.c`): the period is that of the releases, and not the
//! distance of the beginnings of jobs.

use super::support::{build, record, thread};
use lockwright_record::{Choices, Inferred, infer};
use std::io::Write;

/// Infers the task set of a program. `None` if there is no compiler, or the kernel does not permit to record switches.
fn inferred(how: &str) -> Option<(Inferred, u32)> {
    let recording = record(&build("overload.c", &[])?, &[how]);
    if !recording.switches {
        let _ = writeln!(std::io::stderr(), "skipped: the kernel does not permit to record switches");
        return None;
    }
    Some((infer(&recording, &Choices::default()), thread(&recording, "worker")))
}

#[test]
fn an_overloaded_program_keeps_its_period() {
    for how in ["semaphore", "timer", "poll"] {
        let Some((found, worker)) = inferred(how) else { return };
        let task = found.tasks.iter().find(|task| task.thread == worker);
        let task = task.unwrap_or_else(|| panic!("{how}: {:?}", found.left_out));
        // A thread that posts can itself be late. The first job may be longer than all others.
        let longest = task.cpu_ns.last().copied().unwrap_or(0);
        assert!(task.period_ns < 11_000_000 && longest > 11_900_000, "{how}: {} {longest}", task.period_ns);
        assert!(how == "semaphore" || task.period_ns == 10_000_000, "{how}: {}", task.period_ns);
        let worst = task.jobs.iter().map(lockwright_record::Job::response_ns).max().unwrap_or(0);
        // The backlog of a semaphore grows by 2 ms with each job; that of a timer is skipped.
        assert!(worst > if how == "semaphore" { 70_000_000 } else { 18_000_000 }, "{how}: {worst}");
        let skipped = found.warnings.iter().any(|warning| warning.starts_with("`worker` skipped"));
        assert_eq!(skipped, how != "semaphore", "{how}: {:?}", found.warnings);
    }
}

#[test]
fn an_overloaded_reader_has_no_period() {
    let Some((found, worker)) = inferred("pipe") else { return };
    let out = found.left_out.iter().find(|out| out.thread == worker);
    let out = out.unwrap_or_else(|| panic!("{:?}", found.tasks));
    assert!(out.has_jobs && out.reason.contains("did not wait for their release"), "{}", out.reason);
    assert!(found.warnings.iter().any(|warning| warning.starts_with("`worker` is not a task")), "{:?}", found.warnings);
}
