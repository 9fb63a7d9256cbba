//! Derives observations from the records of a run or of a simulation.
//!
//! Run and Stop events show which task executes on a CPU. From them follow the *blocking* of a job (the time in which
//! the job was unfinished, and its CPU was idle or executed something less urgent) and its *time line* (what its CPU
//! did from its arrival to its finish).
//!
//! In a cluster of m CPUs, a job is blocked while it is among the m most urgent unfinished jobs of its cluster and does
//! not execute. More urgent jobs count even while they wait: the analysis treats waiting as execution.
//!
//! In a simulation, this is the blocking of the theory. On a machine, no task executes during wake-up latency, kernel
//! activity, interrupts or preemption by the host, so the blocking includes these times, which the theory omits.

use lockwright_model::{CpuId, Duration, Event, Instant, Observation, Record, ResourceId, System, Task, TaskId};

/// A stretch of time in which one task, or no task, executes on a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stretch {
    from: Instant,
    until: Instant,
    task: Option<TaskId>,
}

/// The time line of a job: the activity of its CPU, or of the CPUs of its cluster, from its arrival to its finish.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Timeline {
    /// The tasks that executed, and for how long; the longest first.
    pub executed: Vec<(TaskId, Duration)>,
    /// The times at which no task of the system executed on a CPU: idle, wake-up latency, the kernel, other threads,
    /// interrupts, the host.
    pub gaps: Vec<Gap>,
}

impl Timeline {
    /// The total length of the gaps, over all CPUs.
    #[must_use]
    pub fn unaccounted(&self) -> Duration {
        self.gaps.iter().map(Gap::length).sum()
    }
}

/// A stretch of time in which no task of the system executed on a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gap {
    /// The CPU, by its number in the system.
    pub cpu: CpuId,
    /// The start.
    pub from: Instant,
    /// The end.
    pub until: Instant,
}

impl Gap {
    /// The length of the gap.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.until.since(self.from)
    }
}

/// One job, as the records show it.
#[derive(Clone, Copy)]
struct Seen {
    arrival: Instant,
    finish: Option<Instant>,
    lock_wait: Duration,
    /// The part of `lock_wait` in which the job executed.
    spun: Duration,
}

/// Derives the observations of every task, by id. `records` must be in order of time.
///
/// A job that is unfinished at the end of the records counts as a miss if its deadline has passed; its response time,
/// blocking and lock waits are not counted. The base priorities are those of the system. Under `p-edf` and `g-edf` no
/// blocking is observed: it is defined by fixed priorities.
#[must_use]
pub fn observe(system: &System, records: &[Record]) -> Vec<Observation> {
    let end = records.last().map_or(Instant::ZERO, |record| record.at);
    let jobs = jobs(system, records);
    let mut observations = vec![Observation::default(); system.tasks().len()];
    for record in records.iter().filter(|record| matches!(record.event, Event::Restart(_))) {
        observations[record.task.index()].restarts += 1;
    }
    let all: Vec<Vec<Stretch>> = (0..system.cpus()).map(|cpu| stretches(system, records, CpuId::new(cpu))).collect();
    let moves = records.iter().any(|record| matches!(record.event, Event::Migrate(_)));
    for cpu in (0..system.cpus()).map(CpuId::new) {
        let stretches = &all[cpu.index()];
        let others: Vec<&[Stretch]> = if moves {
            all.iter().enumerate().filter(|(other, _)| *other != cpu.index()).map(|(_, one)| &one[..]).collect()
        } else {
            Vec::new()
        };
        for id in system.task_ids().filter(|&id| system.task(id).cpu == cpu) {
            let task = system.task(id);
            let seen = &mut observations[id.index()];
            for job in &jobs[id.index()] {
                let Some(finish) = job.finish else {
                    seen.misses += u64::from(end.since(job.arrival) > task.deadline);
                    continue;
                };
                let response = finish.since(job.arrival);
                seen.jobs += 1;
                seen.misses += u64::from(response > task.deadline);
                seen.response = seen.response.max(Some(response));
                seen.lock_wait = seen.lock_wait.max(Some(job.lock_wait));
                let blocked = blocking(system, stretches, task, job.arrival, finish);
                // Execution on another CPU is not blocking.
                let blocked = (blocked + job.spun).saturating_sub(away(&others, id, job.arrival, finish));
                seen.blocking = seen.blocking.max(Some(blocked));
            }
        }
    }
    if system.has_clusters() {
        for (seen, delay) in observations.iter_mut().zip(delays_in_clusters(system, records)) {
            seen.blocking = delay;
        }
    }
    if system.scheduler().is_by_deadline() {
        observations.iter_mut().for_each(|seen| seen.blocking = None);
    }
    observations
}

/// The longest delay of any job of each task, in a system with clusters.
fn delays_in_clusters(system: &System, records: &[Record]) -> Vec<Option<Duration>> {
    let tasks = system.tasks();
    let (mut jobs, mut runs) = (vec![0_u32; tasks.len()], vec![false; tasks.len()]);
    let (mut delayed, mut longest) = (vec![Duration::ZERO; tasks.len()], vec![None; tasks.len()]);
    let mut since = Instant::ZERO;
    for record in records {
        let elapsed = record.at.since(since);
        if elapsed > Duration::ZERO {
            let is_first = |id: TaskId| {
                let own = system.task(id);
                let is_before = |other: &TaskId| {
                    let task = system.task(*other);
                    *other != id && task.cpu == own.cpu && task.priority >= own.priority && jobs[other.index()] > 0
                };
                system.task_ids().filter(is_before).count() < system.cpus_of(id).count()
            };
            for id in system.task_ids().filter(|id| jobs[id.index()] > 0 && !runs[id.index()]) {
                if is_first(id) {
                    delayed[id.index()] += elapsed;
                }
            }
            since = record.at;
        }
        let task = record.task.index();
        match record.event {
            Event::Arrive => jobs[task] += 1,
            Event::Run => runs[task] = true,
            Event::Stop => runs[task] = false,
            Event::Finish => {
                jobs[task] = jobs[task].saturating_sub(1);
                longest[task] = longest[task].max(Some(std::mem::take(&mut delayed[task])));
            }
            _ => {}
        }
    }
    longest
}

/// The time line of the CPU of `task`, or of all CPUs of its cluster, in [`arrival`, `finish`). `records` must be in
/// order of time.
#[must_use]
pub fn timeline(system: &System, records: &[Record], task: TaskId, arrival: Instant, finish: Instant) -> Timeline {
    let mut executed: Vec<(TaskId, Duration)> = Vec::new();
    let mut gaps = Vec::new();
    for cpu in system.cpus_of(task) {
        let mut since = arrival;
        for (stretch, time) in within(&stretches(system, records, cpu), arrival, finish) {
            let Some(runner) = stretch.task else { continue };
            gaps.push(Gap { cpu, from: since, until: stretch.from.max(since) });
            since = stretch.until.min(finish);
            match executed.iter_mut().find(|(known, _)| *known == runner) {
                Some((_, total)) => *total += time,
                None => executed.push((runner, time)),
            }
        }
        gaps.push(Gap { cpu, from: since, until: finish.max(since) });
    }
    gaps.retain(|gap| gap.from < gap.until);
    executed.sort_by_key(|&(task, time)| (std::cmp::Reverse(time), task));
    Timeline { executed, gaps }
}

/// The state of a run after some of its records.
struct Now {
    jobs: Vec<u32>,
    executes: Vec<Option<CpuId>>,
    own: Vec<CpuId>,
    /// The CPUs that may execute each task.
    places: Vec<Vec<CpuId>>,
    asked: Vec<Option<ResourceId>>,
    owners: Vec<u32>,
}

impl Now {
    fn new(system: &System) -> Self {
        let tasks = system.tasks().len();
        Self {
            jobs: vec![0; tasks],
            executes: vec![None; tasks],
            own: system.tasks().iter().map(|task| task.cpu).collect(),
            places: system.task_ids().map(|task| system.cpus_of(task).collect()).collect(),
            asked: vec![None; tasks],
            owners: vec![0; system.resources().len()],
        }
    }

    fn note(&mut self, record: &Record) {
        let task = record.task.index();
        match record.event {
            Event::Arrive => self.jobs[task] += 1,
            Event::Finish => self.jobs[task] = self.jobs[task].saturating_sub(1),
            Event::Run => self.executes[task] = Some(self.own[task]),
            Event::Stop => self.executes[task] = None,
            Event::Request(resource) => self.asked[task] = Some(resource),
            Event::Acquire(resource) => {
                self.asked[task] = None;
                self.owners[resource.index()] += 1;
            }
            Event::Release(resource) => {
                self.owners[resource.index()] = self.owners[resource.index()].saturating_sub(1);
            }
            Event::Migrate(to) => {
                self.own[task] = to;
                self.executes[task] = self.executes[task].map(|_| to);
                if !self.places[task].contains(&to) || self.places[task].len() == 1 {
                    self.places[task] = vec![to];
                }
            }
            Event::Restart(_) | Event::Priority(_) => {}
        }
    }

    /// The task that executes on the CPU.
    fn executed(&self, cpu: CpuId) -> Option<usize> {
        self.executes.iter().position(|on| *on == Some(cpu))
    }

    fn is_ready(&self, task: usize) -> bool {
        let waits = self.asked[task].is_some_and(|resource| self.owners[resource.index()] > 0);
        self.jobs[task] > 0 && self.executes[task].is_none() && !waits
    }

    /// Whether no task executes on the CPU, though one could.
    fn is_lost(&self, cpu: CpuId) -> bool {
        let could = |task: usize| self.is_ready(task) && self.places[task].contains(&cpu);
        self.executed(cpu).is_none() && (0..self.jobs.len()).any(could)
    }

    /// Whether the task on the CPU spins for a resource that no task owns.
    fn spins_for_none(&self, cpu: CpuId) -> bool {
        let asked = self.executed(cpu).and_then(|task| self.asked[task]);
        asked.is_some_and(|resource| self.owners[resource.index()] == 0)
    }
}

/// The stretches of time for which `is_gap` holds on a CPU, without empty ones. One without an end lasts until the last
/// record.
fn gaps(system: &System, records: &[Record], is_gap: impl Fn(&Now, CpuId) -> bool) -> Vec<Gap> {
    let (mut now, mut gaps) = (Now::new(system), Vec::new());
    let mut since: Vec<Option<Instant>> = vec![None; system.cpus()];
    for record in records {
        // Records with the same time are one change. Stretches of zero length between them are removed below.
        now.note(record);
        for (index, since) in since.iter_mut().enumerate() {
            let cpu = CpuId::new(index);
            match (*since, is_gap(&now, cpu)) {
                (None, true) => *since = Some(record.at),
                (Some(from), false) => {
                    gaps.push(Gap { cpu, from, until: record.at });
                    *since = None;
                }
                _ => {}
            }
        }
    }
    let end = records.last().map_or(Instant::ZERO, |record| record.at);
    let open = since.into_iter().enumerate().filter_map(|(index, since)| Some((CpuId::new(index), since?)));
    gaps.extend(open.map(|(cpu, from)| Gap { cpu, from, until: end }));
    gaps.retain(|gap| gap.from < gap.until);
    gaps
}

/// The times at which a job could have executed on a CPU and no task did, because the CPU was used otherwise or
/// switched late. `records` must be in order of time.
///
/// A job can execute from its arrival to its finish, except while it waits for a resource that another task owns. A job
/// that its protocol keeps from starting counts as one that could execute, so a simulated schedule has such times as
/// well.
#[must_use]
pub fn losses(system: &System, records: &[Record]) -> Vec<Gap> {
    gaps(system, records, Now::is_lost)
}

/// The times at which a job spun on a CPU for a resource that no task owned. `records` must be in order of time.
///
/// It, or one before it in the queue, had not noticed yet that it is the next owner: its CPU was used otherwise, or the
/// resource was handed over late.
#[must_use]
pub fn unanswered_spins(system: &System, records: &[Record]) -> Vec<Gap> {
    gaps(system, records, Now::spins_for_none)
}

/// The time in [`arrival`, `finish`) in which the CPU executed none of its own tasks with at least the priority of
/// `own`.
fn blocking(system: &System, stretches: &[Stretch], own: &Task, arrival: Instant, finish: Instant) -> Duration {
    let is_own = |task: &Task| task.cpu == own.cpu && task.priority >= own.priority;
    let serves = |stretch: &Stretch| stretch.task.is_some_and(|task| is_own(system.task(task)));
    let served = within(stretches, arrival, finish).filter(|(stretch, _)| serves(stretch)).map(|(_, time)| time);
    finish.since(arrival).saturating_sub(served.sum())
}

/// The time in [`arrival`, `finish`) in which the task executed on one of these CPUs.
fn away(others: &[&[Stretch]], task: TaskId, arrival: Instant, finish: Instant) -> Duration {
    let stretches = others.iter().flat_map(|stretches| within(stretches, arrival, finish));
    stretches.filter(|(stretch, _)| stretch.task == Some(task)).map(|(_, time)| time).sum()
}

/// The stretches that intersect [`from`, `until`), each with the length of the intersection.
fn within(stretches: &[Stretch], from: Instant, until: Instant) -> impl Iterator<Item = (Stretch, Duration)> + use<'_> {
    let first = stretches.partition_point(|stretch| stretch.until <= from);
    let meets = stretches[first..].iter().take_while(move |stretch| stretch.from < until);
    meets.map(move |&stretch| (stretch, stretch.until.min(until).since(stretch.from.max(from))))
}

/// The tasks that execute on `cpu`, without gaps from the first record of one of its tasks to the last record.
///
/// If the records show two tasks executing, as on a machine during a context switch, the one that began last counts.
fn stretches(system: &System, records: &[Record], cpu: CpuId) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = Vec::new();
    let mut running: Vec<TaskId> = Vec::new();
    let mut since = Instant::ZERO;
    let mut close = |since: &mut Instant, at: Instant, task: Option<TaskId>| {
        if at > *since {
            match stretches.last_mut() {
                Some(last) if last.task == task => last.until = at,
                _ => stretches.push(Stretch { from: *since, until: at, task }),
            }
        }
        *since = at;
    };
    // The CPU of each task, and whether the task executes.
    let mut places: Vec<(CpuId, bool)> = system.tasks().iter().map(|task| (task.cpu, false)).collect();
    for record in records {
        let (place, executes) = &mut places[record.task.index()];
        let was_here = *place == cpu;
        match record.event {
            Event::Run => *executes = true,
            Event::Stop => *executes = false,
            Event::Migrate(to) => *place = to,
            _ => continue,
        }
        let (is_here, executes) = (*place == cpu, *executes);
        if was_here || is_here {
            close(&mut since, record.at, running.last().copied());
            running.retain(|&task| task != record.task);
            if is_here && executes {
                running.push(record.task);
            }
        }
    }
    if let Some(last) = records.last() {
        close(&mut since, last.at, running.last().copied());
    }
    stretches
}

/// The jobs of every task, in order of arrival.
fn jobs(system: &System, records: &[Record]) -> Vec<Vec<Seen>> {
    let count = system.tasks().len();
    let mut jobs: Vec<Vec<Seen>> = vec![Vec::new(); count];
    // For each task: the number of finished jobs, the time of the open request, and the time since which it executes.
    let mut finished = vec![0; count];
    let mut asked: Vec<Option<Instant>> = vec![None; count];
    let mut executes: Vec<Option<Instant>> = vec![None; count];
    for record in records {
        let task = record.task.index();
        // A task that executes between its request and the grant spins.
        if let (Some(asked), Some(since)) = (asked[task], executes[task])
            && let Some(job) = jobs[task].get_mut(finished[task])
        {
            job.spun += record.at.since(since.max(asked));
            executes[task] = Some(record.at);
        }
        match record.event {
            Event::Arrive => {
                let none = Duration::ZERO;
                jobs[task].push(Seen { arrival: record.at, finish: None, lock_wait: none, spun: none });
            }
            Event::Run => executes[task] = Some(record.at),
            Event::Stop => executes[task] = None,
            Event::Request(_) => asked[task] = Some(record.at),
            Event::Acquire(_) => {
                if let (Some(asked), Some(job)) = (asked[task].take(), jobs[task].get_mut(finished[task])) {
                    job.lock_wait += record.at.since(asked);
                }
            }
            Event::Finish => {
                if let Some(job) = jobs[task].get_mut(finished[task]) {
                    job.finish = Some(record.at);
                    finished[task] += 1;
                }
            }
            _ => {}
        }
    }
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockwright_model::{Priority, Resource, Step};

    const R: ResourceId = ResourceId(0);
    const HIGH: TaskId = TaskId(0);
    const MEDIUM: TaskId = TaskId(1);
    const LOW: TaskId = TaskId(2);

    fn ns(ns: u64) -> Duration {
        Duration::from_ns(ns)
    }

    /// Three tasks on CPU 0, and one on CPU 1 that is as urgent as the highest of them.
    fn system() -> System {
        let task = |name: &str, cpu, priority| Task {
            name: name.into(),
            cpu: CpuId::new(cpu),
            priority: Priority::base(priority),
            period: ns(100),
            deadline: ns(50),
            jitter: ns(0),
            offset: ns(0),
            wcet: ns(10),
            body: vec![Step::Lock(R), Step::Run(ns(10)), Step::Unlock(R)],
        };
        let tasks = vec![task("high", 0, 3), task("medium", 0, 2), task("low", 0, 1), task("remote", 1, 3)];
        let resource = Resource::new("r");
        System::new("s".into(), 2, None, vec![resource], tasks).expect("valid")
    }

    fn records(rows: &[(u64, TaskId, Event)]) -> Vec<Record> {
        rows.iter().map(|&(at, task, event)| Record { at: Instant::from_ns(at), task, event }).collect()
    }

    /// The textbook priority inversion: low holds the resource, high waits for it, and medium executes.
    fn inversion() -> Vec<Record> {
        records(&[
            (0, LOW, Event::Arrive),
            (0, LOW, Event::Run),
            (1, LOW, Event::Acquire(R)),
            (5, LOW, Event::Stop),
            (5, HIGH, Event::Arrive),
            (5, HIGH, Event::Run),
            (6, HIGH, Event::Request(R)),
            (6, HIGH, Event::Stop),
            (6, LOW, Event::Run),
            (7, MEDIUM, Event::Arrive),
            (7, LOW, Event::Stop),
            (7, MEDIUM, Event::Run),
            (37, MEDIUM, Event::Finish),
            (37, MEDIUM, Event::Stop),
            (37, LOW, Event::Run),
            (40, LOW, Event::Release(R)),
            (40, LOW, Event::Stop),
            (40, HIGH, Event::Run),
            (40, HIGH, Event::Acquire(R)),
            (60, HIGH, Event::Finish),
            (60, HIGH, Event::Stop),
            (60, LOW, Event::Run),
            (61, LOW, Event::Finish),
            (61, LOW, Event::Stop),
        ])
    }

    #[test]
    fn an_inversion_is_blocking() {
        let seen = observe(&system(), &inversion());
        let high = seen[HIGH.index()];
        assert_eq!((high.jobs, high.misses, high.response), (1, 1, Some(ns(55))));
        assert_eq!((high.blocking, high.lock_wait), (Some(ns(34)), Some(ns(34))));
        // No less urgent task delayed the medium and the low task.
        assert_eq!(seen[MEDIUM.index()].blocking, Some(ns(0)));
        assert_eq!((seen[LOW.index()].blocking, seen[LOW.index()].misses), (Some(ns(0)), 1));
        assert_eq!(seen[3], Observation::default());
    }

    #[test]
    fn without_the_inversion_nothing_is_blocked() {
        let mut records = inversion();
        // Low executes nothing in between, as if it did not hold the resource; high continues at once.
        for record in &mut records {
            if record.task != HIGH && record.at > Instant::from_ns(5) && record.at < Instant::from_ns(60) {
                record.at = Instant::from_ns(60);
            }
            if record.task == HIGH && record.at > Instant::from_ns(6) {
                record.at = Instant::from_ns(if record.event == Event::Finish { 26 } else { 6 });
            }
        }
        records.retain(|record| record.task == HIGH && record.event != Event::Stop || record.task == LOW);
        records.sort_by_key(|record| record.at);
        let high = observe(&system(), &records)[HIGH.index()];
        assert_eq!((high.misses, high.blocking, high.lock_wait), (0, Some(ns(0)), Some(ns(0))));
    }

    #[test]
    fn an_idle_cpu_blocks_whatever_other_cpus_execute() {
        let remote = TaskId(3);
        let records = records(&[
            (0, HIGH, Event::Arrive),
            (0, remote, Event::Run),
            (9, HIGH, Event::Run),
            (20, HIGH, Event::Finish),
            (20, HIGH, Event::Stop),
            (30, remote, Event::Stop),
        ]);
        assert_eq!(observe(&system(), &records)[HIGH.index()].blocking, Some(ns(9)));
    }

    #[test]
    fn an_unfinished_job_is_a_miss_once_its_deadline_is_over() {
        let arrive = [(0, HIGH, Event::Arrive), (40, LOW, Event::Arrive), (60, MEDIUM, Event::Arrive)];
        let seen = observe(&system(), &records(&arrive));
        let misses: Vec<u64> = seen.iter().map(|seen| seen.misses).collect();
        assert_eq!(misses, [1, 0, 0, 0]);
        assert_eq!(seen[HIGH.index()].response, None);
    }

    #[test]
    fn the_time_line_of_a_job_is_complete() {
        let line = timeline(&system(), &inversion(), HIGH, Instant::from_ns(5), Instant::from_ns(60));
        assert_eq!(line.executed, [(MEDIUM, ns(30)), (HIGH, ns(21)), (LOW, ns(4))]);
        assert_eq!(line.unaccounted(), ns(0));
        let late = timeline(&system(), &inversion(), LOW, Instant::from_ns(61), Instant::from_ns(70));
        assert_eq!((&late.executed[..], late.unaccounted()), (&[][..], ns(9)));
        let early = timeline(&system(), &inversion()[1..], LOW, Instant::from_ns(0), Instant::from_ns(6));
        assert_eq!(early.unaccounted(), ns(0));
        let mut records = inversion();
        // Medium starts 4 late on its CPU, and low 2 late after it.
        records[11].at = Instant::from_ns(11);
        records[14].at = Instant::from_ns(39);
        let late = timeline(&system(), &records, HIGH, Instant::from_ns(5), Instant::from_ns(60));
        let gap =
            |from, until| Gap { cpu: CpuId::new(0), from: Instant::from_ns(from), until: Instant::from_ns(until) };
        assert_eq!(late.gaps, [gap(7, 11), gap(37, 39)]);
        assert_eq!(losses(&system(), &records), late.gaps);
    }

    #[test]
    fn a_cpu_is_lost_while_a_job_could_execute_and_none_does() {
        let gap =
            |from, until| Gap { cpu: CpuId::new(0), from: Instant::from_ns(from), until: Instant::from_ns(until) };
        assert_eq!(losses(&system(), &inversion()), []);
        let owned_elsewhere = |released: u64| {
            records(&[
                (0, TaskId(3), Event::Acquire(R)),
                (0, HIGH, Event::Arrive),
                (2, HIGH, Event::Run),
                (4, HIGH, Event::Request(R)),
                (5, HIGH, Event::Stop),
                (released, TaskId(3), Event::Release(R)),
                (12, HIGH, Event::Run),
                (12, HIGH, Event::Acquire(R)),
                (13, HIGH, Event::Finish),
                (13, HIGH, Event::Stop),
            ])
        };
        // Waiting for an owner is no loss; waiting for a free resource is one.
        assert_eq!(losses(&system(), &owned_elsewhere(12)), [gap(0, 2)]);
        assert_eq!(losses(&system(), &owned_elsewhere(9)), [gap(0, 2), gap(9, 12)]);
        // A loss that never ends lasts until the end of the records.
        assert_eq!(losses(&system(), &owned_elsewhere(9)[..7]), [gap(0, 2), gap(9, 12)]);
        // A job that spins has its CPU.
        let spins = |released| {
            let mut records = owned_elsewhere(released);
            records.retain(|record| {
                !matches!(record.event, Event::Stop) && record.at != Instant::from_ns(12)
                    || matches!(record.event, Event::Acquire(_) | Event::Release(_))
            });
            records
        };
        assert_eq!(losses(&system(), &spins(9)), [gap(0, 2)]);
        assert_eq!(unanswered_spins(&system(), &spins(9)), [gap(9, 12)]);
        assert_eq!(unanswered_spins(&system(), &spins(12)), []);
        assert_eq!(unanswered_spins(&system(), &owned_elsewhere(9)), []);
    }

    #[test]
    fn no_records_give_empty_observations() {
        assert_eq!(observe(&system(), &[]), vec![Observation::default(); 4]);
    }
}
