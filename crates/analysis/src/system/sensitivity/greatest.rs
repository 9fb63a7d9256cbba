//! The search for the greatest amounts that settle, and the factors of all parts that follow from it.

use super::crew::Crew;
use super::growth::{FACTOR_MAX, Growth, Sensitivity};
use super::scale::{Part, Scale, users};
use lockwright_model::{Duration, TaskId};
use std::ops::Range;

/// The delays with which execution times are settled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Delays {
    /// Those of the settled system that the search begins at. They are not above its own.
    Known,
    /// Its own, by the protocol's bounds.
    Own,
}

/// Whether the requests of a system are those of the fixed point that its search begins at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Requests {
    Same,
    Other,
}

/// The result for some execution times. If a deadline is missed, the error is a state below the fixed point, if there
/// is one.
pub(super) type Outcome<S> = Result<S, Option<Box<S>>>;

/// How many times longer each step is than the last one in the same direction.
const REACH: u64 = 4;

/// The most rounds of a search without halving the distance.
const TURNS_MAX: u32 = 4;

/// Amounts that differ by this factor differ in magnitude.
const FAR: u64 = 64;

/// A search whose trials settle execution times that never fall as an amount grows.
pub(super) trait Trials {
    /// Execution times at their fixed point, or below it.
    type Settled;

    /// Returns `None` if the search was interrupted.
    fn asked(&self) -> Option<()>;

    /// Returns whether the last deadline is missed by far more than a linear estimate tells, because delays grow with
    /// all response times. Elsewhere, an amount that is too great costs little.
    fn is_steep(&self) -> bool;

    /// Returns the greatest amount with which the deadlines that were missed lately are met, if all values change
    /// linearly between the two states, given with their amounts. It is an estimate.
    fn between(&self, from: (u64, &Self::Settled), to: (u64, &Self::Settled)) -> Option<u64>;

    /// Returns how far the response time of the task whose deadline was missed last is from the deadline, and how long
    /// it is.
    fn left(&self, settled: &Self::Settled) -> Option<(u64, u64)>;

    /// The system and what is charged to it.
    fn scale(&self) -> &Scale<'_>;

    /// The threads that share the search.
    fn crew(&self) -> &Crew;

    /// Returns how much longer a task of the settled system can execute, given how much longer it can execute outside
    /// of its sections.
    fn room_at(&self, settled: &Self::Settled, task: TaskId, room: u64) -> u64;

    /// Settles the system with the execution times of a part multiplied by `permille` / 1000.
    fn settle_scaled(
        &self,
        part: Part,
        permille: u64,
        from: Option<&Self::Settled>,
        delays: Delays,
    ) -> Outcome<Self::Settled>;

    /// Settles the system with the execution times of these tasks divided by 1000, or returns `None` if a deadline is
    /// missed.
    fn settle_shrunk(&self, tasks: &Range<usize>, from: Option<&Self::Settled>) -> Option<Self::Settled>;

    /// Returns all results. `unchanged` is the settled system, if it meets all deadlines; `rooms` returns the rooms of
    /// that many tasks, and `growths` the factors of parts. Returns `None` if the search was interrupted.
    fn whole(
        &self,
        unchanged: Option<Self::Settled>,
        rooms: impl FnOnce(usize, &Self::Settled) -> Option<Vec<u64>>,
        growths: impl FnOnce(&[Part], Option<&Self::Settled>, &[Option<u64>]) -> Option<Vec<Growth>>,
    ) -> Option<Sensitivity> {
        let system = self.scale().system;
        let (tasks, resources) = (system.tasks().len(), system.resources().len());
        let rooms = match &unchanged {
            Some(settled) => rooms(tasks, settled)?.into_iter().map(Some).collect(),
            None => {
                self.crew().add(tasks);
                vec![None; tasks]
            }
        };
        let mut parts = vec![Part::All];
        if unchanged.is_some() {
            parts.extend(system.task_ids().map(Part::Task));
        }
        parts.extend(system.resource_ids().map(Part::Sections));
        let mut found = growths(&parts, unchanged.as_ref(), &rooms)?;
        let of_resources = found.split_off(found.len() - resources);
        let all = found.remove(0);
        if unchanged.is_none() {
            self.shrink(0..tasks, None, &mut found)?;
        }
        let tasks = system.task_ids().zip(found).collect();
        let resources = system.resource_ids().zip(of_resources).collect();
        let tolerated = system.task_ids().zip(rooms).map(|(task, most)| (task, most.map(Duration::from_ns))).collect();
        Some(Sensitivity { all, tasks, resources, tolerated })
    }

    /// Returns the factors of the parts with these indices, or `None` if the search was interrupted.
    fn growths(
        &self,
        parts: &[Part],
        unchanged: Option<&Self::Settled>,
        rooms: &[Option<u64>],
        indices: &mut dyn Iterator<Item = usize>,
    ) -> Option<Vec<(usize, Growth)>> {
        let growth = |index: usize| {
            let growth = self.growth(parts[index], unchanged, rooms)?;
            self.crew().add(1);
            Some((index, growth))
        };
        indices.map(growth).collect()
    }

    /// Returns the factor of a part, or `None` if the search was interrupted.
    fn growth(&self, part: Part, unchanged: Option<&Self::Settled>, rooms: &[Option<u64>]) -> Option<Growth> {
        self.asked()?;
        let scale = self.scale();
        let users = users(scale.system, part);
        if users.is_empty() {
            return Some(Growth::Unlimited);
        }
        let settle = |permille, from: &Self::Settled, delays| self.settle_scaled(part, permille, Some(from), delays);
        let Some(settled) = unchanged else {
            let Ok(least) = self.settle_scaled(part, 1, None, Delays::Own) else { return Some(Growth::Broken) };
            return self.greatest((1, 999), &least, |most| most, settle).map(Growth::Permille);
        };
        let room = |user: TaskId| self.room_at(settled, user, rooms[user.index()].unwrap_or(0));
        let most = users.iter().map(|&user| scale.factor_within(user, part, room(user))).min();
        let most = most.unwrap_or(FACTOR_MAX);
        let found = match part {
            // If only execution outside of sections grows, the room is the limit.
            Part::Task(task) if scale.charged.sections(task).is_empty() => most,
            _ => self.greatest((1000, most), settled, |most| most, settle)?,
        };
        Some(Growth::found(found))
    }

    /// Adds the factors of the given tasks, by id, if the unchanged system misses a deadline; see `forms.rs`. Returns
    /// `None` if the search was interrupted.
    fn shrink(&self, tasks: Range<usize>, from: Option<&Self::Settled>, found: &mut Vec<Growth>) -> Option<()> {
        self.asked()?;
        let Some(settled) = self.settle_shrunk(&tasks, from) else {
            for _ in tasks {
                found.push(Growth::Broken);
                self.crew().add(1);
            }
            return Some(());
        };
        if tasks.len() > 1 {
            let middle = tasks.start + tasks.len() / 2;
            self.shrink(tasks.start..middle, Some(&settled), found)?;
            return self.shrink(middle..tasks.end, Some(&settled), found);
        }
        for task in tasks.map(TaskId::new) {
            let settle = |permille, from: &Self::Settled, delays| {
                self.settle_scaled(Part::Task(task), permille, Some(from), delays)
            };
            let most = self.greatest((1, 999), &settled, |most| most, settle)?;
            found.push(Growth::Permille(most));
            self.crew().add(1);
        }
        Some(())
    }

    /// Returns the greatest amount that settles, between the two given. The first amount settles, at or above
    /// `settled`. Returns `None` if the search was interrupted.
    ///
    /// Amounts that do not settle with lower delays need no other delays. `guess` returns the amount that is tried next
    /// from the greatest other amount.
    fn greatest(
        &self,
        (holding, most): (u64, u64),
        settled: &Self::Settled,
        guess: impl FnOnce(u64) -> u64,
        settle: impl Fn(u64, &Self::Settled, Delays) -> Outcome<Self::Settled>,
    ) -> Option<u64> {
        let most = self.search((holding, most), most, settled, |amount, from| settle(amount, from, Delays::Known))?;
        self.search((holding, most), guess(most), settled, |amount, from| settle(amount, from, Delays::Own))
    }

    /// Returns the greatest amount that settles, between the two given. The first amount settles, at or above
    /// `settled`. Returns `None` if the search was interrupted. The amount `first` is tried first.
    fn search(
        &self,
        (mut holding, most): (u64, u64),
        first: u64,
        settled: &Self::Settled,
        settle: impl Fn(u64, &Self::Settled) -> Outcome<Self::Settled>,
    ) -> Option<u64> {
        let (mut tried, mut breaking) = (first.max(holding.saturating_add(1)).min(most), most.saturating_add(1));
        // A lower point with its amount, and the last outcome with a missed deadline.
        let mut below: Option<(u64, Self::Settled)> = None;
        let mut before: Option<(u64, Self::Settled)> = None;
        let mut broken: Option<(u64, Box<Self::Settled>)> = None;
        let (is_steep, begun) = (self.is_steep(), holding);
        // How many times the step is as long as the estimate, and whether the last amount settled.
        let (mut reach, mut last) = (1_u64, None);
        let (mut turn, mut distance) = (0, breaking - holding);
        // BOUND: the distance halves at least once in TURNS_MAX rounds.
        while breaking - holding > 1 {
            self.asked()?;
            let from = below.as_ref().map_or(settled, |(_, below)| below);
            let settles = match settle(tried, from) {
                Ok(found) => {
                    holding = tried;
                    before = below.replace((tried, found));
                    true
                }
                Err(found) => {
                    breaking = tried;
                    broken = found.map(|found| (tried, found)).or(broken);
                    false
                }
            };
            if breaking - holding <= 1 {
                break;
            }
            turn += 1;
            if breaking - holding <= distance / 2 {
                (turn, distance) = (0, breaking - holding);
            }
            // An estimate that was wrong in the same direction is wrong by more.
            let is_first = last.is_none();
            let again = last.replace(settles) == Some(settles);
            reach = if again && is_steep { reach.saturating_mul(REACH) } else { 1 };
            let near = || {
                if is_first && settles {
                    // The amount tried first may be the greatest.
                    return Some(holding + 1);
                }
                if is_steep
                    && settles
                    && let Some((now, below)) = &below
                {
                    let (then, before) = before.as_ref().map_or((begun, settled), |(then, before)| (*then, before));
                    let next = self.onward((then, before), (*now, below)).filter(|&next| next < breaking);
                    if next.is_some() {
                        return next;
                    }
                }
                if broken.is_none() && settles {
                    return holding
                        .checked_add((holding / 8).max(1).checked_mul(reach)?)
                        .filter(|&next| next < breaking);
                }
                let (at, from) = below.as_ref().map_or((None, settled), |(at, below)| (Some(*at), below));
                let (end, to) = broken.as_ref()?;
                let least = at.unwrap_or(0).min(holding);
                let near = self.between((least, from), (*end, to))?;
                let near = near.clamp(holding + 1, breaking - 1);
                let next = match settles {
                    true => holding.checked_add((near - holding).saturating_mul(reach))?,
                    false => breaking.checked_sub((breaking - near).saturating_mul(reach))?,
                };
                (next > holding && next < breaking).then_some(next)
            };
            let middle = match holding > 0 && breaking / holding >= FAR {
                // Halfway in magnitude.
                true => (holding as f64 * breaking as f64).sqrt() as u64,
                false => holding + (breaking - holding) / 2,
            };
            tried = if turn < TURNS_MAX { near().unwrap_or(middle) } else { middle };
        }
        Some(holding)
    }

    /// Returns the amount, above the second one given, with which the deadline that was missed last is met, if the
    /// response time grows as it did between two amounts that settle.
    fn onward(&self, then: (u64, &Self::Settled), now: (u64, &Self::Settled)) -> Option<u64> {
        let (_, before) = self.left(then.1)?;
        let (left, response) = self.left(now.1)?;
        let risen = response.checked_sub(before).filter(|&risen| risen > 0)?;
        let more = u128::from(left) * u128::from(now.0 - then.0) / u128::from(risen);
        now.0.checked_add(u64::try_from(more).ok()?.max(1))
    }
}
