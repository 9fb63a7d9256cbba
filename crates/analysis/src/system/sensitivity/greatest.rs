//! The search for the greatest amount that settles.

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

    /// Returns the greatest amount with which the deadline that was missed last is met, if all values change linearly
    /// between the two states, given with their amounts.
    fn between(&self, from: (u64, &Self::Settled), to: (u64, &Self::Settled)) -> Option<u64>;

    /// Returns how far the response time of the task whose deadline was missed last is from the deadline, and how long
    /// it is.
    fn left(&self, settled: &Self::Settled) -> Option<(u64, u64)>;

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
        let is_steep = self.is_steep();
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
    fn onward(&self, then: &(u64, Self::Settled), now: &(u64, Self::Settled)) -> Option<u64> {
        let (_, before) = self.left(&then.1)?;
        let (left, response) = self.left(&now.1)?;
        let risen = response.checked_sub(before).filter(|&risen| risen > 0)?;
        let more = u128::from(left) * u128::from(now.0 - then.0) / u128::from(risen);
        now.0.checked_add(u64::try_from(more).ok()?.max(1))
    }
}
