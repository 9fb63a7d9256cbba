//! Checks that ARCHITECTURE.md lists exactly the places with `unsafe` code.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The directories of tests. They may use unsafe code.
const TESTS: [&str; 5] = ["tests", "benches", "examples", "testing", "target"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Collects the Rust sources below a directory, except those of tests.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        if path.is_dir() && !TESTS.contains(&name.as_str()) {
            sources(&path, found);
        } else if name.ends_with(".rs") && name != "tests.rs" && !is_model(&path) {
            found.push(path);
        }
    }
}

/// Whether the file executes a test under loom.
fn is_model(path: &Path) -> bool {
    path.ends_with("model.rs") && fs::read_to_string(path).expect("a source").contains("loom::")
}

/// Whether the code has an unsafe block, function, trait, implementation or attribute outside comments.
fn is_unsafe(source: &str) -> bool {
    let code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    let words: Vec<&str> =
        code.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '{')).collect();
    let follows = ["{", "fn", "impl", "trait", "extern", "no_mangle", "link_section"];
    words.iter().enumerate().any(|(index, word)| {
        *word == "unsafe{"
            || (*word == "unsafe"
                && words[index + 1..].iter().find(|word| !word.is_empty()).is_some_and(|next| follows.contains(next)))
    })
}

/// The paths in the first column of the table under "## Unsafe code".
fn listed(architecture: &str) -> BTreeSet<String> {
    let section =
        architecture.split("\n## ").find(|section| section.starts_with("Unsafe code\n")).expect("the section");
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| Some(row.split_once('`')?.0.to_owned())).collect()
}

/// Files with unsafe code that no listed place covers, and listed places without unsafe code.
fn differences(places: &BTreeSet<String>, files: &BTreeSet<String>) -> Vec<String> {
    let covers = |place: &String, file: &String| file == place || (place.ends_with('/') && file.starts_with(place));
    let missing = files.iter().filter(|file| !places.iter().any(|place| covers(place, file)));
    let idle = places.iter().filter(|place| !files.iter().any(|file| covers(place, file)));
    missing.map(|file| format!("{file} is not listed")).chain(idle.map(|place| format!("{place} has none"))).collect()
}

#[test]
fn architecture_lists_unsafe_code() {
    let (root, mut found) = (root(), Vec::new());
    for folder in ["crates", "bindings", "scenarios", "xtask/src"] {
        sources(&root.join(folder), &mut found);
    }
    assert!(found.len() > 100, "too few sources were found");
    let with_unsafe = found.iter().filter(|path| is_unsafe(&fs::read_to_string(path).expect("a source")));
    let relative = |path: &PathBuf| path.strip_prefix(&root).expect("below the root").display().to_string();
    let files: BTreeSet<String> = with_unsafe.map(relative).collect();
    let architecture = fs::read_to_string(root.join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let differences = differences(&listed(&architecture), &files);
    assert!(differences.is_empty(), "ARCHITECTURE.md, \"Unsafe code\":\n{}", differences.join("\n"));
}

#[test]
fn a_wrong_list_is_noticed() {
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    let files = set(&["a/x.rs", "b/y.rs"]);
    assert!(differences(&set(&["a/", "b/y.rs"]), &files).is_empty());
    assert_eq!(differences(&set(&["a/"]), &files), ["b/y.rs is not listed"]);
    assert_eq!(differences(&set(&["a/", "b/y.rs", "c/"]), &files), ["c/ has none"]);
    assert!(is_unsafe("let x = unsafe { y };") && is_unsafe("pub unsafe fn x()") && is_unsafe("#[unsafe(no_mangle)]"));
    assert!(!is_unsafe("// unsafe { }\n#![forbid(unsafe_code)]") && !is_unsafe("let unsafe_name = 1;"));
}
