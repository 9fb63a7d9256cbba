//! How the kernel was built and configured.

use super::finding::{Finding, State, finding, read};
use crate::cpusets::{CpusetError, Kernel, Left, sweep};
use crate::throttling::{Limiter, Throttling, limits};
use lockwright_sys::robust::unlocks_in_one_step;
use lockwright_sys::time_slice::Extension;
use lockwright_sys::{probe, sched};

/// Locks and unlocks a PI futex through the kernel.
pub(super) fn pi_futexes() -> Finding {
    const NAME: &str = "PI futexes";
    match probe::try_pi_futex() {
        Ok(()) => finding(NAME, State::Ok, "locked and unlocked one", ""),
        Err(error) => finding(NAME, State::Missing, error.to_string(), "a kernel built with CONFIG_FUTEX_PI"),
    }
}

pub(super) fn preemption() -> Finding {
    const NAME: &str = "PREEMPT_RT";
    const FIX: &str = "a kernel with PREEMPT_RT (Debian: linux-image-rt-amd64; Ubuntu: realtime-kernel); without it the \
                       kernel itself may delay a task by milliseconds";
    if probe::is_preempt_rt() {
        return finding(NAME, State::Ok, "the kernel is fully preemptible", "");
    }
    let version = read("/proc/version").unwrap_or_default();
    let model = ["PREEMPT_DYNAMIC", "PREEMPT_LAZY", "PREEMPT"].iter().find(|model| version.contains(**model));
    // "none voluntary (full)": the mode in parentheses is active.
    let dynamic = read("/sys/kernel/debug/sched/preempt");
    let dynamic =
        dynamic.as_deref().and_then(|modes| modes.split(['(', ')']).nth(1)).map(|mode| format!(", now {mode}"));
    let found = format!("no; {}{}", model.unwrap_or(&"not preemptible"), dynamic.unwrap_or_default());
    finding(NAME, State::Warn, found, FIX)
}

pub(super) fn throttling() -> Vec<Finding> {
    const NAME: &str = "real-time throttling";
    let limits = limits();
    if limits.is_empty() {
        return vec![finding(NAME, State::Ok, "off", "")];
    }
    let found = |limit: Throttling| {
        let fix = match limit.by {
            Limiter::FairServer => {
                "keep ordinary threads off the CPUs of your tasks (isolcpus=<list>), or write 0 to \
                 /sys/kernel/debug/sched/fair_server/cpu<N>/runtime (since Linux 6.12 no sysctl lifts it); a runaway task \
                 then takes its CPU for good"
            }
            Limiter::Kernel | Limiter::Group => {
                "`sudo sysctl kernel.sched_rt_runtime_us=-1` if the load of a CPU exceeds the limit; a runaway task then \
                 takes its CPU for good"
            }
        };
        finding(NAME, State::Warn, limit.to_string(), fix)
    };
    limits.into_iter().map(found).collect()
}

pub(super) fn tracefs() -> Finding {
    const NAME: &str = "tracefs";
    let mounted = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    match mounted.iter().find(|path| std::path::Path::new(path).join("trace").exists()) {
        Some(path) => finding(NAME, State::Ok, format!("mounted at {path}"), ""),
        None if std::path::Path::new(mounted[0]).exists() => finding(
            NAME,
            State::Warn,
            "not mounted, or not visible to this user",
            "`sudo mount -t tracefs nodev /sys/kernel/tracing`; without it, kernel traces cannot show what delayed a task",
        ),
        None => finding(NAME, State::Warn, "not supported by the kernel", "a kernel built with CONFIG_FTRACE"),
    }
}

/// Removes the cpuset partitions of runs that were killed.
pub(super) fn cpusets() -> Finding {
    const NAME: &str = "cpuset partitions";
    match sweep(&Kernel) {
        Ok(Left { removed: 0, used_by: None }) => finding(NAME, State::Ok, "none is left of a run", ""),
        Ok(Left { removed: 0, used_by: Some(process) }) => {
            finding(NAME, State::Ok, format!("in use by process {process}"), "")
        }
        Ok(Left { removed, .. }) => {
            finding(NAME, State::Ok, format!("removed {removed} groups that a killed run left"), "")
        }
        Err(CpusetError::NotMounted) => {
            finding(NAME, State::Ok, "no mounted hierarchy has cpusets; only `run --sched-deadline` needs them", "")
        }
        Err(error) => finding(
            NAME,
            State::Warn,
            format!("those of a killed run, if there are any, cannot be removed: {error}"),
            "`sudo lockwright doctor` removes them; until then CPUs can be kept from other threads",
        ),
    }
}

/// Makes the kernel count the reservations under SCHED_DEADLINE again if its account is wrong.
pub(super) fn reservations() -> Finding {
    const NAME: &str = "deadline reservations";
    let wrong = "the kernel counted them below zero, and refused SCHED_DEADLINE to all programs";
    let before = sched::reserved();
    sched::recount_deadlines();
    match before {
        None => finding(NAME, State::Ok, "not shown to this process", ""),
        Some(0..) => finding(NAME, State::Ok, "the kernel's account is not below zero", ""),
        Some(_) if sched::reserved() < Some(0) => {
            finding(NAME, State::Warn, wrong, "`cat /proc/sys/kernel/sched_rt_runtime_us` makes it count again")
        }
        Some(_) => finding(NAME, State::Ok, format!("{wrong}; it has counted again"), ""),
    }
}

pub(super) fn robust_list() -> Finding {
    const NAME: &str = "robust futexes";
    match probe::has_robust_list() {
        true if unlocks_in_one_step() => {
            finding(NAME, State::Ok, "available; unlocks use the function of the vDSO", "")
        }
        has => known(NAME, has, "a kernel built with CONFIG_FUTEX"),
    }
}

pub(super) fn rseq() -> Finding {
    known("restartable sequences", probe::has_rseq(), "Linux 4.18 or later with CONFIG_RSEQ")
}

pub(super) fn slice_extension() -> Finding {
    const NAME: &str = "time slice extension";
    // Enabled for a thread, it stays so.
    let tried = std::thread::Builder::new().spawn(|| Extension::enable().map(drop));
    match tried.map_err(|error| error.to_string()).and_then(|thread| thread.join().map_err(|_| "a panic".into())) {
        Ok(Ok(())) => finding(NAME, State::Ok, "available for `section::Extended`; on PREEMPT_RT, it seldom helps", ""),
        Ok(Err(why)) => finding(NAME, State::Warn, "not available", why.to_string()),
        Err(error) => finding(NAME, State::Warn, format!("not tried: {error}"), "room for one more thread"),
    }
}

pub(super) fn membarrier() -> Finding {
    known("membarrier", probe::has_membarrier(), "Linux 4.14 or later with CONFIG_MEMBARRIER")
}

/// A feature without which runs still work.
fn known(name: &'static str, has: bool, fix: &str) -> Finding {
    match has {
        true => finding(name, State::Ok, "available", ""),
        false => finding(name, State::Warn, "not available", fix),
    }
}
