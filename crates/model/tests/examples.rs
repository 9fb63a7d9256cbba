//! Every example reads, and says what it shows.

use lockwright_model::System;
use lockwright_model::format::{parse_system, write_system};
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
