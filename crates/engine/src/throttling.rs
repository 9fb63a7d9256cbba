//! The kernel's limit on the CPU time of real-time threads.

use lockwright_model::Duration;

/// Real-time threads get at most `runtime` of every `period` on a CPU that ordinary threads also need.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Throttling {
    /// The CPU time for real-time threads.
    pub runtime: Duration,
    /// The period of the limit.
    pub period: Duration,
}

/// The kernel's limit on real-time threads, or `None` if there is none.
///
/// Before Linux 6.12, a sysctl sets the limit. Since then, a server on each CPU reserves a share for ordinary threads.
/// Its parameters are in debugfs; if they cannot be read, the kernel's defaults are assumed.
pub(crate) fn throttling() -> Option<Throttling> {
    let read = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<i64>().ok();
    let (runtime, period) = if has_fair_server() {
        let server = |name| read(&format!("/sys/kernel/debug/sched/fair_server/cpu0/{name}"));
        let (runtime, period) = (server("runtime").unwrap_or(50_000_000), server("period").unwrap_or(1_000_000_000));
        (period - runtime, period)
    } else {
        let us = |name| Some(read(&format!("/proc/sys/kernel/{name}"))? * 1_000);
        (us("sched_rt_runtime_us")?, us("sched_rt_period_us")?)
    };
    if !(0..period).contains(&runtime) {
        return None;
    }
    let ns = |value| Some(Duration::from_ns(u64::try_from(value).ok()?));
    Some(Throttling { runtime: ns(runtime)?, period: ns(period)? })
}

/// Whether the kernel is 6.12 or later.
pub(crate) fn has_fair_server() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.trim().parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(12))
}
