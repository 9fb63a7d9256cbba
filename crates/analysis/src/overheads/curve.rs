//! Piecewise linear functions that never decrease.

use super::Fraction;
use crate::Failure;

/// A cost that grows with a quantity for which it was measured at some points. It is linear between two points, and
/// continues so before the first and after the last. It is never negative and never decreases: a point that is lower
/// than the one before it counts as high as that one.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Curve {
    /// Pairs of quantity and cost, in increasing order.
    points: Vec<(u64, u64)>,
}

impl Curve {
    /// Returns a constant cost.
    #[must_use]
    pub fn constant(cost: u64) -> Self {
        Self { points: vec![(0, cost)] }
    }

    /// Returns the curve through these points, each a pair of quantity and cost.
    ///
    /// # Errors
    /// Returns [`Failure::Unsupported`] if the quantities do not increase, with the index of the point as the task.
    pub fn through(points: &[(u64, u64)]) -> Result<Self, Failure> {
        let mut rising: Vec<(u64, u64)> = Vec::with_capacity(points.len());
        for &(x, y) in points {
            let y = match rising.last() {
                Some((before, _)) if *before >= x => {
                    return Err(Failure::Unsupported { task: rising.len(), what: "points are not in order" });
                }
                Some((_, before)) => y.max(*before),
                None => y,
            };
            rising.push((x, y));
        }
        Ok(Self { points: rising })
    }

    /// Returns the cost for `x`.
    #[must_use]
    pub fn at(&self, x: u64) -> Fraction {
        let (from, to) = match self.points[..] {
            [] => return Fraction::default(),
            [(_, y)] => return Fraction::from(y),
            _ => {
                let place = self.points[1..].partition_point(|(end, _)| *end < x).min(self.points.len() - 2);
                (self.points[place], self.points[place + 1])
            }
        };
        let slope = Fraction::new(to.1 - from.1, to.0 - from.0);
        let there = Fraction::from(from.1) + slope * (Fraction::from(x) - Fraction::from(from.0));
        there.max(Fraction::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_never_decreases() {
        let curve = Curve::through(&[(10, 10), (20, 30), (30, 12), (40, 31)]).unwrap();
        let at: Vec<u64> = [0, 4, 10, 15, 25, 30, 40, 50].iter().map(|x| curve.at(*x).ceil().unwrap()).collect();
        assert_eq!(at, [0, 0, 10, 20, 30, 30, 31, 32]);
        assert_eq!(Curve::default().at(7), Fraction::from(0));
        assert_eq!(Curve::constant(3).at(7), Fraction::from(3));
        assert!(matches!(Curve::through(&[(5, 1), (5, 2)]), Err(Failure::Unsupported { task: 1, .. })));
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..200 {
            let mut x = 0;
            let mut next = || {
                x += random.u64(1..9);
                (x, random.u64(..50))
            };
            let points: Vec<(u64, u64)> = (0..5).map(|_| next()).collect();
            let curve = Curve::through(&points).unwrap();
            assert!((0..60).is_sorted_by(|a, b| curve.at(*a) <= curve.at(*b)), "{points:?}");
            assert!(points.iter().all(|(x, y)| curve.at(*x) >= Fraction::from(*y)), "{points:?}");
        }
    }
}
