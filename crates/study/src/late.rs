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

/// What makes the job late.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Delay {
    /// A more urgent task of its processor.
    Urgent,
    /// A third processor's task, which holds another resource for long.
    LongHolder,
    /// The same, which holds it for a short time and is preempted: who counts the section and, besides, jobs of its processor counts little twice.
    PreemptedHolder,
}

/// Gives these tasks, the least urgent first, the priorities that they have together.
fn rank(tasks: &mut [Task], order: &[usize]) {
    let mut levels: Vec<Priority> = order.iter().map(|&task| tasks[task].priority).collect();
    levels.sort_unstable();
    for (&task, level) in order.iter().zip(levels) {
        tasks[task].priority = level;
    }
}

/// Draws a system of two to four processors. The task `late`, the second, is delayed by almost its period: by a more urgent task of its processor, or because it
/// waits for another resource that a third processor's task holds. It asks for the first resource, or executes beside a task that does. Others ask for that one
/// once or a few times. Each task has its own priority.
///
/// # Panics
/// Never: the system keeps every rule.
#[must_use]
pub fn generate_late(random: &mut Rng) -> System {
    let cpus = random.usize(2..=4);
    let period = random.u64(60..=200);
    let delay_by = match cpus {
        2 => Delay::Urgent,
        _ => [Delay::Urgent, Delay::LongHolder, Delay::PreemptedHolder][random.usize(0..3)],
    };
    let asks = delay_by == Delay::Urgent || random.bool();
    // What only executes, or is delayed by that alone, may take longer.
    let longest = if asks { 12 } else { 60 };
    let own = random.u64(1..=longest);
    // With four processors, often: one holds the resource when the late job asks, and another until its next one does.
    let is_handed_on = delay_by == Delay::Urgent && cpus == 4 && random.bool();
    let (held, kept) = (random.u64(1..=12), random.u64(1..=12));
    let slack = if is_handed_on { held + random.u64(0..=kept) } else { random.u64(0..=40) };
    let delay = period.saturating_sub(own + slack).max(1);
    // The victim first, alone on its processor.
    let requests = if is_handed_on { 1 } else { random.usize(1..=3) };
    let victim = (0..requests).flat_map(|_| section(0, random.u64(1..=6))).collect();
    let mut tasks = vec![task("victim".into(), 0, ONCE, victim)];
    let mut late: Vec<Step> = Vec::new();
    if delay_by != Delay::Urgent {
        late.extend(section(1, 1));
    }
    match asks {
        true => late.extend(section(0, own)),
        // It delays a holder by what it executes.
        false => late.push(run(own)),
    }
    tasks.push(task("late".into(), 1, period, late));
    match delay_by {
        Delay::Urgent => tasks.push(task("before".into(), 1, ONCE, vec![run(delay)])),
        Delay::LongHolder => tasks.push(task("far".into(), 2, ONCE, section(1, delay).into())),
        Delay::PreemptedHolder => {
            tasks.push(task("far".into(), 2, ONCE, section(1, 2).into()));
            tasks.push(task("preempts".into(), 2, ONCE, vec![run(delay)]));
        }
    }
    if !asks {
        tasks.push(task("beside".into(), 1, ONCE, section(0, random.u64(1..=longest)).into()));
    }
    let between = tasks.len();
    if is_handed_on {
        tasks.push(task("holds".into(), 2, ONCE, section(0, held).into()));
        tasks.push(task("keeps".into(), 3, ONCE, section(0, kept).into()));
    }
    let most = if is_handed_on || delay_by == Delay::PreemptedHolder { 1 } else { 3 };
    for index in 0..random.usize(0..=most) {
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
    match delay_by {
        Delay::Urgent if is_handed_on => {
            rank(&mut tasks, &[between, 0, between + 1]);
            rank(&mut tasks, &[between, 0, 1, 2]);
        }
        Delay::Urgent => rank(&mut tasks, &[1, 2]),
        Delay::LongHolder => {}
        Delay::PreemptedHolder => rank(&mut tasks, &[2, 3]),
    }
    if !asks {
        rank(&mut tasks, &[0, 1]);
    }
    let resources = 1 + usize::from(delay_by != Delay::Urgent);
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

/// When the tasks that make the late job late arrive first, and that job; `None` for others.
fn delaying(system: &System, task: TaskId) -> Option<u64> {
    match system.task(task).name.as_str() {
        "before" | "far" => Some(1),
        "late" | "preempts" => Some(2),
        _ => None,
    }
}

/// Simulates a system of [`generate_late`] with others asking when its late job is about to be done, `runs` times, and returns the first excess with the schedule
/// that shows it. The schedules climb: each changes what the best one so far had, where that one made the first task wait longest.
#[must_use]
pub fn attack_late(
    system: &System,
    analysis: &Analysis,
    protocol: Protocol,
    random: &mut Rng,
    runs: usize,
) -> Option<(Excess, Config)> {
    let (victim, late) = (TaskId::new(0), TaskId::new(1));
    let config = |offsets: &[u64], shuffle: bool, seed: u64| Config {
        protocol: Some(protocol),
        offsets: Offsets::Fixed(offsets.iter().copied().map(Duration::from_ns).collect()),
        seed,
        shuffle,
        ..Config::default()
    };
    let simulate = |config: &Config| {
        let mut simulation = Simulation::new(system, config, ());
        simulation.run_until(Instant::from_ns(ONCE));
        (simulation.observations(), simulation.ages())
    };
    // When is it done, with nobody but what delays it?
    let alone: Vec<u64> = system.task_ids().map(|id| delaying(system, id).unwrap_or(ONCE)).collect();
    let (seen, _) = simulate(&config(&alone, false, 0));
    let done = 2 + seen[late.index()].response?.as_ns();
    let again = 2 + system.task(late).period.as_ns();
    let aim = |random: &mut Rng| -> Vec<u64> {
        // One window for all: around the end of the late job, or the arrival of the next.
        let middle = random.u64(done.min(again).saturating_sub(30)..=done.max(again) + 10);
        let offset = |id: TaskId| {
            let aimed = || {
                let before = before_asking(system, id).unwrap_or(0);
                (middle + random.u64(0..=30)).saturating_sub(15 + before)
            };
            delaying(system, id).unwrap_or_else(aimed)
        };
        system.task_ids().map(offset).collect()
    };
    let mut best = (Duration::ZERO, Vec::new());
    (0..runs).find_map(|run| {
        let mut offsets = if run < runs.div_ceil(4) { aim(random) } else { best.1.clone() };
        if run >= runs.div_ceil(4) {
            for _ in 0..random.usize(1..=2) {
                let changed = random.usize(0..offsets.len());
                let far = if random.bool() { 3 } else { 15 };
                let by = random.u64(1..=far);
                let offset = &mut offsets[changed];
                *offset = if random.bool() { *offset + by } else { offset.saturating_sub(by) };
            }
        }
        let config = config(&offsets, random.bool(), random.u64(..));
        let (seen, ages) = simulate(&config);
        let response = seen[victim.index()].response.unwrap_or(Duration::ZERO);
        if response >= best.0 {
            best = (response, offsets);
        }
        hold(analysis, &seen, &ages).map(|excess| (excess, config))
    })
}
