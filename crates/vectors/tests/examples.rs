//! The library's answers to every published example.

use lockwright_vectors::{Vector, check, departures, read};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

fn all() -> Vec<Vector> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let paths = std::fs::read_dir(folder).expect("the examples").map(|entry| entry.expect("an example").path());
    paths.flat_map(|path| read(&std::fs::read_to_string(path).expect("a file")).expect("examples")).collect()
}

#[test]
fn every_example_comes_out() {
    let mut checked = 0;
    let mut ids = BTreeSet::new();
    let mut wrong = Vec::new();
    for vector in all() {
        assert!(ids.insert(vector.id.clone()), "{} is there twice", vector.id);
        match check(&vector) {
            Ok(None) => checked += 1,
            Ok(Some(difference)) => wrong.push(format!("{} ({}): {difference}", vector.id, vector.analysis)),
            Err(why) => wrong.push(format!("{} ({}): {}", vector.id, vector.analysis, why.0)),
        }
    }
    assert!(wrong.is_empty(), "{checked} are right, {} are not:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(checked, 979);
    for departure in departures() {
        assert!(ids.contains(departure.id), "{} departs from nothing", departure.id);
    }
}

/// Every number of it more by three, or less by as much as it can be, and every yes a no.
fn wrong(expected: &Value, more: bool) -> Value {
    match expected {
        Value::Bool(yes) => (!yes).into(),
        Value::Number(number) => match number.as_u64() {
            Some(whole) => if more { whole.saturating_add(3) } else { whole.saturating_sub(3) }.into(),
            None => number.as_f64().map(|number| if more { number + 3.0 } else { number - 3.0 }).into(),
        },
        Value::Array(all) => all.iter().map(|expected| wrong(expected, more)).collect(),
        Value::Object(all) => all.iter().map(|(key, expected)| (key.clone(), wrong(expected, more))).collect(),
        other => other.clone(),
    }
}

#[test]
fn a_wrong_expectation_is_noticed() {
    let mut deaf = Vec::new();
    let departs = |vector: &Vector| departures().any(|departure| departure.id == vector.id);
    // Of these the sources wrote down a verdict that says nothing.
    let says_nothing = |vector: &Vector| vector.analysis.starts_with("rta.edf.uniprocessor.guan_yi");
    for vector in all().into_iter().filter(|vector| !departs(vector) && !says_nothing(vector)) {
        let notices = |more| {
            let twin = Vector { expected: wrong(&vector.expected, more), ..vector.clone() };
            !matches!(check(&twin), Ok(None))
        };
        if !notices(true) && !notices(false) {
            deaf.push(format!("{} ({})", vector.id, vector.analysis));
        }
    }
    assert!(deaf.is_empty(), "{} examples can expect anything:\n{}", deaf.len(), deaf.join("\n"));
}
