//! Every explanation of a bound sums to it, for random systems under every protocol.

use fastrand::Rng;
use lockwright_analysis::{Cause, analyse, explain};
use lockwright_model::format::write_system;
use lockwright_model::{Duration, Protocol};
use lockwright_study::{Shape, generate};

#[test]
fn terms_sum_to_the_response() {
    let mut waited = [0; Protocol::ALL.len()];
    let mut unnamed = Vec::new();
    for seed in 0..1_000 {
        let shape = Shape { utilization: (10, 60), nested: 5, ..Shape::small() };
        let system = generate(&mut Rng::with_seed(seed), &shape);
        for (protocol, waited) in Protocol::ALL.into_iter().zip(&mut waited) {
            let analysis = analyse(&system, protocol);
            for id in system.task_ids() {
                let terms = explain(&system, &analysis, id);
                let waits = |cause| matches!(cause, Cause::Waiting | Cause::Holder | Cause::Urgent);
                *waited += u64::from(terms.iter().any(|term| waits(term.cause)));
                let Some(response) = analysis.task(id).response else { continue };
                let sum: Duration = terms.iter().map(|term| term.total).sum();
                let name = &system.task(id).name;
                assert_eq!(sum, response, "{name} under {protocol}, {terms:#?}\n{}", write_system(&system));
                let named = |cause| terms.iter().all(|term| term.cause != cause || term.by.is_some());
                for cause in [Cause::Waiting, Cause::Boosted] {
                    if !named(cause) && !unnamed.contains(&(protocol, cause)) {
                        unnamed.push((protocol, cause));
                    }
                }
                for term in &terms {
                    assert_eq!(term.each.checked_mul(term.count), Some(term.total), "{term:?}");
                }
            }
        }
    }
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
        );
        assert_eq!(waited > 200, across, "{waited} explained waits under {protocol}");
    }
    // Who delays a job, how often and on which resource, is said everywhere else.
    unnamed.sort_by_key(|(protocol, _)| *protocol);
    assert_eq!(unnamed, [(Protocol::MpcpVs, Cause::Waiting), (Protocol::FmlpLong, Cause::Waiting)]);
}
