//! Checks what this machine lacks for real time, and suggests fixes.
//!
//! The checks read files, and, where files are not enough, try operations on a separate thread. They change nothing,
//! with two exceptions: the cpuset partitions that a killed run left are removed, and if the kernel's account of
//! deadline reservations is below zero, it counts again.
//!
//! | file | about |
//! |---|---|
//! | `rights` | the permissions of the process: priorities, locked memory |
//! | `kernel` | how the kernel was built and configured |
//! | `hardware` | processors, clock, virtual machine, and a sample of wake-up latencies |

mod finding;
mod hardware;
mod kernel;
mod rights;

pub use finding::{Finding, State};
pub use rights::try_realtime;

/// Examines this machine and this process. Takes less than half a second, and some seconds more if a killed run left
/// partitions.
#[must_use]
pub fn examine() -> Vec<Finding> {
    let mut findings = vec![
        rights::realtime(),
        rights::realtime_limit(),
        rights::memory_limit(),
        kernel::pi_futexes(),
        kernel::preemption(),
    ];
    findings.extend(kernel::throttling());
    findings.extend([
        kernel::tracefs(),
        kernel::robust_list(),
        kernel::rseq(),
        kernel::slice_extension(),
        kernel::membarrier(),
        hardware::cpus(),
        hardware::isolation(),
        kernel::cpusets(),
        kernel::reservations(),
    ]);
    findings.extend(hardware::governor());
    findings.extend([hardware::clock(), hardware::virtual_machine(), hardware::latency()]);
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_has_a_fix() {
        for finding in examine() {
            println!("{:<24} {:<8} {}  {}", finding.name, finding.state, finding.found, finding.fix);
            assert!(!finding.found.is_empty(), "{finding:?}");
            assert_eq!(finding.fix.is_empty(), finding.state == State::Ok, "{finding:?}");
        }
    }
}
