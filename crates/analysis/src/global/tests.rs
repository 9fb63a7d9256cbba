//! Properties of all tests: each equals its definition, refuses invalid input, and still accepts a set that becomes
//! easier.

use super::*;
use crate::{Failure, Sporadic};
use fastrand::Rng;

type Test = fn(&[Sporadic], u32) -> Result<(), Failure>;

const TESTS: [(&str, Test); 10] = [
    ("gfb", gfb),
    ("bak", bak),
    ("bcl", bcl),
    ("bcl_iterative", bcl_iterative),
    ("bar", bar),
    ("rta", |tasks, m| rta(tasks, m).map(drop)),
    ("ff_dbf", ff_dbf),
    ("edf", edf),
    ("bertogna_cirinei", |tasks, m| bertogna_cirinei(tasks, &[], m, CarryIn::Responses).map(drop)),
    ("guan", |tasks, m| guan(tasks, m).map(drop)),
];

/// Returns tasks with a utilization around `share` of m, with deadlines of at least half their slack.
fn random_set(random: &mut Rng, m: u32, longest: u64, share: f64, constrained: bool) -> Vec<Sporadic> {
    let mut tasks = Vec::new();
    let mut sum = 0.0;
    loop {
        let period = random.u64(2..=longest);
        let cost = random.u64(1..=(period * 2 / 3).max(1));
        sum += cost as f64 / period as f64;
        if sum > share * f64::from(m) || tasks.len() > 20 {
            return tasks;
        }
        let deadline = if constrained { random.u64(cost.midpoint(period)..=period) } else { period };
        tasks.push(Sporadic { cost, period, deadline });
    }
}

/// The definitions, implemented directly.
mod slow {
    use super::{Failure, Sporadic};

    fn due(task: &Sporadic, time: u64) -> u64 {
        if time < task.deadline { 0 } else { ((time - task.deadline) / task.period + 1) * task.cost }
    }

    fn work(task: &Sporadic, time: u64) -> u64 {
        time / task.period * task.cost + task.cost.min(time % task.period)
    }

    pub(super) fn bcl(tasks: &[Sporadic], m: u64) -> bool {
        (0..tasks.len()).all(|k| {
            let own = tasks[k];
            let room = own.deadline - own.cost;
            let all: Vec<u64> = (0..tasks.len())
                .filter(|&i| i != k)
                .map(|i| {
                    let it = tasks[i];
                    let n = if it.deadline > own.deadline { 0 } else { 1 + (own.deadline - it.deadline) / it.period };
                    n * it.cost + it.cost.min(own.deadline.saturating_sub(n * it.period))
                })
                .collect();
            let sum: u64 = all.iter().map(|&work| work.min(room)).sum();
            sum < m * room || (sum == m * room && all.iter().any(|&work| 0 < work && work <= room))
        })
    }

    /// Iterates R ← f(R).
    fn iterate(own: u64, deadline: u64, f: impl Fn(u64) -> u64) -> Option<u64> {
        let mut response = own;
        while response <= deadline {
            let next = f(response);
            if next == response {
                return Some(response);
            }
            response = next;
        }
        None
    }

    pub(super) fn rta(tasks: &[Sporadic], m: u64) -> Option<Vec<u64>> {
        let mut slack = vec![0; tasks.len()];
        for _ in 0..25 {
            let (mut all, mut changed) = (true, false);
            for k in 0..tasks.len() {
                let own = tasks[k];
                let found = iterate(own.cost, own.deadline, |response| {
                    let sum: u64 = (0..tasks.len())
                        .filter(|&i| i != k)
                        .map(|i| {
                            let it = tasks[i];
                            let carried = (own.deadline % it.period).saturating_sub(slack[i]).min(it.cost);
                            work(&it, response + it.deadline - it.cost - slack[i])
                                .min(own.deadline / it.period * it.cost + carried)
                                .min(response - own.cost + 1)
                        })
                        .sum();
                    own.cost + sum / m
                });
                match found {
                    Some(response) => {
                        changed |= slack[k] != own.deadline - response;
                        slack[k] = own.deadline - response;
                    }
                    None => all = false,
                }
            }
            if all {
                return Some(tasks.iter().zip(&slack).map(|(task, slack)| task.deadline - slack).collect());
            }
            if !changed {
                return None;
            }
        }
        None
    }

    pub(super) fn guan(tasks: &[Sporadic], m: usize) -> Result<Vec<u64>, Failure> {
        let mut found: Vec<u64> = Vec::new();
        for (k, own) in tasks.iter().enumerate() {
            let response = if k < m {
                Some(own.cost)
            } else {
                iterate(own.cost, own.deadline, |response| {
                    let cap = response - own.cost + 1;
                    let mut sum = 0;
                    let mut more: Vec<u64> = Vec::new();
                    for (it, bound) in tasks[..k].iter().zip(&found) {
                        let without = work(it, response).min(cap);
                        let before = response.saturating_sub(it.cost);
                        let late =
                            (before % it.period + bound).saturating_sub(it.period).min(it.cost.saturating_sub(1));
                        let with = (before / it.period * it.cost + it.cost + late).min(cap);
                        sum += without;
                        more.push(with - without);
                    }
                    more.sort_unstable();
                    own.cost + (sum + more.iter().rev().take(m - 1).sum::<u64>()) / m as u64
                })
            };
            found.push(response.ok_or(Failure::Overload)?);
        }
        Ok(found)
    }

    pub(super) fn bertogna_cirinei(tasks: &[Sporadic], m: usize) -> Option<Vec<u64>> {
        let mut found: Vec<u64> = Vec::new();
        for (k, own) in tasks.iter().enumerate() {
            let all = |response: u64| -> u64 {
                tasks[..k].iter().zip(&found).map(|(it, bound)| work(it, response + bound - it.cost)).sum()
            };
            let response = if k < m {
                Some(own.cost)
            } else {
                iterate(own.cost, own.deadline, |response| own.cost + all(response) / m as u64)
            };
            found.push(response?);
        }
        Some(found)
    }

    /// Examines all speeds, and all integers t up to the end of SchedCAT's search.
    pub(super) fn ff_dbf(tasks: &[Sporadic], m: u64) -> bool {
        let (m, end) = (m as f64, 10 * tasks.iter().map(|task| task.cost).sum::<u64>());
        let utilization: f64 = tasks.iter().map(|task| task.cost as f64 / task.period as f64).sum();
        let densest = tasks.iter().map(|task| task.cost as f64 / task.deadline as f64).fold(0.0, f64::max);
        let bound = ((m - utilization) / (m - 1.0) - 0.1).min(1.0);
        let grid = (1..=50).map(|step| f64::from(step) / 50.0).filter(|&speed| speed > densest);
        std::iter::once(densest).chain(grid).filter(|&speed| speed <= bound + 1e-12).any(|speed| {
            (1..=end).all(|t| {
                let sum: f64 = tasks
                    .iter()
                    .map(|it| {
                        let (rest, cost) = (t % it.period, it.cost as f64);
                        let missing = it.deadline.saturating_sub(rest) as f64;
                        (t / it.period) as f64 * cost + (cost - missing * speed).max(0.0)
                    })
                    .sum();
                sum <= (m - (m - 1.0) * speed) * t as f64 + 1e-9
            })
        })
    }

    pub(super) fn bar(tasks: &[Sporadic], m: u64) -> Option<bool> {
        let utilization: f64 = tasks.iter().map(|task| task.cost as f64 / task.period as f64).sum();
        let left = m as f64 - utilization;
        if left < 1e-3 {
            return None;
        }
        let mut costs: Vec<u64> = tasks.iter().map(|task| task.cost).collect();
        costs.sort_unstable();
        let greatest: u64 = costs.iter().rev().take(m as usize - 1).sum();
        let early: f64 =
            tasks.iter().map(|task| (task.period - task.deadline) as f64 * task.cost as f64 / task.period as f64).sum();
        Some(tasks.iter().enumerate().all(|(k, own)| {
            let last = (greatest as f64 + early + (m * own.cost) as f64) / left - own.deadline as f64;
            (0..=last.max(-1.0).floor() as i64).all(|offset| {
                let offset = offset as u64;
                let end = offset + own.deadline;
                let cap = end + 1 - own.cost;
                let both: Vec<(u64, u64)> = tasks
                    .iter()
                    .enumerate()
                    .map(|(i, it)| {
                        if i == k {
                            ((due(it, end) - it.cost).min(offset), (work(it, end) - it.cost).min(offset))
                        } else {
                            (due(it, end).min(cap), work(it, end).min(cap))
                        }
                    })
                    .collect();
                let mut more: Vec<u64> = both.iter().map(|(without, with)| with - without).collect();
                more.sort_unstable();
                let sum: u64 = both.iter().map(|(without, _)| without).sum();
                sum + more.iter().rev().take(m as usize - 1).sum::<u64>() <= m * (end - own.cost)
            })
        }))
    }
}

#[test]
fn the_fast_tests_equal_their_definitions() {
    let mut random = Rng::with_seed(7);
    let mut seen = [[0_u32; 2]; 6];
    for round in 0..6_000 {
        let m = random.u32(2..=4);
        let constrained = round % 2 == 0;
        let share = 0.3 + 0.6 * random.f64();
        let tasks = random_set(&mut random, m, 40, share, constrained);
        let wide = u64::from(m);
        let mut same = |which: usize, quick: bool, slow: bool| {
            assert_eq!(quick, slow, "{which}: {tasks:?} on {m}");
            seen[which][usize::from(quick)] += 1;
        };
        same(0, bcl(&tasks, m).is_ok(), slow::bcl(&tasks, wide));
        let (quick, slow) = (rta(&tasks, m).ok(), slow::rta(&tasks, wide));
        assert_eq!(quick, slow, "{tasks:?} on {m}");
        same(1, quick.is_some(), slow.is_some());
        let (quick, slow) = (guan(&tasks, m).ok(), slow::guan(&tasks, m as usize).ok());
        assert_eq!(quick, slow, "{tasks:?} on {m}");
        same(2, quick.is_some(), slow.is_some());
        let quick = bertogna_cirinei(&tasks, &[], m, CarryIn::Responses).ok();
        let slow = slow::bertogna_cirinei(&tasks, m as usize);
        assert_eq!(quick, slow, "{tasks:?} on {m}");
        same(3, quick.is_some(), slow.is_some());
        if round % 10 < 2 && !tasks.is_empty() {
            same(4, ff_dbf(&tasks, m).is_ok(), slow::ff_dbf(&tasks, wide));
        }
        if let Some(slow) = slow::bar(&tasks, wide) {
            same(5, bar(&tasks, m).is_ok(), slow);
        }
    }
    assert!(seen.iter().flatten().all(|&count| count > 50), "{seen:?}");
}

#[test]
fn the_newton_iteration_finds_the_zero() {
    // At the s that was found, the responses satisfy the equation, and at no smaller integer do they.
    let mut random = Rng::with_seed(3);
    for _ in 0..2_000 {
        let m = random.u32(2..=4);
        let tasks = random_set(&mut random, m, 60, 1.0, false);
        let found = g_edf(&tasks, m).unwrap();
        let Some(least) = tasks.iter().map(|task| task.deadline).min() else { continue };
        // Bisection of the same function, in floating point.
        let (wide, parts) = (f64::from(m), tasks.iter().map(|it| (it.cost as f64, it.period as f64)));
        let utilization: f64 = parts.clone().map(|(c, t)| c / t).sum();
        let count = (utilization - 1e-9).ceil() as usize;
        let value = |s: f64| {
            let share = |c: f64, t: f64, d: f64| (c * (1.0 - (d - least as f64) / t)).max(0.0);
            let mut all: Vec<f64> = parts.clone().map(|(c, t)| c - share(c, t, t) + c / t * (s - c / wide)).collect();
            all.sort_by(|a, b| b.total_cmp(a));
            let fixed: f64 = parts.clone().map(|(c, t)| share(c, t, t)).sum();
            all.iter().take(count.saturating_sub(1)).sum::<f64>() + fixed - wide * s
        };
        let (mut low, mut high) = (0.0, 1.0);
        while value(high) > 0.0 {
            high *= 2.0;
        }
        for _ in 0..100 {
            let middle = f64::midpoint(low, high);
            *if value(middle) > 0.0 { &mut low } else { &mut high } = middle;
        }
        for (task, response) in tasks.iter().zip(found) {
            let exact = high - task.cost as f64 / wide + (task.cost + task.deadline - least) as f64;
            assert!((response as f64 - exact) > -1e-6 && (response as f64 - exact) < 1.0 + 1e-6, "{tasks:?} on {m}");
        }
    }
}

#[test]
fn edge_cases() {
    let task = |cost, deadline, period| Sporadic { cost, period, deadline };
    for (name, test) in TESTS {
        assert_eq!(test(&[], 4), Ok(()), "{name}: no task");
        assert_eq!(test(&[], 0), Ok(()), "{name}: no task, no processor");
        assert!(test(&[task(1, 1, 1)], 0).is_err(), "{name}: no processor");
        assert!(test(&[task(1, 1, 0)], 2).is_err(), "{name}: no period");
        assert!(test(&[task(0, 0, 5)], 2).is_err(), "{name}: no deadline");
        assert!(test(&[task(6, 5, 9)], 2).is_err(), "{name}: a cost beyond the deadline");
        assert!(test(&[task(1, 5, 9); 2], 2).is_ok(), "{name}: two small tasks");
        assert!(test(&[task(9, 9, 9); 3], 2).is_err(), "{name}: three full tasks on two");
        assert_eq!(test(&[task(u64::MAX, u64::MAX, u64::MAX); 2], 2), Err(Failure::Overflow), "{name}: huge");
        assert_eq!(test(&[task(1, u64::MAX, u64::MAX); 2], 2), Err(Failure::Overflow), "{name}: huge");
        let large = 1 << 50;
        assert!(test(&[task(large / 8, large, large); 3], 2).is_ok(), "{name}: large");
        assert!(test(&[task(large, large, large); 3], 2).is_err(), "{name}: large, too much");
        if name != "bak" && name != "edf" {
            let why = test(&[task(1, 9, 5)], 2);
            assert!(matches!(why, Err(Failure::Unsupported { task: 0, .. })), "{name}: {why:?}");
        }
        assert!(test(&[task(0, 5, 9), task(2, 5, 9), task(0, 1, 1)], 2).is_ok(), "{name}: tasks without demand");
    }
    // U is exactly m.
    let whole = [task(1, 2, 2); 4];
    assert_eq!(bar(&whole, 2), Err(Failure::Overload));
    assert_eq!(gfb(&[task(4, 4, 4), task(1, 4, 4)], 2), Err(Failure::Task { task: 0 }));
    assert_eq!(gfb(&[task(1, 3, 3); 3], 1), Ok(()), "three thirds are exactly one");
    assert_eq!(rta(&[task(5, 5, 5), task(3, 9, 9)], 2), Ok(vec![5, 3]));
    assert_eq!(g_edf(&[task(1, 2, 2); 3], 1), Err(Failure::Overload));
    assert_eq!(g_edf(&[task(1, 2, 2); 2], 1), Ok(vec![2, 2]));
    assert!(matches!(compliant_vector(&whole, &[1], 2), Err(Failure::Unsupported { .. })));
}

#[test]
fn a_thousand_of_the_longest_times_fit() {
    use lockwright_model::{CPUS_MAX, DURATION_MAX};
    const MANY: usize = 1024;
    let longest = DURATION_MAX.as_ns();
    let cpus = CPUS_MAX as u32;
    let far = Sporadic { cost: longest / 2000, period: longest, deadline: longest };
    for (name, test) in TESTS {
        assert_eq!(test(&vec![far; MANY], cpus), Ok(()), "{name}");
        // Together with a short one.
        let mut tasks = vec![far; 40];
        tasks.push(Sporadic { cost: 1_000, period: 1_000_000, deadline: 1_000_000 });
        assert_ne!(test(&tasks, 4), Err(Failure::Overflow), "{name}");
    }
    // With one more bit, the times do not fit.
    let tasks = vec![Sporadic { cost: 1, period: 2 * longest, deadline: 2 * longest }; MANY];
    for (name, test) in TESTS {
        assert_eq!(test(&tasks, cpus), Err(Failure::Overflow), "{name}");
    }
}

#[test]
fn a_unit_of_time_changes_no_verdict() {
    // Periods of 1 to 1000 ms are given in us, ns and ps. Utilizations and demand scale exactly. The "+ 1" of the tests
    // for integers is at most a thousandth of the least period. It could distinguish units only for a set that holds or
    // fails by that margin, and none of these does.
    let mut random = Rng::with_seed(23);
    let mut seen = [[0; 2]; TESTS.len()];
    for _ in 0..300 {
        let m = random.u32(2..=8);
        let share = 0.2 + 0.5 * random.f64();
        let in_ms = random_set(&mut random, m, 1000, share, true);
        if in_ms.is_empty() {
            continue;
        }
        let in_units_of = |times: u64| -> Vec<Sporadic> {
            let scaled = |it: &Sporadic| Sporadic {
                cost: it.cost * times,
                period: it.period * times,
                deadline: it.deadline * times,
            };
            in_ms.iter().map(scaled).collect()
        };
        for ((name, test), seen) in TESTS.iter().zip(&mut seen) {
            let found = test(&in_units_of(1_000), m);
            seen[usize::from(found.is_ok())] += 1;
            for times in [1_000_000, 1_000_000_000] {
                let other = test(&in_units_of(times), m);
                assert_eq!(found.is_ok(), other.is_ok(), "{name}: {found:?} {other:?} {in_ms:?} on {m}");
                assert_ne!(other, Err(Failure::Overflow), "{name}: {in_ms:?} on {m}");
            }
        }
    }
    assert!(seen.iter().flatten().all(|&count| count > 20), "{seen:?}");
}

#[test]
fn far_deadlines_do_not_take_from_others() {
    // Three tasks of 6/10 on two processors miss deadlines. A fourth task with a far deadline does not change that.
    let three = Sporadic { cost: 6, period: 10, deadline: 10 };
    let far = Sporadic { cost: 1, period: 100, deadline: 100_000 };
    assert!(bak(&[three; 3], 2).is_err());
    assert!(bak(&[three, three, three, far], 2).is_err());
    assert!(bak(&[three, far], 2).is_ok());
}

#[test]
fn easier_sets_stay_accepted() {
    // The utilization and demand tests are sustainable in execution times and in periods of tasks with the same
    // deadline; GFB and FF-DBF in deadlines as well.
    let mut random = Rng::with_seed(11);
    let mut held = 0;
    for _ in 0..4_000 {
        let m = random.u32(2..=4);
        let mut tasks = random_set(&mut random, m, 200, 0.5, true);
        let before = tasks.clone();
        let accepted = [gfb(&tasks, m).is_ok(), bcl_iterative(&tasks, m).is_ok(), guan(&tasks, m).is_ok()];
        if tasks.is_empty() {
            continue;
        }
        let which = random.usize(..tasks.len());
        tasks[which].cost = random.u64(0..=tasks[which].cost);
        let after = [gfb(&tasks, m).is_ok(), bcl_iterative(&tasks, m).is_ok(), guan(&tasks, m).is_ok()];
        for (test, (before_it, after_it)) in accepted.into_iter().zip(after).enumerate() {
            assert!(!before_it || after_it, "{test}: {before:?} {tasks:?} on {m}");
            held += u32::from(before_it);
        }
    }
    assert!(held > 2_000, "{held}");
}

/// Returns the same set with one task that demands less: a lower execution time, or a longer period with the same
/// deadline.
fn relaxed(random: &mut Rng, tasks: &[Sporadic], costs: bool) -> Vec<Sporadic> {
    let mut relaxed = tasks.to_vec();
    let task = &mut relaxed[random.usize(..tasks.len())];
    if costs {
        task.cost -= random.u64(0..=task.cost);
    } else {
        task.period += random.u64(0..=task.period);
    }
    relaxed
}

#[test]
fn tests_are_sustainable_in_costs_and_periods() {
    // Work in a window, demand, density and their fixed points never grow as an execution time falls or a period grows,
    // and a smaller execution time of the task itself leaves at least as much room. Sustainability is therefore
    // guaranteed for uniprocessor response times and processor demand, GFB, BCL in both forms, and the response times
    // of fixed priorities. It is not guaranteed for BAK and BAR, whose windows depend on the task's own density or
    // execution time; for FF-DBF, whose speeds start at the greatest density and form a grid; for RTA, which has a
    // limit on rounds; and for `edf`, which combines these.
    type Test = fn(&[Sporadic], u32) -> bool;
    let uniprocessor_fp: Test = |tasks, _| {
        let tasks: Vec<crate::uniprocessor::Task> = tasks.iter().map(|&task| task.into()).collect();
        let by_order = |(index, task)| crate::uniprocessor::Task { priority: 100 - index as u32, ..task };
        let tasks: Vec<_> = tasks.into_iter().enumerate().map(by_order).collect();
        crate::uniprocessor::fp::response_times(&tasks).is_ok()
    };
    let promised: [(&str, Test); 7] = [
        ("response times, fixed priorities", uniprocessor_fp),
        ("processor demand", |tasks, _| crate::uniprocessor::edf::schedulable(tasks, &[]).is_ok()),
        ("gfb", |tasks, m| gfb(tasks, m).is_ok()),
        ("bcl", |tasks, m| bcl(tasks, m).is_ok()),
        ("bcl_iterative", |tasks, m| bcl_iterative(tasks, m).is_ok()),
        ("bertogna_cirinei", |tasks, m| bertogna_cirinei(tasks, &[], m, CarryIn::Responses).is_ok()),
        ("guan", |tasks, m| guan(tasks, m).is_ok()),
    ];
    let mut random = Rng::with_seed(31);
    for (place, (name, test)) in promised.into_iter().enumerate() {
        for costs in [true, false] {
            let mut held = 0;
            for _ in 0..4_000 {
                let m = if place < 2 { 1 } else { random.u32(2..=4) };
                let share = 0.3 + 0.6 * random.f64();
                let tasks = random_set(&mut random, m, 60, share, true);
                if tasks.is_empty() || !test(&tasks, m) {
                    continue;
                }
                held += 1;
                let relaxed = relaxed(&mut random, &tasks, costs);
                assert!(test(&relaxed, m), "{name}, costs {costs}: {tasks:?} {relaxed:?} on {m}");
            }
            assert!(held > 200, "{name}: {held}");
        }
    }
    // Sets for which unsustainable tests fail do occur, and would be detected.
    for costs in [true, false] {
        let loses = (0..4_000).any(|_| {
            let m = random.u32(2..=4);
            let tasks = random_set(&mut random, m, 60, 0.5, true);
            !tasks.is_empty() && bak(&tasks, m).is_ok() && bak(&relaxed(&mut random, &tasks, costs), m).is_err()
        });
        assert!(loses, "BAK, costs {costs}");
    }
}
