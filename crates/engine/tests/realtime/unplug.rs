//! A CPU is unplugged during a run: the run ends in words, and no thread is lost.

use crate::judge::tell;
use crate::machine::Machine;
use crate::support::{OwnCpus, R, comes, require_cpus, run_us, stop_after, task};
use lockwright::raw::SCRIPT_LEVEL;
use lockwright_engine::{Control, RunConfig, RunError, run};
use lockwright_model::{CpuId, Duration, Protocol, Resource, Step, System, Task};
use lockwright_sys::sched;

/// The machine, if the test may take CPUs from all programs of it.
fn require_unplugging() -> Option<(Machine, Vec<usize>)> {
    if std::env::var_os("LOCKWRIGHT_TEST_UNPLUG").is_none() {
        tell("skipped: set LOCKWRIGHT_TEST_UNPLUG=1 to unplug a CPU of this machine");
        return None;
    }
    let machine = require_cpus(2)?;
    Some((machine, sched::affinity().expect("a set of CPUs")))
}

fn plug(cpu: usize, is_in: bool) -> std::io::Result<()> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/online");
    std::fs::write(path, if is_in { "1" } else { "0" })
}

/// Plugs the CPU in when it is dropped, also by a panic, and then gives this thread all of its CPUs back.
struct PlugIn {
    cpu: usize,
    _own: OwnCpus,
}

impl Drop for PlugIn {
    fn drop(&mut self) {
        let plugged = plug(self.cpu, true);
        // A second panic would end the process.
        if !std::thread::panicking() {
            plugged.expect("the kernel plugs CPUs");
        }
    }
}

/// Two tasks on each CPU share a resource, whose home is the last one.
fn sharing(cpus: usize) -> System {
    let body = || vec![run_us(500), Step::Lock(R), run_us(300), Step::Unlock(R), run_us(200)];
    let tasks = (0..2 * cpus).map(|index| {
        let period_us = 8_000 * cpus as u64 + 500 * index as u64;
        task(&format!("on-cpu{index}"), index % cpus, 1 + index as u32, period_us, body())
    });
    let mut resource = Resource::new("r");
    resource.home = Some(CpuId::new(cpus - 1));
    System::new("unplug".into(), cpus, None, vec![resource], tasks.collect()).expect("a valid system")
}

/// The same tasks, all of which execute on all CPUs.
fn in_one_cluster(system: &System) -> System {
    let mut tasks = system.tasks().to_vec();
    tasks.iter_mut().for_each(|task| task.cpu = CpuId(0));
    let all = u64::MAX >> (64 - system.cpus());
    let moved = system.with_tasks(tasks).expect("a valid system");
    let masks = vec![all; moved.tasks().len()];
    moved.in_clusters(&masks).expect("one cluster")
}

/// The same tasks without those of the last CPU, where the home of the resource is.
fn with_a_free_home(system: &System) -> System {
    let is_elsewhere = |task: &Task| task.cpu.index() + 1 < system.cpus();
    system.with_tasks(system.tasks().iter().filter(|task| is_elsewhere(task)).cloned().collect()).expect("valid")
}

/// The threads of this process that are tasks of a run.
fn tasks() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").expect("the threads of this process").flatten();
    let name = |entry: std::fs::DirEntry| std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
    threads.map(name).filter(|name| name.starts_with("on-cpu")).count()
}

/// Whether no task is left. A thread that has been joined is listed until the kernel has taken it away.
///
/// BOUND: 10 s.
fn are_gone() -> bool {
    for _ in 0..1_000 {
        if tasks() == 0 {
            return true;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    false
}

#[test]
fn a_run_that_loses_a_cpu_says_so() {
    let Some((_machine, cpus)) = require_unplugging() else { return };
    // The kernel refuses to unplug a CPU if its account of reservations is wrong (docs/edf.md).
    sched::recount_deadlines();
    let system = sharing(cpus.len());
    let last = *cpus.last().expect("there are CPUs");
    // They wait in the kernel or by a flag, move tasks, spin, and hold jobs back.
    let each = [Protocol::Pip, Protocol::Mpcp, Protocol::Dpcp, Protocol::FmlpShort, Protocol::Mrsp, Protocol::Omlp];
    let mut cases: Vec<(Protocol, System)> = each.map(|protocol| (protocol, system.clone())).into();
    // The kernel leaves such tasks the CPUs that they have.
    cases.push((Protocol::Omlp, in_one_cluster(&system)));
    cases.push((Protocol::Dpcp, with_a_free_home(&system)));
    for (protocol, system) in &cases {
        let protocol = *protocol;
        // A CPU that stays away, and one that is back before the end.
        for returns in [false, true] {
            let control = Control::new();
            // However slow the machine is, the run is whole when the CPU is unplugged, and is then stopped.
            let (during, after) = (Duration::from_ms(100), Duration::from_ms(400));
            let plug_in = PlugIn { cpu: last, _own: OwnCpus(cpus.clone()) };
            let result = std::thread::scope(|scope| {
                scope.spawn(|| {
                    sched::set_fifo(sched::gettid(), SCRIPT_LEVEL).expect("permission was checked");
                    if !comes(during, &control) {
                        return;
                    }
                    plug(last, false).expect("the kernel plugs CPUs");
                    if returns {
                        plug(last, true).expect("the kernel plugs CPUs");
                    }
                    _ = stop_after(after, &control).join();
                });
                run(system, &RunConfig::new(protocol, Duration::from_ms(60_000)), &control)
            });
            drop(plug_in);
            println!("{protocol}, back: {returns}: {:?}", result.as_ref().map(|outcome| outcome.elapsed));
            let refusal = result.expect_err("what tasks did on other CPUs is no result");
            assert_eq!(refusal, RunError::CpuTaken { cpu: last }, "{protocol}");
            assert!(are_gone(), "{protocol}: {} threads are lost", tasks());
        }
    }
    // Nothing is taken from a run that keeps its CPUs.
    let control = Control::new();
    run(&system, &RunConfig::new(Protocol::FmlpLong, Duration::from_ms(50)), &control).expect("a run");
}
