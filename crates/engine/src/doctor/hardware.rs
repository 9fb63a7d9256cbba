//! Processors, clock, virtual machine, and a sample of how late threads wake up.

use super::finding::{Finding, State, finding, read};
use lockwright::raw::SCRIPT_LEVEL;
use lockwright_sys::{SysError, clock, sched};

const SAMPLES: usize = 200;
const SAMPLE_PERIOD_NS: u64 = 1_000_000;
/// A wake-up that is later than this causes a warning, in nanoseconds.
const LATE_NS: u64 = 1_000_000;

pub(super) fn cpus() -> Finding {
    const NAME: &str = "usable CPUs";
    match sched::affinity() {
        Ok(cpus) => {
            let state = if cpus.len() > 1 { State::Ok } else { State::Warn };
            let list: Vec<String> = cpus.iter().map(ToString::to_string).collect();
            let found = format!("{}: {}", cpus.len(), list.join(" "));
            finding(
                NAME,
                state,
                found,
                "a second CPU lets other work continue while real-time tasks run; widen the set (taskset, cpuset)",
            )
        }
        Err(error) => finding(NAME, State::Missing, error.to_string(), "find out why the CPU set cannot be read"),
    }
}

pub(super) fn isolation() -> Finding {
    const NAME: &str = "isolated CPUs";
    let list =
        |name| read(&format!("/sys/devices/system/cpu/{name}")).filter(|list| !list.is_empty() && list != "(null)");
    match (list("isolated"), list("nohz_full")) {
        (None, _) => finding(
            NAME,
            State::Warn,
            "none",
            "boot with isolcpus=<list> nohz_full=<list> to keep other threads, interrupts and ticks off the CPUs of your tasks",
        ),
        (Some(isolated), None) => finding(
            NAME,
            State::Warn,
            format!("{isolated}, with ticks"),
            format!("also boot with nohz_full={isolated}"),
        ),
        (Some(isolated), Some(ticks)) => finding(NAME, State::Ok, format!("{isolated}, without ticks {ticks}"), ""),
    }
}

/// Returns `None` if the kernel does not scale the frequency.
pub(super) fn governor() -> Option<Finding> {
    let cpus = sched::affinity().ok()?;
    let governor = |cpu: &usize| read(&format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"));
    let mut governors: Vec<String> = cpus.iter().filter_map(governor).collect();
    governors.sort_unstable();
    governors.dedup();
    if governors.is_empty() {
        return None;
    }
    let state = if governors == ["performance"] { State::Ok } else { State::Warn };
    let fix = "`sudo cpupower frequency-set -g performance`; with other governors, execution times vary with the load";
    Some(finding("frequency governor", state, governors.join(", "), fix))
}

pub(super) fn clock() -> Finding {
    const NAME: &str = "clock source";
    let source = read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let source = source.unwrap_or_else(|| "unknown".into());
    // Other sources require a system call or a read of a slow device.
    let fast = ["tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page", "riscv_clocksource"];
    let state = if fast.contains(&source.as_str()) { State::Ok } else { State::Warn };
    finding(
        NAME,
        state,
        source,
        "boot with clocksource=tsc if the processor's TSC is stable; reads of this source are slow",
    )
}

pub(super) fn virtual_machine() -> Finding {
    const NAME: &str = "virtual machine";
    let info = read("/proc/cpuinfo").unwrap_or_default();
    let flags = info.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    if flags.split_whitespace().any(|flag| flag == "hypervisor") {
        return finding(
            NAME,
            State::Warn,
            "yes",
            "the host may take the CPU at any time: test behaviour here, measure times on bare metal",
        );
    }
    finding(NAME, State::Ok, "none seen", "")
}

/// Measures how late threads wake up.
///
/// BOUND: SAMPLES periods, a fifth of a second.
pub(super) fn latency() -> Finding {
    const NAME: &str = "wake-up latency";
    let thread = std::thread::Builder::new().spawn(sample);
    match thread.map(std::thread::JoinHandle::join) {
        Ok(Ok(Ok(mut late))) => {
            late.sort_unstable();
            let us = |ns: u64| format!("{}.{} us", ns / 1_000, ns % 1_000 / 100);
            let (median, worst) = (late[SAMPLES / 2], late[SAMPLES - 1]);
            let state = if worst < LATE_NS { State::Ok } else { State::Warn };
            let found = format!("{} median, {} at worst of {SAMPLES}", us(median), us(worst));
            finding(NAME, state, found, "PREEMPT_RT, isolated CPUs and bare metal; `cyclictest` measures it for longer")
        }
        Ok(Ok(Err(error))) => finding(
            NAME,
            State::Warn,
            format!("not measured: {error}"),
            "grant permission for real-time priorities, see above",
        ),
        _ => finding(NAME, State::Warn, "not measured", "find out what keeps threads from starting"),
    }
}

/// The lateness of each of SAMPLES wake-ups, in nanoseconds.
fn sample() -> Result<Vec<u64>, SysError> {
    sched::set_fifo(sched::gettid(), SCRIPT_LEVEL)?;
    sched::exact_timers();
    let start = clock::now_ns();
    (1..=SAMPLES as u64)
        .map(|sample| {
            let at = start + sample * SAMPLE_PERIOD_NS;
            clock::sleep_until(at)?;
            Ok(clock::now_ns().saturating_sub(at))
        })
        .collect()
}
