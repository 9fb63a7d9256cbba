//! How overheads are charged to tasks and requests.
//!
//! The paper names "standard techniques" only. The charge here is that of preemptions in Devi's thesis (2006): with s
//! suspensions of a job,
//! ```text
//!   C' = (C + (1 + s) (2 (schedule + context switch) + refill)) / (1 - tick / quantum)
//! ```

use lockwright_model::{Overhead, Overheads, Protocol};

/// The costs for a set with a certain number of tasks, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Charges {
    /// Two scheduling decisions, two switches and one refill of caches.
    pub(super) switches: u64,
    tick: u64,
    quantum: u64,
    /// Leaving a section that was not preemptive.
    leave: u64,
    /// Entering and leaving the kernel once.
    call: u64,
    short: Pair,
    long: Pair,
    local: Pair,
}

#[derive(Clone, Copy, Debug)]
struct Pair {
    lock: u64,
    unlock: u64,
}

impl Pair {
    fn both(self) -> u64 {
        self.lock + self.unlock
    }
}

/// How a resource is locked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Short: a FIFO spinlock.
    Short,
    /// Long: a FIFO semaphore.
    Long,
    /// Long, with all users on one processor: the stack resource policy.
    Local,
}

impl Charges {
    pub(super) fn new(overheads: &Overheads, tasks: usize) -> Self {
        let cost = |of| overheads.cost(of).with(tasks).as_ns();
        let pair = |protocol| Pair {
            lock: overheads.cost_under(Overhead::Lock, protocol).with(tasks).as_ns(),
            unlock: overheads.cost_under(Overhead::Unlock, protocol).with(tasks).as_ns(),
        };
        Self {
            switches: 2 * (cost(Overhead::Schedule) + cost(Overhead::ContextSwitch)) + cost(Overhead::CacheRefill),
            tick: cost(Overhead::Tick),
            quantum: overheads.tick_period.as_ns(),
            leave: cost(Overhead::LeaveSection),
            call: cost(Overhead::SyscallIn) + cost(Overhead::SyscallOut),
            short: pair(Protocol::FmlpShort),
            long: pair(Protocol::FmlpLong),
            local: pair(Protocol::Srp),
        }
    }

    /// The execution that a request adds to its job, besides the section.
    pub(super) fn request(&self, kind: Kind) -> u64 {
        match kind {
            Kind::Short => self.short.both() + self.leave + self.call,
            Kind::Long => self.long.both() + 2 * self.call,
            Kind::Local => self.local.both() + 2 * self.call,
        }
    }

    /// The length of a section of this length as other tasks see it.
    pub(super) fn seen(&self, kind: Kind, length: u64, others: Others) -> u64 {
        match kind {
            Kind::Short => length + self.short.both(),
            Kind::Long => {
                let switches = if others == Others::Switches { self.switches } else { 0 };
                length + self.long.unlock + self.call + switches
            }
            Kind::Local => length + self.local.both(),
        }
    }

    /// Returns the execution time with scheduling and ticks, or `None` if ticks leave no time.
    pub(super) fn inflate(&self, cost: u64, suspensions: u64) -> Option<u64> {
        let cost = u128::from(cost) + u128::from(1 + suspensions) * u128::from(self.switches);
        if self.tick == 0 {
            return u64::try_from(cost).ok();
        }
        let left = self.quantum.checked_sub(self.tick).filter(|&left| left > 0)?;
        u64::try_from((cost * u128::from(self.quantum)).div_ceil(u128::from(left))).ok()
    }
}

/// The charge to the sections of others, as a task that waits for them sees them under long locks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Others {
    /// The release of the lock.
    #[default]
    Release,
    /// The release, and the switches to and from the owner.
    Switches,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtas2008::{Demand, Edf, table_1};

    #[test]
    fn charges_are_those_of_the_tables() {
        let soft = Charges::new(&table_1(Demand::Soft, Edf::Partitioned), 10);
        assert_eq!(soft.switches, 2 * (2_880 + 2_650) + 15_700);
        // An access to a buffer takes about 2 µs: 0.38 in the section, 0.26 for the lock, 0.50 and 0.85 to leave.
        assert_eq!(380 + soft.request(Kind::Short), 380 + 170 + 90 + 500 + 310 + 540);
        assert_eq!(soft.request(Kind::Long), 1_020 + 950 + 2 * 850);
        assert_eq!(soft.seen(Kind::Long, 1_000, Others::Release), 1_000 + 950 + 850);
        assert_eq!(soft.seen(Kind::Long, 1_000, Others::Switches), 1_000 + 950 + 850 + soft.switches);
        assert_eq!(soft.seen(Kind::Short, 1_000, Others::Switches), 1_260);
        // 4.45 µs of each millisecond are lost: (1,000,000 + 2 * 26,760) / 0.99555, rounded up.
        assert_eq!(soft.inflate(1_000_000, 1), Some(1_058_230));
        let busy = Charges { tick: 1_000_000, ..soft };
        assert_eq!(busy.inflate(1, 0), None);
        assert_eq!(Charges { tick: 0, quantum: 0, ..soft }.inflate(5, 0), Some(5 + soft.switches));
    }
}
