//! Random task sets with critical sections.

use fastrand::Rng;
use lockwright_model::{
    CpuId, Duration, Mode, Priority, Protocol, Resource, ResourceId, Step, System, Task, assign_rate_monotonic,
};

/// The shape of generated systems. All ranges include both ends.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Shape {
    /// The number of processors.
    pub cpus: (usize, usize),
    /// The number of tasks on all processors together.
    pub tasks: (usize, usize),
    /// The number of resources.
    pub resources: (usize, usize),
    /// The periods, in nanoseconds.
    pub period: (u64, u64),
    /// The utilization of each processor, in percent. It is reached roughly, as each task has a whole percent of a
    /// processor, and at least one.
    pub utilization: (u64, u64),
    /// The number of sections of one job.
    pub sections: (usize, usize),
    /// The longest section, in nanoseconds.
    pub section: u64,
    /// The percentage of sections that contain another one.
    pub nested: u8,
    /// The percentage of tasks with release jitter.
    pub jitter: u8,
    /// The percentage of systems with random priorities, some of them equal, instead of rate-monotonic ones.
    pub shuffled: u8,
    /// The percentage of resources with a ceiling fixed by hand, above every task.
    pub own_ceiling: u8,
    /// The percentage of resources that name a protocol of their own, and the protocols it is drawn from.
    pub own_protocol: (u8, Vec<Protocol>),
    /// The percentage of resources with a cutoff of their own, anywhere among the priorities of the tasks.
    pub cutoff: u8,
    /// The percentage of sections that read.
    pub reads: u8,
}

impl Shape {
    /// Returns the shape of small systems with short times, whose corner cases are within reach of a short simulation.
    #[must_use]
    pub fn small() -> Self {
        Self {
            cpus: (1, 3),
            tasks: (2, 7),
            resources: (1, 4),
            period: (6, 120),
            utilization: (20, 90),
            sections: (0, 3),
            section: u64::MAX,
            nested: 15,
            jitter: 20,
            shuffled: 30,
            own_ceiling: 5,
            own_protocol: (0, Vec::new()),
            cutoff: 0,
            reads: 0,
        }
    }

    /// Returns the shape of typical systems: periods of 1 to 100 ms, and sections of up to 100 us.
    #[must_use]
    pub fn usual(cpus: usize, tasks: usize, resources: usize) -> Self {
        Self {
            cpus: (cpus, cpus),
            tasks: (tasks, tasks),
            resources: (resources, resources),
            period: (1_000_000, 100_000_000),
            utilization: (50, 50),
            sections: (0, 2),
            section: 100_000,
            nested: 0,
            jitter: 0,
            shuffled: 0,
            own_ceiling: 0,
            own_protocol: (0, Vec::new()),
            cutoff: 0,
            reads: 0,
        }
    }
}

/// Draws one system with clusters of these `sizes` in turn, under `c-fp`. Its priorities are drawn as by [`generate`].
/// It has no nested sections if `shape` has none.
///
/// # Panics
/// Panics as [`generate`] does, and if `sizes` have more processors than a [`System`] may have.
#[must_use]
pub fn generate_clusters(random: &mut Rng, shape: &Shape, sizes: &[usize]) -> System {
    let shape = Shape { cpus: (sizes.len(), sizes.len()), ..shape.clone() };
    let drawn = generate(random, &shape);
    let firsts: Vec<usize> = sizes.iter().scan(0, |next, size| Some(std::mem::replace(next, *next + size))).collect();
    let mut tasks = drawn.tasks().to_vec();
    let clusters: Vec<u64> = tasks
        .iter_mut()
        .map(|task| {
            let place = task.cpu.index();
            task.cpu = CpuId::new(firsts[place]);
            ((1 << sizes[place]) - 1) << firsts[place]
        })
        .collect();
    System::new("generated".into(), sizes.iter().sum(), None, drawn.resources().to_vec(), tasks)
        .and_then(|system| system.in_clusters(&clusters))
        .expect("a generated system keeps every rule")
}

/// Draws one system. It is always valid, and may or may not be schedulable.
///
/// # Panics
/// Panics if a range of `shape` is empty or beyond the limits of a [`System`].
#[must_use]
pub fn generate(random: &mut Rng, shape: &Shape) -> System {
    let cpus = random.usize(shape.cpus.0..=shape.cpus.1);
    let count = random.usize(shape.tasks.0.max(cpus)..=shape.tasks.1.max(cpus));
    let resources: Vec<Resource> = (0..random.usize(shape.resources.0..=shape.resources.1))
        .map(|index| {
            let own = random.u8(0..100) < shape.own_protocol.0;
            let protocol = own.then(|| shape.own_protocol.1[random.usize(0..shape.own_protocol.1.len())]);
            // A ceiling above every task. A higher one would change nothing more.
            let ceiling = (random.u8(0..100) < shape.own_ceiling).then(|| Priority::base(count as u32 + 1));
            // If no cutoffs are wanted, no random number is drawn for them.
            let has_cutoff = shape.cutoff > 0 && random.u8(0..100) < shape.cutoff;
            let cutoff = has_cutoff.then(|| Priority::base(random.u32(0..=count as u32 + 1)));
            let mut resource = Resource::new(format!("r{index}"));
            (resource.protocol, resource.ceiling, resource.cutoff) = (protocol, ceiling, cutoff);
            resource
        })
        .collect();
    // A resource is used by the tasks of one processor, or by those of all.
    let homes: Vec<Option<usize>> = resources.iter().map(|_| random.bool().then(|| random.usize(0..cpus))).collect();
    let utilization = random.u64(shape.utilization.0..=shape.utilization.1);
    let mut tasks: Vec<Task> = (0..count)
        .map(|index| {
            // Every processor has a task. The other tasks are placed at random.
            let cpu = if index < cpus { index } else { random.usize(0..cpus) };
            draw_task(random, shape, index, cpu, (utilization * cpus as u64 / count as u64).max(1), &homes)
        })
        .collect();
    if random.u8(0..100) < shape.shuffled {
        for task in &mut tasks {
            task.priority = Priority::base(random.u32(1..=count as u32));
        }
    } else {
        assign_rate_monotonic(&mut tasks);
    }
    System::new("generated".into(), cpus, None, resources, tasks).expect("a generated system keeps every rule")
}

fn draw_task(
    random: &mut Rng,
    shape: &Shape,
    index: usize,
    cpu: usize,
    utilization: u64,
    homes: &[Option<usize>],
) -> Task {
    let period = random.u64(shape.period.0..=shape.period.1);
    let cost = (period * utilization * random.u64(50..=150) / 10_000).clamp(1, period);
    let usable: Vec<usize> =
        (0..homes.len()).filter(|&resource| homes[resource].is_none_or(|home| home == cpu)).collect();
    let body = draw_body(random, shape, cost, &usable);
    let deadline = if random.u8(0..4) == 0 { random.u64(cost.max(period / 2)..=period) } else { period };
    let jitter = if random.u8(0..100) < shape.jitter { random.u64(0..=deadline / 4) } else { 0 };
    Task {
        name: format!("t{index}"),
        cpu: CpuId::new(cpu),
        priority: Priority::MIN,
        period: Duration::from_ns(period),
        deadline: Duration::from_ns(deadline),
        jitter: Duration::from_ns(jitter),
        offset: Duration::ZERO,
        wcet: Duration::from_ns(cost),
        body,
    }
}

/// Draws a body with sections of at least one nanosecond each, anywhere in the job and often back to back. Nested
/// sections lock in the order of ids.
fn draw_body(random: &mut Rng, shape: &Shape, cost: u64, usable: &[usize]) -> Vec<Step> {
    let mut left = cost;
    let mut body = Vec::new();
    let run = |body: &mut Vec<Step>, ns: u64| {
        if ns > 0 {
            body.push(Step::Run(Duration::from_ns(ns)));
        }
    };
    let sections = if usable.is_empty() { 0 } else { random.usize(shape.sections.0..=shape.sections.1) };
    for _ in 0..sections {
        let before = if random.bool() { random.u64(0..=left / 2) } else { 0 };
        let length = if random.u8(0..4) == 0 {
            1
        } else {
            random.u64(0..=left.saturating_sub(before).min(shape.section)).max(1)
        };
        if before + length > left {
            break;
        }
        left -= before + length;
        run(&mut body, before);
        let outer = usable[random.usize(0..usable.len())];
        let inner = usable.iter().copied().find(|&inner| inner > outer);
        // As above, without readers no random number is drawn.
        let reads = shape.reads > 0 && random.u8(0..100) < shape.reads;
        body.push(if reads { Mode::Read } else { Mode::Write }.step(ResourceId::new(outer)));
        match inner.filter(|_| length > 1 && random.u8(0..100) < shape.nested) {
            Some(inner) => {
                let lead = random.u64(0..length);
                run(&mut body, lead);
                body.push(Step::Lock(ResourceId::new(inner)));
                let held = random.u64(1..=length - lead);
                run(&mut body, held);
                body.push(Step::Unlock(ResourceId::new(inner)));
                run(&mut body, length - lead - held);
            }
            None => run(&mut body, length),
        }
        body.push(Step::Unlock(ResourceId::new(outer)));
    }
    run(&mut body, left);
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_of_large_systems_execute_for_a_percent() {
        let shape = Shape { sections: (0, 0), ..Shape::usual(16, 1_000, 128) };
        let system = generate(&mut Rng::with_seed(1), &shape);
        for task in system.tasks() {
            let share = task.wcet.as_ns() * 1_000 / task.period.as_ns();
            assert!((4..=15).contains(&share), "{share} per mille of {}", task.period.as_ns());
        }
    }
}
