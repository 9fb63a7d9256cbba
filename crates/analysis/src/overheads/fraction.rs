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
