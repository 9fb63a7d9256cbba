//! Distances between samples and distributions, for tests.

/// Returns the distance of Kolmogorov and Smirnov between a sample and a distribution: the greatest difference of the
/// two distribution functions.
pub(super) fn distance(sample: &[f64], distribution: impl Fn(f64) -> f64) -> f64 {
    let mut sample = sample.to_vec();
    sample.sort_by(f64::total_cmp);
    let step = 1.0 / sample.len() as f64;
    let at = |(index, &x): (usize, &f64)| {
        let expected = distribution(x);
        (expected - index as f64 * step).abs().max((expected - (index + 1) as f64 * step).abs())
    };
    sample.iter().enumerate().map(at).fold(0.0, f64::max)
}

/// Returns the distance that one correct sample of this size in a thousand exceeds.
pub(super) fn limit(count: usize) -> f64 {
    // The quantile of Kolmogorov's distribution: the square root of ln(2 / 0.001) / 2.
    1.949 / (count as f64).sqrt()
}

/// Returns the distance between two samples, as a share of the distance that one correct pair in a thousand exceeds.
pub(super) fn distance_of_two(one: &[f64], other: &[f64]) -> f64 {
    let mut sorted = other.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = |x: f64| sorted.partition_point(|&y| y <= x) as f64 / sorted.len() as f64;
    let (n, m) = (one.len() as f64, other.len() as f64);
    distance(one, count) / (1.949 * ((n + m) / (n * m)).sqrt())
}
