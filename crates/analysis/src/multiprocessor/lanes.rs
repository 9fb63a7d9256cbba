//! Small numbers of several tasks at once: loops over blocks become the machine's vector instructions.

use super::tables::Arrivals;

/// Numbers in a block.
pub(crate) const LANES: usize = 8;

/// More jobs than that are counted as so many.
pub(crate) const JOBS_MAX: u32 = 128;

/// Times are below it.
pub(crate) const SMALL: u64 = 1 << 31;

/// Most requests one job issues, so that those of [`JOBS_MAX`] jobs fit.
pub(crate) const ISSUED_MAX: u64 = 127;

/// Appends for each interval of `times` how many jobs it meets, at most [`JOBS_MAX`].
///
/// The period d is multiplied by its reciprocal: with 2^(k-1) < d <= 2^k and s = 31 + k, m = floor((2^s - 1) / d) + 1 is above 2^s / d by less
/// than 1, or as much, and m a / 2^s above a / d by at most a / 2^s, less than 1 / d, for a below 2^31. And m is below 2^32.
#[inline]
pub(crate) fn jobs(arrivals: Arrivals, times: &[[u32; LANES]], into: &mut Vec<Counts>) {
    let k = 64 - (arrivals.period.get() - 1).leading_zeros();
    let s = 31 + k;
    let multiplier = ((arrivals.period.inverse() >> (64 - s)) as u32).wrapping_add(1);
    let carry = arrivals.carry as u32;
    into.extend(times.iter().map(|times| {
        let mut quotients = [0_i32; LANES];
        for (quotient, time) in quotients.iter_mut().zip(times) {
            let a = time.wrapping_add(carry);
            *quotient = (((u64::from(a) * u64::from(multiplier)) >> s) as i32).min(JOBS_MAX as i32);
        }
        quotients.map(|quotient| quotient as i16)
    }));
}

/// Numbers of requests, or jobs.
pub(crate) type Counts = [i16; LANES];

/// Adds them up.
#[inline]
pub(crate) fn sum(a: Counts, b: Counts) -> Counts {
    each(|lane| a[lane].wrapping_add(b[lane]))
}

/// The lesser of each two.
#[inline]
pub(crate) fn least(a: Counts, b: Counts) -> Counts {
    each(|lane| a[lane].min(b[lane]))
}

/// How many requests so many `jobs` make with `count` in each, at most `most`.
#[inline]
pub(crate) fn taken(jobs: Counts, count: i16, most: Counts) -> Counts {
    each(|lane| jobs[lane].wrapping_mul(count).min(most[lane]))
}

/// Adds `length` for each of `taken`, none of which are negative.
#[inline]
pub(crate) fn add_lengths(lengths: &mut [u32; LANES], taken: Counts, length: u32) {
    let mut sums = *lengths;
    for (sum, taken) in sums.iter_mut().zip(taken) {
        *sum = sum.wrapping_add(u32::from(taken as u16).wrapping_mul(length));
    }
    *lengths = sums;
}

#[inline]
fn each(of: impl Fn(usize) -> i16) -> Counts {
    let mut all = [0; LANES];
    for (lane, number) in all.iter_mut().enumerate() {
        *number = of(lane);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::divisor::Divisor;

    #[test]
    fn jobs_are_counted_as_by_division() {
        let mut random = fastrand::Rng::with_seed(1);
        let edges = |x: u64| [x.saturating_sub(1), x, x + 1];
        for shift in 0..31 {
            let all = edges(1 << shift).into_iter().chain((0..50).map(|_| random.u64(1..SMALL) >> shift));
            for period in all.filter(|period| (1..SMALL).contains(period)).collect::<Vec<_>>() {
                let carry = random.u64(..SMALL) >> random.u32(..31);
                let arrivals = Arrivals { period: Divisor::new(period).unwrap(), carry };
                let times = || random.u64(..SMALL - carry) >> random.u32(..31);
                let mut all: Vec<u64> = std::iter::repeat_with(times).take(50).collect();
                let jobs_max = u64::from(JOBS_MAX);
                for jobs in (1..20).chain([jobs_max - 1, jobs_max, jobs_max + 1, SMALL / period]) {
                    all.extend(edges(period * jobs).map(|a| a.saturating_sub(carry)));
                }
                all.push(SMALL - 1 - carry);
                for t in all.into_iter().filter(|t| t + carry < SMALL) {
                    let mut found = Vec::new();
                    jobs(arrivals, &[[t as u32; LANES]], &mut found);
                    assert_eq!(
                        found,
                        [[((t + carry) / period).min(jobs_max) as i16; LANES]],
                        "{t} + {carry}, {period}"
                    );
                }
            }
        }
    }
}
