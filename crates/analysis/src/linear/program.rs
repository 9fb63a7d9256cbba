//! Linear programs, and bounds on their optima that do not depend on floating-point numbers.
//!
//! A program maximizes c x subject to A x <= b and 0 <= x <= u. All numbers are integers, and c, b and u are not
//! negative. For any y >= 0 and any feasible x, `c x <= y b + sum over j of u_j * max(0, c_j - (y A)_j)`: this is weak
//! duality, with the bounds of the variables as constraints of their own. Every y therefore gives a valid bound, and
//! the optimum of the dual gives the best one. A solver proposes y in floating point. The proposal is rounded to a
//! fraction, and the right side is computed in integers. Whatever the solver returns, the bound is safe; only its
//! tightness depends on the solver.

use crate::Failure;
use microlp::{ComparisonOp, OptimizationDirection, Problem, SolveOutcome};
use std::time::Duration;

/// The denominator of dual values. It is a multiple of all numbers up to 12, so that the values in programs for few
/// processors are exact.
const DENOMINATOR: i128 = 27_720 << 15;

/// The most time that the solver may take for one program. A shorter search costs only tightness.
pub(super) const SOLVER_TIME_MAX: Duration = Duration::from_secs(10);

/// A linear program.
#[derive(Clone, Default, Debug)]
pub(super) struct Program {
    /// c and u, by variable.
    variables: Vec<(u64, u64)>,
    /// The rows of A, by variable, and b.
    rows: Vec<(Vec<(usize, i64)>, u64)>,
}

/// A bound, as a fraction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bound {
    pub numerator: i128,
    pub denominator: i128,
}

impl Program {
    /// Adds a variable with its weight and upper bound. Returns its number.
    pub fn variable(&mut self, weight: u64, most: u64) -> usize {
        self.variables.push((weight, most));
        self.variables.len() - 1
    }

    /// Adds a constraint: the sum of the terms is at most `most`. Each variable must occur at most once.
    pub fn at_most(&mut self, terms: Vec<(usize, i64)>, most: u64) {
        // A limit on single variables needs no row.
        if most == 0 && terms.iter().all(|&(_, factor)| factor >= 0) {
            terms.iter().filter(|term| term.1 > 0).for_each(|&(variable, _)| self.variables[variable].1 = 0);
        } else if let [(variable, 1)] = terms[..] {
            self.variables[variable].1 = most.min(self.variables[variable].1);
        } else if terms.iter().any(|&(_, factor)| factor > 0) {
            self.rows.push((terms, most));
        }
    }

    /// Returns a bound near the optimum.
    ///
    /// # Errors
    /// Returns [`Failure::Overflow`] if a number does not fit.
    pub fn bound(&self) -> Result<Bound, Failure> {
        let proposed = self.propose().unwrap_or_else(|| vec![0.0; self.rows.len()]);
        let dual: Vec<i128> = proposed.iter().map(|&y| round(y)).collect();
        self.bound_by(&dual).or_else(|_| self.bound_by(&vec![0; self.rows.len()]))
    }

    /// Returns the bound for dual values, which are in units of 1/[`DENOMINATOR`].
    fn bound_by(&self, dual: &[i128]) -> Result<Bound, Failure> {
        let mut reduced = Vec::with_capacity(self.variables.len());
        for &(weight, _) in &self.variables {
            reduced.push(i128::from(weight).checked_mul(DENOMINATOR).ok_or(Failure::Overflow)?);
        }
        let mut numerator = 0_i128;
        let mut add = |a: i128, b: i128| -> Option<()> {
            numerator = numerator.checked_add(a.checked_mul(b)?)?;
            Some(())
        };
        for ((terms, most), &y) in self.rows.iter().zip(dual) {
            add(y, (*most).into()).ok_or(Failure::Overflow)?;
            for &(variable, factor) in terms {
                let part = y.checked_mul(factor.into()).ok_or(Failure::Overflow)?;
                reduced[variable] = reduced[variable].checked_sub(part).ok_or(Failure::Overflow)?;
            }
        }
        for (&(_, most), &reduced) in self.variables.iter().zip(&reduced) {
            add(reduced.max(0), most.into()).ok_or(Failure::Overflow)?;
        }
        Ok(Bound { numerator, denominator: DENOMINATOR })
    }

    /// Returns near-optimal dual values, one for each row, or `None` if the solver gives up.
    fn propose(&self) -> Option<Vec<f64>> {
        let mut problem = Problem::new(OptimizationDirection::Minimize);
        problem.set_time_limit(SOLVER_TIME_MAX);
        // Rows are scaled for the solver. The values of y are not.
        let mut columns: Vec<Vec<(usize, f64)>> = vec![Vec::new(); self.variables.len()];
        for (row, (terms, _)) in self.rows.iter().enumerate() {
            for &(variable, factor) in terms {
                columns[variable].push((row, factor as f64));
            }
        }
        let greatest =
            |column: &[(usize, f64)]| column.iter().fold(1.0, |most: f64, (_, factor)| most.max(factor.abs()));
        let scales: Vec<f64> = columns.iter().map(|column| greatest(column)).collect();
        let excess = self.variables.iter().zip(&scales).map(|(&(_, most), scale)| most as f64 * scale);
        let prices: Vec<f64> = self.rows.iter().map(|&(_, most)| most as f64).chain(excess).collect();
        let unit = prices.iter().fold(1.0, |most: f64, &price| most.max(price));
        let values: Vec<_> = prices.iter().map(|price| problem.add_var(price / unit, (0.0, f64::INFINITY))).collect();
        for (variable, (column, scale)) in columns.into_iter().zip(scales).enumerate() {
            // A variable that is 0 does not constrain the dual.
            if self.variables[variable].1 == 0 {
                continue;
            }
            let terms = column.into_iter().map(|(row, factor)| (values[row], factor / scale));
            let excess = std::iter::once((values[self.rows.len() + variable], 1.0));
            let weight = self.variables[variable].0 as f64 / scale;
            problem.add_constraint(terms.chain(excess), ComparisonOp::Ge, weight);
        }
        match problem.solve().ok()? {
            SolveOutcome::Solution(solution) => {
                Some(values[..self.rows.len()].iter().map(|&value| solution.var_value(value)).collect())
            }
            SolveOutcome::Interrupted(_) => None,
        }
    }
}

/// Rounds a value to units of 1/[`DENOMINATOR`]. A negative value or NaN becomes 0. Great values are capped, which is
/// safe.
fn round(value: f64) -> i128 {
    const MOST: f64 = (1_u64 << 40) as f64;
    if value > 0.0 { (value.min(MOST) * DENOMINATOR as f64).round() as i128 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(rng: &mut fastrand::Rng) -> Program {
        let mut program = Program::default();
        for _ in 0..rng.usize(1..5) {
            program.variable(rng.u64(0..9), rng.u64(0..5));
        }
        for _ in 0..rng.usize(0..5) {
            let terms = (0..program.variables.len()).map(|variable| (variable, rng.i64(-2..4))).collect();
            program.at_most(terms, rng.u64(0..12));
        }
        program
    }

    /// Returns the value of the best integer point, by exhaustive search.
    fn best(program: &Program) -> u64 {
        let mut best = 0;
        let mut point = vec![0; program.variables.len()];
        loop {
            let holds = program.rows.iter().all(|(terms, most)| {
                terms.iter().map(|&(variable, factor)| factor * point[variable] as i64).sum::<i64>() <= *most as i64
            });
            if holds {
                best = best.max(program.variables.iter().zip(&point).map(|(&(weight, _), &at)| weight * at).sum());
            }
            let Some(next) = (0..point.len()).find(|&j| point[j] < program.variables[j].1) else { return best };
            point[..next].fill(0);
            point[next] += 1;
        }
    }

    #[test]
    fn no_dual_values_give_less_than_the_best_point() {
        let mut rng = fastrand::Rng::with_seed(1);
        for _ in 0..3_000 {
            let program = random(&mut rng);
            let best = i128::from(best(&program)) * DENOMINATOR;
            let near = program.bound().unwrap();
            assert!(near.numerator >= best);
            // The solver may be wrong: slightly perturbed values, and arbitrary ones.
            for _ in 0..5 {
                let proposed = program.propose().unwrap();
                let off: Vec<i128> = proposed.iter().map(|&y| round(y + (rng.f64() - 0.5) * 0.1)).collect();
                assert!(program.bound_by(&off).unwrap().numerator >= best);
                let any: Vec<i128> = proposed.iter().map(|_| round(rng.f64() * 10.0)).collect();
                assert!(program.bound_by(&any).unwrap().numerator >= best);
            }
        }
    }

    #[test]
    fn negative_dual_values_would_give_less() {
        // The mutant: weak duality requires y >= 0.
        let mut program = Program::default();
        let (x, y) = (program.variable(1, 1), program.variable(1, 1));
        program.at_most(vec![(x, 1), (y, 1)], 1);
        program.at_most(vec![(x, 1), (y, 1)], 9);
        assert_eq!(best(&program), 1);
        assert_eq!(program.bound_by(&[DENOMINATOR, 0]).unwrap().numerator, DENOMINATOR);
        assert!(program.bound_by(&[0, -DENOMINATOR]).unwrap().numerator < DENOMINATOR);
        assert_eq!(round(-1.0), 0);
        assert_eq!(round(f64::NAN), 0);
    }

    #[test]
    fn an_integral_program_is_solved_exactly() {
        // Intervals: integer points are optimal, so the bound equals the best of them.
        let mut rng = fastrand::Rng::with_seed(2);
        for _ in 0..1_000 {
            let mut program = Program::default();
            let n = rng.usize(1..5);
            for _ in 0..n {
                program.variable(rng.u64(0..9), rng.u64(0..5));
            }
            for _ in 0..rng.usize(0..5) {
                let from = rng.usize(0..n);
                let terms = (from..rng.usize(from..n) + 1).map(|variable| (variable, 1)).collect();
                program.at_most(terms, rng.u64(0..12));
            }
            let bound = program.bound().unwrap();
            assert_eq!(bound.numerator, i128::from(best(&program)) * bound.denominator);
        }
    }
}
