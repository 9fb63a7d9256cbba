//! The parameters of a generator: their keys, their values, and what they mean together.

use crate::fnv1a;
use crate::generators::Impossible;
use crate::generators::{
    Division, Groups, Lengths, Nesting, Periods, Sections, Sharing, Systems, Utilization, Utilizations, sums,
};
use lockwright_analysis::Fit;
use lockwright_model::{Duration, STEPS_MAX};

/// A key of a generator in a study file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Key {
    /// The number of processors.
    Cpus,
    /// The number of processors of each cluster.
    Cluster,
    /// The number of tasks, or the greatest number for classes of utilizations.
    Tasks,
    /// The utilization as a share of all processors.
    Load,
    /// The distribution of utilizations.
    Utilizations,
    /// The distribution of periods.
    Periods,
    /// The way in which tasks are assigned to processors.
    Placement,
    /// The number of requests of each task.
    Accesses,
    /// The degree of sharing.
    Degree,
    /// The number of resources.
    Resources,
    /// The probability that a task uses a resource.
    Probability,
    /// The greatest number of requests of a task for a resource.
    Requests,
    /// The lengths of sections.
    Lengths,
    /// The shares of nested sections.
    Nesting,
    /// The share of sections that read.
    Reads,
}

impl Key {
    /// All keys.
    pub const ALL: [Self; 15] = [
        Self::Cpus,
        Self::Cluster,
        Self::Tasks,
        Self::Load,
        Self::Utilizations,
        Self::Periods,
        Self::Placement,
        Self::Accesses,
        Self::Degree,
        Self::Resources,
        Self::Probability,
        Self::Requests,
        Self::Lengths,
        Self::Nesting,
        Self::Reads,
    ];

    /// The keys of `[generator]`. The others are those of `[sections]`.
    pub(super) const OF_TASKS: [Self; 7] =
        [Self::Cpus, Self::Cluster, Self::Tasks, Self::Load, Self::Utilizations, Self::Periods, Self::Placement];

    /// The keys of `[sections]`.
    pub(super) const OF_SECTIONS: [Self; 8] = [
        Self::Accesses,
        Self::Degree,
        Self::Resources,
        Self::Probability,
        Self::Requests,
        Self::Lengths,
        Self::Nesting,
        Self::Reads,
    ];

    /// Returns the name, as files spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpus => "cpus",
            Self::Cluster => "cluster",
            Self::Tasks => "tasks",
            Self::Load => "load",
            Self::Utilizations => "utilizations",
            Self::Periods => "periods",
            Self::Placement => "placement",
            Self::Accesses => "accesses",
            Self::Degree => "degree",
            Self::Resources => "resources",
            Self::Probability => "probability",
            Self::Requests => "requests",
            Self::Lengths => "lengths",
            Self::Nesting => "nesting",
            Self::Reads => "reads",
        }
    }
}

/// The value of a key, and its text in tables of results.
#[derive(Clone, PartialEq, Debug)]
pub struct Value {
    /// The text.
    pub label: String,
    pub(super) meaning: Meaning,
}

/// The meaning of a value.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Meaning {
    Whole(u64),
    Number(f64),
    Utilizations(Drawn),
    Periods(Periods),
    Placement(Fit),
    Lengths(Lengths),
    Nesting(Nesting, Groups),
}

/// The kinds of distributions of utilizations.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Drawn {
    Sum(Division),
    Class(Utilization),
    /// The limits of the tasks in turn; after the last, the first follows.
    Within(Vec<(f64, f64)>),
}

impl Value {
    /// Returns the place of the value on an axis: a number, or a length in microseconds. Words have none.
    #[must_use]
    pub fn place(&self) -> Option<f64> {
        match self.meaning {
            Meaning::Whole(whole) => Some(whole as f64),
            Meaning::Number(number) => Some(number),
            Meaning::Lengths(Lengths { least, most }) if least == most => Some(least.as_ns() as f64 / 1_000.0),
            _ => None,
        }
    }
}

/// The values of all keys; `None` for a key that is not given.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Setting([Option<Value>; Key::ALL.len()]);

/// Why there are no systems with some values: the key to change, the fault and a remedy.
pub(super) struct Refusal {
    pub(super) key: Key,
    pub(super) fault: String,
    pub(super) help: String,
}

impl Setting {
    pub(super) fn get(&self, key: Key) -> Option<&Value> {
        self.0[key as usize].as_ref()
    }

    pub(super) fn set(&mut self, key: Key, value: Value) {
        self.0[key as usize] = Some(value);
    }

    fn whole(&self, key: Key, otherwise: u64) -> usize {
        match self.get(key).map(|value| &value.meaning) {
            Some(&Meaning::Whole(whole)) => whole as usize,
            _ => otherwise as usize,
        }
    }

    fn number(&self, key: Key, otherwise: f64) -> f64 {
        match self.get(key).map(|value| &value.meaning) {
            Some(&Meaning::Number(number)) => number,
            _ => otherwise,
        }
    }

    pub(super) fn cpus(&self) -> usize {
        self.whole(Key::Cpus, 1)
    }

    /// Returns the number of processors of each cluster.
    pub(super) fn cluster(&self) -> usize {
        self.whole(Key::Cluster, 1)
    }

    /// Returns whether tasks have critical sections.
    pub(super) fn has_sections(&self) -> bool {
        Key::OF_SECTIONS.into_iter().any(|key| self.get(key).is_some())
    }

    /// Returns whether sections are nested in the bodies of the tasks.
    pub(super) fn is_nested(&self) -> bool {
        let nesting = self.get(Key::Nesting).map(|value| &value.meaning);
        matches!(nesting, Some(Meaning::Nesting(nesting, Groups::Separate)) if *nesting != Nesting::NONE)
    }

    /// The sum of utilizations, or its cap.
    fn total(&self) -> f64 {
        self.number(Key::Load, 0.5) * self.cpus() as f64
    }

    fn utilizations(&self) -> Utilizations {
        let (tasks, total) = (self.whole(Key::Tasks, 1), self.total());
        match self.get(Key::Utilizations).map(|value| &value.meaning) {
            Some(&Meaning::Utilizations(Drawn::Class(of))) => Utilizations::UpTo { of, cap: total, most: tasks },
            Some(&Meaning::Utilizations(Drawn::Sum(by))) => Utilizations::Sum { by, tasks, total },
            Some(Meaning::Utilizations(Drawn::Within(limits))) => {
                Utilizations::Within { limits: limits.iter().copied().cycle().take(tasks).collect(), total }
            }
            _ => Utilizations::Sum { by: Division::RandFixedSum, tasks, total },
        }
    }

    fn sections(&self) -> Option<(Sections, Groups)> {
        if !self.has_sections() {
            return None;
        }
        let sharing = if self.get(Key::Accesses).is_some() {
            Sharing::Accesses {
                accesses: self.whole(Key::Accesses, 1) as u32,
                degree: self.whole(Key::Degree, 1) as u32,
            }
        } else {
            Sharing::Resources {
                resources: self.whole(Key::Resources, 1),
                probability: self.number(Key::Probability, 1.0),
                requests: self.whole(Key::Requests, 1) as u32,
            }
        };
        let lengths = match self.get(Key::Lengths).map(|value| &value.meaning) {
            Some(&Meaning::Lengths(lengths)) => lengths,
            _ => Lengths::SHORT,
        };
        let (nesting, groups) = match self.get(Key::Nesting).map(|value| &value.meaning) {
            Some(&Meaning::Nesting(nesting, groups)) => (nesting, groups),
            _ => (Nesting::NONE, Groups::Separate),
        };
        Some((Sections { sharing, lengths, nesting, reads: self.number(Key::Reads, 0.0) }, groups))
    }

    /// Returns why there are no such systems, if so. It takes little time, whatever the number of tasks is.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        let (total, cpus, cluster) = (self.total(), self.cpus(), self.cluster());
        if !cpus.is_multiple_of(cluster) {
            return Err(Refusal {
                key: Key::Cluster,
                fault: format!("{cpus} CPUs cannot be divided into clusters of {cluster}"),
                help: "choose a number of CPUs that divides all of them".into(),
            });
        }
        match self.utilizations() {
            Utilizations::Sum { tasks, .. } if total > tasks as f64 => {
                return Err(Refusal {
                    key: Key::Load,
                    fault: format!("{tasks} tasks cannot have a utilization of {total} together"),
                    help: "a task has at most 1: lower the load, or raise the number of tasks".into(),
                });
            }
            Utilizations::UpTo { of, cap, .. } if of.greatest() > cap => {
                return Err(Refusal {
                    key: Key::Load,
                    fault: format!(
                        "a task may have a utilization of {}, and all together at most {cap}",
                        of.greatest()
                    ),
                    help: "a task set could be empty: raise the load, or choose lighter utilizations".into(),
                });
            }
            Utilizations::Within { limits, .. } if sums(&limits, total).is_err() => {
                let (least, most) = limits.iter().fold((0.0, 0.0), |sum, limit| (sum.0 + limit.0, sum.1 + limit.1));
                let [least, most, total] = [least, most, total].map(|sum: f64| (sum * 1e6).round() / 1e6);
                return Err(Refusal {
                    key: Key::Load,
                    fault: format!("the limits allow utilizations from {least} to {most} together, and not {total}"),
                    help: "change the load or the limits of the utilizations".into(),
                });
            }
            _ => {}
        }
        let Some((sections, groups)) = self.sections() else { return Ok(()) };
        let refused = |why: Impossible| Refusal {
            key: Key::Accesses,
            fault: why.to_string(),
            help: "the number of resources is accesses * tasks / (degree * cpus): lower accesses or tasks".into(),
        };
        sections.sharing.resources(self.whole(Key::Tasks, 1), self.cpus()).map_err(refused)?;
        // Group locks have no sections inside others.
        let nesting = if groups == Groups::Joined { Nesting::NONE } else { sections.nesting };
        let (mean, deviation) = Sections { nesting, ..sections }.steps();
        if mean + DEVIATIONS * deviation >= STEPS_MAX as f64 {
            let given = [Key::Accesses, Key::Requests, Key::Resources].into_iter().find(|&key| self.get(key).is_some());
            return Err(Refusal {
                key: given.unwrap_or(Key::Accesses),
                fault: format!(
                    "the sections of a job would take {mean:.0} steps on average and up to about {:.0}, and a job has at most {STEPS_MAX}",
                    mean + DEVIATIONS * deviation
                ),
                help: "a section takes 4 steps, and 3 more for each resource inside it: lower the number of requests"
                    .into(),
            });
        }
        Ok(())
    }

    /// Returns the generator.
    pub(super) fn systems(&self) -> Result<Systems, Impossible> {
        let periods = match self.get(Key::Periods).map(|value| &value.meaning) {
            Some(&Meaning::Periods(periods)) => periods,
            _ => DEFAULT_PERIODS,
        };
        let placement = match self.get(Key::Placement).map(|value| &value.meaning) {
            Some(&Meaning::Placement(fit)) => fit,
            _ => Fit::Worst,
        };
        let systems = Systems::new(self.cpus(), self.utilizations(), periods, self.sections(), placement)?;
        Ok(systems.in_clusters(self.cluster()))
    }

    /// Returns the number of the cell for random numbers: it depends on the values alone, and not on the other cells of
    /// a study. It is the hash of the names and the texts.
    pub(super) fn number_of_cell(&self) -> u64 {
        // Clusters of every size have the same tasks, so that studies compare the sizes.
        let drawn = Key::ALL.into_iter().filter(|&key| key != Key::Cluster);
        let texts = drawn.filter_map(|key| Some([key.name(), "=", &self.get(key)?.label, "\n"]));
        fnv1a(texts.flatten().flat_map(str::bytes))
    }
}

/// Standard deviations above the mean up to which the steps of a job must have room. In the few jobs beyond, requests
/// are left out.
const DEVIATIONS: f64 = 6.0;

/// The periods if the file gives none.
pub(super) const DEFAULT_PERIODS: Periods =
    Periods::LogUniform { least: Duration::from_ms(10), most: Duration::from_ms(1_000) };
