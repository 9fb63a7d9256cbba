//! Exact fractions.

use crate::Failure;
use num_rational::BigRational;
use std::ops::{Add, Div, Mul, Sub};

/// An exact fraction.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Fraction(BigRational);

impl Fraction {
    /// Returns `n / d`. `d` must be above 0.
    pub(crate) fn new(n: u64, d: u64) -> Self {
        Self(BigRational::new(n.into(), d.max(1).into()))
    }

    pub(crate) fn is_positive(&self) -> bool {
        *self > Self::default()
    }

    /// Returns the least integer that is at least as large.
    ///
    /// # Errors
    /// Returns [`Failure::Overflow`] if that integer is negative or does not fit.
    pub fn ceil(&self) -> Result<u64, Failure> {
        u64::try_from(self.0.ceil().to_integer()).map_err(|_| Failure::Overflow)
    }

    /// Returns the greatest integer that is at most as large.
    ///
    /// # Errors
    /// Returns [`Failure::Overflow`] if that integer is negative or does not fit.
    pub fn floor(&self) -> Result<u64, Failure> {
        u64::try_from(self.0.floor().to_integer()).map_err(|_| Failure::Overflow)
    }

    /// Returns an approximation for display.
    #[must_use]
    pub fn to_f64(&self) -> f64 {
        const SCALE: u64 = 1 << 53;
        let whole = self.0.floor();
        let rest = (&self.0 - &whole) * BigRational::from_integer(SCALE.into());
        let rest = u64::try_from(rest.to_integer()).unwrap_or(0) as f64 / SCALE as f64;
        i128::try_from(whole.to_integer()).map_or(f64::NAN, |whole| whole as f64 + rest)
    }
}

impl Default for Fraction {
    fn default() -> Self {
        Self::from(0)
    }
}

impl From<u64> for Fraction {
    fn from(whole: u64) -> Self {
        Self(BigRational::from_integer(whole.into()))
    }
}

/// A function that multiplies by a fraction, adds another one, and rounds up. Neither is negative.
pub(crate) struct Rising {
    /// Both have one denominator, and need not be in lowest terms.
    slope: BigRational,
    offset: BigRational,
}

impl Rising {
    pub(crate) fn new(slope: &Fraction, offset: &Fraction) -> Self {
        let (slope, offset) = (&slope.0, &offset.0);
        let raised = offset * BigRational::from_integer(slope.denom().clone());
        if raised.is_integer() {
            let offset = BigRational::new_raw(raised.to_integer(), slope.denom().clone());
            return Self { slope: slope.clone(), offset };
        }
        let denominator = slope.denom() * offset.denom();
        Self {
            slope: BigRational::new_raw(slope.numer() * offset.denom(), denominator.clone()),
            offset: BigRational::new_raw(offset.numer() * slope.denom(), denominator),
        }
    }

    /// Returns the value, or `None` if it does not fit.
    pub(crate) fn at(&self, whole: u64) -> Option<u64> {
        let numerator = self.slope.numer() * whole + self.offset.numer();
        let value = BigRational::new_raw(numerator, self.slope.denom().clone()).ceil();
        u64::try_from(value.to_integer()).ok()
    }
}

macro_rules! operator {
    ($operator:ident, $function:ident) => {
        impl $operator for Fraction {
            type Output = Self;
            fn $function(self, other: Self) -> Self {
                Self(self.0.$function(other.0))
            }
        }
        impl $operator<&Fraction> for &Fraction {
            type Output = Fraction;
            fn $function(self, other: &Fraction) -> Fraction {
                Fraction((&self.0).$function(&other.0))
            }
        }
    };
}

operator!(Add, add);
operator!(Sub, sub);
operator!(Mul, mul);
operator!(Div, div);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rising_function_rounds_up() {
        for (slope, offset) in [((3, 2), (1, 2)), ((7, 6), (5, 9)), ((1, 1), (0, 1)), ((5, 4), (3, 1))] {
            let (slope, offset) = (Fraction::new(slope.0, slope.1), Fraction::new(offset.0, offset.1));
            let rising = Rising::new(&slope, &offset);
            for whole in 0..50 {
                let known = (&slope * &Fraction::from(whole) + offset.clone()).ceil();
                assert_eq!(rising.at(whole), known.ok(), "{slope:?}, {offset:?}, {whole}");
            }
        }
        let steep = Rising::new(&Fraction::from(2), &Fraction::from(0));
        assert_eq!((steep.at(u64::MAX), steep.at(5)), (None, Some(10)));
    }

    #[test]
    fn ceil_and_floor_round_to_integers() {
        let two_thirds = Fraction::new(2, 3);
        assert_eq!((two_thirds.floor(), two_thirds.ceil()), (Ok(0), Ok(1)));
        assert!((two_thirds.to_f64() - 2.0 / 3.0).abs() < 1e-15);
        let below = Fraction::from(1) - Fraction::new(5, 3);
        assert_eq!(below.floor(), Err(Failure::Overflow));
        assert!((below.to_f64() + 2.0 / 3.0).abs() < 1e-15);
        assert!(!below.is_positive() && two_thirds.is_positive() && !Fraction::default().is_positive());
        assert_eq!((Fraction::from(u64::MAX) + Fraction::from(1)).ceil(), Err(Failure::Overflow));
    }
}
