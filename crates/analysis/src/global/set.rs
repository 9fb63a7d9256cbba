//! What the tests share: tasks laid out for division, the check of what goes in, the search for a fixed point.

use crate::{Failure, Limit, Sporadic};

/// Steps of one fixed point's search. Each passes the end of some task's execution, so this is far.
pub const STEPS_MAX: u64 = 1 << 22;

/// A sum over all tasks and processors of any times stays below two to this.
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

    /// `time` over the period: quotient and remainder.
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

/// What a test takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Deadlines {
    /// Any.
    Arbitrary,
    /// D ≤ T.
    Constrained,
    /// D = T.
    Implicit,
}

/// That tasks are such as the tests take: periods and deadlines above 0, C ≤ min(D, T), and no sum can overflow.
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
    // `greatest` has the bits of all: it is at least the greatest, and below twice it.
    if greatest.leading_zeros() + count.leading_zeros() < 128 - SUM_BITS { narrowly(tasks, count) } else { Ok(()) }
}

/// The same, where bits alone do not tell. A thousand tasks with the longest times of a file fit; of more tasks, shorter ones.
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

/// What others' work in a window is at its length R, and by how much each goes on to rise, one a unit, from there.
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

    /// Adds the work of one task that is `value` and rises one a unit, at least until it is `top`.
    #[inline(always)]
    pub(super) fn add(&mut self, value: u64, top: u64) {
        self.sum = self.sum.wrapping_add(value);
        self.rises.push(top.wrapping_sub(value));
    }

    /// How far from R no fixed point can be, where the work is `excess` too much for R to be one: for `step` units less than what this answers,
    /// the excess and what work rises in them is more than m times as much.
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
        // As far as all that rise do: the excess falls by at most m − slope a unit.
        let far = if slope < m { excess.div_ceil(m - slope) } else { u64::MAX };
        let mut step = plain.max(far.min(steady.wrapping_add(1)));
        // BOUND: a few times; each comes nearer.
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

/// How often one step is made longer by what is known already.
const STEP_TURNS: u32 = 6;

/// The least R ≥ `own` with R = own + ⌊work(R) / m⌋.
///
/// `work` never falls. Where the iteration R ← own + ⌊work(R)/m⌋ would creep, the rises show how far no R can be a fixed point; the result is the same.
///
/// # Errors
/// [`Failure::Late`] where it is beyond `deadline`, [`Failure::Diverged`] after [`STEPS_MAX`].
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

/// Keeps the greatest of some numbers, as many as there is room for.
pub(super) struct Greatest<'a> {
    /// Greatest first; 0 where there was none.
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

    /// The sum of the greatest `count`, or of all that are kept.
    pub(super) fn first(&self, count: usize) -> u64 {
        self.kept.iter().take(count).fold(0, |sum, &number| sum.wrapping_add(number))
    }

    /// The sum of all kept.
    pub(super) fn sum(&self) -> u64 {
        self.first(usize::MAX)
    }
}
