//! Common parts of the tests: tasks prepared for division, the check of the input, and the search for a fixed point.

use crate::{Failure, Limit, Sporadic};

/// The most steps in the search for one fixed point. Each step passes the end of some task's execution, so this limit
/// is generous.
pub const STEPS_MAX: u64 = 1 << 22;

/// A sum of any times over all tasks and processors is below two to this power.
const SUM_BITS: u32 = 60;

/// A task with the reciprocal of its period.
#[derive(Clone, Copy)]
pub(super) struct Task {
    pub(super) cost: u64,
    pub(super) period: u64,
    pub(super) deadline: u64,
    /// (2^64 − 1) / period, rounded down.
    reciprocal: u64,
}

impl Task {
    pub(super) fn new(task: &Sporadic) -> Self {
        Self { cost: task.cost, period: task.period, deadline: task.deadline, reciprocal: u64::MAX / task.period }
    }

    /// Divides `time` by the period. Returns the quotient and the remainder.
    ///
    /// The reciprocal is below 2^64 / T by less than 1, so the estimate is at most one too low.
    #[inline(always)]
    pub(super) fn divide(&self, time: u64) -> (u64, u64) {
        let estimate = ((u128::from(time) * u128::from(self.reciprocal)) >> 64) as u64;
        let rest = time.wrapping_sub(estimate.wrapping_mul(self.period));
        let over = rest >= self.period;
        let (quotient, rest) =
            (estimate.wrapping_add(u64::from(over)), if over { rest.wrapping_sub(self.period) } else { rest });
        debug_assert_eq!((quotient, rest), (time / self.period, time % self.period));
        (quotient, rest)
    }
}

pub(super) fn laid_out(tasks: &[Sporadic]) -> Vec<Task> {
    tasks.iter().map(Task::new).collect()
}

/// The deadlines that a test supports.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Deadlines {
    /// Arbitrary deadlines.
    Arbitrary,
    /// D ≤ T.
    Constrained,
    /// D = T.
    Implicit,
}

/// Checks that the tests apply to the tasks: periods and deadlines are above 0, C ≤ min(D, T), and no sum can
/// overflow.
#[inline]
pub(super) fn check(tasks: &[Sporadic], processors: u32, deadlines: Deadlines) -> Result<(), Failure> {
    let (mut greatest, mut odd) = (0, false);
    for task in tasks {
        greatest |= task.period | task.deadline;
        odd |= task.cost > task.period.min(task.deadline)
            || task.period == 0
            || task.deadline == 0
            || match deadlines {
                Deadlines::Arbitrary => false,
                Deadlines::Constrained => task.deadline > task.period,
                Deadlines::Implicit => task.deadline != task.period,
            };
    }
    let count = tasks.len() as u64 + u64::from(processors) + 2;
    if odd || (processors == 0 && !tasks.is_empty()) {
        return Err(reason(tasks, processors, deadlines));
    }
    // `greatest` has the bits of all values, so it is at least the greatest value and less than twice that.
    if greatest.leading_zeros() + count.leading_zeros() < 128 - SUM_BITS { narrowly(tasks, count) } else { Ok(()) }
}

/// Performs the same check if the number of bits does not decide. A thousand tasks with the longest times of a file
/// fit; more tasks fit with shorter times.
#[cold]
fn narrowly(tasks: &[Sporadic], count: u64) -> Result<(), Failure> {
    let greatest = tasks.iter().map(|task| task.period.max(task.deadline)).max().unwrap_or(0);
    if u128::from(greatest) * u128::from(count) >= 1 << SUM_BITS { Err(Failure::Overflow) } else { Ok(()) }
}

#[cold]
fn reason(tasks: &[Sporadic], processors: u32, deadlines: Deadlines) -> Failure {
    for (task, it) in tasks.iter().enumerate() {
        let what = if it.period == 0 {
            "its period is 0"
        } else if it.deadline == 0 {
            "its deadline is 0"
        } else if deadlines == Deadlines::Constrained && it.deadline > it.period {
            "its deadline is beyond its period"
        } else if deadlines == Deadlines::Implicit && it.deadline != it.period {
            "its deadline is not its period"
        } else {
            continue;
        };
        return Failure::Unsupported { task, what };
    }
    if processors == 0 {
        return Failure::Overload;
    }
    let task = tasks.iter().position(|it| it.cost > it.period.min(it.deadline));
    task.map_or(Failure::Overload, |task| Failure::Task { task })
}

/// The work of others in a window of length R, and how far each term continues to rise from there, by one for each unit
/// of time.
#[derive(Default)]
pub(super) struct Work {
    pub(super) sum: u64,
    rises: Vec<u64>,
}

impl Work {
    fn clear(&mut self) {
        self.sum = 0;
        self.rises.clear();
    }

    /// Adds the work of one task. It is `value` now and rises by one for each unit of time, at least until it is `top`.
    #[inline(always)]
    pub(super) fn add(&mut self, value: u64, top: u64) {
        self.sum = self.sum.wrapping_add(value);
        self.rises.push(top.wrapping_sub(value));
    }

    /// Returns a distance from R within which there is no fixed point, if the work exceeds that of a fixed point by
    /// `excess`. For each distance below the result, the excess and the rise of the work in it exceed m times the
    /// distance.
    #[inline(always)]
    fn step(&self, excess: u64, m: u64) -> u64 {
        let mut slope = 0;
        let mut steady = u64::MAX;
        for &rise in &self.rises {
            slope += u64::from(rise > 0);
            // A rise of 0 becomes the greatest number.
            steady = steady.min(rise.wrapping_sub(1));
        }
        let plain = excess.div_ceil(m);
        if slope == 0 {
            return plain;
        }
        // While all these terms rise, the excess falls by at most m − slope for each unit.
        let far = if slope < m { excess.div_ceil(m - slope) } else { u64::MAX };
        let mut step = plain.max(far.min(steady.wrapping_add(1)));
        // BOUND: STEP_TURNS; each round increases the step.
        for _ in 0..STEP_TURNS {
            let risen = self.rises.iter().fold(0_u64, |sum, &rise| sum.wrapping_add(rise.min(step)));
            let next = excess.wrapping_add(risen).div_ceil(m);
            if next <= step {
                break;
            }
            step = next;
        }
        step
    }
}

/// How often a step is increased with the known rises.
const STEP_TURNS: u32 = 6;

/// Returns the least R ≥ `own` with R = own + ⌊work(R) / m⌋.
///
/// `work` must never decrease. If the iteration R ← own + ⌊work(R)/m⌋ would take small steps, the rises show a
/// greater distance without a fixed point. The result is the same.
///
/// # Errors
/// Returns [`Failure::Late`] if the fixed point is beyond `deadline`, and [`Failure::Diverged`] after [`STEPS_MAX`]
/// steps.
#[inline(always)]
pub(super) fn fixed_point(
    task: usize,
    own: u64,
    deadline: u64,
    processors: u32,
    others: &mut Work,
    mut work: impl FnMut(u64, &mut Work),
) -> Result<u64, Failure> {
    let m = u64::from(processors);
    let mut response = own;
    // BOUND: STEPS_MAX steps.
    for _ in 0..STEPS_MAX {
        if response > deadline {
            return Err(Failure::Late { task, response });
        }
        others.clear();
        work(response, others);
        let room = m.wrapping_mul(response - own).wrapping_add(m - 1);
        if others.sum <= room {
            return Ok(response);
        }
        response = response.saturating_add(others.step(others.sum - room, m));
    }
    Err(Failure::Diverged { task, limit: Limit { name: "steps", most: STEPS_MAX } })
}

/// Collects the greatest of a sequence of numbers, as many as there is room for.
pub(super) struct Greatest<'a> {
    /// Greatest first, filled with 0.
    kept: &'a mut [u64],
}

impl<'a> Greatest<'a> {
    pub(super) fn new(room: &'a mut [u64]) -> Self {
        room.fill(0);
        Self { kept: room }
    }

    pub(super) fn clear(&mut self) {
        self.kept.fill(0);
    }

    #[inline(always)]
    pub(super) fn add(&mut self, mut number: u64) {
        for kept in self.kept.iter_mut() {
            (*kept, number) = ((*kept).max(number), (*kept).min(number));
        }
    }

    /// Returns the sum of the greatest `count` numbers, or of all that are kept.
    pub(super) fn first(&self, count: usize) -> u64 {
        self.kept.iter().take(count).fold(0, |sum, &number| sum.wrapping_add(number))
    }

    /// Returns the sum of all numbers that are kept.
    pub(super) fn sum(&self) -> u64 {
        self.first(usize::MAX)
    }
}
