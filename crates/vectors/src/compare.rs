//! Comparison of an answer with an expectation.

use serde_json::Value;

/// The required closeness of an answer to an expectation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Closeness {
    /// Integers, booleans and texts are equal; fractions agree to nine digits.
    Equal,
    /// Numbers differ by at most this much, for a source that truncates or rounds each term.
    Within(u64),
}

/// Returns the first place at which `ours` differs, in words. A
/// missing value is a difference, and an additional one is not.
#[must_use]
pub fn difference(expected: &Value, ours: &Value, closeness: Closeness) -> Option<String> {
    walk("", expected, ours, closeness)
}

fn walk(place: &str, expected: &Value, ours: &Value, closeness: Closeness) -> Option<String> {
    let differs =
        || Some(format!("{}: expected {expected}, got {ours}", if place.is_empty() { "result" } else { place }));
    match (expected, ours) {
        (Value::Object(expected), Value::Object(ours)) => expected.iter().find_map(|(key, expected)| {
            let place = if place.is_empty() { key.clone() } else { format!("{place}.{key}") };
            match ours.get(key) {
                Some(ours) => walk(&place, expected, ours, closeness),
                None => Some(format!("{place}: expected {expected}, got nothing")),
            }
        }),
        (Value::Array(all), Value::Array(others)) if all.len() == others.len() => all
            .iter()
            .zip(others)
            .enumerate()
            .find_map(|(index, (expected, ours))| walk(&format!("{place}[{index}]"), expected, ours, closeness)),
        (Value::Number(a), Value::Number(b)) => {
            if is_close(a, b, closeness) {
                None
            } else {
                differs()
            }
        }
        _ if expected == ours => None,
        _ => differs(),
    }
}

fn is_close(expected: &serde_json::Number, ours: &serde_json::Number, closeness: Closeness) -> bool {
    if let (Some(expected), Some(ours)) = (expected.as_i128(), ours.as_i128()) {
        return match closeness {
            Closeness::Equal => expected == ours,
            Closeness::Within(most) => expected.abs_diff(ours) <= u128::from(most),
        };
    }
    let (Some(expected), Some(ours)) = (expected.as_f64(), ours.as_f64()) else { return false };
    let slack = 1e-9 * expected.abs().max(1.0);
    match closeness {
        Closeness::Equal => (expected - ours).abs() <= slack,
        Closeness::Within(most) => (expected - ours).abs() <= slack + most as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_difference_is_named_with_its_place() {
        let (expected, ours) =
            (json!({"tasks": [{"total": 3}, {"total": 4}]}), json!({"tasks": [{"total": 3}, {"total": 5}]}));
        assert_eq!(
            difference(&expected, &ours, Closeness::Equal).as_deref(),
            Some("tasks[1].total: expected 4, got 5")
        );
        assert_eq!(difference(&expected, &ours, Closeness::Within(1)), None);
        assert!(difference(&expected, &json!({}), Closeness::Equal).is_some(), "a missing value is a difference");
        assert!(difference(&json!([1]), &json!([1, 2]), Closeness::Equal).is_some(), "another length is a difference");
        assert_eq!(difference(&json!({}), &json!({"more": 1}), Closeness::Equal), None);
        assert_eq!(difference(&json!(0.1), &json!(0.1 + 1e-12), Closeness::Equal), None);
        assert!(difference(&json!(0.1), &json!(0.2), Closeness::Equal).is_some());
        assert!(difference(&json!(false), &json!(true), Closeness::Equal).is_some());
    }
}
