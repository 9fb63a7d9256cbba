//! Examples of docs/errata.md in which another program is wrong:
//! the library's answer beside the answer of that program.

use lockwright_analysis::blocking::{Delay, Platform, omlp, spin};
use lockwright_analysis::global::bak;
use lockwright_analysis::uniprocessor::{Task, edf};
use lockwright_analysis::{Demand, Sharer, Sharing, Sporadic, linear};
use lockwright_vectors::{check, departure, read};
use serde_json::json;

const fn sporadic(cost: u64, period: u64, deadline: u64) -> Sporadic {
    Sporadic { cost, period, deadline }
}

/// Returns the totals of blocking.
fn totals(delays: &[Delay]) -> Vec<Option<u64>> {
    delays.iter().map(|delay| delay.total()).collect()
}

#[test]
fn bakers_test_differs_from_native_both_ways() {
    // With β = 1 for tasks whose deadline is beyond their period, and λ = C/D of the analysed task.
    let native = |tasks: &[Sporadic], m: i128| {
        tasks.iter().all(|k| {
            let (cost, due) = (i128::from(k.cost), i128::from(k.deadline));
            // The term for C > λ T changes none of these verdicts.
            let sum: f64 = tasks
                .iter()
                .map(|task| if task.deadline > task.period { 1.0 } else { task.cost as f64 / task.period as f64 })
                .sum();
            sum * due as f64 <= (m * due - (m - 1) * cost) as f64
        })
    };
    let pair = [sporadic(4_459, 26_939, 39_608), sporadic(3_662, 3_699, 10_776)];
    assert!(native(&pair, 4) && bak(&pair, 4).is_err());
    // The deadlines are met, because each task has a processor for itself.
    assert!(pair.len() <= 4 && pair.iter().all(|task| task.cost <= task.period.min(task.deadline)));
    let far = [sporadic(6, 10, 10), sporadic(1, 100, 100_000)];
    assert!(!native(&far, 2) && bak(&far, 2).is_ok());
}

/// Returns the longest response of each task under EDF over all
/// offsets. Among equal deadlines, the other tasks execute first.
fn enumerated(tasks: &[Sporadic]) -> Vec<u64> {
    let longest = |i: usize| {
        let mut longest = 0;
        let offsets: u64 = tasks.iter().map(|task| task.period).product();
        for code in 0..offsets {
            let mut code = code;
            // The next arrivals, and the remaining work of the jobs that have arrived: (deadline, own, arrival, work).
            let mut next: Vec<u64> = Vec::new();
            for task in tasks {
                next.push(code % task.period);
                code /= task.period;
            }
            let mut jobs: Vec<(u64, bool, u64, u64)> = Vec::new();
            for now in 0..72 {
                for (x, task) in tasks.iter().enumerate() {
                    if next[x] == now {
                        jobs.push((now + task.deadline, x == i, now, task.cost));
                        next[x] += task.period;
                    }
                }
                let first = (0..jobs.len()).min_by_key(|&job| (jobs[job].0, jobs[job].1, jobs[job].2));
                if let Some(first) = first {
                    jobs[first].3 -= 1;
                    if jobs[first].3 == 0 {
                        let (_, own, arrival, _) = jobs.remove(first);
                        if own {
                            longest = (now + 1 - arrival).max(longest);
                        }
                    }
                }
            }
        }
        longest
    };
    (0..tasks.len()).map(longest).collect()
}

/// SchedCAT's `gy_rta.exact_wcrt` answers 1, 10, 7.
#[test]
fn exact_response_times_under_edf() {
    let tasks = [sporadic(1, 3, 3), sporadic(4, 24, 24), sporadic(2, 24, 24)];
    let all: Vec<Task> = tasks.iter().copied().map(Task::from).collect();
    assert_eq!(edf::response_times(&all), Ok(vec![1, 9, 9]));
    assert_eq!(enumerated(&tasks), [1, 9, 9]);
}

fn sharer(cluster: u16, priority: u32, requests: Vec<Demand>) -> Sharer {
    Sharer { cost: 100, period: 100, deadline: 100, response: 100, priority, cluster, requests }
}

fn of(count: u32, length: u64) -> Vec<Demand> {
    if count == 0 { Vec::new() } else { vec![Demand { resource: 0, count, length }] }
}

/// SchedCAT's `task_fair_rw_bounds` answers 10 and 11, and 200 and 314. For a mutex, it lets the second task also wait
/// for its own request of 5, or 100, which gives more than the 11, or 314, of its analysis of readers. Without that,
/// the task waits for one request of the first task, of at most 9, or 232.
#[test]
fn a_reader_does_not_wait_for_itself() {
    let platform = Platform { clusters: 2, processors: 2, interrupts: None };
    for (writes, reads, own, bounds) in [(2, 9, 5, [10, 9]), (82, 232, 100, [200, 232])] {
        let set = spin::ReadersWriters {
            tasks: vec![sharer(0, 2, of(3, writes)), sharer(1, 1, Vec::new())],
            reads: vec![of(2, reads), of(1, own)],
        };
        assert_eq!(totals(&spin::task_fair(&set, platform).expect("a bound")), bounds.map(Some));
    }
}

/// SchedCAT's `clustered_omlp_bounds` answers 60 for the first task. A request of the second task, which waits for 30
/// and is 10 long, delays it.
#[test]
fn a_span_leaves_out_the_interrupt_processor() {
    let task = |cluster, priority, count, length| Sharer {
        period: 1_000,
        deadline: 1_000,
        response: 1_000,
        ..sharer(cluster, priority, of(count, length))
    };
    let set =
        |count| Sharing { tasks: vec![task(0, 4, 0, 0), task(0, 3, count, 10), task(1, 2, 5, 20), task(1, 1, 5, 30)] };
    let platform = Platform { clusters: 2, processors: 2, interrupts: Some(1) };
    // Whether it makes one request or two, one of its requests takes the same time.
    for (count, second) in [(1, 30), (2, 60)] {
        let delays = omlp::clustered(&set(count), platform).expect("a bound");
        assert_eq!((delays[0].arrival, delays[0].total()), (40, Some(40)), "{count}: {delays:?}");
        assert_eq!(delays[1].total(), Some(second), "{count}: {delays:?}");
    }
}

/// SchedCAT's `lp_mpcp_bounds` answers 2, 4 and 1. It leaves the wait for resource 1 at 0 because it would exceed the
/// response time, and so takes 4, the wait for resource 0, as the whole remote delay. If it found that this wait has
/// no bound, it would use −1 without its sign and get 3.
#[test]
fn a_wait_without_bound_limits_nothing() {
    let task = |priority, response, requests: serde_json::Value| json!({ "period": 100, "deadline": 100, "cost": 1, "priority": priority, "cluster": priority, "response": response, "requests": requests });
    let request = |resource, count, length| json!({ "resource": resource, "count": count, "length": length });
    let bound = |remote| json!({ "total": remote, "total_count": 0, "remote": remote, "local": 0, "arrival": 0 });
    let file = |bounds: [u64; 3]| {
        let tasks = [
            task(0, 100, json!([request(1, 10, 10)])),
            task(1, 60, json!([request(0, 1, 1), request(1, 1, 1)])),
            task(2, 50, json!([request(0, 1, 4)])),
        ];
        let input = json!({ "tasks": tasks, "params": {} });
        let vector = json!({
            "id": "unbounded", "analysis": "blocking.mpcp.lp_rtas13", "input": input,
            "expected": { "per_task": bounds.map(bound) },
        });
        read(&json!({ "schema": "rt-analysis-vectors/1", "vectors": [vector] }).to_string())
            .expect("an example")
            .remove(0)
    };
    // Ten sections of 10 in each of two jobs, and one of 4.
    let sharing = Sharing {
        tasks: vec![
            Sharer { response: 100, priority: 2, ..sharer(0, 2, vec![Demand { resource: 1, count: 10, length: 10 }]) },
            Sharer {
                response: 60,
                priority: 1,
                ..sharer(1, 1, [of(1, 1), vec![Demand { resource: 1, count: 1, length: 1 }]].concat())
            },
            Sharer { response: 50, priority: 0, ..sharer(2, 0, of(1, 4)) },
        ],
    };
    let remote: Vec<u64> = linear::mpcp(&sharing).expect("bounds").iter().map(|bound| bound.remote).collect();
    assert_eq!(remote, [2, 204, 1]);
    // The defect explains the answer of the source, and no other
    // expectation. It does not excuse the same answer of the library.
    assert_eq!(check(&file([2, 4, 1])), Ok(None));
    assert!(departure(&file([2, 4, 1])).expect("an analysis").is_some());
    assert_eq!(check(&file([2, 204, 1])), Ok(None));
    for other in [0, 6, 104] {
        assert!(matches!(check(&file([2, other, 1])), Ok(Some(_))), "{other}");
    }
}

/// Returns a task of an example: period, cost and response, and requests as resource, count and length.
fn listed(of: [u64; 3], priority: u64, cluster: u64, requests: &[[u64; 3]]) -> serde_json::Value {
    let request =
        |&[resource, count, length]: &[u64; 3]| json!({ "resource": resource, "count": count, "length": length });
    let requests: Vec<_> = requests.iter().map(request).collect();
    let [period, cost, response] = of;
    json!({
        "period": period, "deadline": period, "cost": cost, "priority": priority, "cluster": cluster,
        "response": response, "requests": requests,
    })
}

/// Asserts that the source answers `published` because of its known defect, and that `right` is correct. No other
/// answer is accepted as one of the source.
fn departs(
    analysis: &str,
    params: &serde_json::Value,
    intervals: u64,
    tasks: &[serde_json::Value],
    published: &[u64],
    right: &[u64],
) {
    let file = |totals: &[u64]| {
        let bound =
            |total: &u64| json!({ "total": total, "total_count": intervals, "remote": 0, "local": 0, "arrival": 0 });
        let bounds: Vec<_> = totals.iter().map(bound).collect();
        let input = json!({ "tasks": tasks, "params": params });
        let vector =
            json!({ "id": "departs", "analysis": analysis, "input": input, "expected": { "per_task": bounds } });
        read(&json!({ "schema": "rt-analysis-vectors/1", "vectors": [vector] }).to_string())
            .expect("an example")
            .remove(0)
    };
    assert_eq!(check(&file(published)), Ok(None));
    assert_eq!(check(&file(right)), Ok(None));
    assert!(departure(&file(right)).expect("an analysis").is_none());
    let (_, corrected) = departure(&file(published)).expect("an analysis").expect("a departure");
    assert_eq!(corrected, file(right).expected);
    let between: Vec<u64> = published.iter().zip(right).map(|(published, right)| (published + right) / 2).collect();
    let beyond: Vec<u64> = published.iter().map(|published| published + 2).collect();
    for other in [between, beyond] {
        assert!(matches!(check(&file(&other)), Ok(Some(_))), "{other:?}");
    }
}

/// SchedCAT's `lp_pfp_unordered_spinlock_bounds` answers 1, 10 and 1. The second task waits for at most 8: 5 of the
/// third, 2 of the first, and 1. SchedCAT starts with 23, which is 5 plus all execution of the first task in 90, and
/// descends to 15, in which the third task can make two requests.
#[test]
fn a_wait_for_a_preemptable_lock_is_the_least_one() {
    let tasks = [
        listed([10, 2, 2], 0, 0, &[]),
        listed([100, 10, 90], 1, 0, &[[0, 1, 1]]),
        listed([20, 6, 10], 2, 1, &[[0, 1, 5]]),
    ];
    let params = json!({ "preemptable_spinning": true });
    departs("blocking.spin.unordered.lp_rtss13", &params, 0, &tasks, &[1, 10, 1], &[1, 5, 1]);
}

/// SchedCAT's `lp_prsb_bounds` answers 63 for the first task. Its one request for resource 0 waits for one request of
/// the fourth task, so the second task delays it indirectly by one section of 10. But the wait for resource 1, which
/// the first task never requests, can exceed its deadline, and SchedCAT then does not limit the indirect delay.
#[test]
fn a_wait_for_an_unused_resource_does_not_matter() {
    let tasks = [
        listed([35, 1, 35], 0, 0, &[[0, 1, 1]]),
        listed([100, 40, 60], 1, 0, &[[1, 3, 10]]),
        listed([100, 50, 100], 2, 0, &[]),
        listed([100, 36, 60], 3, 0, &[[0, 5, 1], [2, 1, 30]]),
    ];
    let params = json!({ "num_cpus": 2 });
    departs("response.global_prsb.lp", &params, 1, &tasks, &[63, 37, 62, 43], &[45, 37, 62, 43]);
}
