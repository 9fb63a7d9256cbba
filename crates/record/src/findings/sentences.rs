//! The findings as sentences.

use super::order::AROUND_MAX;
use super::{Cycle, Findings, Inversion, LockWait, LongSection};
use crate::recording::{Recording, ThreadIndex};
use crate::texts::times;
use lockwright_model::Duration;

impl Findings {
    /// One sentence for each inversion and each cycle, then for cycles that were not looked for, for the longest wait,
    /// for uncontended locks, and for long sections.
    #[must_use]
    pub fn sentences(&self, recording: &Recording) -> Vec<String> {
        let mut sentences: Vec<String> = self.inversions.iter().map(|found| inversion(recording, found)).collect();
        sentences.extend(self.cycles.iter().map(|found| cycle(recording, found)));
        if self.left_out > 0 {
            sentences.push(format!(
                "possible deadlocks are not known for locks inside more than {AROUND_MAX} others ({})",
                times(self.left_out)
            ));
        }
        sentences.extend(self.waits.first().map(|longest| wait(recording, longest)));
        let never = self.locks.iter().filter(|lock| lock.contended == 0).count();
        if never > 0 {
            let many = self.locks.len();
            sentences.push(format!("uncontended: {never} of {many} locks were never waited for"));
        }
        sentences.extend(self.long_sections.iter().map(|found| long_section(recording, found)));
        sentences
    }
}

fn named(recording: &Recording, thread: ThreadIndex) -> String {
    format!("`{}`", recording.thread_name(thread))
}

/// A time with at most two decimals, so that sentences are short: "3.1 ms", "14.25 us".
fn short(ns: u64) -> String {
    let unit = [1_000_000_000_u64, 1_000_000, 1_000].into_iter().find(|&unit| ns >= unit).unwrap_or(1);
    // Rounded up to a hundredth of the unit.
    let step = (unit / 100).max(1);
    Duration::from_ns(ns.div_ceil(step).saturating_mul(step)).to_string()
}

/// "inversion: 12 times, worst 3.1 ms: `camera` waited for `logger` while `planner` ran; inheritance would have bounded
/// it to 400 us".
fn inversion(recording: &Recording, found: &Inversion) -> String {
    let between: Vec<String> = found.between.iter().map(|&thread| named(recording, thread)).collect();
    format!(
        "inversion: {}, worst {}: {} waited for {} while {} ran; inheritance would have bounded it to {}",
        times(found.times),
        short(found.worst_ns),
        named(recording, found.waiter),
        named(recording, found.holder),
        between.join(" and "),
        short(found.inherited_ns)
    )
}

fn cycle(recording: &Recording, found: &Cycle) -> String {
    let step = |step: &super::order::CycleStep| {
        format!(
            "{} holds `{}` and locks `{}` at {}",
            named(recording, step.thread),
            recording.object_name(step.holds),
            recording.object_name(step.requests),
            recording.site_name(step.site)
        )
    };
    let steps: Vec<String> = found.steps.iter().map(step).collect();
    format!("possible deadlock: {}", steps.join("; "))
}

fn wait(recording: &Recording, found: &LockWait) -> String {
    let holder = found.holder.map_or_else(
        || "a thread that was not recorded".into(),
        |(holder, site)| format!("{}, which locked it at {}", named(recording, holder), recording.site_name(site)),
    );
    format!(
        "longest wait: {} waited {} for `{}` at {}, held by {holder}",
        named(recording, found.waiter),
        short(found.length_ns()),
        recording.object_name(found.object),
        recording.site_name(found.site)
    )
}

fn long_section(recording: &Recording, found: &LongSection) -> String {
    format!(
        "long section: {} held `{}`, locked at {}, {}, up to {} of CPU time and {} of time",
        named(recording, found.thread),
        recording.object_name(found.object),
        recording.site_name(found.site),
        times(found.times),
        short(found.longest_cpu_ns),
        short(found.longest_held_ns)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        let cases = [(7, "7 ns"), (14_249, "14.25 us"), (3_100_000, "3.1 ms"), (400_001, "400.01 us")];
        for (ns, text) in cases {
            assert_eq!(short(ns), text);
        }
    }
}
