//! Long files are read in parts, with the same result as if they were read as a whole.

use lockwright_model::Duration;
use lockwright_model::format::{Diagnostics, parse_system};

const TASKS: usize = 3_000;

/// A task of about 60 bytes.
fn task(index: usize) -> String {
    format!(
        "[[task]] # {index}\nname = \"t{index}\"\ncpu = {}\nperiod = \"{} us\"\nwcet = \"1 us\"\n",
        index % 2,
        index + 10
    )
}

/// A long file: the other tables stand before, between and behind its tasks.
fn long() -> String {
    let tasks: Vec<String> = (0..TASKS).map(task).collect();
    let (first, rest) = tasks.split_at(TASKS / 2);
    let body = "requests = [{ resource = \"r\", length = \"200 ns\" }]\n";
    format!(
        "\u{feff}name = \"µ\"\n{}{body}[[resource]]\nname = \"r\"\n{}{body}[platform]\ncpus = 2\n",
        first.concat(),
        rest.concat()
    )
}

fn faults(source: &str) -> Diagnostics {
    parse_system(source).expect_err("a fault")
}

#[test]
fn every_task_of_a_long_file_is_read() {
    let system = parse_system(&long()).unwrap_or_else(|faults| panic!("{faults:?}"));
    assert_eq!((system.name(), system.cpus(), system.tasks().len()), ("µ", 2, TASKS));
    for (index, task) in system.tasks().iter().enumerate() {
        assert_eq!((task.name.as_str(), task.cpu.index()), (format!("t{index}").as_str(), index % 2));
        assert_eq!(task.period, Duration::from_us(index as u64 + 10));
    }
    let users: Vec<usize> = system.users(lockwright_model::ResourceId(0)).iter().map(|task| task.index()).collect();
    assert_eq!(users, [TASKS / 2 - 1, TASKS - 1]);
}

#[test]
fn faults_of_a_long_file_are_at_their_places() {
    let source = long();
    for (right, wrong, at, part) in [
        ("period = \"2510 us\"", "perod = \"2510 us\"", "perod", "unknown key `perod`"),
        ("period = \"2510 us\"", "period = 7", "7", "has no unit"),
        ("\"t2500\"", "\"t2499\"", "\"t2499\"", "two tasks have the name `t2499`"),
        ("name = \"t2500\"", "name = = 1", "=", "this is not TOML"),
        ("name = \"t2500\"", "name = \"t2500\"\nname = \"u\"", "name", "the key `name` is given twice"),
        ("cpus = 2", "cpus = 0", "0", "the number of CPUs"),
        ("name = \"r\"", "nam = \"r\"", "nam", "unknown key `nam` in a resource"),
    ] {
        let wrong = source.replacen(right, wrong, 1);
        assert_ne!(wrong, source);
        let found = faults(&wrong);
        let fault =
            found.iter().find(|fault| fault.message.contains(part)).unwrap_or_else(|| panic!("{part}: {found:?}"));
        assert_eq!(wrong.get(fault.span.clone().unwrap_or_default()), Some(at), "{part}");
    }
}

#[test]
fn odd_task_tables_are_read_as_in_a_short_file() {
    for (more, part) in [
        ("[task.body]\n", "body"),
        ("[task]\n", "given twice"),
        ("[[\"task\"]]\nname = \"last\"\n", "`last` has no period"),
    ] {
        for source in [format!("{}[platform]\ncpus = 2\n{more}", task(0)), format!("{}{more}", long())] {
            let found = faults(&source);
            assert!(found.iter().any(|fault| fault.message.contains(part)), "{part}: {found:?}");
        }
    }
    assert!(!faults(&format!("task = []\n{}", long().trim_start_matches('\u{feff}'))).is_empty());
}
