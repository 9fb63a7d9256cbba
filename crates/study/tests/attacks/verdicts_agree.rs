//! `schedulable` ends early where it can, with the verdict of `analyse`.

use fastrand::Rng;
use lockwright_analysis::{analyse, schedulable};
use lockwright_model::format::write_system;
use lockwright_model::{Duration, Protocol};
use lockwright_study::{Shape, generate, generate_clusters};

#[test]
fn the_early_verdict_is_that_of_the_bounds() {
    let sets = crate::attacked::sets(20_000);
    let small = Shape { utilization: (5, 80), ..Shape::small() };
    let usual = Shape { utilization: (10, 80), jitter: 20, ..Shape::usual(4, 16, 6) };
    for protocol in Protocol::ALL {
        let (mut accepted, mut refused, mut at_deadlines) = (0, 0, 0);
        for seed in 0..sets {
            let mut random = Rng::with_seed(seed);
            let system = match seed % 4 {
                0 => generate(&mut random, &small),
                1 => generate(&mut random, &Shape { nested: 0, jitter: 0, ..small.clone() }),
                2 => generate_clusters(&mut random, &Shape { nested: 0, own_ceiling: 0, ..small.clone() }, &[2, 1]),
                _ => generate(&mut random, &usual),
            };
            let analysis = analyse(&system, protocol);
            let verdict = analysis.schedulable();
            assert_eq!(schedulable(&system, protocol), verdict, "{protocol}\n{}", write_system(&system));
            *if verdict { &mut accepted } else { &mut refused } += 1;
            // A response time that is exactly the deadline is the edge of the early verdict.
            let mut bounds = system.tasks().iter().zip(&analysis.tasks);
            at_deadlines += u64::from(bounds.any(|(task, bound)| {
                bound.response == Some(task.deadline) && task.wcet + Duration::from_ns(1) < task.deadline
            }));
        }
        println!("{protocol}: {accepted} accepted, {refused} refused, {at_deadlines} with a task at its deadline");
        assert!(accepted > sets / 50 && refused > sets / 50, "{protocol}: {accepted} accepted, {refused} refused");
    }
}
