//! A linear program, solved by a foreign solver in floats. It
//! is precise enough for a comparison to the nearest integer.

use microlp::{ComparisonOp, OptimizationDirection, Problem, SolveOutcome, Variable};
use std::collections::BTreeMap;

pub(super) struct Program(Problem);

impl Program {
    pub(super) fn new() -> Self {
        Self(Problem::new(OptimizationDirection::Maximize))
    }

    /// Adds a variable from 0 to `most`.
    pub(super) fn variable(&mut self, weight: u64, most: u64) -> Variable {
        self.0.add_var(weight as f64, (0.0, most as f64))
    }

    /// Adds a constraint: the sum of the terms is at most `most`.
    pub(super) fn at_most(&mut self, terms: impl IntoIterator<Item = (Variable, u64)>, most: u64) {
        self.at_most_beside(terms, [], most);
    }

    /// Adds a constraint: the sum of the terms is at most that of `others` plus `most`.
    pub(super) fn at_most_beside(
        &mut self,
        terms: impl IntoIterator<Item = (Variable, u64)>,
        others: impl IntoIterator<Item = (Variable, u64)>,
        most: u64,
    ) {
        // A variable may be on both sides.
        let mut factors: BTreeMap<usize, (Variable, f64)> = BTreeMap::new();
        let left = terms.into_iter().map(|(variable, factor)| (variable, factor as f64));
        let right = others.into_iter().map(|(variable, factor)| (variable, -(factor as f64)));
        for (variable, factor) in left.chain(right) {
            factors.entry(variable.idx()).or_insert((variable, 0.0)).1 += factor;
        }
        let terms: Vec<_> = factors.into_values().collect();
        if !terms.is_empty() {
            self.0.add_constraint(&terms, ComparisonOp::Le, most as f64);
        }
    }

    /// Returns the optimum, to the nearest integer, or `None` if the solver finds none.
    pub(super) fn optimum(&self) -> Option<u64> {
        Some(self.value()?.round() as u64)
    }

    /// Returns the optimum, or `None` if the solver finds none.
    pub(super) fn value(&self) -> Option<f64> {
        match self.0.solve().ok()? {
            SolveOutcome::Solution(solution) => Some(solution.objective()),
            SolveOutcome::Interrupted(_) => None,
        }
    }
}
