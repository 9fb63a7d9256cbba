//! Whole systems.

use super::sections::steps;
use super::{
    Access, ConvolutionalFixedSum, DrawnSections, Impossible, Periods, Philox, RandFixedSum, Sections, Stream,
    Utilization, uunifast, uunifast_discard,
};
use lockwright_analysis::Fit;
use lockwright_model::{
    CPUS_MAX, CpuId, Duration, Priority, Resource, ResourceId, STEPS_MAX, Step, System, TASKS_MAX, Task,
    assign_rate_monotonic,
};

/// The numbers of the parts of a sample. Each part has random numbers of its own, so a change of one part leaves the
/// others as they are.
mod part {
    pub(super) const UTILIZATIONS: u64 = 0;
    pub(super) const PERIODS: u64 = 1;
    pub(super) const SECTIONS: u64 = 2;
}

/// The utilizations of the tasks of a system.
#[derive(Clone, PartialEq, Debug)]
pub enum Utilizations {
    /// A number of tasks with a given sum.
    Sum {
        /// The way in which the sum is divided.
        by: Division,
        /// The number of tasks.
        tasks: usize,
        /// The sum, where 1 is a whole processor.
        total: f64,
    },
    /// A number of tasks with a given sum, each within limits of its own: by [`ConvolutionalFixedSum`].
    Within {
        /// The least and the greatest utilization of each task.
        limits: Vec<(f64, f64)>,
        /// The sum, where 1 is a whole processor.
        total: f64,
    },
    /// Tasks are drawn singly as long as their sum is at most `cap`.
    UpTo {
        /// The distribution of a single utilization.
        of: Utilization,
        /// The greatest sum. If a single utilization may exceed it, a system may have no task.
        cap: f64,
        /// The greatest number of tasks.
        most: usize,
    },
}

/// Tables that are prepared for all samples.
#[derive(Clone, PartialEq, Debug)]
enum Tables {
    None,
    Sum(RandFixedSum),
    Within(ConvolutionalFixedSum),
}

/// A way to divide a sum of utilizations into those of tasks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Division {
    /// By [`uunifast`]. A utilization may exceed 1, and is then cut to 1.
    UUniFast,
    /// By [`uunifast_discard`], with utilizations up to 1.
    UUniFastDiscard,
    /// By [`RandFixedSum`].
    RandFixedSum,
}

/// The treatment of nested sections.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Groups {
    /// They are nested in the bodies of the tasks.
    #[default]
    Separate,
    /// Resources that are held together are one resource: a group lock.
    Joined,
}

/// A generator of valid systems under partitioned or clustered fixed priorities.
///
/// A sample is computed from its number alone, so samples may be drawn in any order and on any thread. Priorities are
/// rate-monotonic, and deadlines equal periods. Execution times are utilization times period, rounded down, and at
/// least 1 ns. Sections are part of the execution time: requests that no longer fit into a job are left out, at random.
/// The time outside of sections is spread evenly between them.
///
/// # Examples
/// ```
/// use lockwright_analysis::Fit;
/// use lockwright_model::Duration;
/// use lockwright_study::generators::*;
///
/// let sections = Sections {
///     sharing: Sharing::Accesses { accesses: 2, degree: 1 },
///     lengths: Lengths::SHORT,
///     nesting: Nesting::NONE,
///     reads: 0.0,
/// };
/// let systems = Systems::new(
///     4,
///     Utilizations::Sum { by: Division::RandFixedSum, tasks: 20, total: 2.5 },
///     Periods::LogUniform { least: Duration::from_ms(10), most: Duration::from_ms(1_000) },
///     Some((sections, Groups::Separate)),
///     Fit::Worst,
/// )?;
/// let study = Philox::new(42, 0);
/// let seventh = systems.draw(study, 7)?;
/// assert_eq!(seventh.tasks().len(), 20);
/// assert_eq!(systems.draw(study, 7)?, seventh);
/// # Ok::<(), Impossible>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Systems {
    cpus: usize,
    /// The number of processors of each cluster.
    cluster: usize,
    utilizations: Utilizations,
    tables: Tables,
    periods: Periods,
    sections: Option<(Sections, Groups)>,
    placement: Fit,
    /// The names of the tasks, and those of the resources.
    names: [Vec<String>; 2],
}

impl Systems {
    /// Prepares the generator for `cpus` processors. Tasks are placed by decreasing utilization, as by
    /// [`partition`](lockwright_analysis::partition). A task that fits on no processor is on that with the least
    /// utilization, which is then overloaded.
    ///
    /// # Errors
    /// Returns an error if no such system exists.
    pub fn new(
        cpus: usize,
        utilizations: Utilizations,
        periods: Periods,
        sections: Option<(Sections, Groups)>,
        placement: Fit,
    ) -> Result<Self, Impossible> {
        let (tasks, tables) = match utilizations {
            Utilizations::Sum { by: Division::RandFixedSum, tasks, total } => {
                (tasks, Tables::Sum(RandFixedSum::new(tasks, total)?))
            }
            Utilizations::Within { ref limits, total } => {
                (limits.len(), Tables::Within(ConvolutionalFixedSum::new(limits, total)?))
            }
            Utilizations::Sum { tasks, .. } | Utilizations::UpTo { most: tasks, .. } => (tasks, Tables::None),
        };
        if tasks == 0 || tasks > TASKS_MAX {
            return Err(Impossible::Tasks { count: tasks });
        }
        let resources = match &sections {
            Some((sections, _)) => sections.sharing.resources(tasks, cpus)?,
            None => 0,
        };
        let names = [("t", tasks), ("r", resources)];
        let names = names.map(|(kind, count)| (0..count).map(|index| format!("{kind}{index}")).collect());
        Ok(Self { cpus, cluster: 1, utilizations, tables, periods, sections, placement, names })
    }

    /// Returns the same generator for clusters of `size` processors each, under clustered fixed priorities. Tasks are
    /// placed on clusters as on processors, up to a utilization of `size`. Clusters of one processor are partitions.
    ///
    /// # Panics
    /// Panics if the processors cannot be divided into such clusters.
    #[must_use]
    pub fn in_clusters(self, size: usize) -> Self {
        assert!(size > 0 && self.cpus.is_multiple_of(size), "{size} divides {} processors", self.cpus);
        Self { cluster: size, ..self }
    }

    /// Draws the system with this number.
    ///
    /// # Errors
    /// Returns an error if the draw failed: [`Impossible::Discarded`], or [`Impossible::Tasks`] if the first
    /// utilization exceeds the cap.
    ///
    /// # Panics
    /// Panics if a range of the generator ends before it begins.
    pub fn draw(&self, random: Philox, sample: u64) -> Result<System, Impossible> {
        let utilizations = self.utilizations(&mut random.stream(sample, part::UTILIZATIONS))?;
        if utilizations.is_empty() {
            return Err(Impossible::Tasks { count: 0 });
        }
        let mut stream = random.stream(sample, part::PERIODS);
        let times: Vec<(Duration, Duration)> =
            utilizations.iter().map(|&utilization| times(utilization, self.periods.draw(&mut stream))).collect();
        let drawn = match &self.sections {
            None => DrawnSections { resources: 0, tasks: vec![Vec::new(); times.len()] },
            Some((sections, groups)) => {
                let drawn = sections.draw(&mut random.stream(sample, part::SECTIONS), times.len(), self.cpus)?;
                if *groups == Groups::Joined { drawn.grouped() } else { drawn }
            }
        };
        let homes = place(&times, self.cpus / self.cluster, self.cluster, self.placement);
        let [task_names, resource_names] = &self.names;
        let task = |index: usize| {
            let (period, wcet) = times[index];
            Ok(Task {
                name: task_names[index].clone(),
                cpu: CpuId::new(homes[index] * self.cluster),
                priority: Priority::MIN,
                period,
                deadline: period,
                jitter: Duration::ZERO,
                offset: Duration::ZERO,
                wcet,
                body: body(wcet, &drawn.tasks[index]),
            })
        };
        let mut tasks = (0..times.len()).map(task).collect::<Result<Vec<Task>, _>>()?;
        assign_rate_monotonic(&mut tasks);
        let resources = resource_names[..drawn.resources].iter().map(|name| Resource::new(name.clone())).collect();
        let system = System::new("generated".into(), self.cpus, None, resources, tasks).and_then(|system| {
            if self.cluster == 1 {
                return Ok(system);
            }
            let first = u64::MAX >> (CPUS_MAX - self.cluster);
            let clusters: Vec<u64> = system.tasks().iter().map(|task| first << task.cpu.index()).collect();
            system.in_clusters(&clusters)
        });
        Ok(system.expect("a generated system keeps every rule"))
    }

    fn utilizations(&self, random: &mut Stream) -> Result<Vec<f64>, Impossible> {
        match &self.tables {
            Tables::Sum(tables) => return Ok(tables.draw(random)),
            Tables::Within(tables) => return Ok(tables.draw(random)),
            Tables::None => {}
        }
        match self.utilizations {
            Utilizations::Sum { by: Division::UUniFast, tasks, total } => Ok(uunifast(random, tasks, total)),
            Utilizations::Sum { tasks, total, .. } => uunifast_discard(random, tasks, total, 1.0),
            Utilizations::UpTo { of, cap, most } => Ok(of.draw_up_to(random, cap, most)),
            Utilizations::Within { .. } => unreachable!("its tables are prepared"),
        }
    }
}

/// Returns the period and the execution time of a task.
fn times(utilization: f64, period: Duration) -> (Duration, Duration) {
    let cost = (utilization * period.as_ns() as f64) as u64;
    (period, Duration::from_ns(cost.clamp(1, period.as_ns())))
}

/// Returns the cluster of each task. There are `clusters` with `size` processors each.
fn place(times: &[(Duration, Duration)], clusters: usize, size: usize, fit: Fit) -> Vec<usize> {
    // Units of 2^-32 processors.
    const WHOLE: u64 = 1 << 32;
    let load = |(period, wcet): &(Duration, Duration)| {
        u64::try_from((u128::from(wcet.as_ns()) << 32) / u128::from(period.as_ns())).unwrap_or(WHOLE)
    };
    let mut order: Vec<(u64, usize)> = times.iter().map(load).zip(0..).collect();
    order.sort_unstable_by_key(|&(load, task)| (std::cmp::Reverse(load), task));
    let mut loads = vec![0_u64; clusters];
    let mut homes = vec![0; times.len()];
    for (load, task) in order {
        let fits = (0..clusters).filter(|&cluster| loads[cluster] + load <= WHOLE * size as u64);
        let home = match fit {
            Fit::First => fits.min(),
            Fit::Best => fits.min_by_key(|&cluster| std::cmp::Reverse(loads[cluster])),
            Fit::Worst => fits.min_by_key(|&cluster| loads[cluster]),
        };
        let home = home.or_else(|| (0..clusters).min_by_key(|&cluster| loads[cluster])).unwrap_or(0);
        loads[home] += load;
        homes[task] = home;
    }
    homes
}

/// Lays sections out into a body of `wcet` execution time. Those that do not fit into this time, or into the steps of a
/// job, are left out.
fn body(wcet: Duration, accesses: &[Access]) -> Vec<Step> {
    // The last step is the run after all sections.
    let (mut inside, mut count) = (0_u64, 1);
    let held = |access: &Access| 1 + access.inner.len();
    let fits = |access: &&Access| {
        inside = inside.saturating_add(access.length.as_ns());
        count += steps(held(access));
        inside <= wcet.as_ns() && count <= STEPS_MAX && access.length.as_ns() >= held(access) as u64
    };
    let placed: Vec<&Access> = accesses.iter().take_while(fits).collect();
    let outside = wcet.as_ns() - placed.iter().map(|access| access.length.as_ns()).sum::<u64>();
    let gaps = placed.len() as u64 + 1;
    let (gap, mut extra) = (outside / gaps, outside % gaps);
    let mut body = Vec::with_capacity(4 * placed.len() + 1);
    let mut run = |body: &mut Vec<Step>| {
        let ns = gap + u64::from(extra > 0);
        extra = extra.saturating_sub(1);
        if ns > 0 {
            body.push(Step::Run(Duration::from_ns(ns)));
        }
    };
    for access in placed {
        run(&mut body);
        section(&mut body, access);
    }
    run(&mut body);
    body
}

/// Appends a section. Each of the sections in it begins after an equal part of the length, and all end together.
fn section(body: &mut Vec<Step>, access: &Access) {
    let id = |resource: u16| ResourceId::new(usize::from(resource));
    let all = || std::iter::once(access.resource).chain(access.inner.iter().copied());
    let parts = 1 + access.inner.len() as u64;
    let part = access.length.as_ns() / parts;
    for (resource, place) in all().zip(1..) {
        body.push(access.mode.step(id(resource)));
        let ns = if place == parts { access.length.as_ns() - part * (parts - 1) } else { part };
        body.push(Step::Run(Duration::from_ns(ns)));
    }
    body.extend(access.inner.iter().rev().map(|&inner| Step::Unlock(id(inner))));
    body.push(Step::Unlock(id(access.resource)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generators::{Lengths, Nesting, Sharing};
    use lockwright_model::Scheduler;

    const ACCESSES: Sharing = Sharing::Accesses { accesses: 5, degree: 1 };
    const PERIODS: Periods = Periods::Uniform { least: Duration::from_ms(10), most: Duration::from_ms(100) };

    fn systems(sharing: Sharing, nesting: Nesting, groups: Groups) -> Systems {
        let utilizations = Utilizations::Sum { by: Division::RandFixedSum, tasks: 30, total: 2.5 };
        let sections = Sections { sharing, lengths: Lengths::MEDIUM, nesting, reads: 0.5 };
        Systems::new(4, utilizations, PERIODS, Some((sections, groups)), Fit::Worst).expect("is possible")
    }

    fn utilization(system: &System, cpu: usize) -> f64 {
        let on = system.tasks().iter().filter(|task| task.cpu.index() == cpu);
        on.map(|task| task.wcet.as_ns() as f64 / task.period.as_ns() as f64).sum()
    }

    /// `System::new` checks all rules of a system; `draw` panics if one is broken.
    #[test]
    fn systems_are_as_asked_for() {
        for nesting in [Nesting::NONE, Nesting::TRACED, Nesting { one: 0, deeper: 10_000, deepest: 8 }] {
            let systems = systems(ACCESSES, nesting, Groups::Separate);
            let mut nested = 0;
            for sample in 0..200 {
                let system = systems.draw(Philox::new(3, 1), sample).expect("is drawn");
                let all: f64 = (0..4).map(|cpu| utilization(&system, cpu)).sum();
                assert!((all - 2.5).abs() < 1e-4, "{all}");
                assert!((0..4).all(|cpu| utilization(&system, cpu) <= 1.0), "worst fit of 2.5 on 4");
                for id in system.task_ids() {
                    let sections = system.sections(id);
                    nested += sections.iter().filter(|section| section.parent.is_some()).count();
                    let outer = sections.iter().filter(|section| section.parent.is_none());
                    assert!(outer.clone().count() <= 5);
                    assert!(outer.clone().all(|outer| (1_000..=100_000).contains(&outer.length.as_ns())));
                    // A request is left out only if it does not fit.
                    let inside: u64 = outer.clone().map(|outer| outer.length.as_ns()).sum();
                    assert!(outer.count() == 5 || inside + 100_000 > system.task(id).wcet.as_ns());
                }
            }
            assert_eq!(nested > 0, nesting != Nesting::NONE, "{nested}");
        }
    }

    #[test]
    fn samples_do_not_depend_on_their_order() {
        let systems = systems(ACCESSES, Nesting::TRACED, Groups::Separate);
        let study = Philox::new(4, 9);
        let forward: Vec<System> = (0..20).map(|sample| systems.draw(study, sample).expect("is drawn")).collect();
        let mut backward: Vec<System> =
            (0..20).rev().map(|sample| systems.draw(study, sample).expect("is drawn")).collect();
        backward.reverse();
        assert_eq!(forward, backward);
        assert_ne!(forward[0], forward[1]);
        assert_ne!(forward[0], systems.draw(Philox::new(4, 8), 0).expect("is drawn"), "another cell");
        assert_ne!(forward[0], systems.draw(Philox::new(5, 9), 0).expect("is drawn"), "another seed");
    }

    /// Periods and utilizations have random numbers of their own.
    #[test]
    fn sections_leave_the_tasks_as_they_are() {
        let (one, other) = (Nesting::NONE, Nesting::TRACED);
        let draw = |nesting| systems(ACCESSES, nesting, Groups::Separate).draw(Philox::new(6, 0), 3).expect("is drawn");
        let (one, other) = (draw(one), draw(other));
        assert_ne!(one, other);
        let times =
            |system: &System| -> Vec<_> { system.tasks().iter().map(|task| (task.period, task.wcet)).collect() };
        assert_eq!(times(&one), times(&other));
    }

    #[test]
    fn groups_have_no_nested_sections() {
        let sharing = Sharing::Resources { resources: 20, probability: 0.2, requests: 3 };
        let draw = |groups| systems(sharing, Nesting::TRACED, groups).draw(Philox::new(2, 0), 0).expect("is drawn");
        let (separate, joined) = (draw(Groups::Separate), draw(Groups::Joined));
        let has_nested = |system: &System| {
            system.task_ids().any(|id| system.sections(id).iter().any(|section| section.parent.is_some()))
        };
        assert!(has_nested(&separate) && !has_nested(&joined));
        assert!(joined.resources().len() < separate.resources().len());
    }

    /// No resource loses more requests than others to the end of a job or to the number of its steps.
    #[test]
    fn requests_that_do_not_fit_are_left_out_at_random() {
        let sharing = Sharing::Resources { resources: 8, probability: 1.0, requests: 1 };
        let utilizations = Utilizations::Sum { by: Division::RandFixedSum, tasks: 30, total: 0.1 };
        let lengths = Lengths::exactly(Duration::from_us(50));
        let systems = |sharing| {
            let sections = Sections { sharing, lengths, nesting: Nesting::NONE, reads: 0.0 };
            Systems::new(1, utilizations.clone(), PERIODS, Some((sections, Groups::Separate)), Fit::Worst)
                .expect("is possible")
        };
        let mut kept = [0_u32; 8];
        for sample in 0..200 {
            let system = systems(sharing).draw(Philox::new(7, 0), sample).expect("is drawn");
            for section in system.task_ids().flat_map(|id| system.sections(id)) {
                kept[section.resource.index()] += 1;
            }
        }
        // Of 6,000 tasks, some have time for all requests and most do not.
        let (least, most) = (kept.iter().min().expect("eight"), kept.iter().max().expect("eight"));
        assert!(*most < 5_000 && *least > 1_000 && most - least < 400, "{kept:?}");
        let many = Sharing::Resources { resources: 256, probability: 1.0, requests: 100 };
        let utilizations = Utilizations::Sum { by: Division::RandFixedSum, tasks: 1, total: 1.0 };
        let sections = Sections {
            sharing: many,
            lengths: Lengths::exactly(Duration::from_us(1)),
            nesting: Nesting::NONE,
            reads: 0.0,
        };
        let many = Systems::new(1, utilizations, PERIODS, Some((sections, Groups::Separate)), Fit::Worst);
        let drawn = many.expect("is possible").draw(Philox::new(7, 0), 0);
        let system = drawn.expect("is drawn");
        let task = system.task_ids().next().expect("there is one");
        let mut resources: Vec<usize> = system.sections(task).iter().map(|section| section.resource.index()).collect();
        assert!((1_000..1_024).contains(&resources.len()), "{}", resources.len());
        resources.sort_unstable();
        resources.dedup();
        assert!(resources.len() > 200, "sections of {} resources of 256", resources.len());
    }

    #[test]
    fn placements_differ() {
        let time = |percent| (Duration::from_ns(100), Duration::from_ns(percent));
        let tasks = [time(55), time(40), time(50), time(30)];
        assert_eq!(place(&tasks, 3, 1, Fit::Worst), [0, 2, 1, 2]);
        assert_eq!(place(&tasks, 3, 1, Fit::First), [0, 0, 1, 1]);
        assert_eq!(place(&tasks, 3, 1, Fit::Best), [0, 0, 1, 1]);
        assert_eq!(place(&[time(55), time(60), time(38)], 2, 1, Fit::First), [1, 0, 0]);
        assert_eq!(place(&[time(55), time(60), time(38)], 2, 1, Fit::Worst), [1, 0, 1]);
        // Overloaded: each on the least loaded processor.
        assert_eq!(place(&[time(90); 3], 2, 1, Fit::First), [0, 1, 0]);
        // Clusters have room for the sum of their processors.
        assert_eq!(place(&tasks, 2, 2, Fit::First), [0, 0, 0, 0]);
        assert_eq!(place(&[time(90); 5], 2, 2, Fit::First), [0, 0, 1, 1, 0]);
    }

    #[test]
    fn clusters_keep_all_but_the_places() {
        let draw = |size| {
            let systems = systems(ACCESSES, Nesting::NONE, Groups::Separate).in_clusters(size);
            systems.draw(Philox::new(8, 0), 5).expect("is drawn")
        };
        let (alone, pairs, all) = (draw(1), draw(2), draw(4));
        assert!(!alone.has_clusters() && alone.scheduler() == Scheduler::PFp);
        let of = |system: &System| -> Vec<u64> { system.tasks().iter().map(|task| system.cluster(task.cpu)).collect() };
        let found = of(&pairs);
        assert!(found.contains(&0b0011) && found.contains(&0b1100), "{found:?}");
        assert!(found.iter().all(|cluster| [0b0011, 0b1100].contains(cluster)), "{found:?}");
        assert!(of(&all).iter().all(|&cluster| cluster == 0b1111));
        let rest = |system: &System| -> Vec<_> {
            system.tasks().iter().map(|task| (task.period, task.wcet, task.priority, task.body.clone())).collect()
        };
        assert_eq!((rest(&alone), rest(&alone)), (rest(&pairs), rest(&all)));
        // Both clusters have about the same load.
        let load = |cpus: [usize; 2]| utilization(&pairs, cpus[0]) + utilization(&pairs, cpus[1]);
        assert!((load([0, 1]) - load([2, 3])).abs() < 0.2);
    }

    #[test]
    fn classes_end_at_their_cap() {
        let up_to = |of, cap, most| Utilizations::UpTo { of, cap, most };
        let systems = |utilizations| Systems::new(2, utilizations, PERIODS, None, Fit::First);
        let drawn = systems(up_to(Utilization::UNIFORM_MEDIUM, 1.2, 100)).expect("is possible");
        let system = drawn.draw(Philox::new(1, 0), 0).expect("is drawn");
        let all = utilization(&system, 0) + utilization(&system, 1);
        assert!((0.8..=1.2).contains(&all) && system.resources().is_empty(), "{all}");
        let empty = systems(up_to(Utilization::UNIFORM_HIGH, 0.4, 100)).expect("is possible");
        assert_eq!(empty.draw(Philox::new(1, 0), 0), Err(Impossible::Tasks { count: 0 }));
        assert!(systems(up_to(Utilization::UNIFORM_LOW, 1.0, 0)).is_err());
        assert!(systems(up_to(Utilization::UNIFORM_LOW, 1.0, 9_000)).is_err());
        let sum = |total| Utilizations::Sum { by: Division::RandFixedSum, tasks: 3, total };
        assert!(systems(sum(3.1)).is_err() && systems(sum(3.0)).is_ok());
    }
}
