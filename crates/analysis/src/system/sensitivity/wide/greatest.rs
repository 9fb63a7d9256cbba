//! The search for the greatest amount that settles.

use super::{Delays, Outcome, Search, Settled};

/// How many times longer each step is than the last one in the same direction.
const REACH: u64 = 4;

/// The most rounds of a search without halving the distance.
const TURNS_MAX: u32 = 4;

/// Amounts that differ by this factor differ in magnitude.
const FAR: u64 = 64;

impl Search<'_> {
    /// Returns the greatest amount that settles, between the two given. The first amount settles, at or above
    /// `settled`. Returns `None` if the search was interrupted.
    ///
    /// Amounts that do not settle with lower delays need no other delays. `guess` returns the amount that is tried next
    /// from the greatest other amount.
    pub(super) fn greatest(
        &self,
        (holding, most): (u64, u64),
        settled: &Settled,
        guess: impl FnOnce(u64) -> u64,
        settle: impl Fn(u64, &Settled, Delays) -> Outcome,
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
        settled: &Settled,
        settle: impl Fn(u64, &Settled) -> Outcome,
    ) -> Option<u64> {
        let (mut tried, mut breaking) = (first.max(holding.saturating_add(1)).min(most), most.saturating_add(1));
        // A lower point with its amount, and the last outcome with a missed deadline.
        let mut below: Option<(u64, Settled)> = None;
        let mut before: Option<(u64, Settled)> = None;
        let mut broken: Option<(u64, Box<Settled>)> = None;
        // Where bounds grow with all execution, the last deadline is missed by far more than a linear estimate tells.
        // Elsewhere, an amount that is too great costs little.
        let is_steep = self.depends_on_execution();
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
            let again = last.replace(settles) == Some(settles);
            reach = if again && is_steep { reach.saturating_mul(REACH) } else { 1 };
            let near = || {
                if is_steep
                    && settles
                    && let (Some(then), Some(now)) = (&before, &below)
                {
                    let next = self.onward(then, now).filter(|&next| next < breaking);
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
                let near = self.shape.between((least, &from.form, &from.point), (*end, &to.form, &to.point))?;
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
    fn onward(&self, then: &(u64, Settled), now: &(u64, Settled)) -> Option<u64> {
        let place = self.shape.critical.get();
        let response = |settled: &Settled| settled.form.costs[place] + settled.point.beside[place];
        let left = self.shape.deadlines[place].checked_sub(response(&now.1))?;
        let risen = response(&now.1).checked_sub(response(&then.1)).filter(|&risen| risen > 0)?;
        let more = u128::from(left) * u128::from(now.0 - then.0) / u128::from(risen);
        now.0.checked_add(u64::try_from(more).ok()?.max(1))
    }
}
