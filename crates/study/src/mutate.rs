//! Mutations of a given system.

use fastrand::Rng;
use lockwright_model::{Duration, Priority, Protocol, Step, System};

/// Changes some priorities, jitters, runs, periods, protocols and ceilings of a system, and keeps the nesting of its
/// sections. Returns `None` if the result breaks a rule.
///
/// Runs are assumed to be short: longer ones are cut to 60 ns.
#[must_use]
pub fn mutate(random: &mut Rng, system: &System) -> Option<System> {
    let (mut tasks, mut resources) = (system.tasks().to_vec(), system.resources().to_vec());
    for task in &mut tasks {
        if random.u8(0..5) == 0 {
            task.priority = Priority::base((task.priority.level() + random.u32(0..3)).saturating_sub(1));
        }
        if random.u8(0..4) == 0 {
            task.jitter = Duration::from_ns(random.u64(0..20));
        }
        if random.u8(0..6) == 0 {
            task.body.insert(0, Step::Run(Duration::from_ns(random.u64(1..9))));
        }
        let mut wcet = Duration::ZERO;
        for step in &mut task.body {
            if let Step::Run(time) = step {
                let ns = time.as_ns();
                let longest = ns.min(40) + 10;
                *time = Duration::from_ns(if random.u8(0..3) == 0 { random.u64(1..=longest) } else { ns.min(60) });
                wcet += *time;
            }
        }
        let period = Duration::from_ns(random.u64(200..900));
        (task.wcet, task.period, task.deadline) = (wcet, period, period);
    }
    for resource in &mut resources {
        if random.u8(0..6) == 0 {
            resource.protocol = Some(Protocol::ALL[random.usize(0..Protocol::ALL.len())]);
        }
        if random.u8(0..6) == 0 {
            resource.ceiling = Some(Priority::base(random.u32(2..7)));
        }
    }
    System::new("mutant".into(), system.cpus(), None, resources, tasks).ok()
}
