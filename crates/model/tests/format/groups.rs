//! Group locks: the resources of one group are one lock.

use lockwright_model::format::{Diagnostic, parse_system, write_system};
use lockwright_model::{CpuId, Duration, Priority, Protocol, Resource, Step, System};

/// Returns a file with these resources and a task with this body.
fn system(resources: &str, body: &str) -> String {
    format!(
        "[platform]\ncpus = 2\n{resources}\n[[task]]\nname = \"t\"\ncpu = 0\npriority = 3\nperiod = \"1 s\"\nbody = [{body}]\n"
    )
}

const GROUP: &str = r#"
[[resource]]
name = "left"
group = "arms"
[[resource]]
name = "log"
[[resource]]
name = "right"
group = "arms"
"#;

fn read(source: &str) -> System {
    let system = parse_system(source).unwrap_or_else(|faults| panic!("{faults:#?}\n{source}"));
    assert_eq!(parse_system(&write_system(&system)).as_ref(), Ok(&system));
    system
}

/// Returns the body with one word for each step: `L` and `U` with the number of the resource, `R` for a lock for
/// reading, or `r`.
fn steps(system: &System) -> String {
    let step = |step: &Step| match step {
        Step::Run(_) => "r".to_owned(),
        Step::Lock(id) => format!("L{}", id.index()),
        Step::Read(id) => format!("R{}", id.index()),
        Step::Unlock(id) => format!("U{}", id.index()),
    };
    system.tasks()[0].body.iter().map(step).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_group_is_one_resource_at_its_first_members_place() {
    let body = r#"{ lock = "left" }, { run = "1 ms" }, { unlock = "left" }, { lock = "right" }, { run = "2 ms" }, { unlock = "right" }"#;
    let system = read(&system(GROUP, body));
    let names: Vec<&str> = system.resources().iter().map(|resource| resource.name.as_str()).collect();
    assert_eq!((names, steps(&system).as_str()), (vec!["arms", "log"], "L0 r U0 L0 r U0"));
    let task = system.task_ids().next().unwrap();
    let [request] = system.requests(task) else { panic!("one resource") };
    assert_eq!((request.count, request.length), (2, Duration::from_ms(2)));
}

#[test]
fn a_request_inside_its_group_needs_no_lock() {
    let nested = |between: &str, after: &str| {
        let body = format!(
            r#"{{ lock = "left" }}, {{ run = "1 ms" }}, {between} {{ lock = "right" }}, {{ run = "1 ms" }}, {{ unlock = "right" }}, {after} {{ run = "1 ms" }}, {{ unlock = "left" }}"#
        );
        let system = read(&system(GROUP, &body));
        let task = system.task_ids().next().unwrap();
        (steps(&system), system.sections(task)[0].length)
    };
    // The section is part of the outer one.
    assert_eq!(nested("", ""), ("L0 r r r U0".into(), Duration::from_ms(3)));
    // A resource of no group or of another one stays as it is.
    assert_eq!(
        nested(r#"{ lock = "log" },"#, r#"{ unlock = "log" },"#),
        ("L0 r L1 r U1 r U0".into(), Duration::from_ms(3))
    );
    // Negative control: without the group both are locks.
    let ungrouped = GROUP.replace("group = \"arms\"", "");
    let body = r#"{ lock = "left" }, { lock = "right" }, { run = "1 ms" }, { unlock = "right" }, { unlock = "left" }"#;
    assert_eq!(steps(&read(&system(&ungrouped, body))), "L0 L2 r U2 U0");
    assert_eq!(steps(&read(&system(GROUP, body))), "L0 r U0");
}

#[test]
fn lock_orders_inside_a_group_make_no_cycle() {
    let task = |name: &str, outer: &str, inner: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\ncpu = 1\npriority = 2\nperiod = \"1 s\"\nbody = [{{ lock = \"{outer}\" }}, {{ lock = \"{inner}\" }}, \
             {{ run = \"1 ms\" }}, {{ unlock = \"{inner}\" }}, {{ unlock = \"{outer}\" }}]\n"
        )
    };
    let both = |outer: &str, inner: &str| {
        let body = "{ run = \"1 ms\" }";
        system(GROUP, body) + &task("a", outer, inner) + &task("b", inner, outer)
    };
    assert!(parse_system(&both("left", "right")).is_ok());
    // Across groups they do, and the message names the locks of the system.
    let faults = parse_system(&both("left", "log")).expect_err("a cycle");
    assert!(faults[0].message.contains("`arms`") && faults[0].message.contains("`log`"), "{faults:?}");
    assert!(faults[0].span.is_some(), "{faults:?}");
}

#[test]
fn keys_of_one_member_hold_for_all() {
    let resources = r#"
[[resource]]
name = "left"
group = "arms"
home = 1
[[resource]]
name = "right"
group = "arms"
protocol = "dpcp"
ceiling = 7
"#;
    let system = read(&system(resources, r#"{ lock = "left" }, { run = "1 ms" }, { unlock = "left" }"#));
    let mut wanted = Resource::new("arms");
    (wanted.protocol, wanted.home) = (Some(Protocol::Dpcp), Some(CpuId(1)));
    wanted.ceiling = Some(Priority::base(7));
    assert_eq!(system.resources(), [wanted]);
}

#[track_caller]
fn check(source: &str, wanted: &[&str]) {
    let told = |fault: &Diagnostic| {
        let (line, column) = fault.line_column(source).expect("a place");
        format!("{line}:{column}: {fault}")
    };
    let faults = parse_system(source).expect_err(source);
    assert_eq!(faults.iter().map(told).collect::<Vec<_>>(), wanted, "{source}");
}

#[test]
fn faults_have_places() {
    let two = |left: &str, right: &str| {
        let resources = format!(
            "[[resource]]\nname = \"left\"\ngroup = \"arms\"\n{left}\n[[resource]]\nname = \"right\"\ngroup = \"arms\"\n{right}\n"
        );
        system(&resources, r#"{ lock = "left" }, { run = "1 ms" }, { unlock = "left" }"#)
    };
    check(
        &two("home = 0", "home = 1"),
        &["10:8: two resources of the group `arms` have different homes; they are one lock: give its home once"],
    );
    check(
        &two("protocol = \"dpcp\"", "protocol = \"dflp\""),
        &[
            "10:12: two resources of the group `arms` have different protocols; they are one lock: give its protocol once",
        ],
    );
    // A ceiling that only the second resource gives is reported at its place.
    let low = parse_system(&two("", "ceiling = 1")).expect_err("the task has priority 3");
    assert_eq!(low[0].line_column(&two("", "ceiling = 1")).map(|place| place.0), Some(10), "{low:?}");
    check(
        &two("", "").replace("group = \"arms\"", "group = \"right\""),
        &["5:9: the group `right` has the name of a resource; give the group another name"],
    );
    check(
        &two("", "").replacen("group = \"arms\"", "group = \"\"", 1),
        &["5:9: the group of resource `left` has no name; give it one"],
    );
    check(
        &two("", "").replacen("group = \"arms\"", "group = 5", 1),
        &["5:9: the group of resource `left` is a whole number, but should be a string; put it in quotes"],
    );
    // Bodies name resources, not groups.
    let body = system(GROUP, r#"{ lock = "arms" }, { run = "1 ms" }, { unlock = "arms" }"#);
    let faults = parse_system(&body).expect_err("no resource");
    assert!(faults[0].message.contains("`arms`, which is not declared"), "{faults:?}");
}

#[test]
fn a_cutoff_comes_from_the_resource_or_the_system() {
    let resources = "cutoff = 4\n[[resource]]\nname = \"a\"\n[[resource]]\nname = \"b\"\ncutoff = 2\n";
    let text = |priority: u32| {
        format!(
            "{resources}[[task]]\nname = \"t{priority}\"\npriority = {priority}\nperiod = \"10 ms\"\nbody = [{{ lock = \"a\" }}, {{ run = \"1 ms\" }}, {{ unlock = \"a\" }}]\n"
        )
    };
    let system = read(&text(3));
    let [a, b] = [0, 1].map(lockwright_model::ResourceId::new);
    assert_eq!([a, b].map(|id| system.cutoff(id)), [Priority::base(4), Priority::base(2)]);
    // Tasks below the cutoff lock at the highest priority among them. Resource `b` has no user.
    assert_eq!([a, b].map(|id| system.locked_ceiling(id)), [Some(Priority::base(3)), None]);
    assert_eq!(read(&text(4)).locked_ceiling(a), None, "from the cutoff on without a lock");
    let default = read(&text(3).replace("cutoff = 4\n", ""));
    assert_eq!((default.cutoff(a), default.locked_ceiling(a)), (Priority::base(3), None), "the most urgent user");
    let faults = parse_system(&text(3).replace("cutoff = 2", "cutoff = 65536")).expect_err("too high");
    assert!(faults[0].to_string().contains("cutoff"), "{faults:?}");
}
