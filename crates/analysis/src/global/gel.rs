//! Response times under EDF-like schedulers, from a compliant vector.
//!
//! A job's priority point is its release and Y_i; the earlier point goes first. Y = D is global EDF; Y = D − (m − 1)/m C is G-FL, global fair lateness.
//! Points may all be moved by the same without another schedule: with y_i = Y_i − the least Y, and U ≤ m,
//!
//! ```text
//! S_i = max(0, C_i (1 − y_i/T_i)),   G(s) = the ⌈U⌉ − 1 greatest of (C_i − S_i + u_i (s − C_i/m))
//! the s with  G(s) + Σ S_i = m s;   R_i = y_i + C_i + ⌈s − C_i/m⌉
//! ```
//! Erickson, Devi, Baruah, *Improved tardiness bounds for global EDF*, ECRTS 2010; Erickson, Guan, Baruah, *Tardiness bounds for global EDF with deadlines
//! different from periods*, OPODIS 2010; Erickson, Anderson, *Fair lateness scheduling*, ECRTS 2012.
//!
//! G(s) + Σ S_i − m s is convex, piecewise linear, and falls: Newton's iteration from 0 is exact after at most one step a piece.

use super::set::{Deadlines, check};
use crate::exact::compare_sum;
use crate::{Failure, Sporadic};
use num_rational::BigRational;
use std::cmp::Ordering;

/// Response times under the scheduler whose priority points are `points` from release. Any deadlines.
///
/// # Errors
/// [`Failure::Overload`] where U > m; [`Failure::Unsupported`] where `points` is of another length.
pub fn compliant_vector(tasks: &[Sporadic], points: &[u64], processors: u32) -> Result<Vec<u64>, Failure> {
    if tasks.len() != points.len() {
        return Err(Failure::Unsupported { task: tasks.len().min(points.len()), what: "there is no priority point" });
    }
    // Only cost and period count: a deadline is for the caller to compare with.
    let with_points: Vec<Sporadic> = tasks.iter().map(|task| Sporadic { deadline: task.period, ..*task }).collect();
    check(&with_points, processors, Deadlines::Arbitrary)?;
    let Some(&least) = points.iter().min() else { return Ok(Vec::new()) };
    if compare_sum(tasks.iter().map(|task| (task.cost, task.period)), u64::from(processors)) == Ordering::Greater {
        return Err(Failure::Overload);
    }
    // On one processor, EDF is exact: every job is done by its priority point where that is its period.
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

/// Digits behind the point, in bits.
const BITS: u32 = 32;

/// What a task adds to G, scaled: at s = 0, and for each unit of s. Neither is more than the true one.
#[derive(Clone, Copy)]
struct Line {
    start: i128,
    slope: i128,
}

/// The bounds, where an interval that holds s tells them. Scaled integers; what follows (`low`, `value`) errs to one side, by no more than `error`.
fn quickly(tasks: &[Sporadic], points: &[u64], least: u64, processors: u32) -> Option<Vec<u64>> {
    let greatest = tasks.iter().map(|task| task.period).chain(points.iter().copied()).max()?;
    let (n, m) = (tasks.len() as i128, i128::from(processors));
    // s is at most the sum of all costs twice: its products with slopes fit.
    if greatest >> 30 != 0 || n >> 16 != 0 || m >> 16 != 0 {
        return None;
    }
    let scaled = |number: u64| i128::from(number) << BITS;
    let (mut sum, mut fixed) = (0, 0);
    let mut lines: Vec<Line> = Vec::with_capacity(tasks.len());
    for (task, &point) in tasks.iter().zip(points) {
        let (cost, ahead) = (task.cost, point - least);
        let slope = i128::from((cost << BITS) / task.period);
        // Too great by less than 1.
        let share = if ahead < task.period { scaled(cost) - product_over(cost, ahead, task.period) } else { 0 };
        // u C / m, too great by at most C + 1.
        let corner = (slope + 1) * i128::from(cost) / m + 1;
        lines.push(Line { start: scaled(cost) - share - corner, slope });
        fixed += share;
        sum += slope;
    }
    // U is at least `sum` and less than `sum` + n: ⌈U⌉ − 1, unless U may be a whole number.
    let count = (sum + n) >> BITS;
    if sum <= count << BITS {
        return None;
    }
    let mut top: Vec<(i128, i128)> = Vec::with_capacity(count as usize + 1);
    // No more than G(s) + Σ S − m s; and no less than how fast that falls.
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
    // n for the shares; of each line the share, the corner, its product's rounding, and its slope's times s.
    let error = |s: i128| n + count * (i128::from(greatest) + 4 + (s >> BITS));
    // A tangent of a convex function lies below it, and meets zero before it does: all of these are at most s.
    let (mut low, mut steepness) = (0, m << BITS);
    // BOUND: one step for each change of order of two lines.
    for _ in 0..tasks.len() * tasks.len() + 2 {
        let (above, slope) = value(low);
        steepness = slope;
        let step = (above << BITS) / slope;
        if step <= 0 {
            break;
        }
        low += step;
    }
    // From where it is not above zero, all errors counted, s is not beyond.
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

/// a b / c, scaled, rounded down. All are below 2^30.
fn product_over(a: u64, b: u64, c: u64) -> i128 {
    ((u128::from(a * b) << BITS) / u128::from(c)) as i128
}

/// Response times under global EDF. Any deadlines.
///
/// # Errors
/// As [`compliant_vector`].
pub fn g_edf(tasks: &[Sporadic], processors: u32) -> Result<Vec<u64>, Failure> {
    let points: Vec<u64> = tasks.iter().map(|task| task.deadline).collect();
    compliant_vector(tasks, &points, processors)
}

/// Response times under G-FL, with priority points rounded up. Any deadlines.
///
/// # Errors
/// As [`compliant_vector`]; [`Failure::Unsupported`] where a priority point lies before the release.
pub fn g_fl(tasks: &[Sporadic], processors: u32) -> Result<Vec<u64>, Failure> {
    let before = |task| Failure::Unsupported { task, what: "its priority point lies before its release" };
    let points: Result<Vec<u64>, Failure> =
        tasks.iter().enumerate().map(|(index, task)| g_fl_point(task, processors).ok_or(before(index))).collect();
    compliant_vector(tasks, &points?, processors)
}

/// D − ⌊(m − 1)/m C⌋, where that is not before the release.
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
    // What each adds to G: at s = 0, and for each unit of s.
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
    // BOUND: each step but the last leaves a piece for good, to one with a greater slope; there is one for each change of order of two lines.
    loop {
        values.clear();
        values.extend(lines.iter().map(|(start, slope)| start + slope * &s));
        // Of equals, those that grow faster: the piece to the right.
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
    fn the_quick_way_answers_what_is_written() {
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
