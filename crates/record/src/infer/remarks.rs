//! The comments of an inferred task set: the evidence for each value.

use super::body::Pattern;
use super::choices::Choices;
use super::inferred::{Inferred, LeftOut};
use super::jobs::Boundary;
use super::period::Regularity;
use super::task::InferredTask;
use crate::event::Policy;
use crate::recording::Recording;
use crate::texts::{jobs, kind_name};
use lockwright_model::format::{Place, write_commented_system};
use lockwright_model::{Duration, System};

/// The number of bins of a histogram.
const BINS: u64 = 8;
/// The greatest number of patterns that a comment lists.
const PATTERNS_MAX: usize = 8;

/// The comment at the head of the file.
pub(super) fn head(
    recording: &Recording,
    tasks: &[InferredTask],
    left_out: &[LeftOut],
    choices: &Choices,
) -> Vec<String> {
    let mut lines = vec![
        format!("Recorded: `{}` for {}.", recording.program.join(" "), Duration::from_ns(recording.length_ns)),
        "Execution times and sections are the longest seen, not worst cases. Deadlines are the periods.".into(),
    ];
    if choices.margin > 0 {
        lines.push(format!("Execution times are lengthened by {} %.", choices.margin));
    }
    if recording.lost > 0 || !recording.complete {
        let end = if recording.complete { "" } else { " The recording ends early." };
        lines.push(format!("{} events were lost.{end}", recording.lost));
    }
    for out in left_out.iter().filter(|_| !tasks.is_empty()) {
        lines.push(format!("Not a task: `{}`, because {}.", recording.thread_name(out.thread), out.reason));
    }
    lines
}

impl Inferred {
    /// The task-set file, with the evidence as comments. `None` if there is no task set.
    #[must_use]
    pub fn file(&self, recording: &Recording) -> Option<String> {
        let system = self.system.as_ref().ok()?;
        Some(write_commented_system(system, |place| self.remark(recording, system, place)))
    }

    fn remark(&self, recording: &Recording, system: &System, place: Place) -> Vec<String> {
        match place {
            Place::Head => {
                self.head.iter().cloned().chain(self.warnings.iter().map(|text| format!("Warning: {text}."))).collect()
            }
            Place::Protocol => vec!["the protocol of most locks, as the program set it".into()],
            Place::Cpus => Vec::new(),
            Place::Resource(id) => {
                let Some(object) = self.objects.get(id.index()) else { return Vec::new() };
                let Some(found) = recording.objects.get(*object as usize) else { return Vec::new() };
                let place = found.site.map_or_else(String::new, |site| format!(", from {}", recording.site_name(site)));
                vec![format!("{} at {:#x}{place}", kind_name(found.kind), found.address)]
            }
            Place::Task(id) => self.tasks.get(id.index()).map_or_else(Vec::new, |task| task_lines(recording, task)),
            Place::Period(id) => self.tasks.get(id.index()).map_or_else(Vec::new, period_lines),
            Place::Offset(_) => vec!["the first release, after the first of all tasks, within one period".into()],
            Place::Wcet(id) => self.tasks.get(id.index()).map_or_else(Vec::new, |task| self.wcet_lines(task)),
            Place::Priority(id) => {
                self.tasks.get(id.index()).map_or_else(Vec::new, |task| vec![policy_line(task.policy)])
            }
            Place::Cpu(id) => self.tasks.get(id.index()).map_or_else(Vec::new, |task| {
                vec![if task.cpu.1 { "bound to it".into() } else { "executed there longest; not bound to it".into() }]
            }),
            Place::Body(id) => {
                let Some(task) = self.tasks.get(id.index()) else { return Vec::new() };
                let name = |object| match self.objects.binary_search(&object) {
                    Ok(index) => system.resources()[index].name.clone(),
                    Err(_) => recording.object_name(object),
                };
                let patterns = &task.body.patterns;
                let line = |pattern: &Pattern| format!("{}: {}", jobs(pattern.jobs), pattern.text(&name));
                let mut lines =
                    vec!["the sections of the jobs, the most frequent first; lengths are the longest seen".into()];
                lines.extend(patterns.iter().take(PATTERNS_MAX).map(line));
                if patterns.len() > PATTERNS_MAX {
                    lines.push(format!("and {} other patterns", patterns.len() - PATTERNS_MAX));
                }
                lines
            }
        }
    }

    fn wcet_lines(&self, task: &InferredTask) -> Vec<String> {
        let text = |ns: u64| Duration::from_ns(ns).to_string();
        let quantile = |permille| task.cpu_quantile(permille).map_or_else(String::new, text);
        let most = quantile(1000);
        let margin = if self.choices.margin > 0 { format!(" plus {} %", self.choices.margin) } else { String::new() };
        let mut lines = vec![format!(
            "largest of {}, {most}{margin}; not a WCET; half of them up to {}, 99.9 % up to {}",
            jobs(task.cpu_ns.len() as u64),
            quantile(500),
            quantile(999)
        )];
        lines.extend(
            histogram(&task.cpu_ns).into_iter().map(|(until, count)| format!("  up to {}: {count}", text(until))),
        );
        lines
    }
}

fn boundary(boundary: &Boundary) -> String {
    let deviation = boundary.deviation_permille.map_or_else(String::new, |permille| {
        format!(", execution times deviate by {}.{} %", permille / 10, permille % 10)
    });
    format!("{} ({}{deviation})", boundary.text, jobs(boundary.jobs))
}

fn task_lines(recording: &Recording, task: &InferredTask) -> Vec<String> {
    let id = recording.threads.get(task.thread as usize).map_or(0, |thread| thread.id);
    let mut lines = vec![format!("thread {id}; a job begins behind {}", boundary(&task.boundary))];
    if let Some(second) = &task.second {
        lines.push(format!("second-best guess: {}", boundary(second)));
    }
    lines
}

fn period_lines(task: &InferredTask) -> Vec<String> {
    let text = |ns: u64| Duration::from_ns(ns);
    let [least, median, most] = [task.period_ns, task.median_ns, task.most_ns].map(text);
    vec![match (task.policy, task.regularity) {
        (Policy::Deadline { period_ns, .. }, _) if task.period() == period_ns => "as set for SCHED_DEADLINE".into(),
        (_, Regularity::Exact) => "exact: the program requests these instants".into(),
        (_, Regularity::Periodic) => {
            format!("periodic: distances of {least} to {most}, median {median}; the least one")
        }
        (_, Regularity::Sporadic) => {
            format!("sporadic: distances of {least} to {most}, median {median}; the least one")
        }
    }]
}

fn policy_line(policy: Policy) -> String {
    match policy {
        Policy::Fair { nice } => format!("ordinary policy, nice {nice}: below all real-time priorities"),
        Policy::Fifo(_) => "SCHED_FIFO".into(),
        Policy::RoundRobin(_) => "SCHED_RR".into(),
        Policy::Deadline { .. } => "SCHED_DEADLINE: above all priorities of SCHED_FIFO".into(),
    }
}

/// Counts of ascending values in up to eight bins of equal width: the upper end of each bin, and its count. Empty bins
/// are left out. One bin says nothing, so there are several or none.
fn histogram(ascending: &[u64]) -> Vec<(u64, usize)> {
    let (Some(&least), Some(&most)) = (ascending.first(), ascending.last()) else { return Vec::new() };
    let width = (most - least).div_ceil(BINS).max(1);
    let mut bins = Vec::new();
    let mut below = 0;
    for bin in 1..=BINS {
        let until = least.saturating_add(width.saturating_mul(bin)).min(most);
        let count = ascending.partition_point(|&value| value <= until);
        if count > below {
            bins.push((until, count - below));
        }
        below = count;
    }
    if bins.len() > 1 { bins } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_in_one_bin() {
        assert_eq!(histogram(&[7, 7, 7]), []);
        assert_eq!(histogram(&[0, 1, 80]), [(10, 2), (80, 1)]);
        let values: Vec<u64> = (0..1000).map(|value| value * value).collect();
        assert_eq!(histogram(&values).iter().map(|(_, count)| count).sum::<usize>(), 1000);
    }
}
