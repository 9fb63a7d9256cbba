//! Bounds that continue against bounds from the beginning.

use super::*;
use crate::blocking::fmlp_long::tests::drawn;
use crate::rows::mutant::Omission;
use crate::rows::sharing::sharing_of;
use fastrand::Rng;
use lockwright_model::{Duration, Protocol, Step, System};

/// Returns the tables of the system and its requests under `lock_free`.
fn tables(system: &System) -> (Tables<'_>, Sharing) {
    let tables = Tables::new(system, Protocol::LockFree, Omission::NOTHING);
    let sharing = sharing_of(system, |demand| tables.protocols[usize::from(demand.resource)] == Protocol::LockFree);
    (tables, sharing)
}

/// Lengthens or shortens the execution of a task.
fn change(random: &mut Rng, system: &mut System, id: TaskId, unit: u64) {
    let mut body = system.task(id).body.clone();
    for step in &mut body {
        if let Step::Run(time) = step {
            let longer = time.as_ns() + random.u64(1..4) * unit;
            *time = Duration::from_ns((longer - random.u64(0..2) * unit).max(unit));
        }
    }
    system.set_body(id, body).expect("a valid body");
}

/// Whatever was known, and whether execution times and response times grow or shrink.
#[test]
fn continued_bounds_are_those_from_the_beginning() {
    let mut random = Rng::with_seed(6);
    let (mut kept_delays, mut other_delays) = (0, 0);
    for round in 0..1_500 {
        let unit = if round % 3 == 0 { 1 << 26 } else { 1 };
        let mut system = drawn(&mut random, unit);
        let (first, sharing) = tables(&system);
        let mut bounds = LockFree::new(&first, &sharing);
        let count = system.tasks().len();
        // Jobs that last longer than one of their operations have more failures in the job than in the operations.
        let long = random.u64(1..400);
        let mut late = |task: &lockwright_model::Task| task.wcet.as_ns() + random.u64(..long) * unit;
        let mut responses: Vec<u64> = system.tasks().iter().map(&mut late).collect();
        let mut delays = vec![Delay::default(); count];
        // The response times for which the delays are known.
        let mut last: Option<Vec<u64>> = None;
        let mut known: Vec<(Known, Vec<u64>, Vec<Delay>)> = Vec::new();
        for step in 0..20 {
            if random.bool() {
                let id = TaskId::new(random.usize(..count));
                change(&mut random, &mut system, id, unit);
                bounds.set_tasks(&tables(&system).1, &[id]);
                last = None;
                if random.bool()
                    && let Some((known, then, its)) = known.get(random.usize(..known.len().max(1)))
                {
                    bounds.recall(known);
                    responses.clone_from(then);
                    delays.clone_from(its);
                    last = Some(then.clone());
                }
            }
            for response in &mut responses {
                match random.u8(..8) {
                    0 => *response += random.u64(1..40) * unit,
                    1 if step % 4 == 0 => *response = (*response / 2).max(1),
                    _ => {}
                }
            }
            bounds.set_responses(&responses).expect("short times");
            let mut marked = vec![last.is_none(); count];
            if let Some(last) = &last {
                bounds.mark_changed(last, &mut marked);
            }
            bounds.delays_again(&mut marked, &mut delays).expect("short times");
            kept_delays += marked.iter().filter(|&&marked| !marked).count();
            let (anew, sharing) = tables(&system);
            let mut anew = LockFree::new(&anew, &sharing);
            anew.set_responses(&responses).expect("short times");
            let mut expected = vec![Delay::default(); count];
            anew.delays(&mut expected).expect("short times");
            assert_eq!(delays, expected, "{round}, {step}: {responses:?} in {system:?}");
            other_delays += expected.iter().filter(|delay| delay.remote > Some(0)).count();
            last = Some(responses.clone());
            known.push((bounds.known().clone(), responses.clone(), delays.clone()));
        }
    }
    assert!(kept_delays > 10_000 && other_delays > 10_000, "{kept_delays}, {other_delays}");
}
