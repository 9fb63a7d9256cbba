//! Least fixed points of monotonic functions of time.

use crate::rows::bound::Unbounded;
use std::cell::Cell;

/// The most terms that one analysis evaluates, in all its fixed points and to prepare their pairs of tasks. This is
/// about a second of computing. An analysis that needs more counts as divergent, which is safe: it then has no bound.
pub(crate) const TERMS_MAX: u64 = 100_000_000;

/// The part of [`TERMS_MAX`] that is left.
#[derive(Debug)]
pub(crate) struct Budget(Cell<u64>);

impl Budget {
    pub(crate) fn new() -> Self {
        Self(Cell::new(TERMS_MAX))
    }

    /// Subtracts `terms` from the budget. Returns [`Unbounded::Unsettled`] and subtracts nothing if fewer are left.
    pub(crate) fn spend(&self, terms: u64) -> Result<(), Unbounded> {
        self.0.set(self.0.get().checked_sub(terms).ok_or(Unbounded::Unsettled)?);
        Ok(())
    }

    /// Returns the least `x` with `start <= x <= limit` and `f(x) <= x`, for a function `f` of `terms` terms that never
    /// decreases as `x` grows.
    ///
    /// Returns [`Unbounded::BeyondPeriod`] if there is none up to `limit`, or if `f` overflows, and
    /// [`Unbounded::Unsettled`] if the budget is used up. `start` must not exceed the least fixed point.
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
        // The response time of a task with C = 3 under interference of a task with C = 2 and T = 5.
        assert_eq!(budget.least(3, 100, 1, |x| Some(3 + x.div_ceil(5) * 2)), Ok(5));
        assert_eq!(budget.least(1, 100, 1, |x| Some(x + 1)), Err(Unbounded::BeyondPeriod));
        assert_eq!(budget.least(1, u64::MAX, 1, |x| x.checked_mul(2)), Err(Unbounded::BeyondPeriod));
    }

    #[test]
    fn a_budget_ends() {
        let budget = Budget::new();
        assert_eq!(budget.least(1, u64::MAX, 1_000, |x| Some(x + 1)), Err(Unbounded::Unsettled));
        assert_eq!(budget.least(1, u64::MAX, 1_000, Some), Err(Unbounded::Unsettled), "both searches share one budget");
    }
}
