//! The methods of a study: a scheduler, a protocol, a test and overheads.

use lockwright_analysis::{best, best_scheduled, charge, schedulable, scheduled};
use lockwright_model::{Duration, Overheads, Protocol, Scheduler, System, Task};
use std::sync::Arc;

/// A way to judge systems.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Method {
    /// The name in results.
    pub name: String,
    /// The scheduler.
    pub scheduler: Scheduler,
    /// The protocol of all resources. `None` under partitioned EDF stands for SRP and MSRP.
    pub protocol: Option<Protocol>,
    /// The test.
    pub test: Test,
    /// The overheads that are charged, with their name in results.
    pub overheads: Option<(String, Arc<Overheads>)>,
}

/// A schedulability test.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Test {
    /// Response times with the terms of the protocol's page.
    Classic,
    /// Response times with the least bound of each task, classic or by a linear program. Under partitioned EDF, the
    /// processor demand or a linear program of each processor.
    Best,
    /// The processor demand of each processor.
    Demand,
    /// All tests of the scheduler: one that accepts suffices.
    Any,
    /// Tardiness with a bound: deadlines may be missed, but by no more than that.
    Tardiness,
    /// One of the tests of the scheduler, by its name in [`Scheduled::tests`](lockwright_analysis::Scheduled::tests).
    Named(&'static str),
}

impl Test {
    /// Returns the names of the tests of a scheduler. The first one is the default.
    pub(super) const fn of(scheduler: Scheduler) -> &'static [(&'static str, Self)] {
        match scheduler {
            Scheduler::PEdf => &[("demand", Self::Demand), ("best", Self::Best)],
            Scheduler::CFp => &[("classic", Self::Classic)],
            Scheduler::GFp => &[("guan", Self::Any)],
            Scheduler::GEdf => &[
                ("any", Self::Any),
                ("gfb", Self::Named("GFB")),
                ("bak", Self::Named("BAK")),
                ("bcl", Self::Named("BCL")),
                ("iterative-bcl", Self::Named("iterative BCL")),
                ("ff-dbf", Self::Named("FF-DBF")),
                ("bar", Self::Named("BAR")),
                ("rta", Self::Named("RTA")),
                ("tardiness", Self::Tardiness),
            ],
            _ => &[("classic", Self::Classic), ("best", Self::Best)],
        }
    }

    /// Returns the name, as files spell it.
    #[must_use]
    pub fn name(self, scheduler: Scheduler) -> &'static str {
        Self::of(scheduler).iter().find(|(_, test)| *test == self).map_or("", |(name, _)| name)
    }
}

/// Returns the protocols that studies have under a scheduler.
pub(super) const fn protocols(scheduler: Scheduler) -> &'static [Protocol] {
    match scheduler {
        Scheduler::PEdf => &[Protocol::LockFree, Protocol::WaitFree],
        Scheduler::CFp => &[Protocol::Omlp],
        Scheduler::GEdf | Scheduler::GFp => {
            &[Protocol::FmlpShort, Protocol::FmlpLong, Protocol::LockFree, Protocol::WaitFree]
        }
        _ => &Protocol::ALL,
    }
}

impl Method {
    /// Returns the greatest tardiness in nanoseconds that the method allows a system, or `None` if it does not accept
    /// the system. It is 0 for tests that prove that all deadlines are met.
    #[must_use]
    pub fn tardiness(&self, system: &System) -> Option<u64> {
        if self.test != Test::Tardiness {
            return self.accepts(system).then_some(0);
        }
        let (system, none) = (self.ruled(system), Overheads::default());
        let result = scheduled(&system, self.overheads.as_ref().map_or(&none, |(_, overheads)| overheads)).ok()?;
        if result.schedulable {
            return Some(0);
        }
        let late = |(task, response): (&Task, &Option<Duration>)| {
            Some((*response)?.as_ns().saturating_sub(task.deadline.as_ns()))
        };
        let late: Option<Vec<u64>> = system.tasks().iter().zip(&result.responses).map(late).collect();
        late?.into_iter().max()
    }

    /// Returns the system under the scheduler and the protocol.
    fn ruled(&self, system: &System) -> System {
        let system = system.clone().under(self.scheduler);
        match self.protocol {
            Some(protocol) => system.with_protocol(protocol),
            None => system,
        }
    }

    /// Returns whether the method proves that a system meets all deadlines.
    fn accepts(&self, system: &System) -> bool {
        let none = Overheads::default();
        let overheads = self.overheads.as_ref().map(|(_, overheads)| &**overheads);
        if matches!(self.scheduler, Scheduler::PFp | Scheduler::CFp) {
            let protocol = self.protocol.unwrap_or(Protocol::None);
            let proves = |system: &System| match self.test {
                Test::Best => {
                    let (bounds, _) = best(system, protocol);
                    system.task_ids().all(|id| bounds.task(id).schedulable || system.is_interrupt(id))
                }
                _ => schedulable(system, protocol),
            };
            // Overheads that leave no time refute the system.
            return match overheads {
                None => proves(system),
                Some(overheads) => charge(system, overheads, protocol).is_ok_and(|charged| proves(&charged)),
            };
        }
        let (system, overheads) = (self.ruled(system), overheads.unwrap_or(&none));
        let result = match self.test {
            Test::Best => best_scheduled(&system, overheads).map(|(found, _)| found),
            _ => scheduled(&system, overheads),
        };
        result.is_ok_and(|result| match self.test {
            Test::Named(name) => result.tests.iter().any(|test| test.name == name && test.failure.is_none()),
            _ => result.schedulable,
        })
    }
}
