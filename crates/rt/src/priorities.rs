//! Model priorities as levels of SCHED_FIFO.
//!
//! ```text
//!   99        the watchdog
//!   98        scripted priority changes; sections no task preempts
//!   1..=97    tasks: every priority that can occur in the run, in order, packed from 1 upwards
//! ```
//!
//! Packed at the lower end, tasks stay below the interrupt threads of a PREEMPT_RT kernel (50) as long as they can.

use crate::run::PriorityChange;
use lockwright_model::{Priority, Protocol, System};
use lockwright_protocol::request_priorities;

/// Level of the watchdog.
pub(crate) const WATCHDOG_LEVEL: u8 = 99;
/// Level of the thread that carries out scripted priority changes.
pub(crate) const SCRIPT_LEVEL: u8 = 98;
/// Level of a thread inside an eager section: above all tasks, below the watchdog. Of two threads at one level neither
/// preempts the other, so that a scripted change and a section on one processor come one after the other.
pub(crate) const SECTION_LEVEL: u8 = 98;
/// Levels for tasks: 1 to this.
pub const TASK_LEVELS_MAX: usize = 97;

/// The levels of one run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Levels(Vec<Priority>);

/// More priorities can occur than there are levels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TooMany(pub(crate) usize);

impl Levels {
    /// All priorities that can occur: base priorities, ceilings of the protocols in use, and scripted ones.
    pub(crate) fn of(system: &System, protocol: Protocol, changes: &[PriorityChange]) -> Result<Self, TooMany> {
        let mut all: Vec<Priority> = system.tasks().iter().map(|task| task.priority).collect();
        all.extend(changes.iter().map(|change| change.priority));
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
                    all.extend(changes.iter().map(|change| change.priority.boosted()));
                }
                Protocol::Dflp => all.extend(request_priorities(system.tasks().len())),
                Protocol::FmlpPlus => {
                    let on = |cpu| system.tasks().iter().filter(|task| task.cpu == cpu).count();
                    let most = system.tasks().iter().map(|task| on(task.cpu)).max().unwrap_or(0);
                    all.extend(request_priorities(most));
                }
                Protocol::Mrsp => all.extend(users().flat_map(|user| [user.priority, user.priority.raised()])),
                Protocol::Omlp => all.push(Priority::BASE_MAX.boosted()),
                // Those of tasks.
                _ => {}
            }
        }
        all.sort_unstable();
        all.dedup();
        if all.len() > TASK_LEVELS_MAX { Err(TooMany(all.len())) } else { Ok(Self(all)) }
    }

    /// The level of a priority. One that was not foreseen gets the level of the next lower one.
    pub(crate) fn get(&self, priority: Priority) -> u8 {
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
    use lockwright_model::{CpuId, Duration, Instant, Resource, ResourceId, Step, Task, TaskId};

    fn task(name: usize, cpu: usize, level: u32) -> Task {
        let ms = Duration::from_ms(1);
        let body = vec![Step::Lock(ResourceId(0)), Step::Run(ms), Step::Unlock(ResourceId(0))];
        let (period, zero) = (Duration::from_ms(100), Duration::ZERO);
        let (name, cpu, priority) = (name.to_string(), CpuId::new(cpu), Priority::base(level));
        Task { name, cpu, priority, period, deadline: period, jitter: zero, offset: zero, wcet: ms, body }
    }

    fn system(tasks: Vec<Task>) -> System {
        let resource = Resource { name: "r".into(), ..Resource::default() };
        System::new("s".into(), 2, None, vec![resource], tasks).expect("valid")
    }

    #[test]
    fn levels_keep_the_order_of_all_priorities_that_can_occur() {
        let system = system(vec![task(0, 0, 900), task(1, 1, 7), task(2, 1, 30)]);
        let change = PriorityChange { at: Instant::ZERO, task: TaskId(1), priority: Priority::base(800) };
        let levels = Levels::of(&system, Protocol::Mpcp, &[change]).expect("six levels");
        let order = [7, 30, 800, 900].map(Priority::base);
        for (place, &priority) in order.iter().enumerate() {
            assert_eq!(usize::from(levels.get(priority)), place + 1);
        }
        // On the home processor of the most urgent user the ceiling is the most urgent one elsewhere.
        assert_eq!(levels.get(Priority::base(30).boosted()), 5);
        assert_eq!(levels.get(Priority::base(900).boosted()), 6);
    }

    #[test]
    fn more_priorities_than_levels_are_refused() {
        let system = system((0..98).map(|index| task(index, 0, index as u32)).collect());
        assert_eq!(Levels::of(&system, Protocol::None, &[]), Err(TooMany(98)));
    }
}
