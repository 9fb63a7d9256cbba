//! Systems whose jobs are late and come again at once, and schedules aimed at that.
//!
//! A job that is done just before the next one of its task arrives puts two jobs' sections into a window far shorter than the period. A bound that
//! forgets jobs from before the window counts one. Chance hardly finds the schedule: the job must be late by almost its period, and others must ask
//! just when it does.

use crate::hold::{Excess, hold};
use fastrand::Rng;
use lockwright_analysis::Analysis;
use lockwright_model::{
    CpuId, Duration, Instant, Priority, Protocol, Resource, ResourceId, Step, System, Task, TaskId,
};
use lockwright_sim::{Config, Offsets, Simulation};

/// Longer than anything that happens: tasks with this period have one job.
const ONCE: u64 = 2_000;

/// Steps of a body.
fn run(ns: u64) -> Step {
    Step::Run(Duration::from_ns(ns))
}

fn section(resource: usize, ns: u64) -> [Step; 3] {
    let resource = ResourceId::new(resource);
    [Step::Lock(resource), run(ns), Step::Unlock(resource)]
}

fn task(name: String, cpu: usize, period: u64, body: Vec<Step>) -> Task {
    let wcet = body.iter().fold(Duration::ZERO, |sum, step| match step {
        Step::Run(time) => sum + *time,
        _ => sum,
    });
    let period = Duration::from_ns(period.max(wcet.as_ns()));
    Task {
        name,
        cpu: CpuId::new(cpu),
        priority: Priority::MIN,
        period,
        deadline: period,
        jitter: Duration::ZERO,
        offset: Duration::ZERO,
        wcet,
        body,
    }
}

/// Draws a system of two to four processors. The task `late`, the second, is delayed by almost its period: by a more urgent task of its processor, or because it
/// waits for another resource that a third processor holds for long. It asks for the first resource, or executes beside a task that does. Others ask for
/// that one once or a few times. Each task has its own priority.
///
/// # Panics
/// Never: the system keeps every rule.
#[must_use]
pub fn generate_late(random: &mut Rng) -> System {
    let cpus = random.usize(2..=4);
    let period = random.u64(60..=200);
    let length = |random: &mut Rng| random.u64(1..=12);
    let own = length(random);
    let waits_elsewhere = cpus > 2 && random.bool();
    let delay = (period - random.u64(own..=own + 40)).max(1);
    // The victim first, alone on its processor or the least urgent there.
    let requests = random.usize(1..=3);
    let victim = (0..requests).flat_map(|_| section(0, random.u64(1..=6))).collect();
    let mut tasks = vec![task("victim".into(), 0, ONCE, victim)];
    let asks = waits_elsewhere && random.bool();
    let mut late: Vec<Step> = Vec::new();
    if waits_elsewhere {
        late.extend(section(1, 1));
    }
    match asks {
        // It delays a holder by what it executes.
        true => late.push(run(own)),
        false => late.extend(section(0, own)),
    }
    tasks.push(task("late".into(), 1, period, late));
    if waits_elsewhere {
        tasks.push(task("far".into(), 2, ONCE, section(1, delay).into()));
    } else {
        tasks.push(task("before".into(), 1, ONCE, vec![run(delay)]));
    }
    if asks {
        tasks.push(task("beside".into(), 1, ONCE, section(0, length(random)).into()));
    }
    for index in 0..random.usize(0..=3) {
        let cpu = random.usize(1..cpus);
        let sections = random.usize(1..=2);
        let body = (0..sections).flat_map(|_| section(0, random.u64(1..=12))).collect();
        let again = if random.u8(0..4) == 0 { random.u64(100..=400) } else { ONCE };
        tasks.push(task(format!("other{index}"), cpu, again, body));
    }
    let mut levels: Vec<u32> = (1..=tasks.len() as u32).collect();
    random.shuffle(&mut levels);
    for (task, level) in tasks.iter_mut().zip(levels) {
        task.priority = Priority::base(level);
    }
    // Whoever delays the late one on its processor is more urgent.
    if !waits_elsewhere && tasks[2].priority < tasks[1].priority {
        let (before, late) = (tasks[2].priority, tasks[1].priority);
        (tasks[2].priority, tasks[1].priority) = (late, before);
    }
    let resources = 1 + usize::from(waits_elsewhere);
    let resources = (0..resources).map(|index| Resource { name: format!("r{index}"), ..Resource::default() });
    System::new("late".into(), cpus, None, resources.collect(), tasks).expect("a generated system keeps every rule")
}

/// How long a job executes before it first asks for the first resource; `None` where it does not.
fn before_asking(system: &System, task: TaskId) -> Option<u64> {
    let mut sum = 0;
    for step in &system.task(task).body {
        match step {
            Step::Run(time) => sum += time.as_ns(),
            Step::Lock(resource) if resource.index() == 0 => return Some(sum),
            _ => {}
        }
    }
    None
}

/// Simulates a system of [`generate_late`] with others asking when its late job is about to be done, `runs` times, and returns the first excess with the schedule
/// that shows it.
#[must_use]
pub fn attack_late(
    system: &System,
    analysis: &Analysis,
    protocol: Protocol,
    random: &mut Rng,
    runs: usize,
) -> Option<(Excess, Config)> {
    let (late, delays) = (TaskId::new(1), TaskId::new(2));
    let config = |offsets: Vec<u64>, shuffle: bool, seed: u64| Config {
        protocol: Some(protocol),
        offsets: Offsets::Fixed(offsets.into_iter().map(Duration::from_ns).collect()),
        seed,
        shuffle,
        ..Config::default()
    };
    // When is it done, with nobody but what delays it?
    let first = |id: TaskId| {
        if id == late {
            2
        } else if id == delays {
            1
        } else {
            ONCE
        }
    };
    let alone = config(system.task_ids().map(first).collect(), false, 0);
    let mut simulation = Simulation::new(system, &alone, ());
    simulation.run_until(Instant::from_ns(ONCE));
    let done = 2 + simulation.observations()[late.index()].response?.as_ns();
    let again = 2 + system.task(late).period.as_ns();
    (0..runs).find_map(|_| {
        // One window for all: around the end of the late job, or the arrival of the next.
        let middle = random.u64(done.min(again).saturating_sub(30)..=done.max(again) + 10);
        let offset = |id: TaskId| {
            if id == late || id == delays {
                return first(id);
            }
            let before = before_asking(system, id).unwrap_or(0);
            (middle + random.u64(0..=30)).saturating_sub(15 + before)
        };
        let config = config(system.task_ids().map(offset).collect(), random.bool(), random.u64(..));
        let mut simulation = Simulation::new(system, &config, ());
        simulation.run_until(Instant::from_ns(ONCE));
        hold(analysis, &simulation.observations(), &simulation.ages()).map(|excess| (excess, config))
    })
}
