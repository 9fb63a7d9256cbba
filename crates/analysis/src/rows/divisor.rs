//! Repeated division by the same number, with two multiplications each.

/// Numbers below this are short.
pub(crate) const SHORT: u64 = 1 << 32;

/// A divisor above 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Divisor {
    value: u64,
    /// `floor((2^64 - 1) / value)`, which is less than 2^64 / value by at most 1.
    inverse: u64,
}

impl Divisor {
    /// Returns `None` for 0.
    pub(crate) fn new(value: u64) -> Option<Self> {
        u64::MAX.checked_div(value).map(|inverse| Self { value, inverse })
    }

    #[inline]
    pub(crate) fn get(self) -> u64 {
        self.value
    }

    /// Returns `floor((2^64 - 1) / value)`.
    pub(crate) fn inverse(self) -> u64 {
        self.inverse
    }

    /// Returns `x / value` rounded down, or one less, and the corresponding remainder.
    #[inline]
    fn near(self, x: u64) -> (u64, u64) {
        // x * inverse / 2^64 is above x / value - 1 and at most x / value.
        let near = ((u128::from(x) * u128::from(self.inverse)) >> 64) as u64;
        (near, x.wrapping_sub(near.wrapping_mul(self.value)))
    }

    /// Returns `x / value`, rounded down.
    #[inline]
    pub(crate) fn floor(self, x: u64) -> u64 {
        let (near, rest) = self.near(x);
        near.wrapping_add(u64::from(rest >= self.value))
    }

    /// Returns `x / value`, rounded down, if both are below [`SHORT`] and the value is above 1. The rounded-up inverse
    /// is then exact enough.
    #[inline]
    pub(crate) fn floor_short(self, x: u64) -> u64 {
        ((u128::from(x) * u128::from(self.inverse.wrapping_add(1))) >> 64) as u64
    }

    /// Returns `x / value`, rounded up.
    #[inline]
    pub(crate) fn ceil(self, x: u64) -> u64 {
        let (near, rest) = self.near(x);
        near.wrapping_add(u64::from(rest > 0)).wrapping_add(u64::from(rest > self.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_divides() {
        assert!(Divisor::new(0).is_none());
        let mut random = fastrand::Rng::with_seed(1);
        let edges = [1, 2, 3, 5, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 63, (1 << 63) + 1, u64::MAX - 1, u64::MAX];
        for round in 0..200_000 {
            let mut pick = |round: usize| match round % 3 {
                0 => edges[random.usize(..edges.len())],
                1 => random.u64(..) >> random.u32(0..64),
                _ => random.u64(1..1_000),
            };
            let (x, value) = (pick(round), pick(round / 3).max(1));
            let divisor = Divisor::new(value).unwrap();
            for x in [x, x.wrapping_add(1), x.wrapping_mul(value), x.wrapping_mul(value).wrapping_sub(1), 0] {
                assert_eq!(divisor.floor(x), x / value, "{x} / {value}");
                if value > 1 && value < SHORT {
                    assert_eq!(divisor.floor_short(x % SHORT), x % SHORT / value, "{x} / {value}");
                }
                assert_eq!(divisor.ceil(x), x.div_ceil(value), "{x} / {value}");
            }
        }
    }
}
