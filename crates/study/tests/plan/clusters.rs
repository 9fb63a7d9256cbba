//! Studies of systems whose clusters have several processors.

use lockwright_analysis::schedulable;
use lockwright_model::{Overheads, Protocol, Scheduler};
use lockwright_study::experiment::{Experiment, Tally};
use lockwright_study::plan::{Plan, parse_generator, parse_plan};

const GENERATOR: &str = "[generator]\ncpus = 4\ntasks = 12\nload = 0.35\n";
const SECTIONS: &str = "[sections]\naccesses = 2\nlengths = \"long\"\n";

fn read(text: &str) -> Result<Plan, String> {
    parse_plan(text, &mut |_| Ok(Overheads::default())).map_err(|faults| {
        faults.iter().map(|fault| format!("{}; {}", fault.message, fault.help.as_deref().unwrap_or_default())).collect()
    })
}

#[test]
fn clusters_of_every_size_are_judged() {
    let methods = "[[method]]\nscheduler = \"c-fp\"\nprotocols = [\"omlp\"]\n[[method]]\nscheduler = \"g-edf\"\n\
                   protocols = [\"fmlp_short\"]\n";
    let head = "seed = 3\nsamples = 60\n";
    let plan = read(&format!("{head}{GENERATOR}{SECTIONS}[vary]\ncluster = [1, 2, 4]\n{methods}")).expect("a study");
    let (mut accepted, mut global) = (Vec::new(), Vec::new());
    for (cell, size) in [1, 2, 4].into_iter().enumerate() {
        let mut tallies = [Tally::default(); 2];
        let text = GENERATOR.replace("tasks", &format!("cluster = {size}\ntasks")) + SECTIONS;
        let generator = parse_generator(&text).expect("a generator");
        let mut expected = 0;
        for sample in 0..60 {
            plan.judge(cell)(sample, &mut tallies).expect("it is drawn");
            let system = generator.draw(3, sample).expect("it is drawn");
            assert_eq!(system.scheduler(), if size > 1 { Scheduler::CFp } else { Scheduler::PFp });
            expected += u64::from(schedulable(&system, Protocol::Omlp));
        }
        assert_eq!((tallies[0].samples, tallies[0].accepted), (60, expected), "clusters of {size}");
        global.push(tallies[1].accepted);
        accepted.push(expected);
    }
    // Negative control: the sizes matter.
    assert!(global[0] > 0 && global.iter().all(|&count| count == global[0]), "the tasks are the same: {global:?}");
    assert!(accepted.iter().all(|&count| count > 0) && accepted[0] != accepted[2], "{accepted:?}");
}

#[test]
fn cells_without_clusters_have_the_systems_of_before() {
    let draw = |text: &str| parse_generator(text).expect("a generator").draw(1, 0).expect("it is drawn");
    let (plain, pairs) = (draw(GENERATOR), draw(&GENERATOR.replace("tasks", "cluster = 2\ntasks")));
    assert!(!plain.has_clusters() && pairs.has_clusters());
    // Existing studies keep their systems.
    assert_eq!((plain.tasks()[0].period.as_ns(), plain.tasks()[0].wcet.as_ns()), (21_627_037, 1_596_182));
}

#[test]
fn what_clusters_do_not_support_is_refused() {
    let refusal = |cluster: &str, method: &str| {
        let generator = GENERATOR.replace("tasks", &format!("{cluster}\ntasks"));
        read(&format!("samples = 1\n{generator}{SECTIONS}[[method]]\n{method}\n")).err().unwrap_or_default()
    };
    let omlp = "scheduler = \"c-fp\"\nprotocols = [\"omlp\"]";
    assert_eq!(refusal("cluster = 2", omlp), "");
    for (cluster, method, message) in [
        ("cluster = 3", omlp, "4 CPUs cannot be divided into clusters of 3"),
        ("cluster = 0", omlp, "the number of CPUs of a cluster"),
        ("cluster = 2", "protocols = [\"omlp\"]", "under `p-fp` each task has one CPU, and clusters have 2 here"),
        ("cluster = 2", "scheduler = \"p-edf\"", "under `p-edf` each task has one CPU"),
        ("cluster = 2", "scheduler = \"c-fp\"\nprotocols = [\"mpcp\"]", "protocol of studies under c-fp"),
        ("cluster = 2", "scheduler = \"c-fp\"", "add protocols = [\"omlp\"]"),
    ] {
        let found = refusal(cluster, method);
        assert!(found.contains(message), "{cluster}, {method}: {found}");
    }
}
