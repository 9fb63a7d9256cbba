//! Every example can be read, and begins with a line that says what it shows.

use lockwright_model::System;
use lockwright_model::format::{import_rt_app, parse_system, write_system};
use std::fs;
use std::path::Path;

fn examples() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("the examples are in the repository")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    let read = |path: &Path| fs::read_to_string(path).expect("UTF-8");
    files.iter().map(|path| (path.file_name().expect("a file").to_string_lossy().into_owned(), read(path))).collect()
}

fn system_of(name: &str, source: &str) -> System {
    parse_system(source).unwrap_or_else(|faults| panic!("{name}: {faults:#?}"))
}

#[test]
fn every_example_is_a_system_and_round_trips() {
    let mut seen = 0;
    for (name, source) in examples().iter().filter(|(name, _)| name.ends_with(".toml")) {
        assert!(source.starts_with("# "), "{name} begins with a line that says what it shows");
        let system = system_of(name, source);
        assert!(!system.name().is_empty(), "{name}");
        assert_eq!(parse_system(&write_system(&system)).as_ref(), Ok(&system), "{name}");
        seen += 1;
    }
    assert!(seen >= 1);
}

#[test]
fn rt_app_examples_import() {
    let mut seen = 0;
    for (name, source) in examples().iter().filter(|(name, _)| name.ends_with(".json")) {
        assert!(source.starts_with("/* "), "{name} begins with a line that says what it shows");
        let system = import_rt_app(source).unwrap_or_else(|faults| panic!("{name}: {faults:#?}")).system;
        assert_eq!(parse_system(&write_system(&system)), Ok(system), "{name}");
        seen += 1;
    }
    assert!(seen >= 1);
}

#[test]
fn the_examples_match_their_sources() {
    let all = examples();
    let named = |name: &str| all.iter().find(|(known, _)| known == name).map(|(_, source)| source).expect(name);
    let load = |system: &System, cpu: usize| -> f64 {
        let tasks = system.tasks().iter().filter(|task| task.cpu.index() == cpu);
        tasks.map(|task| task.wcet.as_ns() as f64 / task.period.as_ns() as f64).sum()
    };

    let pathfinder = system_of("pathfinder", named("pathfinder.toml"));
    assert_eq!(pathfinder.tasks().len(), 7);
    assert!((load(&pathfinder, 0) - 0.7215).abs() < 1e-9);

    let robot = system_of("robot", named("robot.toml"));
    assert!((0..2).all(|cpu| load(&robot, cpu) <= 0.6));
    let global: Vec<_> = robot.resource_ids().filter(|&resource| robot.is_global(resource)).collect();
    assert_eq!(global.len(), 1);

    let waters = system_of("waters2019", named("waters2019.toml"));
    assert_eq!((waters.tasks().len(), waters.resources().len()), (10, 13));
    assert!((0..6).all(|cpu| load(&waters, cpu) < 0.9));
    assert!(waters.resource_ids().all(|resource| waters.users(resource).len() > 1), "shared labels only");
}
