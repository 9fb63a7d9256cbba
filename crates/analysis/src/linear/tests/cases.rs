//! Single systems: details in which the bounds differ from a source, and invalid input.

use super::*;

fn task(cost: u64, period: u64, priority: u32, cluster: u16, count: u32, length: u64) -> Sharer {
    let requests = vec![Demand { resource: 0, count, length }];
    Sharer { cost, period, deadline: period, response: period, priority, cluster, requests }
}

#[test]
fn a_wait_that_starts_at_one_unit_goes_on() {
    // An iteration that starts at 1 stops there if the section of lower priority is 1. The source then returns 1.
    let with = |lower| {
        let mut tasks: Vec<Sharer> =
            (1..4).map(|cluster| task(3, 15, 10 - u32::from(cluster), cluster, 1, 3)).collect();
        tasks.push(task(1, 1000, 1, 0, 1, 1));
        tasks.push(task(lower, 1000, 0, 4, 1, lower));
        let bounds = mpcp(&Sharing { tasks }).unwrap();
        bounds[3].remote
    };
    assert_eq!(with(2), with(1) + 1);
    assert!(with(1) > 3 * 3);
}

#[test]
fn a_wait_is_not_cut_short_by_the_response_time() {
    // A section of 50 and two sections of 30, of higher priority, can precede the request, whatever response time was
    // assumed.
    let mut tasks = vec![task(60, 1000, 9, 1, 2, 30), task(10, 500, 5, 0, 1, 1), task(50, 1000, 1, 2, 1, 50)];
    tasks[0].response = 60;
    tasks[1].response = 60;
    assert_eq!(mpcp(&Sharing { tasks }).unwrap()[1].remote, 110);
}

#[test]
fn a_section_that_preempts_an_owner_of_the_own_processor_delays() {
    // The first task waits for resource 0 behind the second one, of its processor, with four sections before it. Each
    // of these can be preempted by a section of the third task for resource 1, whose ceiling is higher.
    let user = |priority, cluster, requests: &[(u16, u32, u64)]| {
        let demand = |&(resource, count, length): &(u16, u32, u64)| Demand { resource, count, length };
        let requests: Vec<Demand> = requests.iter().map(demand).collect();
        Sharer { cost: 1, period: 10_000, deadline: 10_000, response: 600, priority, cluster, requests }
    };
    let sharing = |ceiling| Sharing {
        tasks: vec![
            user(2, 0, &[(0, 1, 1)]),
            user(4, 0, &[(0, 4, 1)]),
            user(1, 0, &[(1, 9, 100)]),
            user(3, 1, &[(0, 5, 4)]),
            user(ceiling, 1, &[(1, 1, 1)]),
        ],
    };
    // At the arrival and the resumption, and before each of the four.
    let blocked = mpcp(&sharing(5)).unwrap()[0];
    assert_eq!(blocked.local, 2 * 100);
    assert_eq!(blocked.remote, mpcp(&sharing(1)).unwrap()[0].remote + 4 * 100);
}

#[test]
fn with_more_users_than_the_queue_holds_a_local_task_precedes_twice() {
    let local = |users| Sharing { tasks: (0..users).map(|priority| task(1, 100, priority, 0, 1, 7)).collect() };
    assert_eq!(omip(&local(2), 2, 1).unwrap()[0], 7);
    // Three requests in total, of two processors.
    assert_eq!(omip(&local(3), 2, 1).unwrap()[0], 3 * 7);
}

#[test]
fn tasks_of_equal_priority_interfere() {
    let mut tasks = vec![task(3, 20, 1, 0, 1, 0), task(4, 20, 1, 0, 1, 0)];
    tasks.iter_mut().for_each(|task| task.requests.clear());
    assert_eq!(responses(&Sharing { tasks }, Locking::FmlpPlus).unwrap().responses, [7, 7]);
}

#[test]
fn a_loop_that_delays_at_the_start_can_be_repeated() {
    // Other tasks commit up to four times while the loop executes.
    let at = |cluster, deadline, requests| Sharer {
        cost: 3,
        period: deadline,
        deadline,
        cluster,
        requests,
        ..Sharer::default()
    };
    let object = |count, length| vec![Demand { resource: 0, count, length }];
    let set =
        |deadline| Sharing { tasks: vec![at(0, deadline, vec![]), at(0, 200, object(1, 3)), at(1, 50, object(2, 1))] };
    assert_eq!(p_edf(&set(18), Edf::LockFree), Ok(()));
    assert_eq!(p_edf(&set(17), Edf::LockFree), Err(Failure::Demand { interval: 17, demand: 18 }));
}

#[test]
fn a_local_section_of_a_later_deadline_delays_its_other_user() {
    // The source excludes a resource whose ceiling is the level of the only task that is due.
    let at = |deadline, requests| Sharer { cost: 6, period: 100, deadline, requests, ..Sharer::default() };
    let local = |length| vec![Demand { resource: 0, count: 1, length }];
    let set = |length| Sharing { tasks: vec![at(10, local(1)), at(100, local(length))] };
    assert_eq!(p_edf(&set(4), Edf::Msrp), Ok(()));
    assert_eq!(p_edf(&set(5), Edf::Msrp), Err(Failure::Demand { interval: 10, demand: 11 }));
}

#[test]
fn invalid_input_is_an_error() {
    let empty = Sharing::default();
    assert_eq!(mpcp(&empty), Ok(vec![]));
    assert_eq!(dpcp(&empty, &[]), Ok(vec![]));
    assert_eq!(p_edf(&empty, Edf::Msrp), Ok(()));
    assert_eq!(global(&empty, 2, Global::Pip), Ok(vec![]));
    assert_eq!(responses(&empty, Locking::Mpcp).unwrap().rounds, 1);

    let zero = Sharing { tasks: vec![task(1, 0, 1, 0, 1, 1)] };
    let unsupported = Err(Failure::Unsupported { task: 0, what: "its period is 0" });
    assert_eq!(mpcp(&zero), unsupported);
    assert_eq!(dflp(&zero, &[0]), unsupported);
    assert_eq!(p_edf(&zero, Edf::Msrp).map(|()| vec![]), unsupported);

    let nowhere = Sharing { tasks: vec![task(1, 9, 1, 0, 1, 1)] };
    assert!(matches!(dpcp(&nowhere, &[]), Err(Failure::Unsupported { task: 0, .. })));

    let huge =
        Sharing { tasks: vec![task(1, u64::MAX, 1, 0, 1, u64::MAX), task(1, u64::MAX, 2, 1, u32::MAX, u64::MAX)] };
    for bound in [mpcp(&huge), fmlp_plus(&huge), dflp(&huge, &[0]), dpcp(&huge, &[1])] {
        assert_eq!(bound, Err(Failure::Overflow));
    }
    assert_eq!(spin_fifo(&huge), Err(Failure::Overflow));
    assert_eq!(global(&huge, 2, Global::FmlpPlus), Err(Failure::Overflow));
    assert!(responses(&huge, Locking::SpinFifo).is_err());

    let late = Sharing { tasks: vec![task(5, 9, 2, 0, 1, 1), task(5, 9, 1, 0, 1, 1)] };
    assert!(matches!(responses(&late, Locking::FmlpPlus), Err(Failure::Late { task: 1, .. })));
    let over = Sharing { tasks: vec![task(5, 9, 2, 0, 1, 1), task(5, 9, 1, 0, 1, 1)] };
    assert!(p_edf(&over, Edf::SpinFifoPreemptable).is_err());
}
