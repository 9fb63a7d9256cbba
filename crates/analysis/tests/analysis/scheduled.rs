//! Systems under other schedulers, among them some that were once accepted although a schedule misses a deadline.

use lockwright_analysis::{
    Failure, Growth, Untested, analyse, best_scheduled, charge, charge_by_deadline, explain_demand, scheduled,
    sensitivity,
};
use lockwright_model::format::{parse_overheads, parse_system};
use lockwright_model::{Duration, Overheads, Protocol, Scheduler, Step, System, TaskId};

fn system(text: &str) -> System {
    parse_system(text).expect("the task set is valid")
}

/// A section of 10 ms takes 11.1 ms with ticks, and a task that waits for it executes for 1 ms.
#[test]
fn sections_hold_their_interrupts_under_edf() {
    let text = |deadline: &str| {
        format!(
            "[platform]\nscheduler = \"p-edf\"\n[[resource]]\nname = \"r\"\n\
             [[task]]\nname = \"i\"\nperiod = \"{deadline}\"\nwcet = \"1 ms\"\nrequests = [{{ resource = \"r\", length = \"1 us\" }}]\n\
             [[task]]\nname = \"j\"\nperiod = \"100 ms\"\nwcet = \"10 ms\"\nrequests = [{{ resource = \"r\", length = \"10 ms\" }}]\n"
        )
    };
    let ticks = parse_overheads("tick = \"100 us\"\ntick_period = \"1 ms\"").unwrap();
    assert!(scheduled(&system(&text("11.5 ms")), &Overheads::default()).unwrap().schedulable);
    assert!(!scheduled(&system(&text("11.5 ms")), &ticks).unwrap().schedulable);
    assert!(scheduled(&system(&text("13 ms")), &ticks).unwrap().schedulable);
}

/// Ticks cost nothing while a job spins, so in the worst case all of them fall between its spins. B's section is
/// prolonged by a tick of CPU 1. A requests 1 us after B in each millisecond, spins until 850 us, executes until
/// 860 us, loses the next 100 us to the tick of CPU 0, and makes its next request after 41 us: its job takes 10 ms.
#[test]
fn interrupts_between_spins_count_under_edf() {
    let body = |steps: &str, count: usize| vec![steps; count].join(", ");
    let a = body("{ lock = \"q\" }, { run = \"10 us\" }, { unlock = \"q\" }, { run = \"41 us\" }", 10);
    let b = body("{ run = \"150 us\" }, { lock = \"q\" }, { run = \"750 us\" }, { unlock = \"q\" }", 12);
    let text = |deadline: &str| {
        format!(
            "[platform]\ncpus = 2\nscheduler = \"p-edf\"\n[[resource]]\nname = \"q\"\n\
             [[task]]\nname = \"A\"\ncpu = 0\nperiod = \"100 ms\"\ndeadline = \"{deadline}\"\nbody = [{a}]\n\
             [[task]]\nname = \"B\"\ncpu = 1\nperiod = \"100 ms\"\nbody = [{b}]\n"
        )
    };
    let ticks = parse_overheads("tick = \"100 us\"\ntick_period = \"1 ms\"").unwrap();
    let proved = |deadline: &str, overheads: &Overheads| {
        let system = system(&text(deadline));
        (scheduled(&system, overheads).unwrap().proved[0], best_scheduled(&system, overheads).unwrap().0.proved[0])
    };
    assert_eq!(proved("9.5 ms", &Overheads::default()), (true, true));
    assert_eq!(proved("9.5 ms", &ticks), (false, false));
    assert_eq!(proved("9.99 ms", &ticks), (false, false));
    assert_eq!(proved("10.5 ms", &ticks), (true, true));
    // What is tolerated leaves this room as well, and the terms of the demand contain it.
    let loose = system(&text("10.5 ms"));
    let found = scheduled(&loose, &ticks).unwrap();
    let terms = explain_demand(&loose, &ticks, &found, TaskId(0)).unwrap().terms;
    let demand = terms.iter().map(|term| term.total).sum::<Duration>();
    assert!(demand >= Duration::from_us(10_000) && demand <= Duration::from_us(10_500), "{demand}");
    let tolerated = sensitivity(&loose, &ticks, Protocol::Msrp, |_, _| true).unwrap().tolerated[0].1.unwrap();
    assert!(tolerated <= Duration::from_us(500), "{tolerated}");
}

/// A section on a home preempts one from a third CPU there, which then fills its caches again. k is on its home from
/// 1 us and fills its caches until 61 us. a's ten sections, from 100 us on, take 10 us and make k fill them again for
/// 60 us. k's section ends at 1761 us, and its job fills the caches of its own CPU until 1821 us.
#[test]
fn sections_on_a_home_fill_caches_again_after_each_other() {
    let sections = ["{ run = \"100 us\" }, { lock = \"q\" }, { run = \"10 us\" }, { unlock = \"q\" }"; 10].join(", ");
    let system = system(&format!(
        "[platform]\ncpus = 3\n[[resource]]\nname = \"q\"\nhome = 1\n[[resource]]\nname = \"r\"\nhome = 1\n\
         [[task]]\nname = \"a\"\ncpu = 0\npriority = 2\nperiod = \"100 ms\"\nworking_set_kib = 0\nbody = [{sections}]\n\
         [[task]]\nname = \"k\"\ncpu = 2\npriority = 1\nperiod = \"100 ms\"\nworking_set_kib = 1024\n\
         body = [{{ run = \"1 us\" }}, {{ lock = \"r\" }}, {{ run = \"1 ms\" }}, {{ unlock = \"r\" }}]\n"
    ));
    let caches = parse_overheads("cache_delay = [[0, \"0 ns\"], [1024, \"60 us\"]]").unwrap();
    let charged = charge(&system, &caches, Protocol::Dpcp).unwrap();
    let response = analyse(&charged, Protocol::Dpcp).tasks[1].response.unwrap();
    assert!(response >= Duration::from_us(1_821), "{response}");
}

/// All of the processor is used, and the periods have a large common multiple. The second task holds r for 50 ms, and
/// a job of the first that arrives meanwhile is late. Without r, or with a short section, all deadlines are met.
#[test]
fn blocking_counts_at_full_use_under_edf() {
    let text = |section: u64| {
        format!(
            "[platform]\nscheduler = \"p-edf\"\n[[resource]]\nname = \"r\"\n\
             [[task]]\nname = \"one\"\nperiod = \"2000006 ns\"\n\
             body = [{{ run = \"1000002 ns\" }}, {{ lock = \"r\" }}, {{ run = \"1 ns\" }}, {{ unlock = \"r\" }}]\n\
             [[task]]\nname = \"two\"\nperiod = \"200000014 ns\"\n\
             body = [{{ lock = \"r\" }}, {{ run = \"{section} ns\" }}, {{ unlock = \"r\" }}, {{ run = \"{} ns\" }}]\n",
            100_000_007 - section
        )
    };
    for (section, holds) in [(50_000_000, false), (1_000_010, false), (1_000_003, true)] {
        let system = system(&text(section));
        let found = scheduled(&system, &Overheads::default()).unwrap();
        assert_eq!(found.schedulable, holds, "{section}");
        let grown = sensitivity(&system, &Overheads::default(), Protocol::Srp, |_, _| true).unwrap();
        assert!(matches!(grown.all, Growth::Permille(most) if (most == 1000) == holds), "{section}: {grown:?}");
    }
}

#[test]
fn jitter_with_resources_is_refused_under_edf() {
    let late = "[platform]\nscheduler = \"p-edf\"\n[[resource]]\nname = \"r\"\n\
        [[task]]\nname = \"u\"\nperiod = \"70 ms\"\nwcet = \"1 ms\"\nrequests = [{ resource = \"r\", length = \"1 ms\" }]\n\
        [[task]]\nname = \"i\"\nperiod = \"100 ms\"\njitter = \"50 ms\"\nwcet = \"49 ms\"\n\
        [[task]]\nname = \"j\"\nperiod = \"900 ms\"\nwcet = \"15 ms\"\nrequests = [{ resource = \"r\", length = \"15 ms\" }]\n";
    let why = scheduled(&system(late), &Overheads::default()).expect_err("jitter");
    assert!(matches!(why, Untested::Jitter(_)));
    let error: Box<dyn std::error::Error> = Box::new(why);
    assert_eq!(error.to_string(), "no test of the scheduler covers the release jitter of task 1");
}

/// Each failed attempt lengthens the windows of the others by just enough for one more: the costs grow by little in
/// each round. Where the rounds end before, the verdict is that of systems with a little more and a little less load.
#[test]
fn failed_attempts_that_grow_in_small_steps_are_bounded() {
    let system = |often: &str| {
        let operation = |time: &str| format!("{{ lock = \"q\" }}, {{ run = \"{time}\" }}, {{ unlock = \"q\" }}");
        let task = |name: &str, period: &str, operations: &[String]| {
            format!("[[task]]\nname = \"{name}\"\nperiod = \"{period}\"\nbody = [{}]\n", operations.join(", "))
        };
        let long = |name| task(name, "1000 s", &vec![operation("1 us"); 4]);
        let tasks = [long("one"), long("two"), long("three"), task("often", often, &[operation("10 ns")])].concat();
        system(&format!(
            "protocol = \"lock_free\"\n[platform]\ncpus = 2\nscheduler = \"g-edf\"\n[[resource]]\nname = \"q\"\n{tasks}"
        ))
    };
    for often in ["10 us", "9150 ns", "9100 ns", "9050 ns"] {
        let found = scheduled(&system(often), &Overheads::default()).expect("a result");
        assert!(found.schedulable, "{often}");
    }
}

/// One processor handles the releases of all 40 tasks, which take a millisecond each.
#[test]
fn releases_queue_at_the_processor_that_takes_them() {
    let tasks: String = (0..40)
        .map(|i| format!("[[task]]\nname = \"t{i}\"\nperiod = \"1 s\"\ndeadline = \"30 ms\"\nwcet = \"1 us\"\n"))
        .collect();
    let all = parse_overheads("dedicated_interrupts = true\nrelease = \"1 ms\"").unwrap();
    let free = system(&format!("[platform]\ncpus = 2\nscheduler = \"g-edf\"\n{tasks}"));
    assert!(scheduled(&free, &Overheads::default()).unwrap().schedulable);
    assert!(!scheduled(&free, &all).unwrap().schedulable);
}

#[test]
fn overheads_that_leave_no_time_are_a_verdict() {
    let one =
        system("[platform]\nscheduler = \"p-edf\"\n[[task]]\nname = \"a\"\nperiod = \"1 ms\"\nwcet = \"900 us\"\n");
    let heavy = parse_overheads("schedule = \"100 us\"").unwrap();
    let found = scheduled(&one, &heavy).unwrap();
    assert!(!found.schedulable && !found.exact);
    assert_eq!(found.tests[0].name, "overheads");
}

/// Returns a `p-edf` system of tasks given as period, deadline, runs before, in and after a section on one of two
/// resources, and CPU, with execution times in thousandths.
fn edf_text(tasks: &[[u64; 6]], permille: impl Fn(usize, bool) -> u64, extra: impl Fn(usize) -> u64) -> String {
    let mut text = "[platform]\ncpus = 2\nscheduler = \"p-edf\"\n[[resource]]\nname = \"r\"\n".to_owned();
    for (index, &[period, deadline, before, inside, cpu, behind]) in tasks.iter().enumerate() {
        let run = |time: u64, inside| {
            let time = (time * permille(index, inside)).div_ceil(1000);
            if time > 0 { format!("{{ run = \"{time} ns\" }}, ") } else { String::new() }
        };
        let section = if inside > 0 {
            format!("{{ lock = \"r\" }}, {}{{ unlock = \"r\" }}, ", run(inside, true))
        } else {
            String::new()
        };
        let longer = if extra(index) > 0 { format!("{{ run = \"{} ns\" }}", extra(index)) } else { String::new() };
        text += &format!(
            "[[task]]\nname = \"t{index}\"\nperiod = \"{period} ns\"\ndeadline = \"{deadline} ns\"\ncpu = {cpu}\nbody = [{}{section}{}{longer}]\n",
            run(before, false),
            run(behind, false),
        );
    }
    text
}

fn holds(text: &str) -> bool {
    parse_system(text)
        .is_ok_and(|system| scheduled(&system, &Overheads::default()).is_ok_and(|found| found.schedulable))
}

/// The factors equal those found by trying each amount.
#[test]
fn sensitivity_under_edf_is_the_largest_that_holds() {
    let mut random = fastrand::Rng::with_seed(4);
    let (mut broken, mut permille_seen, mut tolerant) = (0, 0, 0);
    for _ in 0..60 {
        let mut sum = 0.0;
        let tasks: Vec<[u64; 6]> = (0..random.u64(2..=5))
            .map(|_| {
                let period = random.u64(20..200);
                let parts = [random.u64(1..8), if random.bool() { random.u64(1..8) } else { 0 }, random.u64(0..4)];
                let cost: u64 = parts.iter().sum();
                sum += cost as f64 / period as f64;
                [period, random.u64(cost.max(period / 2)..=period), parts[0], parts[1], random.u64(0..2), parts[2]]
            })
            .collect();
        let system_of = |permille: &dyn Fn(usize, bool) -> u64| edf_text(&tasks, permille, |_| 0);
        let base = system(&system_of(&|_, _| 1000));
        let found = sensitivity(&base, &Overheads::default(), Protocol::Icpp, |_, _| true).unwrap();
        let mut check = |growth: Growth, form: &dyn Fn(u64) -> String| {
            if let Growth::Permille(most) = growth {
                assert!(holds(&form(most)) && !holds(&form(most + 1)), "{most}: {}", form(most));
                // Amounts in between give the same result.
                assert!(!holds(&form(most + random.u64(1..5000))), "{most}");
                assert!(holds(&form(random.u64(1..=most))), "{most}");
                permille_seen += 1;
            } else {
                assert!(growth == Growth::Unlimited || !holds(&form(1)));
                broken += u32::from(growth == Growth::Broken);
            }
        };
        check(found.all, &|permille| system_of(&|_, _| permille));
        for (id, growth) in &found.tasks {
            check(*growth, &|permille| system_of(&|index, _| if index == id.index() { permille } else { 1000 }));
        }
        for (_, growth) in &found.resources {
            check(*growth, &|permille| system_of(&|_, inside| if inside { permille } else { 1000 }));
        }
        for (id, most) in &found.tolerated {
            let form = |more: u64| edf_text(&tasks, |_, _| 1000, |index| if index == id.index() { more } else { 0 });
            let first = (0..).find(|&more| !holds(&form(more))).unwrap();
            assert_eq!(most.map(Duration::as_ns), first.checked_sub(1), "{}", form(0));
            tolerant += u32::from(first > 1);
        }
    }
    assert!(permille_seen > 200 && tolerant > 100, "{permille_seen} {tolerant} {broken}");
}

/// Returns ten tasks that use all of a processor except a twenty-thousandth.
fn nearly_full() -> System {
    let mut random = fastrand::Rng::with_seed(1);
    let shares: Vec<f64> = (0..10).map(|_| random.f64() + 0.1).collect();
    let sum: f64 = shares.iter().sum();
    let tasks: Vec<[u64; 6]> = shares
        .iter()
        .enumerate()
        .map(|(index, share)| {
            let period = random.u64(10_000_000..100_000_000);
            let cost = (share / sum * 0.99995 * period as f64) as u64;
            let inside = if index % 3 == 0 { 20_000 } else { 0 };
            [period, period - period / 50, cost - inside, inside, 0, 0]
        })
        .collect();
    system(&edf_text(&tasks, |_, _| 1000, |_| 0).replace("cpus = 2", "cpus = 1"))
}

#[test]
fn sensitivity_near_full_use_ends_and_is_safe() {
    let system = nearly_full();
    assert!(scheduled(&system, &Overheads::default()).unwrap().schedulable);
    let found = sensitivity(&system, &Overheads::default(), Protocol::Icpp, |_, _| true).unwrap();
    assert_eq!(found.all, Growth::Permille(1000));
    for (id, most) in &found.tolerated {
        let longer = |more: u64| {
            let mut tasks = system.tasks().to_vec();
            let task = &mut tasks[id.index()];
            let more = Duration::from_ns(more);
            task.wcet = task.wcet.checked_add(more).unwrap();
            task.body.push(Step::Run(more));
            scheduled(&system.with_tasks(tasks).unwrap(), &Overheads::default()).unwrap().schedulable
        };
        let most = most.unwrap().as_ns();
        assert!(most > 0 && longer(most), "{id:?}");
        // Within one percent of the result with full effort.
        assert!(!longer(most + most / 100 + 2), "{id:?} {most}");
    }
}

#[test]
fn sensitivity_can_be_interrupted_within_a_test() {
    // The callback is called while one form is tested, far more often than there are forms.
    let system = nearly_full();
    let asked = std::cell::Cell::new(0);
    let whole = sensitivity(&system, &Overheads::default(), Protocol::Icpp, |_, _| {
        asked.set(asked.get() + 1);
        true
    });
    assert!(whole.is_some());
    for stop in [1, 2, asked.get() / 2, asked.get()] {
        let left = std::cell::Cell::new(stop);
        let found = sensitivity(&system, &Overheads::default(), Protocol::Icpp, |_, _| {
            left.set(left.get() - 1);
            assert!(left.get() >= 0, "the callback is called again after it returned false");
            left.get() > 0
        });
        assert!(found.is_none(), "{stop}");
    }
}

/// The blocking section is that of the definition, and the terms sum to the demand that was found too great.
#[test]
fn the_terms_of_a_demand_sum_to_it() {
    let mut random = fastrand::Rng::with_seed(9);
    let (mut failed, mut blocked) = (0, 0);
    for _ in 0..400 {
        let tasks: Vec<[u64; 6]> = (0..random.u64(2..=6))
            .map(|_| {
                let period = random.u64(20..120);
                let parts = [random.u64(1..8), if random.bool() { random.u64(1..12) } else { 0 }, random.u64(0..4)];
                let cost: u64 = parts.iter().sum();
                [period, random.u64(cost.max(period / 2)..=period), parts[0], parts[1], random.u64(0..2), parts[2]]
            })
            .collect();
        let system = system(&edf_text(&tasks, |_, _| 1000, |_| 0));
        let found = scheduled(&system, &Overheads::default()).unwrap();
        for id in system.task_ids() {
            let own = &tasks[id.index()];
            let test = found.tests.iter().find(|test| test.cpu == Some(system.task(id).cpu)).unwrap();
            let demanded = explain_demand(&system, &Overheads::default(), &found, id).unwrap();
            let sum: u64 = demanded.terms.iter().map(|term| term.total.as_ns()).sum();
            match (test.failure, test.point) {
                (Some(Failure::Demand { interval, demand }), Some(point)) => {
                    assert_eq!((demanded.interval.as_ns(), sum), (interval, demand), "{tasks:?}");
                    let blocking = point.blocker.map_or(0, |blocker| blocker.total().as_ns());
                    assert_eq!((point.interval.as_ns(), point.due.as_ns() + blocking), (interval, demand));
                    assert!(sum > demanded.interval.as_ns());
                    failed += 1;
                }
                (None, None) => assert!(sum <= demanded.interval.as_ns(), "{tasks:?}"),
                (other, point) => assert!(point.is_none() && other.is_some(), "{other:?}"),
            }
            // All tasks share one resource. Tasks of this CPU with later deadlines block if a task of this CPU with a
            // deadline that is no longer uses it, or if a task of the other CPU does.
            let users = |cpu: u64| tasks.iter().filter(move |other| other[4] == cpu && other[3] > 0);
            let spin = users(1 - own[4]).map(|other| other[3]).max();
            let reaches = spin.is_some() || users(own[4]).any(|other| other[1] <= own[1]);
            let longest = users(own[4]).filter(|other| reaches && other[1] > own[1]).map(|other| other[3]).max();
            let expected = longest.map(|longest| longest + spin.unwrap_or(0));
            let says = found.blocked[id.index()];
            assert_eq!(says.map(|blocker| blocker.total().as_ns()), expected, "{id:?} of {tasks:?}");
            assert!(says.is_none_or(|blocker| system.task(blocker.task).deadline > system.task(id).deadline));
            blocked += u32::from(says.is_some());
        }
    }
    assert!(failed > 100 && blocked > 300, "{failed} {blocked}");
}

/// A preemption costs the refill of the largest working set of the others.
#[test]
fn working_sets_lengthen_jobs_under_edf() {
    let with = |kib: &str, a: u64, b: u64| {
        format!(
            "[platform]\nscheduler = \"p-edf\"\n[[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"{a} us\"\n\
             [[task]]\nname = \"b\"\nperiod = \"20 ms\"\nwcet = \"{b} us\"\n{kib}\n"
        )
    };
    let text = |kib| with(kib, 4_000, 8_000);
    let curve = "cache_refill = \"1 us\"\ncache_delay = [[64, \"10 us\"], [128, \"30 us\"]]";
    let overheads = parse_overheads(curve).unwrap();
    // a preempts b, so the working set of b counts. The cost is constant before the first point. A task without a given
    // working set, such as a, counts with the largest one.
    for (kib, more) in [("working_set_kib = 96", 21), ("working_set_kib = 1", 11), ("", 31)] {
        let charged = scheduled(&system(&text(kib)), &overheads).unwrap();
        let lengthened = scheduled(&system(&with("", 4_000 + more, 8_031)), &Overheads::default()).unwrap();
        assert!(charged.responses[0].is_some());
        assert_eq!(charged.responses, lengthened.responses, "{kib}");
    }
    let beyond = scheduled(&system(&text("working_set_kib = 129")), &overheads);
    assert!(matches!(beyond, Err(Untested::Overheads(Failure::Unsupported { task: 1, .. }))), "{beyond:?}");
    let one =
        scheduled(&system(&text("working_set_kib = 65")), &parse_overheads("cache_delay = [[64, \"1 us\"]]").unwrap());
    assert!(matches!(one, Err(Untested::Overheads(_))), "a single point covers no larger working set");
}

/// Under partitioned EDF, a release also takes the decision of its thread: two switches and two system calls.
#[test]
fn a_release_takes_a_decision_under_edf() {
    let text = "[[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\n";
    let edf = |kind: &str| system(&format!("[platform]\nscheduler = \"{kind}\"\n{text}"));
    let charged = |kind, overheads: &str| {
        let (system, overheads) = (edf(kind), parse_overheads(overheads).unwrap());
        let charged = charge_by_deadline(&system, &overheads).unwrap();
        assert_eq!((charged.tasks().len(), charged.scheduler()), (1, system.scheduler()));
        // The tests count the same.
        let found = scheduled(&system, &overheads).unwrap();
        assert_eq!(found.responses[0], Some(charged.tasks()[0].wcet + charged.tasks()[0].jitter), "{kind}");
        charged.tasks()[0].wcet.as_ns()
    };
    let overheads = "schedule = \"40 us\"\nsyscall_in = \"6 us\"\nsyscall_out = \"4 us\"\nrelease_latency = \"1 ms\"\n";
    assert_eq!(charged("g-edf", overheads), 1_080_000);
    // The release takes 300 us in each 10 ms, and s = 0.97: (1080 + 2 (300 + 1000 * 0.03)) / 0.97.
    assert_eq!(charged("p-edf", overheads), 1_793_815);
    // A processor of its own takes the releases.
    assert_eq!(charged("p-edf", &format!("{overheads}dedicated_interrupts = true\n")), 1_080_000);
    let none = parse_overheads("").unwrap();
    assert_eq!(charge_by_deadline(&edf("p-edf"), &none).unwrap(), edf("p-edf"));
    for (overheads, wanted) in [
        ("release = \"10 ms\"", "the interrupts leave no time for jobs"),
        ("cache_delay = [[4, \"1 us\"]]", "task `a`: its working set is beyond the last point"),
    ] {
        let large = system(&format!("[platform]\nscheduler = \"p-edf\"\n{text}working_set_kib = 5\n"));
        let refused = charge_by_deadline(&large, &parse_overheads(overheads).unwrap()).unwrap_err();
        assert!(refused.message.contains(wanted), "{}", refused.message);
    }
}

/// If there are more points than terms to examine them, a reason is given. The verdict does not depend on response
/// times.
#[test]
fn a_response_time_with_too_many_points_has_a_reason() {
    let system = system(
        "[platform]\nscheduler = \"p-edf\"\n[[task]]\nname = \"a\"\nperiod = \"10 ns\"\nwcet = \"5 ns\"\n\
         [[task]]\nname = \"b\"\nperiod = \"1000000001 ns\"\nwcet = \"500000000 ns\"\n",
    );
    let found = scheduled(&system, &Overheads::default()).unwrap();
    assert!(found.schedulable);
    assert_eq!(found.responses, [None, None]);
    for task in system.task_ids() {
        let why = found.describe_unbounded(task).expect("there is a reason");
        assert!(why.contains("100000000 terms"), "{why}");
    }
}

/// The busy interval of a CPU that is almost full is long, and a rare long section makes the classic test reject it.
#[cfg(feature = "lp")]
#[test]
fn programs_under_edf_end_and_say_so() {
    let (mut text, mut used) = (String::new(), 0.0);
    for task in 0..20_u64 {
        let period = 10_000_000 + task * 1_000_003;
        let cost = if task < 19 { period / 20 } else { ((1.0 - used) * period as f64) as u64 - 1 };
        used += cost as f64 / period as f64;
        text += &format!("[[task]]\nname = \"t{task}\"\ncpu = 0\nperiod = \"{period} ns\"\nwcet = \"{cost} ns\"\n");
        if task == 0 {
            text += "requests = [{ resource = \"r\", length = \"10 ns\" }]\n";
        }
    }
    let system = system(&format!(
        "[platform]\ncpus = 2\nscheduler = \"p-edf\"\n[[resource]]\nname = \"r\"\n{text}[[task]]\nname = \"x\"\ncpu = 1\n\
         period = \"100 s\"\nwcet = \"1 ms\"\nrequests = [{{ resource = \"r\", length = \"5 us\" }}]\n"
    ));
    let classic = scheduled(&system, &Overheads::default()).unwrap();
    let (found, why) = best_scheduled(&system, &Overheads::default()).unwrap();
    assert_eq!(why, Some(lockwright_analysis::Uncovered::Work));
    assert_eq!((found.schedulable, &found.proved), (false, &classic.proved));
    let program = found.tests.iter().find(|test| test.name == "linear program").unwrap();
    let limit = lockwright_analysis::PROGRAM_WORK_MAX;
    assert!(matches!(program.failure, Some(Failure::Diverged { limit: reached, .. }) if reached.most == limit));
}

/// The terms of a program are at most what the interval holds, and what a program found too great is the sum of its
/// parts. The program proves more than the classic test.
#[cfg(feature = "lp")]
#[test]
fn programs_explain_what_they_prove() {
    let mut random = fastrand::Rng::with_seed(4);
    let (mut explained, mut failed) = (0, 0);
    for _ in 0..4_000 {
        let tasks: Vec<String> = (0..4)
            .map(|task| {
                let (count, length) = (random.u64(1..4), random.u64(1..6));
                let cost = count * length + random.u64(1..20);
                format!(
                    "[[task]]\nname = \"t{task}\"\ncpu = {}\nperiod = \"{} ns\"\nwcet = \"{cost} ns\"\n\
                     requests = [{{ resource = \"r\", count = {count}, length = \"{length} ns\" }}]\n",
                    task % 2,
                    cost * random.u64(2..8),
                )
            })
            .collect();
        let head = "[platform]\ncpus = 2\nscheduler = \"p-edf\"\n[[resource]]\nname = \"r\"\n";
        let system = system(&(head.to_owned() + &tasks.concat()));
        let overheads = Overheads::default();
        let classic = scheduled(&system, &overheads).unwrap();
        let (found, uncovered) = best_scheduled(&system, &overheads).unwrap();
        assert!(uncovered.is_none() || uncovered == Some(lockwright_analysis::Uncovered::Alone));
        for id in system.task_ids() {
            assert!(found.proved[id.index()] || !classic.proved[id.index()]);
            if found.proved[id.index()] && found.proof[id.index()] == lockwright_analysis::Proof::Program {
                assert!(!classic.proved[id.index()]);
                let demanded = explain_demand(&system, &overheads, &found, id).unwrap();
                assert!(demanded.terms.iter().map(|term| term.total).sum::<Duration>() <= demanded.interval);
                explained += 1;
            }
        }
        for test in found.tests.iter().filter(|test| test.name == "linear program") {
            if let (Some(Failure::Demand { interval, demand }), Some(point)) = (test.failure, test.point) {
                let blocking = point.blocker.map_or(0, |blocker| blocker.total().as_ns());
                assert_eq!((point.interval.as_ns(), point.due.as_ns() + blocking), (interval, demand));
                failed += 1;
            }
        }
    }
    println!("{explained} tasks proved by programs alone, {failed} programs that fail");
    assert!(explained > 100 && failed > 100, "{explained}, {failed}");
}

/// Two tasks on two processors, with two resources under these protocols.
fn mixed(scheduler: Scheduler, one: &str, other: &str) -> System {
    let task = |name: &str, cpu: u8| {
        format!(
            "[[task]]\nname = \"{name}\"\ncpu = {cpu}\nperiod = \"10 ms\"\nwcet = \"2 ms\"\nrequests = [\
             {{ resource = \"one\", length = \"1 us\" }}, {{ resource = \"other\", length = \"1 us\" }}]\n"
        )
    };
    let resource = |name: &str, protocol: &str| format!("[[resource]]\nname = \"{name}\"\nprotocol = \"{protocol}\"\n");
    let text =
        ["[platform]\ncpus = 2\n", &resource("one", one), &resource("other", other), &task("a", 0), &task("b", 1)];
    system(&text.concat()).under(scheduler)
}

#[test]
fn one_system_has_one_kind_of_wait() {
    let why = |system: System| scheduled(&system, &Overheads::default()).map_err(|why| why.describe(&system));
    for scheduler in [Scheduler::GEdf, Scheduler::GFp] {
        let refused = why(mixed(scheduler, "fmlp_short", "fmlp_long")).unwrap_err();
        assert!(refused.contains("`one` is under `fmlp_short` and `other` is under `fmlp_long`"), "{refused}");
        assert!(why(mixed(scheduler, "fmlp_long", "lock_free")).is_err());
        assert!(why(mixed(scheduler, "none", "none")).is_err_and(|why| why.contains("`one` is under `none`")));
        for kind in ["fmlp_short", "fmlp_long", "lock_free"] {
            assert!(why(mixed(scheduler, kind, "wait_free")).unwrap().schedulable, "{scheduler}, {kind}");
        }
    }
    let refused = why(mixed(Scheduler::PEdf, "pip", "lock_free")).unwrap_err();
    assert!(refused.contains("`one` is under `msrp` and `other` is under `lock_free`"), "{refused}");
    assert!(why(mixed(Scheduler::PEdf, "pip", "wait_free")).unwrap().schedulable);
}
