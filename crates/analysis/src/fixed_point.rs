//! Least fixed points of growing functions of time.

/// Most evaluations of one fixed point; more is taken for divergence, which is safe: it only loses a bound.
pub(crate) const STEPS_MAX: u32 = 100_000;

/// The least `x` with `start <= x <= limit` and `f(x) <= x`, for an `f` that never falls as `x` grows.
///
/// `None` where there is none up to `limit`, where `f` overflows, or after [`STEPS_MAX`] evaluations. `start`
/// must not exceed the fixed point that is wanted.
///
/// BOUND: [`STEPS_MAX`] evaluations.
pub(crate) fn least(start: u64, limit: u64, mut f: impl FnMut(u64) -> Option<u64>) -> Option<u64> {
    let mut x = start;
    for _ in 0..STEPS_MAX {
        if x > limit {
            return None;
        }
        let next = f(x)?;
        if next <= x {
            return Some(x);
        }
        x = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_fixed_point_is_found() {
        // Response time of C = 3 under interference of C = 2, T = 5.
        assert_eq!(least(3, 100, |x| Some(3 + x.div_ceil(5) * 2)), Some(5));
        assert_eq!(least(1, 100, |x| Some(x + 1)), None);
        assert_eq!(least(1, u64::MAX, |x| x.checked_mul(2)), None);
        assert_eq!(least(1, u64::MAX, |x| Some(x + 1)), None);
    }
}
