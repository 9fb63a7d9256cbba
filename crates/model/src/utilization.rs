//! Sums of utilizations, compared exactly.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Ordering;

/// The number of bits of a fraction's expansion that one step produces.
const BITS: u32 = 64;

/// Compares the sum of `wcet / period` over `these` with the sum over `those`, exactly.
///
/// Every period must be positive, and there must be fewer than 2^32 of them.
///
/// The difference of the sums is written as one fraction for each period. All fractions are expanded together, 64 bits
/// a step, and the remainder of each is kept exactly:
/// ```text
///   difference * 2^(64 t)  =  whole + sum of rest / period,   0 <= rest < period
/// ```
/// So the difference is above 0 if `whole` is, and below 0 if `whole` is at most
/// minus the number of periods. A difference other than 0 is at least 1 / (product
/// of the periods), so one that is still undecided after that many bits is 0.
pub(crate) fn compare(these: impl Iterator<Item = (u64, u64)>, those: impl Iterator<Item = (u64, u64)>) -> Ordering {
    let mut by_period: BTreeMap<u64, i128> = BTreeMap::new();
    for (wcet, period) in these {
        *by_period.entry(period).or_default() += i128::from(wcet);
    }
    for (wcet, period) in those {
        *by_period.entry(period).or_default() -= i128::from(wcet);
    }
    by_period.retain(|_, wcet| *wcet != 0);
    let periods = by_period.len() as i128;
    let mut whole = 0_i128;
    let mut rests: Vec<(u64, u64)> = Vec::with_capacity(by_period.len());
    for (&period, &wcet) in &by_period {
        whole += wcet.div_euclid(i128::from(period));
        rests.push((wcet.rem_euclid(i128::from(period)) as u64, period));
    }
    // Enough for (periods + 1) times the product.
    let product: u32 = rests.iter().map(|(_, period)| u64::BITS - period.leading_zeros()).sum();
    let steps = (product + u32::BITS) / BITS + 1;
    // BOUND: one step for each 64 bits of all periods together, plus a constant.
    for _ in 0..steps {
        if whole > 0 {
            return Ordering::Greater;
        }
        if whole + periods <= 0 && periods > 0 {
            return Ordering::Less;
        }
        if rests.iter().all(|(rest, _)| *rest == 0) {
            return whole.cmp(&0);
        }
        // Here -periods < whole <= 0, so this does not overflow.
        whole <<= BITS;
        for (rest, period) in &mut rests {
            let scaled = u128::from(*rest) << BITS;
            whole += (scaled / u128::from(*period)) as i128;
            *rest = (scaled % u128::from(*period)) as u64;
        }
    }
    if whole > 0 {
        Ordering::Greater
    } else if whole + periods <= 0 && periods > 0 {
        Ordering::Less
    } else {
        Ordering::Equal
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(these: &[(u64, u64)], those: &[(u64, u64)]) -> Ordering {
        compare(these.iter().copied(), those.iter().copied())
    }

    #[test]
    fn equal_sums_are_equal() {
        assert_eq!(of(&[(3, 6)], &[(1, 2)]), Ordering::Equal);
        assert_eq!(of(&[(1, 6), (1, 6), (1, 6)], &[(3, 6)]), Ordering::Equal);
        assert_eq!(of(&[(1, 3), (1, 6)], &[(1, 2)]), Ordering::Equal);
        assert_eq!(of(&[], &[]), Ordering::Equal);
        assert_eq!(of(&[(7, 7)], &[(1, 3), (2, 3)]), Ordering::Equal);
        assert_eq!(of(&[], &[(1, u64::MAX)]), Ordering::Less);
    }

    #[test]
    fn the_smallest_difference_decides() {
        // 1/n - 1/(n + 1), with both near 10^15: about 10^-30.
        let n = 999_999_999_999_989;
        assert_eq!(of(&[(1, n)], &[(1, n + 1)]), Ordering::Greater);
        assert_eq!(of(&[(1, n + 1)], &[(1, n)]), Ordering::Less);
        assert_eq!(of(&[(n, n + 1), (1, n + 1)], &[(n - 1, n), (1, n)]), Ordering::Equal);
        // 1/a - 1/b - 1/c below 2^-64 of a step, negative: a = n, b = n + 1, c = n (n + 1) - 1 where that fits.
        let n = 30_000_000;
        assert_eq!(of(&[(1, n)], &[(1, n + 1), (1, n * (n + 1) - 1)]), Ordering::Less);
        assert_eq!(of(&[(1, n)], &[(1, n + 1), (1, n * (n + 1))]), Ordering::Equal);
        assert_eq!(of(&[(1, n)], &[(1, n + 1), (1, n * (n + 1) + 1)]), Ordering::Greater);
    }

    proptest! {
        // Miri has no files, in which failures would be kept.
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 8 } else { 256 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn agrees_with_a_common_denominator(
            these in prop::collection::vec((0_u64..20, 1_u64..13), 0..6),
            those in prop::collection::vec((0_u64..20, 1_u64..13), 0..6),
        ) {
            const COMMON: u64 = 27_720;
            let sum = |all: &[(u64, u64)]| all.iter().map(|(n, d)| n * (COMMON / d)).sum::<u64>();
            prop_assert_eq!(of(&these, &those), sum(&these).cmp(&sum(&those)));
        }
    }
}
