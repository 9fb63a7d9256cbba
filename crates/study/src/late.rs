//! Systems with a job that finishes late, just before the next job of its task arrives, and schedules aimed at them.
//!
//! Such a pair of jobs puts the sections of two jobs into a window far shorter than the period. A bound without
//! carry-in, which ignores jobs from before the window, counts one. Random schedules hardly ever find the case: the job
//! must be late by almost its period, and others must make their requests at that time.

use crate::hold::{Excess, hold};
use fastrand::Rng;
use lockwright_analysis::Analysis;
use lockwright_model::{
    CpuId, Duration, Instant, Priority, Protocol, Resource, ResourceId, Step, System, Task, TaskId,
};
use lockwright_sim::{Config, Offsets, Simulation};

/// A period longer than the simulation. A task with this period has one job.
const ONCE: u64 = 2_000;

/// Returns a run of a body.
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

/// The reason why the job is late.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Delay {
    /// A more urgent task of its processor.
    Urgent,
    /// A task of a third processor that holds another resource for long.
    LongHolder,
    /// The same task, which holds the resource briefly but is preempted. A bound that counts the section and,
    /// separately, jobs of its processor counts little twice.
    PreemptedHolder,
}

/// Permutes the priorities of these tasks so that they ascend in the given order.
fn rank(tasks: &mut [Task], order: &[usize]) {
    let mut levels: Vec<Priority> = order.iter().map(|&task| tasks[task].priority).collect();
    levels.sort_unstable();
    for (&task, level) in order.iter().zip(levels) {
        tasks[task].priority = level;
    }
}

/// Draws a system of two to four processors for [`attack_late`].
///
/// The first task, `victim`, is alone on its processor and requests the first resource. The second task, `late`, is
/// delayed by almost its period: by a more urgent task of its processor, or because it waits for another resource that
/// a task of a third processor holds. `late` requests the first resource itself, or delays a task of its processor
/// that does. Other tasks request that resource once or a few times. Each task has its own priority.
///
/// # Panics
/// Never panics: the system keeps every rule.
#[must_use]
pub fn generate_late(random: &mut Rng) -> System {
    let cpus = random.usize(2..=4);
    let period = random.u64(60..=200);
    let delay_by = match cpus {
        2 => Delay::Urgent,
        _ => [Delay::Urgent, Delay::LongHolder, Delay::PreemptedHolder][random.usize(0..3)],
    };
    let asks = delay_by == Delay::Urgent || random.bool();
    // A task that only executes, or is delayed by that alone, may take longer.
    let longest = if asks { 12 } else { 60 };
    let own = random.u64(1..=longest);
    // Often with four processors: one task holds the resource when
    // the late job requests it, and another until its next job does.
    let is_handed_on = delay_by == Delay::Urgent && cpus == 4 && random.bool();
    let (held, kept) = (random.u64(1..=12), random.u64(1..=12));
    let slack = if is_handed_on { held + random.u64(0..=kept) } else { random.u64(0..=40) };
    let delay = period.saturating_sub(own + slack).max(1);
    // The victim is the first task, alone on its processor.
    let requests = if is_handed_on { 1 } else { random.usize(1..=3) };
    let victim = (0..requests).flat_map(|_| section(0, random.u64(1..=6))).collect();
    let mut tasks = vec![task("victim".into(), 0, ONCE, victim)];
    let mut late: Vec<Step> = Vec::new();
    if delay_by != Delay::Urgent {
        late.extend(section(1, 1));
    }
    match asks {
        true => late.extend(section(0, own)),
        // It delays a holder by its execution.
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
    let resources = (0..resources).map(|index| Resource::new(format!("r{index}")));
    System::new("late".into(), cpus, None, resources.collect(), tasks).expect("a generated system keeps every rule")
}

/// Returns how long a job executes before its first request for the first resource, or `None` if it makes none.
fn before_asking(system: &System, task: TaskId) -> Option<u64> {
    let mut sum = 0;
    for step in &system.task(task).body {
        match step {
            Step::Run(time) => sum += time.as_ns(),
            Step::Lock(resource) | Step::Read(resource) if resource.index() == 0 => return Some(sum),
            _ => {}
        }
    }
    None
}

/// Returns the first arrivals of the late job and of the tasks that delay it, or `None` for other tasks.
fn delaying(system: &System, task: TaskId) -> Option<u64> {
    match system.task(task).name.as_str() {
        "before" | "far" => Some(1),
        "late" | "preempts" => Some(2),
        _ => None,
    }
}

/// Simulates a system of [`generate_late`] `runs` times, with requests of other tasks when the late job is about to
/// finish. Returns the first excess with the configuration that shows it.
///
/// The schedules climb a hill: each of them changes the schedule
/// in which the first task has had its longest response so far.
#[must_use]
pub fn attack_late(
    system: &System,
    analysis: &Analysis,
    protocol: Protocol,
    random: &mut Rng,
    runs: usize,
) -> Option<(Excess, Config)> {
    let (victim, late) = (TaskId::new(0), TaskId::new(1));
    let config = |offsets: &[u64], shuffle: bool, seed: u64| {
        Config::default()
            .with_protocol(protocol)
            .with_offsets(Offsets::Fixed(offsets.iter().copied().map(Duration::from_ns).collect()))
            .with_seed(seed)
            .with_shuffle(shuffle)
    };
    let simulate = |config: &Config| {
        let mut simulation = Simulation::new(system, config, ());
        simulation.run_until(Instant::from_ns(ONCE));
        (simulation.observations(), simulation.ages())
    };
    // The time at which the late job finishes if only the tasks that delay it execute.
    let alone: Vec<u64> = system.task_ids().map(|id| delaying(system, id).unwrap_or(ONCE)).collect();
    let (seen, _) = simulate(&config(&alone, false, 0));
    let done = 2 + seen[late.index()].response?.as_ns();
    let again = 2 + system.task(late).period.as_ns();
    let aim = |random: &mut Rng| -> Vec<u64> {
        // One window for all requests: around the end of the late job, or the arrival of the next one.
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
