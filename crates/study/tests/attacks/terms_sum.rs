//! The terms of every explanation sum to the bound, for random systems under every protocol.

use fastrand::Rng;
use lockwright_analysis::{Cause, Proof, analyse, best, explain};
use lockwright_model::format::write_system;
use lockwright_model::{Duration, Protocol, System, TaskId};
use lockwright_study::{Shape, generate};
use std::collections::BTreeMap;

#[test]
fn terms_sum_to_the_response() {
    let mut waited = [0; Protocol::ALL.len()];
    let mut unnamed = Vec::new();
    let mut lowered = 0;
    for seed in 0..1_000 {
        let shape = Shape { utilization: (10, 60), nested: 5, ..Shape::small() };
        let exclusive = generate(&mut Rng::with_seed(seed), &shape);
        let shared = generate(&mut Rng::with_seed(seed), &Shape { reads: 50, ..shape });
        for (protocol, waited) in Protocol::ALL.into_iter().zip(&mut waited) {
            let system = if protocol.has_readers() { &shared } else { &exclusive };
            let analysis = if seed % 2 == 0 { analyse(system, protocol) } else { best(system, protocol).0 };
            lowered += analysis.tasks.iter().filter(|bound| bound.proof == Proof::Program).count();
            for id in system.task_ids() {
                let terms = explain(system, &analysis, id);
                let waits = |cause| matches!(cause, Cause::Waiting | Cause::Holder | Cause::Urgent);
                *waited += u64::from(terms.iter().any(|term| waits(term.cause)));
                let Some(response) = analysis.task(id).response else { continue };
                let sum: Duration = terms.iter().map(|term| term.total).sum();
                let name = &system.task(id).name;
                assert_eq!(sum, response, "{name} under {protocol}, {terms:#?}\n{}", write_system(system));
                let named = |cause| terms.iter().all(|term| term.cause != cause || term.by.is_some());
                for cause in [Cause::Waiting, Cause::Boosted] {
                    // A program's sum may be cut to the longest time that its requests can wait at all.
                    let is_cut = analysis.task(id).proof == Proof::Program && protocol == Protocol::Mpcp;
                    if !is_cut && !named(cause) && !unnamed.contains(&(protocol, cause)) {
                        unnamed.push((protocol, cause));
                    }
                }
                for term in &terms {
                    assert_eq!(term.each.checked_mul(term.count), Some(term.total), "{term:?}");
                }
            }
        }
    }
    assert!(lowered > 500, "{lowered} bounds by programs");
    for (protocol, waited) in Protocol::ALL.into_iter().zip(waited) {
        let across = !matches!(
            protocol,
            Protocol::None
                | Protocol::Pip
                | Protocol::Icpp
                | Protocol::Pcp
                | Protocol::Srp
                | Protocol::Ics
                | Protocol::IcsLock
                | Protocol::WaitFree
        );
        assert_eq!(waited > 200, across, "{waited} explained waits under {protocol}");
    }
    // Everywhere else the explanation names the delaying task, the count and the resource.
    unnamed.sort_by_key(|(protocol, _)| *protocol);
    let expected =
        [Protocol::MpcpVs, Protocol::FmlpLong, Protocol::LockFree].map(|protocol| (protocol, Cause::Waiting));
    assert_eq!(unnamed, expected);
}

/// Returns the execution that a job of `h` makes restart while `i`
/// is delayed, as in `blocking/ics.rs` but computed independently.
fn again(system: &System, protocol: Protocol, h: TaskId, i: TaskId) -> Duration {
    let priority = |id: TaskId| system.task(id).priority;
    let (mut by_resource, mut by_task) = (BTreeMap::new(), BTreeMap::new());
    for k in system.task_ids() {
        for request in system.requests(k) {
            let resource = request.resource;
            let locks = |id| match system.protocol_of(resource, protocol) {
                Protocol::Ics => false,
                Protocol::IcsLock => priority(id) < system.cutoff(resource),
                _ => true,
            };
            let ceiling = system.locked_ceiling(resource);
            let whose = match k {
                _ if locks(h) || !system.users(resource).contains(&h) => continue,
                k if priority(i) <= priority(k) && priority(k) < priority(h) => Some(k),
                k if priority(k) < priority(i) && locks(k) && ceiling >= Some(priority(i)) => None,
                _ => continue,
            };
            let of_resource: &mut Duration = by_resource.entry(resource).or_default();
            *of_resource = request.length.max(*of_resource);
            let of_task: &mut Duration = by_task.entry(whose).or_default();
            *of_task = request.length.max(*of_task);
        }
    }
    by_resource.into_values().sum::<Duration>().min(by_task.into_values().sum())
}

#[test]
fn explained_restarts_match_an_independent_computation() {
    let own_protocol = (40, vec![Protocol::Ics, Protocol::IcsLock, Protocol::Icpp]);
    let shape = Shape {
        cpus: (1, 1),
        tasks: (2, 12),
        sections: (0, 5),
        resources: (1, 6),
        period: (100, 2_000),
        utilization: (10, 50),
        nested: 0,
        cutoff: 60,
        own_protocol,
        ..Shape::small()
    };
    let mut several = 0;
    for seed in 0..2_000 {
        let system = generate(&mut Rng::with_seed(seed), &shape);
        for protocol in [Protocol::Ics, Protocol::IcsLock] {
            let analysis = analyse(&system, protocol);
            for id in system.task_ids().filter(|&id| analysis.task(id).response.is_some()) {
                let terms = explain(&system, &analysis, id);
                let sum: Duration = terms.iter().map(|term| term.total).sum();
                assert_eq!(Some(sum), analysis.task(id).response, "{protocol}, seed {seed}: {terms:#?}");
                for h in system.task_ids().filter(|&h| h != id && system.task(h).priority >= system.task(id).priority) {
                    let told = terms.iter().filter(|term| term.cause == Cause::Again && term.by == Some(h));
                    let each: Vec<Duration> = told.map(|term| term.each).collect();
                    several += u64::from(each.len() > 1);
                    let expected = again(&system, protocol, h, id);
                    assert_eq!(each.into_iter().sum::<Duration>(), expected, "{protocol}, seed {seed}: {terms:#?}");
                }
            }
        }
    }
    assert!(several > 1_000, "{several} with several sections");
}
