//! Sections that read and sections that write.

use lockwright_model::format::{parse_system, write_system};
use lockwright_model::{Mode, Step, System};

/// Returns a file with two resources and a task with these keys.
fn file(resources: &str, keys: &str) -> String {
    format!("[platform]\ncpus = 1\n{resources}\n[[task]]\nname = \"t\"\ncpu = 0\nperiod = \"1 s\"\n{keys}\n")
}

const TWO: &str = "[[resource]]\nname = \"a\"\n[[resource]]\nname = \"b\"\n";

fn read(source: &str) -> System {
    let system = parse_system(source).unwrap_or_else(|faults| panic!("{faults:#?}\n{source}"));
    assert_eq!(parse_system(&write_system(&system)).as_ref(), Ok(&system), "{source}");
    system
}

fn modes(system: &System) -> Vec<Mode> {
    let task = system.task_ids().next().expect("a task");
    system.sections(task).iter().map(|section| section.mode).collect()
}

#[test]
fn a_section_writes_unless_it_says_that_it_reads() {
    let body = r#"body = [{ lock = "a", mode = "read" }, { run = "1 ms" }, { unlock = "a" },
        { lock = "b", mode = "write" }, { run = "1 ms" }, { unlock = "b" },
        { lock = "b" }, { run = "2 ms" }, { unlock = "b" }]"#;
    assert_eq!(modes(&read(&file(TWO, body))), [Mode::Read, Mode::Write, Mode::Write]);
    let requests = r#"wcet = "9 ms"
requests = [{ resource = "a", count = 2, length = "1 ms", mode = "read" }, { resource = "b", length = "1 ms" }]"#;
    assert_eq!(modes(&read(&file(TWO, requests))), [Mode::Read, Mode::Read, Mode::Write]);
}

#[test]
fn the_requests_of_a_resource_read_if_all_do() {
    for (second, mode) in [("read", Mode::Read), ("write", Mode::Write)] {
        let requests = format!(
            r#"wcet = "9 ms"
requests = [{{ resource = "a", length = "1 ms", mode = "read" }}, {{ resource = "a", length = "1 ms", mode = "{second}" }}]"#
        );
        let system = read(&file(TWO, &requests));
        let [request] = system.requests(system.task_ids().next().expect("a task")) else { panic!("one resource") };
        assert_eq!((request.count, request.mode), (2, mode));
    }
}

#[test]
fn a_section_of_a_group_that_writes_inside_writes() {
    let group = "[[resource]]\nname = \"a\"\ngroup = \"g\"\n[[resource]]\nname = \"b\"\ngroup = \"g\"\n";
    for (inner, first) in [("read", Mode::Read), ("write", Mode::Write)] {
        let body = format!(
            r#"body = [{{ lock = "a", mode = "read" }}, {{ run = "1 ms" }}, {{ lock = "b", mode = "{inner}" }},
            {{ run = "1 ms" }}, {{ unlock = "b" }}, {{ unlock = "a" }}]"#
        );
        let system = read(&file(group, &body));
        assert_eq!(modes(&system), [first], "{inner}");
        assert!(matches!(system.tasks()[0].body[2], Step::Run(_)));
    }
}

#[test]
fn wrong_modes_are_refused_with_their_place() {
    for (keys, part) in [
        (r#"body = [{ lock = "a", mode = "raed" }, { run = "1 ms" }, { unlock = "a" }]"#, "there is no mode"),
        (r#"body = [{ run = "1 ms", mode = "read" }]"#, "has a mode and locks nothing"),
        (r#"body = [{ lock = "a" }, { run = "1 ms" }, { unlock = "a", mode = "read" }]"#, "locks nothing"),
        ("wcet = \"1 ms\"\nrequests = [{ resource = \"a\", length = \"1 us\", mode = 3 }]", "the mode of"),
    ] {
        let source = file(TWO, keys);
        let faults = parse_system(&source).expect_err("must be refused");
        let fault = faults.iter().find(|fault| fault.message.contains(part));
        let fault = fault.unwrap_or_else(|| panic!("{part}: {faults:#?}"));
        let place = fault.span.clone().expect("a place");
        assert!(source[..place.start].contains("[[task]]"), "{fault:?}");
    }
}
