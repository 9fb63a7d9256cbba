//! Two tasks share a bus under the priority ceiling protocol of a task set (`icpp`).
//!
//! Each thread joins the task set as one task: it executes under SCHED_FIFO, on the CPU and at the priority of the
//! task. This needs permission for real-time priorities; without it, the example says how to grant that.
//!
//! `cargo run -p lockwright --example task_set`

use lockwright::tasks::{Protocol, ResourceId, TaskError, TaskId, TaskSet};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

/// Executes ten jobs, each with one section on the bus.
fn task(set: &TaskSet, task: TaskId, bus: ResourceId) -> Result<(), TaskError> {
    let me = set.join(task)?;
    for _ in 0..10 {
        let job = me.begin()?;
        let section = job.lock(bus)?;
        // Here the thread executes at the ceiling of the bus, so no other user of the bus on this CPU preempts it.
        section.end()?;
        // A job ends before the thread sleeps.
        drop(job);
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn execute() -> Result<(), TaskError> {
    let mut builder = TaskSet::builder(Protocol::Icpp);
    let bus = builder.resource("bus");
    // Both are on CPU 0 of those that the process may use. A greater number is more urgent.
    let control = builder.task("control", 0, 20, &[bus]);
    let logging = builder.task("logging", 0, 10, &[bus]);
    let set = &builder.build()?;
    thread::scope(|scope| {
        let threads = [control, logging].map(|id| scope.spawn(move || task(set, id, bus)));
        threads.into_iter().try_for_each(|thread| thread.join().expect("the thread ends"))
    })
}

fn main() -> ExitCode {
    match execute() {
        Ok(()) => {
            println!("both tasks executed ten jobs");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
