//! The assignment of the model's priorities to levels of SCHED_FIFO: every priority that can occur, in order, packed
//! from 1 upwards.
//!
//! Packed at the lower end, tasks stay below the interrupt threads of a PREEMPT_RT kernel (50) as long as possible.

use crate::levels::{SECTION_LEVEL, TASK_LEVELS_MAX};
use lockwright_model::{Priority, Protocol, Scheduler, System, Task};
use lockwright_protocol::{Edf, GlobalEdf, request_priorities};

/// The levels of one run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Levels(Vec<Priority>);

/// More priorities can occur than there are levels. Contains their number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TooMany(pub usize);

impl Levels {
    /// Assigns levels to all priorities that can occur: base priorities, the priorities in `changed` that tasks are
    /// changed to, and the ceilings of the protocols in use. Under `p-edf`, these are the places of jobs on the stack
    /// of a processor, and the priority of a task without a job. With [`System::has_global_locks`] there are two, and
    /// under `g-edf` without these locks none.
    ///
    /// # Errors
    /// [`TooMany`] if there are more priorities than levels.
    pub fn of(system: &System, protocol: Protocol, changed: &[Priority]) -> Result<Self, TooMany> {
        let on_cpu = |one: &Task| system.tasks().iter().filter(|task| task.cpu == one.cpu).count();
        let most = || system.tasks().iter().map(on_cpu).max().unwrap_or(0);
        let mut all: Vec<Priority> = match system.scheduler() {
            // The third priority of this scheduler is that of sections that no task preempts.
            _ if system.has_global_locks(protocol) => vec![GlobalEdf::<1, 1>::PREEMPTED, GlobalEdf::<1, 1>::RUNNING],
            // There are at most EXECUTED_TASKS_MAX tasks.
            Scheduler::PEdf => (1..=most() as u16).map(Edf::<1, 1>::at_place).chain([Edf::<1, 1>::ARRIVING]).collect(),
            // The kernel schedules by deadlines, without levels.
            Scheduler::GEdf => Vec::new(),
            _ => system.tasks().iter().map(|task| task.priority).chain(changed.iter().copied()).collect(),
        };
        for resource in system.resource_ids() {
            let users = || system.users(resource).iter().map(|&user| system.task(user));
            match system.protocol_of(resource, protocol) {
                Protocol::Icpp => all.push(system.ceiling(resource)),
                Protocol::Mpcp | Protocol::MpcpVs => {
                    let ceiling = system.mpcp_ceiling(resource);
                    all.extend(users().map(|user| ceiling.on(user.cpu)));
                }
                Protocol::Dpcp => {
                    all.extend(users().map(|user| user.priority.boosted()));
                    all.extend(changed.iter().map(|priority| priority.boosted()));
                }
                Protocol::Dflp => all.extend(request_priorities(system.tasks().len())),
                Protocol::FmlpPlus => {
                    all.extend(request_priorities(most()));
                }
                Protocol::Mrsp => all.extend(users().flat_map(|user| [user.priority, user.priority.raised()])),
                Protocol::Omlp => all.push(Priority::BASE_MAX.boosted()),
                // These protocols use only the priorities of tasks.
                _ => {}
            }
        }
        all.sort_unstable();
        all.dedup();
        if all.len() > TASK_LEVELS_MAX { Err(TooMany(all.len())) } else { Ok(Self(all)) }
    }

    /// Returns the level of a priority. A priority that was not foreseen gets the level of the next lower one.
    #[must_use]
    pub fn get(&self, priority: Priority) -> u8 {
        if priority == Priority::NON_PREEMPTIVE {
            return SECTION_LEVEL;
        }
        let place = self.0.partition_point(|&known| known <= priority);
        place.max(1) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockwright_model::{CpuId, Duration, Resource, ResourceId, Step, Task};

    fn task(name: usize, cpu: usize, level: u32) -> Task {
        let ms = Duration::from_ms(1);
        let body = vec![Step::Lock(ResourceId(0)), Step::Run(ms), Step::Unlock(ResourceId(0))];
        let (period, zero) = (Duration::from_ms(100), Duration::ZERO);
        let (name, cpu, priority) = (name.to_string(), CpuId::new(cpu), Priority::base(level));
        Task { name, cpu, priority, period, deadline: period, jitter: zero, offset: zero, wcet: ms, body }
    }

    fn system(tasks: Vec<Task>) -> System {
        let resource = Resource::new("r");
        System::new("s".into(), 2, None, vec![resource], tasks).expect("valid")
    }

    #[test]
    fn levels_keep_the_order_of_all_priorities_that_can_occur() {
        let system = system(vec![task(0, 0, 900), task(1, 1, 7), task(2, 1, 30)]);
        let levels = Levels::of(&system, Protocol::Mpcp, &[Priority::base(800)]).expect("six levels");
        let order = [7, 30, 800, 900].map(Priority::base);
        for (place, &priority) in order.iter().enumerate() {
            assert_eq!(usize::from(levels.get(priority)), place + 1);
        }
        // On the home processor of the most urgent user, the ceiling is that of the most urgent user elsewhere.
        assert_eq!(levels.get(Priority::base(30).boosted()), 5);
        assert_eq!(levels.get(Priority::base(900).boosted()), 6);
    }

    #[test]
    fn more_priorities_than_levels_are_refused() {
        let system = system((0..98).map(|index| task(index, 0, index as u32)).collect());
        assert_eq!(Levels::of(&system, Protocol::None, &[]), Err(TooMany(98)));
    }
}
