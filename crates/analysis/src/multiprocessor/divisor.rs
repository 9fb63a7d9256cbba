//! Division by a number that stays the same, exactly, without the machine's division.

/// Dividends below it are short.
pub(crate) const SHORT: u64 = 1 << 32;

/// What to divide by, and its reciprocal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Divisor {
    by: u64,
    /// `floor((2^64 - 1) / by)`: short of `2^64 / by` by at most one.
    reciprocal: u64,
}

impl Divisor {
    /// `by` is above 0.
    pub(crate) fn new(by: u64) -> Self {
        Self { by, reciprocal: u64::MAX / by.max(1) }
    }

    pub(crate) fn by(self) -> u64 {
        self.by
    }

    /// `floor(a / by)`.
    ///
    /// The product's upper half is that or one less, as the reciprocal lacks at most 1 and `a` is below 2^64.
    #[inline]
    pub(crate) fn floor(self, a: u64) -> u64 {
        let guess = ((u128::from(a) * u128::from(self.reciprocal)) >> 64) as u64;
        guess.wrapping_add(u64::from(a.wrapping_sub(guess.wrapping_mul(self.by)) >= self.by))
    }

    /// `floor(a / by)` where both are below 2^32, and `by` above 1: the reciprocal rounded up is then exact enough.
    #[inline]
    pub(crate) fn floor_short(self, a: u64) -> u64 {
        ((u128::from(a) * u128::from(self.reciprocal.wrapping_add(1))) >> 64) as u64
    }

    /// Whether [`Divisor::floor_short`] does for dividends below 2^32.
    pub(crate) fn is_short(self) -> bool {
        self.by > 1 && self.by < SHORT
    }

    /// `ceil(a / by)`, for an `a` that leaves room to add `by`.
    #[inline]
    pub(crate) fn ceil(self, a: u64) -> u64 {
        self.floor(a.wrapping_add(self.by.wrapping_sub(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_divides_as_the_machine_does() {
        let edges = |x: u64| [x.saturating_sub(2), x.saturating_sub(1), x, x.saturating_add(1), x.saturating_add(2)];
        let mut random = fastrand::Rng::with_seed(1);
        for shift in 0..64 {
            for by in edges(1 << shift).into_iter().chain([random.u64(..) >> shift]).filter(|by| *by > 0) {
                let divisor = Divisor::new(by);
                let times = random.u64(..=u64::MAX / by);
                let dividends = edges(by * times).into_iter().chain(edges(u64::MAX)).chain(edges(by));
                for a in dividends.chain((0..200).map(|_| random.u64(..) >> random.u32(..64))) {
                    assert_eq!(divisor.floor(a), a / by, "{a} / {by}");
                    if divisor.is_short() {
                        assert_eq!(divisor.floor_short(a % SHORT), a % SHORT / by, "{a} / {by}");
                    }
                    if a.checked_add(by).is_some() {
                        assert_eq!(divisor.ceil(a), a.div_ceil(by), "{a} / {by}");
                    }
                }
            }
        }
    }
}
