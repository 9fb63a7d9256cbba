//! Piecewise linear functions that never fall.

use super::Fraction;
use crate::Failure;

/// A cost that grows with something that was measured at some points: straight between two of them, and on beyond the first and last. Never
/// below 0, never falling: a point below the one before it counts as that high.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Curve {
    /// Where, how much; in order.
    points: Vec<(u64, u64)>,
}

impl Curve {
    /// Always the same; 0 by default.
    #[must_use]
    pub fn constant(cost: u64) -> Self {
        Self { points: vec![(0, cost)] }
    }

    /// Through points, each `(where, cost)`.
    ///
    /// # Errors
    /// [`Failure::Unsupported`] where a point is not beyond the one before it: its place, as the task.
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

    /// The cost there.
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
    fn it_never_falls() {
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
