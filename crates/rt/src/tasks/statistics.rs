//! Reports of what jobs did.

use super::counters::{Counters, GROUPS, NOBODY, NONE, ResourceCounters, TaskCounters, group_end};
use lockwright_model::{Duration, ResourceId, System, TaskId};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// The least number of jobs with which a table shows the response time that 99.9 % of them do not exceed.
const P999_JOBS_MIN: u64 = 1_000;

/// Measurements of the jobs of a task set since [`TaskSet::measure`](super::TaskSet::measure).
///
/// `Display` prints it as tables.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Statistics {
    /// All tasks, in the order of their ids.
    pub tasks: Vec<TaskStatistics>,
}

/// Measurements of the jobs of one task.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TaskStatistics {
    /// The task.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// The number of jobs that have ended.
    pub jobs: u64,
    /// The relative deadline, if there is one.
    pub deadline: Option<Duration>,
    /// The number of jobs that ended after their deadlines.
    pub misses: u64,
    /// The bound that the program set, if it did.
    pub bound: Option<Duration>,
    /// The number of jobs whose response time exceeded the bound.
    pub above_bound: u64,
    /// The longest response time.
    pub worst: Duration,
    /// The number of the first job with that response time, from 1; 0 if no job has ended.
    pub worst_job: u64,
    /// The mean response time.
    pub mean: Duration,
    /// The resources that the task has locked, in the order of their ids.
    pub resources: Vec<ResourceStatistics>,
    /// The number of jobs in each group of response times.
    groups: Vec<u32>,
}

/// Measurements of the jobs of one task at one resource.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ResourceStatistics {
    /// The resource.
    pub resource: ResourceId,
    /// Its name.
    pub name: String,
    /// The number of locks.
    pub sections: u64,
    /// The number of locks that found the resource locked.
    pub waits: u64,
    /// The sum of the waits.
    pub total_wait: Duration,
    /// The longest wait.
    pub longest_wait: Duration,
    /// The task that held the resource at the request of the longest wait, if it could be seen.
    pub holder: Option<TaskId>,
    /// The longest time from a lock to its unlock, preemption included.
    pub longest_section: Duration,
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn time(ns: u64) -> Duration {
    Duration::from_ns(ns.min(i64::MAX as u64))
}

fn optional(ns: u64) -> Option<Duration> {
    (ns != NONE).then(|| time(ns))
}

impl Counters {
    /// Reads all counters. Jobs that end meanwhile may be counted in some values and not in others.
    pub(super) fn read(&self, system: &System) -> Statistics {
        let resource = |(resource, counters): (ResourceId, &ResourceCounters)| {
            let sections = read(&counters.sections);
            let holder = counters.holder.load(Ordering::Relaxed);
            (sections > 0).then(|| ResourceStatistics {
                resource,
                name: system.resource(resource).name.clone(),
                sections,
                waits: read(&counters.waits),
                total_wait: time(read(&counters.total_wait_ns)),
                longest_wait: time(read(&counters.longest_wait_ns)),
                holder: (holder != NOBODY).then(|| TaskId::new(holder as usize)),
                longest_section: time(read(&counters.longest_section_ns)),
            })
        };
        let task = |(task, counters): (TaskId, &TaskCounters)| {
            let jobs = read(&counters.jobs);
            TaskStatistics {
                task,
                name: system.task(task).name.clone(),
                jobs,
                deadline: optional(counters.deadline_ns),
                misses: read(&counters.misses),
                bound: optional(read(&counters.bound_ns)),
                above_bound: read(&counters.above_bound),
                worst: time(read(&counters.worst_ns)),
                worst_job: read(&counters.worst_job),
                mean: time(read(&counters.total_ns).checked_div(jobs).unwrap_or(0)),
                resources: system.resource_ids().zip(&counters.resources).filter_map(resource).collect(),
                groups: counters.groups.iter().map(|count| count.load(Ordering::Relaxed)).collect(),
            }
        };
        Statistics { tasks: system.task_ids().zip(&self.tasks).map(task).collect() }
    }
}

impl TaskStatistics {
    /// Returns a response time that at least `percent` % of the jobs do not exceed. It is too long by a sixteenth at
    /// most, and never above [`worst`](Self::worst). `None` if no job has ended.
    ///
    /// # Examples
    /// ```no_run
    /// # fn shown(task: &lockwright::tasks::TaskStatistics) {
    /// if let Some(median) = task.percentile(50.0) {
    ///     println!("{}: half of {} jobs took up to {median}", task.name, task.jobs);
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn percentile(&self, percent: f64) -> Option<Duration> {
        let all: u64 = self.groups.iter().map(|&count| u64::from(count)).sum();
        // At least one job, and at most all of them.
        let wanted = ((all as f64 * percent / 100.0).ceil() as u64).clamp(1, all.max(1));
        let mut seen = 0;
        let last = (0..GROUPS).find(|&group| {
            seen += u64::from(self.groups[group]);
            seen >= wanted
        });
        last.map(|group| time(group_end(group)).min(self.worst))
    }
}

/// Prints columns: the first is a name, and the others are numbers.
fn table(f: &mut fmt::Formatter<'_>, rows: &[Vec<String>]) -> fmt::Result {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            match column {
                0 => write!(f, "{cell:<width$}")?,
                _ => write!(f, "  {cell:>width$}")?,
            }
        }
        writeln!(f)?;
    }
    Ok(())
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(String::from).to_vec()
}

impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |time: Option<Duration>| time.map_or_else(|| "-".into(), |time| time.to_string());
        let heads = ["task", "jobs", "misses", "mean", "p99.9", "worst", "in job", "bound", "above", "deadline"];
        let mut rows = vec![row(heads)];
        for task in &self.tasks {
            let some = |value: Duration| shown((task.jobs > 0).then_some(value));
            let p999 = task.percentile(99.9).filter(|_| task.jobs >= P999_JOBS_MIN);
            let count = |count: u64, is_known: bool| if is_known { count.to_string() } else { "-".into() };
            rows.push(vec![
                task.name.clone(),
                task.jobs.to_string(),
                task.misses.to_string(),
                some(task.mean),
                shown(p999),
                some(task.worst),
                count(task.worst_job, task.jobs > 0),
                shown(task.bound),
                count(task.above_bound, task.bound.is_some()),
                shown(task.deadline),
            ]);
        }
        table(f, &rows)?;
        let heads = ["task", "resource", "sections", "waits", "longest wait", "behind", "longest section"];
        let mut rows = vec![row(heads)];
        for (task, resource) in self.tasks.iter().flat_map(|task| task.resources.iter().map(move |one| (task, one))) {
            let has_waited = resource.waits > 0;
            let holder = resource.holder.filter(|_| has_waited).and_then(|holder| self.tasks.get(holder.index()));
            rows.push(vec![
                task.name.clone(),
                resource.name.clone(),
                resource.sections.to_string(),
                resource.waits.to_string(),
                shown(has_waited.then_some(resource.longest_wait)),
                holder.map_or_else(|| "-".into(), |holder| holder.name.clone()),
                resource.longest_section.to_string(),
            ]);
        }
        if rows.len() > 1 {
            writeln!(f)?;
            table(f, &rows)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockwright_model::{CpuId, Priority, Resource, Step, Task};

    /// Two tasks, of which the first has a deadline of 10 ms, and one resource.
    fn counters() -> (System, Counters) {
        let ms = Duration::from_ms;
        let resource = ResourceId(0);
        let body = vec![Step::Lock(resource), Step::Run(ms(1)), Step::Unlock(resource)];
        let task = |name: &str, level| Task {
            name: name.into(),
            cpu: CpuId(0),
            priority: Priority::base(level),
            period: ms(10),
            deadline: ms(10),
            jitter: Duration::ZERO,
            offset: Duration::ZERO,
            wcet: ms(1),
            body: body.clone(),
        };
        let bus = Resource::new("bus");
        let tasks = vec![task("control", 20), task("log", 10)];
        let system = System::new("two".into(), 1, None, vec![bus], tasks).expect("a valid system");
        let counters = Counters::new(&system, &[true, false]);
        (system, counters)
    }

    #[test]
    fn a_percentile_covers_its_share_of_the_jobs() {
        let (system, counters) = counters();
        assert_eq!(counters.read(&system).tasks[0].percentile(50.0), None);
        for job in 1..=1_000 {
            counters.finish(TaskId(0), job * 1_000, None);
        }
        let task = &counters.read(&system).tasks[0];
        for (percent, jobs) in [(0.0, 1), (50.0, 500), (99.9, 999), (100.0, 1_000)] {
            let (found, exact) = (task.percentile(percent).expect("has jobs").as_ns(), jobs * 1_000);
            assert!(found >= exact && found <= exact + exact / 16 && found <= 1_000_000, "{percent} %: {found}");
        }
        assert_eq!(task.mean, Duration::from_ns(500_500));
    }

    #[test]
    fn a_report_is_a_table() {
        let (system, counters) = counters();
        let (control, log, bus) = (TaskId(0), TaskId(1), ResourceId(0));
        counters.set_bound(control, Duration::from_ms(4));
        counters.locked(log, bus, counters.holder(bus), None);
        assert_eq!(counters.holder(bus), 1);
        let holder = counters.holder(bus);
        counters.unlocking(log, bus, 3_000_000);
        counters.locked(control, bus, holder, Some(2_500_000));
        counters.unlocking(control, bus, 1_000_000);
        assert_eq!(counters.holder(bus), NOBODY);
        for (response_ns, is_late) in [(4_000_000, None), (12_000_000, None), (5_000_000, Some(true))] {
            counters.finish(control, response_ns, is_late);
        }
        let shown = counters.read(&system).to_string();
        let wanted = "\
task     jobs  misses  mean  p99.9  worst  in job  bound  above  deadline
control     3       2  7 ms      -  12 ms       2   4 ms      2     10 ms
log         0       0     -      -      -       -      -      -         -

task     resource  sections  waits  longest wait  behind  longest section
control       bus         1      1        2.5 ms     log             1 ms
log           bus         1      0             -       -             3 ms
";
        assert_eq!(shown, wanted);
    }
}
