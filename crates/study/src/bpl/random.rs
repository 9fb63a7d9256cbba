//! Random numbers made from integers alone, so that they are the
//! same on every platform, word size and mathematics library.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

/// At index k, the sum of (ln 2)^i / i! for i from 1 to k + 1, in units of 2^-64. The infinite sum is 1.
const Q: [u64; 17] = [
    0xb172_17f7_d1cf_79ac,
    0xeef1_93f6_d75a_96fd,
    0xfd27_1862_59aa_f6c2,
    0xff9d_6dd0_50f4_c5a7,
    0xfff4_cfcf_ef1e_626c,
    0xfffe_e818_86e1_c62f,
    0xffff_e7fe_850e_0bb6,
    0xffff_fe2a_8731_b17e,
    0xffff_ffdf_ac6e_eadc,
    0xffff_fffd_f964_0068,
    0xffff_ffff_e22e_c79d,
    0xffff_ffff_fe6a_9dee,
    0xffff_ffff_ffeb_ff81,
    0xffff_ffff_ffff_1417,
    0xffff_ffff_ffff_f5cf,
    0xffff_ffff_ffff_ff96,
    0xffff_ffff_ffff_fffc,
];

/// Returns an exponentially distributed number with mean 1, in units of 2^-64.
///
/// # Reference
/// Ahrens and Dieter, Computer methods for sampling from the exponential and normal
/// distributions, CACM 15(10), 1972, algorithm SA. The halvings are counted in the
/// leading zeros of a word; the rest is the minimum of a few uniform numbers.
#[inline]
pub(crate) fn exponential(random: &mut Xoshiro256PlusPlus) -> u128 {
    let mut whole = 0;
    let mut bits = random.next_u64();
    // BOUND: only one word in 2^64 is zero.
    while bits == 0 {
        whole += product(u64::from(u64::BITS), Q[0]);
        bits = random.next_u64();
    }
    let zeros = bits.leading_zeros();
    whole += product(u64::from(zeros), Q[0]);
    // The bits after the zeros and the one that ends them. There are two shifts, because all 64 bits may go.
    let rest = bits << zeros << 1;
    if rest <= Q[0] {
        return whole + u128::from(rest);
    }
    let mut least = random.next_u64();
    for limit in &Q[1..] {
        least = least.min(random.next_u64());
        if rest <= *limit {
            break;
        }
    }
    whole + (product(least, Q[0]) >> 64)
}

/// Returns a uniform number below `end`, made from one word. No
/// number is more likely than another by more than `end` in 2^64.
#[inline]
pub(crate) fn below(random: &mut Xoshiro256PlusPlus, end: u32) -> u32 {
    (product(random.next_u64(), u64::from(end)) >> 64) as u32
}

/// Multiplies two words. The product always fits, and a checked
/// multiplication, which is a call, took longer than everything else.
#[inline]
fn product(one: u64, other: u64) -> u128 {
    u128::from(one).wrapping_mul(u128::from(other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::rand_core::SeedableRng;
    use std::f64::consts::LN_2;

    #[test]
    fn the_table_matches_the_series() {
        let term = |i: u32| (1..=i).map(|k| LN_2 / f64::from(k)).product::<f64>();
        for (k, q) in (0..).zip(Q) {
            // The distance to 1, which a float represents to its last digit, unlike the sum itself.
            let missing: f64 = (k + 2..60).rev().map(term).sum::<f64>() * 2_f64.powi(64);
            let found = q.wrapping_neg() as f64;
            assert!((found - missing).abs() <= 1.0 + missing * 1e-15, "{k}: {found} {missing}");
        }
    }

    #[test]
    fn the_distribution_is_exponential() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        const COUNT: usize = 200_000;
        let mut sample: Vec<f64> = (0..COUNT).map(|_| exponential(&mut random) as f64 / 2_f64.powi(64)).collect();
        sample.sort_by(f64::total_cmp);
        let step = 1.0 / COUNT as f64;
        let distance =
            (0..COUNT).map(|i| (1.0 - (-sample[i]).exp() - (i as f64 + 0.5) * step).abs()).fold(0.0, f64::max);
        // The test of Kolmogorov and Smirnov: one correct sample in a thousand is further away.
        assert!(distance < 1.95 / (COUNT as f64).sqrt(), "{distance}");
        // Negative control: uniform numbers are not exponential.
        let mutant = (0..COUNT).map(|i| ((i as f64 + 0.5) * step - 1.0 + (-2.0 * i as f64 * step).exp()).abs());
        assert!(mutant.fold(0.0, f64::max) > 0.1);
    }

    #[test]
    fn a_seed_gives_one_stream_on_every_platform() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        let drawn: Vec<u64> = (0..4).map(|_| (exponential(&mut random) >> 32) as u64).collect();
        assert_eq!(drawn, [12_420_574_440, 4_363_465_065, 1_923_347_302, 4_348_675_427]);
    }

    #[test]
    fn below_reaches_every_number_below_its_end() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
        let seen = (0..1_000).map(|_| 1_u64 << below(&mut random, 10)).fold(0, |all, one| all | one);
        assert_eq!(seen, (1 << 10) - 1);
    }
}
