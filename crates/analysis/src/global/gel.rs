//! Response times under EDF-like schedulers, from a compliant vector.
//!
//! The priority point of a job is its release plus Y_i; the earlier point has the higher priority. Y = D is global
//! EDF, and Y = D − (m − 1)/m C is G-FL, global fair lateness. A shift of all points by the same amount does not
//! change the schedule. With y_i = Y_i minus the least Y, and U ≤ m:
//!
//! ```text
//! S_i = max(0, C_i (1 − y_i/T_i)),   G(s) = the sum of the ⌈U⌉ − 1 greatest (C_i − S_i + u_i (s − C_i/m))
//! the s with  G(s) + Σ S_i = m s;   R_i = y_i + C_i + ⌈s − C_i/m⌉
//! ```
//! The sources are Erickson, Devi, Baruah, *Improved tardiness bounds for global EDF*, ECRTS 2010; Erickson, Guan,
//! Baruah, *Tardiness bounds for global EDF with deadlines different from periods*, OPODIS 2010; and Erickson,
//! Anderson, *Fair lateness scheduling*, ECRTS 2012.
//!
//! G(s) + Σ S_i − m s is convex, piecewise linear, and decreasing. Newton's iteration from 0 is therefore exact
//! after at most one step per piece.

use super::set::{Deadlines, check};
use crate::rows::exact::compare_sum;
use crate::{Failure, Sporadic};
use num_rational::BigRational;
use std::cmp::Ordering;

/// Returns response-time bounds under the global scheduler whose priority points are `points` after the release.
/// Deadlines are ignored.
///
/// Response times are measured from the release, in the unit of the input. The sources are Erickson, Devi, Baruah
/// (ECRTS 2010), Erickson, Guan, Baruah (OPODIS 2010), and Erickson, Anderson (ECRTS 2012).
///
/// # Errors
/// Returns [`Failure::Overload`] if U > m, [`Failure::Unsupported`] if `points` has another length, and the errors of
/// invalid sets (see the [module](super)).
pub fn compliant_vector(tasks: &[Sporadic], points: &[u64], processors: u32) -> Result<Vec<u64>, Failure> {
    if tasks.len() != points.len() {
        return Err(Failure::Unsupported { task: tasks.len().min(points.len()), what: "there is no priority point" });
    }
    // Only the execution time and the period count. The caller compares deadlines.
    let with_points: Vec<Sporadic> = tasks.iter().map(|task| Sporadic { deadline: task.period, ..*task }).collect();
    check(&with_points, processors, Deadlines::Arbitrary)?;
    let Some(&least) = points.iter().min() else { return Ok(Vec::new()) };
    if compare_sum(tasks.iter().map(|task| (task.cost, task.period)), u64::from(processors)) == Ordering::Greater {
        return Err(Failure::Overload);
    }
    // On one processor, EDF is exact: if each priority point is the period, every job is done by it.
    if processors == 1 && tasks.iter().zip(points).all(|(task, &point)| point == task.period) {
        return Ok(points.to_vec());
    }
    if let Some(bounds) = quickly(tasks, points, least, processors) {
        return Ok(bounds);
    }
    exactly(tasks, points, least, processors)
}

fn exactly(tasks: &[Sporadic], points: &[u64], least: u64, processors: u32) -> Result<Vec<u64>, Failure> {
    let s = solve(tasks, points, least, processors);
    let m = whole(u64::from(processors));
    tasks
        .iter()
        .zip(points)
        .map(|(task, &point)| {
            let bound = &s - whole(task.cost) / &m + whole(task.cost) + whole(point - least);
            u64::try_from(bound.ceil().to_integer()).map_err(|_| Failure::Overflow)
        })
        .collect()
}

/// The number of fractional bits.
const BITS: u32 = 32;

/// The contribution of a task to G, scaled: at s = 0, and for each unit of s. Neither exceeds the true value.
#[derive(Clone, Copy)]
struct Line {
    start: i128,
    slope: i128,
}

/// Returns the bounds, if an interval that contains s determines them. The computation uses scaled integers. The values
/// below (`low`, `value`) deviate to one side, by at most `error`.
fn quickly(tasks: &[Sporadic], points: &[u64], least: u64, processors: u32) -> Option<Vec<u64>> {
    let greatest = tasks.iter().map(|task| task.period).chain(points.iter().copied()).max()?;
    let (n, m) = (tasks.len() as i128, i128::from(processors));
    // s is at most twice the sum of all execution times, so its products with slopes fit.
    if greatest >> 30 != 0 || n >> 16 != 0 || m >> 16 != 0 {
        return None;
    }
    let scaled = |number: u64| i128::from(number) << BITS;
    let (mut sum, mut fixed) = (0, 0);
    let mut lines: Vec<Line> = Vec::with_capacity(tasks.len());
    for (task, &point) in tasks.iter().zip(points) {
        let (cost, ahead) = (task.cost, point - least);
        let slope = i128::from((cost << BITS) / task.period);
        // Exceeds the true value by less than 1.
        let share = if ahead < task.period { scaled(cost) - product_over(cost, ahead, task.period) } else { 0 };
        // u C / m; exceeds the true value by at most C + 1.
        let corner = (slope + 1) * i128::from(cost) / m + 1;
        lines.push(Line { start: scaled(cost) - share - corner, slope });
        fixed += share;
        sum += slope;
    }
    // U is at least `sum` and less than `sum` + n. This gives ⌈U⌉ − 1, unless U may be an integer.
    let count = (sum + n) >> BITS;
    if sum <= count << BITS {
        return None;
    }
    let mut top: Vec<(i128, i128)> = Vec::with_capacity(count as usize + 1);
    // Returns at most G(s) + Σ S − m s, and at least the rate at which that decreases.
    let mut value = |s: i128| {
        top.clear();
        for line in &lines {
            let this = (line.start + ((line.slope * s) >> BITS), line.slope);
            let at = top.partition_point(|other| *other >= this);
            top.insert(at, this);
            top.truncate(count as usize);
        }
        let (sum, slope) = top.iter().fold((0, 0), |(sum, slope), line| (sum + line.0, slope + line.1));
        (sum + fixed - n - m * s, (m << BITS) - slope)
    };
    // n for the shares. For each line: the share, the corner, the rounding of its product, and that of its slope times
    // s.
    let error = |s: i128| n + count * (i128::from(greatest) + 4 + (s >> BITS));
    // A tangent of a convex function is below it and reaches zero first, so all of these values are at most s.
    let (mut low, mut steepness) = (0, m << BITS);
    // BOUND: one step for each change in the order of two lines.
    for _ in 0..tasks.len() * tasks.len() + 2 {
        let (above, slope) = value(low);
        steepness = slope;
        let step = (above << BITS) / slope;
        if step <= 0 {
            break;
        }
        low += step;
    }
    // If the value with all errors is not above zero at some point, s is not beyond that point.
    let gap = (error(low) << BITS) / steepness + 1;
    let high = [2, 32].into_iter().map(|times| low + times * gap).find(|&s| value(s).0 + error(s) <= 0)?;
    // ⌈s − C/m⌉.
    let beyond = |s: i128, cost: u64| (s * m - scaled(cost) + (m << BITS) - 1).div_euclid(m << BITS);
    tasks
        .iter()
        .zip(points)
        .map(|(task, &point)| {
            let (from, to) = (beyond(low, task.cost), beyond(high, task.cost));
            let bound = from + i128::from(task.cost) + i128::from(point - least);
            if from == to { u64::try_from(bound).ok() } else { None }
        })
        .collect()
}

/// Returns a b / c, scaled and rounded down. All three are below 2^30.
fn product_over(a: u64, b: u64, c: u64) -> i128 {
    ((u128::from(a * b) << BITS) / u128::from(c)) as i128
}

/// Returns response-time bounds under global EDF. Deadlines are arbitrary.
///
/// Response times are measured from the release and may exceed deadlines. The sources are those of
/// [`compliant_vector`].
///
/// # Errors
/// Returns the errors of [`compliant_vector`].
pub fn g_edf(tasks: &[Sporadic], processors: u32) -> Result<Vec<u64>, Failure> {
    let points: Vec<u64> = tasks.iter().map(|task| task.deadline).collect();
    compliant_vector(tasks, &points, processors)
}

/// Returns response-time bounds under G-FL, with priority points rounded up. Deadlines are arbitrary.
///
/// Response times are measured from the release and may exceed deadlines. The sources are those of
/// [`compliant_vector`].
///
/// # Errors
/// Returns the errors of [`compliant_vector`], and [`Failure::Unsupported`] if a priority point is before the release.
pub fn g_fl(tasks: &[Sporadic], processors: u32) -> Result<Vec<u64>, Failure> {
    let before = |task| Failure::Unsupported { task, what: "its priority point lies before its release" };
    let points: Result<Vec<u64>, Failure> =
        tasks.iter().enumerate().map(|(index, task)| g_fl_point(task, processors).ok_or(before(index))).collect();
    compliant_vector(tasks, &points?, processors)
}

/// Returns the priority point of a task under G-FL, D − ⌊(m − 1)/m C⌋, or `None` if it is before the release.
#[must_use]
pub fn g_fl_point(task: &Sporadic, processors: u32) -> Option<u64> {
    let m = u128::from(processors.max(1));
    task.deadline.checked_sub((u128::from(task.cost) * (m - 1) / m) as u64)
}

fn whole(number: u64) -> BigRational {
    BigRational::from_integer(number.into())
}

fn solve(tasks: &[Sporadic], points: &[u64], least: u64, processors: u32) -> BigRational {
    let (zero, one, m) = (whole(0), whole(1), whole(u64::from(processors)));
    let mut fixed = zero.clone();
    // The contribution of each task to G: at s = 0, and for each unit of s.
    let lines: Vec<(BigRational, BigRational)> = tasks
        .iter()
        .zip(points)
        .map(|(task, &point)| {
            let (cost, period) = (whole(task.cost), whole(task.period));
            let slope = &cost / &period;
            let share = (&cost * (&one - whole(point - least) / &period)).max(zero.clone());
            let start = &cost - &share - &slope * &cost / &m;
            fixed += share;
            (start, slope)
        })
        .collect();
    let sum: BigRational = lines.iter().map(|(_, slope)| slope).sum();
    let count = usize::try_from(sum.ceil().to_integer()).unwrap_or(usize::MAX).saturating_sub(1);
    let mut s = zero;
    let mut order: Vec<usize> = (0..lines.len()).collect();
    let mut values: Vec<BigRational> = Vec::with_capacity(lines.len());
    // BOUND: each step except the last leaves a piece for one with a greater slope. There is one piece for each change
    // in the order of two lines.
    loop {
        values.clear();
        values.extend(lines.iter().map(|(start, slope)| start + slope * &s));
        // Among equal values, those that grow faster: the piece to the right.
        order.sort_by(|&a, &b| values[b].cmp(&values[a]).then_with(|| lines[b].1.cmp(&lines[a].1)));
        let (mut start, mut slope) = (fixed.clone(), m.clone());
        for &index in order.iter().take(count) {
            start += &lines[index].0;
            slope -= &lines[index].1;
        }
        // ⌈U⌉ − 1 tasks use less than m.
        let next = start / slope;
        if next <= s {
            return s;
        }
        s = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    #[test]
    fn the_fast_bound_equals_the_exact_one() {
        let mut random = Rng::with_seed(1);
        let (mut quick, mut slow) = (0, 0);
        for round in 0..6_000 {
            let m = random.u32(1..=6);
            let scale = [12, 1000, 1 << 20][round % 3];
            let (mut tasks, mut points, mut sum): (Vec<Sporadic>, Vec<u64>, f64) = (Vec::new(), Vec::new(), 0.0);
            loop {
                let period = random.u64(1..=scale);
                let cost = random.u64(1..=period);
                sum += cost as f64 / period as f64;
                if sum > f64::from(m) || tasks.len() > 12 {
                    break;
                }
                tasks.push(Sporadic { cost, period, deadline: period });
                points.push(if random.bool() { period } else { random.u64(0..=2 * period) });
            }
            let Some(&least) = points.iter().min() else { continue };
            match quickly(&tasks, &points, least, m) {
                None => slow += 1,
                Some(bounds) => {
                    quick += 1;
                    assert_eq!(Ok(bounds), exactly(&tasks, &points, least, m), "{tasks:?} {points:?} on {m}");
                }
            }
        }
        assert!(quick > 3_000 && slow > 10, "{quick} {slow}");
    }
}
