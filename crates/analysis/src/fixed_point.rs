//! Least fixed points of growing functions of time.

use crate::bound::Unbounded;
use std::cell::Cell;

/// Most terms one analysis evaluates in all its fixed points, and to find what these need of each pair of tasks; more is taken for divergence, which is safe: it only
/// loses a bound. A second or so of computing.
pub(crate) const TERMS_MAX: u64 = 100_000_000;

/// What is left of [`TERMS_MAX`].
#[derive(Debug)]
pub(crate) struct Budget(Cell<u64>);

impl Budget {
    pub(crate) fn new() -> Self {
        Self(Cell::new(TERMS_MAX))
    }

    /// Takes so many terms off it; [`Unbounded::Unsettled`] where there are not so many left, and then none are taken.
    pub(crate) fn spend(&self, terms: u64) -> Result<(), Unbounded> {
        self.0.set(self.0.get().checked_sub(terms).ok_or(Unbounded::Unsettled)?);
        Ok(())
    }

    /// The least `x` with `start <= x <= limit` and `f(x) <= x`, for an `f` of `terms` terms that never falls as `x` grows.
    ///
    /// [`Unbounded::BeyondPeriod`] where there is none up to `limit`, or where `f` overflows; [`Unbounded::Unsettled`] where
    /// the budget is used up. `start` must not exceed the fixed point that is wanted.
    ///
    /// BOUND: the budget.
    pub(crate) fn least(
        &self,
        start: u64,
        limit: u64,
        terms: u64,
        mut f: impl FnMut(u64) -> Option<u64>,
    ) -> Result<u64, Unbounded> {
        let mut x = start;
        while x <= limit {
            self.spend(terms.max(1))?;
            let next = f(x).ok_or(Unbounded::BeyondPeriod)?;
            if next <= x {
                return Ok(x);
            }
            x = next;
        }
        Err(Unbounded::BeyondPeriod)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_fixed_point_is_found() {
        let budget = Budget::new();
        // Response time of C = 3 under interference of C = 2, T = 5.
        assert_eq!(budget.least(3, 100, 1, |x| Some(3 + x.div_ceil(5) * 2)), Ok(5));
        assert_eq!(budget.least(1, 100, 1, |x| Some(x + 1)), Err(Unbounded::BeyondPeriod));
        assert_eq!(budget.least(1, u64::MAX, 1, |x| x.checked_mul(2)), Err(Unbounded::BeyondPeriod));
    }

    #[test]
    fn a_budget_ends() {
        let budget = Budget::new();
        assert_eq!(budget.least(1, u64::MAX, 1_000, |x| Some(x + 1)), Err(Unbounded::Unsettled));
        assert_eq!(budget.least(1, u64::MAX, 1_000, Some), Err(Unbounded::Unsettled), "it was one budget for both");
    }
}
