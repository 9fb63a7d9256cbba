//! The `[platform]` table.

use super::fields::{Fields, Found};
use super::priorities::{POLICIES, Policy};
use crate::format::diagnostic::Faults;
use crate::{CPUS_MAX, Scheduler};

/// The platform, as far as it could be read.
pub(super) struct Platform {
    /// `None` if it is wrong.
    pub(super) cpus: Option<usize>,
    /// `None` if it is wrong.
    pub(super) scheduler: Option<Scheduler>,
    pub(super) priorities: Option<Policy>,
}

impl Platform {
    pub(super) fn read(found: Option<Found>, faults: &mut Faults) -> Self {
        let Some(found) = found else {
            return Self { cpus: Some(1), scheduler: Some(Scheduler::PFp), priorities: None };
        };
        let Some(table) = found.table("`platform`", "write [platform], with one bracket", faults) else {
            return Self { cpus: None, scheduler: None, priorities: None };
        };
        let keys = ["cpus", "scheduler", "priorities"];
        let fields = Fields::of(table, "the platform", found.span(), &keys, faults);
        let cpus = match fields.get("cpus") {
            None => Some(1),
            Some(cpus) => cpus.integer("the number of CPUs", 1, CPUS_MAX as u64, faults).map(|cpus| cpus as usize),
        };
        let scheduler = match fields.get("scheduler") {
            None => Some(Scheduler::PFp),
            Some(found) => {
                let names = Scheduler::ALL.map(|scheduler| (scheduler.name(), scheduler));
                found.one_of("scheduler", "the scheduler", &names, faults)
            }
        };
        let priorities = fields
            .get("priorities")
            .and_then(|found| found.one_of("priority assignment", "`priorities`", &POLICIES, faults));
        Self { cpus, scheduler, priorities }
    }
}
