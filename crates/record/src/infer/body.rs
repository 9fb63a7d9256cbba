//! The body of a task: the steps of one job that cover those of all recorded jobs.

use crate::held::Held;
use crate::history::Entry;
use crate::recording::ObjectId;
use lockwright_model::Mode;
use lockwright_model::{Duration, ResourceId, Step};
use std::collections::BTreeMap;

/// The object that a section locks, and its mode. A job that reads an object and one that writes it have different
/// sections.
type Lock = (ObjectId, Mode);

/// A job, or a critical section of it: an execution with sections inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// The lock of a section; `None` for a job.
    lock: Option<Lock>,
    /// Its CPU time, sections inside included.
    length: u64,
    /// The CPU time before each section inside, and after the last one.
    gaps: Vec<u64>,
    /// The sections inside.
    inner: Vec<Part>,
}

/// A way through the code: the locks and unlocks of a job, and the number of jobs that execute exactly these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    pub(super) jobs: u64,
    part: Part,
}

impl Part {
    /// The job between two entries, with the sections that begin and end there.
    pub(super) fn of_job(entries: &[Entry], sections: &[Held], from: usize, until: usize) -> Self {
        let begin = sections.partition_point(|section| section.first < from);
        let end = sections.partition_point(|section| section.first < until);
        let ends_inside = |&index: &usize| sections[index].last.is_some_and(|last| last < until);
        let inside: Vec<usize> = (begin..end).filter(ends_inside).collect();
        Self::new(None, entries, sections, &inside, (from, until))
    }

    /// The part between two entries, with these sections inside, in the order of their locks.
    fn new(
        lock: Option<Lock>,
        entries: &[Entry],
        sections: &[Held],
        inside: &[usize],
        (from, until): (usize, usize),
    ) -> Self {
        let cpu_ns = |from: usize, until: usize| entries[until].cpu_ns.saturating_sub(entries[from].cpu_ns);
        let mut part = Self { lock, length: cpu_ns(from, until), gaps: Vec::new(), inner: Vec::new() };
        let (mut now, mut rest) = (from, inside);
        while let Some((&index, behind)) = rest.split_first() {
            // The sections that began inside this one follow it directly.
            let is_nested = |other: &usize| sections[*other].parent.is_some_and(|parent| parent >= index);
            let nested = behind.iter().take_while(|other| is_nested(other)).count();
            let (nested, others) = behind.split_at(nested);
            // A section that ends behind the one in which it began lengthens that one.
            let section = &sections[index];
            let ends = nested.iter().filter_map(|&other| sections[other].last).chain(section.last);
            let last = ends.max().unwrap_or(until);
            part.gaps.push(cpu_ns(now, section.first));
            let lock = Some((section.object, section.mode));
            part.inner.push(Self::new(lock, entries, sections, nested, (section.first, last)));
            (now, rest) = (last, others);
        }
        part.gaps.push(cpu_ns(now, until));
        part
    }

    fn is_shaped_as(&self, other: &Self) -> bool {
        self.lock == other.lock
            && self.inner.len() == other.inner.len()
            && self.inner.iter().zip(&other.inner).all(|(one, other)| one.is_shaped_as(other))
    }

    /// Extends this part until it covers the other one: each section of the other one has a section here that is at
    /// least as long. Sections that are missing are added at the end.
    fn cover(&mut self, other: &Self) {
        self.length = self.length.max(other.length);
        if self.is_shaped_as(other) {
            for (gap, other) in self.gaps.iter_mut().zip(&other.gaps) {
                *gap = (*gap).max(*other);
            }
        }
        let mut is_free = vec![true; self.inner.len()];
        for section in &other.inner {
            let find = |is_meant: &dyn Fn(&Self) -> bool| {
                (0..is_free.len()).find(|&index| is_free[index] && is_meant(&self.inner[index]))
            };
            let found = find(&|own| own.is_shaped_as(section)).or_else(|| find(&|own| own.lock == section.lock));
            match found {
                Some(index) => {
                    is_free[index] = false;
                    self.inner[index].cover(section);
                }
                None => {
                    is_free.push(false);
                    self.inner.push(section.clone());
                    self.gaps.push(0);
                }
            }
        }
    }

    /// Makes the gaps and the sections inside add up to the length, which is raised where they are longer. The gaps
    /// keep their proportions. A section is at least a nanosecond long.
    fn fit(&mut self) {
        let mut inside = 0_u64;
        for section in &mut self.inner {
            section.fit();
            inside = inside.saturating_add(section.length);
        }
        self.length = self.length.max(inside).max(1);
        let rest = self.length - inside;
        let total: u128 = self.gaps.iter().map(|&gap| u128::from(gap)).sum();
        let mut left = rest;
        for gap in &mut self.gaps {
            // At most `rest`, because a gap is at most `total`.
            *gap = u64::try_from((u128::from(rest) * u128::from(*gap)).checked_div(total).unwrap_or(0)).unwrap_or(0);
            left -= *gap;
        }
        if let Some(last) = self.gaps.iter_mut().rev().max_by_key(|gap| **gap) {
            *last += left;
        }
    }

    /// Appends the steps, with each run lengthened by `margin` percent.
    fn steps(&self, margin: u32, resource: &impl Fn(ObjectId) -> ResourceId, steps: &mut Vec<Step>) {
        for (index, &gap) in self.gaps.iter().enumerate() {
            let longer = (u128::from(gap) * (100 + u128::from(margin))).div_ceil(100);
            if let Some(ns) = u64::try_from(longer).ok().filter(|&ns| ns > 0) {
                steps.push(Step::Run(Duration::from_ns(ns)));
            }
            let Some(section) = self.inner.get(index) else { continue };
            let Some((object, mode)) = section.lock else { continue };
            let resource_id = resource(object);
            steps.push(if mode == Mode::Read { Step::Read(resource_id) } else { Step::Lock(resource_id) });
            section.steps(margin, resource, steps);
            steps.push(Step::Unlock(resource_id));
        }
    }

    /// The locks and unlocks in order.
    fn key(&self, key: &mut Vec<Option<Lock>>) {
        for section in &self.inner {
            key.push(section.lock);
            section.key(key);
            key.push(None);
        }
    }

    fn objects(&self, objects: &mut Vec<ObjectId>) {
        objects.extend(self.lock.map(|(object, _)| object));
        self.inner.iter().for_each(|section| section.objects(objects));
    }

    /// The sections in short, such as `bus (log), read map`.
    fn text(&self, name: &impl Fn(ObjectId) -> String) -> String {
        let of = |section: &Self| {
            let inner = if section.inner.is_empty() { String::new() } else { format!(" ({})", section.text(name)) };
            let mode = if section.lock.is_some_and(|(_, mode)| mode == Mode::Read) { "read " } else { "" };
            format!("{mode}{}{inner}", section.lock.map_or_else(String::new, |(object, _)| name(object)))
        };
        self.inner.iter().map(of).collect::<Vec<_>>().join(", ")
    }
}

/// The body of a task, before its resources have ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Body {
    whole: Part,
    /// The ways through the code, the most frequent first.
    pub(super) patterns: Vec<Pattern>,
}

impl Body {
    /// The body that covers these jobs. Its sections are those of the most frequent pattern, in its order; sections
    /// that only other patterns have follow at its end. `None` without jobs.
    pub(super) fn of(jobs: impl IntoIterator<Item = Part>) -> Option<Self> {
        let mut patterns: BTreeMap<Vec<Option<Lock>>, Pattern> = BTreeMap::new();
        for job in jobs {
            let mut key = Vec::new();
            job.key(&mut key);
            match patterns.get_mut(&key) {
                Some(pattern) => {
                    pattern.jobs += 1;
                    pattern.part.cover(&job);
                }
                None => drop(patterns.insert(key, Pattern { jobs: 1, part: job })),
            }
        }
        let mut patterns: Vec<Pattern> = patterns.into_values().collect();
        patterns.sort_by_key(|pattern| std::cmp::Reverse(pattern.jobs));
        let mut whole = patterns.first()?.part.clone();
        for pattern in &patterns {
            whole.cover(&pattern.part);
        }
        whole.fit();
        Some(Self { whole, patterns })
    }

    /// The objects that are locked.
    pub(super) fn objects(&self) -> Vec<ObjectId> {
        let mut objects = Vec::new();
        self.whole.objects(&mut objects);
        objects
    }

    /// The steps of a job.
    pub(super) fn steps(&self, margin: u32, resource: &impl Fn(ObjectId) -> ResourceId) -> Vec<Step> {
        let mut steps = Vec::new();
        self.whole.steps(margin, resource, &mut steps);
        steps
    }
}

impl Pattern {
    /// The sections in short.
    pub(super) fn text(&self, name: &impl Fn(ObjectId) -> String) -> String {
        if self.part.inner.is_empty() { "no section".into() } else { self.part.text(name) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::held::held;
    use crate::history::histories;
    use crate::infer::testing::Script;

    /// The steps of jobs: runs in nanoseconds, `(` with an object locks it, `[` locks it to read,
    /// and `)` with an object unlocks it.
    fn body(jobs: &[&str], margin: u32) -> String {
        let mut parts = Vec::new();
        for job in jobs {
            let mut script = Script::new();
            for word in job.split_whitespace() {
                let object = || u32::from(word.as_bytes()[1] - b'a');
                match word.as_bytes()[0] {
                    b'(' => script.lock(object()),
                    b'[' => script.read(object()),
                    b')' => script.unlock(object()),
                    _ => script.run(word.parse().expect("a number")),
                }
            }
            script.event(crate::EventKind::End);
            let history = histories(&script.recording()).remove(0);
            parts.push(Part::of_job(&history.entries, &held(&history), 0, history.entries.len() - 1));
        }
        let body = Body::of(parts).expect("has jobs");
        let name = |resource: ResourceId| char::from(b'a' + resource.0 as u8);
        let steps = body.steps(margin, &|object| ResourceId(object as u16));
        let word = |step: &Step| match step {
            Step::Run(time) => time.as_ns().to_string(),
            Step::Lock(resource) => format!("({}", name(*resource)),
            Step::Read(resource) => format!("[{}", name(*resource)),
            Step::Unlock(resource) => format!("){}", name(*resource)),
        };
        steps.iter().map(word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_single_pattern_keeps_its_steps() {
        let job = "10 (a 5 (b 7 )b )a 3 (a 2 )a 1";
        assert_eq!(body(&[job, job], 0), job);
        assert_eq!(body(&[job], 20), "12 (a 6 (b 9 )b )a 4 (a 3 )a 2");
    }

    #[test]
    fn lengths_are_the_greatest_of_all_jobs() {
        // The job of 30 gets the longest section, and the runs around it keep their proportion.
        assert_eq!(body(&["10 (a 5 )a 15", "10 (a 9 )a 1"], 0), "8 (a 9 )a 13");
        assert_eq!(body(&["(a 5 )a", "(a 9 )a"], 0), "(a 9 )a");
    }

    #[test]
    fn sections_of_other_patterns_are_covered() {
        assert_eq!(body(&["5 (a 5 )a 5", "5 (a 5 )a 5", "2 (b 1 )b 2"], 0), "5 (a 5 )a 4 (b 1 )b");
        assert_eq!(body(&["5 (a 5 )a 5", "5 (a 5 )a 5", "2 (a 1 (b 1 )b )a 2"], 0), "5 (a 4 (b 1 )b )a 5");
        assert_eq!(body(&["5", "5", "(a 9 )a"], 0), "(a 9 )a");
        // A section of no time is a nanosecond long.
        assert_eq!(body(&["5 (a )a"], 0), "4 (a 1 )a");
        let longest = "(a 18446744073709551615 )a (b )b";
        assert_eq!(body(&[longest], 0), "(a 18446744073709551615 )a (b 1 )b");
    }

    #[test]
    fn sections_that_read_stay_apart_from_those_that_write() {
        assert_eq!(body(&["1 [a 2 )a 3", "1 [a 2 )a 3"], 0), "1 [a 2 )a 3");
        // The job reads in its most frequent pattern, and writes in another one.
        assert_eq!(body(&["5 [a 5 )a 5", "5 [a 5 )a 5", "2 (a 1 )a 2"], 0), "5 [a 5 )a 4 (a 1 )a");
    }

    #[test]
    fn hand_over_hand_becomes_nesting() {
        assert_eq!(body(&["1 (a 2 (b 4 )a 8 )b 16"], 0), "1 (a 2 (b 12 )b )a 16");
        // A section that does not end in its job is left out.
        assert_eq!(body(&["1 (a 2 (b 4 )b 8"], 0), "3 (b 4 )b 8");
    }
}
