//! Exact comparison of a sum of fractions with an integer.
//!
//! Integers below and above each fraction decide almost always. If the bound lies between the two sums, exact fractions
//! decide.

use num_rational::BigRational;
use std::cmp::Ordering;

/// The number of fractional bits of the fast sums.
const BITS: u32 = 32;

/// Compares the sum of `n / d` with `bound`. Each `d` must be above 0.
pub(crate) fn compare_sum(fractions: impl Iterator<Item = (u64, u64)> + Clone, bound: u64) -> Ordering {
    let (mut below, mut count): (u128, u128) = (0, 0);
    for (n, d) in fractions.clone() {
        below += if n >> BITS == 0 { u128::from((n << BITS) / d) } else { (u128::from(n) << BITS) / u128::from(d) };
        count += 1;
    }
    let bound_scaled = u128::from(bound) << BITS;
    // Each term was rounded down by less than one.
    if below > bound_scaled {
        Ordering::Greater
    } else if below + count < bound_scaled {
        Ordering::Less
    } else {
        let sum: BigRational = fractions.map(|(n, d)| BigRational::new(n.into(), d.into())).sum();
        sum.cmp(&BigRational::from_integer(bound.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_compared_exactly() {
        let thirds = [(1, 3), (1, 3), (1, 3)];
        assert_eq!(compare_sum(thirds.iter().copied(), 1), Ordering::Equal);
        let big = u64::MAX;
        assert_eq!(compare_sum([(big - 1, big)].iter().copied(), 1), Ordering::Less);
        assert_eq!(compare_sum([(big, big - 1)].iter().copied(), 1), Ordering::Greater);
        assert_eq!(compare_sum([(1, 3), (2, 3), (1, u64::MAX)].iter().copied(), 1), Ordering::Greater);
        assert_eq!(compare_sum([(7, 2)].iter().copied(), 3), Ordering::Greater);
        assert_eq!(compare_sum(std::iter::empty(), 0), Ordering::Equal);
    }
}
