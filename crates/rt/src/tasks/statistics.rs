//! Reports of what jobs did.

use super::counters::{Counters, NAME, NOBODY, NONE, head, of_task, of_use};
use crate::groups::{GROUPS, group_end};
use lockwright_model::{Duration, RESOURCES_MAX, ResourceId, TASKS_MAX, TaskId};
use lockwright_sys::clock;
use lockwright_sys::shared::read_named;
use std::{fmt, io};

/// The least number of jobs with which a table shows the response time that 99.9 % of them do not exceed.
const P999_JOBS_MIN: u64 = 1_000;

/// Measurements of the jobs of a task set since [`TaskSet::measure`](super::TaskSet::measure).
///
/// `Display` prints it as tables.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Statistics {
    /// The name of the task set: `tasks` if a builder made it.
    pub name: String,
    /// How long jobs have been counted.
    pub counted: Duration,
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
    /// The id in the kernel of the thread that executed the task's last job, if there was one.
    pub thread: Option<u32>,
    /// The time since the release of the present job; `None` between two jobs.
    pub present: Option<Duration>,
    /// The resource for which the present job waits, or that it is about to lock.
    pub request: Option<Request>,
    /// The number of jobs in each group of response times.
    groups: Vec<u64>,
}

/// The present request of a task.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Request {
    /// The resource.
    pub resource: ResourceId,
    /// Its name.
    pub name: String,
    /// The time since the request.
    pub since: Duration,
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
    /// The time since the task locked the resource, if it holds it now.
    pub held: Option<Duration>,
}

fn time(ns: u64) -> Duration {
    Duration::from_ns(ns.min(i64::MAX as u64))
}

fn optional(ns: u64) -> Option<Duration> {
    (ns != NONE).then(|| time(ns))
}

impl Counters {
    /// Reads all counters. Jobs that end meanwhile may be counted in some values and not in others.
    pub(super) fn read(&self) -> Option<Statistics> {
        Reader { words: &self.words(), now_ns: clock::now_ns() }.read()
    }
}

/// Reads the words of [`Counters`], which may be those of another process.
struct Reader<'w> {
    words: &'w [u64],
    now_ns: u64,
}

impl Reader<'_> {
    /// Returns `None` if the words are not those of counters of this version.
    fn read(&self) -> Option<Statistics> {
        let number = |at, most: usize| usize::try_from(self.word(at, 0)?).ok().filter(|&number| number <= most);
        if self.word(0, 0)? != head::MAGIC {
            return None;
        }
        let (tasks, resources) = (number(head::TASKS, TASKS_MAX)?, number(head::RESOURCES, RESOURCES_MAX)?);
        let names: Vec<String> = (0..tasks + resources + 1).map(|index| self.name(index)).collect::<Option<_>>()?;
        let (task_names, rest) = names.split_at(tasks);
        let (resource_names, name) = rest.split_at(resources);
        let task = |(index, name): (usize, &String)| self.task(TaskId::new(index), name.clone(), resource_names);
        Some(Statistics {
            name: name.first()?.clone(),
            counted: self.since(self.word(head::SINCE, 0)?),
            tasks: task_names.iter().enumerate().map(task).collect::<Option<_>>()?,
        })
    }

    fn word(&self, at: usize, more: usize) -> Option<u64> {
        self.words.get(at.checked_add(more)?).copied()
    }

    /// A place that is stored in a word.
    fn place(&self, at: usize, more: usize) -> Option<usize> {
        usize::try_from(self.word(at, more)?).ok()
    }

    fn since(&self, ns: u64) -> Duration {
        time(self.now_ns.saturating_sub(ns))
    }

    fn name(&self, index: usize) -> Option<String> {
        let entry = self.word(self.place(head::NAMES, 0)?, index)?;
        let (at, length) = ((entry >> 32) as usize, (entry & u64::from(u32::MAX)) as usize);
        let words = self.words.get(at..at.checked_add(length.div_ceil(size_of::<u64>()))?)?;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).take(length).collect();
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn task(&self, task: TaskId, name: String, resources: &[String]) -> Option<TaskStatistics> {
        let at = self.place(self.place(head::TABLE, 0)?, task.index())?;
        let word = |word| self.word(at, word);
        let used = self.place(at, of_task::USED)?.min(resources.len());
        let first = at.checked_add(of_task::WORDS)?;
        let uses = (0..used).map(|index| self.of_use(first + index * of_use::WORDS, resources));
        let uses = uses.collect::<Option<Vec<_>>>()?;
        let jobs = word(of_task::JOBS)?;
        let thread = word(of_task::THREAD)?;
        let release = word(of_task::RELEASE)?;
        let asked = word(of_task::ASKS)?.checked_sub(1).and_then(|resource| usize::try_from(resource).ok());
        let asks_since = self.since(word(of_task::ASKS_SINCE)?);
        let request = asked.and_then(|resource| {
            let name = resources.get(resource)?.clone();
            Some(Request { resource: ResourceId::new(resource), name, since: asks_since })
        });
        Some(TaskStatistics {
            task,
            name,
            jobs,
            deadline: optional(word(of_task::DEADLINE)?),
            misses: word(of_task::MISSES)?,
            bound: optional(word(of_task::BOUND)?),
            above_bound: word(of_task::ABOVE_BOUND)?,
            worst: time(word(of_task::WORST)?),
            worst_job: word(of_task::WORST_JOB)?,
            mean: time(word(of_task::TOTAL)?.checked_div(jobs).unwrap_or(0)),
            resources: uses.into_iter().filter(|one| one.sections > 0).collect(),
            thread: u32::try_from(thread).ok().filter(|&thread| thread > 0),
            present: (release > 0).then(|| self.since(release)),
            request,
            groups: self.words.get(at.checked_add(of_task::GROUPS)?..first)?.to_vec(),
        })
    }

    fn of_use(&self, at: usize, resources: &[String]) -> Option<ResourceStatistics> {
        let word = |word| self.word(at, word);
        let resource = self.place(at, of_use::RESOURCE)?;
        let name = resources.get(resource)?.clone();
        let (holder, held_since) = (word(of_use::HOLDER)?, word(of_use::HELD_SINCE)?);
        Some(ResourceStatistics {
            resource: ResourceId::new(resource),
            name,
            sections: word(of_use::SECTIONS)?,
            waits: word(of_use::WAITS)?,
            total_wait: time(word(of_use::TOTAL_WAIT)?),
            longest_wait: time(word(of_use::LONGEST_WAIT)?),
            holder: (holder < NOBODY).then(|| TaskId::new(holder.min(u64::from(u16::MAX)) as usize)),
            longest_section: time(word(of_use::LONGEST_SECTION)?),
            held: (held_since > 0).then(|| self.since(held_since)),
        })
    }
}

impl Statistics {
    /// Reads the statistics of all task sets of another process on this machine that are counted
    /// ([`TaskSet::measure`](super::TaskSet::measure)), in the order in which that began. The process does nothing for
    /// it.
    ///
    /// # Errors
    /// `NotFound` if there is no such process; `PermissionDenied` if the caller may not look at it, which requires the
    /// rights to trace it; `InvalidData` if the process counts in the form of another version of this library.
    ///
    /// # Examples
    /// ```
    /// use lockwright::tasks::Statistics;
    ///
    /// for set in Statistics::of_process(std::process::id())? {
    ///     println!("{set}");
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn of_process(process: u32) -> io::Result<Vec<Self>> {
        let mut sets = read_named(process, NAME)?;
        let now_ns = clock::now_ns();
        sets.sort_by_key(|words| words.get(head::SINCE).copied());
        let other = || io::Error::new(io::ErrorKind::InvalidData, "the process has statistics of another version");
        sets.iter().map(|words| Reader { words, now_ns }.read().ok_or_else(other)).collect()
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
        let all: u64 = self.groups.iter().fold(0, |sum, &jobs| sum.saturating_add(jobs));
        // At least one job, and at most all of them.
        let wanted = ((all as f64 * percent / 100.0).ceil() as u64).clamp(1, all.max(1));
        let mut seen = 0;
        let last = (0..GROUPS).find(|&group| {
            seen = self.groups[group].saturating_add(seen);
            seen >= wanted
        });
        last.map(|group| time(group_end(group)).min(self.worst))
    }

    /// Returns the distribution of the response times: a time and the number of jobs that took up to this time, but
    /// more than the time before. Times are at most a sixteenth apart; those without jobs are left out.
    ///
    /// # Examples
    /// ```no_run
    /// # fn shown(task: &lockwright::tasks::TaskStatistics) {
    /// for (up_to, jobs) in task.histogram() {
    ///     println!("{jobs:>6} jobs up to {up_to}");
    /// }
    /// # }
    /// ```
    pub fn histogram(&self) -> impl Iterator<Item = (Duration, u64)> {
        let groups = self.groups.iter().enumerate().filter(|&(_, &jobs)| jobs > 0);
        groups.map(|(group, &jobs)| (time(group_end(group)), jobs))
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
    use lockwright_model::{CpuId, Priority, Resource, Step, System, Task};

    /// Two tasks, of which the first has a deadline of 10 ms, and one resource.
    fn counters() -> Counters {
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
        Counters::new(&system, &[true, false])
    }

    #[test]
    fn a_percentile_covers_its_share_of_the_jobs() {
        let counters = counters();
        assert_eq!(counters.read().expect("words of this version").tasks[0].percentile(50.0), None);
        for job in 1..=1_000 {
            counters.finish(TaskId(0), job * 1_000, None);
        }
        let task = &counters.read().expect("words of this version").tasks[0];
        for (percent, jobs) in [(0.0, 1), (50.0, 500), (99.9, 999), (100.0, 1_000)] {
            let (found, exact) = (task.percentile(percent).expect("has jobs").as_ns(), jobs * 1_000);
            assert!(found >= exact && found <= exact + exact / 16 && found <= 1_000_000, "{percent} %: {found}");
        }
        assert_eq!(task.mean, Duration::from_ns(500_500));
        let histogram: Vec<(Duration, u64)> = task.histogram().collect();
        assert_eq!(histogram.iter().map(|(_, jobs)| jobs).sum::<u64>(), 1_000);
        assert!(histogram.is_sorted() && histogram.last().is_some_and(|(end, _)| *end >= task.worst), "{histogram:?}");
    }

    #[test]
    fn another_process_reads_what_happens_now() {
        let counters = counters();
        let (control, log, bus) = (TaskId(0), TaskId(1), ResourceId(0));
        let now_ns = clock::now_ns();
        counters.begin(log, 77, now_ns);
        counters.locked(log, bus, now_ns, NOBODY, None);
        counters.begin(control, 78, now_ns);
        counters.asks(control, bus, now_ns);
        let words = counters.words();
        let reader = |words: &[u64]| Reader { words, now_ns: now_ns + 1_000 }.read();
        let read = reader(&words).expect("words of this version");
        let us = Some(Duration::from_us(1));
        let [control, log] = &read.tasks[..] else { panic!("there are two tasks: {read:?}") };
        assert_eq!((read.name.as_str(), log.name.as_str(), log.thread), ("two", "log", Some(77)));
        assert_eq!((log.present, log.resources[0].held, &log.request), (us, us, &None));
        let request = control.request.as_ref().expect("it waits");
        assert_eq!((request.name.as_str(), Some(request.since), control.present), ("bus", us, us));
        let others = Statistics::of_process(std::process::id()).expect("it is this process");
        assert!(others.iter().any(|set| set.tasks[1].thread == Some(77)), "{others:?}");
        // Words of another version, and damaged ones, are refused.
        for at in 0..words.len() {
            let mut damaged = words.clone();
            damaged[at] = u64::MAX;
            let _ = reader(&damaged);
            assert_eq!(reader(&words[..at]), None, "{at} words");
        }
        let mut other = words;
        other[0] += 1;
        assert_eq!(reader(&other), None);
    }

    #[test]
    fn a_report_is_a_table() {
        let counters = counters();
        let (control, log, bus) = (TaskId(0), TaskId(1), ResourceId(0));
        counters.set_bound(control, Duration::from_ms(4));
        counters.locked(log, bus, clock::now_ns(), counters.holder(bus), None);
        assert_eq!(counters.holder(bus), 1);
        let holder = counters.holder(bus);
        counters.unlocking(log, bus, 3_000_000);
        counters.locked(control, bus, clock::now_ns(), holder, Some(2_500_000));
        counters.unlocking(control, bus, 1_000_000);
        assert_eq!(counters.holder(bus), NOBODY);
        for (response_ns, is_late) in [(4_000_000, None), (12_000_000, None), (5_000_000, Some(true))] {
            counters.finish(control, response_ns, is_late);
        }
        let shown = counters.read().expect("words of this version").to_string();
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
