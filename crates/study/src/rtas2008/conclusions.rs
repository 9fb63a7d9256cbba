//! The conclusions of the paper as checks: each holds or does not hold for the results of a study.
//!
//! The paper words its conclusions; the thresholds here are ours. They were fixed before the first run and not changed
//! since.

use super::cell::{Cell, METHODS};
use super::figures::Inset;
use super::sets::Distribution;
use super::study::Study;
use super::tables::{Demand, Object, WORKING_SET};
use crate::experiment::Tally;

/// The least share that counts as "nearly all".
const NEARLY_ALL: f64 = 0.95;
/// The least share that counts as "quite good".
const QUITE_GOOD: f64 = 0.75;
/// The greatest mean share that counts as "very poor".
const VERY_POOR: f64 = 0.5;
/// The greatest mean difference of shares of curves that are alike.
const ALIKE: f64 = 0.15;
/// The least loss of background jobs that counts as one.
const HURTS: f64 = 0.05;
/// The greatest ratio of tardiness bounds that are about the same.
const ABOUT: f64 = 1.01;

/// A conclusion of the paper.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Conclusion {
    /// The number: C1 to C15.
    pub number: &'static str,
    /// The statement.
    pub statement: &'static str,
    /// Whether it holds; `None` if the study does not have the figures that show it, or has judged a part of them.
    pub holds: Option<bool>,
    /// The numbers behind the verdict, or what is missing.
    pub evidence: String,
}

/// Returns all conclusions. `tallies` has those of each cell in turn, with six methods.
#[must_use]
pub fn conclusions(study: &Study, tallies: &[Tally]) -> Vec<Conclusion> {
    let results = Results { study, tallies };
    let four = Locks { results, processors: 4, working_set: WORKING_SET };
    let all = [
        ("C1", "HRT, low utilizations: nearly all sets with short resources are schedulable (1a)", four.low()),
        ("C2", "short resources are never worse than long ones (1a to 1f)", four.short_first()),
        ("C3", "HRT: no curve rises with the section length (1a to 1c)", four.falling()),
        ("C4", "HRT: P-EDF with long resources is very poor unless utilizations are high (1a, 1b)", four.poor()),
        ("C5", "SRT: G-EDF with short resources is best (1d to 1f)", four.best()),
        ("C6", "SRT: G-EDF with long resources is quite good, at low utilizations up to 5 µs (1d to 1f)", four.good()),
        ("C7", "tardiness with short resources is at most that with long ones (1g to 1i)", four.tardiness()),
        ("C8", "the curves of P-EDF are alike in HRT and SRT (1a to 1f)", four.alike()),
        ("C9", "buffers: wait-free is at most spinning, and about lock-free (3b, 3c)", results.buffers()),
        ("C10", "heaps, low and medium: wait-free is below lock-free (3d, 3e)", results.heaps_lock_free()),
        ("C11", "heaps: spinning is at most about wait-free (3d to 3f)", results.heaps_spinning()),
        ("C12", "SRT with objects: sets are unschedulable only in 3c, 3d and 3f (4)", results.unschedulable()),
        ("C13", "suspending is never preferable to spinning (all figures with locks)", results.never_suspend()),
        (
            "C14",
            "spinning takes time from background jobs from 20, 40 and 60 % with 1, 2 and 4 resources, suspending does not (2)",
            results.background(),
        ),
        (
            "C15",
            "C1, C2, C3, C5 and C7 also hold on 16 processors and with larger working sets (14 to 16, 21 to 48)",
            results.elsewhere(),
        ),
    ];
    all.into_iter()
        .map(|(number, statement, found)| {
            let (holds, evidence) = match found {
                Ok((holds, evidence)) => (Some(holds), evidence),
                Err(missing) => (None, missing),
            };
            Conclusion { number, statement, holds, evidence }
        })
        .collect()
}

/// A verdict with its numbers, or what is missing for one.
type Found = Result<(bool, String), String>;

/// The points of curves, or what is missing of them.
type Points<'a> = Result<Vec<(&'a Cell, &'a [Tally])>, String>;

/// What is missing if no figure has the points.
fn not_here<T>() -> Result<T, String> {
    Err("not in these figures".into())
}

/// The methods of cells with locks.
const SHORT_LONG: [(usize, usize); 2] = [(0, 1), (2, 3)];
const G_SHORT: usize = 0;
const G_LONG: usize = 1;
const P_LONG: usize = 3;
/// The methods of cells with objects under global EDF.
const SPIN: usize = 0;
const LOCK_FREE: usize = 1;
const WAIT_FREE: usize = 2;

const UNIFORM: [Distribution; 3] = [Distribution::UniformLow, Distribution::UniformMedium, Distribution::UniformHigh];

#[derive(Clone, Copy)]
struct Results<'a> {
    study: &'a Study,
    tallies: &'a [Tally],
}

impl<'a> Results<'a> {
    /// The tallies of the methods of each cell that is wanted, from left to right on its curve. They are missing unless
    /// all samples of each are judged.
    fn cells(self, wanted: impl Fn(&Cell) -> bool) -> Points<'a> {
        let all = self.study.cells.iter().zip(self.tallies.chunks(METHODS));
        let points: Vec<_> = all.filter(|(cell, _)| wanted(cell)).collect();
        let complete = points.iter().filter(|(_, tallies)| tallies[0].samples == self.study.samples).count();
        match points.len() {
            0 => not_here(),
            all if complete < all => Err(format!("incomplete: {complete} of {all} points are judged")),
            _ => Ok(points),
        }
    }

    /// The objects of figures 3 and 4: the points of all these curves.
    fn objects(self, object: Object, distributions: &[Distribution]) -> Points<'a> {
        let mut all = Vec::new();
        for &distribution in distributions {
            all.extend(self.cells(|cell| {
                let Cell::Tests { parameters: of, object: Some(found), working_set: WORKING_SET } = cell else {
                    return false;
                };
                *found == object
                    && (of.processors, of.degree, of.demand) == (4, 1, Demand::Soft)
                    && of.distribution == distribution
            })?);
        }
        Ok(all)
    }

    /// Compares the mean tardiness under two methods at every point: whether `one` is at most `factor` times that of
    /// `other`. A method that accepts nothing is worse than one that accepts some.
    fn compare(points: &[(&Cell, &[Tally])], one: usize, other: usize, factor: f64) -> (usize, f64) {
        let (mut wrong, mut greatest) = (0, 0.0_f64);
        for (_, tallies) in points {
            match (tallies[one].mean_bound(), tallies[other].mean_bound()) {
                (Some(one), Some(other)) => {
                    wrong += usize::from(one > other * factor);
                    greatest = greatest.max(one / other);
                }
                (None, Some(_)) => wrong += 1,
                _ => {}
            }
        }
        (wrong, greatest)
    }

    fn buffers(self) -> Found {
        let points = self.objects(Object::Buffer, &UNIFORM[1..])?;
        let (above, ratio) = Self::compare(&points, WAIT_FREE, SPIN, 1.0);
        let (worse, lock_free) = Self::compare(&points, LOCK_FREE, WAIT_FREE, ABOUT);
        let (better, wait_free) = Self::compare(&points, WAIT_FREE, LOCK_FREE, ABOUT);
        let text = format!(
            "wait-free above spinning at {above} of {} points (ratio up to {ratio:.5}); lock-free up to {lock_free:.5} of wait-free, and wait-free up to {wait_free:.5} of lock-free",
            points.len()
        );
        Ok((above + worse + better == 0, text))
    }

    fn heaps_lock_free(self) -> Found {
        let points = self.objects(Object::Heap, &UNIFORM[..2])?;
        let (wrong, ratio) = Self::compare(&points, WAIT_FREE, LOCK_FREE, 1.0);
        let text = format!("wait-free above lock-free at {wrong} of {} points (ratio up to {ratio:.5})", points.len());
        Ok((wrong == 0, text))
    }

    fn heaps_spinning(self) -> Found {
        let points = self.objects(Object::Heap, &UNIFORM)?;
        let (wrong, ratio) = Self::compare(&points, SPIN, WAIT_FREE, ABOUT);
        let text = format!("spinning up to {ratio:.5} of wait-free; above at {wrong} of {} points", points.len());
        Ok((wrong == 0, text))
    }

    fn unschedulable(self) -> Found {
        let (mut full, mut others) = (Vec::new(), Vec::new());
        for object in [Object::Buffer, Object::Heap] {
            for distribution in UNIFORM {
                let points = self.objects(object, &[distribution])?;
                let is_full = points.iter().all(|(cell, tallies)| {
                    let methods = cell.methods().len();
                    tallies[..methods].iter().all(|tally| tally.accepted == tally.samples)
                });
                let expected = matches!(
                    (object, distribution),
                    (Object::Buffer, Distribution::UniformHigh)
                        | (Object::Heap, Distribution::UniformLow | Distribution::UniformHigh)
                );
                let name = format!("{} {}", object.name(), distribution.name());
                match (is_full, expected) {
                    (true, true) => full.push(name),
                    (false, false) => others.push(name),
                    _ => {}
                }
            }
        }
        let list = |names: &[String]| if names.is_empty() { "none".into() } else { names.join(", ") };
        let text = format!("unschedulable elsewhere: {}; all schedulable there: {}", list(&others), list(&full));
        Ok((others.is_empty() && full.is_empty(), text))
    }

    fn never_suspend(self) -> Found {
        let points = self.cells(|cell| matches!(cell, Cell::Tests { object: None, .. }))?;
        let wrong = |(short, long): (usize, usize)| {
            points.iter().filter(|(_, tallies)| tallies[long].accepted > tallies[short].accepted).count()
        };
        let wrong: usize = SHORT_LONG.into_iter().map(wrong).sum();
        let is_soft = |cell: &Cell| matches!(cell, Cell::Tests { parameters, .. } if parameters.demand == Demand::Soft);
        let soft: Vec<_> = points.iter().copied().filter(|(cell, _)| is_soft(cell)).collect();
        let (late, _) = Self::compare(&soft, G_SHORT, G_LONG, 1.0);
        let text = format!(
            "more sets with long resources at {wrong} of {} points, lower tardiness at {late} of {}",
            2 * points.len(),
            soft.len()
        );
        Ok((wrong + late == 0, text))
    }

    fn background(self) -> Found {
        let points = self.cells(|cell| matches!(cell, Cell::Background { .. }))?;
        let left = |percent: u32, method: usize| {
            let point = points.iter().find(|(cell, _)| Inset::place(cell) == percent);
            let left = point.and_then(|(_, tallies)| tallies[method].mean_bound());
            left.map_or_else(not_here, |left| Ok(left / 1e6))
        };
        let all = left(0, SPIN)?;
        let (mut holds, mut text) = (true, Vec::new());
        for (method, from) in [20, 40, 60].into_iter().enumerate() {
            let (before, after) = (1.0 - left(from - 10, method)? / all, 1.0 - left(from + 10, method)? / all);
            holds &= before < HURTS && after >= HURTS;
            text.push(format!(
                "{:.1} % and {:.1} % at {} and {} %",
                before * 100.0,
                after * 100.0,
                from - 10,
                from + 10
            ));
        }
        let suspended = points.iter().flat_map(|(_, tallies)| &tallies[3..]).filter_map(Tally::mean_bound);
        let least = suspended.fold(f64::MAX, f64::min) / 1e6;
        holds &= 1.0 - least / all < HURTS;
        Ok((holds, format!("spinning takes {}; suspending leaves at least {least:.2} processors", text.join(", "))))
    }

    fn elsewhere(self) -> Found {
        let others = [(16, WORKING_SET), (4, 32), (16, 32), (4, 64), (16, 64)];
        let place = |(processors, working_set)| {
            let locks = Locks { results: self, processors, working_set };
            let parts = [
                ("C1", locks.low()?),
                ("C2", locks.short_first()?),
                ("C3", locks.falling()?),
                ("C5", locks.best()?),
                ("C7", locks.tardiness()?),
            ];
            let wrong: Vec<String> = parts
                .iter()
                .filter(|(_, (holds, _))| !holds)
                .map(|(number, (_, text))| format!("{number} does not hold ({text})"))
                .collect();
            Ok::<_, String>((wrong.is_empty(), if wrong.is_empty() { "all hold".into() } else { wrong.join(", ") }))
        };
        let found = others.map(place);
        if let Some(Err(missing)) = found.first().filter(|_| found.iter().all(Result::is_err)) {
            return Err(missing.clone());
        }
        let (mut holds, mut is_whole, mut texts) = (true, true, Vec::new());
        for ((processors, working_set), found) in others.into_iter().zip(found) {
            is_whole &= found.is_ok();
            let text = match found {
                Ok((all, text)) => {
                    holds &= all;
                    text
                }
                Err(missing) => missing,
            };
            texts.push(format!("m = {processors}, {working_set} KiB: {text}"));
        }
        // One counterexample refutes it; only all places show it.
        if is_whole || !holds { Ok((holds, texts.join("; "))) } else { Err(texts.join("; ")) }
    }
}

/// The cells of figure 1, or the same on more processors or with larger working sets.
#[derive(Clone, Copy)]
struct Locks<'a> {
    results: Results<'a>,
    processors: u16,
    /// In KiB.
    working_set: u32,
}

impl<'a> Locks<'a> {
    /// The points of one curve.
    fn points(self, demand: Demand, distribution: Distribution) -> Points<'a> {
        self.results.cells(|cell| {
            let Cell::Tests { parameters: of, object: None, working_set } = *cell else { return false };
            (of.processors, working_set) == (self.processors, self.working_set)
                && (of.degree, of.demand, of.distribution) == (1, demand, distribution)
        })
    }

    /// The points of all curves of the demands.
    fn all(self, demands: &[Demand]) -> Points<'a> {
        let mut all = Vec::new();
        for &demand in demands {
            for distribution in UNIFORM {
                all.extend(self.points(demand, distribution)?);
            }
        }
        Ok(all)
    }

    fn low(self) -> Found {
        let points = self.points(Demand::Hard, Distribution::UniformLow)?;
        let least =
            |method: usize| points.iter().filter_map(|(_, tallies)| tallies[method].share()).fold(1.0, f64::min);
        let (global, partitioned) = (least(SHORT_LONG[0].0), least(SHORT_LONG[1].0));
        Ok((
            global.min(partitioned) >= NEARLY_ALL,
            format!("at least {global:.2} under G-EDF and {partitioned:.2} under P-EDF"),
        ))
    }

    fn short_first(self) -> Found {
        let points = self.all(&[Demand::Hard, Demand::Soft])?;
        let wrong = |(short, long): (usize, usize)| {
            points.iter().filter(|(_, tallies)| tallies[long].accepted > tallies[short].accepted).count()
        };
        let [global, partitioned] = SHORT_LONG.map(wrong);
        let text =
            format!("long ahead at {global} of {} points under G-EDF and {partitioned} under P-EDF", points.len());
        Ok((global + partitioned == 0, text))
    }

    fn falling(self) -> Found {
        let (mut rises, mut curves) = (0, 0);
        for distribution in UNIFORM {
            let points = self.points(Demand::Hard, distribution)?;
            for method in 0..4 {
                curves += 1;
                let intervals: Vec<(f64, f64)> =
                    points.iter().filter_map(|(_, tallies)| tallies[method].interval()).collect();
                let rise =
                    |(place, (low, _)): (usize, &(f64, f64))| intervals[..place].iter().any(|(_, high)| low > high);
                rises += usize::from(intervals.iter().enumerate().any(rise));
            }
        }
        Ok((rises == 0, format!("{rises} of {curves} curves rise beyond their 95 % intervals")))
    }

    /// The mean share of a method over a curve.
    fn mean(self, demand: Demand, distribution: Distribution, method: usize) -> Result<f64, String> {
        let points = self.points(demand, distribution)?;
        let shares = points.iter().filter_map(|(_, tallies)| tallies[method].share());
        Ok(shares.sum::<f64>() / points.len() as f64)
    }

    fn poor(self) -> Found {
        let [low, medium, high] = UNIFORM.map(|distribution| self.mean(Demand::Hard, distribution, P_LONG));
        let (low, medium, high) = (low?, medium?, high?);
        let text = format!("mean share {low:.2} at low, {medium:.2} at medium and {high:.2} at high utilizations");
        Ok((low <= VERY_POOR && medium <= VERY_POOR && high > low.max(medium), text))
    }

    fn best(self) -> Found {
        let points = self.all(&[Demand::Soft])?;
        let wrong = points
            .iter()
            .filter(|(_, tallies)| tallies[1..4].iter().any(|other| other.accepted > tallies[G_SHORT].accepted));
        let wrong = wrong.count();
        Ok((wrong == 0, format!("another method ahead at {wrong} of {} points", points.len())))
    }

    fn good(self) -> Found {
        let least = |distribution, until: u32| {
            let points = self.points(Demand::Soft, distribution)?;
            let left = points.iter().filter(|(cell, _)| Inset::place(cell) <= until);
            Ok::<_, String>(left.filter_map(|(_, tallies)| tallies[G_LONG].share()).fold(1.0, f64::min))
        };
        let low = least(Distribution::UniformLow, 5)?;
        let medium = least(Distribution::UniformMedium, u32::MAX)?;
        let high = least(Distribution::UniformHigh, u32::MAX)?;
        let text =
            format!("at least {low:.2} at low (up to 5 µs), {medium:.2} at medium, {high:.2} at high utilizations");
        Ok((low.min(medium).min(high) >= QUITE_GOOD, text))
    }

    fn tardiness(self) -> Found {
        let points = self.all(&[Demand::Soft])?;
        let (wrong, ratio) = Results::compare(&points, G_SHORT, G_LONG, 1.0);
        let text = format!("short above long at {wrong} of {} points (ratio up to {ratio:.5})", points.len());
        Ok((wrong == 0, text))
    }

    fn alike(self) -> Found {
        let mut worst = 0.0_f64;
        for distribution in UNIFORM {
            let (hard, soft) = (self.points(Demand::Hard, distribution)?, self.points(Demand::Soft, distribution)?);
            for method in [2, 3] {
                let apart = hard
                    .iter()
                    .zip(&soft)
                    .filter_map(|((_, hard), (_, soft))| Some((hard[method].share()? - soft[method].share()?).abs()));
                worst = worst.max(apart.sum::<f64>() / hard.len() as f64);
            }
        }
        Ok((worst <= ALIKE, format!("mean difference of the shares up to {worst:.2}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::rtas2008::{Machine, Switches};

    /// Results of all methods for which every conclusion holds that they can show.
    fn ideal(study: &Study) -> Vec<Tally> {
        let tally = |accepted: u64, bound: u64| Tally {
            samples: 50,
            accepted,
            utilization: 100,
            utilization_accepted: 2 * accepted,
            bound: bound * accepted,
        };
        let of = |cell: &Cell| -> [Tally; 6] {
            let (parameters, object) = match cell {
                Cell::Tests { parameters, object, .. } => (parameters, object),
                Cell::Background { share } => {
                    let loss = |from: u32| 3_000_000 - 10_000 * u64::from(share.saturating_sub(from));
                    let spin = [10, 30, 50].map(|from| tally(50, loss(from)));
                    return [
                        spin[0],
                        spin[1],
                        spin[2],
                        tally(50, 3_000_000),
                        tally(50, 3_000_000),
                        tally(50, 3_000_000),
                    ];
                }
            };
            let is = |of: Distribution| parameters.distribution == of;
            match *object {
                None => {
                    let poor = if is(Distribution::UniformHigh) { 45 } else { 10 };
                    [tally(50, 1_000), tally(45, 2_000), tally(49, 0), tally(poor, 0), tally(0, 0), tally(0, 0)]
                }
                Some(object) => {
                    let some = is(Distribution::UniformHigh) || object == Object::Heap && is(Distribution::UniformLow);
                    let accepted = if some { 40 } else { 50 };
                    let bounds = if object == Object::Buffer { [1_000, 990, 990] } else { [900, 1_100, 1_000] };
                    let [spin, lock_free, wait_free] = bounds.map(|bound| tally(accepted, bound));
                    [spin, lock_free, wait_free, tally(accepted, 0), tally(accepted, 0), tally(accepted, 0)]
                }
            }
        };
        study.cells.iter().flat_map(of).collect()
    }

    /// Figures that show every conclusion.
    const ALL: [u32; 19] = [1, 2, 3, 4, 14, 15, 16, 21, 22, 23, 28, 29, 30, 35, 36, 37, 42, 43, 44];

    fn study(numbers: &[u32]) -> Study {
        Study::new(numbers, Switches::default(), Machine::published(), 1, 50)
    }

    fn verdict(study: &Study, tallies: &[Tally], number: &str) -> Option<bool> {
        conclusions(study, tallies).into_iter().find(|one| one.number == number).expect("is listed").holds
    }

    /// Each conclusion holds for ideal results, and is refuted by a mutant of them.
    #[test]
    fn each_conclusion_can_be_refuted() {
        let study = study(&ALL);
        let ideal = ideal(&study);
        assert_eq!(ideal.len(), study.cells() * study.methods());
        for conclusion in conclusions(&study, &ideal) {
            assert_eq!(conclusion.holds, Some(true), "{conclusion:?}");
        }
        let lock_with = |kib, processors, demand, distribution, section| {
            let wanted = |cell: &&Cell| {
                let Cell::Tests { parameters: of, object: None, working_set } = cell else { return false };
                (of.processors, of.degree, of.section, of.demand) == (processors, 1, section, demand)
                    && *working_set == kib
                    && of.distribution == distribution
            };
            let cell = study.cells.iter().find(wanted).expect("is in the figures");
            study.cell(cell).expect("is in the study") * 6
        };
        let lock = |processors, demand, distribution, section| lock_with(4, processors, demand, distribution, section);
        let object = |object, distribution| {
            let wanted = |cell: &&Cell| {
                let Cell::Tests { parameters, object: Some(found), .. } = cell else { return false };
                *found == object && parameters.distribution == distribution
            };
            study.cell(study.cells.iter().find(wanted).expect("is in the figures")).expect("is in the study") * 6
        };
        use Demand::{Hard, Soft};
        use Distribution::{UniformHigh as High, UniformLow as Low, UniformMedium as Medium};
        // What to change, and the share or the bound that it gets.
        let accepted = |at: usize, accepted: u64| {
            let mut mutant = ideal.clone();
            mutant[at].bound = mutant[at].mean_bound().unwrap_or(0.0) as u64 * accepted;
            mutant[at].accepted = accepted;
            mutant
        };
        let bound = |at: usize, bound: u64| {
            let mut mutant = ideal.clone();
            mutant[at].bound = bound * mutant[at].accepted;
            mutant
        };
        let mut very_good = ideal.clone();
        (1..=14).for_each(|section| very_good[lock(4, Hard, Medium, section) + 3].accepted = 48);
        let mut unlike = ideal.clone();
        (1..=14).for_each(|section| unlike[lock(4, Soft, Medium, section) + 3].accepted = 30);
        for (number, mutant) in [
            ("C1", accepted(lock(4, Hard, Low, 14), 40)),
            ("C2", accepted(lock(4, Hard, High, 3) + 1, 51)),
            ("C3", accepted(lock(4, Hard, Medium, 2) + 3, 0)),
            ("C4", very_good),
            ("C5", accepted(lock(4, Soft, Medium, 7), 48)),
            ("C6", accepted(lock(4, Soft, Low, 5) + 1, 30)),
            ("C7", bound(lock(4, Soft, Low, 5), 2_001)),
            ("C8", unlike),
            ("C9", bound(object(Object::Buffer, Medium) + 2, 1_001)),
            ("C9", bound(object(Object::Buffer, High) + 1, 1_010)),
            ("C9", bound(object(Object::Buffer, High) + 1, 970)),
            ("C10", bound(object(Object::Heap, Medium) + 2, 1_101)),
            ("C11", bound(object(Object::Heap, High), 1_020)),
            ("C12", accepted(object(Object::Buffer, Low) + 4, 49)),
            ("C13", accepted(lock(16, Soft, Low, 9) + 1, 51)),
            ("C14", bound(study.cell(&Cell::Background { share: 30 }).expect("is in figure 2") * 6 + 1, 2_800_000)),
            ("C14", bound(study.cell(&Cell::Background { share: 90 }).expect("is in figure 2") * 6 + 4, 2_800_000)),
            ("C15", accepted(lock(16, Hard, Low, 9), 30)),
            ("C15", accepted(lock_with(64, 4, Hard, Low, 9), 30)),
        ] {
            assert_eq!(verdict(&study, &mutant, number), Some(false), "{number}");
        }
    }

    #[test]
    fn missing_figures_have_no_verdict() {
        let study = study(&[1]);
        let tallies = ideal(&study);
        let known: Vec<&str> = conclusions(&study, &tallies)
            .into_iter()
            .filter_map(|conclusion| conclusion.holds.map(|_| conclusion.number))
            .collect();
        assert_eq!(known, ["C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8", "C13"]);
        // Objects of one distribution do not show what is said about several, nor is one place all of them.
        let parts = self::study(&[50, 14, 15, 16]);
        for number in ["C9", "C10", "C11", "C12", "C15"] {
            assert_eq!(verdict(&parts, &ideal(&parts), number), None, "{number}");
        }
        let elsewhere = conclusions(&parts, &ideal(&parts)).pop().expect("is listed").evidence;
        assert!(elsewhere.contains("m = 16, 4 KiB: all hold; m = 4, 32 KiB: not in these figures"), "{elsewhere}");
        let unjudged = vec![Tally::default(); tallies.len()];
        assert!(conclusions(&study, &unjudged).iter().all(|conclusion| conclusion.holds.is_none()));
    }

    /// Neither a point that is missing nor a point with fewer sets than the study has is evidence.
    #[test]
    fn an_interrupted_study_shows_nothing() {
        let study = study(&ALL);
        let ideal = ideal(&study);
        let interrupted = |keep: &dyn Fn(usize) -> bool, few: Tally| -> Vec<Tally> {
            let cells = ideal.chunks(METHODS).enumerate();
            cells.flat_map(|(cell, of)| if keep(cell) { of.to_vec() } else { vec![few; METHODS] }).collect()
        };
        let one = Tally { samples: 49, accepted: 49, ..ideal[0] };
        for few in [Tally::default(), one] {
            // Of each curve some points are missing.
            for conclusion in conclusions(&study, &interrupted(&|cell| cell % 5 > 0, few)) {
                assert_eq!(conclusion.holds, None, "{conclusion:?}");
                assert!(conclusion.evidence.contains("incomplete: "), "{conclusion:?}");
            }
        }
        assert!(conclusions(&study, &interrupted(&|_| true, one)).iter().all(|one| one.holds == Some(true)));
    }
}
