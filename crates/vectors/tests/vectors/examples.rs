//! The library's answers to every published example.

use lockwright_vectors::{Vector, answer, check, departure, judge, read};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

fn all() -> Vec<Vector> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    let paths = std::fs::read_dir(folder).expect("the examples").map(|entry| entry.expect("an example").path());
    paths.flat_map(|path| read(&std::fs::read_to_string(path).expect("a file")).expect("examples")).collect()
}

#[test]
fn every_example_is_answered_as_expected() {
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
}

/// Returns an expectation with every number higher by three or lower by up to three, and every truth value inverted.
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
    for vector in all() {
        let notices = |more| {
            let mutant = Vector { expected: wrong(&vector.expected, more), ..vector.clone() };
            // If the source is wrong, the opposite may be right.
            !matches!(check(&mutant), Ok(None)) || departure(&mutant).expect("an analysis").is_none()
        };
        if !notices(true) && !notices(false) {
            deaf.push(format!("{} ({})", vector.id, vector.analysis));
        }
    }
    assert!(deaf.is_empty(), "{} examples can expect anything:\n{}", deaf.len(), deaf.join("\n"));
}

/// If the source is wrong, the library must give the correct result. A value of the library that is wrong in either
/// direction is noticed in each such example.
#[test]
fn a_wrong_answer_to_a_departed_example_is_noticed() {
    let mut departed = Vec::new();
    for vector in all() {
        let Some((why, corrected)) = departure(&vector).expect("an analysis") else { continue };
        let ours = answer(&vector).expect("an input");
        assert_eq!(judge(&vector, &ours), Ok(None), "{}: {why}", vector.id);
        for more in [true, false] {
            let mutant = judge(&vector, &wrong(&ours, more)).expect("an analysis");
            assert!(mutant.is_some(), "{}: {why}; wrong: {}, right: {corrected}", vector.id, wrong(&ours, more));
        }
        // The value of the source is such a wrong value.
        assert!(judge(&vector, &vector.expected).expect("an analysis").is_some(), "{}: {why}", vector.id);
        departed.push(vector.analysis);
    }
    departed.sort_unstable();
    departed.dedup();
    assert_eq!(departed, DEPARTED);
}

/// The analyses with examples whose source is wrong.
const DEPARTED: [&str; 8] = [
    "blocking.dpcp.lp_rtas13",
    "blocking.mpcp.lp_rtas13",
    "blocking.omip.lp_ecrts13",
    "rta.edf.uniprocessor.guan_yi_approx",
    "rta.edf.uniprocessor.guan_yi_exact",
    "rta.p_fp.with_blocking.dpcp.lp",
    "rta.p_fp.with_blocking.mpcp.lp",
    "schedulable.p_edf.lockfree_nonpreemptable_commit.lp",
];
